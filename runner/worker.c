/* The process that owns the device. It reads requests from a socket, runs them, and answers; it ends with the socket. */
#define _GNU_SOURCE /* prctl's constants, MAP_SHARED over a memfd */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "arena.h"
#include "backend.h"
#include "exec.h"
#include "exec_facts.h"
#include "finding.h"
#include "offspring.h"
#include "record_parts.h"
#include "registry.h"

enum { REQUEST_MAX = 64 << 20, HIGH_FD = 512, EXIT_OK = 0, EXIT_BAD = 2 };

struct self {
	int fd;
	struct exec_beat *beat;
	struct registry *registry;
	struct backend *be;
	struct exec *exec;
	char *buf; /* what was read and not yet understood */
	size_t n, cap;
};

static bool write_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		p += k;
		n -= (size_t)k;
	}
	return true;
}

/* Takes the reference. */
static bool say(struct self *s, json_t *event)
{
	char *text = json_dumps(event, JSON_COMPACT);
	bool ok = text && write_all(s->fd, text, strlen(text)) && write_all(s->fd, "\n", 1);

	free(text);
	json_decref(event);
	s->beat->count++;
	return ok;
}

/* The next request; NULL at the end of the socket or where it makes no sense. */
static json_t *listen_once(struct self *s)
{
	for (;;) {
		char *end = s->n ? memchr(s->buf, '\n', s->n) : NULL;
		if (end) {
			json_t *j = json_loadb(s->buf, (size_t)(end - s->buf), JSON_REJECT_DUPLICATES, NULL);
			s->n -= (size_t)(end - s->buf) + 1;
			memmove(s->buf, end + 1, s->n);
			return j;
		}
		if (s->n == s->cap) {
			size_t cap = s->cap ? 2 * s->cap : 65536;
			char *grown = cap > REQUEST_MAX ? NULL : realloc(s->buf, cap);
			if (!grown)
				return NULL;
			s->buf = grown;
			s->cap = cap;
		}
		ssize_t k = recv(s->fd, s->buf + s->n, s->cap - s->n, 0);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return NULL;
		s->n += (size_t)k;
	}
}

static bool refuse(struct self *s, const struct err *err)
{
	say(s, json_pack("{s:s, s:o}", "ev", "failed", "error", record_text_or_null(err->text)));
	return false;
}

/* Opens plugins, device and executor. */
static bool open_device(struct self *s, const json_t *req)
{
	const json_t *plugins = json_object_get(req, "plugins"), *timing = json_object_get(req, "timing");
	const char *name = json_string_value(json_object_get(req, "backend"));
	struct backend_config cfg = {.device = json_string_value(json_object_get(req, "device")),
				     .threads = (int)json_integer_value(json_object_get(req, "threads"))};
	struct err err = {{0}};
	json_t *calibration = json_null();

	for (size_t i = 0; i < json_array_size(plugins); i++)
		if (!registry_load_plugin(s->registry, json_string_value(json_array_get(plugins, i)), NULL, &err))
			return refuse(s, &err);
	s->be = backend_open(name ? name : "", &cfg, &err);
	if (!s->be)
		return refuse(s, &err);
	s->beat->count++;
	s->exec = exec_create(s->be, &err);
	if (!s->exec)
		return refuse(s, &err);
	if (json_is_object(timing)) {
		struct timing t = {
			.clock = (enum clock_kind)json_integer_value(json_object_get(timing, "clock")),
			.scrub = (enum scrub_kind)json_integer_value(json_object_get(timing, "scrub")),
			.scrub_bytes = json_integer_value(json_object_get(timing, "scrub_bytes")),
			.warmup_launches = (int)json_integer_value(json_object_get(timing, "warmup_launches")),
			.warmup_ns = json_integer_value(json_object_get(timing, "warmup_ns")),
		};
		calibration = exec_calibration(s->exec, &t, &err);
		if (!calibration)
			return refuse(s, &err);
	}
	return say(s, json_pack("{s:s, s:o, s:o, s:i}", "ev", "opened", "device",
				facts_device(backend_ops_of(s->be)->info(s->be)), "calibration", calibration, "process",
				(int)getpid()));
}

static void part(void *ctx, json_t *facts)
{
	say(ctx, json_pack("{s:s, s:O}", "ev", "part", "facts", facts));
}

static bool answer(struct self *s, enum exec_outcome outcome, const struct err *err, json_t *facts)
{
	static const char *const names[] = {[EXEC_OK] = "ok", [EXEC_FAILED] = "failed", [EXEC_LOST] = "lost"};
	json_t *o = json_object();

	json_object_set_new(o, "ev", json_string("done"));
	json_object_set_new(o, "outcome", json_string(names[outcome]));
	json_object_set_new(o, "error", outcome == EXEC_OK ? json_null() : record_text_or_null(err->text));
	json_object_set_new(o, "facts", facts ? facts : json_object());
	return say(s, o);
}

static bool do_cell(struct self *s, const json_t *req, const char *op)
{
	const struct exec_sink sink = {.beat = s->beat, .part = part, .ctx = s, .link = s->fd};
	struct arena *a = arena_create();
	struct err err = {{0}};
	enum exec_outcome outcome = EXEC_FAILED;
	json_t *facts = NULL;
	struct cell c;

	if (!s->exec) {
		err_set(&err, "no device is open");
	} else if (cell_from_json(json_object_get(req, "cell"), s->registry, a, &c, &err)) {
		const json_t *attempt = json_object_get(req, "attempt");
		exec_set_attempt(s->exec, json_is_integer(attempt) ? (int)json_integer_value(attempt) : 1);
		if (!strcmp(op, "cell"))
			outcome = exec_cell(s->exec, &c, &sink, &facts, &err);
		else if (!strcmp(op, "digests"))
			outcome = exec_digests(s->exec, &c, &sink, &facts, &err);
		else
			outcome = exec_confirm(s->exec, &c, json_string_value(json_object_get(req, "arm")),
					       (int)json_integer_value(json_object_get(req, "n")),
					       (uint64_t)json_integer_value(json_object_get(req, "order_seed")), &sink,
					       &facts, &err);
	}
	const int left = offspring_end();
	if (s->beat->said[0]) {
		/* The descriptor is closed, or is somebody's file now: nothing is written to it. */
		json_decref(facts);
		arena_destroy(a);
		return false;
	}
	json_t *findings = json_object_get(facts, "checks");
	if (left && findings) {
		finding_add(findings, "run", NULL, "invalid",
			    "an arm started %d process%s that ran on beside what was timed after it; killed", left,
			    left == 1 ? "" : "es");
	} else if (left && outcome == EXEC_OK) {
		outcome = EXEC_FAILED;
		err_set(&err, "an arm started %d process%s that ran on; killed", left, left == 1 ? "" : "es");
	}
	bool ok = answer(s, outcome, &err, facts);
	arena_destroy(a);
	return ok;
}

static bool do_sentinels(struct self *s)
{
	struct err err = {{0}};
	json_t *sentinels = s->exec ? exec_sentinels(s->exec, &err) : NULL;

	return answer(s, sentinels ? EXEC_OK : EXEC_FAILED, &err,
		      sentinels ? json_pack("{s:o}", "sentinels", sentinels) : NULL);
}

/* Onto a high number: whoever writes to a descriptor that he thinks is his own, or closes the first few, means no socket of ours. */
static void keep_away(int *fd)
{
	struct rlimit limit;
	const int from = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 2 * HIGH_FD
				 ? (int)(limit.rlim_cur / 2)
				 : HIGH_FD;
	const int high = fcntl(*fd, F_DUPFD_CLOEXEC, from);

	if (high < 0)
		return;
	close(*fd);
	*fd = high;
}

int worker_main(int argc, char **argv)
{
	struct self s = {.fd = -1};
	int beat_fd, status = EXIT_BAD;

	if (argc < 3)
		return EXIT_BAD;
	s.fd = atoi(argv[argc - 2]);
	beat_fd = atoi(argv[argc - 1]);
	/* A worker never outlives its supervisor, and leaves signals of the terminal to it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	offspring_adopt();
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN); /* timeout(1) and a scheduler send it to the whole group */
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	/* What a kernel prints must not reach a verdict file that goes to stdout. */
	dup2(STDERR_FILENO, STDOUT_FILENO);
	s.beat = mmap(NULL, sizeof(*s.beat), PROT_READ | PROT_WRITE, MAP_SHARED, beat_fd, 0);
	if (s.beat == MAP_FAILED)
		return EXIT_BAD;
	close(beat_fd);
	keep_away(&s.fd);
	fault_watch(&s.beat->fault);
	s.registry = registry_create();
	for (json_t *req; (req = listen_once(&s)); json_decref(req)) {
		const char *op = json_string_value(json_object_get(req, "op"));
		bool ok = op != NULL;
		if (ok && !strcmp(op, "quit")) {
			json_decref(req);
			status = EXIT_OK;
			break;
		}
		if (ok && !strcmp(op, "open"))
			ok = open_device(&s, req);
		else if (ok && (!strcmp(op, "cell") || !strcmp(op, "confirm") || !strcmp(op, "digests")))
			ok = do_cell(&s, req, op);
		else if (ok && !strcmp(op, "sentinels"))
			ok = do_sentinels(&s);
		else
			ok = false;
		if (!ok) {
			json_decref(req);
			break;
		}
	}
	exec_destroy(s.exec);
	if (s.be)
		backend_ops_of(s.be)->close(s.be);
	registry_destroy(s.registry);
	munmap(s.beat, sizeof(*s.beat));
	free(s.buf);
	close(s.fd);
	return status;
}
