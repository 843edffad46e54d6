#include "npy.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "infile.h"
#include "registry.h"

enum { HEADER_MAX = 65536 }; /* bytes before the data; real ones are 128 */

/* The header is a Python dictionary literal. */
struct text {
	const char *p, *end;
};

static void skip_blank(struct text *t)
{
	while (t->p < t->end && isspace((unsigned char)*t->p))
		t->p++;
}

static bool take(struct text *t, char c)
{
	skip_blank(t);
	if (t->p == t->end || *t->p != c)
		return false;
	t->p++;
	return true;
}

static bool take_word(struct text *t, const char *word)
{
	size_t n = strlen(word);
	skip_blank(t);
	if ((size_t)(t->end - t->p) < n || memcmp(t->p, word, n) != 0)
		return false;
	t->p += n;
	return true;
}

/* A quoted string without escapes. */
static bool take_string(struct text *t, char *out, size_t cap)
{
	skip_blank(t);
	if (t->p == t->end || (*t->p != '\'' && *t->p != '"'))
		return false;
	char quote = *t->p++;
	size_t n = 0;
	while (t->p < t->end && *t->p != quote) {
		if (*t->p == '\\' || n + 1 >= cap)
			return false;
		out[n++] = *t->p++;
	}
	out[n] = '\0';
	if (t->p == t->end)
		return false;
	t->p++;
	return true;
}

/* A tuple of whole numbers: (), (3,), (3, 4). */
static bool take_shape(struct text *t, struct npy_header *h, struct err *err)
{
	if (!take(t, '('))
		return err_set(err, "its 'shape' is no tuple");
	while (!take(t, ')')) {
		skip_blank(t);
		int64_t v = 0;
		int digits = 0;
		while (t->p < t->end && isdigit((unsigned char)*t->p)) {
			if (v > (INT64_MAX - 9) / 10)
				return err_set(err, "a dimension of its 'shape' is too large");
			v = v * 10 + (*t->p++ - '0');
			digits++;
		}
		if (!digits)
			return err_set(err, "its 'shape' is no tuple of whole numbers");
		if (h->rank == ASSAY_MAX_RANK)
			return err_set(err, "it has more than %d dimensions", ASSAY_MAX_RANK);
		h->dim[h->rank++] = v;
		if (!take(t, ',')) {
			if (!take(t, ')'))
				return err_set(err, "its 'shape' is no tuple of whole numbers");
			break;
		}
	}
	return true;
}

static bool take_type(const char *descr, struct npy_header *h, size_t *size, struct err *err)
{
	const char *type = descr;
	char order = *descr;
	if (order == '<' || order == '>' || order == '|' || order == '=')
		type++;
	else
		order = '|';
	size_t n = strlen(type);
	if (n < 2 || n > 3 || !strchr("fiuV", type[0]) || !isdigit((unsigned char)type[1]) ||
	    (n == 3 && !isdigit((unsigned char)type[2])))
		return err_set(err, "its element type is '%s'; a plain number type is wanted", descr);
	*size = strtoul(type + 1, NULL, 10);
	if (*size == 0 || *size > 8)
		return err_set(err, "its element type is '%s'; one of 1 to 8 bytes is wanted", descr);
	if (order == '>' && *size > 1)
		return err_set(err, "it is big-endian ('%s'); save it with a.astype(a.dtype.newbyteorder('<'))", descr);
	memcpy(h->type, type, n + 1);
	return true;
}

bool npy_parse(const void *file, size_t bytes, struct npy_header *h, struct err *err)
{
	const unsigned char *b = file;
	memset(h, 0, sizeof *h);
	if (bytes < 10 || memcmp(b, "\x93NUMPY", 6) != 0)
		return err_set(err, "it is no .npy file");
	if (b[6] < 1 || b[6] > 3)
		return err_set(err, "it is of .npy format %d.%d; 1 to 3 are known", b[6], b[7]);
	size_t start = b[6] == 1 ? 10 : 12;
	if (bytes < start)
		return err_set(err, "its header is cut short");
	size_t length = b[8] | (size_t)b[9] << 8;
	if (b[6] > 1)
		length |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
	if (length > HEADER_MAX)
		return err_set(err, "its header is %zu bytes long; up to %d are read", length, HEADER_MAX);
	if (length > bytes - start)
		return err_set(err, "its header is cut short");

	struct text t = {(const char *)b + start, (const char *)b + start + length};
	bool has_descr = false, has_order = false, has_shape = false;
	size_t size = 0;
	if (!take(&t, '{'))
		return err_set(err, "its header is no dictionary");
	while (!take(&t, '}')) {
		char key[32];
		if (!take_string(&t, key, sizeof key) || !take(&t, ':'))
			return err_set(err, "its header is no dictionary of names");
		if (strcmp(key, "descr") == 0 && !has_descr) {
			char descr[32];
			has_descr = true;
			if (!take_string(&t, descr, sizeof descr))
				return err_set(err, "its element type is a record or too long; a plain number type is "
						    "wanted");
			if (!take_type(descr, h, &size, err))
				return false;
		} else if (strcmp(key, "fortran_order") == 0 && !has_order) {
			has_order = true;
			if (take_word(&t, "True"))
				return err_set(err, "it is in Fortran order; save numpy.ascontiguousarray(a)");
			if (!take_word(&t, "False"))
				return err_set(err, "its 'fortran_order' is neither True nor False");
		} else if (strcmp(key, "shape") == 0 && !has_shape) {
			has_shape = true;
			if (!take_shape(&t, h, err))
				return false;
		} else {
			return err_set(err, "its header has a second or unknown key '%s'", key);
		}
		if (!take(&t, ',')) {
			if (!take(&t, '}'))
				return err_set(err, "its header is no dictionary");
			break;
		}
	}
	if (!has_descr || !has_order || !has_shape)
		return err_set(err, "its header lacks '%s'",
			       !has_descr   ? "descr"
			       : !has_order ? "fortran_order"
					    : "shape");

	size_t total = size;
	for (int i = 0; i < h->rank; i++)
		if (__builtin_mul_overflow(total, (size_t)h->dim[i], &total) || total > INT64_MAX)
			return err_set(err, "its 'shape' is too large");
	h->data_offset = start + length;
	h->data_bytes = total;
	return true;
}

static bool same_type(enum assay_dtype want, const char *have)
{
	static const char *const names[][4] = {
		[ASSAY_F64] = {"f8"},        [ASSAY_F32] = {"f4"},        [ASSAY_F16] = {"f2"},
		[ASSAY_BF16] = {"u2", "V2"}, [ASSAY_E4M3] = {"u1", "V1"}, [ASSAY_E5M2] = {"u1", "V1"},
		[ASSAY_I64] = {"i8"},        [ASSAY_I32] = {"i4"},        [ASSAY_I16] = {"i2"},
		[ASSAY_I8] = {"i1"},         [ASSAY_U64] = {"u8"},        [ASSAY_U32] = {"u4"},
		[ASSAY_U16] = {"u2"},        [ASSAY_U8] = {"u1"},         [ASSAY_RECORD] = {NULL},
	};
	for (int i = 0; names[want][i]; i++)
		if (strcmp(names[want][i], have) == 0)
			return true;
	return false;
}

static void print_shape(char *out, size_t cap, const int64_t *dim, int rank)
{
	size_t at = 0;
	int n = snprintf(out, cap, "[");
	for (int i = 0; n > 0 && (at += (size_t)n) < cap && i < rank; i++)
		n = snprintf(out + at, cap - at, "%s%lld", i ? ", " : "", (long long)dim[i]);
	if (at < cap)
		snprintf(out + at, cap - at, "]");
}

static bool check_fit(const struct npy_header *h, enum assay_dtype dtype, const struct assay_shape *shape, size_t bytes,
		      struct err *err)
{
	if (!same_type(dtype, h->type))
		return err_set(err, "its elements are '%s', the tensor's are %s", h->type, registry_dtype_name(dtype));
	bool same = h->rank == shape->rank;
	for (int i = 0; same && i < h->rank; i++)
		same = h->dim[i] == shape->dim[i];
	if (!same) {
		char have[160], want[160];
		print_shape(have, sizeof have, h->dim, h->rank);
		print_shape(want, sizeof want, shape->dim, shape->rank);
		return err_set(err, "its shape is %s, the tensor's is %s", have, want);
	}
	if (h->data_bytes != bytes)
		return err_set(err, "it holds %zu bytes of data, %zu are wanted", h->data_bytes, bytes);
	return true;
}

/* Too short or too long. Returns false. */
static bool says_length(bool is_short, size_t bytes, struct err *err)
{
	return err_set(err,
		       is_short ? "it is cut short: its header promises %zu bytes of data"
				: "it goes on after its %zu bytes of data",
		       bytes);
}

/* The header of an open file. */
static bool read_header(FILE *f, struct npy_header *h, struct err *err)
{
	unsigned char *head = malloc(HEADER_MAX + 12);
	const bool ok =
		head ? npy_parse(head, fread(head, 1, HEADER_MAX + 12, f), h, err) : err_set(err, "out of memory");
	free(head);
	return ok;
}

bool npy_check(const char *path, struct err *err)
{
	struct npy_header h;
	struct stat st;
	FILE *f = infile_stream(path, INFILE_PLAIN, err);
	bool ok = f && read_header(f, &h, err);
	if (ok && fstat(fileno(f), &st) != 0)
		ok = err_set(err, "%s", strerror(errno));
	if (ok && (uint64_t)st.st_size != (uint64_t)h.data_offset + h.data_bytes)
		ok = says_length((uint64_t)st.st_size < (uint64_t)h.data_offset + h.data_bytes, h.data_bytes, err);
	if (f)
		fclose(f);
	return ok || err_prefix(err, "%s", path);
}

bool npy_fits(const char *path, enum assay_dtype dtype, const struct assay_shape *shape, size_t bytes, struct err *err)
{
	struct npy_header h;
	FILE *f = infile_stream(path, INFILE_PLAIN, err);
	const bool ok = f && read_header(f, &h, err) && check_fit(&h, dtype, shape, bytes, err);
	if (f)
		fclose(f);
	return ok || err_prefix(err, "%s", path);
}

bool npy_read(const char *path, enum assay_dtype dtype, const struct assay_shape *shape, void *dst, size_t bytes,
	      struct err *err)
{
	FILE *f = infile_stream(path, INFILE_PLAIN, err);
	if (!f)
		return err_prefix(err, "%s: cannot be opened", path);
	bool ok = false;
	struct npy_header h;
	if (!read_header(f, &h, err) || !check_fit(&h, dtype, shape, bytes, err))
		goto done;
	if (fseek(f, (long)h.data_offset, SEEK_SET) != 0 || fread(dst, 1, bytes, f) != bytes) {
		says_length(true, bytes, err);
		goto done;
	}
	if (fgetc(f) != EOF) {
		says_length(false, bytes, err);
		goto done;
	}
	ok = true;
done:
	fclose(f);
	return ok || err_prefix(err, "%s", path);
}
