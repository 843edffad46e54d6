/* The supervisor's side of a worker process: starts it, asks, waits with a watchdog, and says how it died. */
#define _GNU_SOURCE /* sigabbrev_np */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "exec.h"
#include "finding.h"
#include "monotonic.h"
#include "offspring.h"
#include "plain.h"
#include "supervisor.h"
#include "worker_spawn.h"

enum { TICK_MS = 200 };
/* An answer holds the samples of one cell: far below this. Whoever sends more is broken. */
#define LINE_MAX_BYTES ((size_t)64 << 20)
#define ANSWER_MAX_BYTES ((size_t)512 << 20)
#define OPEN_TIMEOUT_NS ((int64_t)120000000000)
/* No look at the worker takes so long, of a process that runs. */
#define STOPPED_NS ((int64_t)TICK_MS * 2 * 1000000)
#define QUIT_TIMEOUT_NS ((int64_t)2000000000)

struct worker {
	pid_t pid; /* 0: dead and waited for */
	int status; /* of waitpid, where pid is 0 */
	int fd;
	struct exec_beat *beat;
	json_t *opened;
	char *buf;
	size_t n, cap, seen; /* seen: bytes since the last request */
	char mark[64]; /* in the environment of the worker and of whatever it starts; no other worker has it */
	struct worker_config cfg; /* strings are owned */
	struct timing timing;
};

/* ---- start and end ------------------------------------------------------------------------------------------------------ */

/* Whether the process has ended (wait: until it has). Then its status is remembered, and what it started and left in its group ends too. */
static bool reap(struct worker *w, bool wait)
{
	siginfo_t info = {0};
	int rc;

	/* Not waited for before the group is killed: as long as it is there, its number is nobody else's. */
	while ((rc = waitid(P_PID, (id_t)w->pid, &info, WEXITED | WNOWAIT | (wait ? 0 : WNOHANG))) < 0 &&
	       errno == EINTR)
		;
	if (rc == 0 && info.si_pid != w->pid)
		return false;
	if (rc == 0) {
		kill(-w->pid, SIGKILL);
		while (waitpid(w->pid, &w->status, 0) < 0 && errno == EINTR)
			;
		/* Who went into a session of its own has come to us. */
		offspring_end_marked(w->mark);
	}
	w->pid = 0;
	return true;
}

static void put_down(struct worker *w)
{
	if (!w->pid)
		return;
	kill(w->pid, SIGKILL);
	reap(w, true);
}

static void worker_free(struct worker *w)
{
	put_down(w);
	if (w->fd >= 0)
		close(w->fd);
	if (w->beat)
		munmap(w->beat, sizeof(*w->beat));
	json_decref(w->opened);
	worker_config_free(&w->cfg);
	free(w->buf);
	free(w);
}

/* ---- talking ------------------------------------------------------------------------------------------------------------- */

/* Takes the reference. */
static bool say(struct worker *w, json_t *request)
{
	char *text = json_dumps(request, JSON_COMPACT);
	size_t n = text ? strlen(text) : 0, at = 0;
	bool ok = text != NULL;

	json_decref(request);
	if (ok)
		text[n] = '\n'; /* in the place of the NUL */
	for (n++; ok && at < n;) {
		ssize_t k = send(w->fd, text + at, n - at, MSG_NOSIGNAL);
		if (k < 0 && errno == EINTR)
			continue;
		ok = k > 0;
		at += ok ? (size_t)k : 0;
	}
	free(text);
	w->seen = 0;
	return ok;
}

enum heard { HEARD_EVENT, HEARD_NOTHING, HEARD_END, HEARD_NOISE };

/* What has arrived: one event, or what became of the line. Waits at most TICK_MS. */
static enum heard hear(struct worker *w, json_t **event)
{
	for (;;) {
		char *end = w->n ? memchr(w->buf, '\n', w->n) : NULL;
		if (end) {
			*event = plain_record(w->buf, (size_t)(end - w->buf), NULL);
			w->n -= (size_t)(end - w->buf) + 1;
			memmove(w->buf, end + 1, w->n);
			if (json_is_object(*event))
				return HEARD_EVENT;
			json_decref(*event);
			*event = NULL;
			return HEARD_NOISE;
		}
		if (w->n >= w->cfg.line_max_bytes || w->seen >= w->cfg.answer_max_bytes)
			return HEARD_NOISE;
		struct pollfd p = {.fd = w->fd, .events = POLLIN};
		int rc = poll(&p, 1, TICK_MS);
		if (rc <= 0)
			return HEARD_NOTHING;
		if (w->n == w->cap) {
			size_t cap = w->cap ? 2 * w->cap : 65536;
			char *grown = realloc(w->buf, cap);
			if (!grown)
				return HEARD_NOISE;
			w->buf = grown;
			w->cap = cap;
		}
		ssize_t k = recv(w->fd, w->buf + w->n, w->cap - w->n, MSG_DONTWAIT);
		if (k == 0 || (k < 0 && errno == ECONNRESET))
			return HEARD_END;
		if (k < 0)
			return HEARD_NOTHING;
		w->n += (size_t)k;
		w->seen += (size_t)k;
	}
}

/* "in arm split=4, phase identity" from the beat; the worker may have died while it wrote that. */
static void place(const struct worker *w, char *buf, size_t cap)
{
	char phase[sizeof(w->beat->phase) + 1] = "", arm[sizeof(w->beat->arm) + 1] = "";

	memcpy(phase, w->beat->phase, sizeof(w->beat->phase));
	memcpy(arm, w->beat->arm, sizeof(w->beat->arm));
	if (!strcmp(phase, "fill"))
		snprintf(buf, cap, " in phase fill%s%s", arm[0] ? " of " : "", arm);
	else if (arm[0])
		snprintf(buf, cap, " in arm %s, phase %s", arm, phase);
	else if (phase[0])
		snprintf(buf, cap, " in phase %s", phase);
	else
		buf[0] = '\0';
}

static void death(const struct worker *w, char *buf, size_t cap)
{
	char where[128], what[256];

	place(w, where, sizeof(where));
	if (WIFSIGNALED(w->status)) {
		const char *abbrev = sigabbrev_np(WTERMSIG(w->status));
		const int sig = WTERMSIG(w->status);
		const bool timer = sig == SIGALRM || sig == SIGVTALRM || sig == SIGPROF;
		const bool told = fault_words(&w->beat->fault, what, sizeof(what));
		/* What a timer sends comes in whichever arm is running then. */
		snprintf(buf, cap, "killed by SIG%s%s%s%s%s", abbrev ? abbrev : "?",
			 sig == SIGKILL ? " (by hand, or for want of memory)"
			 : timer        ? " (of a timer that some arm had set, not this one perhaps)"
					: "",
			 where, told ? ": " : "", told ? what : "");
	} else {
		memcpy(what, w->beat->said, sizeof(w->beat->said));
		what[sizeof(w->beat->said)] = '\0';
		snprintf(buf, cap, "the worker exited with status %d%s%s%s", WEXITSTATUS(w->status), where,
			 what[0] ? ": " : "", what);
	}
}

/* After the end of the socket: the process is ending, or (false) has closed it and lives on, and is killed. */
static bool see_it_end(struct worker *w)
{
	int64_t until = monotonic_ns() + QUIT_TIMEOUT_NS;

	while (w->pid && monotonic_ns() < until) {
		if (reap(w, false))
			return true;
		struct timespec nap = {.tv_nsec = 2000000};
		nanosleep(&nap, NULL);
	}
	if (!w->pid)
		return true;
	put_down(w);
	return false;
}

/* How it ended, in words. */
static void end_of(struct worker *w, char *buf, size_t cap)
{
	char where[128];

	if (see_it_end(w)) {
		death(w, buf, cap);
		return;
	}
	place(w, where, sizeof(where));
	snprintf(buf, cap, "the worker closed its socket but did not end, and was killed%s", where);
}

/* The same as an answer: where an arm reached for what is not its own, that is a finding of it. */
static void crashed(struct worker *w, struct worker_answer *out)
{
	char said[sizeof(w->beat->said) + 1] = "", arm[sizeof(w->beat->arm) + 1] = "";
	json_t *checks = json_object_get(out->facts, "checks");

	end_of(w, out->reason, sizeof(out->reason));
	memcpy(arm, w->beat->arm, sizeof(w->beat->arm));
	if (!arm[0])
		return;
	if (!json_is_array(checks)) {
		checks = json_array();
		json_object_set_new(out->facts, "checks", checks);
	}
	out->found = fault_finding(&w->beat->fault, arm, checks);
	memcpy(said, w->beat->said, sizeof(w->beat->said));
	if (said[0] && !out->found)
		out->found = finding_add(checks, "run", arm, "error", "%s", said) != NULL;
}

static void noise(struct worker *w, struct worker_answer *out)
{
	char where[128];

	put_down(w);
	place(w, where, sizeof(where));
	snprintf(out->reason, sizeof(out->reason), "the worker sent what is no answer, and was killed%s", where);
}

/* One event of an answer, whose reference is taken. True where it is the last one: *out has the outcome. */
static bool take_event(struct worker *w, json_t *event, struct worker_answer *out)
{
	const char *ev = json_string_value(json_object_get(event, "ev"));
	const char *outcome = json_string_value(json_object_get(event, "outcome"));
	const char *error = json_string_value(json_object_get(event, "error"));
	json_t *facts = json_object_get(event, "facts");
	const bool done = ev && !strcmp(ev, "done");
	bool known = json_is_object(facts) && ev && (done || !strcmp(ev, "part"));

	if (known) {
		json_decref(out->facts);
		out->facts = json_incref(facts);
	}
	if (done && known)
		known = outcome && (!strcmp(outcome, "ok") || !strcmp(outcome, "failed") || !strcmp(outcome, "lost"));
	if (!known) {
		json_decref(event);
		noise(w, out);
		return true;
	}
	if (done) {
		out->outcome = !strcmp(outcome, "ok")       ? WORKER_OK
			       : !strcmp(outcome, "failed") ? WORKER_FAILED
							    : WORKER_LOST;
		snprintf(out->reason, sizeof(out->reason), "%s", error ? error : "");
		out->spent = w->beat->spent != 0;
		if (out->outcome == WORKER_LOST)
			put_down(w);
	}
	json_decref(event);
	return done;
}

void supervisor_ask(struct worker *w, json_t *request, int64_t timeout_ns, const volatile int *interrupted,
		    supervisor_tick *tick, void *ctx, struct worker_answer *out)
{
	int64_t last_ns = monotonic_ns(), silent_ns = 0, ticked_ns = 0;
	uint64_t count;
	char where[128];

	*out = (struct worker_answer){.outcome = WORKER_CRASHED, .facts = json_object()};
	if (!w->pid) {
		json_decref(request);
		snprintf(out->reason, sizeof(out->reason), "the worker is dead");
		return;
	}
	/* Whoever dies now has not died in what the request before it did. */
	memset(w->beat->phase, 0, sizeof(w->beat->phase));
	memset(w->beat->arm, 0, sizeof(w->beat->arm));
	memset(&w->beat->fault, 0, sizeof(w->beat->fault));
	memset(w->beat->said, 0, sizeof(w->beat->said));
	w->beat->spent = 0;
	count = w->beat->count;
	if (!say(w, request)) {
		crashed(w, out);
		return;
	}
	for (;;) {
		json_t *event = NULL;
		const bool dead = !w->pid;
		enum heard heard = hear(w, &event);
		int64_t now = monotonic_ns(), waited = now - last_ns;
		/* Who was stopped himself (a shell's job control, a machine that slept) has not waited: such a gap says nothing of the worker. */
		silent_ns += waited < STOPPED_NS ? waited : STOPPED_NS;
		last_ns = now;
		if (interrupted && *interrupted) {
			json_decref(event);
			put_down(w);
			out->outcome = WORKER_INTERRUPTED;
			snprintf(out->reason, sizeof(out->reason), "interrupted");
			return;
		}
		if (heard == HEARD_EVENT) {
			silent_ns = 0;
			if (take_event(w, event, out))
				return;
			continue;
		}
		/* A dead worker has said what it had to say, also where somebody that it started holds its end of the socket. */
		if (heard == HEARD_END || (heard == HEARD_NOTHING && dead)) {
			crashed(w, out);
			return;
		}
		if (heard == HEARD_NOISE) {
			noise(w, out);
			return;
		}
		worker_alive(w);
		if (w->beat->count != count) {
			count = w->beat->count;
			silent_ns = 0;
		}
		if (timeout_ns > 0 && silent_ns > timeout_ns) {
			put_down(w);
			place(w, where, sizeof(where));
			out->outcome = WORKER_TIMEOUT;
			snprintf(out->reason, sizeof(out->reason), "no sign of life for %.3g s%s",
				 (double)timeout_ns / 1e9, where);
			return;
		}
		if (tick && now - ticked_ns > (int64_t)TICK_MS * 1000000) {
			char phase[sizeof(w->beat->phase) + 1] = "", arm[sizeof(w->beat->arm) + 1] = "";
			memcpy(phase, w->beat->phase, sizeof(w->beat->phase));
			memcpy(arm, w->beat->arm, sizeof(w->beat->arm));
			ticked_ns = now;
			tick(ctx, phase, arm, w->beat->round);
		}
	}
}

static json_t *open_request(const struct worker *w, const struct timing *t)
{
	json_t *o = json_object(), *plugins = json_array();

	for (int i = 0; w->cfg.plugins[i]; i++)
		json_array_append_new(plugins, json_string(w->cfg.plugins[i]));
	json_object_set_new(o, "op", json_string("open"));
	json_object_set_new(o, "backend", json_string(w->cfg.backend));
	json_object_set_new(o, "device", w->cfg.device ? json_string(w->cfg.device) : json_null());
	json_object_set_new(o, "threads", json_integer(w->cfg.threads));
	json_object_set_new(o, "plugins", plugins);
	json_object_set_new(o, "timing",
			    t ? json_pack("{s:i, s:i, s:I, s:i, s:I}", "clock", (int)t->clock, "scrub", (int)t->scrub,
					  "scrub_bytes", (json_int_t)t->scrub_bytes, "warmup_launches",
					  t->warmup_launches, "warmup_ns", (json_int_t)t->warmup_ns)
			      : json_null());
	return o;
}

struct worker *worker_start(const struct worker_config *cfg, const struct timing *t, struct err *err)
{
	struct worker *w = calloc(1, sizeof(*w));
	int64_t until;
	char text[256];

	if (!w) {
		err_set(err, "out of memory");
		return NULL;
	}
	w->fd = -1;
	if (!worker_config_copy(cfg, &w->cfg)) {
		err_set(err, "out of memory");
		goto fail;
	}
	if (w->cfg.open_timeout_ns <= 0)
		w->cfg.open_timeout_ns = OPEN_TIMEOUT_NS;
	if (!w->cfg.line_max_bytes)
		w->cfg.line_max_bytes = LINE_MAX_BYTES;
	if (!w->cfg.answer_max_bytes)
		w->cfg.answer_max_bytes = ANSWER_MAX_BYTES;
	until = monotonic_ns() + w->cfg.open_timeout_ns;
	offspring_adopt();
	snprintf(w->mark, sizeof(w->mark), "ASSAY_WORKER=%d.%lld", (int)getpid(), (long long)monotonic_ns());
	if (!worker_spawn(&w->cfg, w->mark, &w->pid, &w->fd, &w->beat, err))
		goto fail;
	if (!say(w, open_request(w, t))) {
		end_of(w, text, sizeof(text));
		err_set(err, "worker: %s", text);
		goto fail;
	}
	while (!w->opened) {
		json_t *event = NULL;
		enum heard heard = hear(w, &event);
		const char *ev = json_string_value(json_object_get(event, "ev"));
		if (ev && !strcmp(ev, "opened")) {
			w->opened = event;
			break;
		}
		if (ev && !strcmp(ev, "failed")) {
			const char *why = json_string_value(json_object_get(event, "error"));
			err_set(err, "%s", why ? why : "the worker could not open its device");
			json_decref(event);
			goto fail;
		}
		json_decref(event);
		if (heard == HEARD_NOTHING)
			worker_alive(w);
		if (heard == HEARD_END) {
			end_of(w, text, sizeof(text));
			err_set(err, "while it opened the device: %s", text);
			goto fail;
		}
		if (heard == HEARD_NOISE || heard == HEARD_EVENT) {
			err_set(err, "while it opened the device: the worker sent what is no answer");
			goto fail;
		}
		if (w->cfg.interrupted && *w->cfg.interrupted) {
			err_set(err, "interrupted");
			goto fail;
		}
		if (monotonic_ns() > until) {
			err_set(err, "the worker did not open its device within %.3g s",
				(double)w->cfg.open_timeout_ns / 1e9);
			goto fail;
		}
	}
	return w;
fail:
	worker_free(w);
	return NULL;
}

const json_t *worker_opened(const struct worker *w)
{
	return w->opened;
}

const struct worker_config *supervisor_config(const struct worker *w)
{
	return &w->cfg;
}

bool worker_alive(struct worker *w)
{
	return w->pid && !reap(w, false);
}

int worker_pid(const struct worker *w)
{
	return (int)w->pid;
}

void worker_stop(struct worker *w)
{
	if (!w)
		return;
	if (w->pid) {
		say(w, json_pack("{s:s}", "op", "quit"));
		see_it_end(w);
	}
	worker_free(w);
}
