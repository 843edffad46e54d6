/* Bytes to the suite loader. Seeds: tests/bad, tests/good, suites. scripts/test builds and runs it.
 * What is accepted must also go to JSON and be accepted again. */
#include <stdlib.h>
#include <string.h>

#include "registry.h"
#include "suite_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct suite *load(const char *text, size_t n, const struct suite_options *opt, FILE *sink)
{
	struct diags *d = diags_create();
	struct suite *s = suite_load_text("fuzz.yaml", text, n, opt, d);
	/* A refusal says why, and whatever it says can be printed. */
	if (!s && !diags_errors(d))
		abort();
	diags_print(d, sink, false);
	diags_destroy(d);
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct registry *registry = registry_create();
	struct suite_options opt = {.registry = registry};
	FILE *sink = fopen("/dev/null", "w");
	if (!sink)
		abort();
	struct suite *s = load((const char *)data, size, &opt, sink);
	if (s) {
		json_t *j = suite_to_json(s);
		char *text = json_dumps(j, 0);
		struct suite *again = text ? load(text, strlen(text), &opt, sink) : NULL;
		if (!again)
			abort();
		free(text);
		json_decref(j);
		suite_destroy(again);
	}
	suite_destroy(s);
	fclose(sink);
	registry_destroy(registry);
	return 0;
}
