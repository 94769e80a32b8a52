/* SPDX-License-Identifier: MIT */
/* What a build says. */
#include "core/cli/build-log.h"

#include <stdio.h>

#include "core/util/redact.h"

static char *growing(struct abx_build_log *log)
{
	return log->lines[log->n_lines % ABX_BUILD_LOG_LINES];
}

/* It comes from a build, so it may hold anything. */
static void print_line(char *line)
{
	for (char *at = line; *at; at++)
		if (((unsigned char)*at < ' ' && *at != '\t') || *at == 0x7f)
			*at = '?';
	abx_redact(line);
	(void)fprintf(stderr, "%s\n", line);
}

static void end_line(struct abx_build_log *log)
{
	growing(log)[log->len] = '\0';
	if (log->show)
		print_line(growing(log));
	log->n_lines++;
	log->len = 0;
}

static int on_output(void *ctx, int stream ABX_UNUSED, const void *data, size_t len)
{
	struct abx_build_log *log = ctx;
	const char *bytes = data;

	for (size_t i = 0; i < len; i++) {
		if (bytes[i] == '\n')
			end_line(log);
		else if (log->len < ABX_BUILD_LOG_LINE_MAX && bytes[i] != '\r' && bytes[i])
			growing(log)[log->len++] = bytes[i];
	}
	return 0;
}

void abx_build_log_tail(struct abx_build_log *log)
{
	size_t first;

	if (log->len)
		end_line(log);
	first = log->n_lines > ABX_BUILD_LOG_LINES ? log->n_lines - ABX_BUILD_LOG_LINES : 0;
	for (size_t i = first; !log->show && i < log->n_lines; i++)
		print_line(log->lines[i % ABX_BUILD_LOG_LINES]);
}

struct abx_log_sink abx_build_log_sink(struct abx_build_log *log, bool show)
{
	log->show = show;
	return (struct abx_log_sink){on_output, log};
}
