/* attn_tiles: what all kernels of attn_gathered share: the launch, f32 in halves for the matrix units, gathered rows in shared memory,
 * the softmax of a head. Sections 2 and 3 of attn_gathered.cu's story. */
#ifndef ASSAY_KERNELS_ATTN_TILES_CUH
#define ASSAY_KERNELS_ATTN_TILES_CUH

#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>

#include "tf32.cuh"

namespace {

constexpr int THREADS = 256, WARPS = THREADS / 32;
constexpr int GROUP = 128;   /* slots of a softmax */
constexpr int HEADS = 64;    /* heads of a block */
constexpr int COLS = 64;     /* columns of a slab */
constexpr int LEAVES = 8;    /* slabs of a row, at most */
constexpr int CHUNKS = COLS / 4;
constexpr int ROW_LD = CHUNKS + 2; /* see section 3 */

struct attn {
	const float *q_lat; /* [t_q][n_head][kv_rank] */
	const float *q_pe;  /* [t_q][n_head][d_rope] */
	const float *cache; /* [kv][width] */
	const int *idx;     /* [t_q][n_slots] */
	float *out;         /* [t_q][n_head][kv_rank] */
	float *part;        /* [t_q][groups][n_head][kv_rank]: sum of weight * value, unscaled; plain: [t_q][n_head][n_slots] */
	float *most, *sum;  /* [t_q][groups][n_head]: maximum, and sum of the weights */
	int n_head, t_q, kv_rank, d_rope, width, n_slots, groups;
	int group_slots, longer; /* slots of a group, and how many of the first ones have one more */
	int blocks;              /* that share a group */
	float scale;
};

/* Slots j0 .. j1-1 of a group; never more than GROUP. */
__device__ __forceinline__ void group_slots(const attn &a, int group, int *j0, int *j1)
{
	*j0 = group * a.group_slots + min(group, a.longer);
	*j1 = min(a.n_slots, *j0 + a.group_slots + (group < a.longer));
}

__device__ __forceinline__ float4 plus(float4 a, float4 b)
{
	return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

/* v[0] + ... + v[N-1] as the tree ((0+1)+(2+3))+...; N is a power of two. */
template <int N> __device__ __forceinline__ float4 tree_sum(float4 (&v)[N])
{
#pragma unroll
	for (int n = 1; n < N; n *= 2)
#pragma unroll
		for (int r = 0; r < N; r += 2 * n)
			v[r] = plus(v[r], v[r + n]);
	return v[0];
}

/* ---- 3 tiles in shared memory -------------------------------------------------------------------------------------- */

/* Eight lanes are served together, 16 bytes each, and must hit the 8 groups of banks. Rows lie 18 chunks of 16 bytes apart, 2
 * groups on. As values, rows c = 0..3 and neighbouring chunks are read: 2 c + {0, 1}, all different. As keys, 4 neighbouring
 * chunks of two rows are: they are different if the rows are 2 apart, so row g of a matrix tile is row interleave(g) of the 8.
 * No address depends on more than a lane's constant. */
__device__ __forceinline__ int interleave(int g)
{
	return (g & 4) | (g & 1) << 1 | (g >> 1 & 1);
}

__device__ __forceinline__ void copy_16(float4 *dst, const float *src, bool in)
{
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((unsigned)__cvta_generic_to_shared(dst)), "l"(src),
	             "r"(in ? 16 : 0)
	             : "memory");
}

__device__ __forceinline__ void copies_commit()
{
	asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int PENDING> __device__ __forceinline__ void copies_wait()
{
	asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* Columns col .. col+n-1 (n <= 64, the rest zero) of the group's rows. */
__device__ __forceinline__ void fetch_rows(float4 (*rows)[ROW_LD], const float *const *row_at, int col, int n)
{
	const int chunk = threadIdx.x % CHUNKS, slot = threadIdx.x / CHUNKS;
	const bool in = 4 * chunk < n;
	col += in ? 4 * chunk : 0;
#pragma unroll
	for (int i = 0; i < GROUP; i += THREADS / CHUNKS)
		copy_16(&rows[slot + i][chunk], row_at[slot + i] + col, in);
}

/* A thread's scores of a tile: 8 tiles of 4. Which slots and heads they are is the unit's. */
struct score_tile {
	float v[GROUP * HEADS / THREADS];
};

__device__ __forceinline__ void add(score_tile &s, const score_tile &to)
{
#pragma unroll
	for (int i = 0; i < GROUP * HEADS / THREADS; i++)
		s.v[i] = to.v[i] + s.v[i];
}

/* Every thread's own values, out of the registers for a while: THREADS times as many floats. */
__device__ __forceinline__ void park(const score_tile &s, float *at)
{
#pragma unroll
	for (int i = 0; i < GROUP * HEADS / THREADS; i++)
		at[i * THREADS + threadIdx.x] = s.v[i];
}

__device__ __forceinline__ void add_parked(score_tile &s, const float *at)
{
#pragma unroll
	for (int i = 0; i < GROUP * HEADS / THREADS; i++)
		s.v[i] = at[i * THREADS + threadIdx.x] + s.v[i];
}

/* ---- 5 the softmax ------------------------------------------------------------------------------------------------- */

/* A head of a group by a warp: a lane's scores are of slots slot, slot + STEP, ...; they become weights. */
template <int STEP> __device__ __forceinline__ float4 head_weights(float4 v, int slot, int slots, float scale, float *most_out)
{
	v.x = slot < slots ? v.x * scale : -INFINITY;
	v.y = slot + STEP < slots ? v.y * scale : -INFINITY;
	v.z = slot + 2 * STEP < slots ? v.z * scale : -INFINITY;
	v.w = slot + 3 * STEP < slots ? v.w * scale : -INFINITY;
	float most = fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
#pragma unroll
	for (int m = 16; m > 0; m >>= 1)
		most = fmaxf(most, __shfl_xor_sync(~0u, most, m));
	*most_out = most;
	return make_float4(expf(v.x - most), expf(v.y - most), expf(v.z - most), expf(v.w - most));
}

__device__ __forceinline__ float head_sum(float4 v)
{
	float sum = (v.x + v.y) + (v.z + v.w);
#pragma unroll
	for (int m = 16; m > 0; m >>= 1)
		sum += __shfl_xor_sync(~0u, sum, m);
	return sum;
}

/* ---- a cluster --------------------------------------------------------------------------------------------------- */

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
__device__ __forceinline__ unsigned cluster_address(const float *p, int rank)
{
	unsigned remote;
	asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"((unsigned)__cvta_generic_to_shared(p)), "r"(rank));
	return remote;
}

__device__ __forceinline__ float4 cluster_load(const float *p, int rank)
{
	float4 v;
	asm volatile("ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [%4];"
	             : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
	             : "r"(cluster_address(p, rank))
	             : "memory");
	return v;
}

__device__ __forceinline__ void cluster_store(float *p, int rank, float4 v)
{
	asm volatile("st.shared::cluster.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(cluster_address(p, rank)), "f"(v.x), "f"(v.y),
	             "f"(v.z), "f"(v.w)
	             : "memory");
}

__device__ __forceinline__ void cluster_sync()
{
	asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
#else /* never called: hosts without clusters launch no kernel that would */
__device__ __forceinline__ float4 cluster_load(const float *p, int rank)
{
	return *(const float4 *)p;
}

__device__ __forceinline__ void cluster_store(float *p, int rank, float4 v)
{
}

__device__ __forceinline__ void cluster_sync()
{
}
#endif

/* The scores of a head, 4 slots a lane: the tree over the slabs is finished over the PEERS blocks that have parts of it. */
template <int PEERS> __device__ __forceinline__ float4 score_total(const float *at)
{
	if constexpr (PEERS == 1) {
		return *(const float4 *)at;
	} else {
		float4 v[PEERS];
#pragma unroll
		for (int r = 0; r < PEERS; r++)
			v[r] = cluster_load(at, r);
		return tree_sum(v);
	}
}

template <int PEERS> __device__ __forceinline__ void block_sync()
{
	if (PEERS > 1)
		cluster_sync();
	else
		__syncthreads();
}

/* ---- launches that follow ------------------------------------------------------------------------------------------ */

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

} // namespace

#endif
