/* attn_mma: the matrix unit that every chip from sm_80 on has, mma.sync. Sections 4 to 6 of attn_gathered.cu's story; attn_wgmma.cuh
 * has the same for sm_90a. */
#ifndef ASSAY_KERNELS_ATTN_MMA_CUH
#define ASSAY_KERNELS_ATTN_MMA_CUH

#include "attn_tiles.cuh"

namespace {

constexpr int SCORE_N = 4; /* tiles of 8 heads that a warp has: of scores */
constexpr int VALUE_N = 2; /* and of values */
/* Steps of 16 slots a turn where two blocks share a multiprocessor's registers. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr int FEW_STEPS = 1;
#else
constexpr int FEW_STEPS = 2;
#endif

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

struct mma_unit {
	static constexpr bool HERE = true;
	static constexpr bool MORE = true; /* the weights have room for one waiting tile; another has room of its own, where there is any */
	/* Blocks that share a multiprocessor's registers. */
	static constexpr int blocks_here(int peers)
	{
		return peers == LEAVES ? 2 : 1;
	}

	/* Heads of queries lie 20 chunks apart, so two neighbouring ones will do (section 3); weights 34, and the heads of a tile are
	 * interleaved when they are read, as rows are. */
	static constexpr int QUERY_LD = CHUNKS + 4, SCORE_LD = GROUP + 8;

	struct stage {
		float4 rows[GROUP][ROW_LD];
		float4 query[HEADS][QUERY_LD];
	};

	template <int PEERS> struct weights {
		float score[HEADS * SCORE_LD]; /* [head][place(slot)] */
	};

	/* Of 16 slots, slot c + 4 i is at place 4 c + i: a lane then finds the weights that it needs for one reading of rows side by side. */
	__device__ static __forceinline__ int place(int slot)
	{
		return (slot & ~15) | (slot & 3) << 2 | (slot >> 2 & 3);
	}

	/* Where a tile can wait: each has room for 32 floats a thread; `more` is room that only the largest block has. */
	template <int PEERS> __device__ static __forceinline__ float *parked_pair(weights<PEERS> &w, float *more)
	{
		return more != NULL ? more : w.score;
	}

	template <int PEERS> __device__ static __forceinline__ float *parked_half(weights<PEERS> &w)
	{
		return w.score;
	}

	/* ---- 4 scores of a tile ---- */

	struct query {};

	__device__ static __forceinline__ void query_load(query &, const float *, int, int, int)
	{
	}

	__device__ static __forceinline__ void query_store(const query &, stage &)
	{
	}

	/* n columns of the queries (the rest zero): from is [head][ld]; heads are how many there are. */
	__device__ static __forceinline__ void query_fetch(stage &s, const float *from, int ld, int heads, int n)
	{
		const int chunk = threadIdx.x % CHUNKS, head = threadIdx.x / CHUNKS;
		const bool in = 4 * chunk < n;
		from += in ? 4 * chunk : 0;
#pragma unroll
		for (int i = 0; i < HEADS; i += THREADS / CHUNKS)
			copy_16(&s.query[head + i][chunk], head + i < heads ? from + (int64_t)(head + i) * ld : from, in && head + i < heads);
	}

	/* Eight warps: 4 of 32 slots by 2 of 32 heads. acc[m][n]: slots 16 m, heads 8 n of the warp's part. A lane's 4 columns of a chunk
	 * serve as columns c and c+4 of two steps: a sum may take its columns in any order, if both sides take the same. */
	struct sums {
		sum_tile acc[2][SCORE_N];
	};

	template <int UNROLL, class REST>
	__device__ static __forceinline__ void scores(const stage &s, int warp, int lane, sums &d, const REST &rest)
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
				mma_f32(d.acc, a, b);
			}
		}
		rest();
	}

	/* The value of a chain. */
	__device__ static __forceinline__ void finish(const sums &d, score_tile &out)
	{
#pragma unroll
		for (int m = 0; m < 2; m++)
#pragma unroll
			for (int n = 0; n < SCORE_N; n++)
#pragma unroll
				for (int i = 0; i < 4; i++)
					out.v[(m * SCORE_N + n) * 4 + i] = d.acc[m][n].large[i] + d.acc[m][n].small[i];
	}

	__device__ static __forceinline__ void scores_store(const score_tile &s, int warp, int lane, float *score)
	{
		const int g = lane / 4, c = lane % 4, slot0 = 32 * (warp % 4), head0 = 8 * SCORE_N * (warp / 4);
#pragma unroll
		for (int m = 0; m < 2; m++)
#pragma unroll
			for (int n = 0; n < SCORE_N; n++)
#pragma unroll
				for (int i = 0; i < 4; i++)
					score[(head0 + 8 * n + 2 * c + i % 2) * SCORE_LD + slot0 + place(16 * m + 8 * (i / 2) + interleave(g))] =
						s.v[(m * SCORE_N + n) * 4 + i];
	}

	/* ---- 5 the softmax ---- */

	/* A warp a head at a time; of PEERS blocks each takes its share of the heads, and gives the weights to all. In place: a
	 * head's scores are read by one warp of the cluster only, and by it before it writes. */
	template <int PEERS>
	__device__ static __forceinline__ void weigh(const attn &a, const score_tile &tile, stage &, weights<PEERS> &w, int part, int slots, int heads,
	                                      float *most_out, float *sum_out)
	{
		const int lane = threadIdx.x % 32;
		if (PEERS <= 2)
			__syncthreads(); /* what was parked in the place of the scores was read */
		scores_store(tile, threadIdx.x / 32, lane, w.score);
		block_sync<PEERS>();
#pragma unroll 2
		for (int i = threadIdx.x / 32; i < HEADS / PEERS; i += WARPS) {
			const int head = (PEERS > 1 ? part : 0) * (HEADS / PEERS) + i;
			float *at = w.score + head * SCORE_LD + 4 * lane, most;
			const float4 v = head_weights<4>(score_total<PEERS>(at), lane / 4 * 16 + lane % 4, slots, a.scale, &most);
			if constexpr (PEERS == 1) {
				*(float4 *)at = v;
			} else {
#pragma unroll
				for (int r = 0; r < PEERS; r++)
					cluster_store(at, r, v);
			}
			const float sum = head_sum(v);
			if (lane == 0 && head < heads)
				most_out[head] = most, sum_out[head] = sum;
		}
		block_sync<PEERS>();
	}

	template <int PEERS> __device__ static __forceinline__ void cluster_begin(weights<PEERS> &)
	{
	}

	template <int PEERS> __device__ static __forceinline__ const float4 *low_halves(stage &, weights<PEERS> &)
	{
		return NULL;
	}

	/* ---- 6 weights times values ---- */

	/* out[head][column] of a slab. Eight warps: 2 of 32 columns by 4 of 16 heads. The matrix tile's 16 rows are columns here, taken so
	 * that a lane's four values of a chunk are its rows g and g+8 of two tiles; then it ends up with 4 neighbouring columns of a
	 * head, and stores 16 bytes. `slots` past the last are weights of zero. */
	template <int PEERS, class REST>
	__device__ static __forceinline__ void values(const stage &s, const weights<PEERS> &w, const float4 *, int warp, int lane, int slots,
	                                              int heads, float *out, int64_t ld, const REST &rest)
	{
		const int g = lane / 4, c = lane % 4, col0 = 32 * (warp % 2), head0 = 8 * VALUE_N * (warp / 2);
		sum_tile acc[2][VALUE_N] = {};
		constexpr int UNROLL = PEERS == LEAVES ? FEW_STEPS : 4;
#pragma unroll UNROLL
		for (int k = 0; k < slots; k += 16) {
			float4 rows[4], weight[VALUE_N];
#pragma unroll
			for (int n = 0; n < VALUE_N; n++)
				weight[n] = *(const float4 *)&w.score[(head0 + 8 * n + interleave(g)) * SCORE_LD + k + 4 * c];
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
		rest();
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
};

} // namespace

#endif
