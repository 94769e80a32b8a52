/* SPDX-License-Identifier: MIT */
/*
 * http-play.h: a server of HTTP on a socket that answers as it is told, and a host to ask it by.
 *
 *	ANSWERS({.text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"},
 *		{.text = "", .hangs = true});
 *	abx_http_do(http, NULL, &req, &reply);
 *
 * One connection after the other is served; the n-th request gets the n-th answer, and the last
 * one for ever.  play_setup() and play_teardown() are a checked fixture.
 */
#ifndef HTTP_PLAY_H
#define HTTP_PLAY_H

#include <pthread.h>
#include <stdatomic.h>

#include "abxsdk/http.h"
#include "tests/unit/unit.h"

struct answer {
	const char *text;
	size_t len;   /* of it; 0 = it is a string */
	size_t piece; /* so many bytes at a time; 0 = all of it */
	bool hangs;   /* and then nothing, until the other side closes */
	bool closes;
	bool echoes; /* what comes is sent back, to its end */
	bool early;  /* without having read the body */
};

struct play_server {
	const struct answer *answers;
	size_t n;
	int listen_fd, stop_fd;
	pthread_t thread;
	atomic_uint accepted, asked;
	char got[1 << 16]; /* of all requests, head and body */
	size_t n_got;
	uint64_t body_bytes;
};
extern struct play_server server;

struct play_host {
	int cancel_fd;
	int64_t deadline_ms;
	unsigned int retries, may_retry;
	char traced[200];
};
extern struct play_host the_host;
extern const struct abx_host host;
extern struct abx_http *http; /* to the server, by that host */

void start_server(const struct answer *answers, size_t n);
#define ANSWERS(...)                                           \
	static const struct answer answers_[] = {__VA_ARGS__}; \
                                                               \
	start_server(answers_, ABX_N_ELEMENTS(answers_))

void play_setup(void);
void play_teardown(void);

#endif
