/* decoy: what outputs and workspaces hold before a launch that is timed. An arm that finds its answer there, or what looks like a launch that
 * is looked at, could do less. So four things take turns, in an order drawn anew: NaN; one number of the answer, again and again; the whole
 * answer, moved along, so that each number is plausible and in a wrong place; and the answer itself but for a few holes. Whoever leaves out
 * what seems to be there already leaves a hole.
 *
 * An output whose answer cannot be copied on the device (none is known, or it is strided) holds a word everywhere. */
#ifndef ASSAY_DECOY_H
#define ASSAY_DECOY_H

#include <stdbool.h>
#include <stdint.h>

#include "check_cell.h"
#include "stage.h"

enum decoy_kind { DECOY_NAN, DECOY_NUMBER, DECOY_MOVED, DECOY_HOLES, DECOY_KINDS };
/* "NaN", "a number of its answer", "its answer, moved along", "its answer, with holes". */
const char *decoy_name(enum decoy_kind k);

struct decoy;
/* ev: the checked answers; borrowed, NULL: none are known. NULL with *err: out of memory, or the device is lost. */
struct decoy *decoy_create(struct stage *st, const struct evidence *ev, uint64_t seed, struct err *err);
void decoy_destroy(struct decoy *d); /* NULL is fine */

/* Fills the outputs and the workspaces that a launch of r would write to. An inout tensor is an input, and is left alone. *word: what the gaps
 * of strided outputs hold now. Queued, but for the last bytes of a tensor that is no multiple of four. */
bool decoy_put(struct decoy *d, struct ready *r, enum decoy_kind kind, uint32_t *word, struct err *err);

#endif
