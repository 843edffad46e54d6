/* The device arms of mla.attn_gathered: attention of a few tokens over gathered rows that all heads share (the story is
 * attn_gathered.c's).
 *
 * Two numbers first, at 64 heads, 2048 slots, rows of 512: a token reads 4.2 MB of rows and does 268 MFLOP, so eight tokens need
 * 8 us of a 4.3 TB/s memory and 32 us of a 67 TFLOP/s f32 unit. Arithmetic is the floor. The matrix units get below it: in
 * tf32 they have 11 bits, and a f32 number is the sum of two such numbers and a rest of 2^-22, so three products of
 * halves (the fourth is as small as the rest) give a product as good as f32 needs, at a third of several hundred TFLOP/s.
 *
 * The sections rise, each file an idea: 1 attn_plain.cuh, any shape, plainly. 2 tf32.cuh, a f32 product on matrix units. 3
 * attn_tiles.cuh, rows in shared memory so that both of their uses (key, value) read them without bank conflicts. 4 scores of a tile, 5 the
 * softmax by one block or by a cluster, 6 weights times values: once for mma.sync (attn_mma.cuh), which every chip has, and once for the
 * warpgroup products of sm_90a (attn_wgmma.cuh): there mma.sync gets two thirds of what the matrix units give, they get all of it.
 * 7 attn_block.cuh, the block over either unit. 8 attn_merge.cuh, the merge. 9 launchers, here.
 *
 * Why every launch gives the same bits. The slots of a token come in groups of 128, each with a maximum and a sum of its own,
 * merged in rising order: at any t_q, in any arm. The columns of a row come in slabs of 64. A score is a chain over the columns of a
 * slab, then the tree ((0+1)+(2+3))+((4+5)+(6+7)) over the slabs; an output is a chain over the slots of a group. `shipped`
 * gives a block all slabs of a group. `split=2,4,8` gives them to a cluster of so many blocks: each has the scores of its
 * own slabs, the tree is finished across the cluster, and each block sums its own columns; so neither rows nor scores are taken
 * twice. Groups of 128 times 2048 slots are 16 blocks a token: shipped fills the chip at eight tokens, split=8 at one, though there
 * the exchange in the cluster costs what the other half of the chip gains, and split=4 is faster. */
#include <math.h>
#include <stdlib.h>

#include "attn_block.cuh"
#include "attn_merge.cuh"
#include "attn_mma.cuh"
#include "attn_plain.cuh"
#include "attn_wgmma.cuh"
#include "launch.cuh"
#include "mla.h"

namespace {

/* ---- 9 launchers --------------------------------------------------------------------------------------------------- */

bool tiles_fit(const mla_attn_shape &s)
{
	return s.kv_rank % COLS == 0 && s.kv_rank <= LEAVES * COLS && s.d_rope % 4 == 0 && s.d_rope <= COLS &&
	       s.n_slots / GROUP + MLA_SPLIT_MAX < 65535; /* a grid's y */
}

/* Groups of shipped and split; of split_kv=N, N parts of no more than GROUP slots a group. */
int64_t groups_of(const mla_attn_shape &s, int64_t parts_kv)
{
	if (parts_kv == 0)
		return (s.n_slots + GROUP - 1) / GROUP;
	if (parts_kv > s.n_slots)
		parts_kv = s.n_slots;
	const int64_t longest = (s.n_slots + parts_kv - 1) / parts_kv;
	return parts_kv * ((longest + GROUP - 1) / GROUP);
}

size_t workspace_of(const mla_attn_shape &s, int64_t parts_kv)
{
	if (!tiles_fit(s))
		return (size_t)(s.t_q * s.n_head * (s.n_slots + 1)) * 4;
	return (size_t)(s.t_q * groups_of(s, parts_kv) * s.n_head * (s.kv_rank + 2)) * 4;
}

/* What plan() chose. */
struct choice {
	const char *symbol;
	const void *function;
	unsigned blocks; /* that share a group */
	bool cluster;
	bool early; /* the merge may be launched before the blocks have ended */
	size_t smem;
};

template <class UNIT, int PEERS, int STAGES, bool PARKED> choice choose(const char *symbol, unsigned blocks = PEERS)
{
	choice c;
	c.symbol = symbol;
	c.function = (const void *)attn_block<UNIT, PEERS, STAGES, PARKED>;
	c.blocks = blocks;
	c.cluster = PEERS > 1;
	c.early = false;
	c.smem = sizeof(block_shared<UNIT, PEERS, STAGES, UNIT::MORE && PARKED && PEERS == 1>);
	return c;
}

/* By what a block may have of shared memory: 181 KiB for two stages and a place for waiting pairs, 149 without it, 93. */
choice choose_mma(int64_t split, int room, bool clusters)
{
	const unsigned blocks = split < LEAVES ? (unsigned)split : LEAVES;
	if (clusters && split == 8)
		return choose<mma_unit, 8, 1, false>("attn_block<mma,8>");
	if (room >= 185344) {
		if (clusters && split == 4)
			return choose<mma_unit, 4, 2, false>("attn_block<mma,4,2>");
		if (clusters && split == 2)
			return choose<mma_unit, 2, 2, true>("attn_block<mma,2,2>");
		return choose<mma_unit, 1, 2, true>("attn_block<mma,1,2,parked>", blocks);
	}
	if (clusters && split == 4)
		return choose<mma_unit, 4, 1, false>("attn_block<mma,4,1>");
	if (clusters && split == 2)
		return choose<mma_unit, 2, 1, true>("attn_block<mma,2,1>");
	return room >= 152576 ? choose<mma_unit, 1, 2, false>("attn_block<mma,1,2>", blocks)
	                      : choose<mma_unit, 1, 1, false>("attn_block<mma,1,1>", blocks);
}

choice choose_wgmma(int64_t split)
{
	switch (split) {
	case 8: return choose<wgmma_unit, 8, 1, true>("attn_block<wgmma,8>");
	case 4: return choose<wgmma_unit, 4, 2, true>("attn_block<wgmma,4>");
	case 2: return choose<wgmma_unit, 2, 2, true>("attn_block<wgmma,2>");
	default: return choose<wgmma_unit, 1, 2, true>("attn_block<wgmma,1>", split < LEAVES ? (unsigned)split : LEAVES);
	}
}

int plan_arm(const assay_call *call, int64_t split, void **state)
{
	*state = NULL;
	if (!tiles_fit(mla_attn_of(call->point)))
		return 0;
	int room = 0, clusters = 0, cc = 0;
	struct cudaFuncAttributes wgmma = {};
	if (device_attribute(call, "attn_gathered", cudaDevAttrMaxSharedMemoryPerBlockOptin, &room) != 0 ||
	    device_attribute(call, "attn_gathered", cudaDevAttrComputeCapabilityMajor, &cc) != 0 ||
	    device_attribute(call, "attn_gathered", cudaDevAttrClusterLaunch, &clusters) != 0)
		return -1;
	/* Machine code without the unit takes no more than a warp. */
	if (cc == 9 && launch_check(call, cudaFuncGetAttributes(&wgmma, choose_wgmma(1).function), "attn_gathered") != 0)
		return -1;
	const choice c = wgmma.maxThreadsPerBlock >= THREADS ? choose_wgmma(split) : choose_mma(split, room, clusters != 0);
	if (launch_allow(call, c.symbol, c.function) != 0)
		return -1;
	choice *kept = (choice *)malloc(sizeof *kept);
	if (kept == NULL)
		return launch_check(call, cudaErrorMemoryAllocation, "attn_gathered");
	*kept = c;
	kept->early = clusters != 0; /* the same generation brought both */
	*state = kept;
	return 0;
}

attn unpack(const assay_call *call, const mla_attn_shape &s, int64_t parts_kv)
{
	attn a;
	a.q_lat = (const float *)call->tensor[MLA_ATTN_Q_LAT];
	a.q_pe = (const float *)call->tensor[MLA_ATTN_Q_PE];
	a.cache = (const float *)call->tensor[MLA_ATTN_CACHE];
	a.idx = (const int *)call->tensor[MLA_ATTN_IDX];
	a.out = (float *)call->tensor[MLA_ATTN_OUT];
	a.n_head = (int)s.n_head, a.t_q = (int)s.t_q, a.kv_rank = (int)s.kv_rank, a.d_rope = (int)s.d_rope;
	a.width = (int)s.width, a.n_slots = (int)s.n_slots, a.scale = s.scale;
	a.groups = (int)groups_of(s, parts_kv), a.blocks = 1;
	a.group_slots = parts_kv > 0 ? a.n_slots / a.groups : GROUP, a.longer = parts_kv > 0 ? a.n_slots % a.groups : 0;
	a.part = (float *)call->workspace;
	const int64_t rows = s.t_q * s.n_head;
	a.most = a.part + (tiles_fit(s) ? rows * a.groups * s.kv_rank : 0);
	a.sum = tiles_fit(s) ? a.most + rows * a.groups : a.part + rows * s.n_slots;
	return a;
}

int run_plain(const assay_call *call, attn a, int64_t parts)
{
	void *args[] = {&a};
	const unsigned h = (unsigned)a.n_head, t = (unsigned)a.t_q, p = (unsigned)(4 * parts);
	const unsigned columns = (unsigned)((a.kv_rank + THREADS - 1) / THREADS);
	return launch(call, "attn_plain_scores", (const void *)attn_plain_scores, dim3(p, h, t), dim3(THREADS), 0, args) != 0 ||
	                       launch(call, "attn_plain_softmax", (const void *)attn_plain_softmax, dim3(1, h, t), dim3(32), 0,
	                              args) != 0 ||
	                       launch(call, "attn_plain_gather", (const void *)attn_plain_gather,
	                              dim3(columns < p ? columns : p, h, t), dim3(THREADS), 0, args) != 0
	               ? -1
	               : 0;
}

int run_arm(const assay_call *call, void *state, int64_t split, int64_t parts_kv)
{
	const mla_attn_shape s = mla_attn_of(call->point);
	attn a = unpack(call, s, parts_kv);
	const choice *c = (const choice *)state;
	if (c == NULL)
		return run_plain(call, a, split > parts_kv ? split : parts_kv);
	a.blocks = (int)c->blocks;
	void *args[] = {&a};
	const unsigned head_blocks = (unsigned)((s.n_head + HEADS - 1) / HEADS);
	cudaLaunchConfig_t config = {};
	cudaLaunchAttribute cluster = {};
	config.gridDim = dim3(c->blocks * head_blocks, (unsigned)a.groups, (unsigned)s.t_q);
	config.blockDim = dim3(THREADS);
	config.dynamicSmemBytes = c->smem;
	config.stream = (cudaStream_t)call->stream;
	config.attrs = &cluster;
	config.numAttrs = c->cluster ? 1 : 0;
	cluster.id = cudaLaunchAttributeClusterDimension;
	cluster.val.clusterDim.x = c->blocks, cluster.val.clusterDim.y = 1, cluster.val.clusterDim.z = 1;
	launch_note(call, c->symbol, c->function, config.gridDim, config.blockDim, c->smem);
	if (launch_check(call, cudaLaunchKernelExC(&config, c->function, args), c->symbol) != 0)
		return -1;

	cudaLaunchAttribute early = {};
	early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
	early.val.programmaticStreamSerializationAllowed = 1;
	config.gridDim = dim3((unsigned)s.n_head, (unsigned)s.t_q, (unsigned)((s.kv_rank / 2 + MERGE_THREADS - 1) / MERGE_THREADS));
	config.blockDim = dim3(MERGE_THREADS);
	config.dynamicSmemBytes = 0;
	config.attrs = &early;
	config.numAttrs = c->early ? 1 : 0;
	launch_note(call, "attn_merge", (const void *)attn_merge, config.gridDim, config.blockDim, 0);
	return launch_check(call, cudaLaunchKernelExC(&config, (const void *)attn_merge, args), "attn_merge");
}

int plan_shipped(const assay_call *call, void **state)
{
	return plan_arm(call, 1, state);
}

int plan_split(const assay_call *call, void **state)
{
	return plan_arm(call, call->arm_arg, state);
}

int run_shipped(const assay_call *call, void *state)
{
	return run_arm(call, state, 1, 0);
}

int run_split(const assay_call *call, void *state)
{
	return run_arm(call, state, call->arm_arg, 0);
}

int run_split_kv(const assay_call *call, void *state)
{
	return run_arm(call, state, 1, call->arm_arg);
}

size_t workspace_split(const assay_point *p, int64_t arm_arg)
{
	return workspace_of(mla_attn_of(p), 0);
}

size_t workspace_split_kv(const assay_point *p, int64_t arm_arg)
{
	return workspace_of(mla_attn_of(p), arm_arg);
}

} // namespace

extern "C" {
extern const assay_arm_ops mla_attn_gathered_cuda_shipped = {plan_shipped, run_shipped, free, workspace_split, NULL};
extern const assay_arm_ops mla_attn_gathered_cuda_split = {plan_split, run_split, free, workspace_split, NULL};
extern const assay_arm_ops mla_attn_gathered_cuda_split_kv = {plan_shipped, run_split_kv, free, workspace_split_kv, NULL};
}
