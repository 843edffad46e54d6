/* diff_cell: a cell's record into the memory of a comparison. The base's cells are stored; the head's are held against them at once. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diff_parts.h"
#include "record_parts.h"

/* ---- places of ids --------------------------------------------------------------------------------------------------- */

/* The id's parts: five of them make the prefix, the rest is the point. */
static const char *tail_of(const char *id)
{
	const char *s = id;
	for (int i = 0; i < 5; i++) {
		const char *slash = strchr(s, '/');
		if (!slash)
			return id + strlen(id);
		s = slash + 1;
	}
	return s;
}

static uint32_t slot_of(const struct diff *d, const char *id, size_t n_prefix)
{
	uint64_t h = diff_hash(id, strlen(id));
	size_t i = h & (d->n_places - 1);
	for (; d->place[i]; i = (i + 1) & (d->n_places - 1)) {
		const struct diff_cell *c = &d->cell[d->place[i] - 1];
		const char *prefix = d->words.word[c->prefix];
		if (strncmp(prefix, id, n_prefix) == 0 && prefix[n_prefix] == 0 &&
		    strcmp(d->text + c->tail, id + n_prefix) == 0)
			break;
	}
	return (uint32_t)i;
}

static bool grow_places(struct diff *d)
{
	if ((d->n_cells + 1) * 4 < d->n_places * 3)
		return true;
	size_t n = d->n_places ? d->n_places * 2 : 256;
	uint32_t *old = d->place, *fresh = calloc(n, sizeof *fresh);
	if (!fresh)
		return false;
	for (size_t k = 0; k < d->n_places; k++) {
		if (!old[k])
			continue;
		const struct diff_cell *c = &d->cell[old[k] - 1];
		const char *prefix = d->words.word[c->prefix], *tail = d->text + c->tail;
		/* The hash of both parts together, as slot_of has it of the whole. */
		char id[4096];
		snprintf(id, sizeof id, "%s%s", prefix, tail);
		size_t i = diff_hash(id, strlen(id)) & (n - 1);
		while (fresh[i])
			i = (i + 1) & (n - 1);
		fresh[i] = old[k];
	}
	free(old);
	d->place = fresh;
	d->n_places = n;
	return true;
}

/* The cell of this id, made where there is none. NULL out of memory. */
static struct diff_cell *cell_of(struct diff *d, const char *id)
{
	if (!grow_places(d))
		return NULL;
	const char *tail = tail_of(id);
	size_t n_prefix = (size_t)(tail - id), n_tail = strlen(tail) + 1;
	uint32_t slot = slot_of(d, id, n_prefix);
	if (d->place[slot])
		return &d->cell[d->place[slot] - 1];
	char *prefix = strndup(id, n_prefix);
	uint32_t word = prefix ? diff_word(&d->words, prefix) : UINT32_MAX;
	free(prefix);
	if (word == UINT32_MAX || !diff_grow(&d->cell, d->n_cells, &d->cap_cells, sizeof *d->cell))
		return NULL;
	while (d->n_text + n_tail > d->cap_text) {
		size_t cap = d->cap_text ? d->cap_text + d->cap_text / 2 : 4096;
		char *p = cap < UINT32_MAX ? realloc(d->text, cap) : NULL;
		if (!p)
			return NULL;
		d->text = p;
		d->cap_text = cap;
	}
	struct diff_cell *c = &d->cell[d->n_cells++];
	*c = (struct diff_cell){.prefix = word,
				.tail = (uint32_t)d->n_text,
				.state = DIFF_SAME,
				.null_r = NAN,
				.null_rv = NAN};
	memcpy(d->text + d->n_text, tail, n_tail);
	d->n_text += n_tail;
	d->place[slot] = (uint32_t)d->n_cells;
	return c;
}

/* ---- status ---------------------------------------------------------------------------------------------------------- */

static const json_t *bad_finding(const json_t *record)
{
	size_t i;
	json_t *f;
	json_array_foreach(json_object_get(record, "checks"), i, f)
	{
		const char *status = record_text(f, "status");
		if (status && strcmp(status, "pass") != 0 && strcmp(status, "skip") != 0)
			return f;
	}
	return NULL;
}

static enum diff_class class_of(const json_t *record, enum cell_status st)
{
	switch (st) {
	case ST_PASS:
	case ST_INCONCLUSIVE: return DC_OK;
	case ST_SKIP: return DC_SKIP;
	case ST_XFAIL: return DC_WAIVED;
	case ST_INVALID:
	case ST_INVALID_DATA: return bad_finding(record) ? DC_FAILING : DC_TIME_INVALID;
	default: return DC_FAILING;
	}
}

/* Why a cell fails, in a few words. */
static void failure_text(const json_t *record, char *out, size_t cap)
{
	const char *status = record_text(record, "status"), *reason = record_text(record, "reason");
	const json_t *f = bad_finding(record);
	double differ = record_number(f, "differ", NAN), of = record_number(f, "of", NAN);
	const char *text = record_text(f, "text");
	if (f && differ > 0 && of > 0)
		snprintf(out, cap, "%s: %.0f of %.0f elements", status, differ, of);
	else if (f && text)
		snprintf(out, cap, "%s: %.150s", status, text);
	else if (reason && strncmp(reason, status, strlen(status)) == 0)
		snprintf(out, cap, "%.170s", reason);
	else
		snprintf(out, cap, "%s%s%.150s", status, reason ? ": " : "", reason ? reason : "");
}

static uint8_t arm_index(const struct diff *d, const struct diff_cell *c, const char *name)
{
	for (int i = 0; name && i < c->n_arms; i++)
		if (strcmp(d->words.word[d->arm[c->arm + (uint32_t)i].name], name) == 0)
			return (uint8_t)(i + 1);
	return 0;
}

static bool set_word(struct diff *d, uint32_t *at, const char *text)
{
	/* Reasons of a file of nothing but failures are not kept without end. */
	*at = d->words.n < 200000 ? diff_word(&d->words, text) : diff_word(&d->words, "(one of very many)");
	return *at != UINT32_MAX;
}

/* The cell as a whole, when both sides are known. */
static bool settle(struct diff *d, struct diff_cell *c, const json_t *head, struct err *err)
{
	enum diff_class b = c->class[DIFF_BASE], h = c->class[DIFF_HEAD];
	const char *was = status_name((enum cell_status)c->status[DIFF_BASE]);
	const char *reason = record_text(head, "reason");
	char why[240] = "";
	c->state = DIFF_SAME;
	c->why = c->times = 0;
	c->why_arm = 0;
	if (h == DC_FAILING && !(b == DC_FAILING && c->status[0] == c->status[1])) {
		const json_t *f = bad_finding(head);
		c->state = DIFF_FAILS;
		failure_text(head, why, sizeof why);
		if (b == DC_FAILING)
			snprintf(why + strlen(why), sizeof why - strlen(why), " (was %s)", was);
		c->why_arm = arm_index(d, c, f ? record_text(f, "arm") : record_text(head, "selected"));
	} else if (h == DC_WAIVED && b != DC_WAIVED) {
		const char *id = record_text(json_object_get(head, "waiver"), "id");
		c->state = DIFF_WAIVED;
		snprintf(why, sizeof why, "waived by %.100s", id ? id : "?");
	} else if (h == DC_SKIP && b != DC_SKIP) {
		c->state = DIFF_INCOMPARABLE;
		snprintf(why, sizeof why, "skipped in head: %.150s", reason ? reason : "no reason given");
	} else if (b == DC_SKIP && h != DC_SKIP && h != DC_FAILING) {
		c->state = DIFF_INCOMPARABLE;
		snprintf(why, sizeof why, "skipped in base");
	} else if (h != DC_FAILING && h != DC_SKIP && h != DC_WAIVED && (b == DC_FAILING || b == DC_WAIVED)) {
		c->state = DIFF_FIXED;
		snprintf(why, sizeof why, "was %s%s", was, b == DC_WAIVED ? ", the waiver is not needed" : "");
	}
	if ((why[0] && !set_word(d, &c->why, why)))
		return err_set(err, "out of memory");
	why[0] = 0;
	if (h == DC_TIME_INVALID && b != DC_TIME_INVALID)
		snprintf(why, sizeof why, "timing invalid in head: %.150s", reason ? reason : "no reason given");
	else if (b == DC_TIME_INVALID && h != DC_TIME_INVALID)
		snprintf(why, sizeof why, "timing invalid in base");
	/* Invalid in both is no change, and no times either: diff_arm_timed. */
	if (why[0] && !set_word(d, &c->times, why))
		return err_set(err, "out of memory");
	return true;
}

/* Other data, seed or parameters: nothing of the two can be compared. Other conditions: no times. */
static bool compare_conditions(struct diff *d, struct diff_cell *c, const json_t *head, struct err *err)
{
	char now[256], why[200] = "";
	uint32_t data, dtypes, params = diff_params_hash(head);
	const char *was = d->words.word[c->conditions];
	diff_conditions_text(head, now, sizeof now);
	diff_data_hashes(head, &data, &dtypes);
	bool whole = true;
	if (c->params && params && c->params != params)
		snprintf(why, sizeof why, "geometry differs: other parameters");
	else if (strtoll(was, NULL, 10) != strtoll(now, NULL, 10))
		diff_conditions_differ(was, now, 0, why, sizeof why);
	else if (c->dtypes && dtypes && c->dtypes != dtypes)
		snprintf(why, sizeof why, "dtype differs");
	else if (c->data && data && c->data != data)
		snprintf(why, sizeof why, "data differ: other bytes of the inputs under one seed");
	else
		whole = !diff_conditions_differ(was, now, 1, why, sizeof why);
	if (!why[0])
		return true;
	if (whole && c->state == DIFF_SAME) {
		c->state = DIFF_INCOMPARABLE;
		c->why_arm = 0;
		if (!set_word(d, &c->why, why))
			return err_set(err, "out of memory");
	}
	if (!set_word(d, &c->times, why))
		return err_set(err, "out of memory");
	/* The bits of other inputs are other bits. */
	for (uint32_t i = 0; whole && i < c->n_arms; i++)
		d->arm[c->arm + i].flags &= (uint8_t)~DA_BITS;
	return true;
}

/* Fewer processes than were asked for: no times. */
static bool count_processes(struct diff *d, struct diff_cell *c, struct err *err)
{
	for (uint32_t i = 0; i < c->n_arms && !c->times; i++) {
		const struct diff_arm *a = &d->arm[c->arm + i];
		for (int k = 0; k < 2 && !c->times; k++) {
			char why[80];
			if (!(a->flags & DA_IN_HEAD) || isnan(a->y[0]) || isnan(a->y[1]) ||
			    a->processes[k] >= d->o.processes)
				continue;
			snprintf(why, sizeof why, "%d process%s in %s, --processes %d", a->processes[k],
				 a->processes[k] == 1 ? "" : "es", k ? "head" : "base", d->o.processes);
			if (!set_word(d, &c->times, why))
				return err_set(err, "out of memory");
		}
	}
	return true;
}

/* ---- the two sides --------------------------------------------------------------------------------------------------- */

static bool take_base(struct diff *d, struct diff_cell *c, const json_t *record, struct err *err)
{
	struct diff_reading r[DIFF_MAX_ARMS];
	int n = diff_read_arms(record, d->o.processes, r);
	char text[256];
	diff_conditions_text(record, text, sizeof text);
	c->params = diff_params_hash(record);
	diff_data_hashes(record, &c->data, &c->dtypes);
	if ((c->conditions = diff_word(&d->words, text)) == UINT32_MAX)
		return err_set(err, "out of memory");
	c->arm = (uint32_t)d->n_arms;
	c->n_arms = 0;
	c->null_r = c->null_rv = NAN;
	for (int i = 0; i < n; i++) {
		if (r[i].role == ROLE_NULL) {
			c->null_r = (float)r[i].r;
			c->null_rv = (float)r[i].rv;
			continue;
		}
		uint32_t name = diff_word(&d->words, r[i].name);
		if (name > UINT16_MAX || !diff_grow(&d->arm, d->n_arms, &d->cap_arms, sizeof *d->arm))
			return err_set(err, name == UINT32_MAX ? "out of memory" : "more than 65535 names of arms");
		d->arm[d->n_arms++] = (struct diff_arm){
			.out = r[i].out,
			.code = r[i].code,
			.y = {(float)r[i].y, NAN},
			.v = {(float)r[i].v, NAN},
			.r = {(float)r[i].r, NAN},
			.rv = {(float)r[i].rv, NAN},
			.name = (uint16_t)name,
			.spills = {(uint16_t)r[i].spills, 0},
			.regs = {(uint8_t)r[i].regs, 0},
			.processes = {(uint8_t)r[i].processes, 0},
			.role = (uint8_t)r[i].role,
			.flags = r[i].bad ? DA_BAD_BASE : 0,
		};
		c->n_arms++;
	}
	return true;
}

/* How far head's output of an arm is from the base's: known where a check of one file compared the arm with another whose output is that
 * of the other file. NAN: the files hold digests only. */
static double ulp_between(const json_t *record, const struct diff_reading *r, int n, const char *arm, uint64_t base_out)
{
	double ulp = NAN;
	size_t i;
	json_t *f;
	json_array_foreach(json_object_get(record, "checks"), i, f)
	{
		const char *check = record_text(f, "check"), *of = record_text(f, "arm"),
			   *against = record_text(f, "against");
		if (!check || !of || !against || strcmp(check, "identity") != 0 || strcmp(of, arm) != 0)
			continue;
		for (int k = 0; k < n; k++)
			if (strcmp(r[k].name, against) == 0 && r[k].out == base_out) {
				double x = record_number(f, "ulp_max", NAN);
				ulp = isnan(ulp) || x > ulp ? x : ulp;
			}
	}
	return ulp;
}

static bool take_head(struct diff *d, struct diff_cell *c, const json_t *record, bool again, struct err *err)
{
	struct diff_reading r[DIFF_MAX_ARMS];
	int n = diff_read_arms(record, d->o.processes, r);
	uint32_t index = (uint32_t)(c - d->cell);
	c->floor_ns = (float)record_number(record, "margin_floor_ns", 0);
	for (uint32_t i = 0; i < c->n_arms; i++) {
		struct diff_arm *a = &d->arm[c->arm + i];
		a->y[1] = a->v[1] = a->r[1] = a->rv[1] = NAN;
		a->flags &= DA_BAD_BASE;
	}
	/* A resumed file gives a cell twice: what was noted of it at first is dropped. */
	if (again) {
		size_t kept = 0;
		for (size_t i = 0; i < d->n_extra; i++)
			if (d->extra[i].cell != index)
				d->extra[kept++] = d->extra[i];
		d->n_extra = kept;
		kept = 0;
		for (size_t i = 0; i < d->n_ulp; i++)
			if (d->ulp[i].cell != index)
				d->ulp[kept++] = d->ulp[i];
		d->n_ulp = kept;
	}
	double null_r = NAN, null_rv = NAN;
	for (int i = 0; i < n; i++) {
		if (r[i].role == ROLE_NULL) {
			null_r = r[i].r;
			null_rv = r[i].rv;
			continue;
		}
		uint8_t k = arm_index(d, c, r[i].name);
		if (k == 0 && c->line[DIFF_BASE]) {
			uint32_t name = diff_word(&d->words, r[i].name);
			if (name > UINT16_MAX || !diff_grow(&d->extra, d->n_extra, &d->cap_extra, sizeof *d->extra))
				return err_set(err, "out of memory");
			d->extra[d->n_extra++] = (struct diff_extra){index, (uint16_t)name};
		}
		if (k == 0)
			continue;
		struct diff_arm *a = &d->arm[c->arm + k - 1u];
		a->y[1] = (float)r[i].y;
		a->v[1] = (float)r[i].v;
		a->r[1] = (float)r[i].r;
		a->rv[1] = (float)r[i].rv;
		a->processes[1] = (uint8_t)r[i].processes;
		a->regs[1] = (uint8_t)r[i].regs;
		a->spills[1] = (uint16_t)r[i].spills;
		a->flags |= DA_IN_HEAD;
		if (r[i].bad)
			a->flags |= DA_BAD_HEAD;
		if (a->out && r[i].out && a->out != r[i].out) {
			a->flags |= DA_BITS;
			double ulp = ulp_between(record, r, n, r[i].name, a->out);
			if (isfinite(ulp)) {
				if (!diff_grow(&d->ulp, d->n_ulp, &d->cap_ulp, sizeof *d->ulp))
					return err_set(err, "out of memory");
				d->ulp[d->n_ulp++] = (struct diff_ulp){index, (uint8_t)(k - 1), ulp};
			}
		}
		if (a->code && r[i].code)
			a->flags |= a->code == r[i].code ? DA_SAME_CODE : DA_OTHER_CODE;
	}
	if (!c->line[DIFF_BASE]) {
		char why[240] = "";
		if (c->class[DIFF_HEAD] == DC_FAILING) {
			failure_text(record, why, sizeof why);
			snprintf(why + strlen(why), sizeof why - strlen(why), " (only in head)");
		}
		c->state = why[0] ? DIFF_FAILS : DIFF_ADDED;
		return !why[0] || set_word(d, &c->why, why) || err_set(err, "out of memory");
	}
	if (!settle(d, c, record, err) || !compare_conditions(d, c, record, err) || !count_processes(d, c, err))
		return false;
	if (diff_has_times(c) && isfinite(c->null_r) && isfinite(null_r) &&
	    !diff_control_add(&d->null, null_r - (double)c->null_r, (double)c->null_rv + null_rv))
		return err_set(err, "out of memory");
	return true;
}

/* ---- the filter ------------------------------------------------------------------------------------------------------- */

static const char *value_text(const json_t *v, char *buf, size_t cap)
{
	if (json_is_string(v))
		return json_string_value(v);
	if (json_is_integer(v))
		snprintf(buf, cap, "%lld", (long long)json_integer_value(v));
	else if (json_is_real(v))
		snprintf(buf, cap, "%.17g", json_real_value(v));
	else
		return NULL;
	return buf;
}

static const char *record_get(const void *subject, const char *key, int i, char *buf, size_t cap)
{
	const json_t *record = subject;
	if (strcmp(key, "arm") == 0)
		return record_text(json_array_get(json_object_get(record, "arms"), (size_t)i), "name");
	if (i > 0)
		return NULL;
	static const char *const own[] = {"id", "suite", "case", "kernel", "geometry", "data", "status"};
	for (size_t k = 0; k < sizeof own / sizeof *own; k++)
		if (strcmp(key, own[k]) == 0)
			return record_text(record, key);
	const json_t *v = json_object_get(json_object_get(record, "point"), key);
	return value_text(v ? v : json_object_get(json_object_get(record, "params"), key), buf, cap);
}

bool diff_take_cell(struct diff *d, enum diff_side side, const json_t *record, int64_t line, struct err *err)
{
	if (d->o.filter && !selector_match(d->o.filter, record, record_get)) {
		d->filtered_out++;
		return true;
	}
	const char *id = record_text(record, "id"), *status = record_text(record, "status");
	if (!id || !status || strlen(id) > 4000)
		return err_set(err, "line %lld: a cell without a fit id or status", (long long)line);
	struct diff_cell *c = cell_of(d, id);
	if (!c)
		return err_set(err, "out of memory after %zu cells", d->n_cells);
	if (c->line[side] && (int64_t)c->line[side] > d->resumed[side])
		return err_set(err, "line %lld: cell %s stands in line %lu already", (long long)line, id,
			       (unsigned long)c->line[side]);
	bool again = c->line[side] != 0;
	c->line[side] = (uint32_t)line;
	c->status[side] = (uint8_t)status_of(status);
	c->class[side] = (uint8_t)class_of(record, status_of(status));
	const char *throttle =
		record_text(json_object_get(json_object_get(record, "device_state"), "after"), "throttle");
	d->throttled[side] += throttle && throttle[0];
	d->limited[side] += record_limit(record) != NULL;
	if (!again)
		d->n_side[side]++;
	if (side == DIFF_BASE) {
		c->state = DIFF_MISSING;
		return take_base(d, c, record, err);
	}
	if (!again) {
		if (!diff_grow(&d->order, d->n_order, &d->cap_order, sizeof *d->order))
			return err_set(err, "out of memory after %zu cells", d->n_cells);
		d->order[d->n_order++] = (uint32_t)(c - d->cell);
	}
	return take_head(d, c, record, again, err);
}
