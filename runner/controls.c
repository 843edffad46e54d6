#include "controls.h"

#include <stdlib.h>
#include <string.h>

#include "rate.h"

struct controls {
	struct rates *rates;
	json_t *known; /* hash of the artifact -> {census, reason} */
};

struct controls *controls_create(struct backend *be)
{
	struct controls *c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	c->known = json_object();
	c->rates = rates_create(be);
	if (!c->rates || !c->known) {
		controls_destroy(c);
		return NULL;
	}
	return c;
}

void controls_destroy(struct controls *c)
{
	if (!c)
		return;
	rates_destroy(c->rates);
	json_decref(c->known);
	free(c);
}

static void set_or_why(json_t *o, const char *key, const char *why_key, json_t *value, const char *why)
{
	const bool none = json_is_null(value);
	json_object_set_new(o, key, value);
	if (none)
		json_object_set_new(o, why_key, json_string(why));
	else
		json_object_del(o, why_key);
}

static void add_census(struct controls *c, struct stage *st, const struct subject *s, json_t *artifact)
{
	const char *hash = json_string_value(json_object_get(artifact, "hash"));
	json_t *entry = hash ? json_object_get(c->known, hash) : NULL;
	char reason[256] = "this backend does not read machine code";
	json_t *census;
	if (entry) {
		const char *why = json_string_value(json_object_get(entry, "reason"));
		census = json_incref(json_object_get(entry, "census"));
		set_or_why(artifact, "census", "census_reason", census, why ? why : "");
		return;
	}
	stage_beat(st, "census", s->name, 0);
	census = st->ops->census ? st->ops->census(st->be, s->launch, s->n_launches, reason) : json_null();
	if (hash)
		json_object_set_new(c->known, hash, json_pack("{s:O, s:s}", "census", census, "reason", reason));
	set_or_why(artifact, "census", "census_reason", census, reason);
}

static void add_issue(struct controls *c, struct stage *st, const struct subject *s, json_t *artifact)
{
	const struct assay_kernel *k = st->cell->kernel;
	const char *form = k->issue_form ? k->issue_form(s->arm->desc, st->ops->kind, st->ops->info(st->be)->cc) : NULL;
	char reason[256] = "the kernel does not say which matrix instruction the arm issues";
	json_object_set_new(artifact, "instruction", form ? json_string(form) : json_null());
	stage_beat(st, "issue interval", s->name, 0);
	json_t *issue = form ? rates_measure(c->rates, form, reason) : json_null();
	set_or_why(artifact, "issue", "issue_reason", issue, reason);
}

void controls_facts(struct controls *c, struct stage *st, json_t *facts)
{
	const struct check_ratio *check = &st->cell->checks.ratio;
	size_t i;
	json_t *arm;
	json_array_foreach(json_object_get(facts, "arms"), i, arm)
	{
		const char *name = json_string_value(json_object_get(arm, "name"));
		struct subject *s = name ? stage_find(st, name) : NULL;
		if (!s || s->role == ROLE_NULL || s->unsupported ||
		    (strcmp(name, check->of) != 0 && strcmp(name, check->over) != 0))
			continue;
		json_t *artifact = json_object_get(arm, "artifact");
		if (!json_is_object(artifact)) {
			artifact = json_object();
			json_object_set_new(arm, "artifact", artifact);
		}
		add_census(c, st, s, artifact);
		if (check->equal_issue_interval >= 0)
			add_issue(c, st, s, artifact);
	}
}
