/* census_host: objdump over the functions that were launched, and over nothing else. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "census.h"
#include "host_artifact.h"

enum { RANGES = 64, PATH_BYTES = 4096 };

static bool add_range(const char *path, const struct host_range *r, struct census *c, char reason[static 256])
{
	char from[48], to[48], *text;
	size_t bytes;
	snprintf(from, sizeof from, "--start-address=0x%llx", (unsigned long long)r->from);
	snprintf(to, sizeof to, "--stop-address=0x%llx", (unsigned long long)r->to);
	const char *argv[] =
	{ "objdump",
	  "-d",
	  "--no-show-raw-insn",
	  from,
	  to,
#if defined(__x86_64__) || defined(__i386__)
	  "-Mintel",
#endif
	  path,
	  NULL };
	if (!census_run_tool(argv, &text, &bytes, reason))
		return false;
	const int64_t n = census_parse_objdump(text, bytes, c);
	free(text);
	if (n == 0)
		snprintf(reason, 256, "objdump showed no instruction of the function");
	return n > 0;
}

json_t *census_of_host(const struct assay_launch *launches, int n, char reason[static 256])
{
	struct census c = {0};
	struct host_range range[RANGES];
	char path[PATH_BYTES];
	snprintf(reason, 256, "the arm noted no launch");
	for (int i = 0; i < n; i++) {
		const char *why = "";
		const int k = host_artifact_ranges(launches[i].function, range, RANGES, path, sizeof path, &why);
		if (k == 0) {
			snprintf(reason, 256, "%s", why);
			return json_null();
		}
		for (int r = 0; r < k; r++)
			if (!add_range(path, &range[r], &c, reason))
				return json_null();
	}
	return n > 0 ? census_json(&c, "objdump") : json_null();
}
