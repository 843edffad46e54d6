/* test_bed: exec over the fake backend, and what its facts say. */
#ifndef ASSAY_TEST_BED_H
#define ASSAY_TEST_BED_H

#include <check.h>
#include <jansson.h>
#include <string.h>

#include "exec.h"
#include "fake.h"
#include "registry.h"
#include "test_cell.h"

struct bed {
	struct registry *registry;
	struct backend *be;
	struct exec *exec;
	struct exec_beat beat;
	int parts;
};

static inline void part(void *ctx, json_t *facts)
{
	struct bed *b = ctx;
	ck_assert(json_is_object(facts));
	b->parts++;
}

static inline void bed_open(struct bed *b, const struct fake_script *script)
{
	struct err err;
	memset(b, 0, sizeof(*b));
	b->registry = registry_create();
	b->be = fake_create(script);
	b->exec = exec_create(b->be, &err);
	ck_assert(b->exec);
}

static inline void bed_close(struct bed *b)
{
	exec_destroy(b->exec);
	ck_assert_int_eq(fake_memory_in_use(b->be), 0);
	backend_ops_of(b->be)->close(b->be);
	registry_destroy(b->registry);
}

static inline json_t *run_cell(struct bed *b, const struct cell *c, enum exec_outcome want)
{
	const struct exec_sink sink = {.beat = &b->beat, .part = part, .ctx = b};
	struct err err = {{0}};
	json_t *facts = NULL;
	enum exec_outcome got = exec_cell(b->exec, c, &sink, &facts, &err);
	ck_assert_msg(got == want, "outcome %d for %d: %s", got, want, err.text);
	return facts;
}

static inline const json_t *find(const json_t *facts, const char *check, const char *arm)
{
	size_t i;
	json_t *f, *checks = json_object_get(facts, "checks");
	const json_t *passed = NULL;
	json_array_foreach(checks, i, f)
	{
		const char *a = json_string_value(json_object_get(f, "arm"));
		if (strcmp(json_string_value(json_object_get(f, "check")), check) || (arm && (!a || strcmp(a, arm))))
			continue;
		if (strcmp(json_string_value(json_object_get(f, "status")), "pass"))
			return f;
		passed = f;
	}
	return passed;
}

static inline const char *text_of(const json_t *f, const char *key)
{
	const char *s = json_string_value(json_object_get(f, key));
	return s ? s : "";
}

static inline int64_t number_of(const json_t *f, const char *key)
{
	return json_integer_value(json_object_get(f, key));
}

static inline const json_t *arm_of(const json_t *facts, const char *name)
{
	size_t i;
	json_t *a;
	json_array_foreach(json_object_get(facts, "arms"), i, a) if (!strcmp(text_of(a, "name"), name)) return a;
	return NULL;
}

/* Whether a note of a cell says that. */
static inline bool noted(const json_t *facts, const char *what)
{
	const json_t *notes = json_object_get(facts, "notes");
	for (size_t i = 0; i < json_array_size(notes); i++)
		if (strstr(json_string_value(json_array_get(notes, i)), what))
			return true;
	return false;
}

#endif
