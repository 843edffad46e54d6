/* registry: the table of built-in kernels is generated from kernels/meson.build (kernel_list.h), so a missing descriptor is a link
 * error and nothing registers itself. Plugins are loaded from an explicit path and checked before anything of them is used. */
#define _GNU_SOURCE /* dladdr */
#include "registry.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fp_control.h"

#define KERNEL(id) extern const struct assay_kernel assay_kernel_##id;
#include "kernel_list.h"
#undef KERNEL

static const struct assay_kernel *const builtin[] = {
#define KERNEL(id) &assay_kernel_##id,
#include "kernel_list.h"
#undef KERNEL
	NULL,
};

struct entry {
	const struct assay_kernel *kernel;
	struct assay_kernel *renamed; /* owned copy with the prefixed name; NULL: the kernel as it is */
	char *name; /* owned, of `renamed` */
	struct assay_arm *arms; /* owned, of a pair of builds */
	const char *origin; /* borrowed from registry.plugin[].path, or NULL */
};

struct plugin {
	char *path;
	void *handle;
};

struct registry {
	struct entry *entry; /* sorted by name */
	int n, cap;
	struct plugin *plugin;
	int n_plugins;
};

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->kernel->name, ((const struct entry *)b)->kernel->name);
}

static void add(struct registry *r, struct entry e)
{
	if (r->n == r->cap) {
		r->cap = r->cap ? 2 * r->cap : 16;
		r->entry = must(realloc(r->entry, (size_t)r->cap * sizeof *r->entry));
	}
	r->entry[r->n++] = e;
}

struct registry *registry_create(void)
{
	struct registry *r = must(calloc(1, sizeof *r));
	for (int i = 0; builtin[i]; i++)
		add(r, (struct entry){.kernel = builtin[i]});
	if (r->n)
		qsort(r->entry, (size_t)r->n, sizeof *r->entry, by_name);
	return r;
}

void registry_destroy(struct registry *r)
{
	if (!r)
		return;
	for (int i = 0; i < r->n; i++) {
		free(r->entry[i].renamed);
		free(r->entry[i].name);
		free(r->entry[i].arms);
	}
	free(r->entry);
	for (int i = r->n_plugins; i-- > 0;) {
		if (r->plugin[i].handle)
			dlclose(r->plugin[i].handle);
		free(r->plugin[i].path);
	}
	free(r->plugin);
	free(r);
}

/* True where an address of a plugin lies in this program instead: the dynamic linker bound the plugin's symbol to a
 * symbol of the same name here, and the plugin's own code would never run. */
static bool is_ours(const void *address)
{
	Dl_info them, us;
	static const char here = 0;
	return address && dladdr(address, &them) && dladdr(&here, &us) && them.dli_fbase == us.dli_fbase;
}

static const void *function_address(int (*f)(const struct assay_call *, void *))
{
	const void *p;
	_Static_assert(sizeof p == sizeof f, "POSIX: function and data pointers have one size");
	memcpy(&p, &f, sizeof p);
	return p;
}

static bool check_binding(const struct assay_kernel *k, struct err *err)
{
	static const char remedy[] = "link the plugin with -Wl,-Bsymbolic or hide its symbols (-fvisibility=hidden)";
	if (is_ours(k))
		return err_set(err, "its descriptor of '%s' is bound to the one built into this program; %s", k->name,
			       remedy);
	for (int a = 0; a < k->n_arms; a++)
		for (int b = 0; b < ASSAY_N_BACKENDS; b++) {
			const struct assay_arm_ops *ops = k->arms[a].ops[b];
			if (ops && (is_ours(ops) || is_ours(function_address(ops->run))))
				return err_set(err, "arm '%s' of '%s' is bound to code built into this program; %s",
					       k->arms[a].name, k->name, remedy);
		}
	return true;
}

static bool check_one(const struct registry *r, const struct assay_kernel *k, const char *prefix, int first_new,
		      struct err *err)
{
	if (!registry_check_kernel(k, err) || !check_binding(k, err))
		return false;
	char name[256];
	if (snprintf(name, sizeof name, "%s%s", prefix ? prefix : "", k->name) >= (int)sizeof name)
		return err_set(err, "the name of '%s' with prefix '%s' is longer than %d bytes", k->name, prefix,
			       (int)sizeof name - 1);
	for (int i = 0; i < r->n; i++) {
		if (strcmp(r->entry[i].kernel->name, name) != 0)
			continue;
		if (i >= first_new)
			return err_set(err, "kernel '%s' stands in it twice; give each kernel a name of its own", name);
		return err_set(err,
			       "kernel '%s' is already there (%s); rename the plugin's kernel, or load it under a "
			       "prefix",
			       name, r->entry[i].origin ? r->entry[i].origin : "built in");
	}
	return true;
}

static void add_plugin_kernel(struct registry *r, const struct assay_kernel *k, const char *prefix, const char *origin)
{
	struct entry e = {.kernel = k, .origin = origin};
	if (prefix && *prefix) {
		size_t n = strlen(prefix) + strlen(k->name) + 1;
		e.name = must(malloc(n));
		snprintf(e.name, n, "%s%s", prefix, k->name);
		e.renamed = must(malloc(sizeof *e.renamed));
		*e.renamed = *k;
		e.renamed->name = e.name;
		e.kernel = e.renamed;
	}
	add(r, e);
}

/* The path as dlopen takes it: with a slash, so that no library path is searched. */
static char *explicit_path(const char *path)
{
	size_t n = strlen(path) + 3;
	char *p = must(malloc(n));
	snprintf(p, n, "%s%s", strchr(path, '/') ? "" : "./", path);
	return p;
}

/* ---- two builds of the same kernels -------------------------------------------------------------------------------- */

/* Whether one cell can feed both. */
static bool check_alike(const struct assay_kernel *a, const struct assay_kernel *b, const char *name, struct err *err)
{
	if (a->n_params != b->n_params || a->n_tensors != b->n_tensors)
		return err_set(err, "the two builds of '%s' differ in the number of their parameters or tensors", name);
	for (int i = 0; i < a->n_params; i++)
		if (strcmp(a->params[i].name, b->params[i].name) != 0 || a->params[i].type != b->params[i].type)
			return err_set(err, "the two builds of '%s' differ in parameter '%s'", name, a->params[i].name);
	for (int i = 0; i < a->n_tensors; i++) {
		const struct assay_tensor *x = &a->tensors[i], *y = &b->tensors[i];
		if (strcmp(x->name, y->name) != 0 || x->role != y->role || x->dtype != y->dtype ||
		    x->record_bytes != y->record_bytes)
			return err_set(err, "the two builds of '%s' differ in tensor '%s'", name, x->name);
	}
	return true;
}

/* NAME with the arms of both, those of the base first. */
static void add_pair(struct registry *r, const struct assay_kernel *base, const struct assay_kernel *head,
		     const char *name, const char *origin)
{
	struct entry e = {.origin = origin};
	e.arms = must(calloc((size_t)(base->n_arms + head->n_arms), sizeof *e.arms));
	memcpy(e.arms, base->arms, (size_t)base->n_arms * sizeof *e.arms);
	memcpy(e.arms + base->n_arms, head->arms, (size_t)head->n_arms * sizeof *e.arms);
	e.name = must(strdup(name));
	e.renamed = must(malloc(sizeof *e.renamed));
	*e.renamed = *base;
	e.renamed->name = e.name;
	e.renamed->arms = e.arms;
	e.renamed->n_arms = base->n_arms + head->n_arms;
	e.kernel = e.renamed;
	for (int i = 0; i < r->n; i++)
		if (strcmp(r->entry[i].kernel->name, name) == 0) {
			r->entry[i] = e; /* a built-in one: nothing of it is owned */
			return;
		}
	add(r, e);
}

static bool load_pair(struct registry *r, const char *paths, struct err *err)
{
	char *base = must(strdup(paths)), *head = strchr(base, ':');
	bool ok = head && head > base && head[1];
	if (!ok) {
		err_set(err, "%s%s: two paths are wanted, %sBASE:HEAD", REGISTRY_PAIR, paths, REGISTRY_PAIR);
		goto done;
	}
	*head++ = 0;
	ok = registry_load_plugin(r, base, "base:", err) && registry_load_plugin(r, head, "head:", err);
	int n = r->n, pairs = 0;
	for (int i = 0; ok && i < n; i++) {
		char other[300];
		const struct assay_kernel *a = r->entry[i].kernel, *b;
		if (strncmp(a->name, "base:", 5) != 0)
			continue;
		snprintf(other, sizeof other, "head:%s", a->name + 5);
		if (!(b = registry_find(r, other)))
			continue;
		ok = check_alike(a, b, a->name + 5, err);
		pairs++;
	}
	for (int i = 0; ok && i < n; i++) {
		char other[300];
		const struct assay_kernel *a = r->entry[i].kernel;
		snprintf(other, sizeof other, "head:%s", a->name + 5 * (strncmp(a->name, "base:", 5) == 0));
		const struct assay_kernel *b = NULL;
		for (int k = 0; k < n && strncmp(a->name, "base:", 5) == 0; k++)
			if (strcmp(r->entry[k].kernel->name, other) == 0)
				b = r->entry[k].kernel;
		if (b)
			add_pair(r, a, b, a->name + 5, r->entry[i].origin);
	}
	if (ok && pairs == 0)
		ok = err_set(err, "%s and %s have no kernel in common", base, head);
	qsort(r->entry, (size_t)r->n, sizeof *r->entry, by_name);
done:
	free(base);
	return ok;
}

bool registry_load_plugin(struct registry *r, const char *path, const char *prefix, struct err *err)
{
	if (!prefix && strncmp(path, REGISTRY_PAIR, strlen(REGISTRY_PAIR)) == 0)
		return load_pair(r, path + strlen(REGISTRY_PAIR), err);
	char *full = explicit_path(path);
	int old_n = r->n;
	/* What was linked with -ffast-math would flush denormals from here on, in every arm of the process. */
	const uint64_t fp = fp_control_get();
	/* Local, so that two builds of the same kernels keep their own symbols apart. */
	void *handle = dlopen(full, RTLD_NOW | RTLD_LOCAL);
	fp_control_set(fp);
	if (!handle) {
		const char *why = dlerror();
		err_set(err, "plugin %s: cannot be loaded: %s", path, why ? why : "unknown reason");
		goto fail;
	}
	const struct assay_kernel *one = dlsym(handle, "assay_kernel");
	const struct assay_kernel *const *many = dlsym(handle, "assay_kernels");
	if (is_ours(one) || is_ours(many)) {
		one = NULL;
		many = NULL;
	}
	if (!one && !many) {
		err_set(err,
			"plugin %s: exports neither 'assay_kernel' nor 'assay_kernels'; end it in `const struct "
			"assay_kernel assay_kernel` "
			"with default visibility",
			path);
		goto fail;
	}
	if (many && !many[0]) {
		err_set(err, "plugin %s: its list 'assay_kernels' is empty", path);
		goto fail;
	}
	for (int i = 0; one || many[i]; i++) {
		const struct assay_kernel *k = one ? one : many[i];
		if (!check_one(r, k, prefix, old_n, err)) {
			err_prefix(err, "plugin %s", path);
			goto fail;
		}
		add_plugin_kernel(r, k, prefix, full);
		if (one)
			break;
	}
	r->plugin = must(realloc(r->plugin, (size_t)(r->n_plugins + 1) * sizeof *r->plugin));
	r->plugin[r->n_plugins++] = (struct plugin){.path = full, .handle = handle};
	qsort(r->entry, (size_t)r->n, sizeof *r->entry, by_name);
	return true;
fail:
	while (r->n > old_n) {
		r->n--;
		free(r->entry[r->n].renamed);
		free(r->entry[r->n].name);
	}
	if (handle)
		dlclose(handle);
	free(full);
	return false;
}

int registry_count(const struct registry *r)
{
	return r->n;
}

const struct assay_kernel *registry_at(const struct registry *r, int i)
{
	return r->entry[i].kernel;
}

const struct assay_kernel *registry_find(const struct registry *r, const char *name)
{
	for (int lo = 0, hi = r->n; lo < hi;) {
		int mid = lo + (hi - lo) / 2;
		int c = strcmp(name, r->entry[mid].kernel->name);
		if (c == 0)
			return r->entry[mid].kernel;
		if (c < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return NULL;
}

const char *registry_origin(const struct registry *r, const struct assay_kernel *k)
{
	for (int i = 0; i < r->n; i++)
		if (r->entry[i].kernel == k)
			return r->entry[i].origin;
	return NULL;
}

/* What is after '=': a whole decimal number, no sign but '-', no leading zero. */
static bool parse_arg(const char *s, int64_t *out)
{
	const char *digits = *s == '-' ? s + 1 : s;
	size_t n = strlen(digits);
	if (n == 0 || n > 18 || strspn(digits, "0123456789") != n || (n > 1 && digits[0] == '0'))
		return false;
	*out = strtoll(s, NULL, 10);
	return true;
}

/* "base/x" and "head/x" mean something where the name of the arm stands twice, as in a pair of builds only. */
static const char *side_of(const struct assay_kernel *k, const char *name, bool *second)
{
	bool base = strncmp(name, "base/", 5) == 0, head = strncmp(name, "head/", 5) == 0;
	*second = false;
	size_t len = base || head ? strcspn(name + 5, "=") : 0;
	int n = 0;
	for (int i = 0; len && i < k->n_arms; i++)
		n += strlen(k->arms[i].name) == len && strncmp(k->arms[i].name, name + 5, len) == 0;
	if (n < 2)
		return name;
	*second = head;
	return name + 5;
}

const struct assay_arm *registry_arm(const struct assay_kernel *k, const char *name, int64_t *arg, struct err *err)
{
	bool second;
	name = side_of(k, name, &second);
	const char *eq = strchr(name, '=');
	size_t len = eq ? (size_t)(eq - name) : strlen(name);
	for (int i = 0; i < k->n_arms; i++) {
		const struct assay_arm *a = &k->arms[i];
		if (strlen(a->name) != len || memcmp(a->name, name, len) != 0)
			continue;
		if (second) {
			second = false;
			continue;
		}
		if (!a->arg_name && eq) {
			err_set(err, "arm '%s' of '%s' takes no argument; write '%s'", a->name, k->name, a->name);
			return NULL;
		}
		if (!a->arg_name) {
			*arg = 0;
			return a;
		}
		const char *pow2 = a->arg_pow2 ? ", a power of two" : "";
		int64_t v = 0;
		if (!eq) {
			err_set(err, "arm '%s' of '%s' wants its %s: write '%s=N', N in %lld..%lld%s", a->name, k->name,
				a->arg_name, a->name, (long long)a->arg_min, (long long)a->arg_max, pow2);
			return NULL;
		}
		if (!parse_arg(eq + 1, &v) || v < a->arg_min || v > a->arg_max ||
		    (a->arg_pow2 && (v < 1 || (v & (v - 1))))) {
			err_set(err, "arm '%s' of '%s': %s must be a whole number in %lld..%lld%s", name, k->name,
				a->arg_name, (long long)a->arg_min, (long long)a->arg_max, pow2);
			return NULL;
		}
		*arg = v;
		return a;
	}
	char names[320] = "";
	for (int i = 0; i < k->n_arms && strlen(names) + 64 < sizeof names; i++) {
		size_t used = strlen(names);
		if (k->arms[i].flags & ASSAY_ARM_FAULT)
			continue; /* nobody means a must-fail subject by a slip */
		snprintf(names + used, sizeof names - used, "%s%s%s", used ? ", " : "", k->arms[i].name,
			 k->arms[i].arg_name ? "=N" : "");
	}
	err_set(err, "kernel '%s' has no arm '%s'; it has %s", k->name, name, names);
	return NULL;
}

int registry_param(const struct assay_kernel *k, const char *name)
{
	for (int i = 0; i < k->n_params; i++)
		if (strcmp(k->params[i].name, name) == 0)
			return i;
	return -1;
}

int registry_tensor(const struct assay_kernel *k, const char *name)
{
	for (int i = 0; i < k->n_tensors; i++)
		if (strcmp(k->tensors[i].name, name) == 0)
			return i;
	return -1;
}

static const char *const dtype_names[] = {
	[ASSAY_F64] = "f64",   [ASSAY_F32] = "f32",   [ASSAY_F16] = "f16",       [ASSAY_BF16] = "bf16",
	[ASSAY_E4M3] = "e4m3", [ASSAY_E5M2] = "e5m2", [ASSAY_I64] = "s64",       [ASSAY_I32] = "s32",
	[ASSAY_I16] = "s16",   [ASSAY_I8] = "s8",     [ASSAY_U64] = "u64",       [ASSAY_U32] = "u32",
	[ASSAY_U16] = "u16",   [ASSAY_U8] = "u8",     [ASSAY_RECORD] = "record",
};
enum { N_DTYPES = sizeof dtype_names / sizeof dtype_names[0] };

const char *registry_dtype_name(enum assay_dtype t)
{
	return (unsigned)t < N_DTYPES ? dtype_names[t] : "unknown";
}

int registry_dtype(const char *name)
{
	for (int i = 0; i < N_DTYPES; i++)
		if (strcmp(dtype_names[i], name) == 0)
			return i;
	return -1;
}

bool registry_has_bits(const struct assay_arm *a, int64_t arg, const struct assay_arm *of, int64_t of_arg)
{
	return (a->flags & (ASSAY_ARM_BITWISE | ASSAY_ARM_FAULT)) || (a == of && arg == of_arg);
}
