/* sha256: digests of suites, plans and outputs (FIPS 180-4). */
#ifndef ASSAY_SHA256_H
#define ASSAY_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sha256 {
	uint32_t h[8];
	uint64_t n_bytes;
	unsigned char block[64];
};

void sha256_init(struct sha256 *s);
void sha256_update(struct sha256 *s, const void *p, size_t n); /* p may be NULL where n is 0 */
void sha256_final(struct sha256 *s, unsigned char out[32]);

/* 64 hex digits and a NUL. */
void sha256_hex_final(struct sha256 *s, char out[65]);
void sha256_hex(const void *p, size_t n, char out[65]);
/* Of a file's bytes; false where it cannot be read, with errno set. */
bool sha256_file(const char *path, char out[65]);

#endif
