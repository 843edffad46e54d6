/* fault: what a worker can still say when the CPU stops it at memory that it may not touch: whose fence it was (fence.h). */
#ifndef ASSAY_FAULT_H
#define ASSAY_FAULT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Lies in memory that the supervisor shares, so that it outlives the worker. */
struct fault_note {
	int32_t told; /* 0: there was none */
	int32_t sealed; /* it was memory that the harness had sealed */
	int32_t access; /* enum fault_access */
	char tensor[64]; /* empty: memory that has no name */
	int64_t offset, bytes; /* of the address from the start of the tensor; of the tensor */
};
enum fault_access { FAULT_TOUCHED, FAULT_READ, FAULT_WROTE };

/* From now on this process writes into *f where it was when SIGSEGV or SIGBUS came, and then ends as it would have ended. */
void fault_watch(struct fault_note *f);

/* "writes behind y, outside of its guards too: at byte 164000 of 4000". False: there is nothing to tell. *f may hold anything. */
bool fault_words(const struct fault_note *f, char *buf, size_t cap);
/* That as a `memory` finding of the arm, with its tensor and offset. Nothing is added where nothing is told. */
bool fault_finding(const struct fault_note *f, const char *arm, json_t *findings);

#endif
