#include "sha256.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const uint32_t round_constant[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotr(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static uint32_t big_endian(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void compress(uint32_t h[8], const unsigned char *p)
{
	uint32_t w[64], v[8];
	for (int i = 0; i < 16; i++)
		w[i] = big_endian(p + 4 * i);
	for (int i = 16; i < 64; i++) {
		uint32_t s0 = rotr(w[i - 15], 7) ^ rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
		uint32_t s1 = rotr(w[i - 2], 17) ^ rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
		w[i] = w[i - 16] + s0 + w[i - 7] + s1;
	}
	memcpy(v, h, sizeof v);
	for (int i = 0; i < 64; i++) {
		uint32_t s1 = rotr(v[4], 6) ^ rotr(v[4], 11) ^ rotr(v[4], 25);
		uint32_t choose = (v[4] & v[5]) ^ (~v[4] & v[6]);
		uint32_t t1 = v[7] + s1 + choose + round_constant[i] + w[i];
		uint32_t s0 = rotr(v[0], 2) ^ rotr(v[0], 13) ^ rotr(v[0], 22);
		uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
		memmove(v + 1, v, 7 * sizeof v[0]);
		v[4] += t1;
		v[0] = t1 + s0 + majority;
	}
	for (int i = 0; i < 8; i++)
		h[i] += v[i];
}

void sha256_init(struct sha256 *s)
{
	static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
	memcpy(s->h, start, sizeof start);
	s->n_bytes = 0;
}

void sha256_update(struct sha256 *s, const void *p, size_t n)
{
	const unsigned char *in = p;
	size_t held = s->n_bytes % 64;
	s->n_bytes += n;
	if (held) {
		size_t take = n < 64 - held ? n : 64 - held;
		if (take)
			memcpy(s->block + held, in, take);
		if (held + take < 64)
			return;
		compress(s->h, s->block);
		in += take;
		n -= take;
	}
	for (; n >= 64; n -= 64, in += 64)
		compress(s->h, in);
	if (n)
		memcpy(s->block, in, n);
}

void sha256_final(struct sha256 *s, unsigned char out[32])
{
	static const unsigned char pad[64] = {0x80};
	uint64_t bits = s->n_bytes * 8;
	unsigned char length[8];
	for (int i = 0; i < 8; i++)
		length[i] = (unsigned char)(bits >> (56 - 8 * i));
	size_t held = s->n_bytes % 64;
	sha256_update(s, pad, held < 56 ? 56 - held : 120 - held);
	sha256_update(s, length, sizeof length);
	for (int i = 0; i < 32; i++)
		out[i] = (unsigned char)(s->h[i / 4] >> (24 - 8 * (i % 4)));
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
