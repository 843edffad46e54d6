/* report_looks: what a person must look at, with cells that say the same as one: forty cells of one kernel that fail for one reason are one thing
 * to look at. */
#include <stdlib.h>

#include "report.h"

static bool wanted(const struct row *row, bool waived)
{
	return report_failed(row) || report_invalid(row) || row->status == ST_INCONCLUSIVE || row->diagnostic_slower ||
	       (waived && row->status == ST_XFAIL);
}

size_t report_looks(const struct report *r, size_t file, bool waived, struct report_look **out)
{
	struct report_look *list = NULL;
	size_t n = 0, cap = 0;
	json_t *place = json_object(); /* key -> index */
	for (size_t i = 0; i < r->n_lines; i++) {
		const struct report_cell *c = &r->line[i].cell[file];
		if (!c->json || !wanted(c->row, waived))
			continue;
		char key[TEXT_ALIKE_MAX];
		text_alike_key(c->row, report_reason(c->json), key);
		const json_t *at = json_object_get(place, key);
		size_t k = at ? (size_t)json_integer_value(at) : n;
		if (!at) {
			list = arena_grow(r->arena, list, n++, &cap, sizeof *list);
			list[k] = (struct report_look){0};
			json_object_set_new_nocheck(place, key, json_integer((json_int_t)k));
		}
		struct report_look *l = &list[k];
		l->line = arena_grow(r->arena, l->line, l->n, &l->cap, sizeof *l->line);
		l->line[l->n++] = i;
		/* Of slow ones the slowest stands for them all. */
		const struct row *head = r->line[l->line[0]].cell[file].row;
		const bool slow = c->row->status == ST_REGRESSION || c->row->status == ST_INCONCLUSIVE ||
				  c->row->diagnostic_slower;
		if (slow && c->row->ratio > head->ratio) {
			l->line[l->n - 1] = l->line[0];
			l->line[0] = i;
		}
	}
	json_decref(place);
	*out = list;
	return n;
}
