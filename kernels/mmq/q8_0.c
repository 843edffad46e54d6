/* mmq.q8_0: the matrix-multiply floor kernel of a Q8_0 model, with the accumulator as its one free variable.
 *
 * Two arms read the same bytes. `s32` multiplies them as s8 and adds a block of 32 in s32; `f32` multiplies them as e4m3 and adds in
 * f32. Tiles, loaders, shared memory, launch and the f32 fold of a block into y are one template on the device, so
 * t(f32) / t(s32) is what the accumulator is worth, as far as the two matrix instructions issue at the same rate. They do
 * not everywhere: `form` says how each is executed on which architecture. `f32_bs` is a second control on sm_120a: the block-scale
 * form of the instruction, at identity scale.
 *
 * The arms compute different numbers by design, so no arm is compared with another; each has its own reference (reference.c).
 *
 * The device arms read the weights from a container of their own, wq and wd: the same values as w, packed outside of the clock, the same
 * for all arms. Blocks of 34 bytes begin at every second address, which no 16-byte load can use. */
#include "mmq.h"

static const char *f32_unsupported_on(enum assay_backend backend, int cc)
{
	return backend == ASSAY_CUDA && cc < 89 ? "e4m3 matrix instructions begin with sm_89" : NULL;
}

static const char *f32_bs_unsupported_on(enum assay_backend backend, int cc)
{
	return backend == ASSAY_CUDA && cc != 120 ? "the block-scale matrix instruction is sm_120a's" : NULL;
}

static const char *form(const struct assay_arm *arm, enum assay_backend backend, int cc)
{
	const enum mmq_arm which = arm->name[0] == 's' ? MMQ_S32 : arm->name[3] == '_' ? MMQ_F32_BS : MMQ_F32;
	if (backend == ASSAY_HOST)
		return which == MMQ_S32 ? "pairs of s16, multiplied and added in s32"
					: "e4m3 decoded to f32, fused multiply-add";
	if (which == MMQ_S32)
		return "mma.sync m16n8k32 s8, native (IMMA)";
	if (which == MMQ_F32_BS)
		return cc == 120 ? "mma.sync m16n8k32 e4m3, kind::mxf8f6f4 block scale 1, native (QMMA.SF)" : NULL;
	if (cc == 89)
		return "mma.sync m16n8k32 e4m3, native (QMMA)";
	if (cc == 120)
		return "mma.sync m16n8k32 e4m3, kind::f8f6f4, native (QMMA)";
	return cc >= 90 ? "mma.sync m16n8k32 e4m3, emulated: F2FP to f16 and two HMMA" : NULL;
}

static const char *issue_form(const struct assay_arm *arm, enum assay_backend backend, int cc)
{
	const bool s32 = arm->name[0] == 's', block_scale = arm->name[3] == '_';
	if (backend == ASSAY_HOST)
		return s32 ? "dot_s8" : "fma_e4m3";
	return s32 ? "mma_s8" : block_scale ? "mma_e4m3_bs" : "mma_e4m3";
}

static const struct assay_arm arms[] = {
	[MMQ_S32] = {.name = "s32",
		     .flags = ASSAY_ARM_SELECTABLE,
		     .doc = "bytes as s8, a block's sum in s32",
		     .ops = {&mmq_host_s32, MMQ_CUDA(mmq_q8_0_cuda_s32)}},
	[MMQ_F32] = {.name = "f32",
		     .doc = "bytes as e4m3, a block's sum in f32",
		     .ops = {&mmq_host_f32, MMQ_CUDA(mmq_q8_0_cuda_f32)},
		     .unsupported_on = f32_unsupported_on},
	[MMQ_F32_BS] =
		{.name = "f32_bs",
		 .doc = "bytes as e4m3, a block's sum in f32, by the block-scale instruction at scale 1 (sm_120a)",
		 .ops = {NULL, MMQ_CUDA(mmq_q8_0_cuda_f32_bs)},
		 .unsupported_on = f32_bs_unsupported_on},
};

const struct assay_kernel assay_kernel_mmq_q8_0 = {
	.abi = ASSAY_ABI,
	.name = "mmq.q8_0",
	.doc = "Q8_0 weights times quantised activations: what the accumulator of the matrix instruction is worth",
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
