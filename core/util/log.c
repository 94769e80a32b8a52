/* SPDX-License-Identifier: MIT */
/* What happens, for those who ask. */
#include "core/util/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <string.h>

#include "core/util/redact.h"

static bool verbose_on;
static const char *debug_topics;

/* The warnings that were shown; what does not fit is shown again. */
#define SAID_MAX 64
#define LINE_MAX_BYTES 2000
static struct {
	pthread_mutex_t lock;
	char *text[SAID_MAX];
	size_t n;
} said = {.lock = PTHREAD_MUTEX_INITIALIZER};

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

/* Many boxes of one command lack the same. */
static bool is_said(const char *text)
{
	bool found = false;

	(void)pthread_mutex_lock(&said.lock);
	for (size_t i = 0; i < said.n && !found; i++)
		found = strcmp(said.text[i], text) == 0;
	if (!found && said.n < SAID_MAX && strlen(text) <= LINE_MAX_BYTES &&
	    (said.text[said.n] = strdup(text)))
		said.n++;
	(void)pthread_mutex_unlock(&said.lock);
	return found;
}

static void emit(const char *prefix, bool once, const char *fmt, va_list ap) ABX_PRINTF(3, 0);

static void emit(const char *prefix, bool once, const char *fmt, va_list ap)
{
	char *text = NULL;
	int saved = errno;

	/* Redacted whole, then cut: the first half of a secret would not be recognised. */
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	if (text)
		abx_redact(text);
	if (!once || !text || !is_said(text))
		(void)fprintf(stderr, "agentbox: %s%.*s\n", prefix, LINE_MAX_BYTES,
			      text ? text : "out of memory");
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
	     level == ABX_LOG_WARN, fmt, ap);
	va_end(ap);
}

void abx_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	emit("warning: ", true, fmt, ap);
	va_end(ap);
}

void abx_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	emit("", false, fmt, ap);
	va_end(ap);
}
