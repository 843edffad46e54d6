#define _GNU_SOURCE /* dladdr */
#include "cuda_artifact.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "census.h"
#include "sha256.h"

enum { MACHINE_CUDA = 190 };

/* The file that a function came from, mapped. */
struct image {
	const unsigned char *base;
	size_t bytes;
};

static bool image_open(const void *function, struct image *im)
{
	Dl_info info;
	struct stat st;
	bool ok = false;

	/* The program's own name may be relative to where it was started. */
	const char *path = "/proc/self/exe";
	if (dladdr(function, &info) && info.dli_fname && strstr(info.dli_fname, ".so"))
		path = info.dli_fname;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (fstat(fd, &st) == 0 && st.st_size > 0) {
		im->bytes = (size_t)st.st_size;
		im->base = mmap(NULL, im->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
		ok = im->base != MAP_FAILED;
	}
	close(fd);
	return ok;
}

/* Is [at, at + n) within the image? */
static bool within(const struct image *im, size_t at, size_t n)
{
	return at <= im->bytes && n <= im->bytes - at;
}

/* Section ".text.<name>" of the cubin at `elf`, if it is one for compute capability cc. */
static bool find_section(const struct image *im, size_t elf, const char *name, int cc, const unsigned char **code,
			 size_t *bytes)
{
	Elf64_Ehdr h;
	Elf64_Shdr names, s;

	if (!within(im, elf, sizeof h))
		return false;
	memcpy(&h, im->base + elf, sizeof h);
	/* The architecture is in the second byte of the flags, in older cubins in the first. */
	if (h.e_machine != MACHINE_CUDA || ((int)(h.e_flags >> 8 & 0xff) != cc && (int)(h.e_flags & 0xff) != cc) ||
	    h.e_shentsize != sizeof s || h.e_shstrndx >= h.e_shnum ||
	    !within(im, elf + h.e_shoff, (size_t)h.e_shnum * sizeof s))
		return false;
	memcpy(&names, im->base + elf + h.e_shoff + (size_t)h.e_shstrndx * sizeof s, sizeof names);
	for (int i = 0; i < h.e_shnum; i++) {
		memcpy(&s, im->base + elf + h.e_shoff + (size_t)i * sizeof s, sizeof s);
		size_t at = elf + names.sh_offset + s.sh_name, n = strlen(name);
		if (!within(im, at, 6 + n + 1) || memcmp(im->base + at, ".text.", 6) != 0 ||
		    memcmp(im->base + at + 6, name, n + 1) != 0 || !within(im, elf + s.sh_offset, s.sh_size))
			continue;
		*code = im->base + elf + s.sh_offset;
		*bytes = s.sh_size;
		return true;
	}
	return false;
}

/* The machine code of a device function, out of the fat binaries of the file it was linked into. NULL, or why not. */
static const char *hash_code(const void *function, int cc, char hex[65], size_t *bytes)
{
	struct image im;
	const char *name = NULL,
		   *why = "its machine code was not found in the file: built for another architecture, or compressed";

	if (cudaFuncGetName(&name, function) != cudaSuccess || !name) {
		(void)cudaGetLastError();
		return "the runtime does not tell its name";
	}
	if (!image_open(function, &im))
		return "the file that it came from cannot be read";
	for (size_t at = 0; at + sizeof(Elf64_Ehdr) < im.bytes; at++) {
		const unsigned char *p = memmem(im.base + at, im.bytes - at, ELFMAG, SELFMAG);
		const unsigned char *code;
		if (!p)
			break;
		at = (size_t)(p - im.base);
		if (find_section(&im, at, name, cc, &code, bytes)) {
			sha256_hex(code, *bytes, hex);
			why = NULL;
			break;
		}
	}
	munmap((void *)(uintptr_t)im.base, im.bytes);
	return why;
}

/* The same, out of `known` where it was read before: {hash, bytes} or {why} by address. A whole file is searched for it. */
static const char *code_of(const void *function, int cc, json_t *known, const char **hex, size_t *bytes)
{
	char key[32], hash[65];

	snprintf(key, sizeof key, "%p", function);
	json_t *o = json_object_get(known, key);
	if (!o) {
		const char *why = hash_code(function, cc, hash, bytes);
		o = why ? json_pack("{s:s}", "why", why)
			: json_pack("{s:s, s:I}", "hash", hash, "bytes", (json_int_t)*bytes);
		if (!o || json_object_set_new(known, key, o) != 0)
			return "out of memory";
	}
	*hex = json_string_value(json_object_get(o, "hash"));
	*bytes = (size_t)json_integer_value(json_object_get(o, "bytes"));
	return json_string_value(json_object_get(o, "why"));
}

static void set_or_why(json_t *o, const char *key, json_t *value, const char *why)
{
	char reason[64];

	json_object_set_new(o, key, why ? json_null() : value);
	if (!why)
		return;
	json_decref(value);
	snprintf(reason, sizeof reason, "%s_reason", key);
	json_object_set_new(o, reason, json_string(why));
}

static json_t *of_launch(const struct assay_launch *l, int cc, json_t *known)
{
	struct cudaFuncAttributes a;
	const char *hex = NULL;
	size_t code_bytes = 0;
	int blocks = 0;
	json_t *o = json_object();

	if (!o)
		return NULL;
	const char *no_code = code_of(l->function, cc, known, &hex, &code_bytes), *no_facts = NULL,
		   *no_occupancy = NULL;
	memset(&a, 0, sizeof a);
	if (cudaFuncGetAttributes(&a, l->function) != cudaSuccess) {
		(void)cudaGetLastError();
		no_facts = "the runtime does not know the function";
	}
	if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, l->function,
							  (int)(l->block[0] * l->block[1] * l->block[2]),
							  l->dynamic_smem_bytes) != cudaSuccess) {
		(void)cudaGetLastError();
		no_occupancy = "the runtime does not tell it";
	}
	json_object_set_new(o, "symbol", l->symbol ? json_string(l->symbol) : json_null());
	set_or_why(o, "hash", json_string(hex ? hex : ""), no_code);
	set_or_why(o, "code_bytes", json_integer((json_int_t)code_bytes), no_code);
	set_or_why(o, "sm", json_integer(a.binaryVersion), no_facts);
	set_or_why(o, "registers", json_integer(a.numRegs), no_facts);
	set_or_why(o, "local_bytes", json_integer((json_int_t)a.localSizeBytes), no_facts);
	/* A frame without bytes has no spills; one with some may hold arrays too. */
	set_or_why(o, "spills_bytes", json_integer(0),
		   no_facts ? no_facts
		   : a.localSizeBytes == 0
			   ? NULL
			   : "the local frame (local_bytes) holds spills and arrays, and is not told apart");
	set_or_why(o, "shared_bytes", json_integer((json_int_t)(a.sharedSizeBytes + l->dynamic_smem_bytes)), no_facts);
	json_object_set_new(o, "dynamic_shared_bytes", json_integer((json_int_t)l->dynamic_smem_bytes));
	json_object_set_new(o, "grid", json_pack("[i,i,i]", (int)l->grid[0], (int)l->grid[1], (int)l->grid[2]));
	json_object_set_new(o, "block", json_pack("[i,i,i]", (int)l->block[0], (int)l->block[1], (int)l->block[2]));
	set_or_why(o, "occupancy", json_integer(blocks), no_occupancy);
	return o;
}

/* Of the launches' numbers the most or the sum; null where one is not known. */
static void gather(json_t *o, const json_t *list, const char *key, bool sum)
{
	json_int_t v = 0;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *x = json_object_get(json_array_get(list, i), key);
		if (!json_is_integer(x)) {
			set_or_why(o, key, NULL, "not known of every launch");
			return;
		}
		json_int_t n = json_integer_value(x);
		v = sum ? v + n : n > v ? n : v;
	}
	json_object_set_new(o, key, json_integer(v));
}

json_t *cuda_artifact_json(const struct assay_launch *launches, int n, int cc, json_t *known)
{
	if (n == 1)
		return of_launch(launches, cc, known);
	json_t *o = json_object(), *list = json_array();
	struct sha256 h;
	char hex[65];
	const char *why = n == 0 ? "nothing was launched" : NULL;

	sha256_init(&h);
	for (int i = 0; o && list && i < n; i++) {
		json_t *one = of_launch(&launches[i], cc, known);
		const char *text = json_string_value(json_object_get(one, "hash"));
		if (text)
			sha256_update(&h, text, 64);
		else
			why = "not known of every launch";
		json_array_append_new(list, one);
	}
	sha256_hex_final(&h, hex);
	set_or_why(o, "hash", json_string(hex), why);
	gather(o, list, "code_bytes", true);
	gather(o, list, "registers", false);
	gather(o, list, "local_bytes", true);
	gather(o, list, "spills_bytes", true);
	gather(o, list, "shared_bytes", false);
	json_object_set_new(o, "launches", list);
	return o;
}

json_t *cuda_artifact_census(const struct assay_launch *launches, int n, int cc, char *reason)
{
	enum { MOST = 64 };
	const char *function[MOST];
	char path[4096] = "";
	Dl_info info;

	for (int i = 0; i < n && i < MOST; i++)
		if (cudaFuncGetName(&function[i], launches[i].function) != cudaSuccess || !function[i]) {
			(void)cudaGetLastError();
			snprintf(reason, 256, "the runtime does not tell the function's name");
			return json_null();
		}
	/* All of an arm's functions come from the arm's own module. */
	if (n > 0 && dladdr(launches[0].function, &info) && info.dli_fname && strstr(info.dli_fname, ".so"))
		snprintf(path, sizeof path, "%s", info.dli_fname);
	else if (readlink("/proc/self/exe", path, sizeof path - 1) <= 0)
		path[0] = 0;
	return census_of_cuda(function, n < MOST ? n : MOST, path, cc, reason);
}
