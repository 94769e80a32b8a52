/* SPDX-License-Identifier: MIT */
/*
 * abxsdk/http-private.h: what the files of the HTTP client share.
 *
 * A handle is a curl handle with the multi handle that drives it and keeps its connection;
 * whoever took one from the pool owns it until it is put back or freed.
 */
#ifndef ABXSDK_HTTP_PRIVATE_H
#define ABXSDK_HTTP_PRIVATE_H

#include <curl/curl.h>
#include <pthread.h>

#include "abxsdk/http.h"

#define ABX_HTTP_IDLE_MAX 8

struct abx_http_handle {
	struct abx_http_handle *next;
	CURL *easy;
	CURLM *multi;
	char why[CURL_ERROR_SIZE];
};

struct abx_http {
	const struct abx_host *host;
	char *base_url, *unix_path, *user_agent, *ca_file, *cert_file, *key_file, *proxy, *no_proxy;
	char *id_header;
	char *authority; /* what the Host header says */
	pthread_mutex_t lock;
	struct abx_http_handle *idle;
	unsigned int n_idle;
	bool plain;
	bool here; /* nothing of it leaves this machine */
};

/* NULL: out of memory.  All options of the session are set, none of a request.  A fresh one is
 * not from the pool. */
struct abx_http_handle *abx_http_handle_take(struct abx_http *h, bool fresh);
void abx_http_handle_put(struct abx_http *h, struct abx_http_handle *handle);
void abx_http_handle_free(struct abx_http_handle *handle);

/* What a transfer waits for beside its connection. */
struct abx_http_wait {
	struct abx_http *h;
	struct abx_call *call;
	int fd;		   /* readable: go on; -1 */
	bool *paused;	   /* it waits for fd now; may be NULL */
	int stop_fd;	   /* readable: it is given up; -1 */
	int64_t quiet_ms;  /* 0 = for ever */
	int64_t *moved_ms; /* when something moved last; NULL without quiet_ms */
	CURLcode result;   /* when it ended by itself */
};
/* Drive it to its end: ABX_OK, ABX_ECANCELED, ABX_ETIMEDOUT, ABX_ENOMEM. */
int32_t abx_http_drive(struct abx_http_handle *handle, struct abx_http_wait *w);
/* Fill text, os_errno, sent; returns the code. */
int32_t abx_http_why(const struct abx_http *h, const struct abx_http_handle *handle, CURLcode c,
		     struct abx_http_reply *reply);

/* One header line, without its end. */
void abx_http_header(const struct abx_http *h, const struct abx_http_request *req, const char *line,
		     size_t len, struct abx_http_reply *reply);

void abx_http_trace(const struct abx_http *h, struct abx_call *call,
		    const struct abx_http_request *req, int32_t status, int64_t begun_ms);

#endif
