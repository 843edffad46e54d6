/* git: facts of a folder, and files of another revision. Runs the git program without a shell; where there is no git or no
 * repository the facts are unknown, which is no error. */
#ifndef ASSAY_GIT_H
#define ASSAY_GIT_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "err.h"

struct git_facts {
	char commit[65]; /* "" : unknown */
	bool dirty; /* tracked files of the folder differ from the commit; untracked ones do not count */
};
void git_facts_of(const char *folder, struct git_facts *out);

/* `git show REV:path` as a stream of its output. */
struct git_show;
struct git_show *git_show_open(const char *rev_path, struct err *err);
int git_show_fd(const struct git_show *s);
/* Waits for git; false with git's own words where it failed. Frees s; NULL is fine. */
bool git_show_close(struct git_show *s, struct err *err);

#endif
