/* SPDX-License-Identifier: MIT */
/* agentbox-cloud-agent: which operation, for which user. */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abxsdk/buf.h"
#include "abxsdk/fs.h"
#include "abxsdk/number.h"
#include "tests/cloud/agent/agent.h"

#define PASSWD_MAX_BYTES ((size_t)1 << 20)

static const struct {
	const char *name;
	int n_args; /* behind USER */
	int (*run)(const struct agent_user *u, char **args);
} operations[] = {
	{"stat", 1, agent_stat}, {"list", 2, agent_list},     {"mkdir", 1, agent_mkdir},
	{"move", 2, agent_move}, {"remove", 1, agent_remove}, {"get", 1, agent_get},
	{"put", 1, agent_put},	 {"watch", 2, agent_watch},
};

void *agent_alloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		_exit(1);
	return p;
}

int agent_fail(const char *kind, const char *fmt, ...)
{
	va_list ap;

	(void)fputs(kind, stdout);
	(void)putchar('\0');
	va_start(ap, fmt);
	(void)vprintf(fmt, ap);
	va_end(ap);
	(void)putchar('\0');
	return 3;
}

static char *read_text(const char *path)
{
	struct abx_buf b = ABX_BUF_INIT(PASSWD_MAX_BYTES);

	if (abx_fs_read(AT_FDCWD, path, &b) < 0 || !b.data) {
		abx_buf_release(&b);
		return agent_alloc(1, 1);
	}
	return abx_buf_steal(&b);
}

bool agent_user_find(const char *name, struct agent_user *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->passwd = read_text("/etc/passwd");
	if (!abx_user_find(ret->passwd, name, &ret->user))
		return false;
	ret->group = read_text("/etc/group");
	abx_user_add_groups(ret->group, &ret->user);
	return true;
}

char *agent_path(const struct agent_user *u, const char *path)
{
	char *full = NULL;

	if (*path == '/')
		return strdup(path);
	if (*path == '~' && path[1] && path[1] != '/')
		return NULL;
	if (*path == '~')
		path += path[1] == '/' ? 2 : 1;
	if (asprintf(&full, *path ? "%s/%s" : "%s%s", u->user.home, path) < 0)
		_exit(1);
	return full;
}

static int kill_it(const char *pid, const char *signo)
{
	uint64_t p, s;

	if (!abx_parse_u64(pid, INT32_MAX, &p) || !abx_parse_u64(signo, 64, &s) || p < 2)
		return agent_fail("invalid_argument", "no such process or signal");
	if (kill((pid_t)p, (int)s) < 0)
		return agent_fail("not_found", "process with pid %s not found", pid);
	return agent_fail("ok", "");
}

static int run(int argc, char **argv)
{
	struct agent_user u;

	if (argc == 2 && strcmp(argv[1], "run") == 0)
		return agent_run();
	if (argc == 4 && strcmp(argv[1], "kill") == 0)
		return kill_it(argv[2], argv[3]);
	if (argc == 4 && strcmp(argv[1], "dial") == 0)
		return agent_dial(argv[2], strcmp(argv[3], "stream") == 0);
	for (size_t i = 0; i < ABX_N_ELEMENTS(operations); i++) {
		if (argc != operations[i].n_args + 3 || strcmp(argv[1], operations[i].name) != 0)
			continue;
		if (!agent_user_find(argv[2], &u))
			return agent_fail("unauthenticated", "invalid username: '%s'", argv[2]);
		return operations[i].run(&u, argv + 3);
	}
	(void)fputs("agentbox-cloud-agent: for emulated clouds only\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	int code;

	/* Whoever reads may go away at any time. */
	(void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	code = run(argc, argv);
	if (fflush(stdout) != 0)
		code = 1;
	/* What one operation allocated ends with it. */
	_exit(code);
}
