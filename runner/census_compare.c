/* census_compare: two arms' machine code and issue intervals held against what the ratio check says may differ. Pure. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "census.h"
#include "finding.h"

/* An arm as the comparison sees it: facts of the file where it has any, else of the record. */
struct side {
	const char *name;
	const json_t *artifact; /* NULL: the record has none */
	const json_t *planted; /* entry of the census file, or NULL */
	const json_t *census; /* {counts, instructions} or NULL */
	const char *reason; /* why there is no census */
};

struct comparison {
	const json_t *may_differ;
	const struct side *of, *over;
	json_t *moved; /* {what, of, over, bound} */
	FILE *text; /* the same in words */
	int n_moved, n_allowed;
	FILE *allowed; /* what differs as it may */
};

static const char *text_of(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

static bool may(const struct comparison *c, const char *word)
{
	size_t i;
	json_t *w;
	json_array_foreach(c->may_differ, i,
			   w) if (json_is_string(w) && strcmp(json_string_value(w), word) == 0) return true;
	return false;
}

/* The class by its own name in small letters: narrower than its group. */
static bool may_class(const struct comparison *c, const char *class)
{
	char word[32];
	size_t n = 0;
	for (; class[n] && n < sizeof word - 1; n++)
		word[n] = (char)(class[n] >= 'A' && class[n] <= 'Z' ? class[n] + 32 : class[n]);
	word[n] = 0;
	return may(c, word);
}

/* Two numbers that must be equal, or nearly. */
static void hold(struct comparison *c, const char *what, double of, double over, double bound, bool allowed)
{
	const double larger = fmax(fabs(of), fabs(over));
	if (of == over || (!allowed && fabs(of - over) <= bound * larger))
		return;
	if (allowed) {
		fprintf(c->allowed, "%s%s %.10g against %.10g", c->n_allowed++ ? ", " : "", what, of, over);
		return;
	}
	fprintf(c->text, "%s%s %.10g against %.10g", c->n_moved++ ? ", " : "", what, of, over);
	if (over != 0)
		fprintf(c->text, " (%+.3g %%, bound %.3g %%)", 100 * (of / over - 1), 100 * bound);
	json_array_append_new(c->moved,
			      json_pack("{s:s, s:f, s:f, s:f}", "what", what, "of", of, "over", over, "bound", bound));
}

/* A fact of the artifact; NAN where it is not known. */
static double fact(const struct side *s, const char *key)
{
	const json_t *x = json_object_get(s->planted, key);
	if (!x)
		x = json_object_get(s->artifact, key);
	return json_is_number(x) ? json_number_value(x) : NAN;
}

static void hold_fact(struct comparison *c, const char *key, const char *words, double bound, bool allowed)
{
	const double a = fact(c->of, key), b = fact(c->over, key);
	if (isfinite(a) && isfinite(b)) {
		hold(c, words, a, b, bound, allowed);
	} else if (isfinite(a) != isfinite(b) && !allowed) {
		fprintf(c->text, "%s%s known of %s alone", c->n_moved++ ? ", " : "", words,
			isfinite(a) ? c->of->name : c->over->name);
		json_array_append_new(c->moved,
				      json_pack("{s:s, s:n, s:n, s:f}", "what", words, "of", "over", "bound", bound));
	}
}

static json_int_t count_of(const struct side *s, int class)
{
	return json_integer_value(json_object_get(json_object_get(s->census, "counts"), census_class_name(class)));
}

/* How many instructions a group has. */
static double group_total(const struct side *s, enum census_group g)
{
	double n = 0;
	for (int k = 0; k < census_classes(); k++)
		if (census_class_group(k) == g)
			n += (double)count_of(s, k);
	return n;
}

/* What is in no other group, without what pads the code to its end. */
static double others(const struct side *s)
{
	double n = (double)json_integer_value(json_object_get(s->census, "instructions"));
	n -= (double)count_of(s, census_class_find("NOP"));
	for (int g = 0; g < CG_N; g++)
		if (g != CG_OTHER)
			n -= group_total(s, (enum census_group)g);
	return n;
}

static void hold_classes(struct comparison *c)
{
	static const char *const words[CG_N] = {[CG_MATRIX] = "matrix_instruction",
						[CG_CONVERT] = "conversions",
						[CG_MEMORY] = "memory_instructions",
						[CG_SPILL] = "spills"};
	static const double bounds[CG_N] = {[CG_MEMORY] = CENSUS_BOUND_MEMORY, [CG_SPILL] = CENSUS_BOUND_MEMORY};
	for (int k = 0; k < census_classes(); k++) {
		const enum census_group g = census_class_group(k);
		const char *name = census_class_name(k);
		if (words[g])
			hold(c, name, (double)count_of(c->of, k), (double)count_of(c->over, k), bounds[g],
			     may(c, words[g]) || may_class(c, name));
	}
	/* Another kind of instruction is what may differ; as many must do the work, or one is built out of others. */
	if (may(c, "matrix_instruction"))
		hold(c, "matrix instructions", group_total(c->of, CG_MATRIX), group_total(c->over, CG_MATRIX), 0,
		     may(c, "matrix_count"));
	if (json_is_integer(json_object_get(c->of->census, "instructions")) &&
	    json_is_integer(json_object_get(c->over->census, "instructions")))
		hold(c, "other instructions", others(c->of), others(c->over), CENSUS_BOUND_INSTRUCTIONS,
		     may(c, "instructions"));
}

/* Grid, block and the number of launches. */
static void hold_launch(struct comparison *c)
{
	const json_t *a = json_object_get(c->of->artifact, "launches"),
		     *b = json_object_get(c->over->artifact, "launches");
	const size_t n = a ? json_array_size(a) : 1, m = b ? json_array_size(b) : 1;
	if (!c->of->artifact || !c->over->artifact)
		return;
	hold(c, "launches", (double)n, (double)m, 0, may(c, "launch"));
	for (size_t i = 0; i < n && n == m; i++) {
		const json_t *x = a ? json_array_get(a, i) : c->of->artifact,
			     *y = b ? json_array_get(b, i) : c->over->artifact;
		static const char *const keys[] = {"grid", "block"};
		for (int k = 0; k < 2; k++)
			for (size_t d = 0; d < 3; d++)
				hold(c, keys[k], json_number_value(json_array_get(json_object_get(x, keys[k]), d)),
				     json_number_value(json_array_get(json_object_get(y, keys[k]), d)), 0,
				     may(c, "launch"));
	}
}

static void hold_all(struct comparison *c)
{
	hold_classes(c);
	hold_fact(c, "registers", "registers", CENSUS_BOUND_REGISTERS, may(c, "registers"));
	hold_fact(c, "local_bytes", "local bytes", 0, may(c, "spills"));
	hold_fact(c, "shared_bytes", "shared bytes", 0, may(c, "shared_memory"));
	hold_fact(c, "occupancy", "blocks a multiprocessor", 0, may(c, "occupancy"));
	hold_launch(c);
}

/* Takes the stream's text. */
static char *close_text(FILE *f, char **at)
{
	if (f)
		fclose(f);
	return *at;
}

static void check_code(json_t *findings, const json_t *may_differ, const struct side *of, const struct side *over)
{
	if (!of->census || !over->census) {
		const struct side *s = of->census ? over : of;
		json_t *f = finding_add(findings, "census", of->name, "inconclusive",
					"the machine code of %s was not read: %s; --census FILE can stand in", s->name,
					s->reason ? s->reason : "the record does not say why");
		json_object_set_new(f, "control", json_string("machine_code"));
		json_object_set_new(f, "against", json_string(over->name));
		return;
	}
	char *text = NULL, *allowed = NULL;
	size_t n = 0, m = 0;
	struct comparison c = {.may_differ = may_differ, .of = of, .over = over, .moved = json_array()};
	c.text = open_memstream(&text, &n);
	c.allowed = open_memstream(&allowed, &m);
	if (!c.text || !c.allowed)
		abort();
	hold_all(&c);
	close_text(c.text, &text);
	close_text(c.allowed, &allowed);
	json_t *f;
	if (c.n_moved)
		f = finding_add(findings, "census", of->name, "invalid", "differs in more than it may: %s", text);
	else
		f = finding_add(findings, "census", of->name, "pass",
				c.n_allowed ? "differ as they may: %s" : "nothing differs%s", allowed);
	json_object_set_new(f, "control", json_string("machine_code"));
	json_object_set_new(f, "against", json_string(over->name));
	json_object_set_new(f, "moved", c.moved);
	free(text);
	free(allowed);
}

/* ---- issue interval ------------------------------------------------------------------------------------------------ */

struct rate {
	double interval;
	const char *form, *unit, *reason;
};

static void check_interval(json_t *findings, double bound, const struct side *of, const struct side *over,
			   const struct rate *a, const struct rate *b)
{
	json_t *f;
	if (!(a->interval > 0) || !(b->interval > 0)) {
		const bool first = !(a->interval > 0);
		const char *why = first ? a->reason : b->reason;
		f = finding_add(findings, "census", of->name, "inconclusive",
				"the issue interval of %s was not measured: %s; --rates FILE can stand in",
				first ? of->name : over->name, why ? why : "it names no matrix instruction");
	} else {
		const double off = fmax(a->interval, b->interval) / fmin(a->interval, b->interval) - 1;
		const char *unit = a->unit ? a->unit : "cycles";
		if (off > bound)
			f = finding_add(findings, "census", of->name, "invalid",
					"the matrix instructions issue at different intervals: %s %.4g %s, %s %.4g "
					"(%.3g %% apart, "
					"bound %.3g %%)",
					a->form, a->interval, unit, b->form, b->interval, 100 * off, 100 * bound);
		else
			f = finding_add(findings, "census", of->name, "pass", "issue intervals %s %.4g %s, %s %.4g",
					a->form, a->interval, unit, b->form, b->interval);
		json_object_set_new(f, "interval_of", json_real(a->interval));
		json_object_set_new(f, "interval_over", json_real(b->interval));
		json_object_set_new(f, "unit", json_string(unit));
	}
	json_object_set_new(f, "control", json_string("issue_interval"));
	json_object_set_new(f, "against", json_string(over->name));
	json_object_set_new(f, "bound", json_real(bound));
}

/* An entry of a file: by kernel and arm, by arm, by form. */
static const json_t *entry_of(const json_t *file, const json_t *cell, const char *arm, const char *form)
{
	char key[320];
	const char *kernel = text_of(cell, "kernel");
	if (!file)
		return NULL;
	snprintf(key, sizeof key, "%s/%s", kernel ? kernel : "", arm);
	const json_t *x = json_object_get(file, key);
	if (!x)
		x = json_object_get(file, arm);
	return x || !form ? x : json_object_get(file, form);
}

static json_t *arm_of(const json_t *cell, const char *name)
{
	size_t i;
	json_t *a;
	json_array_foreach(json_object_get(cell, "arms"), i, a)
	{
		const char *n = text_of(a, "name");
		if (n && strcmp(n, name) == 0)
			return a;
	}
	return NULL;
}

/* What the files say replaces what was measured, in the record too: it is what the verdict is made from. */
static void plant(json_t *cell, json_t *arm, const char *name, const struct census_files *files)
{
	json_t *artifact = json_object_get(arm, "artifact");
	if (!arm)
		return;
	const char *form = text_of(artifact, "instruction");
	const json_t *census = entry_of(files->census, cell, name, NULL),
		     *rate = entry_of(files->rates, cell, name, form);
	if ((census || rate) && !json_is_object(artifact)) {
		artifact = json_object();
		json_object_set_new(arm, "artifact", artifact);
	}
	if (census) {
		json_t *copy = json_deep_copy(census);
		json_object_set_new(copy, "tool", json_string(files->census_path ? files->census_path : "file"));
		json_object_set_new(artifact, "census", copy);
	}
	if (rate)
		json_object_set_new(artifact, "issue",
				    json_pack("{s:s, s:f, s:s, s:s}", "form", form ? form : name, "interval",
					      json_number_value(rate), "unit", "cycles", "source",
					      files->rates_path ? files->rates_path : "file"));
}

static void side_of(const json_t *arm, const char *name, struct side *s)
{
	const json_t *artifact = json_object_get(arm, "artifact"), *census = json_object_get(artifact, "census");
	*s = (struct side){.name = name, .artifact = json_is_object(artifact) ? artifact : NULL};
	s->reason = !arm ? "no such arm ran" : text_of(artifact, "census_reason");
	if (json_is_object(census))
		s->census = s->planted = census;
}

static struct rate rate_of(const struct side *s)
{
	const json_t *issue = json_object_get(s->artifact, "issue");
	struct rate r = {.interval = NAN, .reason = text_of(s->artifact, "issue_reason")};
	if (json_is_object(issue)) {
		r.interval = json_number_value(json_object_get(issue, "interval"));
		r.unit = text_of(issue, "unit");
		r.form = text_of(issue, "form");
	}
	if (!r.form)
		r.form = "?";
	return r;
}

void census_check(json_t *cell, const struct census_files *files)
{
	const json_t *check = json_object_get(cell, "ratio_check"), *may_differ = json_object_get(check, "may_differ"),
		     *bound = json_object_get(check, "equal_issue_interval");
	const char *of = text_of(check, "of"), *over = text_of(check, "over");
	json_t *findings = json_object_get(cell, "checks");
	if (!of || !over || !json_is_array(findings))
		return;
	json_t *a = arm_of(cell, of), *b = arm_of(cell, over);
	finding_drop(findings, "census", NULL);
	if (!a || !b || !json_is_object(json_object_get(cell, "measure")))
		return; /* nothing was timed: there is no ratio to believe or not */
	if (files) {
		plant(cell, a, of, files);
		plant(cell, b, over, files);
	}
	struct side s, t;
	side_of(a, of, &s);
	side_of(b, over, &t);
	if (json_array_size(may_differ) > 0)
		check_code(findings, may_differ, &s, &t);
	if (json_is_number(bound)) {
		const struct rate x = rate_of(&s), y = rate_of(&t);
		check_interval(findings, json_number_value(bound), &s, &t, &x, &y);
	}
}
