/* stats_cuts: the cuts as tables. Only stats.c looks in here; others ask stats_look_cut and stats_fixed_cut_at. */
#ifndef ASSAY_STATS_CUTS_H
#define ASSAY_STATS_CUTS_H

#include <stdint.h>

#include "stats.h"

enum { STATS_N_ALPHAS = 5 }; /* 0.05 0.025 0.01 0.005 0.001 */

extern const int32_t stats_cuts[STATS_N_ALPHAS][STATS_MAX_ROUNDS + 1];

#endif
