/* The device arms of mla.attn_gathered: attention of a few tokens over gathered rows that all heads share (the story is
 * attn_gathered.c's).
 *
 * Two numbers first, at 64 heads, 2048 slots, rows of 512: a token reads 4.2 MB of rows and does 268 MFLOP, so eight tokens need
 * 8 us of a 4.3 TB/s memory and 32 us of a 67 TFLOP/s f32 unit. Arithmetic is the floor. The matrix units get below it: in
 * tf32 they have 11 bits, and a f32 number is the sum of two such numbers and a rest of 2^-22, so three products of
 * halves (the fourth is as small as the rest) give a product as good as f32 needs, at a third of several hundred TFLOP/s.
 *
 * The sections rise, and 2 to 6 are attn_tiles.cuh: 1 any shape, plainly. 2 a f32 product on matrix units. 3 a tile that lies in shared
 * memory so that both of its uses (key, value) read it without bank conflicts. 4 scores of a tile. 5 the softmax, by one block or by a
 * cluster. 6 weights times values. 7 the block. 8 the merge. 9 launchers.
 *
 * Why every launch gives the same bits. The slots of a token come in groups of 128, each with a maximum and a sum of its own,
 * merged in rising order: at any t_q, in any arm. The columns of a row come in slabs of 64. A score is a chain over the columns of a
 * slab, then the tree ((0+1)+(2+3))+((4+5)+(6+7)) over the slabs; an output is a chain over the slots of a group. `shipped`
 * gives a block all slabs of a group. `split=2,4,8` gives them to a cluster of so many blocks: each has the scores of its
 * own slabs, the tree is finished across the cluster, and each block sums its own columns; so neither rows nor scores are taken
 * twice. Groups of 128 times 2048 slots are 16 blocks a token: shipped fills the chip at eight tokens, split=8 at one. */
#include <math.h>
#include <stdlib.h>

#include "attn_tiles.cuh"
#include "launch.cuh"
#include "mla.h"

namespace {

constexpr int LEAVES = 8;  /* slabs of a row, at most */
constexpr int LEAF_UNROLL = 2; /* slabs a turn, so that the tree's moves vanish */
constexpr int MERGE_THREADS = 128;
/* Steps of 16 slots a turn where two blocks share a multiprocessor's registers. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr int FEW_STEPS = 1;
#else
constexpr int FEW_STEPS = 2;
#endif

/* ---- 1 any shape, plainly ------------------------------------------------------------------------------------------ */

/* For shapes that the tiles below do not fit. Three launches: scores, softmax, sum; each element is one chain, so blocks may be
 * divided at will. Grid: (parts, n_head, t_q). */
__global__ void __launch_bounds__(THREADS) attn_plain_scores(attn a)
{
	const int lane = threadIdx.x % 32, h = blockIdx.y;
	const int64_t th = (int64_t)blockIdx.z * a.n_head + h;
	const float *q = a.q_lat + th * a.kv_rank, *pe = a.q_pe + th * a.d_rope;
	for (int j = blockIdx.x * WARPS + threadIdx.x / 32; j < a.n_slots; j += gridDim.x * WARPS) {
		const float *row = a.cache + (int64_t)a.idx[(int64_t)blockIdx.z * a.n_slots + j] * a.width;
		float dot = 0;
		for (int k = lane; k < a.kv_rank; k += 32)
			dot = fmaf(q[k], row[k], dot);
		for (int k = lane; k < a.d_rope; k += 32)
			dot = fmaf(pe[k], row[a.kv_rank + k], dot);
		for (int m = 16; m > 0; m >>= 1)
			dot += __shfl_xor_sync(~0u, dot, m);
		if (lane == 0)
			a.part[th * a.n_slots + j] = dot * a.scale;
	}
}

/* A warp a row; grid: (1, n_head, t_q), one warp a block. */
__global__ void __launch_bounds__(32) attn_plain_softmax(attn a)
{
	const int lane = threadIdx.x;
	const int64_t th = (int64_t)blockIdx.z * a.n_head + blockIdx.y;
	float *s = a.part + th * a.n_slots, most = -INFINITY, sum = 0;
	for (int j = lane; j < a.n_slots; j += 32)
		most = fmaxf(most, s[j]);
	for (int m = 16; m > 0; m >>= 1)
		most = fmaxf(most, __shfl_xor_sync(~0u, most, m));
	for (int j = lane; j < a.n_slots; j += 32) {
		s[j] = expf(s[j] - most);
		sum += s[j];
	}
	for (int m = 16; m > 0; m >>= 1)
		sum += __shfl_xor_sync(~0u, sum, m);
	if (lane == 0)
		a.sum[th] = sum;
}

/* A column a thread. Sixteen chains of every sixteenth slot, for accuracy and to have loads in flight. */
__global__ void __launch_bounds__(THREADS) attn_plain_gather(attn a)
{
	const int64_t th = (int64_t)blockIdx.z * a.n_head + blockIdx.y;
	const float *p = a.part + th * a.n_slots;
	const int *idx = a.idx + (int64_t)blockIdx.z * a.n_slots;
	for (int r = blockIdx.x * THREADS + threadIdx.x; r < a.kv_rank; r += gridDim.x * THREADS) {
		float acc[16] = {};
		for (int j = 0; j < a.n_slots; j += 16)
#pragma unroll
			for (int i = 0; i < 16; i++)
				if (j + i < a.n_slots)
					acc[i] = fmaf(p[j + i], a.cache[(int64_t)idx[j + i] * a.width + r], acc[i]);
#pragma unroll
		for (int n = 8; n > 0; n >>= 1)
#pragma unroll
			for (int i = 0; i < n; i++)
				acc[i] += acc[i + n];
		a.out[th * a.kv_rank + r] = acc[0] / a.sum[th];
	}
}

/* ---- 7 the block --------------------------------------------------------------------------------------------------- */

/* The merge is queued behind the blocks with leave to start early: its blocks take their places while the last values are summed,
 * and wait here for all that came before to be done and visible. */
__device__ __forceinline__ void may_follow()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

__device__ __forceinline__ void wait_for_predecessor()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Grid: (blocks that share a group, groups * blocks of heads, t_q). LOCAL: slabs that this block has the scores of. With PEERS > 1
 * the x blocks are a cluster and PEERS * LOCAL = LEAVES; with PEERS = 1 each block has all scores, and all columns
 * or (without clusters) its part of them. A slab is fetched into stage `slab % STAGES`; values go through the slabs
 * backwards, so that the last ones are still there. */
template <int LOCAL, int PEERS, int STAGES, bool PARKED>
__global__ void __launch_bounds__(THREADS, LOCAL == 1 ? 2 : 1) attn_block(attn a)
{
	extern __shared__ float4 shared[];
	stage *stages = (stage *)shared;
	float *score = (float *)(stages + STAGES);
	const float **row_at = (const float **)(score + HEADS * SCORE_LD);
	float *parked = LOCAL > 4 ? (float *)(row_at + GROUP) : score;

	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, part = blockIdx.x, t = blockIdx.z;
	const int group = blockIdx.y % a.groups, head0 = blockIdx.y / a.groups * HEADS;
	const int heads = min(HEADS, a.n_head - head0), leaves = a.kv_rank / COLS;
	int j0, j1;
	group_slots(a, group, &j0, &j1);
	const int slots = j1 - j0;

	if (threadIdx.x < GROUP) /* past the last slot the first row: finite, and its weight will be zero */
		row_at[threadIdx.x] =
			a.cache + (int64_t)a.idx[(int64_t)t * a.n_slots + j0 + (threadIdx.x < slots ? threadIdx.x : 0)] * a.width;
	__syncthreads();

	/* Items of the score loop: the position columns if they are here, then the slabs. */
	const int leaf0 = PEERS > 1 ? part * LOCAL : 0, n_leaves = max(0, min(LOCAL, leaves - leaf0));
	const int rope = a.d_rope > 0 && leaf0 == 0 ? 1 : 0, items = rope + n_leaves;
	const int64_t th = (int64_t)t * a.n_head + head0;
	auto fetch = [&](int item, bool with_query) {
		if (item < items) {
			stage &s = stages[item % STAGES];
			const bool position = item < rope;
			const int col = position ? a.kv_rank : (leaf0 + item - rope) * COLS, n = position ? a.d_rope : COLS;
			fetch_rows(s, row_at, col, n);
			if (with_query && position)
				fetch_query(s, a.q_pe + th * a.d_rope, a.d_rope, heads, 0, n);
			else if (with_query)
				fetch_query(s, a.q_lat + th * a.kv_rank, a.kv_rank, heads, col, n);
		}
		copies_commit();
	};
#pragma unroll
	for (int i = 0; i < STAGES; i++)
		fetch(i, true);

	/* The tree: a slab waits in registers, a pair and a half of all in shared memory where there is room. The chain of the first slab
	 * begins with the position columns. */
	score_tile s, slab, pair;
	int item = 0;
#pragma unroll LEAF_UNROLL
	for (int i = 0; i < LOCAL; i++) {
		sum_tile acc[2][SCORE_N] = {};
		const int end = min(items, rope + i + 1);
#pragma unroll 1
		for (; item < end; item++) {
			copies_wait<STAGES - 1>();
			__syncthreads();
			scores<LOCAL == 1 ? 1 : 4>(stages[item % STAGES], warp, lane, acc);
			if (item + STAGES < items) /* else the stage keeps its rows, for the values */
				__syncthreads();
			fetch(item + STAGES, true);
		}
		finish(acc, s);
		if (LOCAL > 1) {
			if (i % 2 == 0) {
				slab = s;
				continue;
			}
			add(s, slab);
		}
		if (LOCAL > 2) {
			if (i % 4 == 1) {
				PARKED ? park(s, parked) : (void)(pair = s);
				continue;
			}
			PARKED ? add_parked(s, parked) : add(s, pair);
		}
		if (LOCAL > 4) {
			if (i == 3) {
				park(s, score);
				continue;
			}
			add_parked(s, score);
		}
	}
	if (LOCAL > 2)
		__syncthreads(); /* what was parked in the place of the scores was read */
	scores_store(s, warp, lane, score);

	float *most = a.most + ((int64_t)t * a.groups + group) * a.n_head + head0;
	float *sum = a.sum + ((int64_t)t * a.groups + group) * a.n_head + head0;
	if (PEERS > 1)
		cluster_sync();
	else
		__syncthreads();
	softmax<PEERS>(a, score, PEERS > 1 ? part : 0, slots, part == 0 || PEERS > 1 ? heads : 0, most, sum);
	if (PEERS > 1)
		cluster_sync();
	else
		__syncthreads();

	may_follow();

	/* Own columns: all of the slabs above, or a part of them. Items that are no longer (or not) in their stage are fetched. */
	const int own0 = PEERS > 1 ? 0 : leaves * part / (int)gridDim.x;
	const int own1 = PEERS > 1 ? n_leaves : leaves * (part + 1) / (int)gridDim.x;
	float *out = a.part + (((int64_t)t * a.groups + group) * a.n_head + head0) * a.kv_rank;
	if (own1 < n_leaves) { /* not the last ones: none of the kept ones is wanted first */
#pragma unroll
		for (int i = 0; i < STAGES; i++)
			if (own1 - 1 - i >= own0)
				fetch(rope + own1 - 1 - i, false);
			else
				copies_commit();
	}
#pragma unroll 1
	for (int leaf = own1 - 1; leaf >= own0; leaf--) {
		copies_wait<STAGES - 1>();
		__syncthreads();
		values<LOCAL == 1 ? FEW_STEPS : 4>(stages[(rope + leaf) % STAGES], score, warp, lane, slots, heads, out + (leaf0 + leaf) * COLS, a.kv_rank);
		if (leaf - STAGES >= own0) {
			__syncthreads();
			fetch(rope + leaf - STAGES, false);
		} else {
			copies_commit();
		}
	}
}

/* ---- 8 the merge --------------------------------------------------------------------------------------------------- */

constexpr int AHEAD = 16;

__device__ __forceinline__ void merge_in(float4 &x, float &total, float weight, float sum, const float4 &part)
{
	total = fmaf(weight, sum, total);
	x.x = fmaf(weight, part.x, x.x), x.y = fmaf(weight, part.y, x.y);
	x.z = fmaf(weight, part.z, x.z), x.w = fmaf(weight, part.w, x.w);
}

/* A row (t, head) a block, 4 columns a thread; groups in rising order. Small code: behind a scrub, code comes from memory too. */
__global__ void __launch_bounds__(MERGE_THREADS) attn_merge(attn a)
{
	__shared__ float weight[MERGE_THREADS], sum[MERGE_THREADS], warp_most[MERGE_THREADS / 32];
	const int64_t row0 = (int64_t)blockIdx.y * a.groups * a.n_head + blockIdx.x;
	const int r = 4 * (blockIdx.z * MERGE_THREADS + threadIdx.x);
	wait_for_predecessor();

	/* All that the first groups need is asked for at once: their parts, and a group's maximum and sum by a thread each. */
	const float *at = a.part + row0 * a.kv_rank + (r < a.kv_rank ? r : 0);
	const int64_t step = (int64_t)a.n_head * a.kv_rank;
	float own_most = -INFINITY, own_sum = 0;
	float4 part[AHEAD];
	if (threadIdx.x < a.groups) {
		own_most = a.most[row0 + (int64_t)threadIdx.x * a.n_head];
		own_sum = a.sum[row0 + (int64_t)threadIdx.x * a.n_head];
	}
#pragma unroll
	for (int i = 0; i < AHEAD; i++)
		part[i] = i < a.groups ? *(const float4 *)(at + i * step) : make_float4(0, 0, 0, 0);

	float most = own_most;
	for (int g = threadIdx.x + MERGE_THREADS; g < a.groups; g += MERGE_THREADS)
		most = fmaxf(most, a.most[row0 + (int64_t)g * a.n_head]);
	for (int m = 16; m > 0; m >>= 1)
		most = fmaxf(most, __shfl_xor_sync(~0u, most, m));
	if (threadIdx.x % 32 == 0)
		warp_most[threadIdx.x / 32] = most;
	__syncthreads();
	for (int w = 0; w < MERGE_THREADS / 32; w++)
		most = fmaxf(most, warp_most[w]);

	float4 x = make_float4(0, 0, 0, 0);
	float total = 0;
	for (int g0 = 0; g0 < a.groups; g0 += MERGE_THREADS) {
		const int g = g0 + threadIdx.x, n = min(MERGE_THREADS, a.groups - g0);
		if (g0 > 0) {
			__syncthreads(); /* the weights before were used */
			own_most = g < a.groups ? a.most[row0 + (int64_t)g * a.n_head] : -INFINITY;
			own_sum = g < a.groups ? a.sum[row0 + (int64_t)g * a.n_head] : 0;
		}
		weight[threadIdx.x] = expf(own_most - most);
		sum[threadIdx.x] = own_sum;
		__syncthreads();
		int i = 0;
		if (g0 == 0) {
#pragma unroll
			for (; i < AHEAD; i++) /* past the last group: weight, sum and part are 0 */
				merge_in(x, total, weight[i], sum[i], part[i]);
		}
		for (; i < n; i++)
			merge_in(x, total, weight[i], sum[i], *(const float4 *)(at + (int64_t)(g0 + i) * step));
	}
	const float inverse = 1 / total;
	if (r < a.kv_rank)
		*(float4 *)(a.out + ((int64_t)blockIdx.y * a.n_head + blockIdx.x) * a.kv_rank + r) =
			make_float4(x.x * inverse, x.y * inverse, x.z * inverse, x.w * inverse);
}

/* ---- 9 launchers --------------------------------------------------------------------------------------------------- */

bool tiles_fit(const mla_attn_shape &s)
{
	const int64_t groups = s.n_slots / GROUP + MLA_SPLIT_MAX + 1, head_blocks = (s.n_head + HEADS - 1) / HEADS;
	return s.kv_rank % COLS == 0 && s.kv_rank <= LEAVES * COLS && s.d_rope % 4 == 0 && s.d_rope <= COLS &&
	       groups * head_blocks <= 65535; /* a grid's y */
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

template <int LOCAL, int PEERS, int STAGES, bool PARKED> choice choose(const char *symbol, unsigned blocks)
{
	choice c;
	c.symbol = symbol;
	c.function = (const void *)attn_block<LOCAL, PEERS, STAGES, PARKED>;
	c.blocks = blocks;
	c.cluster = PEERS > 1;
	c.early = false;
	c.smem = STAGES * sizeof(stage) + HEADS * SCORE_LD * 4 + GROUP * sizeof(float *) +
	         (PARKED && LOCAL > 4 ? sizeof(score_tile) * THREADS : 0);
	return c;
}

/* By what a block may have of shared memory: 181 KiB for two stages and a place for waiting pairs, 149 without it, 93. */
choice choose_arm(int64_t split, int room, bool clusters)
{
	const unsigned blocks = split < LEAVES ? (unsigned)split : LEAVES;
	if (clusters && split == 8)
		return choose<1, 8, 1, false>("attn_block<1,8,1>", 8);
	if (room >= 185344) {
		if (clusters && split == 4)
			return choose<2, 4, 2, false>("attn_block<2,4,2>", 4);
		if (clusters && split == 2)
			return choose<4, 2, 2, true>("attn_block<4,2,2>", 2);
		return choose<8, 1, 2, true>("attn_block<8,1,2,parked>", blocks);
	}
	if (clusters && split == 4)
		return choose<2, 4, 1, false>("attn_block<2,4,1>", 4);
	if (clusters && split == 2)
		return choose<4, 2, 1, true>("attn_block<4,2,1>", 2);
	return room >= 152576 ? choose<8, 1, 2, false>("attn_block<8,1,2>", blocks)
	                      : choose<8, 1, 1, false>("attn_block<8,1,1>", blocks);
}

int plan_arm(const assay_call *call, int64_t split, void **state)
{
	*state = NULL;
	if (!tiles_fit(mla_attn_of(call->point)))
		return 0;
	int device = 0, room = 0, clusters = 0;
	if (launch_check(call, cudaGetDevice(&device), "attn_gathered") != 0 ||
	    launch_check(call, cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "attn_gathered") != 0 ||
	    launch_check(call, cudaDeviceGetAttribute(&clusters, cudaDevAttrClusterLaunch, device), "attn_gathered") != 0)
		return -1;
	const choice c = choose_arm(split, room, clusters != 0);
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
	a.groups = (int)groups_of(s, parts_kv), a.even = parts_kv > 0;
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
	void *args[] = {&a};
	const unsigned head_blocks = (unsigned)((s.n_head + HEADS - 1) / HEADS);
	cudaLaunchConfig_t config = {};
	cudaLaunchAttribute cluster = {};
	config.gridDim = dim3(c->blocks, (unsigned)a.groups * head_blocks, (unsigned)s.t_q);
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
	config.gridDim = dim3((unsigned)s.n_head, (unsigned)s.t_q, (unsigned)((s.kv_rank / 4 + MERGE_THREADS - 1) / MERGE_THREADS));
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
