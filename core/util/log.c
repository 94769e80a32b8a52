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
	char *text = NULL;
	int saved = errno;

	/* Redacted whole, then cut: the first half of a secret would not be recognised. */
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	if (text)
		abx_redact(text);
	(void)fprintf(stderr, "agentbox: %s%.2000s\n", prefix, text ? text : "out of memory");
	free(text);
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

void abx_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	emit("", fmt, ap);
	va_end(ap);
}
