/* census_file: counts and intervals by hand, in place of a disassembler and a probe: for tests of what the controls find, and for code of a
 * device that is elsewhere. */
#include <math.h>
#include <string.h>

#include "census.h"
#include "diag.h"
#include "infile.h"

static json_t *load(const char *path, const char *option, const char *shape, struct err *err)
{
	json_error_t at;
	FILE *f = infile_stream(path, INFILE_STREAM, err);
	if (!f) {
		err_prefix(err, "%s %s", option, path);
		return NULL;
	}
	json_t *o = json_loadf(f, JSON_REJECT_DUPLICATES, &at);
	fclose(f);
	if (!o)
		err_set(err, "%s %s:%d:%d: %s", option, path, at.line > 0 ? at.line : 1, at.column > 0 ? at.column : 1,
			at.text);
	else if (!json_is_object(o) || json_object_size(o) == 0)
		err_set(err, "%s %s: not an object with something in it; it is %s", option, path, shape);
	else
		return o;
	json_decref(o);
	return NULL;
}

static const char *nearest_class(const char *word)
{
	const char *names[CENSUS_CLASSES];
	for (int i = 0; i < census_classes(); i++)
		names[i] = census_class_name(i);
	return diag_nearest(word, names, census_classes());
}

static bool is_count(const json_t *x)
{
	return json_is_integer(x) && json_integer_value(x) >= 0;
}

static bool check_counts(const char *path, const char *arm, const json_t *counts, struct err *err)
{
	const char *class;
	json_t *n;
	if (!json_is_object(counts))
		return err_set(err, "--census %s: \"%.60s\" has no \"counts\": an object of class: number", path, arm);
	json_object_foreach((json_t *)(uintptr_t)counts, class, n)
	{
		if (census_class_find(class) < 0) {
			const char *near = nearest_class(class);
			return err_set(err, "--census %s: \"%.60s\": there is no class \"%.40s\"%s%s%s", path, arm,
				       class, near ? "; do you mean \"" : "", near ? near : "", near ? "\"?" : "");
		}
		if (!is_count(n))
			return err_set(err, "--census %s: \"%.60s\": %.40s is not a whole number from 0", path, arm,
				       class);
	}
	return true;
}

static bool check_facts(const char *path, const char *arm, const json_t *entry, struct err *err)
{
	static const char *const facts[] = {"instructions", "registers", "local_bytes", "shared_bytes", "occupancy"};
	const char *key;
	json_t *x;
	json_object_foreach((json_t *)(uintptr_t)entry, key, x)
	{
		bool known = strcmp(key, "counts") == 0 || strcmp(key, "tool") == 0;
		for (size_t i = 0; i < sizeof facts / sizeof *facts && !known; i++) {
			known = strcmp(key, facts[i]) == 0;
			if (known && !is_count(x))
				return err_set(err, "--census %s: \"%.60s\": %s is not a whole number from 0", path,
					       arm, key);
		}
		if (!known)
			return err_set(err,
				       "--census %s: \"%.60s\": unknown key \"%.40s\"; there are counts, instructions, "
				       "registers, "
				       "local_bytes, shared_bytes and occupancy",
				       path, arm, key);
	}
	return true;
}

json_t *census_file_load(const char *path, struct err *err)
{
	json_t *o = load(path, "--census", "{\"ARM\" or \"KERNEL/ARM\": {\"counts\": {\"IMMA\": 64}}}", err), *entry;
	const char *arm;
	bool ok = o != NULL;
	json_object_foreach(o, arm, entry)
	{
		if (ok && !json_is_object(entry))
			ok = err_set(err, "--census %s: \"%.60s\" is no object with \"counts\" in it", path, arm);
		ok = ok && check_facts(path, arm, entry, err) &&
		     check_counts(path, arm, json_object_get(entry, "counts"), err);
	}
	if (ok)
		return o;
	json_decref(o);
	return NULL;
}

json_t *rates_file_load(const char *path, struct err *err)
{
	json_t *o = load(path, "--rates", "{\"FORM\", \"ARM\" or \"KERNEL/ARM\": cycles}", err), *x;
	const char *name;
	bool ok = o != NULL;
	json_object_foreach(o, name, x)
	{
		if (ok && !(json_is_number(x) && json_number_value(x) > 0 && isfinite(json_number_value(x))))
			ok = err_set(err, "--rates %s: \"%.60s\" is no number of cycles above 0", path, name);
	}
	if (ok)
		return o;
	json_decref(o);
	return NULL;
}
