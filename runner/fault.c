#define _GNU_SOURCE /* REG_ERR */
#include "fault.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "fence.h"
#include "finding.h"

/* A handler is given nothing but the signal. */
static struct fault_note *volatile watched;
static struct sigaction before[2];

static enum fault_access access_of(const void *context)
{
#if defined(__x86_64__)
	/* The error code of a page fault: bit 1 is set for a write. */
	return ((const ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & 2 ? FAULT_WROTE : FAULT_READ;
#else
	(void)context;
	return FAULT_TOUCHED;
#endif
}

/* Says what is known, and lets the signal come again with whatever was to be done about it before. */
static void on_fault(int sig, siginfo_t *info, void *context)
{
	struct fault_note *f = watched;
	struct fence_hit hit;

	if (f && !f->told && info->si_code > 0 && fence_hit(info->si_addr, &hit)) {
		f->sealed = hit.sealed;
		f->access = access_of(context);
		f->offset = hit.offset;
		f->bytes = hit.bytes;
		for (size_t i = 0; i + 1 < sizeof(f->tensor) && hit.name && hit.name[i]; i++)
			f->tensor[i] = hit.name[i];
		f->told = 1;
	}
	sigaction(sig, &before[sig == SIGBUS], NULL);
	/* What the CPU stopped comes again by itself; what was sent does not. */
	if (info->si_code <= 0)
		raise(sig);
}

void fault_watch(struct fault_note *f)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	sigemptyset(&action.sa_mask);
	watched = f;
	sigaction(SIGSEGV, &action, &before[0]);
	sigaction(SIGBUS, &action, &before[1]);
}

/* The name, whatever a worker that lost its way has written there. */
static void name_of(const struct fault_note *f, char name[sizeof(f->tensor) + 1])
{
	memcpy(name, f->tensor, sizeof(f->tensor));
	name[sizeof(f->tensor)] = '\0';
}

bool fault_words(const struct fault_note *f, char *buf, size_t cap)
{
	char name[sizeof(f->tensor) + 1];
	const char *what = f->access == FAULT_WROTE ? "writes" : f->access == FAULT_READ ? "reads" : "reads or writes";

	name_of(f, name);
	if (!f->told || (!name[0] && !f->sealed))
		return false;
	if (f->sealed)
		snprintf(buf, cap, "%s where the harness keeps what it has seen", what);
	else if (f->offset < 0)
		snprintf(buf, cap, "%s far before %s: %lld bytes ahead of it", what, name, -(long long)f->offset);
	else
		snprintf(buf, cap, "%s far behind %s: at byte %lld of %lld", what, name, (long long)f->offset,
			 (long long)f->bytes);
	return true;
}

bool fault_finding(const struct fault_note *f, const char *arm, json_t *findings)
{
	char name[sizeof(f->tensor) + 1], text[256];

	name_of(f, name);
	if (!name[0] || f->sealed || !fault_words(f, text, sizeof(text)))
		return false;
	json_t *finding = finding_add(findings, "memory", arm, "wrong", "%s; that ended the process", text);
	json_object_set_new(finding, "tensor", json_string(name));
	json_object_set_new(finding, "where",
			    json_string(f->access == FAULT_READ ? "over_read"
					: f->offset < 0         ? "guard_before"
								: "guard_after"));
	json_object_set_new(finding, "offset_bytes", json_integer(f->offset));
	json_object_set_new(finding, "bytes", json_null());
	return true;
}
