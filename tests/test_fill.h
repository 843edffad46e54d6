/* Expected values come from gen_fill.py, which makes them from the definitions in words. */
#ifndef ASSAY_TEST_FILL_H
#define ASSAY_TEST_FILL_H

#include <check.h>
#include <jansson.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fill.h"
#include "fill_gen.h"
#include "grammar.h"
#include "registry.h"

static inline json_t *expected(void)
{
	json_error_t e;
	json_t *j = json_load_file(ASSAY_SOURCE_ROOT "/tests/data/fill.json", 0, &e);
	ck_assert_msg(j != NULL, "%s", e.text);
	return j;
}

static inline uint64_t hex(const json_t *j)
{
	return strtoull(json_string_value(j), NULL, 16);
}

static inline double real(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static inline struct fill_spec spec_of(const json_t *o)
{
	struct fill_spec s = {0};
	int kind = fill_kind_of(json_string_value(json_object_get(o, "kind")));
	ck_assert_int_ge(kind, 0);
	s.kind = (enum fill_kind)kind;
	for (size_t i = 0; i < 2; i++) {
		s.range[i] = json_number_value(json_array_get(json_object_get(o, "range"), i));
		s.magnitude[i] = json_integer_value(json_array_get(json_object_get(o, "magnitude"), i));
	}
	s.value = real(o, "value");
	s.k = json_integer_value(json_object_get(o, "k"));
	s.repeats = json_is_true(json_object_get(o, "repeats"));
	s.base = real(o, "base");
	s.step = real(o, "step");
	s.modulus = json_integer_value(json_object_get(o, "modulus"));
	return s;
}

static inline uint64_t bits_at(const unsigned char *base, int size, int64_t i)
{
	uint64_t v = 0;
	memcpy(&v, base + i * size, (size_t)size);
	return v;
}

static inline struct fill_job plain_job(enum fill_kind kind, enum assay_dtype t, int64_t rows, int64_t last)
{
	return (struct fill_job){.spec = {.kind = kind,
					  .range = {-1, 1},
					  .sd = 1,
					  .magnitude = {0, 126},
					  .repeats = true},
				 .key = 77,
				 .dtype = t,
				 .shape = {.rank = 2, .dim = {rows, last}, .index_bound = 1000},
				 .lcg_seed = 9};
}

static inline void must_fill(void *dst, const struct fill_job *j)
{
	struct err e = {0};
	ck_assert_msg(fill_host(dst, j, &e), "%s", e.text);
}

/* Kinds that can be run over a plain job, with an element type that takes them. */
static const struct {
	enum fill_kind kind;
	enum assay_dtype t;
} runnable[] = {
	{FILL_UNIFORM, ASSAY_F32},        {FILL_UNIFORM, ASSAY_BF16},
	{FILL_UNIFORM, ASSAY_I16},        {FILL_NORMAL, ASSAY_F32},
	{FILL_NORMAL, ASSAY_F16},         {FILL_BYTES, ASSAY_I8},
	{FILL_CONSTANT, ASSAY_F32},       {FILL_ZIPF, ASSAY_I32},
	{FILL_K_HOT, ASSAY_F32},          {FILL_PERMUTATION, ASSAY_U16},
	{FILL_INDICES, ASSAY_I64},        {FILL_PATTERN, ASSAY_F16},
	{FILL_SEED_LCG64_F32, ASSAY_F32}, {FILL_SEED_LCG64_INDEX, ASSAY_I32},
	{FILL_SEED_LCG32_WIDE, ASSAY_I8}, {FILL_SEED_LCG32_MID, ASSAY_E4M3},
};
enum { N_RUNNABLE = sizeof runnable / sizeof runnable[0] };

static inline struct fill_job runnable_job(int i, int64_t rows, int64_t last)
{
	struct fill_job j = plain_job(runnable[i].kind, runnable[i].t, rows, last);
	if (j.spec.kind == FILL_UNIFORM && j.dtype == ASSAY_I16)
		j.spec.range[0] = -300;
	if (j.spec.kind <= FILL_BYTES || j.spec.kind >= FILL_SEED_LCG32_WIDE)
		j.shape.index_bound = 0;
	j.spec.exponent = 1.2;
	j.spec.k = 3;
	j.spec.value = 1;
	j.spec.base = 0.25;
	j.spec.step = 0.125;
	j.spec.modulus = 7;
	return j;
}

#endif
