#include "tensors.h"

#include <stdio.h>
#include <string.h>

#include "fence.h"

enum { GUARD_BEFORE = 4096, GUARD_AFTER_MIN = 64 * 1024, GUARD_AFTER_MAX = 1024 * 1024, ALIGN = 256, PAGE = 4096 };

uint32_t tensor_elem_bytes(const struct assay_tensor *t)
{
	return t->dtype == ASSAY_RECORD ? t->record_bytes : assay_dtype_bytes(t->dtype);
}

static uint32_t nan_word(enum assay_dtype t)
{
	switch (t) {
	case ASSAY_F64:
	case ASSAY_F32:
	case ASSAY_F16:
	case ASSAY_BF16:
	case ASSAY_RECORD: return 0x7FF57FF5u; /* NaN in each of the four */
	case ASSAY_E4M3:
	case ASSAY_E5M2: return 0x7F7F7F7Fu;
	default: return 0;
	}
}

static uint32_t huge_word(enum assay_dtype t)
{
	switch (t) {
	case ASSAY_F64:
	case ASSAY_F32:
	case ASSAY_BF16: return 0x7F7F7F7Fu;
	case ASSAY_F16: return 0x7BFF7BFFu;
	case ASSAY_E4M3: return 0x7E7E7E7Eu;
	case ASSAY_E5M2:
	case ASSAY_RECORD: return 0x7B7B7B7Bu;
	default: return 0x7E7E7E7Eu;
	}
}

uint32_t tensor_tail_word(const struct assay_tensor *t, const struct assay_shape *s, enum tail tail)
{
	if (tail == TAIL_ZERO)
		return 0;
	if (t->use == ASSAY_INDEX) {
		/* A valid index, so that an over-read shows as a wrong result and not as a crash. */
		int64_t last = s->index_bound > 0 ? s->index_bound - 1 : 0;
		bool word = t->dtype == ASSAY_I32 || t->dtype == ASSAY_U32;
		return tail == TAIL_HUGE && word && last <= UINT32_MAX ? (uint32_t)last : 0;
	}
	return tail == TAIL_NAN ? nan_word(t->dtype) : huge_word(t->dtype);
}

static bool has_stride(const struct assay_shape *s)
{
	for (int i = 0; i < s->rank; i++)
		if (s->stride[i])
			return true;
	return false;
}

static void strides_of(const struct assay_shape *s, int64_t stride[ASSAY_MAX_RANK])
{
	if (has_stride(s)) {
		memcpy(stride, s->stride, sizeof(s->stride));
		return;
	}
	int64_t n = 1;
	for (int i = s->rank - 1; i >= 0; i--) {
		stride[i] = n;
		n *= s->dim[i];
	}
}

bool tensor_is_dense(const struct assay_shape *s)
{
	int64_t n = 1;
	if (!has_stride(s))
		return true;
	for (int i = s->rank - 1; i >= 0; i--) {
		if (s->dim[i] != 1 && s->stride[i] != n)
			return false;
		n *= s->dim[i];
	}
	return true;
}

bool tensor_same_shape(const struct assay_shape *a, const struct assay_shape *b)
{
	if (a->rank != b->rank || a->index_bound != b->index_bound)
		return false;
	for (int i = 0; i < a->rank; i++)
		if (a->dim[i] != b->dim[i] || a->stride[i] != b->stride[i])
			return false;
	return true;
}

bool tensor_span(const struct assay_tensor *t, const struct assay_shape *s, size_t *bytes, struct err *err)
{
	int64_t stride[ASSAY_MAX_RANK], last = 0, step;

	*bytes = 0;
	if (s->rank < 0 || s->rank > ASSAY_MAX_RANK)
		return err_set(err, "tensor %s has rank %d: at most %d", t->name, s->rank, ASSAY_MAX_RANK);
	for (int i = 0; i < s->rank; i++) {
		if (s->dim[i] < 0)
			return err_set(err, "tensor %s: dimension %d is %lld", t->name, i, (long long)s->dim[i]);
		if (s->dim[i] == 0)
			return true;
	}
	int64_t n = 1;
	for (int i = 0; i < s->rank; i++)
		if (__builtin_mul_overflow(n, s->dim[i], &n))
			return err_set(err, "tensor %s: more elements than 2^63", t->name);
	strides_of(s, stride);
	for (int i = 0; i < s->rank; i++) {
		if (stride[i] < 0)
			return err_set(err, "tensor %s: stride %d is negative", t->name, i);
		if (__builtin_mul_overflow(s->dim[i] - 1, stride[i], &step) ||
		    __builtin_add_overflow(last, step, &last))
			return err_set(err, "tensor %s: larger than 2^63 elements", t->name);
	}
	if (last + 1 < n)
		return err_set(err, "tensor %s: strides that lay two elements at one place", t->name);
	if (__builtin_mul_overflow(last + 1, (int64_t)tensor_elem_bytes(t), &step))
		return err_set(err, "tensor %s: larger than 2^63 bytes", t->name);
	*bytes = (size_t)step;
	return true;
}

/* Calls for every run of the innermost dimension: offset in the span, offset in the dense image, elements, stride. */
static void copy_strided(const struct assay_shape *s, uint32_t elem, unsigned char *span, unsigned char *dense,
			 bool gather)
{
	int64_t stride[ASSAY_MAX_RANK], coord[ASSAY_MAX_RANK] = {0};
	int64_t n = assay_shape_count(s), done = 0;
	int64_t inner = s->rank ? s->dim[s->rank - 1] : 1;

	strides_of(s, stride);
	while (done < n) {
		int64_t at = 0;
		for (int i = 0; i < s->rank - 1; i++)
			at += coord[i] * stride[i];
		for (int64_t k = 0; k < inner; k++) {
			int64_t off = at + (s->rank ? k * stride[s->rank - 1] : 0);
			unsigned char *a = span + (size_t)off * elem, *b = dense + (size_t)(done + k) * elem;
			memcpy(gather ? b : a, gather ? a : b, elem);
		}
		done += inner;
		for (int i = s->rank - 2; i >= 0; i--) {
			if (++coord[i] < s->dim[i])
				break;
			coord[i] = 0;
		}
	}
}

void tensor_gather(const struct assay_shape *s, uint32_t elem, const void *span, void *dense)
{
	union {
		const void *c;
		unsigned char *m;
	} u = {.c = span}; /* only read */

	if (tensor_is_dense(s))
		memcpy(dense, span, (size_t)assay_shape_count(s) * elem);
	else
		copy_strided(s, elem, u.m, dense, true);
}

void tensor_scatter(const struct assay_shape *s, uint32_t elem, const void *dense, void *span)
{
	union {
		const void *c;
		unsigned char *m;
	} u = {.c = dense}; /* only read */

	if (tensor_is_dense(s))
		memcpy(span, dense, (size_t)assay_shape_count(s) * elem);
	else
		copy_strided(s, elem, span, u.m, false);
}

void tensor_words(void *at, size_t n, uint32_t word)
{
	unsigned char *p = at;

	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)(word >> 8 * (i % 4));
}

void tensor_coords(const struct assay_shape *s, int64_t index, int64_t coord[ASSAY_MAX_RANK])
{
	for (int i = s->rank - 1; i >= 0; i--) {
		coord[i] = s->dim[i] ? index % s->dim[i] : 0;
		index = s->dim[i] ? index / s->dim[i] : 0;
	}
}

const char *tensor_dim_name(const struct assay_tensor *t, int k, char *buf, size_t cap)
{
	const char *p = t->dims ? t->dims : "";

	for (int i = 0;; i++) {
		p += strspn(p, " ");
		size_t n = strcspn(p, " ");
		if (!n)
			break;
		if (i == k) {
			snprintf(buf, cap, "%.*s", (int)n, p);
			return buf;
		}
		p += n;
	}
	snprintf(buf, cap, "d%d", k);
	return buf;
}

int tensor_dim(const struct assay_tensor *t, const char *name)
{
	char buf[64];

	for (int k = 0; k < ASSAY_MAX_RANK; k++)
		if (!strcmp(tensor_dim_name(t, k, buf, sizeof(buf)), name))
			return k;
	return -1;
}

void tensor_at(const struct assay_tensor *t, const struct assay_shape *s, int64_t index, char *buf, size_t cap)
{
	int64_t coord[ASSAY_MAX_RANK];
	char name[64];
	size_t n = (size_t)snprintf(buf, cap, "%s[", t->name);

	tensor_coords(s, index, coord);
	for (int i = 0; i < s->rank && n < cap; i++)
		n += (size_t)snprintf(buf + n, cap - n, "%s%s=%lld", i ? "," : "",
				      tensor_dim_name(t, i, name, sizeof(name)), (long long)coord[i]);
	if (n < cap)
		snprintf(buf + n, cap - n, "]");
}

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static size_t guard_after(const struct assay_shape *s, uint32_t elem)
{
	size_t row = elem;

	for (int i = 1; i < s->rank && row < GUARD_AFTER_MAX; i++)
		row *= (size_t)(s->dim[i] > 0 ? s->dim[i] : 1);
	if (row < GUARD_AFTER_MIN)
		row = GUARD_AFTER_MIN;
	return round_up(row < GUARD_AFTER_MAX ? row : GUARD_AFTER_MAX, ALIGN);
}

bool buffer_create(struct backend *be, const struct assay_tensor *t, const struct assay_shape *s, size_t bytes,
		   struct buffer *b, struct err *err)
{
	memset(b, 0, sizeof(*b));
	b->desc = t;
	b->elem_bytes = 1;
	b->bytes = bytes;
	b->after = GUARD_AFTER_MIN;
	if (t) {
		b->shape = *s;
		b->elem_bytes = tensor_elem_bytes(t);
		if (!tensor_span(t, s, &b->bytes, err))
			return false;
		b->after = guard_after(s, b->elem_bytes);
	}
	b->before = GUARD_BEFORE;
	/* The guard behind starts at the last byte of data: up to 3 bytes of it lie below the next 4-byte boundary. It goes on to the end of a
	 * page, so that nothing lies between it and whatever stops a write that goes further (fence.h). */
	const size_t inner = b->before + round_up(b->bytes, 4), total = round_up(inner + b->after, PAGE);
	b->after = total - inner;
	b->alloc = backend_ops_of(be)->alloc(be, total, err);
	if (!b->alloc)
		return err_prefix(err, "%s", t ? t->name : "workspace");
	b->data = (unsigned char *)b->alloc + b->before;
	fence_name(b->alloc, t ? t->name : "workspace", b->before, b->bytes);
	return true;
}

void buffer_destroy(struct backend *be, struct buffer *b)
{
	if (b->alloc)
		backend_ops_of(be)->free(be, b->alloc);
	memset(b, 0, sizeof(*b));
}

static size_t slack_of(const struct buffer *b)
{
	return round_up(b->bytes, 4) - b->bytes;
}

static unsigned char *after_of(const struct buffer *b)
{
	return (unsigned char *)b->data + round_up(b->bytes, 4);
}

bool buffer_guard(struct backend *be, struct buffer *b, uint32_t word, struct err *err)
{
	const struct backend_ops *ops = backend_ops_of(be);
	size_t slack = slack_of(b);

	if (b->guarded && b->word == word)
		return true;
	b->word = word;
	b->guarded = true;
	return ops->pattern(be, b->alloc, word, b->before, err) && ops->pattern(be, after_of(b), word, b->after, err) &&
	       (!slack || ops->upload(be, (unsigned char *)b->data + b->bytes, &word, slack, err));
}

bool buffer_check(struct backend *be, struct buffer *b, struct damage *out, struct err *err)
{
	const struct backend_ops *ops = backend_ops_of(be);
	int64_t n, first;
	size_t slack = slack_of(b);

	memset(out, 0, sizeof(*out));
	if (slack) {
		uint32_t got = 0;
		if (!ops->download(be, &got, (unsigned char *)b->data + b->bytes, slack, err))
			return false;
		if (memcmp(&got, &b->word, slack)) {
			out->any = true;
			out->offset = (int64_t)b->bytes;
			out->words = 1;
		}
	}
	if (!ops->scan(be, after_of(b), b->word, b->after, &n, &first, err))
		return false;
	if (n > 0) {
		if (!out->any)
			out->offset = (int64_t)round_up(b->bytes, 4) + first;
		out->any = true;
		out->words += n;
	}
	if (!out->any) {
		if (!ops->scan(be, b->alloc, b->word, b->before, &n, &first, err))
			return false;
		if (n > 0) {
			out->any = out->before_data = true;
			out->offset = first - (int64_t)b->before;
			out->words = n;
		}
	}
	if (out->any)
		b->guarded = false;
	return true;
}

bool buffer_ranges(const struct buffer *b, struct scan_range range[2])
{
	range[0] = (struct scan_range){.at = b->alloc, .bytes = b->before, .word = b->word};
	range[1] = (struct scan_range){.at = after_of(b), .bytes = b->after, .word = b->word};
	return slack_of(b) == 0;
}

bool buffer_poison(struct backend *be, struct buffer *b, uint32_t word, struct err *err)
{
	const struct backend_ops *ops = backend_ops_of(be);
	size_t whole = b->bytes / 4 * 4;

	if (whole && !ops->pattern(be, b->data, word, whole, err))
		return false;
	return whole == b->bytes || ops->upload(be, (unsigned char *)b->data + whole, &word, b->bytes - whole, err);
}
