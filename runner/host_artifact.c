#define _GNU_SOURCE /* dladdr1 */
#include "host_artifact.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sha256.h"

/* A module's file, mapped, and its symbol table. */
struct symbols {
	const unsigned char *file;
	size_t bytes;
	const ElfW(Sym) * sym;
	size_t n;
	const char *names;
	size_t names_bytes;
	bool dynamic_only; /* the file is stripped: only exported symbols are known */
};

/* [offset, offset+bytes) lies in the file. */
static bool within(const struct symbols *s, uint64_t offset, uint64_t bytes)
{
	return offset <= s->bytes && bytes <= s->bytes - offset;
}

static bool open_symbols(const char *path, struct symbols *s)
{
	memset(s, 0, sizeof *s);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	struct stat st;
	if (fstat(fd, &st) == 0 && st.st_size >= (off_t)sizeof(ElfW(Ehdr))) {
		void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (p != MAP_FAILED) {
			s->file = p;
			s->bytes = (size_t)st.st_size;
		}
	}
	close(fd);
	if (!s->file)
		return false;

	const ElfW(Ehdr) *eh = (const void *)s->file;
	if (memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0 || eh->e_shentsize != sizeof(ElfW(Shdr)) || eh->e_shoff % 8 ||
	    !within(s, eh->e_shoff, (uint64_t)eh->e_shnum * sizeof(ElfW(Shdr))))
		return false;
	const ElfW(Shdr) *sh = (const void *)(s->file + eh->e_shoff);
	for (int pass = 0; pass < 2 && !s->sym; pass++)
		for (int i = 0; i < eh->e_shnum; i++) {
			if (sh[i].sh_type != (pass ? SHT_DYNSYM : SHT_SYMTAB) || sh[i].sh_link >= eh->e_shnum)
				continue;
			const ElfW(Shdr) *str = &sh[sh[i].sh_link];
			if (sh[i].sh_offset % 8 || !within(s, sh[i].sh_offset, sh[i].sh_size) ||
			    !within(s, str->sh_offset, str->sh_size) || !str->sh_size ||
			    s->file[str->sh_offset + str->sh_size - 1])
				continue;
			s->sym = (const void *)(s->file + sh[i].sh_offset);
			s->n = sh[i].sh_size / sizeof(ElfW(Sym));
			s->names = (const char *)s->file + str->sh_offset;
			s->names_bytes = str->sh_size;
			s->dynamic_only = pass == 1;
			break;
		}
	return s->sym != NULL;
}

static void close_symbols(struct symbols *s)
{
	if (s->file)
		munmap((void *)(uintptr_t)s->file, s->bytes);
}

/* Name of a function that is defined in the module, or NULL. */
static const char *function_name(const struct symbols *s, const ElfW(Sym) * y)
{
	if ((y->st_info & 15) != STT_FUNC || y->st_shndx == SHN_UNDEF || !y->st_size || y->st_name >= s->names_bytes)
		return NULL;
	return s->names + y->st_name;
}

/* The code of an address is read from the file and not from memory: [value, value+size) through the program headers. */
static const unsigned char *code_of(const struct symbols *s, const ElfW(Sym) * y)
{
	const ElfW(Ehdr) *eh = (const void *)s->file;
	if (eh->e_phentsize != sizeof(ElfW(Phdr)) || eh->e_phoff % 8 ||
	    !within(s, eh->e_phoff, (uint64_t)eh->e_phnum * sizeof(ElfW(Phdr))))
		return NULL;
	const ElfW(Phdr) *ph = (const void *)(s->file + eh->e_phoff);
	for (int i = 0; i < eh->e_phnum; i++)
		if (ph[i].p_type == PT_LOAD && y->st_value >= ph[i].p_vaddr &&
		    y->st_value - ph[i].p_vaddr <= ph[i].p_filesz &&
		    y->st_size <= ph[i].p_filesz - (y->st_value - ph[i].p_vaddr)) {
			uint64_t at = ph[i].p_offset + (y->st_value - ph[i].p_vaddr);
			return within(s, at, y->st_size) ? s->file + at : NULL;
		}
	return NULL;
}

static const ElfW(Sym) * symbol_at(const struct symbols *s, uint64_t value)
{
	for (size_t i = 0; i < s->n; i++)
		if (function_name(s, &s->sym[i]) && value >= s->sym[i].st_value &&
		    value - s->sym[i].st_value < s->sym[i].st_size)
			return &s->sym[i];
	return NULL;
}

/* Clones of one body, made by hand, end in what they need of the CPU. */
static bool is_clone(const char *rest)
{
	return strcmp(rest, "_avx512") == 0 || strcmp(rest, "_avx2") == 0 || strcmp(rest, "_base") == 0;
}

/* The source file that a local symbol is from: the symbol that names it, before all of that file's. 0: not local. */
static size_t source_of(const struct symbols *s, size_t i)
{
	if (s->sym[i].st_info >> 4 != STB_LOCAL)
		return 0;
	while (i > 0 && (s->sym[i].st_info & 15) != STT_FILE)
		i--;
	return i;
}

/* Whether symbol i is a part of the function own: its name goes on with a dot, or it is a clone; and it is of the same source file, as far as
 * both are local: static functions of one name stand in several files. */
static bool is_part(const struct symbols *s, size_t i, const ElfW(Sym) * own)
{
	const char *name = function_name(s, &s->sym[i]), *own_name = s->names + own->st_name;
	const size_t stem = strlen(own_name);
	if (!name || strncmp(name, own_name, stem) != 0 || (name[stem] != '.' && !is_clone(name + stem)))
		return false;
	const size_t from = source_of(s, (size_t)(own - s->sym));
	return from == 0 || source_of(s, i) == from;
}

/* Hashes the function at value and its split-off parts. NULL, or why there is no hash. */
static const char *hash_code(const struct symbols *s, uint64_t value, char name[static 128], char hex[static 65],
			     int64_t *code_bytes)
{
	const ElfW(Sym) *own = symbol_at(s, value);
	if (!own)
		return s->dynamic_only ? "the module is stripped" : "no symbol covers the address";
	const char *own_name = s->names + own->st_name;
	snprintf(name, 128, "%s", own_name);

	struct sha256 h;
	sha256_init(&h);
	*code_bytes = 0;
	const unsigned char *code = code_of(s, own);
	if (!code)
		return "the code is not in the file";
	sha256_update(&h, code, own->st_size);
	*code_bytes = (int64_t)own->st_size;
	for (size_t i = 0; i < s->n; i++) {
		if (!is_part(s, i, own) || !(code = code_of(s, &s->sym[i])))
			continue;
		sha256_update(&h, code, s->sym[i].st_size);
		*code_bytes += (int64_t)s->sym[i].st_size;
	}
	sha256_hex_final(&h, hex);
	return NULL;
}

/* The clone that the dispatchers of kernels/mla/vec.h take here; others do not run. */
static bool runs_here(const char *name)
{
#if defined(__x86_64__)
	const bool wide = __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
	const bool middle = !wide && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
	const char *us = strrchr(name, '_');
	if (us && is_clone(us))
		return strcmp(us, wide ? "_avx512" : middle ? "_avx2" : "_base") == 0;
#endif
	return true;
}

int host_artifact_ranges(const void *function, struct host_range *out, int cap, char *path, size_t cap_path,
			 const char **why)
{
	struct symbols s = {0};
	Dl_info di;
	void *extra = NULL;
	int n = 0;
	*why = "the address belongs to no loaded module";
	if (!function || !dladdr1(function, &di, &extra, RTLD_DL_LINKMAP) || !di.dli_fname)
		return 0;
	const struct link_map *lm = extra;
	const bool is_main = !lm->l_name || !lm->l_name[0];
	snprintf(path, cap_path, "%s", is_main ? "/proc/self/exe" : di.dli_fname);
	if (is_main) { /* a tool that is started has another self */
		const ssize_t got = readlink("/proc/self/exe", path, cap_path - 1);
		if (got > 0)
			path[got] = 0;
	}
	*why = "the module's file has no readable symbol table";
	if (open_symbols(is_main ? "/proc/self/exe" : path, &s)) {
		const ElfW(Sym) *own = symbol_at(&s, (uint64_t)((uintptr_t)function - lm->l_addr));
		*why = s.dynamic_only ? "the module is stripped" : "no symbol covers the address";
		for (size_t i = 0; own && i < s.n && n < cap; i++) {
			const ElfW(Sym) *y = i == 0 ? own : &s.sym[i];
			if (i > 0 && (!is_part(&s, i, own) || !runs_here(function_name(&s, y))))
				continue;
			out[n++] = (struct host_range){y->st_value, y->st_value + y->st_size};
		}
	}
	close_symbols(&s);
	return n;
}

static json_t *artifact_of(const struct assay_launch *l)
{
	json_t *o = json_object();
	if (!o)
		return NULL;
	const char *why = "the arm did not say which function it launches";
	char name[128] = "", hex[65] = "";
	int64_t code_bytes = 0;
	const char *module = NULL;
	Dl_info di;
	void *extra = NULL;
	if (l->function) {
		why = "the address belongs to no loaded module";
		if (dladdr1(l->function, &di, &extra, RTLD_DL_LINKMAP) && di.dli_fname) {
			const struct link_map *lm = extra;
			/* The main program's file is known by no path that holds after a chdir. */
			bool is_main = !lm->l_name || !lm->l_name[0];
			module = is_main                      ? "(main program)"
				 : strrchr(di.dli_fname, '/') ? strrchr(di.dli_fname, '/') + 1
							      : di.dli_fname;
			struct symbols s;
			why = "the module's file has no readable symbol table";
			if (open_symbols(is_main ? "/proc/self/exe" : di.dli_fname, &s))
				why = hash_code(&s, (uint64_t)((uintptr_t)l->function - lm->l_addr), name, hex,
						&code_bytes);
			close_symbols(&s);
		}
	}
	const char *symbol = l->symbol ? l->symbol : name[0] ? name : NULL;
	json_object_set_new(o, "symbol", symbol ? json_string(symbol) : json_null());
	json_object_set_new(o, "function", name[0] ? json_string(name) : json_null());
	json_object_set_new(o, "module", module ? json_string(module) : json_null());
	json_object_set_new(o, "hash", why ? json_null() : json_string(hex));
	if (why)
		json_object_set_new(o, "hash_reason", json_string(why));
	json_object_set_new(o, "code_bytes", why ? json_null() : json_integer(code_bytes));
	json_object_set_new(o, "grid", json_pack("[i,i,i]", (int)l->grid[0], (int)l->grid[1], (int)l->grid[2]));
	json_object_set_new(o, "block", json_pack("[i,i,i]", (int)l->block[0], (int)l->block[1], (int)l->block[2]));
	static const char *const device_only[] = {"registers", "spills_bytes", "shared_bytes", "occupancy"};
	for (size_t i = 0; i < sizeof device_only / sizeof device_only[0]; i++) {
		char key[64];
		snprintf(key, sizeof key, "%s_reason", device_only[i]);
		json_object_set_new(o, device_only[i], json_null());
		json_object_set_new(o, key, json_string("a host function has none"));
	}
	return o;
}

json_t *host_artifact_json(const struct assay_launch *launches, int n)
{
	if (n == 1)
		return artifact_of(launches);
	json_t *o = json_object(), *list = json_array();
	if (!o || !list) {
		json_decref(o);
		json_decref(list);
		return NULL;
	}
	struct sha256 h;
	char hex[65];
	const char *why = n ? NULL : "the arm noted no launch";
	int64_t code_bytes = 0;
	sha256_init(&h);
	for (int i = 0; i < n; i++) {
		json_t *one = artifact_of(&launches[i]);
		const char *text = json_string_value(json_object_get(one, "hash"));
		if (text)
			sha256_update(&h, text, 64);
		else
			why = "not every function has a hash";
		code_bytes += json_integer_value(json_object_get(one, "code_bytes"));
		json_array_append_new(list, one);
	}
	sha256_hex_final(&h, hex);
	json_object_set_new(o, "hash", why ? json_null() : json_string(hex));
	if (why)
		json_object_set_new(o, "hash_reason", json_string(why));
	json_object_set_new(o, "code_bytes", why ? json_null() : json_integer(code_bytes));
	json_object_set_new(o, "launches", list);
	return o;
}
