/* Named blocks: geometries with what they extend, distributions with their fills and promises. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npy.h"
#include "suite_load.h"
#include "yaml_scalar.h"

bool number_read(const struct yaml_node *v, struct number *out)
{
	*out = (struct number){0};
	if (scalar_int(v->text, &out->i, NULL)) {
		out->is_int = true;
		out->d = (double)out->i;
		return true;
	}
	return scalar_real(v->text, &out->d, NULL);
}

/* ---- geometries ---- */

/* "a extends b extends a", for a cycle that was found at block b. */
static const char *cycle_text(struct loader *l, const struct block *b)
{
	const char *text = b->name;
	const struct block *at = b;
	do {
		const struct yaml_node *next = yaml_get(at->value, "extends", NULL);
		text = arena_printf(l->arena, "%s -> %s", text, next->text);
		at = block_find(&l->geometries, next->text);
	} while (at && at != b);
	return text;
}

static void put_param(struct named_number *p, int *n, const char *name, struct number v, struct mark at)
{
	int i = 0;
	while (i < *n && strcmp(p[i].name, name))
		i++;
	if (i == *n)
		++*n;
	p[i] = (struct named_number){name, v, at};
}

const struct geometry *geometry_make(struct loader *l, struct block *b)
{
	if (b->state == BLOCK_MADE || b->state == BLOCK_BAD)
		return b->made;
	const struct geometry *base = NULL;
	const struct yaml_node *v = b->value, *extends = yaml_get(v, "extends", NULL),
			       *weight = yaml_get(v, "weight", NULL);
	b->state = BLOCK_OPEN;
	bool good = !v->bad;
	if (extends && !extends->bad) {
		struct block *from = block_want(l, &l->geometries, extends);
		if (from && from->state == BLOCK_OPEN) {
			diag_add(l->diags, DIAG_ERROR, extends->mark, "a cycle of extends: %s", cycle_text(l, from));
			from = NULL;
		}
		base = from ? geometry_make(l, from) : NULL;
		good = good && base;
	}
	if (!good) {
		b->state = BLOCK_BAD;
		return NULL;
	}
	struct geometry *g = arena_alloc(l->arena, sizeof *g);
	struct named_number *p = arena_array(l->arena, (size_t)(v->n + (base ? base->n_params : 0)), sizeof *p);
	*g = (struct geometry){.name = b->name, .param = p, .mark = b->key->mark};
	if (base) {
		memcpy(p, base->param, (size_t)base->n_params * sizeof *p);
		g->n_params = base->n_params;
		g->has_weight = base->has_weight;
		g->weight = base->weight;
	}
	for (int i = 0; i < v->n; i++) {
		struct number x;
		if (strcmp(v->key[i]->text, "extends") && strcmp(v->key[i]->text, "weight") &&
		    number_read(v->item[i], &x))
			put_param(p, &g->n_params, v->key[i]->text, x, v->item[i]->mark);
	}
	if (weight) {
		g->has_weight = true;
		scalar_real(weight->text, &g->weight, NULL);
	}
	b->made = g;
	b->state = BLOCK_MADE;
	return g;
}

const struct geometry *geometry_plain(struct loader *l)
{
	struct geometry *g = arena_alloc(l->arena, sizeof *g);
	*g = (struct geometry){.name = "default"};
	return g;
}

/* ---- distributions ---- */

static void real_of(const struct yaml_node *map, const char *key, double *out)
{
	const struct yaml_node *v = yaml_get(map, key, NULL);
	if (v)
		scalar_real(v->text, out, NULL);
}

static void int_of(const struct yaml_node *map, const char *key, int64_t *out)
{
	const struct yaml_node *v = yaml_get(map, key, NULL);
	if (v)
		scalar_int(v->text, out, NULL);
}

/* A pair [low, high]. */
static bool pair_check(struct loader *l, const struct yaml_node *v, bool strict, double out[2])
{
	if (v->kind != YAML_TREE_SEQ || v->n != 2)
		return diag_add(l->diags, DIAG_ERROR, v->mark, "two values are wanted here: [low, high]");
	for (int i = 0; i < 2; i++)
		scalar_real(v->item[i]->text, &out[i], NULL);
	if (strict ? out[0] < out[1] : out[0] <= out[1])
		return true;
	return diag_add(l->diags, DIAG_ERROR, v->item[1]->mark,
			strict ? "the end is not above the start" : "the end is below the start");
}

static int fill_of(const struct yaml_node *v)
{
	for (int i = 0; grammar_fills[i]; i++)
		if (!strcmp(grammar_fills[i], v->text))
			return i;
	return 0;
}

static bool seed_fill(enum fill_kind k)
{
	return k == FILL_SEED_LCG64_F32 || k == FILL_SEED_LCG64_INDEX || k == FILL_SEED_LCG32_WIDE ||
	       k == FILL_SEED_LCG32_MID;
}

/* A key of another fill would be read by nobody, so it is refused. */
const char *const *fill_keys(enum fill_kind k)
{
	static const char *const uniform[] = {"range", NULL}, *const normal[] = {"mean", "sd", NULL},
				 *const bytes[] = {"magnitude", NULL}, *const constant[] = {"value", NULL},
				 *const zipf[] = {"exponent", NULL}, *const k_hot[] = {"k", "value", NULL},
				 *const indices[] = {"repeats", NULL},
				 *const pattern[] = {"base", "step", "modulus", NULL}, *const npy[] = {"path", NULL},
				 *const seed[] = {"seed", "seed_xor", NULL}, *const none[] = {NULL};
	switch (k) {
	case FILL_UNIFORM: return uniform;
	case FILL_NORMAL: return normal;
	case FILL_BYTES: return bytes;
	case FILL_CONSTANT: return constant;
	case FILL_ZIPF: return zipf;
	case FILL_K_HOT: return k_hot;
	case FILL_INDICES: return indices;
	case FILL_PATTERN: return pattern;
	case FILL_NPY: return npy;
	case FILL_SEED_LCG64_F32:
	case FILL_SEED_LCG64_INDEX:
	case FILL_SEED_LCG32_WIDE:
	case FILL_SEED_LCG32_MID: return seed;
	case FILL_DEFAULT:
	case FILL_PERMUTATION: break;
	}
	return none;
}

static bool keys_check(struct loader *l, const struct yaml_node *map, enum fill_kind kind)
{
	bool good = true;
	const char *const *own = fill_keys(kind);
	for (int i = 0; i < map->n; i++) {
		const char *key = map->key[i]->text;
		int k = 0;
		while (own[k] && strcmp(own[k], key))
			k++;
		if (own[k] || !strcmp(key, "fill") || !strcmp(key, "tensors") || !strcmp(key, "promise"))
			continue;
		good = diag_add(l->diags, DIAG_ERROR, map->key[i]->mark, "the fill '%s' has no '%s'",
				grammar_fills[kind], key);
	}
	return good;
}

static bool lacks(struct loader *l, const struct yaml_node *map, enum fill_kind kind, const char *key)
{
	if (yaml_get(map, key, NULL))
		return false;
	diag_add(l->diags, DIAG_ERROR, map->mark, "the fill '%s' lacks the key '%s'", grammar_fills[kind], key);
	return true;
}

/* What a fill is where nothing more is said; what it does not use is zero. */
static void fill_default(struct fill_spec *f, enum fill_kind k)
{
	*f = (struct fill_spec){.kind = k};
	switch (k) {
	case FILL_UNIFORM:
		f->range[0] = -1;
		f->range[1] = 1;
		break;
	case FILL_NORMAL: f->sd = 1; break;
	case FILL_BYTES: f->magnitude[1] = 127; break;
	case FILL_ZIPF: f->exponent = 1; break;
	case FILL_K_HOT: f->value = 1; break;
	case FILL_INDICES: f->repeats = true; break;
	default: break;
	}
}

/* The file's absolute path, so that a worker finds it from anywhere. */
static bool npy_path(struct loader *l, const char *dir, const struct yaml_node *v, const char **out)
{
	const char *path = path_join(l->arena, dir, v->text);
	char *real = realpath(path, NULL);
	struct err why;
	if (!real || !npy_check(path, &why)) {
		if (real)
			diag_add(l->diags, DIAG_ERROR, v->mark, "%s", why.text);
		else
			diag_add(l->diags, DIAG_ERROR, v->mark, "%s: %s", path, strerror(errno));
		free(real);
		return false;
	}
	*out = arena_strdup(l->arena, real);
	free(real);
	return true;
}

static bool fill_make(struct loader *l, const struct yaml_node *map, const char *dir, struct fill_spec *f)
{
	const struct yaml_node *fill = yaml_get(map, "fill", NULL), *v;
	int64_t seed;
	double pair[2];
	fill_default(f, fill ? (enum fill_kind)fill_of(fill) : FILL_UNIFORM);
	bool good = keys_check(l, map, f->kind);
	if ((v = yaml_get(map, "range", NULL)) && good)
		good = pair_check(l, v, true, f->range);
	if ((v = yaml_get(map, "magnitude", NULL)) && good) {
		good = pair_check(l, v, false, pair);
		if (good && (pair[0] < 0 || pair[1] > 127))
			good = diag_add(l->diags, DIAG_ERROR, v->item[pair[0] < 0 ? 0 : 1]->mark,
					"%s is out of range 0..127", v->item[pair[0] < 0 ? 0 : 1]->text);
		f->magnitude[0] = good ? (int64_t)pair[0] : 0;
		f->magnitude[1] = good ? (int64_t)pair[1] : 127;
	}
	real_of(map, "mean", &f->mean);
	real_of(map, "sd", &f->sd);
	real_of(map, "value", &f->value);
	real_of(map, "exponent", &f->exponent);
	real_of(map, "base", &f->base);
	real_of(map, "step", &f->step);
	int_of(map, "k", &f->k);
	int_of(map, "modulus", &f->modulus);
	if ((v = yaml_get(map, "repeats", NULL)))
		f->repeats = !strcmp(v->text, "true");
	if (f->kind == FILL_CONSTANT)
		good = !lacks(l, map, f->kind, "value") && good;
	if (f->kind == FILL_K_HOT)
		good = !lacks(l, map, f->kind, "k") && good;
	if (f->kind == FILL_PATTERN)
		good = !lacks(l, map, f->kind, "modulus") && good;
	if (f->kind == FILL_NPY) {
		good = !lacks(l, map, f->kind, "path") && good;
		if ((v = yaml_get(map, "path", NULL)))
			good = npy_path(l, dir, v, &f->path) && good;
	}
	if (seed_fill(f->kind)) {
		good = !lacks(l, map, f->kind, "seed") && good;
		int_of(map, "seed", &seed);
		if (yaml_get(map, "seed", NULL)) {
			f->has_seed = true;
			f->seed = (uint64_t)seed;
		}
	}
	if ((v = yaml_get(map, "seed_xor", NULL))) {
		if (v->kind == YAML_TREE_SCALAR)
			f->seed_xor[0] = v->text;
		for (int i = 0; v->kind == YAML_TREE_SEQ && i < v->n && i < 4; i++)
			f->seed_xor[i] = v->item[i]->text;
	}
	return good;
}

static uint32_t dtype_bit(const char *name)
{
	for (int i = 0; grammar_dtypes[i]; i++)
		if (!strcmp(grammar_dtypes[i], name))
			return 1u << i;
	return 0;
}

static bool promise_make(struct loader *l, const struct yaml_node *map, struct promise *p)
{
	const struct yaml_node *v;
	bool good = true;
	if ((v = yaml_get(map, "finite_as", NULL))) {
		if (v->kind == YAML_TREE_SCALAR)
			p->finite_as = dtype_bit(v->text);
		for (int i = 0; v->kind == YAML_TREE_SEQ && i < v->n; i++)
			p->finite_as |= dtype_bit(v->item[i]->text);
	}
	if ((v = yaml_get(map, "sign", NULL)))
		p->sign = !strcmp(v->text, "positive")   ? PROMISE_POSITIVE
			  : !strcmp(v->text, "negative") ? PROMISE_NEGATIVE
			  : !strcmp(v->text, "both")     ? PROMISE_BOTH
							 : PROMISE_NONE;
	if ((v = yaml_get(map, "denormals", NULL))) {
		if (v->kind == YAML_TREE_SCALAR && !p->finite_as) {
			good = diag_add(l->diags, DIAG_ERROR, v->mark, "denormals read as which type?");
			diag_note(l->diags, (struct mark){0}, "write {e4m3: none}, or name the types in finite_as");
		} else if (v->kind == YAML_TREE_SCALAR) {
			p->no_denormals_as = p->finite_as;
		}
		for (int i = 0; v->kind == YAML_TREE_MAP && i < v->n; i++) {
			uint32_t bit = dtype_bit(v->key[i]->text);
			int n = 0;
			while (grammar_dtypes[n])
				n++;
			if (!bit) {
				grammar_unknown(l->diags, v->key[i]->mark, "type", v->key[i]->text, grammar_dtypes, n);
				good = false;
			}
			p->no_denormals_as |= bit;
		}
	}
	if ((v = yaml_get(map, "range", NULL))) {
		p->has_range = true;
		good = pair_check(l, v, false, p->range) && good;
	}
	return good;
}

const struct distribution *distribution_make(struct loader *l, struct block *b)
{
	if (b->state != BLOCK_NEW)
		return b->made;
	b->state = BLOCK_BAD;
	const struct yaml_node *v = b->value, *tensors = yaml_get(v, "tensors", NULL),
			       *promise = yaml_get(v, "promise", NULL);
	if (v->bad)
		return NULL;
	int n = tensors ? tensors->n : 0;
	struct distribution *d = arena_alloc(l->arena, sizeof *d);
	struct fill_rule *rule = arena_array(l->arena, (size_t)n + 1, sizeof *rule);
	*d = (struct distribution){.name = b->name, .rules = rule, .n_rules = n + 1};
	bool good = fill_make(l, v, b->dir, &rule[0].spec);
	for (int i = 0; i < n; i++) {
		const char *name = tensors->key[i]->text, *dot = strchr(name, '.');
		rule[i + 1].tensor = dot ? arena_strndup(l->arena, name, (size_t)(dot - name)) : name;
		rule[i + 1].field = dot ? dot + 1 : NULL;
		good = fill_make(l, tensors->item[i], b->dir, &rule[i + 1].spec) && good;
	}
	if (promise)
		good = promise_make(l, promise, &d->promise) && good;
	if (!good)
		return NULL;
	b->made = d;
	b->state = BLOCK_MADE;
	return d;
}

const struct distribution *distribution_plain(struct loader *l)
{
	struct distribution *d = arena_alloc(l->arena, sizeof *d);
	struct fill_rule *rule = arena_alloc(l->arena, sizeof *rule);
	fill_default(&rule->spec, FILL_UNIFORM);
	*d = (struct distribution){.name = "default", .rules = rule, .n_rules = 1};
	return d;
}
