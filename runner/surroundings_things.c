/* What is watched of a process, thing by thing; the table is at the end. */
#define _GNU_SOURCE /* sched_getaffinity, sigabbrev_np */
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "surroundings_parts.h"

static const struct {
	int which;
	const char *name;
} limits[LIMITS] = {{RLIMIT_NOFILE, "open files"}, {RLIMIT_FSIZE, "file size"}, {RLIMIT_AS, "address space"},
		    {RLIMIT_DATA, "data"},         {RLIMIT_STACK, "stack"},     {RLIMIT_CPU, "CPU time"}};

static void cpus_take(struct surroundings *s)
{
	if (sched_getaffinity(0, sizeof(s->cpus), &s->cpus) != 0)
		CPU_ZERO(&s->cpus);
}

static bool cpus_told(const struct surroundings *s, char *text)
{
	cpu_set_t now;

	if (sched_getaffinity(0, sizeof(now), &now) != 0 || CPU_EQUAL(&now, &s->cpus))
		return false;
	snprintf(text, SURROUNDINGS_TEXT, "the calling thread may run on %d CPU%s, others than before", CPU_COUNT(&now),
		 CPU_COUNT(&now) == 1 ? "" : "s");
	return true;
}

static bool cpus_restore(const struct surroundings *s)
{
	return sched_setaffinity(0, sizeof(s->cpus), &s->cpus) == 0;
}

static void priority_take(struct surroundings *s)
{
	s->nice = getpriority(PRIO_PROCESS, 0);
	s->policy = sched_getscheduler(0);
}

static bool priority_told(const struct surroundings *s, char *text)
{
	const int nice = getpriority(PRIO_PROCESS, 0), policy = sched_getscheduler(0);

	if (nice == s->nice && policy == s->policy)
		return false;
	if (policy != s->policy)
		snprintf(text, SURROUNDINGS_TEXT, "the scheduling policy is %d, was %d", policy, s->policy);
	else
		snprintf(text, SURROUNDINGS_TEXT, "nice is %d, was %d", nice, s->nice);
	return true;
}

static bool priority_restore(const struct surroundings *s)
{
	/* Realtime policies have a priority beside it, which is not kept: they are not put back. */
	if (sched_getscheduler(0) != s->policy &&
	    sched_setscheduler(0, s->policy, &(struct sched_param){.sched_priority = 0}) != 0)
		return false;
	return setpriority(PRIO_PROCESS, 0, s->nice) == 0;
}

static void signals_take(struct surroundings *s)
{
	for (int n = 1; n < SIGNALS; n++)
		sigaction(n, NULL, &s->action[n]);
	pthread_sigmask(SIG_SETMASK, NULL, &s->blocked);
}

static bool same_action(const struct sigaction *a, const struct sigaction *b)
{
	if ((a->sa_flags ^ b->sa_flags) & SA_SIGINFO)
		return false;
	return a->sa_flags & SA_SIGINFO ? a->sa_sigaction == b->sa_sigaction : a->sa_handler == b->sa_handler;
}

static bool signals_told(const struct surroundings *s, char *text)
{
	struct sigaction now;
	sigset_t blocked;
	int changed = 0, first = 0, blocks = 0;

	for (int n = 1; n < SIGNALS; n++)
		if (sigaction(n, NULL, &now) == 0 && !same_action(&now, &s->action[n])) {
			first = first ? first : n;
			changed++;
		}
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	for (int n = 1; n < SIGNALS; n++)
		if (sigismember(&blocked, n) != sigismember(&s->blocked, n)) {
			first = first ? first : n;
			blocks++;
		}
	if (!changed && !blocks)
		return false;
	const char *name = sigabbrev_np(first);
	snprintf(text, SURROUNDINGS_TEXT, "what is done about %d signal%s is otherwise, first SIG%s", changed + blocks,
		 changed + blocks == 1 ? "" : "s", name ? name : "?");
	return true;
}

static bool signals_restore(const struct surroundings *s)
{
	for (int n = 1; n < SIGNALS; n++)
		if (n != SIGKILL && n != SIGSTOP)
			sigaction(n, &s->action[n], NULL);
	return pthread_sigmask(SIG_SETMASK, &s->blocked, NULL) == 0;
}

static void timers_take(struct surroundings *s)
{
	for (int i = 0; i < TIMERS; i++)
		getitimer((__itimer_which_t)i, &s->timer[i]);
}

/* Whether it runs: what is left of it changes by itself. */
static bool runs(const struct itimerval *t)
{
	return t->it_value.tv_sec || t->it_value.tv_usec || t->it_interval.tv_sec || t->it_interval.tv_usec;
}

static bool timers_told(const struct surroundings *s, char *text)
{
	static const char *const names[TIMERS] = {"SIGALRM", "SIGVTALRM", "SIGPROF"};
	struct itimerval now;

	for (int i = 0; i < TIMERS; i++) {
		if (getitimer((__itimer_which_t)i, &now) != 0 || runs(&now) == runs(&s->timer[i]))
			continue;
		snprintf(text, SURROUNDINGS_TEXT,
			 runs(&now) ? "a timer runs that will send %s" : "a timer was stopped, of %s", names[i]);
		return true;
	}
	return false;
}

static bool timers_restore(const struct surroundings *s)
{
	for (int i = 0; i < TIMERS; i++)
		if (setitimer((__itimer_which_t)i, &s->timer[i], NULL) != 0)
			return false;
	return true;
}

static void folder_take(struct surroundings *s)
{
	if (!getcwd(s->folder, sizeof(s->folder)))
		s->folder[0] = '\0';
}

static bool folder_told(const struct surroundings *s, char *text)
{
	char now[PATH_CAP];

	if (!getcwd(now, sizeof(now)))
		now[0] = '\0';
	if (!strcmp(now, s->folder))
		return false;
	snprintf(text, SURROUNDINGS_TEXT, "the working folder is another one");
	return true;
}

static bool folder_restore(const struct surroundings *s)
{
	return s->folder[0] && chdir(s->folder) == 0;
}

static mode_t mask_now(void)
{
	const mode_t now = umask(077);

	umask(now);
	return now;
}

static void mask_take(struct surroundings *s)
{
	s->mask = mask_now();
}

static bool mask_told(const struct surroundings *s, char *text)
{
	const mode_t now = mask_now();

	if (now == s->mask)
		return false;
	snprintf(text, SURROUNDINGS_TEXT, "the umask is %03o, was %03o", (unsigned)now, (unsigned)s->mask);
	return true;
}

static bool mask_restore(const struct surroundings *s)
{
	umask(s->mask);
	return true;
}

static void locale_take(struct surroundings *s)
{
	const char *now = setlocale(LC_ALL, NULL);

	snprintf(s->locale, sizeof(s->locale), "%s", now ? now : "C");
}

static bool locale_told(const struct surroundings *s, char *text)
{
	const char *now = setlocale(LC_ALL, NULL);

	if (!now || !strcmp(now, s->locale))
		return false;
	snprintf(text, SURROUNDINGS_TEXT, "the locale is %.100s, was %.100s", now, s->locale);
	return true;
}

static bool locale_restore(const struct surroundings *s)
{
	return setlocale(LC_ALL, s->locale) != NULL;
}

static void limits_take(struct surroundings *s)
{
	for (int i = 0; i < LIMITS; i++)
		if (getrlimit(limits[i].which, &s->limit[i]) != 0)
			s->limit[i] = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
}

static bool limits_told(const struct surroundings *s, char *text)
{
	struct rlimit now;

	for (int i = 0; i < LIMITS; i++) {
		if (getrlimit(limits[i].which, &now) != 0 ||
		    (now.rlim_cur == s->limit[i].rlim_cur && now.rlim_max == s->limit[i].rlim_max))
			continue;
		snprintf(text, SURROUNDINGS_TEXT, "the limit of %s is another one", limits[i].name);
		return true;
	}
	return false;
}

static bool limits_restore(const struct surroundings *s)
{
	bool ok = true;

	for (int i = 0; i < LIMITS; i++)
		ok = setrlimit(limits[i].which, &s->limit[i]) == 0 && ok;
	return ok;
}

static bool file_open(struct file *f)
{
	struct stat st;

	f->open = f->fd >= 0 && fstat(f->fd, &st) == 0;
	if (f->open) {
		f->dev = st.st_dev;
		f->ino = st.st_ino;
	}
	return f->open;
}

static void files_take(struct surroundings *s)
{
	for (int i = 0; i < FILES; i++)
		file_open(&s->file[i]);
}

/* Whether a descriptor is no longer what it was. */
static bool lost(const struct file *was)
{
	struct file now = {.fd = was->fd};

	return was->open && (!file_open(&now) || now.dev != was->dev || now.ino != was->ino);
}

static bool files_told(const struct surroundings *s, char *text)
{
	for (int i = FILES - 1; i >= 0; i--) {
		if (!lost(&s->file[i]))
			continue;
		if (i == FILES - 1)
			snprintf(text, SURROUNDINGS_TEXT, "the descriptor by which this process answers is closed");
		else
			snprintf(text, SURROUNDINGS_TEXT, "descriptor %d is closed or another file", s->file[i].fd);
		return true;
	}
	return false;
}

static bool files_restore(const struct surroundings *s)
{
	(void)s;
	return false;
}

static void omp_now(struct told_omp *o)
{
	omp_get_schedule(&o->schedule, &o->chunk);
	o->threads = omp_get_max_threads();
	o->dynamic = omp_get_dynamic();
	o->levels = omp_get_max_active_levels();
}

static void omp_take(struct surroundings *s)
{
	omp_now(&s->omp);
}

static bool omp_told(const struct surroundings *s, char *text)
{
	struct told_omp now;

	omp_now(&now);
	if (now.threads != s->omp.threads)
		snprintf(text, SURROUNDINGS_TEXT, "OpenMP was told to use %d thread%s, and %d before", now.threads,
			 now.threads == 1 ? "" : "s", s->omp.threads);
	else if (now.dynamic != s->omp.dynamic || now.levels != s->omp.levels || now.schedule != s->omp.schedule ||
		 now.chunk != s->omp.chunk)
		snprintf(text, SURROUNDINGS_TEXT,
			 "OpenMP was told other things than before (schedule, levels or dynamic)");
	else
		return false;
	return true;
}

static bool omp_restore(const struct surroundings *s)
{
	omp_set_num_threads(s->omp.threads);
	omp_set_dynamic(s->omp.dynamic);
	omp_set_max_active_levels(s->omp.levels);
	omp_set_schedule(s->omp.schedule, s->omp.chunk);
	return true;
}

/* Of the team: each of its threads, where the runtime holds them to CPUs. One that is made anew is put onto the same. */
static void team_take(struct surroundings *s)
{
	cpu_set_t *cpus = s->team_cpus;

	if (!cpus)
		return;
#pragma omp parallel num_threads(s->team)
	if (omp_get_thread_num() < s->team)
		sched_getaffinity(0, sizeof(*cpus), &cpus[omp_get_thread_num()]);
}

static bool team_told(const struct surroundings *s, char *text)
{
	const cpu_set_t *cpus = s->team_cpus;
	int others = 0;

	if (!cpus)
		return false;
#pragma omp parallel num_threads(s->team) reduction(+ : others)
	{
		cpu_set_t now;
		const int n = omp_get_thread_num();
		if (n > 0 && n < s->team && sched_getaffinity(0, sizeof(now), &now) == 0)
			others += !CPU_EQUAL(&now, &cpus[n]);
	}
	if (others)
		snprintf(text, SURROUNDINGS_TEXT, "%d thread%s of the team may run on other CPUs than before", others,
			 others == 1 ? "" : "s");
	return others > 0;
}

static bool team_restore(const struct surroundings *s)
{
	const cpu_set_t *cpus = s->team_cpus;
	int failed = 0;

#pragma omp parallel num_threads(s->team) reduction(+ : failed)
	if (omp_get_thread_num() < s->team)
		failed += sched_setaffinity(0, sizeof(*cpus), &cpus[omp_get_thread_num()]) != 0;
	return failed == 0;
}

bool surroundings_cut_off(const struct surroundings *s)
{
	return lost(&s->file[FILES - 1]);
}

const struct watched surroundings_watched[SURROUNDINGS_THINGS] = {
	{omp_take, omp_told, omp_restore, true}, /* the first: whatever opens a region after it has the team that there was */
	{cpus_take, cpus_told, cpus_restore, true},        {priority_take, priority_told, priority_restore, true},
	{timers_take, timers_told, timers_restore, true},  {files_take, files_told, files_restore, true},
	{team_take, team_told, team_restore, false},       {signals_take, signals_told, signals_restore, false},
	{folder_take, folder_told, folder_restore, false}, {mask_take, mask_told, mask_restore, false},
	{locale_take, locale_told, locale_restore, false}, {limits_take, limits_told, limits_restore, false},
};
