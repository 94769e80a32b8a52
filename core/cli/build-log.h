/* SPDX-License-Identifier: MIT */
/*
 * core/cli/build-log.h: what a build says, shown as it comes, or its last lines once it failed.
 *
 *	struct abx_build_log *log = abx_xcalloc(1, sizeof(*log));
 *	const struct abx_log_sink sink = abx_build_log_sink(log, verbose);
 *
 *	... a build with &sink; when it failed ...
 *	abx_build_log_tail(log);
 */
#ifndef ABX_BUILD_LOG_H
#define ABX_BUILD_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "core/host/cloud.h"

#define ABX_BUILD_LOG_LINES 30
#define ABX_BUILD_LOG_LINE_MAX 1000

struct abx_build_log {
	bool show;
	char lines[ABX_BUILD_LOG_LINES][ABX_BUILD_LOG_LINE_MAX + 1];
	size_t n_lines; /* complete ones, all in all */
	size_t len;	/* of the one that grows */
};

struct abx_log_sink abx_build_log_sink(struct abx_build_log *log, bool show);
/* Nothing when all has been shown. */
void abx_build_log_tail(struct abx_build_log *log);

#endif
