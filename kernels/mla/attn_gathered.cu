/* The device arms of mla.attn_gathered: attention of a few tokens over gathered rows that all heads share (the story is
 * attn_gathered.c's).
 *
 * Two numbers first, at 64 heads, 2048 slots, rows of 512: a token reads 4.2 MB of rows and does 268 MFLOP, so eight tokens need
 * 8 us of a 4.3 TB/s memory and 32 us of a 67 TFLOP/s f32 unit. Arithmetic is the floor. The matrix units get below it: in
 * tf32 they have 11 bits, and a f32 number is the sum of two such numbers and a rest of 2^-22, so three products of
 * halves (the fourth is as small as the rest) give a product as good as f32 needs, at a third of several hundred TFLOP/s.
 *
 * The sections rise: 1 any shape, plainly. 2 a f32 product on matrix units. 3 a tile that lies in shared memory so that both of its
 * uses (key, value) read it without bank conflicts. 4 scores of a tile. 5 the softmax, by one block or by a cluster. 6 weights
 * times values. 7 the block. 8 the merge. 9 launchers.
 *
 * Why every launch gives the same bits. The slots of a token come in groups of 128, each with a maximum and a sum of its own,
 * merged in rising order: at any t_q, in any arm. The columns of a row come in slabs of 64. A score is a chain over the columns of a
 * slab, then the tree ((0+1)+(2+3))+((4+5)+(6+7)) over the slabs; an output is a chain over the slots of a group. `shipped`
 * gives a block all slabs of a group. `split=2,4,8` gives them to a cluster of so many blocks: each has the scores of its
 * own slabs, the tree is finished across the cluster, and each block sums its own columns; so neither rows nor scores are taken
 * twice. Groups of 128 times 2048 slots are 16 blocks a token: shipped fills the chip at eight tokens, split=8 at one. */
#include <math.h>
#include <stdlib.h>

#include "launch.cuh"
#include "mla.h"

namespace {

constexpr int THREADS = 256, WARPS = THREADS / 32;
constexpr int GROUP = 128; /* slots of a softmax */
constexpr int HEADS = 64;  /* heads of a block */
constexpr int COLS = 64;   /* columns of a slab */
constexpr int LEAVES = 8;  /* slabs of a row, at most */
constexpr int LEAF_UNROLL = 2; /* slabs a turn, so that the tree's moves vanish */
constexpr int MERGE_THREADS = 128;
constexpr int CHUNKS = COLS / 4;
constexpr int SCORE_N = 4; /* tiles of 8 heads that a warp has: of scores */
constexpr int VALUE_N = 2; /* and of values */
constexpr int ROW_LD = CHUNKS + 2, QUERY_LD = CHUNKS + 4, SCORE_LD = GROUP + 8; /* see section 3 */

struct attn {
	const float *q_lat; /* [t_q][n_head][kv_rank] */
	const float *q_pe;  /* [t_q][n_head][d_rope] */
	const float *cache; /* [kv][width] */
	const int *idx;     /* [t_q][n_slots] */
	float *out;         /* [t_q][n_head][kv_rank] */
	float *part;        /* [t_q][groups][n_head][kv_rank]: sum of weight * value, unscaled; plain: [t_q][n_head][n_slots] */
	float *most, *sum;  /* [t_q][groups][n_head]: maximum, and sum of the weights */
	int n_head, t_q, kv_rank, d_rope, width, n_slots, groups;
	int even;           /* groups divide the slots evenly (split_kv); else they are GROUP long */
	float scale;
};

/* Slots j0 .. j1-1 of a group; never more than GROUP. */
__device__ __forceinline__ void group_slots(const attn &a, int group, int *j0, int *j1)
{
	*j0 = a.even ? (int)((int64_t)a.n_slots * group / a.groups) : group * GROUP;
	*j1 = a.even ? (int)((int64_t)a.n_slots * (group + 1) / a.groups) : min(a.n_slots, (group + 1) * GROUP);
}

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

/* ---- 2 a f32 product on matrix units ------------------------------------------------------------------------------- */

/* x = high + low + rest, both with 11 bits, |rest| <= 2^-22 |x|. The unit itself drops the 13 bits under them. */
struct halves {
	unsigned high, low;
};

__device__ __forceinline__ halves split_f32(float x)
{
	halves s;
	s.high = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
	s.low = __float_as_uint(x - __uint_as_float(s.high));
	return s;
}

/* d += a b of a 16 x 8 and an 8 x 8 tile. With g = lane / 4, c = lane % 4 a lane holds
 * a: (g, c) (g+8, c) (g, c+4) (g+8, c+4)   b: (c, g) (c+4, g)   d: (g, 2c) (g, 2c+1) (g+8, 2c) (g+8, 2c+1) */
__device__ __forceinline__ void mma(float (&d)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1)
{
	asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
	    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
	    : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/* The small products have a sum of their own: it keeps the truncations of the unit's adder off them, and halves the chain. */
struct sum_tile {
	float large[4], small[4];
};

/* M x N tiles at once, in three sweeps: a sum that is used again is N * M instructions old. */
template <int M, int N>
__device__ __forceinline__ void mma_f32(sum_tile (&d)[M][N], const halves (&a)[M][4], const halves (&b)[N][2])
{
#pragma unroll
	for (int m = 0; m < M; m++)
#pragma unroll
		for (int n = 0; n < N; n++)
			mma(d[m][n].small, a[m][0].low, a[m][1].low, a[m][2].low, a[m][3].low, b[n][0].high, b[n][1].high);
#pragma unroll
	for (int m = 0; m < M; m++)
#pragma unroll
		for (int n = 0; n < N; n++)
			mma(d[m][n].large, a[m][0].high, a[m][1].high, a[m][2].high, a[m][3].high, b[n][0].high, b[n][1].high);
#pragma unroll
	for (int m = 0; m < M; m++)
#pragma unroll
		for (int n = 0; n < N; n++)
			mma(d[m][n].small, a[m][0].high, a[m][1].high, a[m][2].high, a[m][3].high, b[n][0].low, b[n][1].low);
}

/* ---- 3 tiles in shared memory -------------------------------------------------------------------------------------- */

/* Eight lanes are served together, 16 bytes each, and must hit the 8 groups of banks. Rows lie 18 chunks of 16 bytes apart, 2
 * groups on. As values, rows c = 0..3 and neighbouring chunks are read: 2 c + {0, 1}, all different. As keys, 4 neighbouring
 * chunks of two rows are: they are different if the rows are 2 apart, so row g of a matrix tile is row interleave(g) of the 8.
 * Queries lie 20 chunks apart, so two neighbouring heads will do. No address depends on more than a lane's constant. */
__device__ __forceinline__ int interleave(int g)
{
	return (g & 4) | (g & 1) << 1 | (g >> 1 & 1);
}

struct stage {
	float4 rows[GROUP][ROW_LD];
	float4 query[HEADS][QUERY_LD];
};

/* Scores and weights: [head][SCORE_LD], 34 chunks, so as with rows the heads of a tile are interleaved when weights are read. Of 16 slots, slot c + 4 i is at place 4 c + i: a lane then finds the weights that it
 * needs for one reading of rows side by side. */
__device__ __forceinline__ int place(int slot)
{
	return (slot & ~15) | (slot & 3) << 2 | (slot >> 2 & 3);
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
__device__ __forceinline__ void fetch_rows(stage &s, const float *const *row_at, int col, int n)
{
	const int chunk = threadIdx.x % CHUNKS, slot = threadIdx.x / CHUNKS;
	const bool in = 4 * chunk < n;
	col += in ? 4 * chunk : 0;
#pragma unroll
	for (int i = 0; i < GROUP; i += THREADS / CHUNKS)
		copy_16(&s.rows[slot + i][chunk], row_at[slot + i] + col, in);
}

/* The same columns of the queries: q is [head][ld], of the block's first head; heads are how many there are. */
__device__ __forceinline__ void fetch_query(stage &s, const float *q, int ld, int heads, int col, int n)
{
	const int chunk = threadIdx.x % CHUNKS, head = threadIdx.x / CHUNKS;
	const bool in = 4 * chunk < n;
	q += col + (in ? 4 * chunk : 0);
#pragma unroll
	for (int i = 0; i < HEADS; i += THREADS / CHUNKS)
		copy_16(&s.query[head + i][chunk], head + i < heads ? q + (head + i) * ld : q, in && head + i < heads);
}

/* ---- 4 scores of a tile -------------------------------------------------------------------------------------------- */

/* Eight warps: 4 of 32 slots by 2 of 32 heads. s[m][n]: slots 16 m, heads 8 n of the warp's part. A lane's 4 columns of a chunk
 * serve as columns c and c+4 of two steps: a sum may take its columns in any order, if both sides take the same. */
struct score_tile {
	float v[2][SCORE_N][4];
};

__device__ __forceinline__ float part_of(const float4 &v, int i)
{
	return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

template <int UNROLL> __device__ __forceinline__ void scores(const stage &s, int warp, int lane, sum_tile (&acc)[2][SCORE_N])
{
	const int g = lane / 4, c = lane % 4, slot0 = 32 * (warp % 4), head0 = 8 * SCORE_N * (warp / 4);
#pragma unroll UNROLL
	for (int k = 0; k < CHUNKS; k += 4) {
		float4 rows[2][2], query[SCORE_N];
#pragma unroll
		for (int m = 0; m < 2; m++)
#pragma unroll
			for (int i = 0; i < 2; i++)
				rows[m][i] = s.rows[slot0 + 16 * m + 8 * i + interleave(g)][k + c];
#pragma unroll
		for (int n = 0; n < SCORE_N; n++)
			query[n] = s.query[head0 + 8 * n + g][k + c];
#pragma unroll
		for (int step = 0; step < 4; step += 2) {
			halves a[2][4], b[SCORE_N][2];
#pragma unroll
			for (int n = 0; n < SCORE_N; n++)
				b[n][0] = split_f32(part_of(query[n], step)), b[n][1] = split_f32(part_of(query[n], step + 1));
#pragma unroll
			for (int m = 0; m < 2; m++)
#pragma unroll
				for (int i = 0; i < 4; i++)
					a[m][i] = split_f32(part_of(rows[m][i % 2], step + i / 2));
			mma_f32(acc, a, b);
		}
	}
}

/* The value of a chain. */
__device__ __forceinline__ void finish(const sum_tile (&acc)[2][SCORE_N], score_tile &out)
{
#pragma unroll
	for (int m = 0; m < 2; m++)
#pragma unroll
		for (int n = 0; n < SCORE_N; n++)
#pragma unroll
			for (int i = 0; i < 4; i++)
				out.v[m][n][i] = acc[m][n].large[i] + acc[m][n].small[i];
}

__device__ __forceinline__ void add(score_tile &s, const score_tile &to)
{
#pragma unroll
	for (int i = 0; i < 8 * SCORE_N; i++)
		(&s.v[0][0][0])[i] = (&to.v[0][0][0])[i] + (&s.v[0][0][0])[i];
}

/* Every thread's own values, out of the registers for a while. */
__device__ __forceinline__ void park(const score_tile &s, float *at)
{
#pragma unroll
	for (int i = 0; i < 8 * SCORE_N; i++)
		at[i * THREADS + threadIdx.x] = (&s.v[0][0][0])[i];
}

__device__ __forceinline__ void add_parked(score_tile &s, const float *at)
{
#pragma unroll
	for (int i = 0; i < 8 * SCORE_N; i++)
		(&s.v[0][0][0])[i] = at[i * THREADS + threadIdx.x] + (&s.v[0][0][0])[i];
}

__device__ __forceinline__ void scores_store(const score_tile &s, int warp, int lane, float *score)
{
	const int g = lane / 4, c = lane % 4, slot0 = 32 * (warp % 4), head0 = 8 * SCORE_N * (warp / 4);
#pragma unroll
	for (int m = 0; m < 2; m++)
#pragma unroll
		for (int n = 0; n < SCORE_N; n++)
#pragma unroll
			for (int i = 0; i < 4; i++)
				score[(head0 + 8 * n + 2 * c + i % 2) * SCORE_LD + slot0 + place(16 * m + 8 * (i / 2) + interleave(g))] =
					s.v[m][n][i];
}

/* ---- 5 the softmax ------------------------------------------------------------------------------------------------- */

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

__device__ __forceinline__ float4 plus(float4 a, float4 b)
{
	return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

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
#pragma unroll
		for (int n = 1; n < PEERS; n *= 2)
#pragma unroll
			for (int r = 0; r < PEERS; r += 2 * n)
				v[r] = plus(v[r], v[r + n]);
		return v[0];
	}
}

/* A warp a head at a time; of PEERS blocks each takes its share of the heads, and gives the weights to all. In place: a
 * head's scores are read by one warp of the cluster only, and by it before it writes. */
template <int PEERS>
__device__ __forceinline__ void softmax(const attn &a, float *score, int rank, int slots, int heads, float *most_out,
                                        float *sum_out)
{
	const int lane = threadIdx.x % 32;
#pragma unroll 2
	for (int i = threadIdx.x / 32; i < HEADS / PEERS; i += THREADS / 32) {
		const int head = rank * (HEADS / PEERS) + i;
		const int slot = lane / 4 * 16 + lane % 4; /* the lane's: this one, and 4, 8 and 12 further on */
		float *at = score + head * SCORE_LD + 4 * lane;
		float4 v = score_total<PEERS>(at);
		v.x = slot + 0 < slots ? v.x * a.scale : -INFINITY;
		v.y = slot + 4 < slots ? v.y * a.scale : -INFINITY;
		v.z = slot + 8 < slots ? v.z * a.scale : -INFINITY;
		v.w = slot + 12 < slots ? v.w * a.scale : -INFINITY;
		float most = fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
#pragma unroll
		for (int m = 16; m > 0; m >>= 1)
			most = fmaxf(most, __shfl_xor_sync(~0u, most, m));
		v = make_float4(expf(v.x - most), expf(v.y - most), expf(v.z - most), expf(v.w - most));
		float sum = (v.x + v.y) + (v.z + v.w);
#pragma unroll
		for (int m = 16; m > 0; m >>= 1)
			sum += __shfl_xor_sync(~0u, sum, m);
		if constexpr (PEERS == 1) {
			*(float4 *)at = v;
		} else {
#pragma unroll
			for (int r = 0; r < PEERS; r++)
				cluster_store(at, r, v);
		}
		if (lane == 0 && head < heads)
			most_out[head] = most, sum_out[head] = sum;
	}
}

/* ---- 6 weights times values ---------------------------------------------------------------------------------------- */

/* out[head][column] of a slab. Eight warps: 2 of 32 columns by 4 of 16 heads. The matrix tile's 16 rows are columns here, taken so
 * that a lane's four values of a chunk are its rows g and g+8 of two tiles; then it ends up with 4 neighbouring columns of a
 * head, and stores 16 bytes. `slots` past the last are weights of zero. */
template <int UNROLL>
__device__ __forceinline__ void values(const stage &s, const float *score, int warp, int lane, int slots, int heads, float *out,
                                       int64_t ld)
{
	const int g = lane / 4, c = lane % 4, col0 = 32 * (warp % 2), head0 = 8 * VALUE_N * (warp / 2);
	sum_tile acc[2][VALUE_N] = {};
#pragma unroll UNROLL
	for (int k = 0; k < slots; k += 16) {
		float4 rows[4], weight[VALUE_N];
#pragma unroll
		for (int n = 0; n < VALUE_N; n++)
			weight[n] = *(const float4 *)&score[(head0 + 8 * n + interleave(g)) * SCORE_LD + k + 4 * c];
#pragma unroll
		for (int i = 0; i < 4; i++)
			rows[i] = s.rows[k + c + 4 * i][col0 / 4 + g];
#pragma unroll
		for (int step = 0; step < 4; step += 2) {
			halves a[2][4], b[VALUE_N][2];
#pragma unroll
			for (int n = 0; n < VALUE_N; n++)
				b[n][0] = split_f32(part_of(weight[n], step)), b[n][1] = split_f32(part_of(weight[n], step + 1));
#pragma unroll
			for (int m = 0; m < 2; m++)
#pragma unroll
				for (int i = 0; i < 4; i++)
					a[m][i] = split_f32(part_of(rows[step + i / 2], 2 * m + i % 2));
			mma_f32(acc, a, b);
		}
	}
#pragma unroll
	for (int n = 0; n < VALUE_N; n++)
#pragma unroll
		for (int odd = 0; odd < 2; odd++) {
			const int head = head0 + 8 * n + interleave(2 * c + odd);
			if (head < heads)
				*(float4 *)(out + head * ld + col0 + 4 * g) =
					make_float4(acc[0][n].large[odd] + acc[0][n].small[odd],
				                    acc[0][n].large[2 + odd] + acc[0][n].small[2 + odd],
				                    acc[1][n].large[odd] + acc[1][n].small[odd],
				                    acc[1][n].large[2 + odd] + acc[1][n].small[2 + odd]);
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
		values<LOCAL == 1 ? 2 : 4>(stages[(rope + leaf) % STAGES], score, warp, lane, slots, heads, out + (leaf0 + leaf) * COLS, a.kv_rank);
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
	return s.kv_rank % COLS == 0 && s.kv_rank <= LEAVES * COLS && s.d_rope % 4 == 0 && s.d_rope <= COLS &&
	       s.n_slots <= (1 << 24);
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
