/* fill_job: from a distribution and a tensor to jobs. */
#include <string.h>

#include "fill.h"
#include "fill_gen.h"
#include "registry.h"

static const char *const kind_names[] = {
	[FILL_DEFAULT] = "default",
	[FILL_UNIFORM] = "uniform",
	[FILL_NORMAL] = "normal",
	[FILL_BYTES] = "bytes",
	[FILL_CONSTANT] = "constant",
	[FILL_ZIPF] = "zipf",
	[FILL_K_HOT] = "k_hot",
	[FILL_PERMUTATION] = "permutation",
	[FILL_INDICES] = "indices",
	[FILL_PATTERN] = "pattern",
	[FILL_NPY] = "npy",
	[FILL_SEED_LCG64_F32] = "seed_lcg64_f32",
	[FILL_SEED_LCG64_INDEX] = "seed_lcg64_index",
	[FILL_SEED_LCG32_WIDE] = "seed_lcg32_wide",
	[FILL_SEED_LCG32_MID] = "seed_lcg32_mid",
};
enum { N_KINDS = sizeof kind_names / sizeof kind_names[0] };

const char *fill_kind_name(enum fill_kind k)
{
	return (unsigned)k < N_KINDS ? kind_names[k] : "unknown";
}

int fill_kind_of(const char *name)
{
	for (int i = 0; i < N_KINDS; i++)
		if (strcmp(kind_names[i], name) == 0)
			return i;
	return -1;
}

/* FNV-1a, then mixed; NULL is not "". */
static uint64_t hash_text(const char *s)
{
	uint64_t h = 0xCBF29CE484222325u;
	if (!s)
		return 0;
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001B3u;
	return fill_mix(h);
}

uint64_t fill_key(uint64_t suite_seed, const char *kernel, const char *tensor, const char *field, int input_set)
{
	uint64_t k = fill_mix(suite_seed + FILL_GOLDEN);
	k = fill_mix(k + hash_text(kernel));
	k = fill_mix(k + hash_text(tensor));
	k = fill_mix(k + hash_text(field));
	return fill_mix(k + (uint64_t)input_set * FILL_GOLDEN);
}

static bool is_integer(enum assay_dtype t)
{
	return t >= ASSAY_I64 && t <= ASSAY_U8;
}

/* ---- resolve -------------------------------------------------------------------------------------------------------- */

/* The last rule that speaks of this tensor or field, or NULL. A rule that names a record without a field, or no tensor, speaks of data
 * only: block scales and indices keep their own defaults until they are named. */
static const struct fill_spec *rule_for(const struct distribution *d, const char *tensor, const char *field,
					enum assay_use use)
{
	const struct fill_spec *best = NULL;
	for (int i = 0; i < d->n_rules; i++) {
		const struct fill_rule *r = &d->rules[i];
		bool named = r->tensor && strcmp(r->tensor, tensor) == 0;
		if (r->tensor && !named)
			continue;
		if (r->field ? field && strcmp(r->field, field) == 0 && (named || !r->tensor)
			     : use == ASSAY_DATA || (named && !field))
			best = &r->spec;
	}
	return best && best->kind == FILL_DEFAULT ? NULL : best;
}

static struct fill_spec default_for(enum assay_use use, enum assay_dtype dtype, const double range[2])
{
	struct fill_spec s = {.kind = FILL_UNIFORM, .range = {-1, 1}};
	if (use == ASSAY_INDEX)
		return (struct fill_spec){.kind = FILL_INDICES, .repeats = true};
	if (use == ASSAY_SCALE) {
		s.range[0] = range[0];
		s.range[1] = range[1];
	} else if (is_integer(dtype)) {
		return (struct fill_spec){.kind = FILL_BYTES, .magnitude = {0, 126}};
	}
	return s;
}

/* seed ^ the values of the named parameters; | 1 where the document does so. The second input set takes other draws of the same
 * generator: the documents know one set only. */
static bool lcg_seed_of(const struct assay_kernel *k, const struct assay_point *pt, const struct fill_spec *s,
			uint64_t suite_seed, int input_set, uint64_t *out, struct err *err)
{
	uint64_t seed = s->has_seed ? s->seed : suite_seed;
	for (int i = 0; i < 4 && s->seed_xor[i]; i++) {
		int p = 0;
		while (p < k->n_params && strcmp(k->params[p].name, s->seed_xor[i]) != 0)
			p++;
		if (p == k->n_params)
			return err_set(err, "seed_xor names '%s', which is no parameter of %s", s->seed_xor[i],
				       k->name);
		if (k->params[p].type != ASSAY_INT)
			return err_set(err, "seed_xor names '%s', which is not a whole number", s->seed_xor[i]);
		seed ^= (uint64_t)pt->v[p].i;
	}
	if (input_set)
		seed ^= fill_mix((uint64_t)input_set) >> 8;
	if (s->kind == FILL_SEED_LCG64_F32 || s->kind == FILL_SEED_LCG64_INDEX)
		seed |= 1;
	*out = seed;
	return true;
}

/* A range meant for reals, such as -1 to 1, leaves two whole numbers: data of those would prove little, and nobody would notice. */
static bool wide_enough(const struct fill_job *j, const struct fill_gen *g, enum assay_use use, struct err *err)
{
	if (use != ASSAY_DATA || !g->integer || j->spec.kind != FILL_UNIFORM || g->bound > 2 || g->rows * g->last == 0)
		return true;
	return err_set(err,
		       "fill 'uniform' [%g, %g] leaves %llu value%s of %s; widen the range, or give this tensor a fill "
		       "of its own",
		       j->spec.range[0], j->spec.range[1], (unsigned long long)g->bound, g->bound == 1 ? "" : "s",
		       registry_dtype_name(j->dtype));
}

int fill_resolve(const struct assay_kernel *k, int t, const struct assay_point *pt, const struct distribution *d,
		 uint64_t suite_seed, int input_set, struct fill_job jobs[ASSAY_MAX_FIELDS], struct err *err)
{
	const struct assay_tensor *te = &k->tensors[t];
	if (te->role != ASSAY_IN && te->role != ASSAY_INOUT)
		return 0;
	struct assay_shape shape = {0};
	if (k->shape(pt, t, &shape) != 0) {
		err_set(err, "%s gives no shape for tensor %s at this point", k->name, te->name);
		return -1;
	}
	const bool record = te->dtype == ASSAY_RECORD;
	const int n = record ? te->n_fields : 1;
	static const double unit_range[2] = {0.5, 1.5}; /* of scale tensors, which carry no range of their own */
	for (int i = 0; i < n; i++) {
		const struct assay_field *f = record ? &te->fields[i] : NULL;
		const enum assay_use use = f ? f->use : te->use;
		const enum assay_dtype dtype = f ? f->dtype : te->dtype;
		const struct fill_spec *rule = rule_for(d, te->name, f ? f->name : NULL, use);
		struct fill_job *j = &jobs[i];
		*j = (struct fill_job){
			.spec = rule ? *rule : default_for(use, dtype, f ? f->default_range : unit_range),
			.key = fill_key(suite_seed, k->name, te->name, f ? f->name : NULL, input_set),
			.dtype = dtype,
			.shape = shape,
			.record_bytes = record ? te->record_bytes : 0,
			.field_offset = f ? f->offset : 0,
			.field_count = f ? f->count : 0,
		};
		if (use != ASSAY_INDEX)
			j->shape.index_bound = 0;
		struct fill_gen g;
		if (!lcg_seed_of(k, pt, &j->spec, suite_seed, input_set, &j->lcg_seed, err) ||
		    !fill_gen_make(j, &g, err) || !wide_enough(j, &g, use, err)) {
			err_prefix(err, "%s.%s%s%s", k->name, te->name, f ? "." : "", f ? f->name : "");
			return -1;
		}
	}
	return n;
}
