#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Where locks live: one place for all users of the machine, since they share the device. */
enum { POLL_NS = 200000000 };

struct run_lock {
	int fd;
	char path[512];
};

static void lock_path(const char *uuid, char *out, size_t cap)
{
	const char *dir = getenv("ASSAY_LOCK_DIR");
	if (!dir || !*dir)
		dir = access("/run/lock", W_OK) == 0 ? "/run/lock" : "/tmp";
	size_t n = (size_t)snprintf(out, cap, "%s/assay-", dir);
	for (; *uuid && n + 6 < cap; uuid++)
		out[n++] = strchr("/ \t\n", *uuid) ? '_' : *uuid;
	snprintf(out + n, cap - n, ".lock");
}

/* Another user's file in a sticky folder cannot be opened with O_CREAT, and may be readable only; flock needs no more. */
static int open_lock(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT) {
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
		if (fd >= 0)
			(void)!fchmod(fd, 0666);
	}
	if (fd < 0)
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return fd;
}

static void sign(int fd, const char *suite)
{
	char now[21], text[256];
	run_time_text(now);
	const struct passwd *who = getpwuid(getuid());
	int n = snprintf(text, sizeof text, "pid %ld, %s, suite %.80s, since %s\n", (long)getpid(),
			 who ? who->pw_name : "unknown user", suite, now);
	if (ftruncate(fd, 0) == 0)
		(void)!pwrite(fd, text, (size_t)n, 0);
}

static void holder(int fd, char *out, size_t cap)
{
	ssize_t n = pread(fd, out, cap - 1, 0);
	out[n > 0 ? n : 0] = 0;
	out[strcspn(out, "\n")] = 0;
	if (!*out)
		snprintf(out, cap, "another run");
}

struct run_lock *run_lock_take(const char *uuid, const char *device, const char *suite, bool no_wait,
			       const struct run_events *ev, const volatile int *interrupted, struct err *err)
{
	struct run_lock *l = calloc(1, sizeof *l);
	if (!l) {
		err_set(err, "out of memory");
		return NULL;
	}
	lock_path(uuid, l->path, sizeof l->path);
	l->fd = open_lock(l->path);
	if (l->fd < 0) {
		err_set(err, "cannot open the lock %s: %s; ASSAY_LOCK_DIR names another folder", l->path,
			strerror(errno));
		free(l);
		return NULL;
	}
	bool told = false;
	while (flock(l->fd, LOCK_EX | LOCK_NB) != 0) {
		char who[200];
		holder(l->fd, who, sizeof who);
		if (errno != EWOULDBLOCK && errno != EINTR) {
			err_set(err, "cannot lock %s: %s", l->path, strerror(errno));
			goto fail;
		}
		if (no_wait) {
			err_set(err, "%s is in use by %s; without --no-wait this run would wait", device, who);
			goto fail;
		}
		if (!told && ev->say) {
			char sentence[512];
			snprintf(sentence, sizeof sentence, "waiting for %s: in use by %s; --no-wait fails instead",
				 device, who);
			ev->say(ev->ctx, sentence);
			told = true;
		}
		if (interrupted && *interrupted) {
			err_set(err, "interrupted while waiting for %s", device);
			goto fail;
		}
		nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
	}
	sign(l->fd, suite);
	return l;
fail:
	close(l->fd);
	free(l);
	return NULL;
}

const char *run_lock_path(const struct run_lock *l)
{
	return l->path;
}

void run_lock_release(struct run_lock *l)
{
	if (!l)
		return;
	(void)!ftruncate(l->fd, 0);
	close(l->fd); /* the file stays: unlinking it would let two runs lock two files of one name */
	free(l);
}
