/* verdict_load: a whole verdict file in memory, its cells by id. */
#include <stdlib.h>
#include <string.h>

#include "verdict.h"

/* Places of ids: open addressing over the cells of the file. */
struct place {
	size_t cell; /* index + 1; 0: free */
	int64_t line;
	uint64_t hash;
};

struct loader {
	struct verdict_file *file;
	size_t cap_cells, cap_other;
	struct place *place;
	size_t n_places; /* a power of two */
	int64_t last_resume; /* line of the last resume record */
};

static uint64_t hash_text(const char *s)
{
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	return h ^ h >> 29;
}

static const char *cell_id(const json_t *cell)
{
	return json_string_value(json_object_get(cell, "id"));
}

static struct place *find_place(struct loader *l, const char *id, uint64_t hash)
{
	for (size_t i = hash & (l->n_places - 1);; i = (i + 1) & (l->n_places - 1)) {
		struct place *p = &l->place[i];
		if (!p->cell || (p->hash == hash && strcmp(cell_id(l->file->cell[p->cell - 1]), id) == 0))
			return p;
	}
}

static bool grow_places(struct loader *l)
{
	size_t n = l->n_places ? l->n_places * 2 : 256;
	struct place *old = l->place, *fresh = calloc(n, sizeof *fresh);
	if (!fresh)
		return false;
	for (size_t k = 0; k < l->n_places; k++) {
		if (!old[k].cell)
			continue;
		size_t i = old[k].hash & (n - 1);
		while (fresh[i].cell)
			i = (i + 1) & (n - 1);
		fresh[i] = old[k];
	}
	free(old);
	l->place = fresh;
	l->n_places = n;
	return true;
}

static bool push(json_t ***list, size_t *n, size_t *cap, json_t *record)
{
	if (*n == *cap) {
		size_t more_cap = *cap ? *cap * 2 : 64;
		json_t **p = realloc(*list, more_cap * sizeof **list);
		if (!p)
			return false;
		*list = p;
		*cap = more_cap;
	}
	(*list)[(*n)++] = record;
	return true;
}

/* Takes the record. */
static bool load_cell(struct loader *l, const char *path, json_t *cell, int64_t line, struct err *err)
{
	struct verdict_file *f = l->file;
	if (f->n_cells * 2 >= l->n_places && !grow_places(l)) {
		json_decref(cell);
		return err_set(err, "%s: out of memory", path);
	}
	const char *id = cell_id(cell);
	const uint64_t hash = hash_text(id);
	struct place *p = find_place(l, id, hash);
	if (p->cell && p->line > l->last_resume) {
		err_set(err, "%s:%lld: cell %s stands in line %lld already", path, (long long)line, id,
			(long long)p->line);
		json_decref(cell);
		return false;
	}
	if (p->cell) { /* done again after a resume: the later line counts */
		json_decref(f->cell[p->cell - 1]);
		f->cell[p->cell - 1] = cell;
		p->line = line;
		return true;
	}
	if (!push(&f->cell, &f->n_cells, &l->cap_cells, cell)) {
		json_decref(cell);
		return err_set(err, "%s: out of memory", path);
	}
	*p = (struct place){f->n_cells, line, hash};
	return true;
}

/* Takes the record. */
static bool load_record(struct loader *l, const char *path, json_t *record, int64_t line, struct err *err)
{
	struct verdict_file *f = l->file;
	const char *kind = json_string_value(json_object_get(record, "kind"));
	if (strcmp(kind, "cell") == 0)
		return load_cell(l, path, record, line, err);
	if (strcmp(kind, "header") == 0) {
		f->header = record;
		return true;
	}
	if (strcmp(kind, "footer") == 0) {
		f->footer = record;
		return true;
	}
	if (strcmp(kind, "resume") == 0)
		l->last_resume = line;
	if (push(&f->other, &f->n_other, &l->cap_other, record))
		return true;
	json_decref(record);
	return err_set(err, "%s: out of memory", path);
}

bool verdict_load(const char *path, struct verdict_file *out, struct err *err)
{
	*out = (struct verdict_file){0};
	struct verdict_reader *r = verdict_open(path, err);
	if (!r)
		return false;
	struct loader l = {.file = out};
	const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
	bool ok = true;
	for (bool go_on = true; go_on && ok;) {
		json_t *record;
		switch (verdict_next(r, &record, err)) {
		case VERDICT_RECORD: ok = load_record(&l, name, record, verdict_line_number(r), err); break;
		case VERDICT_TORN:
			out->torn = true;
			go_on = false;
			break;
		case VERDICT_END: go_on = false; break;
		case VERDICT_BAD: ok = false; break;
		}
	}
	if (ok && !out->header)
		ok = err_set(err, "%s: cut short before its header was whole; nothing is in it", name);
	free(l.place);
	verdict_finish(r);
	if (!ok)
		verdict_unload(out);
	return ok;
}

void verdict_unload(struct verdict_file *f)
{
	for (size_t i = 0; i < f->n_cells; i++)
		json_decref(f->cell[i]);
	for (size_t i = 0; i < f->n_other; i++)
		json_decref(f->other[i]);
	free(f->cell);
	free(f->other);
	json_decref(f->header);
	json_decref(f->footer);
	*f = (struct verdict_file){0};
}
