/* Tolerance against the kernel's plain double reference. Accepts only |arm - ref| <= allowed, so a NaN never passes. */
#include "check_cell.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "fill.h"
#include "finding.h"

/* Rows that the reference gets at a time: few, so that every thread has some. */
enum { ROWS_AT_ONCE = 4 };
/* Of so many rows one: few enough to be fetched row by row. */
enum { FEW_ROWS = 32 };

/* What is known of one arm on one output. */
struct score {
	int64_t outside, checked;
	int64_t worst; /* element index; -1: none */
	double worst_over, got, want, error, allowed;
};

struct job {
	struct stage *st;
	const struct assay_call *call;
	int t; /* tensor */
	int64_t row_len, n_rows, n_all;
	const int64_t *row; /* NULL: all */
	int subject[STAGE_SUBJECTS], n_subjects;
	const unsigned char *got[STAGE_SUBJECTS]; /* bytes of the output; of the rows alone where `own` holds them */
	unsigned char *own[STAGE_SUBJECTS];
	struct score score[STAGE_SUBJECTS];
	bool constant; /* the reference never left its first value */
	double value;
	bool seen;
	bool stop; /* it has failed: read and set atomically, while others still work */
	const char *failed; /* the reference's own words; set once, and read when all are done */
	char text[ASSAY_ERROR_MAX];
};

static double over(double error, double allowed)
{
	if (isnan(error))
		return INFINITY;
	return allowed > 0 ? error / allowed : error > 0 ? INFINITY : 0;
}

static void score_rows(struct job *j, const int64_t *row, int64_t n, const double *ref, const double *bound,
		       struct score *score)
{
	const struct check_reference *c = &j->st->cell->checks.reference;
	const uint8_t *mask = j->st->main.mask[j->t];
	enum assay_dtype dtype = j->st->cell->kernel->tensors[j->t].dtype;

	for (int a = 0; a < j->n_subjects; a++) {
		const unsigned char *got = j->got[a];
		struct score *s = &score[a];
		for (int64_t i = 0; i < n * j->row_len; i++) {
			int64_t at = row[i / j->row_len] * j->row_len + i % j->row_len;
			if (mask && !mask[at])
				continue;
			double v = fill_element(got, dtype, at);
			double allowed = c->adapter ? bound[i] : c->abs + c->rel * fabs(ref[i]);
			double e = isinf(ref[i]) && v == ref[i] ? 0 : fabs(v - ref[i]);
			bool inside = e <= allowed;
			double o = inside ? over(e, allowed) : fmax(over(e, allowed), 1);
			s->checked++;
			s->outside += !inside;
			if (s->worst < 0 || o > s->worst_over || (o == s->worst_over && at < s->worst)) {
				s->worst = at;
				s->worst_over = o;
				s->got = v;
				s->want = ref[i];
				s->error = e;
				s->allowed = allowed;
			}
		}
	}
}

static void score_merge(struct score *into, const struct score *s)
{
	int64_t outside = into->outside + s->outside, checked = into->checked + s->checked;

	if (into->worst < 0 || s->worst_over > into->worst_over ||
	    (s->worst_over == into->worst_over && s->worst < into->worst))
		if (s->worst >= 0)
			*into = *s;
	into->outside = outside;
	into->checked = checked;
}

/* Rows in small batches over the threads; the scores do not depend on how many threads there are. */
static bool rows_run(struct job *j)
{
	const struct assay_kernel *k = j->st->cell->kernel;
	bool nomem = false;
	int team = j->call->threads > 0 ? j->call->threads : omp_get_max_threads();
	const int64_t each = (j->n_rows + team - 1) / team, at_once = each < ROWS_AT_ONCE ? each : ROWS_AT_ONCE;
	const int64_t batches = at_once ? (j->n_rows + at_once - 1) / at_once : 0;
	size_t cap = (size_t)(at_once * j->row_len) + 1;

	j->constant = true;
#pragma omp parallel num_threads(team)
	{
		double *ref = malloc(cap * sizeof(double)), *bound = malloc(cap * sizeof(double));
		struct score score[STAGE_SUBJECTS];
		char text[ASSAY_ERROR_MAX];
		struct assay_call call = *j->call;
		call.error = text;
		memset(score, 0, sizeof(score));
		for (int a = 0; a < j->n_subjects; a++)
			score[a].worst = -1;
#pragma omp for schedule(dynamic, 1)
		for (int64_t b = 0; b < batches; b++) {
			int64_t row[ROWS_AT_ONCE], n = 0;
			bool stop;
#pragma omp atomic read
			stop = j->stop;
			if (!ref || !bound || stop)
				continue;
			for (int64_t i = b * at_once; i < j->n_rows && n < at_once; i++)
				row[n++] = j->row ? j->row[i] : i;
			struct assay_rows rows = {.row = row, .n = n};
			memset(bound, 0, cap * sizeof(double));
			text[0] = '\0';
			j->st->sink->beat->count++; /* a reference can take longer than the watchdog's patience */
			if (k->reference(&call, j->t, &rows, ref, bound) != 0) {
#pragma omp critical
				if (!j->failed) {
					memcpy(j->text, text, sizeof(j->text));
					j->failed = j->text[0] ? j->text : "the reference failed without a word";
				}
#pragma omp atomic write
				j->stop = true;
				continue;
			}
			score_rows(j, row, n, ref, bound, score);
#pragma omp critical
			for (int64_t i = 0; i < n * j->row_len && j->constant; i++) {
				if (!j->seen) {
					j->value = ref[i];
					j->seen = true;
				} else if (!(ref[i] == j->value)) {
					j->constant = false;
				}
			}
		}
#pragma omp critical
		{
			nomem = nomem || !ref || !bound;
			for (int a = 0; a < j->n_subjects; a++)
				score_merge(&j->score[a], &score[a]);
		}
		free(ref);
		free(bound);
	}
	return !nomem;
}

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* A seeded sample of distinct rows by Floyd's method: n of n_all, ascending. NULL out of memory. */
static int64_t *sample_rows(uint64_t seed, int64_t n_all, int64_t n)
{
	int64_t *row = malloc((size_t)n * sizeof(*row));
	uint64_t x = seed;

	for (int64_t i = 0; row && i < n; i++) {
		int64_t top = n_all - n + i;
		x += 0x9E3779B97F4A7C15u;
		uint64_t z = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
		z = (z ^ z >> 27) * 0x94D049BB133111EBu;
		int64_t pick = (int64_t)((z ^ z >> 31) % (uint64_t)(top + 1));
		bool taken = false;
		for (int64_t k = 0; k < i && !taken; k++)
			taken = row[k] == pick;
		row[i] = taken ? top : pick;
	}
	if (row)
		qsort(row, (size_t)n, sizeof(*row), ascending);
	return row;
}

static void finding_of(struct job *j, int a)
{
	struct stage *st = j->st;
	const struct assay_tensor *t = &st->cell->kernel->tensors[j->t];
	const struct score *s = &j->score[a];
	const char *arm = st->subject[j->subject[a]].name;
	char at[TENSOR_AT_MAX] = "";
	json_t *f, *worst = json_null();

	if (s->worst >= 0)
		tensor_at(t, &st->main.shape[j->t], s->worst, at, sizeof(at));
	if (s->outside)
		f = finding_add(st->findings, "reference", arm, "wrong",
				"%lld of %lld elements are outside of the tolerance; worst %s: %.9g for %.9g, error "
				"%.3g, allowed %.3g",
				(long long)s->outside, (long long)s->checked, at, s->got, s->want, s->error,
				s->allowed);
	else
		f = finding_add(st->findings, "reference", arm, "pass", NULL);
	json_object_set_new(f, "tensor", json_string(t->name));
	json_object_set_new(f, "differ", json_integer(s->outside));
	json_object_set_new(f, "of", json_integer(s->checked));
	if (s->worst >= 0) {
		worst = json_object();
		json_object_set_new(worst, "at", json_string(at));
		json_object_set_new(worst, "index", json_integer(s->worst));
		json_object_set_new(worst, "got", isfinite(s->got) ? json_real(s->got) : json_null());
		json_object_set_new(worst, "want", isfinite(s->want) ? json_real(s->want) : json_null());
		json_object_set_new(worst, "error", isfinite(s->error) ? json_real(s->error) : json_null());
		json_object_set_new(worst, "allowed", isfinite(s->allowed) ? json_real(s->allowed) : json_null());
	}
	json_object_set_new(f, "worst", worst);
	json_object_set_new(f, "worst_over_allowed",
			    s->worst >= 0 && isfinite(s->worst_over) ? json_real(s->worst_over) : json_null());
	json_object_set_new(f, "rows", json_integer(j->n_rows));
	json_object_set_new(f, "rows_of", json_integer(j->n_all));
}

/* The outputs that are looked at: whole, or of one that is not on the host the sampled rows alone. */
static bool outputs_get(struct job *j, const struct evidence *ev, int out, struct err *err)
{
	for (int a = 0; a < j->n_subjects; a++) {
		const struct image *im = &ev->first[0][j->subject[a]];
		const size_t row_bytes = (size_t)j->row_len * tensor_elem_bytes(&j->st->cell->kernel->tensors[j->t]);
		if (!image_bytes(im, out) && j->row && j->n_rows <= j->n_all / FEW_ROWS) {
			j->own[a] = image_rows(im, out, j->row, j->n_rows, row_bytes, err);
			if (!j->own[a])
				return false;
		} else if (!image_fetch(im, err)) {
			return false;
		}
		j->got[a] = j->own[a] ? j->own[a] : image_bytes(im, out);
	}
	return true;
}

/* only: the one subject that this reference is for; -1: all of them. */
static bool one_output(struct stage *st, const struct evidence *ev, const struct assay_call *call, int t, int out,
		       int only, struct err *err)
{
	const struct assay_kernel *k = st->cell->kernel;
	const struct check_reference *c = &st->cell->checks.reference;
	const struct assay_shape *shape = &st->main.shape[t];
	struct job j = {.st = st, .call = call, .t = t, .row_len = 1, .n_all = 1};
	int64_t *sampled = NULL;

	for (int i = 0; i < shape->rank; i++)
		*(i < k->row_rank ? &j.n_all : &j.row_len) *= shape->dim[i];
	for (int i = 0; i < st->n_subjects; i++)
		if ((only < 0 || only == i) && st->subject[i].role != ROLE_NULL && ev->have[0][i] &&
		    stage_listed(c->arms, st->subject[i].name)) {
			j.score[j.n_subjects].worst = -1;
			j.subject[j.n_subjects++] = i;
		}
	if (!j.n_subjects || !j.row_len)
		return true;
	j.n_rows = j.n_all;
	if (c->sample_rows > 0 && c->sample_rows < j.n_all) {
		j.n_rows = c->sample_rows;
		j.row = sampled = sample_rows(st->cell->seed ^ (uint64_t)t, j.n_all, j.n_rows);
		if (!sampled)
			return err_set(err, "out of memory");
	}
	bool ok = outputs_get(&j, ev, out, err);
	if (ok && !rows_run(&j))
		ok = err_set(err, "reference: no memory for rows of %lld elements", (long long)j.row_len);
	for (int a = 0; a < j.n_subjects; a++)
		free(j.own[a]);
	free(sampled);
	if (!ok)
		return false;
	for (int a = 0; a < j.n_subjects; a++) {
		if (j.failed)
			finding_add(st->findings, "reference", st->subject[j.subject[a]].name, "error", "%s", j.failed);
		else
			finding_of(&j, a);
	}
	if (!j.failed && j.seen && j.constant && j.n_rows * j.row_len > 1)
		stage_note(st, "degenerate data: every element of the reference of %s is %.9g", k->tensors[t].name,
			   j.value);
	return true;
}

bool check_reference(struct stage *st, const struct evidence *ev, struct err *err)
{
	const struct assay_kernel *k = st->cell->kernel;
	void *host[ASSAY_MAX_TENSORS] = {0}, *own[ASSAY_MAX_TENSORS] = {0};
	const struct image *any = NULL;
	char text[ASSAY_ERROR_MAX];
	bool ok = true;

	if (!k->reference) {
		finding_add(st->findings, "reference", NULL, "error", "%s has no reference", k->name);
		return true;
	}
	if (!check_set(st, 0, NULL, err))
		return false;
	stage_beat(st, "reference", NULL, 0);
	/* Host copies of the inputs: on the host the live buffers themselves. */
	for (int t = 0; ok && t < k->n_tensors; t++) {
		if (!st->in[t])
			continue;
		if (st->ops->kind == ASSAY_HOST && k->tensors[t].role == ASSAY_IN) {
			host[t] = st->in[t]->live.data;
			continue;
		}
		union {
			const void *kept;
			void *given;
		} bytes = {.kept = input_host(st->inputs, st->in[t], &own[t], err)};
		host[t] = bytes.given; /* only read */
		ok = host[t] != NULL;
	}
	struct assay_call call = {.point = &st->main.point,
				  .tensor = host,
				  .shape = st->main.shape,
				  .error = text,
				  .threads = st->ops->info(st->be)->threads,
				  .backend = st->ops->kind};
	for (int i = 0; i < st->n_subjects && !any; i++)
		if (ev->have[0][i])
			any = &ev->first[0][i];
	const int turns = k->reference_per_arm ? st->n_subjects : 1;
	for (int turn = 0; ok && any && turn < turns; turn++) {
		if (k->reference_per_arm) {
			call.arm = st->subject[turn].arm->desc;
			call.arm_arg = st->subject[turn].arm->arg;
		}
		for (int out = 0; ok && out < any->n; out++)
			ok = one_output(st, ev, &call, any->tensor[out], out, k->reference_per_arm ? turn : -1, err);
	}
	for (int t = 0; t < k->n_tensors; t++)
		free(own[t]);
	return ok;
}
