/* baseline: the runs that others are held against. Two of each suite and device: `last`, the newest that was promoted, and `epoch`, which moves
 * only when it is told to, so that many small steps are seen as the one step that they add up to. */
#ifndef ASSAY_BASELINE_H
#define ASSAY_BASELINE_H

#include <stdbool.h>

#include "err.h"
#include "verdict.h"

struct baseline_paths {
	char last[1024], epoch[1024];
};

/* DIR/SUITE.DEVICE.last.jsonl and .epoch.jsonl for this header; they need not exist. False with *err where it names no suite or device. */
bool baseline_paths(const char *dir, const json_t *header, struct baseline_paths *out, struct err *err);
/* The same for the run in a file, and both are there. False with *err and what to do. */
bool baseline_find(const char *dir, const char *run_path, struct baseline_paths *out, struct err *err);
/* Every reason why a run cannot be a baseline, a sentence each, i = 0, 1, … until false. */
bool baseline_lack(const struct verdict_file *run, int i, char *out, size_t cap);

#endif
