/* inputs: the filled tensors of cells, kept between cells. They are functions of the seed and the coordinates, so cells that
 * differ in other axes share them: a cache pool of 512 MiB is filled and audited once for all its cells.
 *
 * Each has one live buffer, at one address for every arm and both input sets, and a master of each set to load it from. A tensor
 * above a limit has no masters and the same bytes in both sets. */
#ifndef ASSAY_INPUTS_H
#define ASSAY_INPUTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "backend.h"
#include "err.h"
#include "fill.h"
#include "plan.h"
#include "tensors.h"

enum { INPUT_SETS = 2 };
#define INPUT_ONE_SET_BYTES ((size_t)128 << 20) /* the limit, unless it was set */
#define INPUT_HOST_BYTES                                                                                               \
	((size_t)1 << 30) /* so much of host memory is kept between cells by input_host, unless one cell needs more */

struct input {
	struct buffer live;
	void *master[INPUT_SETS]; /* device memory; NULL where one_set */
	bool one_set;
	int loaded; /* the set that live holds; -1: changed by somebody, load it again */
	uint64_t digest[INPUT_SETS];
	int64_t distinct, nonzero; /* of set 0; -1: not counted */
	json_t *audit; /* object by "tensor" or "tensor.field", of set 0; owned */
	json_t *broken; /* array of sentences, one a broken promise; owned */
};

struct inputs;
/* budget_bytes: evicts the least recently used above it. */
struct inputs *inputs_create(struct backend *be, int64_t budget_bytes);
void inputs_destroy(struct inputs *s); /* NULL is fine */
/* The limit above which both sets are one; of inputs made from now on. */
void inputs_set_limit(struct inputs *s, size_t one_set_bytes);
size_t inputs_limit(const struct inputs *s);
/* How much input_host keeps; INPUT_HOST_BYTES unless set. */
void inputs_set_host_limit(struct inputs *s, size_t bytes);

/* The input of tensor t of the cell at its point, made where it is not kept. Stays until inputs_unpin. NULL with *err. */
struct input *inputs_get(struct inputs *s, const struct cell *c, int t, const struct assay_shape *shape,
			 struct err *err);
void inputs_unpin(struct inputs *s);

/* The bytes of set 0 on the host, kept with the input for the cells after this one; valid until inputs_unpin. Where live is the only place they
 * are in, and something has changed it, *own is a copy for the caller to free, else NULL. NULL with *err. */
const void *input_host(struct inputs *s, struct input *in, void **own, struct err *err);

/* Makes live hold a set. Nothing to do where it does, unless force. */
bool input_load(struct inputs *s, struct input *in, int set, bool force, struct err *err);
/* Whether live still has the digest of the set it holds. */
bool input_intact(struct inputs *s, struct input *in, bool *intact, struct err *err);
/* Whether the masters still have their digests. One that has not was written to by an arm that writes outside of its tensors, and is filled
 * again; live is left alone. False with *err: lost, or the same bytes cannot be had again. */
bool input_heal(struct inputs *s, struct input *in, bool *whole, struct err *err);

#endif
