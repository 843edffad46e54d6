/* fill_gen: a job made ready to run, or refused: what its element type can hold, what its fill asks for. */
#include "fill_gen.h"

#include <math.h>
#include <string.h>

#include "registry.h"

/* ---- what an element type can hold ---------------------------------------------------------------------------------- */

static bool is_integer(enum assay_dtype t)
{
	return t >= ASSAY_I64 && t <= ASSAY_U8;
}

static bool is_float(enum assay_dtype t)
{
	return t >= ASSAY_F64 && t <= ASSAY_E5M2;
}

/* Least and greatest finite number; of 64-bit integers the whole doubles within +-2^53, which a suite can write exactly. */
static void limits_of(enum assay_dtype t, double *lo, double *hi)
{
	const double exact = 9007199254740992.0;
	int bits = 8 * (int)assay_dtype_bytes(t);
	if (is_float(t)) {
		struct fill_format f = fill_format_of(t);
		*hi = t == ASSAY_F64 ? 1.7976931348623157e308
		      : f.has_inf    ? fill_decode((((1u << f.exponent_bits) - 1) << f.mantissa_bits) - 1, f)
				     : 448.0;
		*lo = -*hi;
		return;
	}
	bool is_signed = t <= ASSAY_I8;
	*hi = bits == 64 ? exact : ldexp(1, bits - is_signed) - 1;
	*lo = !is_signed ? 0 : bits == 64 ? -exact : -ldexp(1, bits - 1);
}

/* The neighbour of a value that the format has, upwards or downwards. */
static double neighbour(enum assay_dtype t, double v, bool up)
{
	if (t == ASSAY_F64)
		return nextafter(v, up ? INFINITY : -INFINITY);
	struct fill_format f = fill_format_of(t);
	uint32_t u = fill_encode(v, f), sign = 1u << (f.exponent_bits + f.mantissa_bits), m = u & (sign - 1);
	if (m == 0)
		return fill_decode(up ? 1 : sign | 1, f);
	return fill_decode((u & sign) | (((u & sign) != 0) != up ? m + 1 : m - 1), f);
}

static double round_to(enum assay_dtype t, double v)
{
	return t == ASSAY_F64 ? v : fill_decode(fill_encode(v, fill_format_of(t)), fill_format_of(t));
}

/* ---- a job made ready ----------------------------------------------------------------------------------------------- */

static bool misfit(const struct fill_job *job, const char *wants, struct err *err)
{
	return err_set(err, "fill '%s' wants %s, this is %s", fill_kind_name(job->spec.kind), wants,
		       registry_dtype_name(job->dtype));
}

static bool check_range(const struct fill_job *job, double lo, double hi, struct err *err)
{
	double least, greatest;
	limits_of(job->dtype, &least, &greatest);
	if (lo >= least && hi <= greatest)
		return true;
	return err_set(err, "fill '%s' reaches %g to %g, but %s holds %.17g to %.17g", fill_kind_name(job->spec.kind),
		       lo, hi, registry_dtype_name(job->dtype), least, greatest);
}

/* Values 0..bound-1 into the element type. */
static bool check_bound(const struct fill_job *job, int64_t bound, const char *of, struct err *err)
{
	if (!is_integer(job->dtype))
		return misfit(job, "integers", err);
	if (bound < 1)
		return err_set(err, "fill '%s' is for tensors of row numbers; this one's %s is %lld",
			       fill_kind_name(job->spec.kind), of, (long long)bound);
	return check_range(job, 0, (double)(bound - 1), err);
}

static bool make_uniform(const struct fill_job *job, struct fill_gen *g, struct err *err)
{
	double lo = job->spec.range[0], hi = job->spec.range[1];
	if (!isfinite(lo) || !isfinite(hi) || !(lo < hi))
		return err_set(err, "fill 'uniform' wants range: [LOW, HIGH] with LOW below HIGH, not [%g, %g]", lo,
			       hi);
	if (g->integer) {
		double first = ceil(lo), end = ceil(hi);
		if (!(first < end))
			return err_set(err, "fill 'uniform': no whole number x has %g <= x < %g", lo, hi);
		if (!check_range(job, first, end - 1, err))
			return false;
		g->base_integer = (int64_t)first;
		g->bound = (uint64_t)(end - first);
		return true;
	}
	if (!check_range(job, lo, hi, err))
		return false;
	g->lo = lo;
	g->span = hi - lo;
	if (!isfinite(g->span))
		return err_set(err, "fill 'uniform': the range [%g, %g] is wider than a double", lo, hi);
	g->least = round_to(job->dtype, lo);
	if (g->least < lo)
		g->least = neighbour(job->dtype, g->least, true);
	g->most = round_to(job->dtype, hi);
	if (g->most >= hi)
		g->most = neighbour(job->dtype, g->most, false);
	if (!(g->least <= g->most))
		return err_set(err, "fill 'uniform': %s has no number x with %g <= x < %g",
			       registry_dtype_name(job->dtype), lo, hi);
	return true;
}

static bool make_value(const struct fill_job *job, struct fill_gen *g, struct err *err)
{
	double v = job->spec.value;
	if (!isfinite(v))
		return err_set(err, "fill '%s' wants a finite value", fill_kind_name(job->spec.kind));
	if (!check_range(job, v, v, err))
		return false;
	if (g->integer && v != floor(v))
		return err_set(err, "fill '%s': %g is not a whole number, and this is %s",
			       fill_kind_name(job->spec.kind), v, registry_dtype_name(job->dtype));
	g->constant = fill_put(g, v);
	g->zero = 0;
	return true;
}

static bool make_pattern(const struct fill_job *job, struct fill_gen *g, struct err *err)
{
	const struct fill_spec *s = &job->spec;
	if (s->modulus < 1)
		return err_set(err, "fill 'pattern' wants modulus: 1 or more, not %lld", (long long)s->modulus);
	double end = s->base + s->step * (double)(s->modulus - 1);
	if (!isfinite(s->base) || !isfinite(end))
		return err_set(err, "fill 'pattern' wants a finite base and step");
	if (!check_range(job, fmin(s->base, end), fmax(s->base, end), err))
		return false;
	if (g->integer && (s->base != floor(s->base) || s->step != floor(s->step)))
		return err_set(err, "fill 'pattern': base %g and step %g must be whole numbers, this is %s", s->base,
			       s->step, registry_dtype_name(job->dtype));
	g->base = (float)s->base;
	g->step = (float)s->step;
	g->base_wide = s->base;
	g->step_wide = s->step;
	g->modulus = s->modulus;
	return true;
}

static bool make_kind(const struct fill_job *job, struct fill_gen *g, struct err *err)
{
	const struct fill_spec *s = &job->spec;
	const int64_t bound = job->shape.index_bound;
	switch (s->kind) {
	case FILL_UNIFORM: return make_uniform(job, g, err);
	case FILL_NORMAL:
		if (g->integer)
			return misfit(job, "a floating-point type", err);
		if (!isfinite(s->mean) || !isfinite(s->sd) || s->sd < 0)
			return err_set(err, "fill 'normal' wants a finite mean and sd, sd not below 0");
		g->lo = s->mean;
		g->span = s->sd;
		return check_range(job, s->mean - 8.3 * s->sd, s->mean + 8.3 * s->sd, err);
	case FILL_BYTES:
		if (s->magnitude[0] < 0 || s->magnitude[1] > 127 || s->magnitude[0] > s->magnitude[1])
			return err_set(err,
				       "fill 'bytes' wants magnitude: [LOW, HIGH] within 0 to 127, not [%lld, %lld]",
				       (long long)s->magnitude[0], (long long)s->magnitude[1]);
		g->magnitude = (uint64_t)s->magnitude[0];
		g->magnitudes = (uint64_t)(s->magnitude[1] - s->magnitude[0] + 1);
		return true;
	case FILL_CONSTANT: return make_value(job, g, err);
	case FILL_ZIPF:
		if (!check_bound(job, bound, "index bound", err))
			return false;
		if (!(s->exponent >= 0 && s->exponent <= 100))
			return err_set(err, "fill 'zipf' wants an exponent from 0 to 100, not %g", s->exponent);
		g->zipf = fill_zipf_make(s->exponent, bound);
		g->perm = fill_perm_make((uint64_t)bound);
		g->scatter_key = fill_mix(job->key ^ 0x7A697066); /* apart from every row's key */
		return true;
	case FILL_K_HOT:
		if (s->k < 0 || s->k > g->last)
			return err_set(err, "fill 'k_hot': k is %lld, but the last dimension has %lld elements",
				       (long long)s->k, (long long)g->last);
		g->k = s->k;
		g->perm = fill_perm_make((uint64_t)g->last);
		return make_value(job, g, err);
	case FILL_PERMUTATION:
		g->perm = fill_perm_make((uint64_t)g->last);
		return g->last == 0 || check_bound(job, g->last, "last dimension", err);
	case FILL_INDICES:
		if (!check_bound(job, bound, "index bound", err))
			return false;
		g->bound = (uint64_t)bound;
		g->perm = fill_perm_make(s->repeats ? 0 : (uint64_t)bound);
		if (s->repeats || g->last <= bound)
			return true;
		return err_set(err,
			       "fill 'indices' without repeats: %lld indices a row cannot differ, there are %lld rows "
			       "to choose from",
			       (long long)g->last, (long long)bound);
	case FILL_PATTERN: return make_pattern(job, g, err);
	case FILL_NPY: return s->path && s->path[0] ? true : err_set(err, "fill 'npy' wants file: PATH");
	case FILL_SEED_LCG64_F32: return g->integer ? misfit(job, "a floating-point type", err) : true;
	case FILL_SEED_LCG64_INDEX:
		if (bound > 0xFFFFFFFF)
			return err_set(err, "fill 'seed_lcg64_index' wants an index bound below 2^32, not %lld",
				       (long long)bound);
		g->bound = (uint64_t)bound;
		return check_bound(job, bound, "index bound", err);
	case FILL_SEED_LCG32_WIDE:
	case FILL_SEED_LCG32_MID: return g->element_bytes == 1 ? true : misfit(job, "one-byte elements", err);
	case FILL_DEFAULT: break;
	}
	return err_set(err, "fill '%s' cannot be run as it is", fill_kind_name(s->kind));
}

/* Row numbers are addresses: what is not below the bound would be read from anywhere. The fills for row numbers keep it by their own;
 * of the others the least and greatest value are known. (A file's values are looked at when it is read.) */
static bool check_row_numbers(const struct fill_job *job, const struct fill_gen *g, struct err *err)
{
	const struct fill_spec *s = &job->spec;
	const int64_t bound = job->shape.index_bound;
	double lo, hi;
	switch (s->kind) {
	case FILL_UNIFORM:
		lo = (double)g->base_integer;
		hi = lo + (double)g->bound - 1;
		break;
	case FILL_CONSTANT: lo = hi = s->value; break;
	case FILL_K_HOT:
		lo = fmin(0, s->value);
		hi = fmax(0, s->value);
		break;
	case FILL_PATTERN:
		lo = fmin(s->base, s->base + s->step * (double)(s->modulus - 1));
		hi = fmax(s->base, s->base + s->step * (double)(s->modulus - 1));
		break;
	case FILL_PERMUTATION:
		lo = 0;
		hi = (double)(g->last - 1);
		break;
	case FILL_ZIPF:
	case FILL_INDICES:
	case FILL_SEED_LCG64_INDEX:
	case FILL_NPY: return true;
	default:
		return err_set(err, "fill '%s' does not make row numbers; see indices, zipf, permutation",
			       fill_kind_name(s->kind));
	}
	if (lo >= 0 && hi < (double)bound)
		return true;
	return err_set(err, "fill '%s' makes row numbers %g to %g, but there are rows 0 to %lld",
		       fill_kind_name(s->kind), lo, hi, (long long)bound - 1);
}

bool fill_gen_make(const struct fill_job *job, struct fill_gen *g, struct err *err)
{
	const struct assay_shape *sh = &job->shape;
	const bool record = job->record_bytes != 0;
	if (!is_integer(job->dtype) && !is_float(job->dtype))
		return err_set(err, "a tensor of this element type cannot be filled as a whole, only its fields");
	memset(g, 0, sizeof *g);
	g->kind = job->spec.kind;
	g->dtype = job->dtype;
	g->format = fill_format_of(job->dtype);
	g->element_bytes = (int)assay_dtype_bytes(job->dtype);
	g->integer = is_integer(job->dtype);
	g->key = job->key;
	g->lcg = job->lcg_seed;
	g->offset_bytes = job->field_offset;

	const int64_t unit = record ? (int64_t)job->record_bytes : g->element_bytes;
	bool strided = false;
	for (int i = 0; i < sh->rank; i++)
		strided |= sh->stride[i] != 0;
	int64_t stride[ASSAY_MAX_RANK], dense = 1;
	for (int i = sh->rank - 1; i >= 0; i--) {
		stride[i] = strided ? sh->stride[i] : dense;
		dense *= sh->dim[i];
	}
	g->rank = record || sh->rank == 0 ? sh->rank : sh->rank - 1;
	g->rows = 1;
	for (int i = 0; i < g->rank; i++) {
		g->dim[i] = sh->dim[i];
		g->stride_bytes[i] = stride[i] * unit;
		g->rows *= sh->dim[i];
	}
	if (record) {
		g->last = job->field_count;
		g->last_stride_bytes = g->element_bytes;
	} else {
		g->last = sh->rank ? sh->dim[sh->rank - 1] : 1;
		g->last_stride_bytes = sh->rank ? stride[sh->rank - 1] * unit : unit;
	}
	/* Of an empty tensor the bounds may well be 0, and nothing is asked of them. */
	if (g->rows * g->last == 0)
		return true;
	const bool row_numbers = g->integer && sh->index_bound > 0;
	return make_kind(job, g, err) && (!row_numbers || check_row_numbers(job, g, err));
}
