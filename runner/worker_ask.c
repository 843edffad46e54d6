/* What is asked of a worker: cells, second looks, digests of other processes, sentinels. */
#include <stdio.h>
#include <string.h>

#include "finding.h"
#include "supervisor.h"

/* They take a second or so; a device that hangs in them is lost. */
#define SENTINELS_TIMEOUT_NS 60000000000

void worker_sentinels(struct worker *w, const volatile int *interrupted, struct worker_answer *out)
{
	supervisor_ask(w, json_pack("{s:s}", "op", "sentinels"), SENTINELS_TIMEOUT_NS, interrupted, NULL, NULL, out);
}

void worker_digests(struct worker *w, const struct cell *c, const volatile int *interrupted, struct worker_answer *out)
{
	supervisor_ask(w, json_pack("{s:s, s:o}", "op", "digests", "cell", cell_to_json(c)), c->timing.timeout_ns,
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
		struct worker *other = worker_start(supervisor_config(w), NULL, &err);
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
	supervisor_ask(w, json_pack("{s:s, s:o, s:i}", "op", "cell", "cell", cell_to_json(c), "attempt", attempt),
		       c->timing.timeout_ns, interrupted, tick, ctx, out);
	if (out->outcome == WORKER_OK && (c->checks.on >> CHECK_REPEAT & 1) && c->checks.repeat.processes > 1)
		other_processes(w, c, interrupted, out->facts);
}

void worker_confirm(struct worker *w, const struct cell *c, const char *arm, int n, uint64_t order_seed,
		    const volatile int *interrupted, struct worker_answer *out)
{
	json_t *o = json_pack("{s:s, s:o, s:s, s:i, s:I}", "op", "confirm", "cell", cell_to_json(c), "arm", arm, "n", n,
			      "order_seed", (json_int_t)(order_seed & INT64_MAX));

	supervisor_ask(w, o, c->timing.timeout_ns, interrupted, NULL, NULL, out);
}
