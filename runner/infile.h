/* infile: a file that somebody named, opened for reading. A folder, a device or a pipe that waits for its writer is refused at once, with words: a
 * tool that hangs in open() says nothing. */
#ifndef ASSAY_INFILE_H
#define ASSAY_INFILE_H

#include <stdbool.h>
#include <stdio.h>

#include "err.h"

enum infile_takes {
	INFILE_PLAIN, /* regular files: it may be read twice */
	INFILE_STREAM, /* also what a shell has opened already: /dev/stdin, <(command); and a terminal */
};

/* The descriptor (close-on-exec, blocking), or -1 with *err, which does not name the path: "a folder, not a file". */
int infile_open(const char *path, enum infile_takes takes, struct err *err);
/* The same as a stream. NULL with *err. */
FILE *infile_stream(const char *path, enum infile_takes takes, struct err *err);

#endif
