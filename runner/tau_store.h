/* tau_store: what processes differ by on each device, measured here and kept between runs: one JSON file, a device by UUID. Pure of devices. */
#ifndef ASSAY_TAU_STORE_H
#define ASSAY_TAU_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "err.h"

/* The newest pairs a device that are kept; and how many there must be before they are believed. */
enum { TAU_STORE_KEPT = 512, TAU_STORE_LEAST = 16 };

struct tau_known {
	double tau; /* ln */
	int n; /* pairs of estimates it is from */
	bool known; /* n reaches TAU_STORE_LEAST; else tau is not to be used */
};

/* Where the store is: given, else $ASSAY_TAU_STORE, else $XDG_STATE_HOME/assay/tau.json, else ~/.local/state/assay/tau.json. False with *err
 * where none of them can be had. given may be NULL. */
bool tau_store_path(const char *given, char *out, size_t cap, struct err *err);
/* What the store knows of a device. No file, or nothing of this device: n = 0. False with *err: a file that is none of ours. */
bool tau_store_find(const char *path, const char *uuid, struct tau_known *out, struct err *err);
/* Adds n pairs: delta[i] is what the estimates of one cell in two processes of A against A differ by, se[i] the standard error of one of them (ln).
 * The file is locked meanwhile and replaced in one step; folders are made. *out (may be NULL): what is known then. */
bool tau_store_add(const char *path, const char *uuid, const char *device, const double *delta, const double *se, int n,
		   struct tau_known *out, struct err *err);

#endif
