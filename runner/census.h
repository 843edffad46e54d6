/* census: the machine code of a kernel, counted by class of instruction, and what may differ between two arms.
 *
 * A ratio of two arms says what one variable is worth only where nothing else moved. The worker reads the code that was launched
 * (census_host.c, census_cuda.c) and stores the counts as `artifact.census` of an arm; the supervisor compares them as the suite's
 * `ratio` check says (census_check), and a planted file can stand in for a disassembler (census_file_load). Parsers and comparison are
 * pure. */
#ifndef ASSAY_CENSUS_H
#define ASSAY_CENSUS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "assay/adapter.h"
#include "err.h"

/* ---- classes ------------------------------------------------------------------------------------------------------- */

enum census_group {
	CG_MATRIX, /* what multiplies and adds many: IMMA, HMMA …; on the host dot products and fma */
	CG_CONVERT, /* from one number format to another */
	CG_MEMORY, /* global and shared memory, asynchronous copies, atomics */
	CG_SPILL, /* local memory; on the host what goes through the stack pointer */
	CG_OTHER,
	CG_N
};

enum { CENSUS_CLASSES = 64 };

struct census {
	int64_t count[CENSUS_CLASSES]; /* by class, see census_class_name */
	int64_t total; /* instructions, those of no class too */
};

int census_classes(void); /* how many there are */
const char *census_class_name(int c); /* "IMMA" */
enum census_group census_class_group(int c);
int census_class_find(const char *name); /* -1: no such class */
/* The class of a mnemonic of a device ("LDG.E.128") or a host's; the operands decide loads from stores on the host. -1: of none. */
int census_class_sass(const char *mnemonic, size_t n);
int census_class_host(const char *mnemonic, size_t n, const char *operands);

/* ---- text of disassemblers ------------------------------------------------------------------------------------------- */

/* Adds the instructions of `function` (mangled; NULL: all) in what `cuobjdump -sass` or `nvdisasm` wrote. arch: "sm_90a", or NULL: whatever
 * stands there; only the first function of that name counts. Returns how many instructions were added. text needs no final 0. */
int64_t census_parse_sass(const char *text, size_t bytes, const char *function, const char *arch, struct census *out);
/* The same of `objdump -d --no-show-raw-insn -M intel`, all of it. */
int64_t census_parse_objdump(const char *text, size_t bytes, struct census *out);

/* {"tool", "instructions", "counts": {class: n, …}} without the classes that are 0. New reference. */
json_t *census_json(const struct census *c, const char *tool);

/* ---- what was launched ----------------------------------------------------------------------------------------------- */

/* The census of what an arm launched; null (a JSON null) with *reason, a sentence. Runs a disassembler: outside the clock. New reference. */
json_t *census_of_host(const struct assay_launch *launches, int n, char reason[static 256]);
/* functions: mangled names; module: the file that holds them; arch: "sm_90a" or "sm_90". */
json_t *census_of_cuda(const char *const *functions, int n, const char *module, int cc, char reason[static 256]);
/* Runs argv without a shell, stdin and stderr from and to nowhere; what it wrote in *text (free it), at most 256 MiB, at most 120 s. argv[0]
 * is looked for on the PATH. False with *reason. */
bool census_run_tool(const char *const *argv, char **text, size_t *bytes, char reason[static 256]);

/* ---- files in place of measurements ---------------------------------------------------------------------------------- */

/* `--census FILE`: {"ARM" or "KERNEL/ARM": {"counts": {…}, "instructions"?, "registers"?, …}, …}; the values are what stands in a record as
 * artifact.census, with facts of the artifact beside it where they are to be replaced. `--rates FILE`: {"FORM", "ARM" or "KERNEL/ARM": cycles}.
 * Checks the shape. NULL with *err: file, what, remedy. New reference. */
json_t *census_file_load(const char *path, struct err *err);
json_t *rates_file_load(const char *path, struct err *err);

struct census_files {
	const json_t *census, *rates; /* NULL: none */
	const char *census_path, *rates_path;
};

/* ---- the comparison -------------------------------------------------------------------------------------------------- */

/* Counts may differ by so much, relatively; what is not named here must be equal. */
#define CENSUS_BOUND_MEMORY 0.02 /* each class of memory instruction, and of spills on the host */
#define CENSUS_BOUND_REGISTERS 0.05
#define CENSUS_BOUND_INSTRUCTIONS 0.05 /* all that is neither matrix, conversion, memory nor spill */

/* Compares the two arms of the cell's ratio check and appends `census` findings to its "checks" (older ones are taken out): one for the
 * machine code where `may_differ` is stated, one for the issue interval where `equal_issue_interval` is. Status `invalid`: something else
 * moved; `inconclusive`: it could not be looked at; `pass`. files may be NULL. Pure: the record and the files decide. */
void census_check(json_t *cell, const struct census_files *files);

#endif
