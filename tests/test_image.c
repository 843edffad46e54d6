/* Outputs that stay on their device: the same findings and digests as of those that are brought over, and a device that lies of them is
 * found out. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "fill.h"
#include "image.h"
#include "image_block.h"
#include "sha256.h"
#include "test_bed.h"
#include "test_compare.h"
#include "test_zoo.h"
#include "unit.h"

/* An output above IMAGE_HOST_BYTES, of no round length: two pieces of a hash, the second a few bytes. */
enum { ROWS = (1 << 20) + 3 };

static void large(struct cell *c, const struct bed *b, const char *arm)
{
	test_cell(c, b->registry, "probe.faults", "shipped", arm, NULL);
	c->point.v[0].i = ROWS;
	c->point.v[1].i = 1;
	c->checks.on = 1u << CHECK_IDENTITY | 1u << CHECK_REPEAT | 1u << CHECK_INVARIANT | 1u << CHECK_REFERENCE;
	c->checks.identity.against = "shipped";
	c->checks.repeat = (struct check_repeat){.launches = 2, .addresses = true};
	c->checks.invariant =
		(struct check_invariant){.rows = "rows", .leading = {ROWS - 1}, .n_leading = 1, .permute = true};
	c->checks.reference.adapter = true;
	c->checks.reference.sample_rows = 50;
}

static json_t *facts_of(const struct fake_script *s, const char *arm, enum exec_outcome want, char *why)
{
	const struct exec_beat none = {0};
	struct err err = {{0}};
	json_t *facts = NULL;
	struct bed b;
	struct cell c;
	bed_open(&b, s);
	large(&c, &b, arm);
	b.beat = none;
	const struct exec_sink sink = {.beat = &b.beat, .part = part, .ctx = &b};
	const enum exec_outcome got = exec_cell(b.exec, &c, &sink, &facts, &err);
	ck_assert_msg(got == want, "%s: outcome %d for %d: %s", arm, got, want, err.text);
	if (why)
		strcpy(why, err.text);
	bed_close(&b);
	return facts;
}

/* Of those whose findings do not depend on what ran before them in this process. */
static const char *const arms[] = {"split=4", "nothing", "ulp", "unwritten_tail", "over_read", "zero_rows"};

/* Whatever the arm does: where its outputs lie makes no difference to what is said of it. */
START_TEST(same_findings_there_and_here)
{
	const struct fake_script compares = {.compares = true};
	json_t *here = facts_of(NULL, arms[_i], EXEC_OK, NULL), *there = facts_of(&compares, arms[_i], EXEC_OK, NULL);
	static const char *const keys[] = {"checks", "notes"};
	for (int k = 0; k < 2; k++) {
		json_t *x = json_object_get(here, keys[k]), *y = json_object_get(there, keys[k]);
		char *p = json_dumps(x, 0), *q = json_dumps(y, 0);
		ck_assert_int_ge((int)json_array_size(json_object_get(here, "checks")), 3);
		ck_assert_msg(json_equal(x, y), "%s:\n%.1500s\n%.1500s", arms[_i], p, q);
		free(p);
		free(q);
	}
	for (int k = 0; k < 2; k++) {
		const char *arm = k ? arms[_i] : "shipped", *sha = text_of(arm_of(here, arm), "out_sha256");
		ck_assert_int_eq(strlen(sha), 64);
		ck_assert_str_eq(text_of(arm_of(there, arm), "out_sha256"), sha);
	}
	/* None is called right that is not. */
	size_t i;
	json_t *f;
	int failed = 0;
	json_array_foreach(json_object_get(there, "checks"), i, f) failed += strcmp(text_of(f, "status"), "pass") != 0;
	ck_assert_msg((failed > 0) == (_i > 0), "%s: %d findings", arms[_i], failed);
	json_decref(here);
	json_decref(there);
}
END_TEST

static const struct {
	struct fake_script script;
	const char *arm, *says;
} liars[] = {
	/* Digests tell the outputs apart, so that nobody asks whether they are equal: the arm is caught as ever. */
	{{.compares = true, .equal_lie = 1}, "ulp", NULL},
	{{.compares = true, .differ_lie = 1}, "split=4", "one digest to outputs that it finds to differ at byte 0"},
	{{.compares = true, .stale_digest_bytes = 4 * ROWS},
	 "ulp",
	 "one digest to outputs that it finds to differ at byte"},
	{{.compares = true, .stale_digest_bytes = 4 * ROWS, .equal_lie = 1},
	 "zero_rows",
	 "calls outputs equal that differ"},
	/* One number for everything. The inputs are intact by it, the outputs are all one: their bytes have another. */
	{{.compares = true, .digest_lie = 1, .equal_lie = 1},
	 "split=4",
	 "digests other bytes than it gives to the host"},
};

START_TEST(liars_are_found_out)
{
	char why[sizeof(struct err)];
	json_t *facts = facts_of(&liars[_i].script, liars[_i].arm, liars[_i].says ? EXEC_FAILED : EXEC_OK, why);
	if (liars[_i].says)
		ck_assert_msg(strstr(why, liars[_i].says), "%s", why);
	else
		ck_assert_str_eq(text_of(find(facts, "identity", liars[_i].arm), "status"), "mismatch");
	json_decref(facts);
}
END_TEST

/* A small output is on the host at once, and is held against the device's digest all the same. */
START_TEST(small_outputs_too)
{
	const struct fake_script lie = {.compares = true, .stale_digest_bytes = 4 * 64};
	const struct exec_beat none = {0};
	struct err err = {{0}};
	json_t *facts = NULL;
	struct bed b;
	struct cell c;
	bed_open(&b, &lie);
	test_cell(&c, b.registry, "probe.faults", "shipped", "ulp", NULL);
	c.checks.on = 1u << CHECK_IDENTITY;
	b.beat = none;
	const struct exec_sink sink = {.beat = &b.beat, .part = part, .ctx = &b};
	ck_assert_int_eq(exec_cell(b.exec, &c, &sink, &facts, &err), EXEC_FAILED);
	ck_assert_msg(strstr(err.text, "digests other bytes"), "%s", err.text);
	json_decref(facts);
	bed_close(&b);
}
END_TEST

/* ---- hashes --------------------------------------------------------------------------------------------------------- */

static const size_t sizes[] = {0,      1, 65535, 65536, (4 << 20) - 1, 4 << 20, (4 << 20) + 1, 65537, (9 << 20) + 77,
			       300000, 5};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* Image i has the outputs i, i + 1, … of so many sizes; on the device where a bit says so. By one thread, by two and by many. */
START_TEST(hashes_are_those_of_the_bytes)
{
	const struct fake_script script = {.threads = (int[]){1, 2, 5}[_i / 2]};
	struct backend *be = fake_create(&script);
	struct stage st = {.be = be, .ops = backend_ops_of(be)};
	struct image im[SIZES];
	const struct image *list[SIZES];
	char got[SIZES][65], want[65];
	struct err err = {{0}};
	memset(im, 0, sizeof im);
	for (int i = 0; i < SIZES; i++) {
		list[i] = &im[i];
		im[i].n = 1 + i % 3;
		for (int k = 0; k < im[i].n; k++) {
			const size_t n = sizes[(i + k) % SIZES];
			unsigned char *p = malloc(n + 1);
			for (size_t j = 0; j < n; j++)
				p[j] = (unsigned char)(j * 7 + j / 251 + (size_t)i);
			struct image_block *block = (i + k + _i) % 2 ? image_block_host(&st, "out", n)
								     : image_block_device(&st, "out", p, n);
			ck_assert_ptr_nonnull(block);
			if (block->data)
				memcpy(block->data, p, n);
			block->digest = im[i].digest[k] = fill_digest(p, n);
			im[i].block[k] = block;
			free(p);
		}
	}
	ck_assert_msg(image_sha256(&st, list, SIZES, got, &err), "%s", err.text);
	for (int i = 0; i < SIZES; i++) {
		struct sha256 s;
		ck_assert(image_fetch(&im[i], &err));
		sha256_init(&s);
		for (int k = 0; k < im[i].n; k++)
			sha256_update(&s, image_bytes(&im[i], k), im[i].block[k]->n);
		sha256_hex_final(&s, want);
		ck_assert_str_eq(got[i], want);
	}
	for (int i = 0; i < SIZES; i++)
		image_drop(&im[i]);
	ck_assert_uint_eq(st.image_bytes, 0);
	ck_assert_int_eq(fake_memory_in_use(be), 0);
	backend_ops_of(be)->close(be);
}
END_TEST

START_TEST(digest_in_parts)
{
	const size_t n = 3 * 65536 + 1234;
	unsigned char *p = malloc(n);
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)(i * i >> 3);
	for (uint64_t cut = 0; cut <= 3; cut++) {
		const size_t at = (size_t)cut * 65536;
		ck_assert_uint_eq(fill_digest_whole(fill_digest_part(p, at, 0) + fill_digest_part(p + at, n - at, cut),
						    n),
				  fill_digest(p, n));
	}
	free(p);
}
END_TEST

/* No more than its part of the device's memory goes into copies, and what has no room there comes to the host. */
START_TEST(copies_leave_room)
{
	struct backend *be = fake_create(NULL);
	struct stage st = {.be = be, .ops = backend_ops_of(be)};
	static unsigned char bytes[100];
	st.image_bytes = (size_t)backend_ops_of(be)->info(be)->memory_bytes / 8 - 99;
	ck_assert_ptr_null(image_block_device(&st, "out", bytes, 100));
	st.image_bytes -= 1;
	struct image_block *b = image_block_device(&st, "out", bytes, 100);
	ck_assert_ptr_nonnull(b);
	image_block_drop(b);
	ck_assert_int_eq(fake_memory_in_use(be), 0);
	backend_ops_of(be)->close(be);
	const struct fake_script little = {.compares = true, .alloc_limit_bytes = 0, .small_memory = true};
	json_t *facts = facts_of(&little, "split=4", EXEC_OK, NULL);
	ck_assert_str_eq(text_of(find(facts, "identity", "split=4"), "status"), "pass");
	json_decref(facts);
}
END_TEST

START_TEST(bytes_are_compared)
{
	const struct fake_script script = {.compares = true};
	struct backend *be = fake_create(&script);
	compare_of(be, compare_sizes[_i]);
	backend_ops_of(be)->close(be);
}
END_TEST

START_TEST(ranges_are_scanned)
{
	struct backend *be = fake_create(NULL);
	scan_all_of(be);
	backend_ops_of(be)->close(be);
	struct err err;
	be = backend_open("host", &(struct backend_config){.threads = 1}, &err);
	scan_all_of(be);
	backend_ops_of(be)->close(be);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("image");
	TCase *t = tcase_create("image");
	tcase_set_timeout(t, 100);
	tcase_add_loop_test(t, same_findings_there_and_here, 0, sizeof arms / sizeof *arms);
	tcase_add_loop_test(t, liars_are_found_out, 0, sizeof liars / sizeof *liars);
	tcase_add_test(t, small_outputs_too);
	tcase_add_loop_test(t, hashes_are_those_of_the_bytes, 0, 6);
	tcase_add_test(t, digest_in_parts);
	tcase_add_test(t, copies_leave_room);
	tcase_add_loop_test(t, bytes_are_compared, 0, COMPARE_SIZES - 2); /* the largest are for devices */
	tcase_add_test(t, ranges_are_scanned);
	suite_add_tcase(s, t);
	return unit_run(s);
}
