#include "tau_store.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "infile.h"
#include "stats.h"

enum { FORMAT = 1, PATH_CAP = 4096 };

bool tau_store_path(const char *given, char *out, size_t cap, struct err *err)
{
	const char *named = given ? given : getenv("ASSAY_TAU_STORE"), *state = getenv("XDG_STATE_HOME"),
		   *home = getenv("HOME");
	int n;
	if (named && *named)
		n = snprintf(out, cap, "%s", named);
	else if (state && *state == '/') /* a relative one is to be ignored, by its own standard */
		n = snprintf(out, cap, "%s/assay/tau.json", state);
	else if (home && *home)
		n = snprintf(out, cap, "%s/.local/state/assay/tau.json", home);
	else
		return err_set(err, "no folder for the tau store: set HOME, XDG_STATE_HOME or ASSAY_TAU_STORE");
	return (n > 0 && (size_t)n < cap) ||
	       err_set(err, "the path of the tau store is longer than %zu bytes", cap - 1);
}

/* The file as an object; an empty one where there is no file. NULL with *err. */
static json_t *load(const char *path, struct err *err)
{
	json_error_t why;
	if (access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR))
		return json_pack("{s:i, s:{}}", "format", FORMAT, "devices");
	FILE *f = infile_stream(path, INFILE_PLAIN, err);
	if (!f) {
		err_prefix(err, "%s", path);
		return NULL;
	}
	json_t *j = json_loadf(f, JSON_REJECT_DUPLICATES, &why);
	fclose(f);
	if (!j) {
		err_set(err, "%s: %s; remove the file to start anew", path, why.text);
		return NULL;
	}
	if (!json_is_object(j) || json_integer_value(json_object_get(j, "format")) != FORMAT ||
	    !json_is_object(json_object_get(j, "devices"))) {
		err_set(err, "%s is no tau store of format %d; name another with --tau-store, or remove it", path,
			FORMAT);
		json_decref(j);
		return NULL;
	}
	return j;
}

/* Numbers of a list that are finite; others end it. */
static int numbers(const json_t *list, double *out, int cap)
{
	int n = 0;
	for (size_t i = 0; n < cap && i < json_array_size(list); i++) {
		const json_t *x = json_array_get(list, i);
		if (!json_is_number(x) || !isfinite(json_number_value(x)))
			break;
		out[n++] = json_number_value(x);
	}
	return n;
}

static void known_of(const json_t *device, struct tau_known *out)
{
	double delta[TAU_STORE_KEPT], se[TAU_STORE_KEPT];
	int n = numbers(json_object_get(device, "delta"), delta, TAU_STORE_KEPT),
	    m = numbers(json_object_get(device, "se"), se, TAU_STORE_KEPT);
	n = m < n ? m : n;
	*out = (struct tau_known){.n = n};
	if (n > 0)
		out->tau = stats_tau(delta, se, n);
	out->known = n >= TAU_STORE_LEAST && isfinite(out->tau) && out->tau >= 0;
}

bool tau_store_find(const char *path, const char *uuid, struct tau_known *out, struct err *err)
{
	*out = (struct tau_known){.n = 0};
	json_t *j = load(path, err);
	if (!j)
		return false;
	known_of(json_object_get(json_object_get(j, "devices"), uuid), out);
	json_decref(j);
	return true;
}

/* Makes the folders of a path. What cannot be made is told by the open that follows. */
static void make_folders(const char *path)
{
	char buf[PATH_CAP];
	if (snprintf(buf, sizeof buf, "%s", path) >= (int)sizeof buf)
		return;
	for (char *p = strchr(buf + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		(void)mkdir(buf, 0777);
		*p = '/';
	}
}

/* The newest last; what is beyond the cap goes. */
static void append(json_t *device, const char *key, const double *x, int n)
{
	json_t *list = json_object_get(device, key);
	if (!json_is_array(list)) {
		list = json_array();
		json_object_set_new(device, key, list);
	}
	for (int i = 0; i < n; i++)
		json_array_append_new(list, json_real(x[i]));
	while (json_array_size(list) > TAU_STORE_KEPT)
		json_array_remove(list, 0);
}

static bool replace(const char *path, const json_t *j, struct err *err)
{
	char tmp[PATH_CAP];
	if (snprintf(tmp, sizeof tmp, "%s.new", path) >= (int)sizeof tmp)
		return err_set(err, "the path of the tau store is too long");
	char *text = json_dumps(j, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	if (!text)
		return err_set(err, "out of memory");
	FILE *f = fopen(tmp, "w");
	bool ok = f && fputs(text, f) >= 0 && fputc('\n', f) != EOF && fflush(f) == 0 && fsync(fileno(f)) == 0;
	int why = errno;
	if (f && fclose(f) != 0 && ok) {
		ok = false;
		why = errno;
	}
	if (ok && rename(tmp, path) != 0) {
		ok = false;
		why = errno;
	}
	if (!ok) {
		err_set(err, "cannot write %s: %s", path, strerror(why));
		if (f)
			(void)unlink(tmp);
	}
	free(text);
	return ok;
}

bool tau_store_add(const char *path, const char *uuid, const char *name, const double *delta, const double *se, int n,
		   struct tau_known *out, struct err *err)
{
	char lock_path[PATH_CAP];
	bool ok = false;
	double d[TAU_STORE_KEPT], s[TAU_STORE_KEPT];
	int k = 0;
	/* A pair without an error would be kept and never used. */
	for (int i = 0; i < n && k < TAU_STORE_KEPT; i++)
		if (isfinite(delta[i]) && isfinite(se[i])) {
			d[k] = delta[i];
			s[k++] = se[i];
		}
	if (snprintf(lock_path, sizeof lock_path, "%s.lock", path) >= (int)sizeof lock_path)
		return err_set(err, "the path of the tau store is too long");
	make_folders(path);
	int fd = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0 || flock(fd, LOCK_EX) != 0) {
		err_set(err, "cannot lock %s: %s", lock_path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return false;
	}
	json_t *j = load(path, err);
	if (j) {
		json_t *devices = json_object_get(j, "devices"), *device = json_object_get(devices, uuid);
		if (!json_is_object(device)) {
			device = json_object();
			json_object_set_new(devices, uuid, device);
		}
		json_t *text = json_string(name ? name : "");
		json_object_set_new(device, "device", text ? text : json_null());
		append(device, "delta", d, k);
		append(device, "se", s, k);
		struct tau_known now;
		known_of(device, &now);
		json_object_set_new(device, "tau", json_real(now.tau)); /* for people; it is computed anew */
		if (out)
			*out = now;
		ok = replace(path, j, err);
		json_decref(j);
	}
	close(fd); /* and the lock with it */
	return ok;
}
