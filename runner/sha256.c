/* The calls below allocate nothing and read no configuration, so they cannot fail; the newer ones do both. OpenSSL 3 calls them deprecated. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "sha256.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>

_Static_assert(sizeof(SHA256_CTX) <= sizeof(struct sha256) && _Alignof(SHA256_CTX) <= _Alignof(struct sha256),
	       "the room is large enough");

static SHA256_CTX *context(struct sha256 *s)
{
	return (SHA256_CTX *)(void *)s->room;
}

void sha256_init(struct sha256 *s)
{
	SHA256_Init(context(s));
}

void sha256_update(struct sha256 *s, const void *p, size_t n)
{
	if (n)
		SHA256_Update(context(s), p, n);
}

void sha256_final(struct sha256 *s, unsigned char out[32])
{
	SHA256_Final(out, context(s));
}

void sha256_hex_final(struct sha256 *s, char out[65])
{
	static const char digit[] = "0123456789abcdef";
	unsigned char raw[32];
	sha256_final(s, raw);
	for (int i = 0; i < 32; i++) {
		out[2 * i] = digit[raw[i] >> 4];
		out[2 * i + 1] = digit[raw[i] & 15];
	}
	out[64] = 0;
}

void sha256_hex(const void *p, size_t n, char out[65])
{
	struct sha256 s;
	sha256_init(&s);
	sha256_update(&s, p, n);
	sha256_hex_final(&s, out);
}

bool sha256_file(const char *path, char out[65])
{
	FILE *f = fopen(path, "rb");
	if (!f)
		return false;
	struct sha256 s;
	sha256_init(&s);
	unsigned char buf[16384];
	size_t n;
	while ((n = fread(buf, 1, sizeof buf, f)) > 0)
		sha256_update(&s, buf, n);
	int e = ferror(f) ? errno : 0;
	fclose(f);
	if (e) {
		errno = e;
		return false;
	}
	sha256_hex_final(&s, out);
	return true;
}
