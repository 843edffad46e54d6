/* test_compare: what compare and scan_all of a backend must say, whichever it is. */
#ifndef ASSAY_TEST_COMPARE_H
#define ASSAY_TEST_COMPARE_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"

static inline void compare_says(struct backend *be, const void *x, const void *y, size_t bytes, int64_t n_want,
				int64_t first_want)
{
	struct err err = {""};
	int64_t n = -2, first = -2;
	ck_assert_msg(backend_ops_of(be)->compare(be, x, y, bytes, &n, &first, &err), "%s", err.text);
	ck_assert_msg(n == n_want && first == first_want, "%zu bytes: %lld differ for %lld, first %lld for %lld", bytes,
		      (long long)n, (long long)n_want, (long long)first, (long long)first_want);
}

/* x and y hold the same `bytes` bytes, and other ones behind them. */
static inline void compare_of(struct backend *be, size_t bytes)
{
	enum { BEHIND = 64 };
	const struct backend_ops *ops = backend_ops_of(be);
	struct err err;
	unsigned char *host = malloc(bytes + BEHIND), *x = ops->alloc(be, bytes + BEHIND, &err),
		      *y = ops->alloc(be, bytes + BEHIND, &err);
	/* NaN of all payloads: as numbers none is equal to itself. */
	for (size_t i = 0; i < bytes + BEHIND; i++)
		host[i] = (unsigned char)(i % 4 == 3 ? 0x7f : i % 4 == 2 ? 0x80 | i >> 2 : i >> 1);
	ck_assert(host && x && y && ops->upload(be, x, host, bytes + BEHIND, &err));
	memset(host + bytes, 0x11, BEHIND);
	ck_assert(ops->upload(be, y, host, bytes + BEHIND, &err));
	compare_says(be, x, y, bytes, 0, -1);
	compare_says(be, x, x, bytes, 0, -1);
	const size_t places[] = {0, 1, 15, 16, 17, bytes / 2, bytes - 17, bytes - 16, bytes - 2, bytes - 1};
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		if (places[i] >= bytes)
			continue;
		const unsigned char was = host[places[i]], now = was ^ 1; /* one bit of a payload */
		ck_assert(ops->upload(be, y + places[i], &now, 1, &err));
		compare_says(be, x, y, bytes, 1, (int64_t)places[i]);
		compare_says(be, y, x, bytes, 1, (int64_t)places[i]);
		if (places[i] + 1 < bytes) {
			/* The last byte too, and not what lies behind it. */
			const unsigned char last = host[bytes - 1] ^ 0x80;
			ck_assert(ops->upload(be, y + bytes - 1, &last, 1, &err));
			compare_says(be, x, y, bytes, 2, (int64_t)places[i]);
			ck_assert(ops->upload(be, y + bytes - 1, host + bytes - 1, 1, &err));
		}
		ck_assert(ops->upload(be, y + places[i], &was, 1, &err));
	}
	if (bytes >= 8) {
		/* 0 and -0 are other bits, in the last float. */
		const float zero = 0, minus = -0.0f;
		const size_t at = (bytes / 4 - 1) * 4;
		ck_assert(ops->upload(be, x + at, &zero, 4, &err) && ops->upload(be, y + at, &minus, 4, &err));
		compare_says(be, x, y, bytes, 1, (int64_t)at + 3);
		ck_assert(ops->upload(be, y + at, &zero, 4, &err));
		compare_says(be, x, y, bytes, 0, -1);
		/* All of them. */
		ck_assert(ops->pattern(be, x, 0, bytes / 4 * 4, &err) &&
			  ops->pattern(be, y, 0x01010101, bytes / 4 * 4, &err));
		compare_says(be, x, y, bytes / 4 * 4, (int64_t)(bytes / 4 * 4), 0);
	}
	ops->free(be, x);
	ops->free(be, y);
	free(host);
}

static const size_t compare_sizes[] =
	{0, 1, 3, 4, 15, 16, 17, 31, 100, 255, 4096, 4099, 65536, 65537, 1000003, (3 << 20) + 5, (33 << 20) + 9};
enum { COMPARE_SIZES = sizeof compare_sizes / sizeof *compare_sizes };

/* Many ranges of several words; one word wrong in the first, the last and the middle one of each. */
static inline void scan_all_of(struct backend *be)
{
	enum { RANGES = 33, WORDS = 5000, APART = 6000 };
	const struct backend_ops *ops = backend_ops_of(be);
	struct scan_range range[RANGES];
	struct err err;
	uint32_t *at = ops->alloc(be, RANGES * APART * 4, &err);
	bool intact;
	ck_assert(at && ops->pattern(be, at, 77, RANGES * APART * 4, &err));
	for (int i = 0; i < RANGES; i++) {
		range[i] = (struct scan_range){.at = at + i * APART,
					       .bytes = (size_t)(WORDS - 7 * i) * 4,
					       .word = 0x100u + (uint32_t)i};
		ck_assert(ops->pattern(be, at + i * APART, range[i].word, range[i].bytes, &err));
	}
	ck_assert(ops->scan_all(be, range, 0, &intact, &err) && intact);
	ck_assert(ops->scan_all(be, range, RANGES, &intact, &err) && intact);
	for (int i = 0; i < RANGES; i += 16) {
		const size_t words = range[i].bytes / 4, places[] = {0, words / 2, words - 1};
		for (int k = 0; k < 3; k++) {
			uint32_t wrong = range[i].word ^ 0x80000000u;
			ck_assert(ops->upload(be, at + i * APART + places[k], &wrong, 4, &err));
			ck_assert(ops->scan_all(be, range, RANGES, &intact, &err) && !intact);
			ck_assert(ops->upload(be, at + i * APART + places[k], &range[i].word, 4, &err));
		}
	}
	ck_assert(ops->scan_all(be, range, RANGES, &intact, &err) && intact);
	ops->free(be, at);
}

#endif
