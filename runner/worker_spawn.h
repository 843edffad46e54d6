/* worker_spawn: the same binary executed anew as a worker, with a socket and a shared beat. */
#ifndef ASSAY_WORKER_SPAWN_H
#define ASSAY_WORKER_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

#include "err.h"
#include "exec.h"
#include "worker.h"

/* A copy that owns its strings; freed by worker_config_free. False out of memory. */
bool worker_config_copy(const struct worker_config *from, struct worker_config *to);
void worker_config_free(struct worker_config *c);

/* Starts the process, with mark ("NAME=value") in its environment. *fd is this side of its socket (close-on-exec), *shared the beat, mapped; the caller closes and unmaps them,
 * also where it fails and they are set, and waits for *pid (0 where no process was started). */
bool worker_spawn(const struct worker_config *cfg, const char *mark, pid_t *pid, int *fd, struct exec_beat **shared,
		  struct err *err);

#endif
