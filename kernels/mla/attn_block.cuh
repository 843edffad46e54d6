/* attn_block: a group of slots by a block, or by the blocks of a cluster. Section 7 of attn_gathered.cu's story. */
#ifndef ASSAY_KERNELS_ATTN_BLOCK_CUH
#define ASSAY_KERNELS_ATTN_BLOCK_CUH

#include "attn_tiles.cuh"

namespace {

constexpr int LEAF_UNROLL = 2; /* slabs a turn, so that the tree's moves vanish */

/* What a block has in shared memory; MORE is a place for waiting pairs of its own. */
template <class UNIT, int PEERS, int STAGES, bool MORE> struct block_shared {
	typename UNIT::stage stages[STAGES];
	typename UNIT::template weights<PEERS> weights;
	const float *row_at[GROUP];
	float4 parked[MORE ? sizeof(score_tile) / sizeof(float4) * THREADS : 1];
};

/* The columns of an item of the score loop: the position columns where they are, or a slab. */
struct slice {
	const float *query; /* of the block's first head, [head][ld] */
	int ld, col, n;
};

/* Grid: (blocks of heads * blocks that share a group, groups, t_q). With PEERS > 1 so many blocks are a cluster and each has the scores of
 * LEAVES / PEERS slabs; with PEERS = 1 each has all scores, and all columns or (split without clusters) its part of them. A slab is fetched
 * into stage `slab % STAGES`; values go through the slabs backwards, so that the last ones are still there. */
template <class UNIT, int PEERS, int STAGES, bool PARKED>
__global__ void __launch_bounds__(UNIT::HERE ? THREADS : 32, UNIT::blocks_here(PEERS)) attn_block(attn a)
{
	constexpr int LOCAL = LEAVES / PEERS;
	constexpr bool MORE = UNIT::MORE && PARKED && LOCAL > 4;
	if constexpr (UNIT::HERE) {
		extern __shared__ float4 shared[];
		block_shared<UNIT, PEERS, STAGES, MORE> &own = *(block_shared<UNIT, PEERS, STAGES, MORE> *)shared;
		const int lane = threadIdx.x % 32, group = blockIdx.y, t = blockIdx.z;
		/* By way of a shuffle what follows from it is known to be a warp's. */
		const int warp = UNIT::MORE ? threadIdx.x / 32 : __shfl_sync(~0u, threadIdx.x / 32, 0);
		const unsigned blocks = PEERS > 1 ? PEERS : (unsigned)a.blocks;
		const int part = (int)(blockIdx.x % blocks), head0 = (int)(blockIdx.x / blocks) * HEADS;
		const int heads = min(HEADS, a.n_head - head0), leaves = a.kv_rank / COLS;
		int j0, j1;
		group_slots(a, group, &j0, &j1);
		const int slots = j1 - j0;

		/* Items of the score loop. */
		const int leaf0 = PEERS > 1 ? part * LOCAL : 0, n_leaves = max(0, min(LOCAL, leaves - leaf0));
		const int rope = a.d_rope > 0 && leaf0 == 0 ? 1 : 0, items = rope + n_leaves;
		const int64_t th = (int64_t)t * a.n_head + head0;
		auto slice_of = [&](int item) {
			slice s;
			const bool position = item < rope;
			const int col = (leaf0 + item - rope) * COLS;
			s.query = position ? a.q_pe + th * a.d_rope : a.q_lat + th * a.kv_rank + col;
			s.ld = position ? a.d_rope : a.kv_rank;
			s.col = position ? a.kv_rank : col;
			s.n = position ? a.d_rope : COLS;
			return s;
		};
		auto fetch = [&](int item, bool with_query) {
			if (item < items) {
				typename UNIT::stage &s = own.stages[item % STAGES];
				const slice c = slice_of(item);
				fetch_rows(s.rows, own.row_at, c.col, c.n);
				if (with_query)
					UNIT::query_fetch(s, c.query, c.ld, heads, c.n);
			}
			copies_commit();
		};
		typename UNIT::query query;
		auto load = [&](int item) {
			if (item < items) {
				const slice c = slice_of(item);
				UNIT::query_load(query, c.query, c.ld, heads, c.n);
			}
		};

		if (threadIdx.x < GROUP) { /* past the last slot the first row: finite, and its weight will be zero */
			const int j = j0 + (threadIdx.x < slots ? threadIdx.x : 0);
			own.row_at[threadIdx.x] = a.cache + (int64_t)a.idx[(int64_t)t * a.n_slots + j] * a.width;
		}
		load(0);
		if (PEERS > 1)
			UNIT::cluster_begin(own.weights);
		__syncthreads();
#pragma unroll
		for (int i = 0; i < STAGES; i++)
			fetch(i, true);
		UNIT::query_store(query, own.stages[0]);
		if (STAGES > 1)
			load(1);

		/* The tree: a slab waits in registers, a pair and a half of all in shared memory where there is room. The chain of the first slab
		 * begins with the position columns. */
		float *const pair_at = UNIT::parked_pair(own.weights, MORE ? (float *)own.parked : NULL);
		float *const half_at = UNIT::parked_half(own.weights);
		score_tile s, slab, pair;
		int item = 0;
#pragma unroll LEAF_UNROLL
		for (int i = 0; i < LOCAL; i++) {
			typename UNIT::sums acc = {};
			const int end = min(items, rope + i + 1);
#pragma unroll 1
			for (; item < end; item++) {
				copies_wait<STAGES - 1>();
				__syncthreads();
				UNIT::template scores<LOCAL == 1 ? 1 : 4>(own.stages[item % STAGES], warp, lane, acc, [&] {
					if (item + STAGES < items) /* else the stage keeps its rows, for the values */
						__syncthreads();
					if (item + 1 < items) {
						if (STAGES == 1)
							load(item + 1);
						UNIT::query_store(query, own.stages[(item + 1) % STAGES]);
					}
					if (STAGES > 1)
						load(item + 2);
					fetch(item + STAGES, true);
				});
			}
			UNIT::finish(acc, s);
			if (LOCAL > 1) {
				if (i % 2 == 0) {
					slab = s;
					continue;
				}
				add(s, slab);
			}
			if (LOCAL > 2) {
				if (i % 4 == 1) {
					PARKED ? park(s, pair_at) : (void)(pair = s);
					continue;
				}
				PARKED ? add_parked(s, pair_at) : add(s, pair);
			}
			if (LOCAL > 4) {
				if (i == 3) {
					park(s, half_at);
					continue;
				}
				add_parked(s, half_at);
			}
		}

		const int64_t row0 = ((int64_t)t * a.groups + group) * a.n_head + head0;
		UNIT::template weigh<PEERS>(a, s, own.stages[0], own.weights, part, slots, part == 0 || PEERS > 1 ? heads : 0,
		                            a.most + row0, a.sum + row0);
		may_follow();

		/* Own columns: all of the slabs above, or a part of them. Items that are no longer (or not) in their stage are fetched. */
		const int own0 = PEERS > 1 ? 0 : leaves * part / (int)blocks;
		const int own1 = PEERS > 1 ? n_leaves : leaves * (part + 1) / (int)blocks;
		float *out = a.part + row0 * a.kv_rank;
		if (PEERS == 1 && own1 < n_leaves) { /* not the last ones: none of the kept ones is wanted first */
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
			UNIT::template values<PEERS>(own.stages[(rope + leaf) % STAGES], own.weights,
			                             UNIT::low_halves(own.stages[0], own.weights), warp, lane, slots, heads,
			                             out + (leaf0 + leaf) * COLS, a.kv_rank, [&] {
							     if (LOCAL > STAGES && leaf - STAGES >= own0) {
								     __syncthreads();
								     fetch(rope + leaf - STAGES, false);
							     } else {
								     copies_commit();
							     }
						     });
			if (LOCAL == 1)
				break;
		}
	}
}

} // namespace

#endif
