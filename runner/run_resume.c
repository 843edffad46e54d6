#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *text_of(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));
	return s ? s : "";
}

/* What must be equal for two halves to be one run. */
static bool same_run(const char *path, const json_t *old, const json_t *now, struct err *err)
{
	static const struct {
		const char *key, *words;
	} same[] = {
		{"plan_hash", "another plan (its cells differ)"},
		{"suite_sha256", "another text of the suite"},
		{"settings", "other settings (--set)"},
		{"binary_sha256", "another binary"},
		{"backend", "another backend"},
		{"shard", "another shard"},
		{"processes", "another number of processes"},
		{"filter", "another choice of cells (--filter, --rerun-failed)"},
		{"cells", "another choice of cells (--filter, --rerun-failed)"},
		{"cases", "other checks (--checks)"},
	};
	for (size_t i = 0; i < sizeof same / sizeof *same; i++)
		if (!json_equal(json_object_get(old, same[i].key), json_object_get(now, same[i].key)))
			return err_set(err,
				       "%s cannot be resumed: it was written by %s; --force starts anew, -o names "
				       "another file",
				       path, same[i].words);
	const char *was = text_of(json_object_get(old, "device"), "uuid"),
		   *is = text_of(json_object_get(now, "device"), "uuid");
	if (strcmp(was, is) != 0)
		return err_set(err, "%s cannot be resumed: it was written on device %s (%s), this is %s (%s)", path,
			       text_of(json_object_get(old, "device"), "name"), was,
			       text_of(json_object_get(now, "device"), "name"), is);
	return true;
}

/* Error, time-out or undecided: done again. */
static bool done_again(const json_t *cell)
{
	enum cell_status st = status_of(text_of(cell, "status"));
	return st == ST_ERROR || st == ST_TIMEOUT || st == ST_INCONCLUSIVE;
}

/* Samples that only wait for the second process. */
static bool waits_for_confirmation(const json_t *cell)
{
	return status_of(text_of(cell, "status")) == ST_INCONCLUSIVE &&
	       strcmp(text_of(json_object_get(cell, "timing"), "reason"), judge_reason_name(TR_UNCONFIRMED)) == 0;
}

bool run_resume_load(const char *path, const json_t *header, struct run_resumed *out, struct err *err)
{
	*out = (struct run_resumed){0};
	struct stat st;
	if (strcmp(path, "-") == 0)
		return err_set(err, "--resume needs a file, not standard output");
	if (stat(path, &st) != 0 || (S_ISREG(st.st_mode) && st.st_size == 0))
		return true; /* nothing yet: a new run */
	struct err why;
	if (!verdict_load(path, &out->file, &why))
		return err_set(err, "%s; it cannot be resumed: --force starts anew, -o names another file", why.text);
	if (!same_run(path, out->file.header, header, err)) {
		verdict_unload(&out->file);
		return false;
	}
	const struct verdict_file *f = &out->file;
	out->kept = calloc(f->n_cells + 1, sizeof *out->kept);
	out->screen = calloc(f->n_other + 1, sizeof *out->screen);
	out->ids = json_object();
	json_t *undecided = json_object();
	if (!out->kept || !out->screen)
		goto no_memory;
	for (size_t i = 0; i < f->n_cells; i++) {
		const char *id = text_of(f->cell[i], "id");
		if (waits_for_confirmation(f->cell[i]))
			json_object_set_new(undecided, id, json_true());
		if (done_again(f->cell[i])) {
			json_object_set_new(undecided, id, json_object_get(undecided, id) ? json_true() : json_false());
			continue;
		}
		out->kept[out->n_kept++] = f->cell[i];
		json_object_set_new(out->ids, id, json_true());
	}
	/* The last screen of an id counts; one whose cell was decided, or is to be measured anew, has done its duty. */
	for (size_t i = f->n_other; i-- > 0;) {
		const char *id = text_of(f->other[i], "id");
		if (strcmp(text_of(f->other[i], "kind"), "screen") != 0 || json_object_get(out->ids, id) ||
		    json_is_false(json_object_get(undecided, id)))
			continue;
		out->screen[out->n_screen++] = json_object_get(f->other[i], "cell");
		json_object_set_new(out->ids, id, json_true());
	}
	json_decref(undecided);
	return true;
no_memory:
	json_decref(undecided);
	run_resume_free(out);
	return err_set(err, "%s: out of memory", path);
}

void run_resume_free(struct run_resumed *r)
{
	verdict_unload(&r->file);
	free(r->kept);
	free(r->screen);
	json_decref(r->ids);
	*r = (struct run_resumed){0};
}
