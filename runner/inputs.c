#include "inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KEPT = 64 };

struct entry {
	struct input in;
	char *key;
	struct fill_job job[INPUT_SETS][ASSAY_MAX_FIELDS]; /* spec.path is owned */
	int n_jobs;
	size_t bytes; /* of device memory, masters included */
	void *host; /* the bytes of set 0, for input_host; NULL: not brought there */
	uint64_t used;
	bool pinned;
};

struct inputs {
	struct backend *be;
	int64_t budget_bytes, held_bytes;
	size_t one_set_bytes, host_bytes;
	struct entry *entry[MAX_KEPT];
	int n;
	uint64_t clock;
};

struct inputs *inputs_create(struct backend *be, int64_t budget_bytes)
{
	struct inputs *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->be = be;
	s->budget_bytes = budget_bytes;
	s->one_set_bytes = INPUT_ONE_SET_BYTES;
	s->host_bytes = INPUT_HOST_BYTES;
	return s;
}

void inputs_set_limit(struct inputs *s, size_t one_set_bytes)
{
	s->one_set_bytes = one_set_bytes;
}

size_t inputs_limit(const struct inputs *s)
{
	return s->one_set_bytes;
}

void inputs_set_host_limit(struct inputs *s, size_t bytes)
{
	s->host_bytes = bytes;
}

static void entry_destroy(struct backend *be, struct entry *e)
{
	if (!e)
		return;
	for (int set = 0; set < INPUT_SETS; set++) {
		backend_ops_of(be)->free(be, e->in.master[set]);
		for (int j = 0; j < e->n_jobs; j++) {
			union {
				const char *c;
				char *m;
			} path = {.c = e->job[set][j].spec.path};
			free(path.m);
		}
	}
	buffer_destroy(be, &e->in.live);
	json_decref(e->in.audit);
	json_decref(e->in.broken);
	free(e->host);
	free(e->key);
	free(e);
}

void inputs_destroy(struct inputs *s)
{
	if (!s)
		return;
	for (int i = 0; i < s->n; i++)
		entry_destroy(s->be, s->entry[i]);
	free(s);
}

void inputs_unpin(struct inputs *s)
{
	for (int i = 0; i < s->n; i++)
		s->entry[i]->pinned = false;
}

/* Frees the least recently used entry that no cell holds. False: there is none. */
static bool evict_one(struct inputs *s)
{
	int worst = -1;

	for (int i = 0; i < s->n; i++)
		if (!s->entry[i]->pinned && (worst < 0 || s->entry[i]->used < s->entry[worst]->used))
			worst = i;
	if (worst < 0)
		return false;
	s->held_bytes -= (int64_t)s->entry[worst]->bytes;
	entry_destroy(s->be, s->entry[worst]);
	s->entry[worst] = s->entry[--s->n];
	return true;
}

/* Everything that decides the bytes and the audit of a tensor, as text. */
static char *key_of(const struct cell *c, int t, const struct assay_shape *shape, const struct entry *e)
{
	const struct promise *p = &c->dist.promise;
	json_t *k = json_array();
	char *text;

	json_array_append_new(k, json_string(c->kernel->name));
	json_array_append_new(k, json_integer(t));
	for (int i = 0; i < shape->rank; i++)
		json_array_append_new(k, json_pack("[II]", (json_int_t)shape->dim[i], (json_int_t)shape->stride[i]));
	json_array_append_new(k, json_integer(shape->index_bound));
	json_array_append_new(k, json_pack("[iiibff]", (int)p->finite_as, (int)p->no_denormals_as, p->sign,
					   p->has_range, p->range[0], p->range[1]));
	for (int set = 0; set < INPUT_SETS; set++) {
		for (int j = 0; j < e->n_jobs; j++) {
			const struct fill_job *b = &e->job[set][j];
			const struct fill_spec *f = &b->spec;
			/* Doubles by their bits: a text of fewer digits could make two fills one. */
			double real[] = {f->range[0], f->range[1], f->mean, f->sd,
					 f->value,    f->exponent, f->base, f->step};
			int64_t whole[] = {f->kind,        f->magnitude[0],     f->magnitude[1],
					   f->k,           f->repeats,          f->modulus,
					   f->has_seed,    (int64_t)f->seed,    (int64_t)b->key,
					   b->dtype,       b->record_bytes,     b->field_offset,
					   b->field_count, (int64_t)b->lcg_seed};
			for (size_t i = 0; i < sizeof(real) / sizeof(*real); i++) {
				int64_t bits;
				memcpy(&bits, &real[i], sizeof(bits));
				json_array_append_new(k, json_integer(bits));
			}
			for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
				json_array_append_new(k, json_integer(whole[i]));
			json_array_append_new(k, f->path ? json_string(f->path) : json_null());
		}
	}
	text = json_dumps(k, JSON_COMPACT);
	json_decref(k);
	return text;
}

/* Writes a set into dst (span bytes of device memory). The gaps of a strided shape hold the NaN word. */
static bool fill_set(struct inputs *s, struct entry *e, int set, void *dst, struct err *err)
{
	const struct backend_ops *ops = backend_ops_of(s->be);
	struct buffer *live = &e->in.live;
	uint32_t word = tensor_tail_word(live->desc, &live->shape, TAIL_NAN);
	void *host;
	bool ok = true;

	if (!live->bytes)
		return true;
	if (ops->fill) {
		if (!tensor_is_dense(&live->shape) && !ops->pattern(s->be, dst, word, live->bytes / 4 * 4, err))
			return false;
		for (int j = 0; ok && j < e->n_jobs; j++)
			ok = ops->fill(s->be, dst, &e->job[set][j], err);
		return ok;
	}
	host = malloc(live->bytes);
	if (!host)
		return err_set(err, "%s: no %zu bytes of host memory to fill it in", live->desc->name, live->bytes);
	tensor_words(host, live->bytes, word);
	for (int j = 0; ok && j < e->n_jobs; j++)
		ok = fill_host(host, &e->job[set][j], err);
	ok = ok && ops->upload(s->be, dst, host, live->bytes, err);
	free(host);
	return ok;
}

static bool audit_set(struct inputs *s, struct entry *e, int set, const void *src, const struct promise *p,
		      struct err *err)
{
	const struct backend_ops *ops = backend_ops_of(s->be);
	const struct assay_tensor *desc = e->in.live.desc;
	size_t bytes = e->in.live.bytes;
	void *host = NULL;
	bool ok = true;

	if (!ops->audit && bytes) {
		host = malloc(bytes);
		if (!host)
			return err_set(err, "%s: no %zu bytes of host memory to audit it in", desc->name, bytes);
		ok = ops->download(s->be, host, src, bytes, err);
	}
	for (int j = 0; ok && j < e->n_jobs; j++) {
		const struct fill_job *job = &e->job[set][j];
		struct fill_audit audit;
		char name[128], text[512];
		enum assay_use use = desc->use;
		const char *field = NULL;

		for (int f = 0; f < desc->n_fields; f++)
			if (job->record_bytes && desc->fields[f].offset == job->field_offset) {
				use = desc->fields[f].use;
				field = desc->fields[f].name;
			}
		snprintf(name, sizeof(name), "%s%s%s", desc->name, field ? "." : "", field ? field : "");
		memset(&audit, 0, sizeof(audit));
		audit.distinct = -1;
		uint32_t readings = use == ASSAY_DATA ? p->finite_as | p->no_denormals_as : 0;
		if (bytes)
			ok = ops->audit ? ops->audit(s->be, src, job, readings, &audit, err)
					: fill_audit_host(host, job, readings, &audit, err);
		if (!ok)
			break;
		/* Only data make promises; a row number outside of its bound is broken whatever was promised. */
		if (bytes && fill_broken_promise(use == ASSAY_DATA ? p : NULL, &audit, name, text, sizeof(text))) {
			json_t *b = json_pack("{s:s, s:s, s:i}", "tensor", name, "text", text, "set", set);
			json_array_append_new(e->in.broken, b);
		}
		if (set > 0)
			continue;
		json_t *a = fill_audit_to_json(&audit);
		char hex[24];
		snprintf(hex, sizeof(hex), "%016llx", (unsigned long long)e->in.digest[0]);
		json_t *whole = json_object();
		json_object_set_new(whole, "digest", json_string(hex));
		json_object_update(whole, a);
		json_object_set_new(whole, "digest", json_string(hex));
		json_decref(a);
		json_object_set_new(e->in.audit, name, whole);
		if (j == 0) {
			e->in.distinct = audit.distinct;
			e->in.nonzero = audit.n_readings ? audit.reading[0].n - audit.reading[0].zero : -1;
		}
	}
	free(host);
	return ok;
}

static bool make(struct inputs *s, struct entry *e, const struct promise *p, struct err *err)
{
	const struct backend_ops *ops = backend_ops_of(s->be);
	struct input *in = &e->in;

	for (int set = 0; set < INPUT_SETS; set++) {
		void *at = in->one_set ? in->live.data : in->master[set];
		if (in->one_set && set > 0) {
			in->digest[set] = in->digest[0];
			break;
		}
		if (!fill_set(s, e, set, at, err))
			return false;
		if (!ops->digest(s->be, at, in->live.bytes, &in->digest[set], err))
			return false;
		if (!audit_set(s, e, set, at, p, err))
			return false;
	}
	in->loaded = in->one_set ? 0 : -1;
	return true;
}

/* Device memory of an entry; tries again after evicting whatever no cell holds. */
static bool allocate(struct inputs *s, struct entry *e, const struct assay_tensor *desc,
		     const struct assay_shape *shape, struct err *err)
{
	const struct backend_ops *ops = backend_ops_of(s->be);

	do {
		bool ok = buffer_create(s->be, desc, shape, 0, &e->in.live, err);
		for (int set = 0; ok && set < INPUT_SETS && !e->in.one_set; set++) {
			size_t bytes = e->in.live.bytes ? e->in.live.bytes : 1;
			e->in.master[set] = ops->alloc(s->be, bytes, err);
			ok = e->in.master[set] != NULL;
		}
		if (ok)
			return true;
		for (int set = 0; set < INPUT_SETS; set++) {
			ops->free(s->be, e->in.master[set]);
			e->in.master[set] = NULL;
		}
		buffer_destroy(s->be, &e->in.live);
	} while (evict_one(s));
	return false;
}

struct input *inputs_get(struct inputs *s, const struct cell *c, int t, const struct assay_shape *shape,
			 struct err *err)
{
	const struct assay_tensor *desc = &c->kernel->tensors[t];
	struct entry *e = calloc(1, sizeof(*e));
	size_t span;

	if (!e) {
		err_set(err, "out of memory");
		return NULL;
	}
	for (int set = 0; set < INPUT_SETS; set++) {
		int n = fill_resolve(c->kernel, t, &c->point, &c->dist, c->seed, set, e->job[set], err);
		if (n < 0) {
			e->n_jobs = 0;
			goto fail;
		}
		for (int j = 0; j < n; j++)
			if (e->job[set][j].spec.path)
				e->job[set][j].spec.path = strdup(e->job[set][j].spec.path);
		e->n_jobs = n;
	}
	e->key = key_of(c, t, shape, e);
	for (int i = 0; i < s->n; i++)
		if (!strcmp(s->entry[i]->key, e->key)) {
			entry_destroy(s->be, e);
			s->entry[i]->pinned = true;
			s->entry[i]->used = ++s->clock;
			return &s->entry[i]->in;
		}
	if (!tensor_span(desc, shape, &span, err))
		goto fail;
	/* An inout tensor is restored before each launch, so it needs a master whatever its size. */
	e->in.one_set = span > s->one_set_bytes && desc->role != ASSAY_INOUT;
	e->bytes = span * (e->in.one_set ? 1 : 1 + INPUT_SETS);
	e->in.audit = json_object();
	e->in.broken = json_array();
	while (s->n == MAX_KEPT || s->held_bytes + (int64_t)e->bytes > s->budget_bytes)
		if (!evict_one(s))
			break;
	if (s->n == MAX_KEPT) {
		err_set(err, "more than %d input tensors in one cell", MAX_KEPT);
		goto fail;
	}
	if (!allocate(s, e, desc, shape, err) || !make(s, e, &c->dist.promise, err))
		goto fail;
	e->pinned = true;
	e->used = ++s->clock;
	s->held_bytes += (int64_t)e->bytes;
	s->entry[s->n++] = e;
	return &e->in;
fail:
	entry_destroy(s->be, e);
	return NULL;
}

/* Makes room for so many more bytes on the host, of what no cell holds. */
static void host_room(struct inputs *s, size_t bytes)
{
	size_t kept = bytes;

	for (int i = 0; i < s->n; i++)
		kept += s->entry[i]->host ? s->entry[i]->in.live.bytes : 0;
	for (int i = 0; i < s->n && kept > s->host_bytes; i++) {
		struct entry *e = s->entry[i];
		if (e->pinned || !e->host)
			continue;
		kept -= e->in.live.bytes;
		free(e->host);
		e->host = NULL;
	}
}

static struct entry *entry_of(struct inputs *s, const struct input *in)
{
	for (int i = 0; i < s->n; i++)
		if (&s->entry[i]->in == in)
			return s->entry[i];
	return NULL;
}

const void *input_host(struct inputs *s, struct input *in, void **own, struct err *err)
{
	const size_t n = in->live.bytes;
	struct entry *e = entry_of(s, in);

	*own = NULL;
	/* Whoever got it last time may have written to it. */
	if (e && e->host && (!n || fill_digest(e->host, n) == in->digest[0]))
		return e->host;
	if (e) {
		free(e->host);
		e->host = NULL;
	}
	host_room(s, n);
	void *p = malloc(n ? n : 1);
	if (!p) {
		err_set(err, "%s: no %zu bytes of host memory for it", in->live.desc->name, n);
		return NULL;
	}
	if (n && !backend_ops_of(s->be)->download(s->be, p, in->one_set ? in->live.data : in->master[0], n, err)) {
		free(p);
		return NULL;
	}
	const bool intact = !n || fill_digest(p, n) == in->digest[0];
	if (!intact && !in->one_set) {
		/* Arms know no address of a master. */
		free(p);
		err_set(err, "%s: the device digests other bytes than it gives to the host", in->live.desc->name);
		return NULL;
	}
	if (e && intact)
		e->host = p;
	else
		*own = p;
	return p;
}

bool input_load(struct inputs *s, struct input *in, int set, bool force, struct err *err)
{
	if (in->one_set && in->loaded >= 0)
		in->loaded = set; /* the same bytes */
	if (in->loaded == set && !force)
		return true;
	in->loaded = -1;
	if (in->one_set) {
		struct entry *e = entry_of(s, in);
		if (!e || !fill_set(s, e, 0, in->live.data, err))
			return false;
	} else if (in->live.bytes &&
		   !backend_ops_of(s->be)->copy(s->be, in->live.data, in->master[set], in->live.bytes, err)) {
		return false;
	}
	in->loaded = set;
	return true;
}

bool input_intact(struct inputs *s, struct input *in, bool *intact, struct err *err)
{
	uint64_t digest;

	*intact = true;
	if (!in->live.bytes)
		return true;
	if (!backend_ops_of(s->be)->digest(s->be, in->live.data, in->live.bytes, &digest, err))
		return false;
	*intact = in->loaded >= 0 && digest == in->digest[in->loaded];
	if (!*intact)
		in->loaded = -1;
	return true;
}

bool input_heal(struct inputs *s, struct input *in, bool *whole, struct err *err)
{
	const struct backend_ops *ops = backend_ops_of(s->be);
	struct entry *e = entry_of(s, in);
	uint64_t digest;

	*whole = true;
	for (int set = 0; set < INPUT_SETS && !in->one_set && in->live.bytes; set++) {
		if (!ops->digest(s->be, in->master[set], in->live.bytes, &digest, err))
			return false;
		if (digest == in->digest[set])
			continue;
		*whole = false;
		if (!e || !fill_set(s, e, set, in->master[set], err) ||
		    !ops->digest(s->be, in->master[set], in->live.bytes, &digest, err))
			return false;
		if (digest != in->digest[set])
			return err_set(err, "%s: its kept bytes were overwritten, and filled again they are others",
				       in->live.desc->name);
	}
	return true;
}
