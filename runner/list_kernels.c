#include "list_kernels.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "arena.h"
#include "plain.h"

enum { WIDTH = 100 };

static const char *const role_names[] = {"in", "out", "inout", "derived", "workspace"};
static const char *const use_names[] = {"data", "index", "scale"};
static const char *const backend_text[ASSAY_N_BACKENDS] = {"host", "cuda"};
/* Architectures whose forms are worth telling apart. */
static const int known_cc[] = {80, 86, 89, 90, 100, 120};

/* Words from column `col` (already there) to WIDTH, further lines indented to `indent`. */
static void wrap(FILE *f, int col, int indent, const char *text)
{
	for (bool first = true; *text; first = false) {
		int n = (int)strcspn(text, " ");
		if (!first && col + 1 + n > WIDTH) {
			fprintf(f, "\n%*s", indent, "");
			col = indent;
			first = true;
		}
		col += fprintf(f, "%s%.*s", first ? "" : " ", n, text);
		text += n;
		text += strspn(text, " ");
	}
	fputc('\n', f);
}

/* "    name  what …  doc": the doc begins at one column where it can. */
static void line(FILE *f, const char *name, const char *what, const char *doc)
{
	enum { NAME = 12, DOC = 56 };
	int col = fprintf(f, "    %-*s %s", NAME, name, what);
	if (!doc || !*doc) {
		fputc('\n', f);
		return;
	}
	/* What is too long for its column leaves the doc a line of its own. */
	int pad = col < DOC - 1 ? DOC - col : DOC;
	fprintf(f, "%s%*s", pad == DOC ? "\n" : "", pad, "");
	wrap(f, DOC, DOC, doc);
}

static void number(char *buf, size_t cap, const struct assay_param *p, double v)
{
	if (p->type == ASSAY_INT)
		snprintf(buf, cap, "%" PRId64, (int64_t)v);
	else
		snprintf(buf, cap, "%.6g", v);
}

static void print_params(FILE *f, const struct assay_kernel *k)
{
	fputs("  parameters\n", f);
	for (int i = 0; i < k->n_params; i++) {
		const struct assay_param *p = &k->params[i];
		char lo[40], hi[40], dflt[60] = "required", multiple[40] = "", what[200];
		number(lo, sizeof lo, p, p->min);
		number(hi, sizeof hi, p, p->max);
		if (!p->required) {
			strcpy(dflt, "default ");
			number(dflt + 8, sizeof dflt - 8, p, p->dflt);
		}
		if (p->multiple_of > 1)
			snprintf(multiple, sizeof multiple, " by %" PRId64, p->multiple_of);
		snprintf(what, sizeof what, "%s %s..%s%s, %s", p->type == ASSAY_INT ? "int" : "real", lo, hi, multiple,
			 dflt);
		line(f, p->name, what, p->doc);
	}
}

static void print_tensors(FILE *f, const struct assay_kernel *k)
{
	fputs("  tensors\n", f);
	for (int i = 0; i < k->n_tensors; i++) {
		const struct assay_tensor *t = &k->tensors[i];
		char what[200];
		snprintf(what, sizeof what, "%s %s [%s]%s%s", role_names[t->role], registry_dtype_name(t->dtype),
			 t->dims, t->use == ASSAY_DATA ? "" : ", ", t->use == ASSAY_DATA ? "" : use_names[t->use]);
		line(f, t->name, what, t->doc);
		for (int j = 0; j < t->n_fields; j++) {
			const struct assay_field *x = &t->fields[j];
			char name[80];
			snprintf(name, sizeof name, "  .%s", x->name);
			snprintf(what, sizeof what, "%s x %u at byte %u%s%s", registry_dtype_name(x->dtype), x->count,
				 x->offset, x->use == ASSAY_DATA ? "" : ", ",
				 x->use == ASSAY_DATA ? "" : use_names[x->use]);
			line(f, name, what, NULL);
		}
	}
}

/* Forms that a backend (and architecture) gives to an arm: said once where they are the same. */
static void print_forms(FILE *f, const struct assay_kernel *k, const struct assay_arm *a)
{
	if (!k->form)
		return;
	const char *host = a->ops[ASSAY_HOST] ? k->form(a, ASSAY_HOST, 0) : NULL, *last = NULL;
	char what[80];
	struct arena *plain = arena_create(); /* what a hook says may be any bytes */
	if (host)
		line(f, "", "on the host", plain_text(plain, host));
	for (size_t i = 0; a->ops[ASSAY_CUDA] && i < sizeof known_cc / sizeof known_cc[0]; i++) {
		const char *form = k->form(a, ASSAY_CUDA, known_cc[i]);
		if (form && (!last || strcmp(form, last) != 0)) {
			snprintf(what, sizeof what, "from sm_%d", known_cc[i]);
			line(f, "", what, plain_text(plain, form));
		}
		last = form;
	}
	arena_destroy(plain);
}

static void print_arms(FILE *f, const struct assay_kernel *k, bool faults)
{
	bool any = false;
	for (int i = 0; i < k->n_arms; i++) {
		const struct assay_arm *a = &k->arms[i];
		char name[120], what[200];
		if (((a->flags & ASSAY_ARM_FAULT) != 0) != faults)
			continue;
		if (!any)
			fputs(faults ? "  must-fail subjects\n" : "  arms\n", f);
		any = true;
		snprintf(name, sizeof name, "%s%s", a->name, a->arg_name ? "=N" : "");
		int n = 0;
		what[0] = 0;
		for (int b = 0; b < ASSAY_N_BACKENDS; b++)
			if (a->ops[b])
				n += snprintf(what + n, sizeof what - (size_t)n, "%s%s", n ? " " : "", backend_text[b]);
		if (!n)
			n += snprintf(what, sizeof what, "not in this build");
		if (a->arg_name)
			n += snprintf(what + n, sizeof what - (size_t)n, ", N %" PRId64 "..%" PRId64 "%s", a->arg_min,
				      a->arg_max, a->arg_pow2 ? " pow2" : "");
		if (a->flags & ASSAY_ARM_BITWISE)
			n += snprintf(what + n, sizeof what - (size_t)n, ", bitwise");
		if (i && a->flags & ASSAY_ARM_SELECTABLE)
			snprintf(what + n, sizeof what - (size_t)n, ", selectable");
		line(f, name, what, a->doc);
		print_forms(f, k, a);
	}
}

void list_kernel_print(FILE *f, const struct registry *r, const struct assay_kernel *k, bool gap)
{
	const char *origin = registry_origin(r, k);
	if (gap)
		fputc('\n', f);
	int col = fprintf(f, "%-22s", k->name);
	wrap(f, col, 22, k->doc);
	if (origin)
		fprintf(f, "  from %s\n", origin);
	if (k->n_params)
		print_params(f, k);
	print_tensors(f, k);
	print_arms(f, k, false);
	print_arms(f, k, true);
	fprintf(f, "  reference %s\n", k->reference ? "in double, with a derived bound" : "none");
}

static json_t *number_json(const struct assay_param *p, double v)
{
	return p->type == ASSAY_INT ? json_integer((json_int_t)v) : isfinite(v) ? json_real(v) : json_null();
}

static json_t *param_json(const struct assay_param *p)
{
	return json_pack("{s:s, s:s, s:o, s:o, s:b, s:o, s:I, s:s}", "name", p->name, "type",
			 p->type == ASSAY_INT ? "int" : "real", "min", number_json(p, p->min), "max",
			 number_json(p, p->max), "required", p->required, "default",
			 p->required ? json_null() : number_json(p, p->dflt), "multiple_of", (json_int_t)p->multiple_of,
			 "doc", p->doc);
}

static json_t *tensor_json(const struct assay_tensor *t)
{
	json_t *fields = json_array();
	for (int i = 0; i < t->n_fields; i++)
		json_array_append_new(fields,
				      json_pack("{s:s, s:s, s:I, s:I, s:s}", "name", t->fields[i].name, "dtype",
						registry_dtype_name(t->fields[i].dtype), "offset",
						(json_int_t)t->fields[i].offset, "count",
						(json_int_t)t->fields[i].count, "use", use_names[t->fields[i].use]));
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:s?}", "name", t->name, "role", role_names[t->role], "dtype",
			 registry_dtype_name(t->dtype), "use", use_names[t->use], "dims", t->dims, "fields", fields,
			 "doc", t->doc);
}

static json_t *arm_json(const struct assay_arm *a)
{
	json_t *backends = json_array();
	for (int b = 0; b < ASSAY_N_BACKENDS; b++)
		if (a->ops[b])
			json_array_append_new(backends, json_string(backend_text[b]));
	return json_pack("{s:s, s:s?, s:I, s:I, s:b, s:b, s:b, s:b, s:o, s:s}", "name", a->name, "arg", a->arg_name,
			 "arg_min", (json_int_t)a->arg_min, "arg_max", (json_int_t)a->arg_max, "arg_pow2", a->arg_pow2,
			 "bitwise", (a->flags & ASSAY_ARM_BITWISE) != 0, "selectable",
			 (a->flags & ASSAY_ARM_SELECTABLE) != 0, "must_fail", (a->flags & ASSAY_ARM_FAULT) != 0,
			 "backends", backends, "doc", a->doc);
}

json_t *list_kernel_json(const struct registry *r, const struct assay_kernel *k)
{
	json_t *params = json_array(), *tensors = json_array(), *arms = json_array();
	for (int i = 0; i < k->n_params; i++)
		json_array_append_new(params, param_json(&k->params[i]));
	for (int i = 0; i < k->n_tensors; i++)
		json_array_append_new(tensors, tensor_json(&k->tensors[i]));
	for (int i = 0; i < k->n_arms; i++)
		json_array_append_new(arms, arm_json(&k->arms[i]));
	return json_pack("{s:s, s:s, s:s, s:s?, s:o, s:o, s:o, s:b}", "kind", "kernel", "name", k->name, "doc", k->doc,
			 "plugin", registry_origin(r, k), "params", params, "tensors", tensors, "arms", arms,
			 "reference", k->reference != NULL);
}

const char *list_kernel_get(const void *subject, const char *key, int i, char *buf, size_t cap)
{
	const struct assay_kernel *k = subject;
	if (strcmp(key, "kernel") == 0)
		return i == 0 ? k->name : NULL;
	if (strcmp(key, "arm") == 0)
		return i < k->n_arms ? k->arms[i].name : NULL;
	if (strcmp(key, "param") == 0)
		return i < k->n_params ? k->params[i].name : NULL;
	if (strcmp(key, "tensor") == 0)
		return i < k->n_tensors ? k->tensors[i].name : NULL;
	return NULL;
}
