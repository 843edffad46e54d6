#include "rate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/rate.h"

extern const struct assay_kernel assay_kernel_probe_rate;

/* The least of so many launches: what disturbs a launch makes it longer, and a host's are disturbed more. */
enum { LAUNCHES = 9, LAUNCHES_HOST = 49, REASON = 256 };

struct rates {
	struct backend *be;
	const struct backend_ops *ops;
	json_t *known; /* form -> {issue, reason} */
};

struct rates *rates_create(struct backend *be)
{
	struct rates *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	*r = (struct rates){.be = be, .ops = backend_ops_of(be), .known = json_object()};
	return r;
}

void rates_destroy(struct rates *r)
{
	if (!r)
		return;
	json_decref(r->known);
	free(r);
}

static const struct assay_arm *find(const char *form)
{
	for (int i = 0; i < assay_kernel_probe_rate.n_arms; i++)
		if (strcmp(assay_kernel_probe_rate.arms[i].name, form) == 0)
			return &assay_kernel_probe_rate.arms[i];
	return NULL;
}

/* One launch that is waited for, and its result; a launch that computed nonsense has not issued what it should. */
static bool launch_once(struct rates *r, const struct launch *l, struct rate_result *out, struct err *err)
{
	bool lost;
	float lane[RATE_LANES];
	const double want = rate_expected(l->call->point->v[RATE_ITERS].i);
	if (!r->ops->launch(r->be, l, err) || !r->ops->sync(r->be, &lost, err) ||
	    !r->ops->download(r->be, out, l->call->workspace, sizeof *out, err) ||
	    !r->ops->download(r->be, lane, l->call->tensor[RATE_OUT], sizeof lane, err))
		return false;
	for (int i = 0; i < RATE_LANES; i++)
		if ((double)lane[i] != want)
			return err_set(err, "the probe computed %g in place of %g", (double)lane[i], want);
	if (!(out->elapsed > 0) || !(out->issued > 0))
		return err_set(err, "the probe's clock stood still");
	return true;
}

static bool measure(struct rates *r, const struct assay_arm *arm, double *interval, struct err *err)
{
	const struct assay_arm_ops *ops = arm->ops[r->ops->kind];
	const struct assay_point point = {.v = {[RATE_ITERS] = {.i = assay_kernel_probe_rate.params[RATE_ITERS].dflt}}};
	const size_t bytes = sizeof(struct rate_result);
	char error[ASSAY_ERROR_MAX] = "";
	struct assay_shape shape[RATE_TENSORS] = {{.rank = 1, .dim = {RATE_LANES}}};
	void *tensor[RATE_TENSORS] = {r->ops->alloc(r->be, RATE_LANES * sizeof(float), err)}, *workspace = NULL;
	bool ok = false;
	if (tensor[0])
		workspace = r->ops->alloc(r->be, bytes, err);
	if (!workspace)
		goto done;
	const struct assay_call call = {.point = &point,
					.tensor = tensor,
					.shape = shape,
					.workspace = workspace,
					.workspace_bytes = bytes,
					.threads = r->ops->kind == ASSAY_HOST,
					.stream = r->ops->stream ? r->ops->stream(r->be) : NULL,
					.error = error,
					.arm = arm,
					.backend = r->ops->kind};
	const struct launch l = {.ops = ops, .call = &call};
	*interval = INFINITY;
	ok = true;
	for (int i = -1; ok && i < (r->ops->kind == ASSAY_HOST ? LAUNCHES_HOST : LAUNCHES); i++) {
		struct rate_result got = {0};
		ok = launch_once(r, &l, &got, err);
		if (ok && i >= 0)
			*interval = fmin(*interval, got.elapsed / got.issued);
	}
done:
	r->ops->free(r->be, workspace);
	r->ops->free(r->be, tensor[0]);
	return ok;
}

static json_t *measured(struct rates *r, const char *form, char reason[static 256])
{
	const struct assay_arm *arm = find(form);
	const struct device_info *info = r->ops->info(r->be);
	const bool host = r->ops->kind == ASSAY_HOST;
	struct err err = {{0}};
	double interval;
	const char *why = NULL;
	if (!arm)
		why = "probe.rate has no arm of that name";
	else if (!arm->ops[r->ops->kind])
		why = "probe.rate does not have it on this backend";
	else if (arm->unsupported_on)
		why = arm->unsupported_on(r->ops->kind, info->cc);
	if (!why && !measure(r, arm, &interval, &err))
		why = err.text[0] ? err.text : "the probe failed";
	if (why) {
		snprintf(reason, REASON, "%.60s: %.180s", form, why);
		return json_null();
	}
	return json_pack("{s:s, s:f, s:s, s:i, s:s, s:s}", "form", form, "interval", interval, "unit",
			 host                        ? "ns a 512 multiply-adds"
			 : strncmp(form, "wgmma", 5) ? "cycles a warp-MMA"
						     : "cycles a warpgroup-MMA",
			 "launches", host ? LAUNCHES_HOST : LAUNCHES, "occupancy",
			 host                        ? "1 thread, 6 chains of 16 lanes"
			 : strncmp(form, "wgmma", 5) ? "1 block, 2 warps a sub-partition, 8 chains each"
						     : "1 block, 2 warpgroups, batches of 8",
			 "source", "probe.rate");
}

json_t *rates_measure(struct rates *r, const char *form, char reason[static 256])
{
	json_t *entry = json_object_get(r->known, form);
	if (!entry) {
		reason[0] = 0;
		json_t *issue = measured(r, form, reason);
		entry = json_pack("{s:o, s:s}", "issue", issue, "reason", reason);
		json_object_set_new(r->known, form, entry);
	}
	const char *why = json_string_value(json_object_get(entry, "reason"));
	snprintf(reason, REASON, "%.250s", why ? why : "");
	json_t *issue = json_object_get(entry, "issue");
	return issue ? json_incref(issue) : json_null();
}
