/* SPDX-License-Identifier: MIT */
/* What happens, for those who ask. */
#include "core/util/log.h"

#include <stdarg.h>
#include <string.h>

#include "core/util/redact.h"

static bool verbose_on;
static const char *debug_topics;

void abx_log_init(bool verbose)
{
	verbose_on = verbose;
	debug_topics = secure_getenv("AGENTBOX_DEBUG");
}

static bool topic_listed(const char *topic)
{
	size_t len = strlen(topic);
	const char *at = debug_topics;

	while (at && *at) {
		size_t n = strcspn(at, ",");

		if ((n == len && strncmp(at, topic, n) == 0) ||
		    (n == 3 && strncmp(at, "all", 3) == 0))
			return true;
		at += n;
		at += *at == ',';
	}
	return false;
}

bool abx_log_enabled(int level, const char *topic)
{
	if (level <= ABX_LOG_WARN)
		return true;
	if (level == ABX_LOG_INFO && verbose_on)
		return true;
	return topic_listed(topic);
}

static void emit(const char *prefix, const char *fmt, va_list ap) ABX_PRINTF(2, 0);

static void emit(const char *prefix, const char *fmt, va_list ap)
{
	char text[2048];
	int saved = errno;

	(void)vsnprintf(text, sizeof(text), fmt, ap);
	abx_redact(text);
	(void)fprintf(stderr, "agentbox: %s%s\n", prefix, text);
	errno = saved;
}

void abx_log(int level, const char *topic, const char *fmt, ...)
{
	va_list ap;

	if (!abx_log_enabled(level, topic))
		return;
	va_start(ap, fmt);
	emit(level == ABX_LOG_ERROR  ? "error: "
	     : level == ABX_LOG_WARN ? "warning: "
				     : "",
	     fmt, ap);
	va_end(ap);
}

void abx_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	emit("warning: ", fmt, ap);
	va_end(ap);
}
