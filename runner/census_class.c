/* census_class: mnemonics to classes. A device's begin with the class's name or stand in a list of prefixes; a host's are told apart by
 * prefix, and loads from stores by the operands. */
#include <string.h>

#include "census.h"

enum class {
	C_IMMA,
	C_HMMA,
	C_QMMA,
	C_OMMA,
	C_BMMA,
	C_DMMA,
	C_IGMMA,
	C_HGMMA,
	C_QGMMA,
	C_BGMMA,
	C_UTCIMMA,
	C_UTCHMMA,
	C_UTCQMMA,
	C_UTCOMMA,
	C_DOT8,
	C_DOT16,
	C_FMA,
	C_I2F,
	C_F2I,
	C_F2F,
	C_F2FP,
	C_I2I,
	C_EXTEND,
	C_LDG,
	C_STG,
	C_LDS,
	C_STS,
	C_LDSM,
	C_STSM,
	C_LD,
	C_ST,
	C_LDGSTS,
	C_UTMA,
	C_ATOM,
	C_RED,
	C_LOAD,
	C_STORE,
	C_GATHER,
	C_SCATTER,
	C_LDL,
	C_STL,
	C_STACK_LOAD,
	C_STACK_STORE,
	C_BAR,
	C_SYNCS,
	C_FFMA,
	C_FMUL,
	C_FADD,
	C_HFMA2,
	C_DFMA,
	C_IMAD,
	C_IADD,
	C_LOP,
	C_SHF,
	C_PRMT,
	C_MUFU,
	C_SHFL,
	C_VOTE,
	C_BRANCH,
	C_NOP,
	C_N
};

static const struct {
	const char *name;
	enum census_group group;
} classes[C_N] = {
	[C_IMMA] = {"IMMA", CG_MATRIX},
	[C_HMMA] = {"HMMA", CG_MATRIX},
	[C_QMMA] = {"QMMA", CG_MATRIX},
	[C_OMMA] = {"OMMA", CG_MATRIX},
	[C_BMMA] = {"BMMA", CG_MATRIX},
	[C_DMMA] = {"DMMA", CG_MATRIX},
	[C_IGMMA] = {"IGMMA", CG_MATRIX},
	[C_HGMMA] = {"HGMMA", CG_MATRIX},
	[C_QGMMA] = {"QGMMA", CG_MATRIX},
	[C_BGMMA] = {"BGMMA", CG_MATRIX},
	[C_UTCIMMA] = {"UTCIMMA", CG_MATRIX},
	[C_UTCHMMA] = {"UTCHMMA", CG_MATRIX},
	[C_UTCQMMA] = {"UTCQMMA", CG_MATRIX},
	[C_UTCOMMA] = {"UTCOMMA", CG_MATRIX},
	[C_DOT8] = {"DOT8", CG_MATRIX},
	[C_DOT16] = {"DOT16", CG_MATRIX},
	[C_FMA] = {"FMA", CG_MATRIX},
	[C_I2F] = {"I2F", CG_CONVERT},
	[C_F2I] = {"F2I", CG_CONVERT},
	[C_F2F] = {"F2F", CG_CONVERT},
	[C_F2FP] = {"F2FP", CG_CONVERT},
	[C_I2I] = {"I2I", CG_CONVERT},
	[C_EXTEND] = {"EXTEND", CG_CONVERT},
	[C_LDG] = {"LDG", CG_MEMORY},
	[C_STG] = {"STG", CG_MEMORY},
	[C_LDS] = {"LDS", CG_MEMORY},
	[C_STS] = {"STS", CG_MEMORY},
	[C_LDSM] = {"LDSM", CG_MEMORY},
	[C_STSM] = {"STSM", CG_MEMORY},
	[C_LD] = {"LD", CG_MEMORY},
	[C_ST] = {"ST", CG_MEMORY},
	[C_LDGSTS] = {"LDGSTS", CG_MEMORY},
	[C_UTMA] = {"UTMA", CG_MEMORY},
	[C_ATOM] = {"ATOM", CG_MEMORY},
	[C_RED] = {"RED", CG_MEMORY},
	[C_LOAD] = {"LOAD", CG_MEMORY},
	[C_STORE] = {"STORE", CG_MEMORY},
	[C_GATHER] = {"GATHER", CG_MEMORY},
	[C_SCATTER] = {"SCATTER", CG_MEMORY},
	[C_LDL] = {"LDL", CG_SPILL},
	[C_STL] = {"STL", CG_SPILL},
	[C_STACK_LOAD] = {"STACK_LOAD", CG_SPILL},
	[C_STACK_STORE] = {"STACK_STORE", CG_SPILL},
	[C_BAR] = {"BAR", CG_OTHER},
	[C_SYNCS] = {"SYNCS", CG_OTHER},
	[C_FFMA] = {"FFMA", CG_OTHER},
	[C_FMUL] = {"FMUL", CG_OTHER},
	[C_FADD] = {"FADD", CG_OTHER},
	[C_HFMA2] = {"HFMA2", CG_OTHER},
	[C_DFMA] = {"DFMA", CG_OTHER},
	[C_IMAD] = {"IMAD", CG_OTHER},
	[C_IADD] = {"IADD", CG_OTHER},
	[C_LOP] = {"LOP", CG_OTHER},
	[C_SHF] = {"SHF", CG_OTHER},
	[C_PRMT] = {"PRMT", CG_OTHER},
	[C_MUFU] = {"MUFU", CG_OTHER},
	[C_SHFL] = {"SHFL", CG_OTHER},
	[C_VOTE] = {"VOTE", CG_OTHER},
	[C_BRANCH] = {"BRANCH", CG_OTHER},
	[C_NOP] = {"NOP", CG_OTHER},
};
_Static_assert((int)C_N <= (int)CENSUS_CLASSES, "more classes than a census holds");

int census_classes(void)
{
	return C_N;
}

const char *census_class_name(int c)
{
	return classes[c].name;
}

enum census_group census_class_group(int c)
{
	return classes[c].group;
}

int census_class_find(const char *name)
{
	for (int c = 0; c < C_N; c++)
		if (strcmp(classes[c].name, name) == 0)
			return c;
	return -1;
}

static bool is_word(const char *s, size_t n, const char *word)
{
	return strlen(word) == n && memcmp(s, word, n) == 0;
}

static bool begins(const char *s, size_t n, const char *word)
{
	const size_t k = strlen(word);
	return k <= n && memcmp(s, word, k) == 0;
}

/* ---- devices ------------------------------------------------------------------------------------------------------- */

/* The operation is what stands before the first dot. */
static const struct {
	const char *op;
	enum class is;
} sass[] = {
	{"IMMA", C_IMMA},
	{"HMMA", C_HMMA},
	{"QMMA", C_QMMA},
	{"OMMA", C_OMMA},
	{"BMMA", C_BMMA},
	{"DMMA", C_DMMA},
	{"IGMMA", C_IGMMA},
	{"HGMMA", C_HGMMA},
	{"QGMMA", C_QGMMA},
	{"BGMMA", C_BGMMA},
	{"UTCIMMA", C_UTCIMMA},
	{"UTCHMMA", C_UTCHMMA},
	{"UTCQMMA", C_UTCQMMA},
	{"UTCOMMA", C_UTCOMMA},
	{"IDP", C_DOT8},
	{"IDP4A", C_DOT8},
	{"I2F", C_I2F},
	{"I2FP", C_I2F},
	{"UI2F", C_I2F},
	{"UI2FP", C_I2F},
	{"I2IP", C_I2I},
	{"I2I", C_I2I},
	{"F2I", C_F2I},
	{"F2IP", C_F2I},
	{"UF2I", C_F2I},
	{"F2F", C_F2F},
	{"UF2F", C_F2F},
	{"F2FP", C_F2FP},
	{"UF2FP", C_F2FP},
	{"LDG", C_LDG},
	{"STG", C_STG},
	{"LDS", C_LDS},
	{"STS", C_STS},
	{"LDSM", C_LDSM},
	{"STSM", C_STSM},
	{"LD", C_LD},
	{"ST", C_ST},
	{"LDGSTS", C_LDGSTS},
	{"ATOM", C_ATOM},
	{"ATOMG", C_ATOM},
	{"ATOMS", C_ATOM},
	{"RED", C_RED},
	{"REDG", C_RED},
	{"UBLKCP", C_UTMA},
	{"LDL", C_LDL},
	{"STL", C_STL},
	{"BAR", C_BAR},
	{"UCGABAR_ARV", C_BAR},
	{"UCGABAR_WAIT", C_BAR},
	{"SYNCS", C_SYNCS},
	{"WARPGROUP", C_SYNCS},
	{"WARPSYNC", C_SYNCS},
	{"LDGDEPBAR", C_SYNCS},
	{"DEPBAR", C_SYNCS},
	{"FFMA", C_FFMA},
	{"FFMA2", C_FFMA},
	{"FFMA32I", C_FFMA},
	{"FMUL", C_FMUL},
	{"FMUL2", C_FMUL},
	{"FADD", C_FADD},
	{"FADD2", C_FADD},
	{"HFMA2", C_HFMA2},
	{"HADD2", C_HFMA2},
	{"HMUL2", C_HFMA2},
	{"DFMA", C_DFMA},
	{"DADD", C_DFMA},
	{"DMUL", C_DFMA},
	{"IMAD", C_IMAD},
	{"UIMAD", C_IMAD},
	{"IADD", C_IADD},
	{"IADD3", C_IADD},
	{"UIADD3", C_IADD},
	{"VIADD", C_IADD},
	{"LEA", C_IADD},
	{"ULEA", C_IADD},
	{"LOP3", C_LOP},
	{"ULOP3", C_LOP},
	{"LOP", C_LOP},
	{"SHF", C_SHF},
	{"USHF", C_SHF},
	{"PRMT", C_PRMT},
	{"UPRMT", C_PRMT},
	{"MUFU", C_MUFU},
	{"SHFL", C_SHFL},
	{"VOTE", C_VOTE},
	{"VOTEU", C_VOTE},
	{"BRA", C_BRANCH},
	{"BRX", C_BRANCH},
	{"BRXU", C_BRANCH},
	{"JMP", C_BRANCH},
	{"JMX", C_BRANCH},
	{"CALL", C_BRANCH},
	{"RET", C_BRANCH},
	{"EXIT", C_BRANCH},
	{"BSSY", C_BRANCH},
	{"BSYNC", C_BRANCH},
	{"UBRA", C_BRANCH},
	{"NOP", C_NOP},
};

int census_class_sass(const char *s, size_t n)
{
	const char *dot = memchr(s, '.', n);
	const size_t k = dot ? (size_t)(dot - s) : n;
	for (size_t i = 0; i < sizeof sass / sizeof *sass; i++)
		if (is_word(s, k, sass[i].op))
			return (int)sass[i].is;
	return begins(s, k, "UTMA") ? (int)C_UTMA : -1; /* UTMALDG, UTMASTG, UTMAREDG … */
}

/* ---- hosts --------------------------------------------------------------------------------------------------------- */

static const struct {
	const char *prefix;
	enum class is;
} host[] = {
	/* x86 */
	{"vpdpb", C_DOT8},
	{"vpmaddubsw", C_DOT8},
	{"pmaddubsw", C_DOT8},
	{"tdpb", C_DOT8},
	{"vpdpw", C_DOT16},
	{"vpmaddwd", C_DOT16},
	{"pmaddwd", C_DOT16},
	{"vfmadd", C_FMA},
	{"vfmsub", C_FMA},
	{"vfnmadd", C_FMA},
	{"vfnmsub", C_FMA},
	{"vdpbf16ps", C_FMA},
	{"vcvtdq2", C_I2F},
	{"cvtdq2", C_I2F},
	{"vcvtqq2", C_I2F},
	{"vcvtudq2", C_I2F},
	{"vcvtuqq2", C_I2F},
	{"vcvtsi2s", C_I2F},
	{"cvtsi2s", C_I2F},
	{"vcvtusi2s", C_I2F},
	{"vcvttp", C_F2I},
	{"cvttp", C_F2I},
	{"vcvtts", C_F2I},
	{"cvtts", C_F2I},
	{"vcvtps2dq", C_F2I},
	{"cvtps2dq", C_F2I},
	{"vcvtps2udq", C_F2I},
	{"vcvtpd2dq", C_F2I},
	{"vcvtss2si", C_F2I},
	{"vcvtsd2si", C_F2I},
	{"cvtss2si", C_F2I},
	{"cvtsd2si", C_F2I},
	{"vcvtne2ps2bf", C_F2FP},
	{"vcvtneps2bf", C_F2FP},
	{"vcvtps2ph", C_F2FP},
	{"vcvtph2ps", C_F2FP},
	{"vcvt", C_F2F},
	{"cvt", C_F2F},
	{"vpmovsx", C_EXTEND},
	{"pmovsx", C_EXTEND},
	{"vpmovzx", C_EXTEND},
	{"pmovzx", C_EXTEND},
	{"vpgather", C_GATHER},
	{"vgather", C_GATHER},
	{"vpscatter", C_SCATTER},
	{"vscatter", C_SCATTER},
	{"nop", C_NOP},
	{"endbr", C_NOP},
	/* aarch64 */
	{"sdot", C_DOT8},
	{"udot", C_DOT8},
	{"usdot", C_DOT8},
	{"smmla", C_DOT8},
	{"ummla", C_DOT8},
	{"usmmla", C_DOT8},
	{"fmla", C_FMA},
	{"fmls", C_FMA},
	{"fmadd", C_FMA},
	{"fmsub", C_FMA},
	{"fnmadd", C_FMA},
	{"scvtf", C_I2F},
	{"ucvtf", C_I2F},
	{"fcvtz", C_F2I},
	{"fcvtn", C_F2FP},
	{"fcvt", C_F2F},
	{"sxtl", C_EXTEND},
	{"uxtl", C_EXTEND},
};

static bool is_branch(const char *s, size_t n)
{
	static const char *const whole[] = {"call", "ret",  "b",   "bl",   "br",  "blr",
					    "cbz",  "cbnz", "tbz", "tbnz", "loop"};
	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
		if (is_word(s, n, whole[i]))
			return true;
	return (s[0] == 'j' && n <= 5) || begins(s, n, "b.");
}

/* Memory is what stands in brackets. Intel's order: a store's destination is the first operand. */
static int memory_class(const char *s, size_t n, const char *operands)
{
	static const char *const reads_both[] = {"cmp",   "test",   "ucomi", "vucomi", "comi",
						 "vcomi", "vptest", "ptest", "bt"};
	const char *bracket = strchr(operands, '[');
	if (!bracket || begins(s, n, "lea") || begins(s, n, "prefetch"))
		return -1;
	const bool stack = strncmp(bracket, "[rsp", 4) == 0 || strncmp(bracket, "[sp", 3) == 0;
	const bool arm_load = begins(s, n, "ld"), arm_store = begins(s, n, "st");
	bool store = arm_store;
	if (!arm_load && !arm_store) {
		const char *comma = strchr(operands, ',');
		store = !comma || bracket < comma;
		for (size_t i = 0; store && i < sizeof reads_both / sizeof *reads_both; i++)
			store = !begins(s, n, reads_both[i]);
	}
	return stack ? store ? C_STACK_STORE : C_STACK_LOAD : store ? C_STORE : C_LOAD;
}

int census_class_host(const char *s, size_t n, const char *operands)
{
	if (n == 0)
		return -1;
	for (size_t i = 0; i < sizeof host / sizeof *host; i++)
		if (begins(s, n, host[i].prefix))
			return (int)host[i].is;
	return is_branch(s, n) ? (int)C_BRANCH : memory_class(s, n, operands);
}
