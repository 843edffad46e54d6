/* fence: memory in a mapping of its own, between two stretches of address space that nobody may touch: whoever reads or writes far before
 * or far behind it is stopped by the CPU at that instruction, and hits nothing of anybody else.
 *
 *   | fence | memory, which ends at the end of a page | fence |
 *
 * A fence is 16 MiB, or as much as the memory itself up to 1 GiB; less where the address space of the process is limited (ulimit -v). It is
 * never touched, so it costs address space alone. Freed memory is kept for the next one of its size, with its pages.
 *
 * What is allocated is listed once for the process, as the address space is: for the signal handler that tells whose fence was hit. One
 * thread allocates and frees. */
#ifndef ASSAY_FENCE_H
#define ASSAY_FENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FENCE_ALIGN = 256 };

/* Memory of so many bytes, aligned to FENCE_ALIGN, that ends less than FENCE_ALIGN before its fence; what it holds is undefined. NULL: there
 * is no memory, or no address space. */
void *fence_alloc(size_t bytes);
void fence_free(void *p); /* NULL is fine */

/* Says that at p + before lie `bytes` of what is called so; name is borrowed until fence_free. Nothing happens where p is of another
 * allocator. */
void fence_name(const void *p, const char *name, size_t before, size_t bytes);

/* Nobody may write to it any more, until it is freed. False: it stays as it was. p is of fence_alloc. */
bool fence_seal(void *p);

/* Whose fence holds an address. */
struct fence_hit {
	bool sealed; /* no fence, but memory that was sealed */
	const char *name; /* NULL: it was given none */
	int64_t offset; /* from the start of what is called so: negative before it */
	int64_t bytes; /* of that */
};
/* Whether the address is in a fence, or in what is sealed. For signal handlers: takes no lock, allocates nothing. */
bool fence_hit(const void *address, struct fence_hit *hit);

#endif
