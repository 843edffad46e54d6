/* attn_wgmma: the matrix unit of sm_90a: a warpgroup's product, one operand in registers, the other in shared memory. Sections 4 to 6 of
 * attn_gathered.cu's story; attn_mma.cuh has the same for all other chips.
 *
 * Gathered rows are the operand in registers in both products (as keys 64 slots a warpgroup, as values 64 columns), so they lie
 * as they come and each element is halved where it is loaded. Queries and weights are the other operand, halved once. */
#ifndef ASSAY_KERNELS_ATTN_WGMMA_CUH
#define ASSAY_KERNELS_ATTN_WGMMA_CUH

#include "attn_tiles.cuh"

namespace {

/* d += a b: 64 rows a warpgroup, 8 deep, a in registers as of mma.sync, b as section 4 has it. Asynchronous: nothing here may be touched
 * before products_wait. */
#define FLOATS_8(d, o) "+f"(d[o]), "+f"(d[o + 1]), "+f"(d[o + 2]), "+f"(d[o + 3]), "+f"(d[o + 4]), "+f"(d[o + 5]), "+f"(d[o + 6]), "+f"(d[o + 7])

__device__ __forceinline__ void multiply(float (&d)[32], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b)
{
	asm volatile("{\n.reg .pred p;\n.reg .b64 b;\nsetp.ne.b32 p, 1, 0;\nmov.b64 b, {%36, 8};\nwgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
	             "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, {%32,%33,%34,%35}, b, p, 1, 1;\n}"
	             : FLOATS_8(d, 0), FLOATS_8(d, 8), FLOATS_8(d, 16), FLOATS_8(d, 24)
	             : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b));
}

__device__ __forceinline__ void multiply(float (&d)[16], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b)
{
	asm volatile("{\n.reg .pred p;\n.reg .b64 b;\nsetp.ne.b32 p, 1, 0;\nmov.b64 b, {%20, 8};\nwgmma.mma_async.sync.aligned.m64n32k8.f32.tf32.tf32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, "
	             "{%16,%17,%18,%19}, b, p, 1, 1;\n}"
	             : FLOATS_8(d, 0), FLOATS_8(d, 8)
	             : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b));
}

/* Registers written before are seen by the products after. */
__device__ __forceinline__ void products_fence()
{
	asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* All but the last PENDING bundles of products are done. */
template <int PENDING> __device__ __forceinline__ void products_wait()
{
	asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

__device__ __forceinline__ void products_commit()
{
	asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* What ordinary stores wrote is seen by the unit: by each thread that wrote, before the barrier. */
__device__ __forceinline__ void operands_fence()
{
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* ---- a cluster's mail ---------------------------------------------------------------------------------------------- */

/* Values are pushed into the shared memory of the block that needs them, which counts the bytes: no barrier of the cluster, no
 * fence, no way back. A warp's 32 pieces are neighbours, or they would travel one by one. */
__device__ __forceinline__ void push(const float4 *to, uint64_t *bar, int rank, float4 v)
{
	asm volatile("{\n.reg .b32 t, b;\nmapa.shared::cluster.u32 t, %0, %2;\nmapa.shared::cluster.u32 b, %1, %2;\n"
	             "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [t], {%3,%4,%5,%6}, [b];\n}" ::"r"(
			     (unsigned)__cvta_generic_to_shared(to)),
	             "r"((unsigned)__cvta_generic_to_shared(bar)), "r"(rank), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
	             : "memory");
}

/* Counts `bytes` once. */
__device__ __forceinline__ void mail_expect(uint64_t *bar, unsigned bytes)
{
	const unsigned at = (unsigned)__cvta_generic_to_shared(bar);
	asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
}

__device__ __forceinline__ void mail_wait(uint64_t *bar)
{
	asm volatile("{\n.reg .pred p;\nagain:\n"
	             "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0;\n@!p bra again;\n}" ::"r"(
			     (unsigned)__cvta_generic_to_shared(bar))
	             : "memory");
}

/* ---- the unit ------------------------------------------------------------------------------------------------------ */

struct wgmma_unit {
#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
	static constexpr bool HERE = false;
#else
	static constexpr bool HERE = true;
#endif
	static constexpr bool MORE = false; /* the weights have room for two waiting tiles */
	/* Not every part of a chip has room for clusters of eight at a block a multiprocessor. */
	static constexpr int blocks_here(int peers)
	{
		return peers == LEAVES ? 2 : 1;
	}

	/* The other operand is read in matrices of 8 rows (here heads) by 16 bytes, each in one piece: so chunk k of all heads is a
	 * column of 16-byte pieces, and the columns lie 65 pieces apart, so that a head's chunks are in different banks. */
	static constexpr int HEAD_LD = HEADS + 1;

	struct stage {
		float4 rows[GROUP][ROW_LD];
		float4 query[2][CHUNKS][HEAD_LD]; /* high, low */
	};

	/* The high halves are whole numbers: the unit drops the rest. A block of its own has the low halves in `more`, and two tiles can wait
	 * here; in a cluster the first mail comes to `high`, the second and then the low halves to the first stage's queries, and `more` has
	 * a tile that waits, then the scores of the block's share of the heads. */
	template <int PEERS> struct weights {
		float4 high[GROUP / 4][HEAD_LD];
		float4 more[PEERS <= 2 ? GROUP / 4 * HEAD_LD : HEADS / PEERS * (GROUP / 4 + 1)];
		uint64_t mail[2];
	};

	/* The low word of its descriptor: the address, and how far apart columns are; the high word is how far apart matrices of a column are,
	 * all in pieces. In a cluster an address has the block's rank above: not the unit's business. */
	__device__ static __forceinline__ unsigned operand(const float4 *at)
	{
		return ((unsigned)__cvta_generic_to_shared(at) >> 4 & 0x3FFF) | HEAD_LD << 16;
	}

	/* Where a tile can wait: each has room for 32 floats a thread. */
	template <int PEERS> __device__ static __forceinline__ float *parked_pair(weights<PEERS> &w, float *)
	{
		return (float *)(PEERS == 1 ? w.high[0] : w.more);
	}

	template <int PEERS> __device__ static __forceinline__ float *parked_half(weights<PEERS> &w)
	{
		return (float *)w.more;
	}

	/* ---- 4 scores of a tile ---- */

	/* Twice a head and 8 columns a thread, loaded early. A warp takes 4 heads whole: as it is read, memory is all used, and as it is
	 * written, banks differ. */
	struct query {
		float4 v[2][2];
	};

	struct query_place {
		int head, chunk;
	};

	__device__ static __forceinline__ query_place query_of(int i)
	{
		const int lane = threadIdx.x % 32;
		query_place p;
		p.head = i * (HEADS / 2) + threadIdx.x / 32 * 4 + lane / 16 * 2 + lane % 2;
		p.chunk = lane / 2 % 8 * 2;
		return p;
	}

	__device__ static __forceinline__ void query_fetch(stage &, const float *, int, int, int)
	{
	}

	__device__ static __forceinline__ void query_load(query &q, const float *from, int ld, int heads, int n)
	{
#pragma unroll
		for (int i = 0; i < 2; i++) {
			const query_place p = query_of(i);
#pragma unroll
			for (int k = 0; k < 2; k++)
				q.v[i][k] = p.head < heads && 4 * (p.chunk + k) < n
				                    ? __ldg((const float4 *)(from + (int64_t)p.head * ld + 4 * (p.chunk + k)))
				                    : make_float4(0, 0, 0, 0);
		}
	}

	/* A lane's 2 neighbouring columns of a row serve as k = c and c + 4 of a product; so of 8 columns the even ones are the first chunk. */
	__device__ static __forceinline__ void query_store(const query &q, stage &s)
	{
#pragma unroll
		for (int i = 0; i < 2; i++) {
			const query_place p = query_of(i);
#pragma unroll
			for (int odd = 0; odd < 2; odd++) {
				const float4 &a = q.v[i][0], &b = q.v[i][1];
				const halves x = split_f32(odd ? a.y : a.x), y = split_f32(odd ? a.w : a.z);
				const halves z = split_f32(odd ? b.y : b.x), w = split_f32(odd ? b.w : b.z);
				s.query[0][p.chunk + odd][p.head] = make_float4(__uint_as_float(x.high), __uint_as_float(y.high),
				                                                __uint_as_float(z.high), __uint_as_float(w.high));
				s.query[1][p.chunk + odd][p.head] = make_float4(__uint_as_float(x.low), __uint_as_float(y.low),
				                                                __uint_as_float(z.low), __uint_as_float(w.low));
			}
		}
		operands_fence();
	}

	/* Slots 16 warp .. 16 warp + 15 by 64 heads. A lane has of every 8 heads (2 c, 2 c + 1) of two slots. The small products have a
	 * sum of their own: it keeps the truncations of the unit's adder off them. */
	struct sums {
		float large[32], small[32];
	};

	template <int UNROLL, class REST>
	__device__ static __forceinline__ void scores(const stage &s, int warp, int lane, sums &d, const REST &rest)
	{
		constexpr int STEPS = 2; /* of 8 columns, a bundle */
		const unsigned high = operand(&s.query[0][0][0]), low = operand(&s.query[1][0][0]);
		const float *at = (const float *)s.rows[16 * warp + lane / 4] + 2 * (lane % 4);
		float2 rows[2][STEPS][2];
		auto load = [&](int k) {
#pragma unroll
			for (int step = 0; step < STEPS; step++)
#pragma unroll
				for (int i = 0; i < 2; i++)
					rows[k % 2][step][i] = *(const float2 *)(at + i * 8 * 4 * ROW_LD + 8 * (STEPS * k + step));
		};
		load(0);
#pragma unroll
		for (int k = 0; k < COLS / 8 / STEPS; k++) {
			halves a[STEPS][4];
#pragma unroll
			for (int step = 0; step < STEPS; step++)
#pragma unroll
				for (int i = 0; i < 4; i++)
					a[step][i] = split_f32(i / 2 ? rows[k % 2][step][i % 2].y : rows[k % 2][step][i % 2].x);
			if (k + 1 < COLS / 8 / STEPS)
				load(k + 1);
			products_fence();
#pragma unroll
			for (int step = 0; step < STEPS; step++) {
				const int b = 2 * (STEPS * k + step) * HEAD_LD;
				multiply(d.small, a[step][0].low, a[step][1].low, a[step][2].low, a[step][3].low, high + b);
				multiply(d.large, a[step][0].high, a[step][1].high, a[step][2].high, a[step][3].high, high + b);
				multiply(d.small, a[step][0].high, a[step][1].high, a[step][2].high, a[step][3].high, low + b);
			}
			products_commit();
			products_wait<(UNROLL == 1 ? 0 : 1)>(); /* two bundles have registers, or one */
		}
		if (UNROLL > 1)
			rest();
		products_wait<0>();
		if (UNROLL == 1) /* it writes to what the products read */
			rest();
	}

	__device__ static __forceinline__ void finish(const sums &d, score_tile &out)
	{
#pragma unroll
		for (int i = 0; i < 32; i++)
			out.v[i] = d.large[i] + d.small[i];
	}

	/* A thread's 4 values of heads head0 .. head0 + 7, to [slot / 4][head] or [head][slot / 4] as the strides say. */
	__device__ static __forceinline__ void store_4(float4 *score, int chunk_ld, int head_ld, const float *v, int head0)
	{
		const int lane = threadIdx.x % 32, c = lane % 4, slot = threadIdx.x / 32 * 16 + lane / 4;
#pragma unroll
		for (int i = 0; i < 4; i++)
			((float *)&score[(slot / 4 + i / 2 * 2) * chunk_ld + (head0 + 2 * c + i % 2) * head_ld])[slot % 4] = v[i];
	}

	/* ---- 5 the softmax ---- */

	/* The low half of a weight whose high half is what the unit leaves of it; rounded, as the unit does not. */
	__device__ static __forceinline__ float low_of(float x)
	{
		return __uint_as_float(__float_as_uint(x - __uint_as_float(__float_as_uint(x) & 0xffffe000u)) + 0x1000u);
	}

	__device__ static __forceinline__ float4 low_of(float4 v)
	{
		return make_float4(low_of(v.x), low_of(v.y), low_of(v.z), low_of(v.w));
	}

	template <int PEERS> __device__ static __forceinline__ void cluster_begin(weights<PEERS> &w)
	{
		if (threadIdx.x == 0) {
			mail_expect(&w.mail[0], GROUP * HEADS * 4);
			mail_expect(&w.mail[1], GROUP * HEADS * 4);
			asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
		}
		asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
	}

	template <int PEERS> __device__ static __forceinline__ float4 *low_halves(stage &s, weights<PEERS> &w)
	{
		return PEERS == 1 ? w.more : &s.query[0][0][0];
	}

	/* From every thread's tile of scores to the weights of all heads, ready for values(). A warp a head at a time. In a cluster each
	 * block finishes the tree and the softmax of its share of the heads: what it needs for that is pushed to it, and it pushes the
	 * weights to all. A block that has mail from all threads of its peers knows that all of them are through with their scores. */
	template <int PEERS>
	__device__ static __forceinline__ void weigh(const attn &a, const score_tile &tile, stage &s, weights<PEERS> &w, int part, int slots,
	                                             int heads, float *most_out, float *sum_out)
	{
		constexpr int OCTETS = 8 / PEERS; /* of heads, a block's */
		constexpr int CHUNK_LD = PEERS == 1 ? HEAD_LD : 1, SCORE_LD = PEERS == 1 ? 1 : GROUP / 4 + 1;
		const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
		float4 *score = PEERS == 1 ? w.high[0] : w.more; /* of the block's share of the heads */
		float4 *low = low_halves(s, w);
		if constexpr (PEERS == 1) {
			__syncthreads(); /* what was parked here was read */
#pragma unroll
			for (int n = 0; n < 8; n++)
				store_4(score, CHUNK_LD, SCORE_LD, tile.v + 4 * n, 8 * n);
		} else {
			float4 *mail = w.high[0] + threadIdx.x; /* [peer][octet][thread] */
			asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); /* all expect mail */
#pragma unroll
			for (int n = 0; n < 8; n++)
				push(mail + (part * OCTETS + n % OCTETS) * THREADS, &w.mail[0], n / OCTETS,
				     make_float4(tile.v[4 * n], tile.v[4 * n + 1], tile.v[4 * n + 2], tile.v[4 * n + 3]));
			mail_wait(&w.mail[0]);
#pragma unroll
			for (int n = 0; n < OCTETS; n++) {
				float4 v[PEERS];
#pragma unroll
				for (int r = 0; r < PEERS; r++)
					v[r] = mail[(r * OCTETS + n) * THREADS];
				const float4 total = tree_sum(v);
				const float four[4] = {total.x, total.y, total.z, total.w};
				store_4(score, CHUNK_LD, SCORE_LD, four, 8 * n);
			}
		}
		__syncthreads();
#pragma unroll(OCTETS < 4 ? OCTETS : 4) /* several at once: each is one long chain */
		for (int j = 0; j < OCTETS; j++) {
			const int i = warp + WARPS * j, head = PEERS == 1 ? i : part * 8 * OCTETS + i;
			float4 *at = score + lane * CHUNK_LD + i * SCORE_LD;
			float most;
			const float4 v = head_weights<1>(*at, 4 * lane, slots, a.scale, &most);
			if constexpr (PEERS == 1) {
				*at = v;
				low[lane * HEAD_LD + head] = low_of(v);
			} else {
#pragma unroll
				for (int r = 0; r < PEERS; r++)
					push(low + head * (GROUP / 4) + lane, &w.mail[1], r, v);
			}
			const float sum = head_sum(v);
			if (lane == 0 && head < heads)
				most_out[head] = most, sum_out[head] = sum;
		}
		if constexpr (PEERS > 1) { /* a warp's heads are 8 apart here too */
			mail_wait(&w.mail[1]);
			float4 v[8];
#pragma unroll
			for (int i = 0; i < 8; i++)
				v[i] = low[(warp + 8 * i) * (GROUP / 4) + lane];
			__syncthreads();
#pragma unroll
			for (int i = 0; i < 8; i++) {
				w.high[lane][warp + 8 * i] = v[i];
				low[lane * HEAD_LD + warp + 8 * i] = low_of(v[i]);
			}
		}
		operands_fence();
		__syncthreads();
	}

	/* ---- 6 weights times values ---- */

	/* Columns 16 (warp % 4) .. + 15 of the slab by heads 32 (warp / 4) .. + 31; rows g and g + 8 of a matrix are columns 2 g and
	 * 2 g + 1. Slots past the last have weights of zero. */
	template <int PEERS, class REST>
	__device__ static __forceinline__ void values(const stage &s, const weights<PEERS> &w, const float4 *low_at, int warp, int lane, int,
	                                              int heads, float *out, int64_t ld, const REST &rest)
	{
		constexpr int STEPS = GROUP / 32;
		const int g = lane / 4, c = lane % 4, col = 16 * (warp % 4) + 2 * g, head0 = 32 * (warp / 4);
		const unsigned high = operand(&w.high[0][head0]), low = operand(low_at + head0);
		float large[16] = {}, small[16] = {};
		float2 rows[2][8];
		auto load = [&](int k) {
#pragma unroll
			for (int i = 0; i < 8; i++)
				rows[k % 2][i] = *(const float2 *)((const float *)s.rows[32 * k + 4 * i + c] + col);
		};
		load(0);
#pragma unroll
		for (int k = 0; k < STEPS; k++) {
			halves a[4][4];
#pragma unroll
			for (int step = 0; step < 4; step++)
#pragma unroll
				for (int i = 0; i < 4; i++)
					a[step][i] = split_f32(i % 2 ? rows[k % 2][2 * step + i / 2].y : rows[k % 2][2 * step + i / 2].x);
			if (k + 1 < STEPS)
				load(k + 1);
			products_fence();
#pragma unroll
			for (int step = 0; step < 4; step++) {
				const int at = (8 * k + 2 * step) * HEAD_LD;
				multiply(small, a[step][0].low, a[step][1].low, a[step][2].low, a[step][3].low, high + at);
				multiply(large, a[step][0].high, a[step][1].high, a[step][2].high, a[step][3].high, high + at);
				multiply(small, a[step][0].high, a[step][1].high, a[step][2].high, a[step][3].high, low + at);
			}
			products_commit();
			products_wait<(PEERS == LEAVES ? 0 : 1)>(); /* two bundles have registers, or one */
		}
		rest();
		products_wait<0>();
#pragma unroll
		for (int n = 0; n < 4; n++)
#pragma unroll
			for (int odd = 0; odd < 2; odd++) {
				const int head = head0 + 8 * n + 2 * c + odd;
				if (head < heads)
					*(float2 *)(out + head * ld + col) = make_float2(large[4 * n + odd] + small[4 * n + odd],
				                                                         large[4 * n + 2 + odd] + small[4 * n + 2 + odd]);
			}
	}
};

#undef FLOATS_8

} // namespace

#endif
