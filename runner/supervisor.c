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
#include "worker.h"
#include "worker_spawn.h"

enum { TICK_MS = 200 };
/* An answer holds the samples of one cell: far below this. Whoever sends more is broken. */
#define LINE_MAX_BYTES ((size_t)64 << 20)
#define CELL_MAX_BYTES ((size_t)512 << 20)
#define OPEN_TIMEOUT_NS ((int64_t)120000000000)
#define QUIT_TIMEOUT_NS ((int64_t)2000000000)

struct worker {
	pid_t pid; /* 0: dead and waited for */
	int status; /* of waitpid, where pid is 0 */
	int fd;
	struct exec_beat *beat;
	json_t *opened;
	char *buf;
	size_t n, cap, seen; /* seen: bytes since the last request */
	struct worker_config cfg; /* strings are owned */
	struct timing timing;
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- start and end ------------------------------------------------------------------------------------------------------ */

/* Waits for the end of the process and remembers its status. */
static void reap(struct worker *w)
{
	while (w->pid && waitpid(w->pid, &w->status, 0) < 0 && errno == EINTR)
		;
	w->pid = 0;
}

static void put_down(struct worker *w)
{
	if (!w->pid)
		return;
	kill(w->pid, SIGKILL);
	reap(w);
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
			*event = json_loadb(w->buf, (size_t)(end - w->buf), 0, NULL);
			w->n -= (size_t)(end - w->buf) + 1;
			memmove(w->buf, end + 1, w->n);
			return json_is_object(*event) ? HEARD_EVENT : (json_decref(*event), HEARD_NOISE);
		}
		if (w->n >= LINE_MAX_BYTES || w->seen >= CELL_MAX_BYTES)
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
	char where[128];

	place(w, where, sizeof(where));
	if (WIFSIGNALED(w->status)) {
		const char *abbrev = sigabbrev_np(WTERMSIG(w->status));
		snprintf(buf, cap, "killed by SIG%s%s%s", abbrev ? abbrev : "?",
			 WTERMSIG(w->status) == SIGKILL ? " (by hand, or for want of memory)" : "", where);
	} else {
		snprintf(buf, cap, "the worker exited with status %d%s", WEXITSTATUS(w->status), where);
	}
}

/* After the end of the socket: the process is ending, or has closed it on purpose. */
static void see_it_end(struct worker *w)
{
	int64_t until = now_ns() + QUIT_TIMEOUT_NS;

	while (w->pid && now_ns() < until) {
		pid_t got = waitpid(w->pid, &w->status, WNOHANG);
		if (got == w->pid) {
			w->pid = 0;
			return;
		}
		struct timespec nap = {.tv_nsec = 2000000};
		nanosleep(&nap, NULL);
	}
	put_down(w);
}

typedef void tick_fn(void *ctx, const char *phase, const char *arm, int round);

/* Asks and waits for the answer. Takes the reference of the request. */
static void converse(struct worker *w, json_t *request, int64_t timeout_ns, const volatile int *interrupted,
		     tick_fn *tick, void *ctx, struct worker_answer *out)
{
	int64_t alive_ns = now_ns(), ticked_ns = 0;
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
	count = w->beat->count;
	if (!say(w, request)) {
		see_it_end(w);
		death(w, out->reason, sizeof(out->reason));
		return;
	}
	for (;;) {
		json_t *event = NULL;
		enum heard heard = hear(w, &event);
		int64_t now = now_ns();
		if (heard == HEARD_EVENT) {
			const char *ev = json_string_value(json_object_get(event, "ev"));
			json_t *facts = json_object_get(event, "facts");
			alive_ns = now;
			if (json_is_object(facts)) {
				json_decref(out->facts);
				out->facts = json_incref(facts);
			}
			if (ev && !strcmp(ev, "done")) {
				const char *outcome = json_string_value(json_object_get(event, "outcome"));
				const char *error = json_string_value(json_object_get(event, "error"));
				out->outcome = outcome && !strcmp(outcome, "ok")       ? WORKER_OK
					       : outcome && !strcmp(outcome, "failed") ? WORKER_FAILED
										       : WORKER_LOST;
				snprintf(out->reason, sizeof(out->reason), "%s", error ? error : "");
				json_decref(event);
				if (out->outcome == WORKER_LOST)
					put_down(w);
				return;
			}
			json_decref(event);
			continue;
		}
		if (heard == HEARD_END) {
			see_it_end(w);
			death(w, out->reason, sizeof(out->reason));
			return;
		}
		if (heard == HEARD_NOISE) {
			put_down(w);
			place(w, where, sizeof(where));
			snprintf(out->reason, sizeof(out->reason),
				 "the worker sent what is no answer, and was killed%s", where);
			return;
		}
		if (interrupted && *interrupted) {
			put_down(w);
			out->outcome = WORKER_INTERRUPTED;
			snprintf(out->reason, sizeof(out->reason), "interrupted");
			return;
		}
		if (w->beat->count != count) {
			count = w->beat->count;
			alive_ns = now;
		}
		if (timeout_ns > 0 && now - alive_ns > timeout_ns) {
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
	int64_t until = now_ns() + OPEN_TIMEOUT_NS;
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
	if (!worker_spawn(&w->cfg, &w->pid, &w->fd, &w->beat, err))
		goto fail;
	if (!say(w, open_request(w, t))) {
		see_it_end(w);
		death(w, text, sizeof(text));
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
		if (heard == HEARD_END) {
			see_it_end(w);
			death(w, text, sizeof(text));
			err_set(err, "while it opened the device: %s", text);
			goto fail;
		}
		if (heard == HEARD_NOISE || now_ns() > until) {
			err_set(err, heard == HEARD_NOISE ? "the worker sent what is no answer"
							  : "the worker did not open its device within 120 s");
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

/* ---- requests ------------------------------------------------------------------------------------------------------------ */

/* They take a second or so; a device that hangs in them is lost. */
#define SENTINELS_TIMEOUT_NS 60000000000

void worker_sentinels(struct worker *w, const volatile int *interrupted, struct worker_answer *out)
{
	converse(w, json_pack("{s:s}", "op", "sentinels"), SENTINELS_TIMEOUT_NS, interrupted, NULL, NULL, out);
}

void worker_digests(struct worker *w, const struct cell *c, const volatile int *interrupted, struct worker_answer *out)
{
	converse(w, json_pack("{s:s, s:o}", "op", "digests", "cell", cell_to_json(c)), c->timing.timeout_ns,
		 interrupted, NULL, NULL, out);
}

static const char *digest_of(const json_t *facts, const char *arm)
{
	const json_t *arms = json_object_get(facts, "arms");

	for (size_t i = 0; i < json_array_size(arms); i++) {
		const json_t *a = json_array_get(arms, i);
		const char *name = json_string_value(json_object_get(a, "name"));
		if (name && !strcmp(name, arm))
			return json_string_value(json_object_get(a, "out_sha256"));
	}
	return NULL;
}

static bool listed(const char *const list[MAX_LIST], const char *name)
{
	for (int i = 0; i < MAX_LIST && list[i]; i++)
		if (!strcmp(list[i], name))
			return true;
	return !list[0];
}

/* The same arms in other processes: their digests are those of this record, or it is a mismatch. */
static void other_processes(const struct worker *w, const struct cell *c, const volatile int *interrupted,
			    json_t *facts)
{
	int differ[MAX_ARMS] = {0}, ran[MAX_ARMS] = {0}, wanted = c->checks.repeat.processes - 1;
	json_t *findings = json_object_get(facts, "checks");
	char why[768] = "";

	for (int p = 0; p < wanted && !(interrupted && *interrupted); p++) {
		struct err err = {{0}};
		struct worker_answer answer;
		struct worker *other = worker_start(&w->cfg, NULL, &err);
		if (!other) {
			snprintf(why, sizeof(why), "%s", err.text);
			continue;
		}
		worker_digests(other, c, interrupted, &answer);
		if (answer.outcome != WORKER_OK)
			snprintf(why, sizeof(why), "%s", answer.reason);
		for (int i = 0; i < c->n_arms; i++) {
			const char *mine = digest_of(facts, c->arm[i].name),
				   *its = digest_of(answer.facts, c->arm[i].name);
			ran[i] += mine && its;
			differ[i] += mine && its && strcmp(mine, its);
		}
		json_decref(answer.facts);
		worker_stop(other);
	}
	for (int i = 0; i < c->n_arms; i++) {
		const char *arm = c->arm[i].name;
		json_t *f;
		if (!digest_of(facts, arm) || !listed(c->checks.repeat.arms, arm))
			continue;
		if (differ[i])
			f = finding_add(findings, "repeat", arm, "mismatch", "other bits in %d of %d other processes",
					differ[i], ran[i]);
		else if (ran[i] == wanted)
			f = finding_add(findings, "repeat", arm, "pass", "the same bits in %d other processes", ran[i]);
		else
			f = finding_add(findings, "repeat", arm, "error", "ran in %d of %d other processes: %s", ran[i],
					wanted, why);
		json_object_set_new(f, "against", json_string(arm));
		json_object_set_new(f, "kind", json_string("processes"));
		json_object_set_new(f, "launches", json_integer(ran[i]));
		json_object_set_new(f, "launches_differ", json_integer(differ[i]));
		json_object_set_new(f, "same_elements", json_null());
		json_object_set_new(f, "bound", json_null());
	}
}

void worker_cell(struct worker *w, const struct cell *c, int attempt, const volatile int *interrupted,
		 void (*tick)(void *ctx, const char *phase, const char *arm, int round), void *ctx,
		 struct worker_answer *out)
{
	converse(w, json_pack("{s:s, s:o, s:i}", "op", "cell", "cell", cell_to_json(c), "attempt", attempt),
		 c->timing.timeout_ns, interrupted, tick, ctx, out);
	if (out->outcome == WORKER_OK && (c->checks.on >> CHECK_REPEAT & 1) && c->checks.repeat.processes > 1)
		other_processes(w, c, interrupted, out->facts);
}

void worker_confirm(struct worker *w, const struct cell *c, const char *arm, int n, uint64_t order_seed,
		    const volatile int *interrupted, struct worker_answer *out)
{
	json_t *o = json_pack("{s:s, s:o, s:s, s:i, s:I}", "op", "confirm", "cell", cell_to_json(c), "arm", arm, "n", n,
			      "order_seed", (json_int_t)(order_seed & INT64_MAX));

	converse(w, o, c->timing.timeout_ns, interrupted, NULL, NULL, out);
}
