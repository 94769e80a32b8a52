/* SPDX-License-Identifier: MIT */
/* One question on the terminal. */
#include <poll.h>
#include <string.h>
#include <strings.h>

#include "core/cli/cmd.h"
#include "core/cli/signals.h"
#include "core/cli/tty.h"

/* Read one line, or all there is, giving up with the user.  -1: no answer; what is too long is cut
 * to size - 1, which no answer has. */
static int read_answer(const struct abx_cli *cli, bool to_end, char *line, size_t size)
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
		if (read(STDIN_FILENO, &c, 1) != 1 || (c == 0x1b && !to_end)) {
			if (to_end)
				break;
			return -1;
		}
		if (c == '\n' && !to_end)
			break;
		if (len + 1 < size)
			line[len++] = c ? c : ' ';
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
	if (read_answer(cli, /* to_end= */ false, line, sizeof(line)) < 0) {
		(void)fputc('\n', stderr);
		return abx_err_set(err, ABX_ECANCELED, "%s: not answered, nothing was done",
				   question);
	}
	if (strcasecmp(line, "y") == 0 || strcasecmp(line, "yes") == 0)
		return 0;
	return abx_err_set(err, ABX_ECANCELED, "%s: answered no, nothing was done", question);
}

static int no_secret(struct abx_cli *cli, struct abx_err *err)
{
	(void)abx_err_set(err, ABX_EUSAGE, "%s: nobody is there to type it", cli->cmd->name);
	return abx_err_remedy(err, "give it to --token-stdin: ... --token-stdin <FILE");
}

static int read_hidden(struct abx_cli *cli, const char *question, char *text, size_t size)
{
	int r;

	abx_signals_hidden(true);
	r = abx_tty_hide();
	(void)fprintf(stderr, "%s: ", question);
	if (r == 0)
		r = read_answer(cli, /* to_end= */ false, text, size);
	abx_tty_restore();
	abx_signals_hidden(false);
	(void)fputc('\n', stderr);
	return r;
}

int abx_ask_secret(struct abx_cli *cli, bool from_stdin, const char *question, char *text,
		   size_t size, struct abx_err *err)
{
	int r;

	if (!from_stdin && (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)))
		return no_secret(cli, err);
	r = from_stdin ? read_answer(cli, /* to_end= */ true, text, size)
		       : read_hidden(cli, question, text, size);
	if (r < 0)
		return abx_err_set(err, ABX_ECANCELED, "%s: nothing was typed, nothing was done",
				   cli->cmd->name);
	if (strlen(text) + 1 < size)
		return 0;
	explicit_bzero(text, size);
	return abx_err_set(err, ABX_EUSAGE, "%s: the credential is longer than %zu bytes",
			   cli->cmd->name, size - 2);
}
