/* SPDX-License-Identifier: MIT */
/*
 * core/util/log.h: what happens, for those who ask.
 *
 * Silent by default.  `-v` shows info lines; AGENTBOX_DEBUG=topic[,topic...] (or `all`) shows
 * a topic's debug lines.  Warnings are always shown, each text once a process.  Everything is
 * redacted, goes to stderr as one line, and leaves errno alone.  Thread-safe.
 */
#ifndef ABX_LOG_H
#define ABX_LOG_H

#include <stdbool.h>

#include "abxsdk/base.h"
#include "agentbox/cloud_backend.h"

void abx_log_init(bool verbose);
bool abx_log_enabled(int level, const char *topic);
void abx_log(int level, const char *topic, const char *fmt, ...) ABX_PRINTF(3, 4);
/* A warning about something the user should know: "agentbox: warning: ...". */
void abx_warn(const char *fmt, ...) ABX_PRINTF(1, 2);
/* Something was done that nobody asked for by name: "agentbox: ...". */
void abx_note(const char *fmt, ...) ABX_PRINTF(1, 2);

#endif
