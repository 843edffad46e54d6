#include "verdict_samples.h"

#include <string.h>

static const char *name_of(const json_t *arm)
{
	const char *name = json_string_value(json_object_get(arm, "name"));
	return name ? name : "without a name";
}

/* One arm by itself. */
static bool each_good(const json_t *arm, const json_t *samples, const char *where, struct err *err)
{
	size_t r;
	const json_t *x;
	json_array_foreach(samples, r, x)
	{
		if (json_is_null(x) || (json_is_number(x) && json_number_value(x) >= 0))
			continue;
		if (json_is_number(x))
			return err_set(err, "arm %s%s: sample %zu is %.17g ns; a time is not negative", name_of(arm),
				       where, r, json_number_value(x));
		return err_set(err, "arm %s%s: sample %zu is not a number", name_of(arm), where, r);
	}
	return true;
}

/* The timed arms of one list beside each other. `where`: " of confirm", for the message. */
static bool list_good(const json_t *arms, const char *where, struct err *err)
{
	const json_t *arm, *first = NULL, *yardstick = NULL;
	size_t i;
	if (arms && !json_is_null(arms) && !json_is_array(arms))
		return err_set(err, "the arms%s are not a list", where);
	json_array_foreach(arms, i, arm)
	{
		const json_t *samples = json_object_get(arm, "samples_ns");
		if (!samples || json_is_null(samples))
			continue; /* not timed */
		if (!json_is_array(samples))
			return err_set(err, "arm %s%s: its samples are not a list", name_of(arm), where);
		if (!each_good(arm, samples, where, err))
			return false;
		if (!first) {
			first = arm;
			yardstick = samples;
			continue;
		}
		if (json_array_size(samples) != json_array_size(yardstick))
			return err_set(err,
				       "arm %s%s has %zu samples, arm %s has %zu: every round launches each of them",
				       name_of(arm), where, json_array_size(samples), name_of(first),
				       json_array_size(yardstick));
		for (size_t r = 0; r < json_array_size(samples); r++)
			if (json_is_null(json_array_get(samples, r)) != json_is_null(json_array_get(yardstick, r)))
				return err_set(err, "round %zu%s is dropped in one of the arms %s and %s, not in both",
					       r, where, name_of(first), name_of(arm));
	}
	return true;
}

bool verdict_samples_good(const json_t *cell, struct err *err)
{
	const json_t *repeat;
	size_t i;
	if (!list_good(json_object_get(cell, "arms"), "", err) ||
	    !list_good(json_object_get(json_object_get(cell, "confirm"), "arms"), " of confirm", err))
		return false;
	json_array_foreach(json_object_get(cell, "repeats"), i, repeat)
	{
		char where[48];
		snprintf(where, sizeof where, " of repeats[%zu]", i);
		if (!list_good(json_object_get(repeat, "arms"), where, err))
			return false;
	}
	return true;
}
