/* faults: what the files of probe.faults share. */
#ifndef ASSAY_KERNELS_PROBE_FAULTS_H
#define ASSAY_KERNELS_PROBE_FAULTS_H

#include "assay/adapter.h"

enum { PROBE_FAULTS_TENSORS = 3 };

/* The output as it should be. */
void probe_faults_right(const struct assay_call *call);

/* Host arms of faults_end.c. */
extern const struct assay_arm_ops probe_faults_late, probe_faults_hang, probe_faults_crash, probe_faults_stack,
	probe_faults_exits, probe_faults_fails, probe_faults_fails_sometimes, probe_faults_stdout_noise,
	probe_faults_leaves_ftz;

/* Host arms of faults_leaves.c. */
extern const struct assay_arm_ops probe_faults_leaves_timer, probe_faults_leaves_omp, probe_faults_leaves_thread,
	probe_faults_leaves_signals, probe_faults_closes_files;

/* Host arms of faults_timed.c. */
extern const struct assay_arm_ops probe_faults_flips_timed, probe_faults_keeps_last, probe_faults_leaves_out,
	probe_faults_caches_part;

#endif
