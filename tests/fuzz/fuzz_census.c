/* libFuzzer target: what a disassembler may have written, as SASS and as objdump's. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "census.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct census *c, int64_t said)
{
	int64_t sum = 0;
	for (int i = 0; i < census_classes(); i++) {
		if (c->count[i] < 0)
			abort();
		sum += c->count[i];
	}
	if (sum > c->total || said != c->total)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct census all = {0}, one = {0}, host = {0};
	/* a copy of exactly the size, so that a read past its end is seen */
	char *p = malloc(size ? size : 1);
	if (!p)
		return 0;
	if (size)
		memcpy(p, data, size);
	check(&all, census_parse_sass(p, size, NULL, NULL, &all));
	check(&one, census_parse_sass(p, size, "f", "sm_90a", &one));
	check(&host, census_parse_objdump(p, size, &host));
	if (one.total > all.total)
		abort(); /* a part is more than the whole */
	json_t *j = census_json(&all, "fuzz");
	json_decref(j);
	free(p);
	return 0;
}
