/* libFuzzer target: a verdict file of any bytes. The reader must refuse or give records, and the text of whatever it gave must be
 * printed without harm. Build: meson setup build-fuzz -Dfuzzers=true with CC=clang; seeds: verdict files of results/ or of a run. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "text.h"
#include "verdict.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void print(const struct verdict_file *f, bool verbose)
{
	FILE *out = fopen("/dev/null", "w");
	if (!out)
		abort();
	struct text *t = text_create(&(struct text_options){.out = out, .verbose = verbose, .file = "x.jsonl"});
	text_record(t, f->header);
	for (size_t i = 0; i < f->n_cells; i++)
		text_record(t, f->cell[i]);
	for (size_t i = 0; i < f->n_other; i++)
		text_record(t, f->other[i]);
	if (f->footer)
		text_record(t, f->footer);
	text_finish(t);
	text_destroy(t);
	fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char path[32];
	struct verdict_file f;
	int fd = memfd_create("fuzz", 0);
	if (fd < 0 || write(fd, data, n) != (ssize_t)n || lseek(fd, 0, SEEK_SET) != 0)
		abort();
	snprintf(path, sizeof path, "/dev/fd/%d", fd);
	if (verdict_load(path, &f, NULL)) {
		/* What was read is written as it reads: a line comes back as the same line. */
		for (size_t i = 0; i < f.n_cells; i++) {
			char *line = verdict_line(f.cell[i]);
			json_t *again = line ? json_loads(line, JSON_REJECT_DUPLICATES, NULL) : NULL;
			if (!again || !json_equal(again, f.cell[i]))
				abort();
			json_decref(again);
			free(line);
		}
		print(&f, false);
		print(&f, true);
		verdict_unload(&f);
	}
	close(fd);
	return 0;
}
