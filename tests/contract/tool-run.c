/* SPDX-License-Identifier: MIT */
/* Words of agentbox-contract-tool about commands and bytes. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abxsdk/clock.h"
#include "tests/contract/tool.h"

/* rss FILE COMMAND...: run it, write its greatest resident size in KiB. */
int tool_rss(int argc, char **argv)
{
	struct rusage used;
	int status;
	FILE *file;
	pid_t pid;

	if (argc < 2)
		return 2;
	pid = fork();
	if (pid < 0)
		return tool_fail("fork");
	if (pid == 0) {
		(void)execvp(argv[1], argv + 1);
		_exit(tool_fail(argv[1]));
	}
	while (wait4(pid, &status, 0, &used) < 0)
		if (errno != EINTR)
			return tool_fail("wait");
	file = fopen(argv[0], "we");
	if (!file || fprintf(file, "%ld\n", used.ru_maxrss) < 0 || fclose(file) != 0)
		return tool_fail(argv[0]);
	return tool_exit_code(status);
}

/*
 * sigdfl COMMAND...: run it with every signal as at login.  A shell starts what it puts in the
 * background with SIGINT ignored.
 */
int tool_sigdfl(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = SIG_DFL};
	sigset_t none;

	if (argc < 1)
		return 2;
	for (int sig = 1; sig < 32; sig++)
		(void)sigaction(sig, &sa, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)execvp(argv[0], argv);
	return tool_fail(argv[0]);
}

/* slow: read stdin, for the first second slower than anything writes; print its size. */
int tool_slow(int argc, char **argv)
{
	static char buf[65536];
	const int64_t until = abx_monotonic_ms() + 1000;
	uint64_t total = 0;
	ssize_t n;

	(void)argc;
	(void)argv;
	while ((n = read(STDIN_FILENO, buf, sizeof(buf))) > 0) {
		total += (uint64_t)n;
		if (abx_monotonic_ms() < until)
			(void)poll(NULL, 0, 10);
	}
	if (n < 0)
		return tool_fail("read");
	(void)printf("%llu\n", (unsigned long long)total);
	return 0;
}

/* count FILE: count in memory, and say in FILE how far, until killed. */
int tool_count(int argc, char **argv)
{
	uint64_t n = 0;
	int fd;

	if (argc != 1)
		return 2;
	fd = open(argv[0], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return tool_fail(argv[0]);
	for (;;) {
		char line[32];
		const int len = snprintf(line, sizeof(line), "%020llu\n", (unsigned long long)++n);

		if (pwrite(fd, line, (size_t)len, 0) != len)
			return tool_fail(argv[0]);
		(void)poll(NULL, 0, 10);
	}
}

/* bytes N: so many bytes, the same each time. */
int tool_bytes(int argc, char **argv)
{
	static unsigned char buf[65536];
	uint64_t total, at = 0;

	if (argc != 1 || tool_parse_size(argv[0], &total))
		return 2;
	while (at < total) {
		const size_t n = total - at < sizeof(buf) ? (size_t)(total - at) : sizeof(buf);

		tool_pattern(buf, n, at);
		if (tool_write(STDOUT_FILENO, buf, n) < 0)
			return tool_fail("write");
		at += n;
	}
	return 0;
}

/* sum: size and sum of stdin, as a server answers to POST /sum. */
int tool_sum_input(int argc, char **argv)
{
	static unsigned char buf[65536];
	uint64_t total = 0, sum = 0;
	ssize_t n;

	(void)argc;
	(void)argv;
	while ((n = read(STDIN_FILENO, buf, sizeof(buf))) > 0) {
		sum = tool_sum(sum, buf, (size_t)n);
		total += (uint64_t)n;
	}
	if (n < 0)
		return tool_fail("read");
	(void)printf("%llu %016llx\n", (unsigned long long)total, (unsigned long long)sum);
	return 0;
}
