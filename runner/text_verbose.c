/* text_verbose: with -v, everything about a cell as it comes: checks, identity by split set, the time of every arm. */
#include <stdlib.h>

#include "text_parts.h"

/* A line for each check: the arms that passed it everywhere in this cell, and its sentence where it says the same of all of them. */
static void passed_checks(const struct text *t, const json_t *cell)
{
	static const char *const checks[] = {"identity", "reference", "repeat", "invariant", "memory", "timed",
					     "changed",  "data",      "run",    "graph",     "census"};
	const json_t *list = json_object_get(cell, "checks"), *x;
	size_t i;
	for (size_t k = 0; k < sizeof checks / sizeof *checks; k++) {
		const char *arm[TEXT_MAX_ARM_NAMES], *said = NULL, *against = "";
		int n = 0, findings = 0;
		bool same = true;
		json_array_foreach(list, i, x)
		{
			if (strcmp(text_get(x, "check"), checks[k]) != 0 || text_finding_is_bad(x))
				continue;
			const char *name = text_get(x, "arm");
			int a = 0;
			findings++;
			same &= !said || strcmp(said, text_get(x, "text")) == 0;
			said = text_get(x, "text");
			against = text_get(x, "against");
			while (a < n && strcmp(arm[a], name) != 0)
				a++;
			if (a == n && n < TEXT_MAX_ARM_NAMES && *name)
				arm[n++] = name;
		}
		if (findings == 0)
			continue;
		char *names = NULL;
		size_t size = 0;
		FILE *f = open_memstream(&names, &size);
		if (!f)
			return;
		text_arm_list(f, arm, n);
		fclose(f);
		const char *words = strcmp(checks[k], "identity") == 0 ? "BIT-IDENTICAL to " : "pass";
		text_field(t->o.out, t->o.width, checks[k], "%s%s%s%s%s", names, n ? (*words == 'B' ? " " : ": ") : "",
			   words,
			   *words == 'B'   ? (*against ? against : text_yardstick(t))
			   : same && *said ? ": "
					   : "",
			   *words != 'B' && same ? said : "");
		free(names);
	}
}

void text_verbose_cell(struct text *t, const struct row *r, const json_t *cell)
{
	FILE *out = t->o.out;
	const json_t *x, *arm;
	size_t i;
	char us[24], a[24], b[24], c[24];
	char word[24];
	text_upper(text_get(cell, "status"), word);
	text_paint(t, out, TEXT_BOLD, "== %s", text_short_id(cell));
	fprintf(out, "  %s\n", word);
	if (*text_get(cell, "reason"))
		text_field(out, t->o.width, "reason", "%s", text_get(cell, "reason"));
	passed_checks(t, cell);
	json_array_foreach(json_object_get(cell, "checks"), i, x)
	{
		if (!text_finding_is_bad(x))
			continue;
		char upper_status[24];
		text_upper(text_get(x, "status"), upper_status);
		text_field(out, t->o.width, text_get(x, "check"), "%s%s%s%s%s", text_get(x, "arm"),
			   *text_get(x, "arm") ? ": " : "", upper_status, *text_get(x, "text") ? ", " : "",
			   text_get(x, "text"));
	}
	char *line = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&line, &n);
	if (!f)
		return;
	json_array_foreach(json_object_get(cell, "arms"), i, arm)
	{
		double ns = text_number(json_object_get(arm, "summary"), "median_ns");
		if (isfinite(ns))
			fprintf(f, "%s %s  ", text_get(arm, "name"), text_us(us, ns));
		else if (*text_get(arm, "unsupported"))
			fprintf(f, "%s not here (%s)  ", text_get(arm, "name"), text_get(arm, "unsupported"));
	}
	if (r->timed)
		fprintf(f, "us (median of %d interleaved rounds)", r->n);
	fclose(f);
	if (*line)
		text_field(out, t->o.width, "timing", "%s", line);
	free(line);
	if (r->judged && r->timed)
		text_field(out, t->o.width, t->pair ? "head" : "served", "%s  %s of %s [%s, %s]  %s%s", r->selected,
			   text_ratio(a, r->ratio), text_yardstick(t), text_ratio(b, r->lo), text_ratio(c, r->hi),
			   text_get(json_object_get(cell, "timing"), "verdict"), r->gating ? "" : " (diagnostic)");
	json_array_foreach(json_object_get(json_object_get(cell, "timing"), "notes"), i, x)
		text_field(out, t->o.width, "note", "%s", text_string(x));
	json_array_foreach(json_object_get(cell, "notes"), i, x)
		text_field(out, t->o.width, "note", "%s", text_string(x));
}
