#include "shell_words.h"

#include <stdlib.h>
#include <string.h>

void shell_put_quoted(FILE *f, const char *word)
{
	fputc('\'', f);
	for (; word && *word; word++)
		if (*word == '\'')
			fputs("'\\''", f);
		else
			fputc(*word, f);
	fputc('\'', f);
}

void shell_put(FILE *f, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
	if (word && *word && !word[strspn(word, plain)])
		fputs(word, f);
	else
		shell_put_quoted(f, word);
}

char *shell_command(int argc, char *const *argv)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	if (!f)
		abort();
	fputs("assay", f);
	for (int i = 0; i < argc; i++) {
		fputc(' ', f);
		shell_put(f, argv[i]);
	}
	if (fclose(f) != 0)
		abort();
	return text;
}
