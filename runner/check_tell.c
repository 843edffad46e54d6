/* Two launches of an arm on the same inputs gave different outputs. More launches tell what it is: elements that were never written,
 * a result that does not repeat, a read beyond an input, or a result that depends on what the buffers held. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_cell.h"
#include "fill.h"
#include "finding.h"

enum { RELAUNCHES = 50 };

static bool equal(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

json_t *check_memory_finding(struct stage *st, const char *arm, const char *tensor, const char *where, int64_t offset,
			     int64_t bytes, const char *text)
{
	json_t *f;

	for (size_t i = 0; i < json_array_size(st->findings); i++) {
		/* One finding an arm, tensor and place: four launches tell the same story four times. */
		const json_t *old = json_array_get(st->findings, i);
		const char *a = json_string_value(json_object_get(old, "arm"));
		const char *t = json_string_value(json_object_get(old, "tensor"));
		const char *w = json_string_value(json_object_get(old, "where"));
		if (w && !strcmp(w, where) && equal(a, arm) && equal(t, tensor))
			return NULL;
	}
	f = finding_add(st->findings, "memory", arm, "wrong", "%s", text);
	json_object_set_new(f, "tensor", tensor ? json_string(tensor) : json_null());
	json_object_set_new(f, "where", json_string(where));
	json_object_set_new(f, "offset_bytes",
			    offset >= 0 || !strcmp(where, "guard_before") ? json_integer(offset) : json_null());
	json_object_set_new(f, "bytes", bytes >= 0 ? json_integer(bytes) : json_null());
	return f;
}

/* Dense bytes an output would hold if nothing were written to it. The caller frees them; NULL: out of memory. */
static unsigned char *poison_dense(const struct buffer *b, uint32_t word)
{
	unsigned char *span = malloc(b->bytes + 1),
		      *dense = malloc((size_t)assay_shape_count(&b->shape) * b->elem_bytes + 1);

	if (span && dense) {
		tensor_words(span, b->bytes, word);
		tensor_gather(&b->shape, b->elem_bytes, span, dense);
	}
	free(span);
	return dense;
}

/* Elements of output k that are still poison: in both launches (first, never written) or, of four bytes and more, in one of them (a
 * word that no arm writes by chance). *differ grows by how many elements differ for other reasons. False: out of memory. */
static bool unwritten_in(struct stage *st, const struct scene *sc, const char *arm, const struct image *a,
			 const struct image *b, int k, int64_t *differ, struct err *err)
{
	const struct buffer *buf = sc->buf[a->tensor[k]];
	const uint8_t *mask = sc->mask[a->tensor[k]];
	const unsigned char *pa = image_bytes(a, k), *pb = image_bytes(b, k);
	unsigned char *wa = poison_dense(buf, TENSOR_POISON_A), *wb = poison_dense(buf, TENSOR_POISON_B);
	int64_t n = assay_shape_count(&buf->shape), never = 0, once = 0, others = 0, first = -1;
	size_t eb = buf->elem_bytes;
	char at[TENSOR_AT_MAX], text[384];

	const bool ok = wa && wb;
	for (int64_t i = 0; ok && i < n; i++) {
		size_t o = (size_t)i * eb;
		if ((mask && !mask[i]) || !memcmp(pa + o, pb + o, eb))
			continue;
		bool in_a = !memcmp(pa + o, wa + o, eb), in_b = !memcmp(pb + o, wb + o, eb);
		bool left = in_a && in_b, left_once = !left && eb >= 4 && (in_a || in_b);
		never += left;
		once += left_once;
		others += !left && !left_once;
		if ((left || left_once) && first < 0)
			first = i;
	}
	free(wa);
	free(wb);
	if (!ok)
		return err_set(err, "%s: no memory to see what of it is unwritten", buf->desc->name);
	*differ += others;
	if (!never && !once)
		return true;
	tensor_at(buf->desc, &buf->shape, first, at, sizeof(at));
	if (never)
		snprintf(text, sizeof(text), "leaves %lld of %lld elements of %s unwritten, first %s", (long long)never,
			 (long long)n, buf->desc->name, at);
	else
		snprintf(text, sizeof(text),
			 "%lld of %lld elements of %s hold the poison when one launch is over, first %s, and not after "
			 "another: it works on after it has returned, races, or adds to what was there before",
			 (long long)once, (long long)n, buf->desc->name, at);
	check_memory_finding(st, arm, buf->desc->name, "unwritten", first * (int64_t)eb, (never + once) * (int64_t)eb,
			     text);
	return true;
}

/* All outputs. */
static bool unwritten_find(struct stage *st, const struct scene *sc, const char *arm, const struct image *a,
			   const struct image *b, int64_t *differ, struct err *err)
{
	*differ = 0;
	for (int k = 0; k < a->n; k++)
		if (a->block[k] != b->block[k] && !unwritten_in(st, sc, arm, a, b, k, differ, err))
			return false;
	return true;
}

static int64_t non_finite(struct stage *st, const struct image *im)
{
	int64_t bad = 0;

	for (int k = 0; k < im->n; k++) {
		const struct assay_tensor *t = &st->cell->kernel->tensors[im->tensor[k]];
		int64_t n = assay_shape_count(&st->main.shape[im->tensor[k]]);
		for (int64_t i = 0; t->dtype <= ASSAY_E5M2 && i < n; i++)
			bad += !isfinite(fill_element(image_bytes(im, k), t->dtype, i));
	}
	return bad;
}

static void unstable_finding(struct stage *st, struct subject *s, const struct image *want, struct relaunch *rl)
{
	char text[512] = "";
	json_t *f;

	if (finding_failed(st->findings, "repeat", s->name))
		return;
	if (rl->diff.out >= 0) {
		int t = want->tensor[rl->diff.out];
		diff_text(&st->cell->kernel->tensors[t], &st->main.shape[t], image_bytes(&rl->image, rl->diff.out),
			  image_bytes(want, rl->diff.out), &rl->diff, text, sizeof(text));
	}
	f = finding_add(st->findings, "repeat", s->name, "mismatch",
			"%d of %d launches differ from the arm's own first%s: %s", rl->differ, rl->launches,
			rl->differ == 1     ? ""
			: rl->same_elements ? ", in the same elements"
					    : ", not in the same elements (race)",
			text);
	json_object_set_new(f, "against", json_string(s->name));
	if (rl->diff.out >= 0) {
		int t = want->tensor[rl->diff.out];
		diff_fields(f, &st->cell->kernel->tensors[t], &st->main.shape[t], image_bytes(&rl->image, rl->diff.out),
			    image_bytes(want, rl->diff.out), &rl->diff);
	}
	json_object_set_new(f, "launches", json_integer(rl->launches));
	json_object_set_new(f, "launches_differ", json_integer(rl->differ));
	json_object_set_new(f, "same_elements", json_boolean(rl->same_elements));
	json_object_set_new(f, "bound", json_null());
}

/* Two more launches as b was: whether both differ from a as it did. */
static bool differs_again(struct stage *st, struct subject *s, const struct image *a, bool *again, struct err *err)
{
	*again = true;
	for (int i = 0; i < 2 && *again && subject_runs(s); i++) {
		struct checked seen;
		struct image im;
		bool ok;
		if (!check_launch(st, s->ready, TENSOR_POISON_B, TAIL_HUGE, false, &seen, &ok, err))
			return false;
		if (!ok)
			break;
		if (!image_take(st, s->ready, NULL, 0, false, TENSOR_POISON_B, &im, err))
			return false;
		*again = !image_same(&im, a);
		image_drop(&im);
	}
	return true;
}

/* One launch of n differed. */
static bool lone_difference(struct stage *st, struct subject *s, const struct image *want, const struct image *odd,
			    int n, struct err *err)
{
	struct relaunch rl = {.launches = n, .differ = 1, .same_elements = true, .image = *odd};

	if (!image_diff(st, &st->main, odd, want, &rl.diff, err))
		return false;
	unstable_finding(st, s, want, &rl);
	return true;
}

/* Which input's tail the outputs depend on: NaN behind one at a time. name NULL: none, or the arm runs no more. False: lost, or an output
 * could not be had. */
static bool over_read_of(struct stage *st, struct subject *s, const struct image *huge, const char **name,
			 struct err *err)
{
	const struct assay_kernel *k = st->cell->kernel;
	bool lived = true, ok = true;

	*name = NULL;
	for (int t = 0; lived && ok && !*name && t < k->n_tensors && subject_runs(s); t++) {
		struct checked seen;
		struct image im;
		if (!st->in[t] && !s->ready->derived[t].alloc)
			continue;
		st->nan_only = t;
		lived = check_launch(st, s->ready, TENSOR_POISON_A, TAIL_NAN, false, &seen, &ok, err);
		if (!lived || !ok)
			break;
		lived = image_take(st, s->ready, NULL, 0, false, TENSOR_POISON_A, &im, err);
		if (!lived)
			break;
		if (!image_same(&im, huge))
			*name = k->tensors[t].name;
		image_drop(&im);
	}
	st->nan_only = -1;
	return lived;
}

/* Whether the output follows what a container held before it was packed, and nothing else; a is of a container that held the first
 * poison. False: lost. */
static bool container_find(struct stage *st, struct subject *s, const struct image *a, bool *found, struct err *err)
{
	const struct assay_kernel *k = st->cell->kernel;
	struct relaunch first, second;
	int packed = -1;
	char text[256];
	bool ok;

	*found = false;
	for (int t = k->n_tensors - 1; t >= 0; t--)
		if (s->ready->derived[t].alloc)
			packed = t;
	if (packed < 0)
		return true;
	if (!check_relaunch(st, s, 2, a, &first, err))
		return false;
	image_drop(&first.image);
	if (first.differ || !subject_runs(s))
		return true;
	if (!check_derive(st, s, TENSOR_POISON_B, &ok, err) || (ok && !check_relaunch(st, s, 2, a, &second, err)))
		return false;
	if (!ok)
		return true;
	*found = second.launches == 2 && second.differ == 2;
	image_drop(&second.image);
	if (*found) {
		const char *name = k->tensors[packed].name;
		snprintf(text, sizeof(text),
			 "the output depends on what %s held before it was packed: derive leaves it unwritten in part",
			 name);
		check_memory_finding(st, s->name, name, "unwritten", -1, -1, text);
	}
	return !subject_runs(s) || check_derive(st, s, TENSOR_POISON_A, &ok, err);
}

/* a: first poison and NaN tails; b: second poison and huge tails; they differ. */
bool check_tell_apart(struct stage *st, struct subject *s, const struct image *a, const struct image *b,
		      struct err *err)
{
	const struct image *known[] = {a, b};
	struct checked seen;
	struct image c;
	char text[320];
	bool ok;

	if (!container_find(st, s, a, &ok, err))
		return false;
	if (ok || !subject_runs(s))
		return true;
	if (!image_fetch(a, err) || !image_fetch(b, err))
		return false;
	int64_t differ;
	if (!unwritten_find(st, &st->main, s->name, a, b, &differ, err))
		return false;
	if (!differ)
		return true;
	struct relaunch rl;
	bool again = false;
	if (!check_relaunch(st, s, 3, a, &rl, err))
		return false;
	if (!rl.differ && !differs_again(st, s, a, &again, err))
		return false;
	/* What differed once and will not do so again is an arm that does not repeat itself; what it was given is not to blame. */
	if (rl.differ || !again) {
		image_drop(&rl.image);
		if (!subject_runs(s))
			return true;
		if (!check_relaunch(st, s, check_affordable(st, RELAUNCHES), a, &rl, err))
			return false;
		/* The launch that brought us here is one of them. */
		if (!rl.differ)
			ok = lone_difference(st, s, a, b, rl.launches + 1, err);
		else
			unstable_finding(st, s, a, &rl);
		image_drop(&rl.image);
		return rl.differ || ok;
	}
	if (!subject_runs(s))
		return true;
	if (!check_launch(st, s->ready, TENSOR_POISON_A, TAIL_HUGE, false, &seen, &ok, err))
		return false;
	if (!ok)
		return true;
	if (!image_take(st, s->ready, known, 2, true, TENSOR_POISON_A, &c, err))
		return false;
	if (!image_fetch(&c, err)) {
		image_drop(&c);
		return false;
	}
	if (!image_same(a, &c)) {
		int64_t nan = non_finite(st, a), huge = non_finite(st, &c);
		const char *tensor;
		if (!over_read_of(st, s, &c, &tensor, err)) {
			image_drop(&c);
			return false;
		}
		if (nan && !huge)
			snprintf(text, sizeof(text),
				 "%lld element%s not finite, only with NaN behind %s: reads beyond it", (long long)nan,
				 nan == 1 ? " is" : "s are", tensor ? tensor : "the inputs");
		else
			snprintf(text, sizeof(text), "the output depends on what lies behind %s: reads beyond it",
				 tensor ? tensor : "the inputs");
		check_memory_finding(st, s->name, tensor, "over_read", -1, -1, text);
	} else {
		snprintf(text, sizeof(text),
			 "the output depends on what the output buffer or the workspace held before the launch");
		check_memory_finding(st, s->name, NULL, "unwritten", -1, -1, text);
	}
	image_drop(&c);
	return true;
}
