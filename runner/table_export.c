/* table_export: a serving table as a C header: what serving compiles and what the gate reads are one file. The lookup that it declares does what
 * table_lookup does; a test compiles it and holds the two against each other. */
#include <ctype.h>
#include <string.h>

#include "table_tool.h"

const char *table_identifier(struct arena *a, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');
	char *s = arena_printf(a, "%s%.*s", isdigit((unsigned char)name[0]) ? "_" : "",
			       (int)(dot && dot > name ? dot - name : (long)strlen(name)), name);
	for (char *p = s; *p; p++)
		if (!isalnum((unsigned char)*p))
			*p = '_';
	return s;
}

static bool is_identifier(const char *s)
{
	static const char *const words[] = {"int",   "for",     "if",     "do",       "double", "char",   "else",
					    "long",  "short",   "void",   "const",    "static", "struct", "return",
					    "while", "default", "switch", "case",     "enum",   "float",  "class",
					    "new",   "delete",  "this",   "template", "kernel", "best",   "i"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcmp(s, words[i]) == 0)
			return false;
	if (!isalpha((unsigned char)s[0]) && s[0] != '_')
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && *s != '_')
			return false;
	return true;
}

static void c_string(FILE *f, const char *s)
{
	if (!s) {
		fputs("NULL", f);
		return;
	}
	fputc('"', f);
	for (; *s; s++) {
		const unsigned char c = (unsigned char)*s;
		if (c == '"' || c == '\\' || c == '?') /* no trigraphs */
			fprintf(f, "\\%c", c);
		else if (c < 0x20 || c >= 0x7F)
			fprintf(f, "\\%03o", c);
		else
			fputc(c, f);
	}
	fputc('"', f);
}

static void comment_text(FILE *f, const char *s)
{
	for (; *s; s++)
		fputc((*s == '/' && s[1] == '*') || (*s == '*' && s[1] == '/') || (unsigned char)*s < 0x20 ? ' ' : *s,
		      f);
}

/* The parameters of the lookup: "double t_q, double kv". */
static void parameters(const struct table *t, FILE *f)
{
	for (int k = 0; k < t->n_keys; k++)
		fprintf(f, ", double %s", t->key[k]);
}

static void rows(const struct table *t, const char *name, FILE *f)
{
	fprintf(f,
		"struct %s_row {\n\tconst char *kernel; /* may be a glob of * and ?; NULL: every kernel */\n"
		"\tdouble key[%d];%s\n\tint is_default;\n\tconst char *arm;\n};\n\n",
		name, t->n_keys ? t->n_keys : 1, t->n_keys ? "" : " /* unused: the table has no key */");
	fprintf(f, "static const struct %s_row %s_rows[] = {\n", name, name);
	for (int i = 0; i < t->n_rows; i++) {
		const struct table_row *r = &t->row[i];
		fputs("\t{", f);
		c_string(f, r->kernel);
		fputs(", {", f);
		for (int k = 0; k < (t->n_keys ? t->n_keys : 1); k++)
			fprintf(f, "%s%.17g", k ? ", " : "", r->is_default || k >= t->n_keys ? 0.0 : r->key[k].d);
		fprintf(f, "}, %d, ", r->is_default);
		c_string(f, r->arm);
		fputs("},\n", f);
	}
	if (t->n_rows == 0)
		fputs("\t{NULL, {0}, 0, NULL},\n", f);
	fprintf(f, "};\nenum { %s_n_rows = %d, %s_n_keys = %d };\n\n", name, t->n_rows, name, t->n_keys);
}

static void functions(const struct table *t, const char *name, FILE *f)
{
	static const char *const distances[] = {
		"k == v ? 0 : -1",
		"k <= v ? v - k : -1",
		"k >= v ? k - v : -1",
		"k < v ? v - k : k - v",
	};
	fprintf(f,
		"/* How far key k is from v; negative: not allowed (lookup: %s). */\n"
		"static inline double %s_distance(double k, double v)\n{\n\treturn %s;\n}\n\n",
		table_lookup_names[t->lookup], name, distances[t->lookup]);
	fprintf(f,
		"static inline int %s_same(const char *a, const char *b)\n{\n"
		"\twhile (*a && *a == *b) {\n\t\ta++;\n\t\tb++;\n\t}\n\treturn *a == *b;\n}\n\n",
		name);
	fprintf(f,
		"static inline int %s_glob(const char *glob, const char *text)\n{\n"
		"\tconst char *star = NULL, *from = NULL;\n"
		"\twhile (*text) {\n"
		"\t\tif (*glob == '*') {\n\t\t\tstar = ++glob;\n\t\t\tfrom = text;\n"
		"\t\t} else if (*glob == '?' || *glob == *text) {\n\t\t\tglob++;\n\t\t\ttext++;\n"
		"\t\t} else if (star) {\n\t\t\tglob = star;\n\t\t\ttext = ++from;\n"
		"\t\t} else {\n\t\t\treturn 0;\n\t\t}\n\t}\n"
		"\twhile (*glob == '*')\n\t\tglob++;\n\treturn *glob == 0;\n}\n\n",
		name);
	fprintf(f,
		"/* The best row of those whose kernel is written so: the nearest, else the default. */\n"
		"static inline const struct %s_row *%s_in_block(const char *kernel, const double *v)\n{\n"
		"\tconst struct %s_row *best = NULL, *other = NULL;\n"
		"\tfor (int i = 0; i < %s_n_rows; i++) {\n"
		"\t\tconst struct %s_row *r = &%s_rows[i];\n"
		"\t\tif (r->kernel && kernel ? !%s_same(r->kernel, kernel) : r->kernel != kernel)\n\t\t\tcontinue;\n"
		"\t\tif (r->is_default) {\n\t\t\tother = r;\n\t\t\tcontinue;\n\t\t}\n"
		"\t\tint fits = 1, nearer = !best;\n"
		"\t\tfor (int k = 0; k < %s_n_keys; k++)\n"
		"\t\t\tfits &= %s_distance(r->key[k], v[k]) >= 0;\n"
		"\t\tfor (int k = 0; k < %s_n_keys && fits && best; k++) {\n"
		"\t\t\tdouble x = %s_distance(r->key[k], v[k]), y = %s_distance(best->key[k], v[k]);\n"
		"\t\t\tif (x != y || r->key[k] != best->key[k]) {\n"
		"\t\t\t\tnearer = x != y ? x < y : r->key[k] < best->key[k];\n\t\t\t\tbreak;\n\t\t\t}\n\t\t}\n"
		"\t\tif (fits && nearer)\n\t\t\tbest = r;\n\t}\n"
		"\treturn best ? best : other;\n}\n\n",
		name, name, name, name, name, name, name, name, name, name, name, name);
	fprintf(f,
		"/* The arm that serves a kernel at a point; NULL: the table has neither a row nor a default for it.\n"
		" * Rows that name the kernel speak first, then globs in their order, then rows of every kernel. */\n"
		"static inline const char *%s_arm(const char *kernel",
		name);
	parameters(t, f);
	fputs(")\n{\n\tconst double v[] = {", f);
	for (int k = 0; k < t->n_keys; k++)
		fprintf(f, "%s%s", k ? ", " : "", t->key[k]);
	fprintf(f,
		"%s};\n\tconst struct %s_row *best = %s_in_block(kernel, v);\n"
		"\tfor (int i = 0; i < %s_n_rows && !best; i++)\n"
		"\t\tif (%s_rows[i].kernel && %s_glob(%s_rows[i].kernel, kernel))\n"
		"\t\t\tbest = %s_in_block(%s_rows[i].kernel, v);\n"
		"\tif (!best)\n\t\tbest = %s_in_block(NULL, v);\n\treturn best ? best->arm : NULL;\n}\n\n",
		t->n_keys ? "" : "0", name, name, name, name, name, name, name, name, name);
}

bool table_export_c(const struct table *t, const char *name, FILE *f, struct err *err)
{
	if (!is_identifier(name))
		return err_set(err, "'%s' is no C identifier; say another with --name", name);
	for (int k = 0; k < t->n_keys; k++)
		if (!is_identifier(t->key[k]))
			return err_set(err, "key '%s' of %s cannot be the name of a C parameter", t->key[k], t->path);
	fputs("/* A serving table, written by `assay table export` from ", f);
	comment_text(f, t->path);
	fprintf(f,
		". Edit the table, not this.\n * The arms are names; 'shipped' is what the suite says it is. */\n"
		"#ifndef ASSAY_SERVING_%s_H\n#define ASSAY_SERVING_%s_H\n\n#include <stddef.h>\n\n",
		name, name);
	rows(t, name, f);
	functions(t, name, f);
	fputs("#endif\n", f);
	return true;
}
