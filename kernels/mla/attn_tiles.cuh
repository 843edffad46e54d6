/* attn_tiles: what a block of attn_gathered does with one tile, sections 2 to 6 of attn_gathered.cu's story. */
#ifndef ASSAY_KERNELS_ATTN_TILES_CUH
#define ASSAY_KERNELS_ATTN_TILES_CUH

#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>

namespace {

constexpr int THREADS = 256, WARPS = THREADS / 32;
constexpr int GROUP = 128; /* slots of a softmax */
constexpr int HEADS = 64;  /* heads of a block */
constexpr int COLS = 64;   /* columns of a slab */
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

} // namespace

#endif
