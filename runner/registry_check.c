/* registry_check: everything that must hold for a descriptor to be used. Each lack has its own sentence, that names the kernel, the
 * place in the descriptor and what to write there. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plain.h"
#include "registry.h"

static const double whole_limit = 9007199254740992.0; /* 2^53 */

/* [a-z][a-z0-9_]*, and dots between such words where `dots`. */
static bool is_name(const char *s, bool dots)
{
	bool start = true;
	if (!s || !*s)
		return false;
	for (; *s; s++) {
		if (start && !islower((unsigned char)*s))
			return false;
		if (*s == '.' && dots) {
			start = true;
			continue;
		}
		if (!islower((unsigned char)*s) && !isdigit((unsigned char)*s) && *s != '_')
			return false;
		start = false;
	}
	return !start;
}

/* A name that is none, so that it can be printed: what is no printable ASCII as \xNN, at most the first 40 bytes. */
static const char *printable(const char *s, char out[200])
{
	size_t n = 0, i = 0;
	if (!s)
		return "(null)";
	for (; s[i] && i < 40; i++) {
		const unsigned char c = (unsigned char)s[i];
		n += (size_t)snprintf(out + n, 200 - n, c < 0x20 || c > 0x7e ? "\\x%02x" : "%c", c);
	}
	snprintf(out + n, 200 - n, "%s", s[i] ? "..." : "");
	return out;
}

/* What is shown of it in a list: one line, with nothing in it that a terminal acts on. */
static bool doc_is_plain(const char *doc)
{
	bool control = false;
	for (size_t n = doc ? strlen(doc) : 0, i = 0; i < n && !control;)
		i += plain_char(doc + i, n - i, &control);
	return !control;
}

static bool is_whole(double v)
{
	return v == floor(v) && fabs(v) <= whole_limit;
}

static bool check_param(const struct assay_kernel *k, int i, struct err *err)
{
	const struct assay_param *p = &k->params[i];
	if (!is_name(p->name, false))
		return err_set(err, "kernel '%s': params[%d].name must be [a-z][a-z0-9_]*", k->name, i);
	for (int j = 0; j < i; j++)
		if (strcmp(k->params[j].name, p->name) == 0)
			return err_set(err, "kernel '%s': parameter '%s' stands twice", k->name, p->name);
	if (strcmp(p->name, "weight") == 0)
		return err_set(err, "kernel '%s': 'weight' is reserved in geometries; name the parameter otherwise",
			       k->name);
	if (p->type != ASSAY_INT && p->type != ASSAY_REAL)
		return err_set(err, "kernel '%s': parameter '%s' has an unknown type", k->name, p->name);
	if (!(p->min <= p->max))
		return err_set(err, "kernel '%s': parameter '%s': min must be at most max, and neither NaN", k->name,
			       p->name);
	if (p->type == ASSAY_INT && (!is_whole(p->min) || !is_whole(p->max)))
		return err_set(err,
			       "kernel '%s': parameter '%s': an integer's min and max must be whole and within +-2^53",
			       k->name, p->name);
	if (p->multiple_of < 0 || (p->multiple_of && p->type != ASSAY_INT))
		return err_set(err, "kernel '%s': parameter '%s': multiple_of must be 0 or positive, and of an integer",
			       k->name, p->name);
	if (!p->required) {
		if (!(p->dflt >= p->min && p->dflt <= p->max))
			return err_set(err, "kernel '%s': parameter '%s': the default %g is outside %g..%g", k->name,
				       p->name, p->dflt, p->min, p->max);
		if (p->type == ASSAY_INT && !is_whole(p->dflt))
			return err_set(err, "kernel '%s': parameter '%s': the default %g is not whole", k->name,
				       p->name, p->dflt);
		if (p->multiple_of && (int64_t)p->dflt % p->multiple_of != 0)
			return err_set(err, "kernel '%s': parameter '%s': the default %g is not a multiple of %lld",
				       k->name, p->name, p->dflt, (long long)p->multiple_of);
	}
	if (!p->doc || !*p->doc)
		return err_set(err, "kernel '%s': parameter '%s' lacks its line of doc", k->name, p->name);
	if (!doc_is_plain(p->doc))
		return err_set(err, "kernel '%s': the doc of parameter '%s' must be one line of UTF-8 text", k->name,
			       p->name);
	return true;
}

static bool check_fields(const struct assay_kernel *k, const struct assay_tensor *t, struct err *err)
{
	if (t->dtype != ASSAY_RECORD) {
		if (t->n_fields || t->record_bytes)
			return err_set(err, "kernel '%s': tensor '%s' has fields and is no record", k->name, t->name);
		return true;
	}
	if (t->n_fields < 1 || t->n_fields > ASSAY_MAX_FIELDS || !t->fields || !t->record_bytes)
		return err_set(err, "kernel '%s': record tensor '%s' needs 1 to %d fields and record_bytes", k->name,
			       t->name, ASSAY_MAX_FIELDS);
	for (int i = 0; i < t->n_fields; i++) {
		const struct assay_field *f = &t->fields[i];
		if (!is_name(f->name, false))
			return err_set(err, "kernel '%s': tensor '%s': fields[%d].name must be [a-z][a-z0-9_]*",
				       k->name, t->name, i);
		if ((unsigned)f->dtype >= ASSAY_RECORD || f->count == 0)
			return err_set(err, "kernel '%s': field '%s.%s' needs a plain dtype and a count", k->name,
				       t->name, f->name);
		uint64_t end = (uint64_t)f->offset + (uint64_t)f->count * assay_dtype_bytes(f->dtype);
		if (end > t->record_bytes)
			return err_set(err, "kernel '%s': field '%s.%s' ends at byte %llu of a record of %u", k->name,
				       t->name, f->name, (unsigned long long)end, t->record_bytes);
		for (int j = 0; j < i; j++) {
			const struct assay_field *g = &t->fields[j];
			if (strcmp(f->name, g->name) == 0)
				return err_set(err, "kernel '%s': field '%s.%s' stands twice", k->name, t->name,
					       f->name);
			if (f->offset < g->offset + g->count * assay_dtype_bytes(g->dtype) && g->offset < end)
				return err_set(err, "kernel '%s': fields '%s.%s' and '%s.%s' overlap", k->name, t->name,
					       g->name, t->name, f->name);
		}
	}
	return true;
}

/* Words in a blank-separated list, or -1 where one is no name. */
static int count_dims(const char *dims)
{
	int n = 0;
	while (*dims) {
		char word[64];
		size_t len = strcspn(dims, " ");
		if (len) {
			if (len >= sizeof word)
				return -1;
			memcpy(word, dims, len);
			word[len] = 0;
			if (!is_name(word, false))
				return -1;
			n++;
		}
		dims += len;
		dims += strspn(dims, " ");
	}
	return n;
}

static bool check_tensor(const struct assay_kernel *k, int i, struct err *err)
{
	const struct assay_tensor *t = &k->tensors[i];
	if (!is_name(t->name, false))
		return err_set(err, "kernel '%s': tensors[%d].name must be [a-z][a-z0-9_]*", k->name, i);
	for (int j = 0; j < i; j++)
		if (strcmp(k->tensors[j].name, t->name) == 0)
			return err_set(err, "kernel '%s': tensor '%s' stands twice", k->name, t->name);
	if ((unsigned)t->role > ASSAY_WORKSPACE || (unsigned)t->dtype > ASSAY_RECORD || (unsigned)t->use > ASSAY_SCALE)
		return err_set(err, "kernel '%s': tensor '%s' has an unknown role, dtype or use", k->name, t->name);
	if (!t->dims || count_dims(t->dims) < 0 || count_dims(t->dims) > ASSAY_MAX_RANK)
		return err_set(err, "kernel '%s': tensor '%s': dims must name at most %d dimensions, blanks between",
			       k->name, t->name, ASSAY_MAX_RANK);
	if (t->use == ASSAY_INDEX && (t->dtype < ASSAY_I64 || t->dtype > ASSAY_U8))
		return err_set(err, "kernel '%s': index tensor '%s' must have an integer dtype", k->name, t->name);
	return check_fields(k, t, err);
}

static bool check_arm(const struct assay_kernel *k, int i, bool *runs, struct err *err)
{
	const struct assay_arm *a = &k->arms[i];
	if (!is_name(a->name, false))
		return err_set(err, "kernel '%s': arms[%d].name must be [a-z][a-z0-9_]*", k->name, i);
	if (strcmp(a->name, "null") == 0)
		return err_set(err, "kernel '%s': an arm cannot be named 'null': that is the runner's own", k->name);
	for (int j = 0; j < i; j++)
		if (strcmp(k->arms[j].name, a->name) == 0)
			return err_set(err, "kernel '%s': arm '%s' stands twice", k->name, a->name);
	if (strcmp(a->name, "shipped") == 0 && i != 0)
		return err_set(err, "kernel '%s': arm 'shipped' must be the first arm, it is arms[%d]", k->name, i);
	if (i == 0 && (a->arg_name || a->flags & ASSAY_ARM_FAULT))
		return err_set(err,
			       "kernel '%s': arms[0] is what ships; it takes no argument and is no must-fail subject",
			       k->name);
	if (a->flags & ~(unsigned)(ASSAY_ARM_BITWISE | ASSAY_ARM_FAULT | ASSAY_ARM_SELECTABLE))
		return err_set(err, "kernel '%s': arm '%s' has unknown flags %#x", k->name, a->name, a->flags);
	if (a->arg_name && (!*a->arg_name || a->arg_min > a->arg_max || (a->arg_pow2 && a->arg_min < 1)))
		return err_set(err,
			       "kernel '%s': arm '%s': arg_min must be at most arg_max, and at least 1 with arg_pow2",
			       k->name, a->name);
	if (!a->doc || !*a->doc)
		return err_set(err, "kernel '%s': arm '%s' lacks its line of doc", k->name, a->name);
	if (!doc_is_plain(a->doc))
		return err_set(err, "kernel '%s': the doc of arm '%s' must be one line of UTF-8 text", k->name,
			       a->name);
	bool any = false;
	for (int b = 0; b < ASSAY_N_BACKENDS; b++) {
		const struct assay_arm_ops *ops = a->ops[b];
		if (!ops)
			continue;
		any = true;
		if (!ops->run)
			return err_set(err, "kernel '%s': arm '%s' has ops without run", k->name, a->name);
		if (ops->finish && !ops->plan)
			return err_set(err, "kernel '%s': arm '%s' has finish and no plan that makes its state",
				       k->name, a->name);
	}
	*runs |= any; /* device arms have no ops at all in a build without that device */
	return true;
}

/* Some point that refuse() takes, or false. */
static bool sample_point(const struct assay_kernel *k, struct assay_point *pt)
{
	static const double wanted[] = {1, 64, 1024, 0, 4096, 1e9};
	for (size_t w = 0; w < sizeof wanted / sizeof wanted[0]; w++) {
		memset(pt, 0, sizeof *pt);
		for (int i = 0; i < k->n_params; i++) {
			const struct assay_param *p = &k->params[i];
			double v = !p->required ? p->dflt : fmin(fmax(wanted[w], p->min), p->max);
			if (p->type == ASSAY_REAL) {
				pt->v[i].d = v;
				continue;
			}
			int64_t n = (int64_t)v, m = p->multiple_of;
			if (m && n % m) {
				n += m - (n % m + m) % m;
				if ((double)n > p->max)
					n -= m;
			}
			pt->v[i].i = n;
		}
		if (!k->refuse || !k->refuse(pt))
			return true;
	}
	return false;
}

static bool check_shapes(const struct assay_kernel *k, struct err *err)
{
	struct assay_point pt;
	/* Where no sample is accepted the shapes are still checked, cell by cell, when tensors are made. */
	if (!sample_point(k, &pt))
		return true;
	for (int t = 0; t < k->n_tensors; t++) {
		const struct assay_tensor *tensor = &k->tensors[t];
		struct assay_shape s = {0};
		if (k->shape(&pt, t, &s) != 0)
			return err_set(err,
				       "kernel '%s': shape() fails for tensor '%s' at a point that its ranges allow",
				       k->name, tensor->name);
		if (s.rank != count_dims(tensor->dims))
			return err_set(err,
				       "kernel '%s': tensor '%s' names %d dimensions (\"%s\") and shape() gives rank "
				       "%d",
				       k->name, tensor->name, count_dims(tensor->dims), tensor->dims, s.rank);
		for (int d = 0; d < s.rank; d++)
			if (s.dim[d] < 0 || s.stride[d] < 0)
				return err_set(err,
					       "kernel '%s': tensor '%s': shape() gives a negative dimension or stride",
					       k->name, tensor->name);
		if (tensor->use == ASSAY_INDEX && tensor->role == ASSAY_IN && s.index_bound < 1 &&
		    assay_shape_count(&s) > 0)
			return err_set(err, "kernel '%s': index tensor '%s': shape() must set index_bound", k->name,
				       tensor->name);
		bool output = tensor->role == ASSAY_OUT || tensor->role == ASSAY_INOUT;
		if (k->reference && output && k->row_rank > s.rank)
			return err_set(err, "kernel '%s': row_rank %d is more than the rank %d of output '%s'", k->name,
				       k->row_rank, s.rank, tensor->name);
	}
	return true;
}

bool registry_check_kernel(const struct assay_kernel *k, struct err *err)
{
	char shown[200];
	if (k->abi != ASSAY_ABI)
		return err_set(err,
			       "a kernel has ABI number %u and this program wants %d; build it against this adapter.h",
			       k->abi, ASSAY_ABI);
	if (!is_name(k->name, true) || !strchr(k->name, '.'))
		return err_set(err, "a kernel's name must be family.name in [a-z0-9_], it is '%s'",
			       printable(k->name, shown));
	if (!k->doc || !*k->doc)
		return err_set(err, "kernel '%s' lacks its line of doc", k->name);
	if (!doc_is_plain(k->doc))
		return err_set(err, "kernel '%s': its doc must be one line of UTF-8 text", k->name);
	if (k->n_params < 0 || k->n_params > ASSAY_MAX_PARAMS || (k->n_params && !k->params))
		return err_set(err, "kernel '%s': n_params must be 0 to %d, with params", k->name, ASSAY_MAX_PARAMS);
	if (k->n_tensors < 1 || k->n_tensors > ASSAY_MAX_TENSORS || !k->tensors)
		return err_set(err, "kernel '%s': n_tensors must be 1 to %d, with tensors", k->name, ASSAY_MAX_TENSORS);
	if (k->n_arms < 1 || !k->arms)
		return err_set(err, "kernel '%s' has no arm", k->name);
	if (!k->shape)
		return err_set(err, "kernel '%s' lacks its shape hook", k->name);
	if (!k->work)
		return err_set(err, "kernel '%s' lacks its work hook: bytes, least bytes and operations of a point",
			       k->name);

	bool output = false, runs = false;
	for (int i = 0; i < k->n_params; i++)
		if (!check_param(k, i, err))
			return false;
	for (int i = 0; i < k->n_tensors; i++) {
		if (!check_tensor(k, i, err))
			return false;
		output |= k->tensors[i].role == ASSAY_OUT || k->tensors[i].role == ASSAY_INOUT;
	}
	if (!output)
		return err_set(err, "kernel '%s' has no output: one tensor must be ASSAY_OUT or ASSAY_INOUT", k->name);
	for (int i = 0; i < k->n_arms; i++) {
		if (!check_arm(k, i, &runs, err))
			return false;
	}
	if (!runs)
		return err_set(err, "kernel '%s' has no arm with ops on any backend", k->name);
	for (int i = 0; k->data_axes && k->data_axes[i]; i++)
		if (registry_param(k, k->data_axes[i]) < 0)
			return err_set(err, "kernel '%s': data_axes names '%s', which is no parameter", k->name,
				       k->data_axes[i]);
	if (k->reference && k->row_rank < 1)
		return err_set(err, "kernel '%s' has a reference and row_rank %d; it must be at least 1", k->name,
			       k->row_rank);
	return check_shapes(k, err);
}
