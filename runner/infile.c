#include "infile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A pipe without a name in the file system was made by who started us, and has its writer. */
static bool is_anonymous(int fd)
{
	char link[64], to[64];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, to, sizeof to);
	return n > 5 && memcmp(to, "pipe:", 5) == 0;
}

static bool check(int fd, enum infile_takes takes, struct err *err)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return err_set(err, "%s", strerror(errno));
	if (S_ISREG(st.st_mode))
		return true;
	if (S_ISDIR(st.st_mode))
		return err_set(err, "a folder, not a file");
	if (takes == INFILE_PLAIN)
		return err_set(err, "%s, not a file: it is read more than once",
			       S_ISFIFO(st.st_mode) ? "a pipe" : "a device");
	if (S_ISFIFO(st.st_mode))
		return is_anonymous(fd) ||
		       err_set(err, "a named pipe, which may wait for its writer for ever; give /dev/stdin and "
				    "redirect: < PIPE");
	if (S_ISCHR(st.st_mode) && isatty(fd))
		return true;
	return err_set(err, "a device, not a file");
}

int infile_open(const char *path, enum infile_takes takes, struct err *err)
{
	/* Without O_NONBLOCK a pipe that nobody writes into waits right here. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		struct stat st;
		bool socket = errno == ENXIO && stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
		err_set(err, "%s%s", socket ? "a socket, not a file" : strerror(errno),
			strcmp(path, "-") == 0 ? "; standard input is /dev/stdin" : "");
		return -1;
	}
	int flags = fcntl(fd, F_GETFL);
	if (!check(fd, takes, err) || flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

FILE *infile_stream(const char *path, enum infile_takes takes, struct err *err)
{
	int fd = infile_open(path, takes, err);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "rb");
	if (!f && fd >= 0) {
		err_set(err, "%s", strerror(errno));
		close(fd);
	}
	return f;
}
