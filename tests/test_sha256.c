#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sha256.h"
#include "unit.h"

/* FIPS 180-4 examples, and what python3's hashlib says of n bytes 'a' + i % 26 around the ends of blocks. */
static const struct {
	const char *text, *hex;
} known[] = {
	{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	{"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
	{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
	 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
};

static const struct {
	size_t n;
	const char *hex;
} lengths[] = {
	{1, "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"},
	{55, "595615dbe4f0f407ae397d08b4c2cb870cb9b0e11937416f950c5160acf9c005"},
	{56, "784f623b787495078e93ff28a25b581df0584055a7e71d8cd90c454716b92f51"},
	{57, "808f0738aa4401bdee842e5a15a7baad5809f976d8eb6f9bd2683cebd2e8d671"},
	{63, "5ca3e1ef5207490eac01a795e5cc94d59582a5118bf9534665c8668d87aa647c"},
	{64, "2fcd5a0d60e4c941381fcc4e00a4bf8be422c3ddfafb93c809e8d1e2bfffae8e"},
	{65, "1b3cd1877ab2f2f19f7be001722554f336cb799df0329de0bb4c118dc6abc06d"},
	{119, "faef67da856d6fd9c8d12f9ed0a4fefd3cf0ce085ab43e2907418d457e3c354b"},
	{120, "c9512b08619c19fbb503c7da6b46ef20301e5f7a7a5f43989182398536f5c5c8"},
	{128, "6c05be2c4268843ae47e68e611277ce62c02153f2f4d2e1e2a1a4b44f766cf74"},
	{1000, "915e53a44c18b19bb06ba5b3f5fcaf1dc4651e8404c63425cfc6174e74659d87"},
};

START_TEST(known_texts)
{
	char hex[65];
	sha256_hex(known[_i].text, strlen(known[_i].text), hex);
	ck_assert_str_eq(hex, known[_i].hex);
}
END_TEST

/* Whole, and in pieces of every size up to 70: the same. */
START_TEST(pieces)
{
	unsigned char buf[1024];
	char hex[65];
	size_t n = lengths[_i].n;
	for (size_t i = 0; i < n; i++)
		buf[i] = (unsigned char)('a' + i % 26);
	sha256_hex(buf, n, hex);
	ck_assert_str_eq(hex, lengths[_i].hex);
	for (size_t piece = 1; piece <= 70; piece++) {
		struct sha256 s;
		sha256_init(&s);
		for (size_t at = 0; at < n; at += piece)
			sha256_update(&s, buf + at, n - at < piece ? n - at : piece);
		sha256_hex_final(&s, hex);
		ck_assert_str_eq(hex, lengths[_i].hex);
	}
}
END_TEST

START_TEST(files)
{
	static const char path[] = "abc";
	char hex[65];
	unit_enter();
	FILE *f = fopen(path, "wb");
	ck_assert_ptr_nonnull(f);
	ck_assert(fputs("abc", f) >= 0 && fclose(f) == 0);
	ck_assert(sha256_file(path, hex));
	ck_assert_str_eq(hex, known[1].hex);
	remove(path);
	ck_assert(!sha256_file(path, hex));
	ck_assert(!sha256_file("/", hex));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sha256");
	TCase *tc = tcase_create("sha256");
	tcase_add_loop_test(tc, known_texts, 0, (int)(sizeof known / sizeof known[0]));
	tcase_add_loop_test(tc, pieces, 0, (int)(sizeof lengths / sizeof lengths[0]));
	tcase_add_test(tc, files);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
