/* SPDX-License-Identifier: MIT */
/* Requests to envd beside the operation's own, which know nothing of its call. */
#include <string.h>

#include "abxsdk/clock.h"
#include "providers/e2b/envd.h"

/* Who sends more than that is told of as often, not of each. */
#define TOLD_MAX 1024

struct told {
	const char *method;
	char path[64];
	int32_t status;
	int64_t us;
};

struct e2b_aside {
	struct abx_host host;
	struct abx_http *http;
	int stop_fd;
	int64_t until_ms; /* INT64_MAX: none */
	struct told told[TOLD_MAX];
	size_t n_told;
};

/* The host's functions, for threads that are not the operation's: the call is an aside. */

static struct e2b_aside *of(struct abx_call *call)
{
	return (struct e2b_aside *)(void *)call;
}

static int32_t cancel_fd(struct abx_call *call)
{
	return of(call)->stop_fd;
}

static int64_t time_left_ms(struct abx_call *call)
{
	const int64_t until = of(call)->until_ms;

	return until == INT64_MAX ? INT64_MAX : until - abx_monotonic_ms();
}

static int32_t retry(struct abx_call *call, const struct abx_failure *f, uint32_t attempt)
{
	(void)call;
	(void)f;
	(void)attempt;
	return 0;
}

static void trace(struct abx_call *call, const char *method, const char *path, int32_t status,
		  int64_t us)
{
	struct e2b_aside *a = of(call);
	struct told *t = &a->told[a->n_told < TOLD_MAX ? a->n_told++ : TOLD_MAX - 1];

	t->method = "POST";
	if (strcmp(method, "GET") == 0)
		t->method = "GET";
	(void)snprintf(t->path, sizeof(t->path), "%s", path);
	t->status = status;
	t->us = us;
}

int32_t e2b_aside_open(const struct e2b_envd *envd, struct abx_call *call, int stop_fd,
		       int64_t max_ms, struct e2b_aside **ret)
{
	struct e2b_aside *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return abx_fail_no_memory(call);
	a->host = *abx_plugin_host;
	a->host.cancel_fd = cancel_fd;
	a->host.time_left_ms = time_left_ms;
	a->host.retry = retry;
	a->host.trace = trace;
	a->stop_fd = stop_fd;
	a->until_ms = max_ms ? abx_monotonic_ms() + max_ms : INT64_MAX;
	r = abx_http_open_like(envd->http, &a->host, &a->http);
	if (r < 0) {
		free(a);
		return abx_fail_errno(call, -r, "HTTP");
	}
	*ret = a;
	return ABX_OK;
}

void e2b_aside_close(struct e2b_aside *a, struct abx_call *call)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->n_told; i++)
		abx_plugin_host->trace(call, a->told[i].method, a->told[i].path, a->told[i].status,
				       a->told[i].us);
	abx_http_close(a->http);
	free(a);
}

struct abx_http *e2b_aside_http(const struct e2b_aside *a)
{
	return a->http;
}

struct abx_call *e2b_aside_call(struct e2b_aside *a)
{
	return (struct abx_call *)(void *)a;
}
