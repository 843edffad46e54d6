/* text_verbose: with -v, everything about a cell as it comes: checks, identity by split set, the time of every arm. */
#include <stdlib.h>

#include "text_parts.h"

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
	/* Identity in one line an outcome: the arms that agree together, each that does not alone. */
	const char *same[TEXT_MAX_ARM_NAMES];
	int n_same = 0;
	const char *against = "";
	json_array_foreach(json_object_get(cell, "checks"), i, x)
	{
		if (strcmp(text_get(x, "check"), "identity") == 0 && !text_finding_is_bad(x) &&
		    n_same < TEXT_MAX_ARM_NAMES) {
			same[n_same++] = text_get(x, "arm");
			against = text_get(x, "against");
		}
	}
	if (n_same) {
		fprintf(out, "   identity ");
		text_arm_list(out, same, n_same);
		fprintf(out, " BIT-IDENTICAL to %s\n", *against ? against : "shipped");
	}
	json_array_foreach(json_object_get(cell, "checks"), i, x)
	{
		const char *check = text_get(x, "check");
		if (strcmp(check, "identity") == 0 && !text_finding_is_bad(x))
			continue;
		char upper_status[24];
		text_upper(text_get(x, "status"), upper_status);
		text_field(out, t->o.width, check, "%s%s%s%s%s", text_get(x, "arm"), *text_get(x, "arm") ? ": " : "",
			   text_finding_is_bad(x) ? upper_status : text_get(x, "status"),
			   *text_get(x, "text") ? ", " : "", text_get(x, "text"));
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
		text_field(out, t->o.width, "served", "%s  %s of shipped [%s, %s]  %s%s", r->selected,
			   text_ratio(a, r->ratio), text_ratio(b, r->lo), text_ratio(c, r->hi),
			   text_get(json_object_get(cell, "timing"), "verdict"), r->gating ? "" : " (diagnostic)");
	json_array_foreach(json_object_get(json_object_get(cell, "timing"), "notes"), i, x)
		text_field(out, t->o.width, "note", "%s", json_string_value(x) ? json_string_value(x) : "");
	json_array_foreach(json_object_get(cell, "notes"), i, x)
		text_field(out, t->o.width, "note", "%s", json_string_value(x) ? json_string_value(x) : "");
}
