/* probe: names of the device arms of the probe kernels, defined in the .cu files. */
#ifndef ASSAY_KERNELS_PROBE_H
#define ASSAY_KERNELS_PROBE_H

#include "assay/adapter.h"

/* PROBE_CUDA(x): the device arm x, or NULL in a build without CUDA. */
#ifdef ASSAY_WITH_CUDA
#ifdef __cplusplus
extern "C" {
#endif
extern const struct assay_arm_ops probe_null_cuda_shipped, probe_work_cuda_shipped, probe_work_cuda_more;
extern const struct assay_arm_ops probe_inout_cuda_shipped, probe_inout_cuda_split, probe_inout_cuda_accumulates;
extern const struct assay_arm_ops probe_faults_cuda_shipped, probe_faults_cuda_split, probe_faults_cuda_nothing,
	probe_faults_cuda_ulp, probe_faults_cuda_unwritten_tail, probe_faults_cuda_nan, probe_faults_cuda_overrun,
	probe_faults_cuda_underrun, probe_faults_cuda_over_read, probe_faults_cuda_changes_input,
	probe_faults_cuda_racy, probe_faults_cuda_slow, probe_faults_cuda_late, probe_faults_cuda_hang,
	probe_faults_cuda_crash, probe_faults_cuda_asserts, probe_faults_cuda_fails, probe_faults_cuda_flip_bit,
	probe_faults_cuda_zero_rows, probe_faults_cuda_inf, probe_faults_cuda_over_read_max, probe_faults_cuda_caches,
	probe_faults_cuda_drifts, probe_faults_cuda_batch, probe_faults_cuda_position, probe_faults_cuda_neighbours,
	probe_faults_cuda_exits, probe_faults_cuda_fails_sometimes, probe_faults_cuda_stdout_noise;
extern const struct assay_arm_ops probe_rate_cuda_mma_s8, probe_rate_cuda_mma_e4m3, probe_rate_cuda_mma_e4m3_bs,
	probe_rate_cuda_wgmma_s8, probe_rate_cuda_wgmma_e4m3;
#ifdef __cplusplus
}
#endif
#define PROBE_CUDA(ops) (&(ops))
#else
#define PROBE_CUDA(ops) NULL
#endif

#endif
