/* SPDX-License-Identifier: MIT */
/* agentbox-ctl: our program inside a box. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "core/ctl/ctl.h"
#include "core/ctl/sum.h"

/*
 * Two processes: the one that the transport knows only waits, the other one works.  So whoever
 * kills the first does not keep the second from ending the command and all that it started.
 */
static int run_apart(int argc, char **argv, char *given)
{
	int life[2], done[2], status;
	pid_t pid;
	char c;

	if (pipe2(life, O_CLOEXEC) < 0 || pipe2(done, O_CLOEXEC) < 0)
		return 1;
	/* A copy of this small process, which never returns to what it was. */
	pid = (pid_t)syscall(SYS_clone, (unsigned long)SIGCHLD, 0L, 0L, 0L, 0L);
	if (pid == 0) {
		(void)close(life[1]);
		(void)close(done[0]);
		(void)setsid();
		_exit(ctl_exec(argc, argv, given, life[0], done[1]));
	}
	(void)close(life[0]);
	(void)close(done[1]);
	if (given)
		explicit_bzero(given, strlen(given));
	if (pid < 0)
		return 1;
	for (;;) {
		ssize_t n = read(done[0], &c, 1);

		if (n == 1)
			return 0; /* it stays, and is nobody's any more */
		if (n == 0 || errno != EINTR)
			break;
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* What is taken from there is no command's, and in nobody's /proc. */
static char *take_given(void)
{
	char *text = getenv(ABX_WIRE_GIVEN), *copy = text ? strdup(text) : NULL;

	if (text)
		explicit_bzero(text, strlen(text));
	(void)unsetenv(ABX_WIRE_GIVEN);
	return copy;
}

static int print_sum(void)
{
	struct abx_sum sum;
	int r = abx_sum_file("/proc/self/exe", &sum);

	if (r < 0 || printf("%s\n", sum.text) < 0 || fflush(stdout) != 0)
		return 1;
	return 0;
}

int main(int argc, char **argv)
{
	const struct sigaction dflt = {.sa_handler = SIG_DFL}, ignore = {.sa_handler = SIG_IGN};

	/* Whoever started us may have left anything. */
	for (int signo = 1; signo < 32; signo++)
		(void)sigaction(signo, signo == SIGPIPE ? &ignore : &dflt, NULL);
	/* Requests hold secrets: other processes of the box need not look into this one. */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (argc >= 2 && strcmp(argv[1], "exec") == 0)
		return run_apart(argc - 2, argv + 2, take_given());
	if (argc >= 2 && strcmp(argv[1], "forward") == 0)
		return ctl_forward(argc - 2, argv + 2);
	if (argc == 2 && strcmp(argv[1], "sum") == 0)
		return print_sum();
	(void)fputs("agentbox-ctl: for agentbox to use; see agentbox(1)\n", stderr);
	return 2;
}
