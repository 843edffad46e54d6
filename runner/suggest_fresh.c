#include "suggest_fresh.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "text_parts.h"

enum { MAX_WORDS = 600 };

char **suggest_split(struct arena *a, const char *command, int *n)
{
	char **words = arena_array(a, MAX_WORDS + 1, sizeof *words);
	*n = 0;
	while (*n < MAX_WORDS) {
		command += strspn(command, " ");
		if (!*command)
			break;
		char *w = arena_alloc(a, strlen(command) + 1), *at = w;
		while (*command && *command != ' ') {
			if (*command == '\'') {
				for (command++; *command && *command != '\''; command++)
					*at++ = *command;
				command += *command == '\'';
			} else if (*command == '\\' && command[1]) {
				*at++ = command[1];
				command += 2;
			} else {
				*at++ = *command++;
			}
		}
		words[(*n)++] = w;
	}
	return words;
}

/* Options of the run that say what was measured, and with what: they are kept. All others are about its output. */
static bool keeps(const char *word, bool *takes_value)
{
	static const char *const valued[] = {"--backend", "--device",    "--set", "--plugin",
					     "--checks",  "--tau-store", NULL};
	for (int i = 0; valued[i]; i++) {
		size_t n = strlen(valued[i]);
		if (strncmp(word, valued[i], n) == 0 && (word[n] == 0 || word[n] == '=')) {
			*takes_value = word[n] == 0;
			return true;
		}
	}
	return false;
}

static bool drops_value(const char *word)
{
	static const char *const valued[] = {"-o",          "--output", "--filter",   "--shard", "--rerun-failed",
					     "--processes", "--arm",    "--launches", NULL};
	for (int i = 0; valued[i]; i++)
		if (strcmp(word, valued[i]) == 0)
			return true;
	return false;
}

/* "kernel=a|b" of the changed rows; with k >= 0 the values of key k. */
static const char *filter_of(const struct suggest *s, int k)
{
	const char *text = arena_printf(s->arena, "%s=", k < 0 ? "kernel" : s->key[k]);
	bool any = false;
	for (size_t i = 0; i < s->n_rows; i++) {
		const struct suggest_row *r = &s->row[i];
		bool changed = r->outcome == SUGGEST_CHANGED || r->outcome == SUGGEST_FIXED, seen = false;
		for (size_t b = 0; b < i && !seen; b++)
			seen = (s->row[b].outcome == SUGGEST_CHANGED || s->row[b].outcome == SUGGEST_FIXED) &&
			       (k < 0 ? strcmp(s->row[b].kernel, r->kernel) == 0 : s->row[b].key[k] == r->key[k]);
		if (!changed || seen)
			continue;
		text = k < 0 ? arena_printf(s->arena, "%s%s%s", text, any ? "|" : "", r->kernel)
			     : arena_printf(s->arena, "%s%s%.17g", text, any ? "|" : "", r->key[k]);
		any = true;
	}
	return text;
}

char **suggest_fresh_command(const struct suggest *s, const char *self, const char *out, struct err *err)
{
	int n, at = 0;
	const char *suite = text_get(s->header, "suite_path");
	char **had = suggest_split(s->arena, text_get(s->header, "command"), &n);
	char **words = arena_array(s->arena, (size_t)n + 2 * SUGGEST_MAX_KEYS + 16, sizeof *words);
	if (!*suite || n < 2) {
		err_set(err, "the header does not say how the suite was run; run it again and suggest from that");
		return NULL;
	}
	words[at++] = arena_strdup(s->arena, self);
	words[at++] = arena_strdup(s->arena, "run");
	words[at++] = arena_strdup(s->arena, suite);
	for (int i = 2; i < n; i++) {
		bool value = false;
		if (keeps(had[i], &value)) {
			words[at++] = had[i];
			if (value && i + 1 < n)
				words[at++] = had[++i];
		} else if (drops_value(had[i])) {
			i++;
		}
	}
	for (int k = -1; k < s->n_keys; k++) {
		words[at++] = arena_strdup(s->arena, "--filter");
		words[at++] = arena_strdup(s->arena, filter_of(s, k));
	}
	words[at++] = arena_strdup(s->arena, "-o");
	words[at++] = arena_strdup(s->arena, out);
	words[at++] = arena_strdup(s->arena, "--force");
	words[at++] = arena_strdup(s->arena, "-q");
	words[at] = NULL;
	return words;
}

bool suggest_fresh_run(const struct suggest *s, const char *out, struct verdict_file *fresh, struct err *err)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	if (n < 0)
		return err_set(err, "cannot find this program: %s", strerror(errno));
	self[n] = 0;
	char **words = suggest_fresh_command(s, self, out, err);
	if (!words)
		return false;
	pid_t pid = fork();
	if (pid < 0)
		return err_set(err, "cannot start %s: %s", self, strerror(errno));
	if (pid == 0) {
		/* Its text is news, the table is this one's output. */
		if (dup2(STDERR_FILENO, STDOUT_FILENO) >= 0)
			execv(self, words);
		_exit(127);
	}
	int status;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_set(err, "waiting for the fresh run: %s", strerror(errno));
	/* A failed gate is no reason to stop: the cells tell. */
	if (!WIFEXITED(status) || WEXITSTATUS(status) == 2 || WEXITSTATUS(status) > 4)
		return err_set(err, "the fresh run did not come to an end (%s %d)",
			       WIFEXITED(status) ? "exit" : "signal",
			       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	return verdict_load(out, fresh, err);
}
