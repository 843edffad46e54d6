/* supervisor: how a worker is asked, for worker_ask.c. */
#ifndef ASSAY_SUPERVISOR_H
#define ASSAY_SUPERVISOR_H

#include "worker.h"

typedef void supervisor_tick(void *ctx, const char *phase, const char *arm, int round);

/* Asks and waits for the answer; timeout_ns without a sign of life kills the worker (0: never). Takes the reference of the request. */
void supervisor_ask(struct worker *w, json_t *request, int64_t timeout_ns, const volatile int *interrupted,
		    supervisor_tick *tick, void *ctx, struct worker_answer *out);
/* To start another one like it; borrowed. */
const struct worker_config *supervisor_config(const struct worker *w);

#endif
