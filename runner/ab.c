#include "ab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"
#include "record_parts.h"
#include "text_parts.h"

/* Whether the kernel is a pair of builds. */
static bool is_pair(const struct registry *reg, const char *kernel)
{
	char base[300], head[300];
	snprintf(base, sizeof base, "base:%s", kernel);
	snprintf(head, sizeof head, "head:%s", kernel);
	return registry_find(reg, base) && registry_find(reg, head);
}

/* Whether both builds of the kernel have the arm of that name. */
static bool pair_has(const struct assay_kernel *k, const char *side_and_arm)
{
	int64_t arg;
	struct err err;
	return registry_arm(k, side_and_arm, &arg, &err) != NULL;
}

/* The kernels of a case that are pairs and have the arm in both builds. */
static int kernels_of(const struct suite_case *c, const struct registry *reg, const char *arm, const char **out)
{
	char name[300];
	int n = 0;
	snprintf(name, sizeof name, "head/%s", arm);
	for (int k = 0; k < c->n_kernels; k++)
		if (is_pair(reg, c->kernel[k]) && pair_has(registry_find(reg, c->kernel[k]), name))
			out[n++] = c->kernel[k];
	return n;
}

/* The kernel's own name of its first arm where the suite says `shipped` and no arm has that name. */
static const char *arm_name(const struct suite_case *c, const struct arm_use *u, const struct registry *reg)
{
	int64_t arg;
	struct err err;
	const struct assay_kernel *k = c->n_kernels ? registry_find(reg, c->kernel[0]) : NULL;
	if (strcmp(u->arm, "shipped") == 0 && k && !registry_arm(k, "shipped", &arg, &err))
		return k->arms[0].name;
	return u->arm;
}

static void make_case(struct arena *a, const struct suite_case *c, const struct arm_use *u, const char *arm,
		      const char **kernel, int n_kernels, const struct ab_options *o, struct suite_case *out)
{
	const char *base = arena_printf(a, "base/%s", u->name), *head = arena_printf(a, "head/%s", u->name);
	struct arm_use *use = arena_array(a, 2, sizeof *use);
	use[0] = use[1] = *u;
	use[0].name = base;
	use[0].arm = arena_printf(a, "base/%s", arm);
	use[0].role = ROLE_SHIPPED;
	use[1].name = head;
	use[1].arm = arena_printf(a, "head/%s", arm);
	use[1].role = ROLE_CANDIDATE;
	*out = *c;
	out->id = arena_printf(a, "%s.%s", c->id, u->name);
	out->kernel = kernel;
	out->n_kernels = n_kernels;
	out->arm = use;
	out->n_arms = 2;
	out->shipped = base;
	out->checks = (struct checks){.on = 1u << CHECK_REGRESSION};
	out->checks.regression = (struct check_regression){.select = head, .against = base};
	if (o->bits_may_differ) {
		out->checks.on |= 1u << CHECK_REFERENCE;
		out->checks.reference = c->checks.reference;
		out->checks.reference.arms[0] = NULL;
		if (!(c->checks.on & 1u << CHECK_REFERENCE))
			out->checks.reference.adapter = true;
	} else {
		out->checks.on |= 1u << CHECK_IDENTITY;
		out->checks.identity = (struct check_identity){.against = base, .arms = {head}};
	}
	/* A list of arms by name would name none of these. */
	if (out->timing.order == ORDER_LIST)
		out->timing.order = ORDER_RANDOM;
	if (out->timing.rounds == 0) {
		if (out->timing.min_rounds < o->least_rounds)
			out->timing.min_rounds = o->least_rounds;
		if (out->timing.max_rounds < out->timing.min_rounds)
			out->timing.max_rounds = out->timing.min_rounds;
	}
}

const struct suite *ab_suite(struct suite *s, const struct registry *reg, const struct ab_options *o, int *left_out,
			     struct err *err)
{
	struct arena *a = s->arena;
	int n = 0, cap = 0;
	*left_out = 0;
	for (int i = 0; i < s->n_cases; i++)
		cap += s->cases[i].n_arms ? s->cases[i].n_arms : 1;
	struct suite_case *made = arena_array(a, (size_t)cap, sizeof *made);
	static const struct arm_use plain = {.name = "shipped", .arm = "shipped", .role = ROLE_SHIPPED};
	for (int i = 0; i < s->n_cases; i++) {
		const struct suite_case *c = &s->cases[i];
		for (int k = 0; k < (c->n_arms ? c->n_arms : 1); k++) {
			const struct arm_use *u = c->n_arms ? &c->arm[k] : &plain;
			const char *arm = arm_name(c, u, reg);
			const char **kernel = arena_array(a, (size_t)c->n_kernels, sizeof *kernel);
			int n_kernels = kernels_of(c, reg, arm, kernel);
			*left_out += c->n_kernels - n_kernels;
			if (n_kernels)
				make_case(a, c, u, arm, kernel, n_kernels, o, &made[n++]);
		}
	}
	if (n == 0) {
		err_set(err, "%s: none of its kernels is in both builds", s->path);
		return NULL;
	}
	struct suite *out = suite_derive(s);
	out->name = arena_printf(a, "%s-ab", s->name);
	out->cases = made;
	out->n_cases = n;
	/* Waivers are about the suite's own arms; what is waived there must be seen here. */
	out->n_waivers = 0;
	if (o->margin >= 0) {
		struct margin *m = arena_array(a, 1, sizeof *m);
		*m = (struct margin){.fail = o->margin};
		out->margin = m;
		out->n_margins = 1;
	}
	return out;
}

/* ---- Markdown -------------------------------------------------------------------------------------------------------- */

static const json_t *finding_of(const json_t *cell, const char *check)
{
	size_t i;
	json_t *f;
	json_array_foreach(json_object_get(cell, "checks"), i, f)
	{
		const char *is = record_text(f, "check");
		if (is && strcmp(is, check) == 0)
			return f;
	}
	return NULL;
}

static void bits_text(const json_t *cell, char *out, size_t cap)
{
	const json_t *f = finding_of(cell, "identity"), *arms = json_object_get(cell, "arms");
	const char *a = record_text(json_array_get(arms, 0), "out_sha256"),
		   *b = record_text(json_array_get(arms, 1), "out_sha256");
	double ulp = record_number(f, "ulp_max", NAN), differ = record_number(f, "differ", 0),
	       of = record_number(f, "of", 0);
	if (f && differ > 0)
		snprintf(out, cap, "%.0f of %.0f differ, <= %.0f ULP", differ, of, ulp);
	else if (f)
		snprintf(out, cap, "equal");
	else if (a && b)
		snprintf(out, cap, "%s", strcmp(a, b) == 0 ? "equal" : "differ");
	else
		snprintf(out, cap, "-");
}

void ab_markdown(FILE *out, const json_t *header, json_t *const *cell, size_t n, int exit_status)
{
	size_t by[ST_N] = {0};
	for (size_t i = 0; i < n; i++)
		by[status_of(record_text(cell[i], "status"))]++;
	fprintf(out, "**assay ab %s** ", exit_status == 0 ? "PASS" : exit_status == 1 ? "FAIL" : "INCOMPLETE");
	for (int s = 0, any = 0; s < ST_N; s++)
		if (by[s]) {
			fprintf(out, "%s%zu %s", any++ ? ", " : "", by[s], status_name((enum cell_status)s));
		}
	const json_t *device = json_object_get(header, "device");
	fprintf(out, " on %s, head against base in the same rounds\n\n",
		record_text(device, "name") ? record_text(device, "name") : "?");
	fputs("| | cell | arm | base us | head us | ratio | 97.5 % | bits |\n|---|---|---|--:|--:|--:|---|---|\n", out);
	for (size_t i = 0; i < n; i++) {
		const json_t *t = json_object_get(cell[i], "timing");
		const char *status = record_text(cell[i], "status"), *id = record_text(cell[i], "id");
		const char *arm = record_text(cell[i], "selected"), *geometry = record_text(cell[i], "geometry");
		char base[24], head[24], bits[120];
		text_us(base, record_number(t, "shipped_ns", NAN));
		text_us(head, record_number(t, "selected_ns", NAN));
		bits_text(cell[i], bits, sizeof bits);
		const char *point = id ? strrchr(id, '/') : NULL;
		fprintf(out, "| %s | %s %s %s | %s | %s | %s | ", strcmp(status, "pass") == 0 ? "" : status,
			record_text(cell[i], "kernel"), geometry ? geometry : "", point ? point + 1 : "",
			arm ? arm + 5 : "", base, head);
		double ratio = record_number(t, "ratio", NAN), lo = record_number(t, "lo", NAN),
		       hi = record_number(t, "hi", NAN);
		if (isfinite(ratio))
			fprintf(out, "%.3f", ratio);
		fputs(" | ", out);
		if (isfinite(lo) && isfinite(hi))
			fprintf(out, "%.3f .. %.3f", exp(lo), exp(hi));
		fprintf(out, " | %s |\n", bits);
	}
}
