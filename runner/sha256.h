/* sha256: digests of suites, plans and outputs (FIPS 180-4), by libcrypto: it has the instructions of each processor that it runs on. */
#ifndef ASSAY_SHA256_H
#define ASSAY_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* By value, and may be left without sha256_final. */
struct sha256 {
	uint64_t room[14];
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
