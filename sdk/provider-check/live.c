/* SPDX-License-Identifier: MIT */
/* agentbox-provider-check --live: the contract suites, run through the program as users see it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abxsdk/json.h"
#include "abxsdk/spawn.h"
#include "core/util/clock.h"
#include "core/util/mem.h"
#include "sdk/provider-check/live.h"

/* In the order in which a failure explains those that follow. */
static const char *const all_suites[] = {"exec", "tty",	     "transfer", "seed", "lifecycle",
					 "url",	 "snapshot", "egress",	 "kill"};
#define N_SUITES (sizeof(all_suites) / sizeof(all_suites[0]))

static const char live_help[] =
	"usage: agentbox-provider-check --live NAME|FILE.so [--small] [--json] [SUITE...]\n"
	"\n"
	"Runs the contract suites against an installed provider, or a plugin file, through\n"
	"agentbox itself, and prints a table; exits with 1 when anything failed.\n"
	"Suites: exec tty transfer seed lifecycle url snapshot egress kill; all without any.\n"
	"  --small  less data and fewer processes\n"
	"  --json   one JSON document instead of the table\n"
	"Environment: AGENTBOX_CONTRACT_CREATE (more arguments of create),\n"
	"AGENTBOX_CONTRACT_HOME (use this AGENTBOX_HOME instead of an empty one),\n"
	"AGENTBOX_CONTRACT_PEER (ADDR:PORT of a server outside of this machine, for egress).\n";

struct live {
	const char *provider;
	const char *dir;
	bool json;
	bool wanted[N_SUITES];
	cJSON *rows;
	unsigned int passed, failed;
	bool interrupted;
};

struct suite {
	const char *name;
	unsigned int passed, failed, skipped;
	long planned; /* -1: no plan was seen */
	bool offered;
	bool noting; /* the last point failed */
	double seconds;
	cJSON *failures;
};

static const char *or_built_in(const char *name, const char *built_in)
{
	const char *value = secure_getenv(name);

	return value && *value ? value : built_in;
}

static void add_failure(struct suite *s, const char *point)
{
	cJSON *o = cJSON_CreateObject();

	(void)cJSON_AddStringToObject(o, "point", point);
	(void)cJSON_AddArrayToObject(o, "diagnostics");
	(void)cJSON_AddItemToArray(s->failures, o);
	s->failed++;
	s->noting = true;
}

static void note(struct suite *s, const char *line)
{
	const cJSON *last;
	cJSON *notes;

	if (!s->noting)
		return;
	last = cJSON_GetArrayItem(s->failures, cJSON_GetArraySize(s->failures) - 1);
	notes = cJSON_GetObjectItem(last, "diagnostics");
	/* A suite that floods says nothing more. */
	if (cJSON_GetArraySize(notes) < 40)
		(void)cJSON_AddItemToArray(notes, cJSON_CreateString(line));
}

static const char *behind_number(const char *text)
{
	text += strspn(text, " 0123456789");
	return strncmp(text, "- ", 2) == 0 ? text + 2 : text;
}

static void read_line(struct suite *s, char *line)
{
	line[strcspn(line, "\n")] = '\0';
	if (strncmp(line, "ok ", 3) == 0) {
		if (strstr(line, " # SKIP"))
			s->skipped++;
		else
			s->passed++;
		s->noting = false;
	} else if (strncmp(line, "not ok ", 7) == 0) {
		add_failure(s, behind_number(line + 7));
	} else if (strncmp(line, "1..", 3) == 0) {
		s->planned = strtol(line + 3, NULL, 10);
		s->offered = s->planned > 0;
		s->noting = false;
	} else {
		note(s, strncmp(line, "# ", 2) == 0 ? line + 2 : line);
	}
}

static void read_suite(struct suite *s, int fd)
{
	FILE *in = fdopen(fd, "r");
	char line[4096];

	while (in && fgets(line, sizeof(line), in))
		read_line(s, line);
	if (in)
		(void)fclose(in);
	else
		(void)close(fd);
}

static void judge_end(struct suite *s, int status)
{
	const unsigned int seen = s->passed + s->failed + s->skipped;
	char text[96];

	if (s->planned >= 0 && (unsigned long)s->planned == seen)
		return;
	s->offered = true;
	(void)snprintf(text, sizeof(text), "the suite ended early (%s %d)",
		       WIFSIGNALED(status) ? "signal" : "exit code",
		       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	add_failure(s, text);
}

static int run_suite(struct live *l, struct suite *s)
{
	abx_autofree char *file = abx_xasprintf("%s/%s.sh", l->dir, s->name);
	const char *const argv[] = {"/bin/sh", file, l->provider, NULL};
	const int64_t begun = abx_now_ms();
	struct abx_spawn spawn = {.argv = argv, .fd_in = -1};
	int fds[2], status = 0, r;
	pid_t pid;

	if (access(file, R_OK) < 0 || pipe2(fds, O_CLOEXEC) < 0) {
		(void)fprintf(stderr, "agentbox-provider-check: %s: %s\n", file, strerror(errno));
		return -1;
	}
	spawn.fd_out = spawn.fd_err = fds[1];
	r = abx_spawn_start(&spawn, &pid);
	(void)close(fds[1]);
	if (r == 0) {
		read_suite(s, fds[0]);
		r = abx_spawn_wait(pid, &status);
	} else {
		(void)close(fds[0]);
	}
	if (r < 0) {
		(void)fprintf(stderr, "agentbox-provider-check: %s: %s\n", file, strerror(-r));
		return -1;
	}
	judge_end(s, status);
	l->interrupted = (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) ||
			 (WIFEXITED(status) && WEXITSTATUS(status) == 130);
	s->seconds = (double)(abx_now_ms() - begun) / 1000;
	return 0;
}

static void print_row(const struct suite *s)
{
	if (s->offered)
		(void)printf("%-10s %7u %7u %8u %8.1f\n", s->name, s->passed, s->failed, s->skipped,
			     s->seconds);
	else
		(void)printf("%-10s %7s %7s %8s %8s\n", s->name, "-", "-", "-", "-");
	(void)fflush(stdout);
}

static void keep_row(struct live *l, const struct suite *s)
{
	cJSON *row = cJSON_CreateObject();

	(void)cJSON_AddStringToObject(row, "name", s->name);
	(void)cJSON_AddBoolToObject(row, "offered", s->offered);
	(void)cJSON_AddNumberToObject(row, "passed", s->passed);
	(void)cJSON_AddNumberToObject(row, "failed", s->failed);
	(void)cJSON_AddNumberToObject(row, "skipped", s->skipped);
	(void)cJSON_AddNumberToObject(row, "seconds", s->seconds);
	(void)cJSON_AddItemToObject(row, "failures", s->failures);
	(void)cJSON_AddItemToArray(l->rows, row);
	l->passed += s->passed;
	l->failed += s->failed;
}

static void print_failures(const struct live *l)
{
	const cJSON *row, *failure, *line;

	cJSON_ArrayForEach(row, l->rows) {
		const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(row, "name"));

		cJSON_ArrayForEach(failure, cJSON_GetObjectItem(row, "failures")) {
			(void)printf("\n%s: %s\n", name,
				     cJSON_GetStringValue(cJSON_GetObjectItem(failure, "point")));
			cJSON_ArrayForEach(line, cJSON_GetObjectItem(failure, "diagnostics"))
				(void)printf("    %s\n", cJSON_GetStringValue(line));
		}
	}
}

static int print_json(const struct live *l)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(16 << 20);
	cJSON *doc = cJSON_CreateObject();
	int r;

	(void)cJSON_AddStringToObject(doc, "provider", l->provider);
	(void)cJSON_AddNumberToObject(doc, "passed", l->passed);
	(void)cJSON_AddNumberToObject(doc, "failed", l->failed);
	(void)cJSON_AddItemReferenceToObject(doc, "suites", l->rows);
	r = abx_json_print(doc, &text);
	cJSON_Delete(doc);
	(void)fputs(abx_buf_str(&text), stdout);
	return r;
}

static int run_suites(struct live *l)
{
	if (!l->json)
		(void)printf("%-10s %7s %7s %8s %8s\n", "suite", "passed", "failed", "skipped",
			     "seconds");
	for (size_t i = 0; i < N_SUITES && !l->interrupted; i++) {
		struct suite s = {.name = all_suites[i], .planned = -1, .offered = true};

		if (!l->wanted[i])
			continue;
		s.failures = cJSON_CreateArray();
		if (!s.failures || run_suite(l, &s) < 0) {
			cJSON_Delete(s.failures);
			return 1;
		}
		if (!l->json)
			print_row(&s);
		keep_row(l, &s);
	}
	if (!l->json)
		print_failures(l);
	else if (print_json(l) < 0)
		return 1;
	if (fflush(stdout) != 0)
		return 1;
	return l->interrupted ? 130 : l->failed ? 1 : 0;
}

/* What stands beside this program comes before what is on PATH. */
static void put_first_on_path(void)
{
	abx_autofree char *joined = NULL;
	const char *path = secure_getenv("PATH");
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n <= 0)
		return;
	self[n] = '\0';
	slash = strrchr(self, '/');
	(void)snprintf(slash, sizeof(self) - (size_t)(slash - self), "/agentbox");
	if (access(self, X_OK) < 0)
		return;
	*slash = '\0';
	joined = abx_xasprintf("%s:%s", self, path ? path : "/usr/bin:/bin");
	(void)setenv("PATH", joined, 1);
}

/* A plugin file is found by its name in its folder, as it will be once it is installed. */
static char *provider_of_file(const char *file)
{
	abx_autofree char *path = realpath(file, NULL), *dirs = NULL;
	const char *before = secure_getenv("AGENTBOX_PROVIDER_PATH");
	char *name, *dot;

	name = path ? strrchr(path, '/') : NULL;
	dot = name ? strstr(name, ".so") : NULL;
	if (!dot || strncmp(name, "/agentbox-", 10) != 0 || dot[3]) {
		(void)fprintf(stderr, "agentbox-provider-check: %s: %s\n", file,
			      path ? "not called agentbox-NAME.so" : strerror(errno));
		return NULL;
	}
	*name = '\0';
	dirs = abx_xasprintf("%s%s%s", path, before ? ":" : "", before ? before : "");
	(void)setenv("AGENTBOX_PROVIDER_PATH", dirs, 1);
	return abx_xstrndup(name + 10, (size_t)(dot - name - 10));
}

static int parse(struct live *l, int argc, char **argv)
{
	bool any = false;

	for (int i = 0; i < argc; i++) {
		size_t k;

		if (strcmp(argv[i], "--small") == 0) {
			(void)setenv("AGENTBOX_CONTRACT_SMALL", "1", 1);
			continue;
		}
		if (strcmp(argv[i], "--json") == 0) {
			l->json = true;
			continue;
		}
		if (!l->provider && argv[i][0] != '-') {
			l->provider = argv[i];
			continue;
		}
		for (k = 0; k < N_SUITES && strcmp(argv[i], all_suites[k]) != 0; k++)
			;
		if (k == N_SUITES)
			return -1;
		l->wanted[k] = any = true;
	}
	for (size_t k = 0; k < N_SUITES; k++)
		l->wanted[k] |= !any;
	return l->provider ? 0 : -1;
}

int check_live(int argc, char **argv)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct live l = {.rows = cJSON_CreateArray()};
	abx_autofree char *file_name = NULL;
	int r;

	if (!l.rows || parse(&l, argc, argv) < 0) {
		cJSON_Delete(l.rows);
		(void)fputs(live_help, stderr);
		return 2;
	}
	if (strchr(l.provider, '/')) {
		l.provider = file_name = provider_of_file(l.provider);
		if (!file_name) {
			cJSON_Delete(l.rows);
			return 1;
		}
	}
	l.dir = or_built_in("AGENTBOX_CONTRACT_DIR", ABX_CONTRACTDIR);
	(void)setenv("AGENTBOX_CONTRACT_TOOL", ABX_LIBEXECDIR "/agentbox-contract-tool", 0);
	put_first_on_path();
	/* The suite gets it as well and clears away; what it said is still to be shown. */
	(void)sigaction(SIGINT, &ignore, NULL);
	r = run_suites(&l);
	cJSON_Delete(l.rows);
	return r;
}
