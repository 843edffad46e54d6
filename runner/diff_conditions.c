/* diff_conditions: what must be equal for two cells to be compared: parameters, data and dtypes, and how they were timed. */
#include <stdio.h>
#include <string.h>

#include "diff_parts.h"
#include "record_parts.h"

static uint32_t nonzero(uint64_t h)
{
	uint32_t x = (uint32_t)(h ^ h >> 32);
	return x ? x : 1;
}

/* Order-free: two writers may list parameters in another order. */
uint32_t diff_params_hash(const json_t *record)
{
	uint64_t sum = 0;
	const char *key;
	json_t *value;
	json_object_foreach(json_object_get(record, "params"), key, value)
	{
		double x = json_number_value(value);
		sum += diff_hash(key, strlen(key)) * 31 + diff_hash(&x, sizeof x);
	}
	return sum ? nonzero(sum) : 0;
}

void diff_data_hashes(const json_t *record, uint32_t *data, uint32_t *dtypes)
{
	uint64_t bytes = 0, types = 0;
	const char *key;
	json_t *tensor;
	json_object_foreach(json_object_get(record, "data_audit"), key, tensor)
	{
		uint64_t name = diff_hash(key, strlen(key));
		const char *digest = record_text(tensor, "digest");
		if (digest)
			bytes += name * 31 + diff_hash(digest, strlen(digest));
		size_t i;
		json_t *reading;
		json_array_foreach(json_object_get(tensor, "readings"), i, reading)
		{
			const char *as = record_text(reading, "as");
			if (as)
				types += name * 31 + diff_hash(as, strlen(as));
		}
	}
	*data = bytes ? nonzero(bytes) : 0;
	*dtypes = types ? nonzero(types) : 0;
}

/* How a cell was timed, and its seed: fields in this order, divided by '|'. */
static const char *const condition_names[] = {"seed",   "clock", "scrub", "rotation of inputs", "launches a sample (B)",
					      "threads"};
enum { N_CONDITIONS = sizeof condition_names / sizeof *condition_names };

void diff_conditions_text(const json_t *record, char *out, size_t cap)
{
	const json_t *m = json_object_get(record, "measure");
	char number[4][24] = {"", "", "", ""};
	static const char *const keys[] = {"scrub_bytes", "rotate", "batch", "threads"};
	for (int i = 0; i < 4; i++) {
		const json_t *x = json_object_get(m, keys[i]);
		if (json_is_integer(x))
			snprintf(number[i], sizeof number[i], "%lld", (long long)json_integer_value(x));
		else if (json_is_boolean(x))
			snprintf(number[i], sizeof number[i], "%d", json_is_true(x));
	}
	const char *clock = record_text(m, "clock");
	snprintf(out, cap, "%lld|%s|%s|%s|%s|%s", (long long)json_integer_value(json_object_get(record, "seed")),
		 clock ? clock : "", number[0], number[1], number[2], number[3]);
}

/* The first field in which they differ, from field `first`, as a sentence. A field that one side lacks does not differ. */
bool diff_conditions_differ(const char *base, const char *head, int first, char *why, size_t cap)
{
	for (int i = 0; i < N_CONDITIONS; i++) {
		size_t nb = strcspn(base, "|"), nh = strcspn(head, "|");
		if (i >= first && nb && nh && (nb != nh || strncmp(base, head, nb) != 0)) {
			snprintf(why, cap, "%s differ%s: %.*s, %.*s", condition_names[i],
				 i == N_CONDITIONS - 1 ? "" : "s", (int)nb, base, (int)nh, head);
			return true;
		}
		base += nb + (base[nb] == '|');
		head += nh + (head[nh] == '|');
	}
	return false;
}
