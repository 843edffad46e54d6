/* mmq.q8_0_wgmma: the question of mmq.q8_0, asked of Hopper's own matrix instructions.
 *
 * On sm_90 the e4m3 form of mma.sync is emulated, so the pair of mmq.q8_0 cannot answer there. wgmma has both forms in hardware: `s32` is
 * IGMMA, `f32` is QGMMA, of one shape. Tiles, loaders (bulk copies), pipeline and the fold of scales every 32 k are one template. What differs beside the instruction is the conversion of a block's sum, s32 to f32.
 *
 * Both arms read the weights from wq and wd (operands.c), as those of mmq.q8_0 do. On the host the arms are those of mmq.q8_0. */
#include "mmq.h"

static const char *unsupported_on(enum assay_backend backend, int cc)
{
	return backend == ASSAY_CUDA && cc != 90 ? "wgmma is sm_90a's" : NULL;
}

static const char *form(const struct assay_arm *arm, enum assay_backend backend, int cc)
{
	const bool s32 = arm->name[0] == 's';
	if (backend == ASSAY_HOST)
		return s32 ? "pairs of s16, multiplied and added in s32" : "e4m3 decoded to f32, fused multiply-add";
	if (cc != 90)
		return NULL;
	return s32 ? "wgmma m64n64k32 s8, native (IGMMA)"
		   : "wgmma m64n64k32 e4m3, native (QGMMA; its adder keeps about 13 fractional bits)";
}

static const char *issue_form(const struct assay_arm *arm, enum assay_backend backend, int cc)
{
	const bool s32 = arm->name[0] == 's';
	if (backend == ASSAY_HOST)
		return s32 ? "dot_s8" : "fma_e4m3";
	return s32 ? "wgmma_s8" : "wgmma_e4m3";
}

static const struct assay_arm arms[] = {
	[MMQ_S32] = {.name = "s32",
		     .flags = ASSAY_ARM_SELECTABLE,
		     .doc = "bytes as s8, a block's sum in s32",
		     .ops = {&mmq_host_s32, MMQ_CUDA(mmq_q8_0_wgmma_cuda_s32)},
		     .unsupported_on = unsupported_on},
	[MMQ_F32] = {.name = "f32",
		     .doc = "bytes as e4m3, a block's sum in f32",
		     .ops = {&mmq_host_f32, MMQ_CUDA(mmq_q8_0_wgmma_cuda_f32)},
		     .unsupported_on = unsupported_on},
};

const struct assay_kernel assay_kernel_mmq_q8_0_wgmma = {
	.abi = ASSAY_ABI,
	.name = "mmq.q8_0_wgmma",
	.doc = "mmq.q8_0 by Hopper's warpgroup instructions, which have both accumulators in hardware",
	.params = mmq_params,
	.n_params = MMQ_PARAMS,
	.tensors = mmq_tensors,
	.n_tensors = MMQ_TENSORS,
	.arms = arms,
	.n_arms = sizeof arms / sizeof *arms,
	.shape = mmq_tensor_shape,
	.work = mmq_work,
	.reference = mmq_reference,
	.row_rank = 1,
	.reference_per_arm = true,
	.form = form,
	.issue_form = issue_form,
};
