/* census_cuda: the code of device functions out of the file that holds them, by cuobjdump, or by nvdisasm over a cubin. Needs no CUDA. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "census.h"

/* The tool on the PATH, else where the toolkit is installed by default. */
static const char *find_cuobjdump(void)
{
	static const char usual[] = "/usr/local/cuda/bin/cuobjdump";
	const char *path = getenv("PATH");
	for (const char *p = path ? path : ""; *p;) {
		char file[4096];
		const size_t n = strcspn(p, ":");
		snprintf(file, sizeof file, "%.*s/cuobjdump", (int)(n < 4000 ? n : 4000), p);
		if (access(file, X_OK) == 0)
			return "cuobjdump";
		p += n + (p[n] == ':');
	}
	return access(usual, X_OK) == 0 ? usual : NULL;
}

static bool add_function(const char *tool, const char *function, const char *module, const char *arch, struct census *c,
			 char reason[static 256])
{
	const char *argv[] = {tool, "-sass", "-arch", arch, "-fun", function, module, NULL};
	char *text;
	size_t bytes;
	if (!census_run_tool(argv, &text, &bytes, reason))
		return false;
	const int64_t n = census_parse_sass(text, bytes, function, arch, c);
	free(text);
	if (n == 0)
		snprintf(reason, 256, "cuobjdump shows no %s code of the function", arch);
	return n > 0;
}

json_t *census_of_cuda(const char *const *functions, int n, const char *module, int cc, char reason[static 256])
{
	const char *tool = find_cuobjdump();
	snprintf(reason, 256, tool ? "the arm noted no launch" : "no cuobjdump on the PATH or in /usr/local/cuda/bin");
	if (!tool || n == 0)
		return json_null();
	/* Code for one chip alone ("sm_90a") comes first where there is any: it is what runs. */
	for (int specific = 1; specific >= 0; specific--) {
		struct census c = {0};
		char arch[16];
		int i = 0;
		snprintf(arch, sizeof arch, "sm_%d%s", cc, specific ? "a" : "");
		while (i < n && add_function(tool, functions[i], module, arch, &c, reason))
			i++;
		if (i == n)
			return census_json(&c, "cuobjdump");
	}
	return json_null();
}
