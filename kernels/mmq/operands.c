/* operands: parameters, tensors and shapes of the mmq kernels, and the two small number formats in them. */
#include <math.h>
#include <string.h>

#include "mmq.h"

const struct assay_param mmq_params[MMQ_PARAMS] = {
	[MMQ_P_M] = {"m", ASSAY_INT, 1, 1 << 20, true, 0, 0, "tokens: rows of the activations"},
	[MMQ_P_IN_F] = {"in_f", ASSAY_INT, MMQ_BLOCK, 1 << 20, true, 0, MMQ_BLOCK,
			"features in: the length of a dot product"},
	[MMQ_P_OUT_F] = {"out_f", ASSAY_INT, 1, 1 << 20, true, 0, 0, "features out: rows of the weights"},
};

/* Scales as an int8 quantiser leaves them on weights and activations of unit size. */
static const struct assay_field w_fields[] = {
	{"d", ASSAY_F16, 0, 1, ASSAY_SCALE, {0.01, 0.028}},
	{"qs", ASSAY_I8, 2, MMQ_BLOCK, ASSAY_DATA, {0, 0}},
};
static const struct assay_field x_fields[] = {
	{"d", ASSAY_F32, 0, MMQ_RECORD / MMQ_BLOCK, ASSAY_SCALE, {0.0125, 0.0273}},
	{"qs", ASSAY_I8, 16, MMQ_RECORD, ASSAY_DATA, {0, 0}},
};

const struct assay_tensor mmq_tensors[MMQ_TENSORS] = {
	[MMQ_W] = {.name = "w",
		   .role = ASSAY_IN,
		   .dtype = ASSAY_RECORD,
		   .dims = "out_f block",
		   .fields = w_fields,
		   .n_fields = 2,
		   .record_bytes = MMQ_W_BYTES,
		   .doc = "Q8_0 weights: an f16 scale and 32 quants a block"},
	[MMQ_X] = {.name = "x",
		   .role = ASSAY_IN,
		   .dtype = ASSAY_RECORD,
		   .dims = "record m",
		   .fields = x_fields,
		   .n_fields = 2,
		   .record_bytes = MMQ_X_BYTES,
		   .doc = "quantised activations: four f32 scales and 128 quants a record; in_f padded to 512"},
	[MMQ_Y] = {.name = "y", .role = ASSAY_OUT, .dtype = ASSAY_F32, .dims = "m out_f", .doc = "the product"},
	[MMQ_WQ] = {.name = "wq",
		    .role = ASSAY_DERIVED,
		    .dtype = ASSAY_I8,
		    .dims = "out_f in_f",
		    .doc = "device arms: the quants of w alone, rows of in_f bytes; packed outside the clock, for "
			   "every arm alike"},
	[MMQ_WD] = {.name = "wd",
		    .role = ASSAY_DERIVED,
		    .dtype = ASSAY_F32,
		    .dims = "block out_pad_twice",
		    .doc = "device arms: the scales of w alone as f32, a row a block, in sixteens as a thread wants "
			   "them, padded with zeros; then, in the same order, each times -1.5 * 2^23"},
};

int mmq_tensor_shape(const struct assay_point *p, int t, struct assay_shape *out)
{
	const struct mmq_shape s = mmq_of(p);
	const int64_t dims[MMQ_TENSORS][2] = {
		[MMQ_W] = {s.out_f, s.blocks}, [MMQ_X] = {s.records, s.m},           [MMQ_Y] = {s.m, s.out_f},
		[MMQ_WQ] = {s.out_f, s.in_f},  [MMQ_WD] = {s.blocks, 2 * s.out_pad},
	};
	if (t < 0 || t >= MMQ_TENSORS)
		return -1;
	memset(out, 0, sizeof *out);
	out->rank = 2;
	memcpy(out->dim, dims[t], sizeof dims[t]);
	return 0;
}

void mmq_work(const struct assay_point *p, const struct assay_facts *facts, struct assay_work *out)
{
	const struct mmq_shape s = mmq_of(p);
	const double w = (double)s.out_f * (double)s.blocks * MMQ_W_BYTES;
	const double x = (double)s.m * (double)s.blocks * (MMQ_BLOCK + 4);
	out->bytes = w + x + 4.0 * (double)s.m * (double)s.out_f;
	out->least_bytes = out->bytes;
	out->flop = 2.0 * (double)s.m * (double)s.in_f * (double)s.out_f;
}

float mmq_f16(uint16_t bits)
{
	const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
	float v;
	if (exponent == 31)
		v = mantissa ? NAN : INFINITY;
	else
		v = exponent ? ldexpf((float)(1024 + mantissa), exponent - 25) : ldexpf((float)mantissa, -24);
	return bits >> 15 ? -v : v;
}

float mmq_e4m3(uint8_t bits)
{
	const int exponent = bits >> 3 & 15, mantissa = bits & 7;
	float v;
	if ((bits & 0x7F) == 0x7F)
		v = NAN;
	else
		v = exponent ? ldexpf((float)(8 + mantissa), exponent - 10) : ldexpf((float)mantissa, -9);
	return bits >> 7 ? -v : v;
}
