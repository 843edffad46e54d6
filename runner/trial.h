/* trial: something is done in a child process first, so that code that is not ours (constructors and hooks of a plugin) can end, crash or
 * hang there and not here. What the child does to memory is lost with it. */
#ifndef ASSAY_TRIAL_H
#define ASSAY_TRIAL_H

#include <stdint.h>

#include "registry.h"

typedef bool trial_fn(void *ctx, struct err *err);

/* Runs fn in a child, which reads and prints nothing (the three standard files lead nowhere) and has limit_ns for it. True: it came back with true. False: it
 * came back with false and its *err, or did not come back, and *err says how it ended: "ended the process with status 0", "died of signal
 * 11 (Segmentation fault)", "did not come back within 20 s". */
bool trial_run(trial_fn *fn, void *ctx, int64_t limit_ns, struct err *err);

/* registry_load_plugin, tried in a child before. *err names the plugin. Not for workers: those are children already. */
bool trial_plugin(struct registry *r, const char *path, struct err *err);

/* Whatever calls hooks of plugins (loading suites, planning): it is done in a child first, with its output thrown away. fn returns true; what
 * counts is that it comes back. With n_plugins 0 nothing is tried: true. *err names the plugins. */
bool trial_hooks(trial_fn *fn, void *ctx, const char *const *plugin, int n_plugins, struct err *err);

#endif
