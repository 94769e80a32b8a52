/* SPDX-License-Identifier: MIT */
/* One question on the terminal. */
#include <poll.h>
#include <strings.h>

#include "core/cli/cmd.h"

/* Read one line, giving up with the user.  -1: no answer. */
static int read_answer(const struct abx_cli *cli, char *line, size_t size)
{
	size_t len = 0;

	for (;;) {
		struct pollfd fds[2] = {{STDIN_FILENO, POLLIN, 0},
					{cli->app.host.cancel_fd, POLLIN, 0}};
		char c;

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return -1;
		if (fds[1].revents)
			return -1;
		if (!fds[0].revents)
			continue;
		if (read(STDIN_FILENO, &c, 1) != 1 || c == 0x1b)
			return -1;
		if (c == '\n')
			break;
		if (len + 1 < size)
			line[len++] = c;
	}
	line[len] = '\0';
	return 0;
}

int abx_ask(struct abx_cli *cli, struct abx_err *err, const char *fmt, ...)
{
	char line[16], question[512];
	va_list ap;

	if (cli->yes)
		return 0;
	va_start(ap, fmt);
	(void)vsnprintf(question, sizeof(question), fmt, ap);
	va_end(ap);
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
		(void)abx_err_set(err, ABX_EUSAGE, "%s: nobody is there to answer", question);
		return abx_err_remedy(err, "add -y to agree");
	}
	(void)fprintf(stderr, "%s? [y/N] ", question);
	if (read_answer(cli, line, sizeof(line)) < 0) {
		(void)fputc('\n', stderr);
		return abx_err_set(err, ABX_ECANCELED, "%s: not answered, nothing was done",
				   question);
	}
	if (strcasecmp(line, "y") == 0 || strcasecmp(line, "yes") == 0)
		return 0;
	return abx_err_set(err, ABX_ECANCELED, "%s: answered no, nothing was done", question);
}
