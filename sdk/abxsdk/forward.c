/* SPDX-License-Identifier: MIT */
/* Connections that are passed on into a box. */
#include "abxsdk/forward.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abxsdk/loop.h"

#define LINKS_MAX 1024
#define BUFFER_BYTES 32768

struct port {
	struct abx_loop_source listener;
	struct port *next;
	uint16_t box, outside;
};

/* What came from one side and has not gone to the other yet. */
struct half {
	char *data;
	size_t at, len;
	bool ended, passed; /* the side has said its last; the other one knows */
};

struct link {
	struct abx_loop_source outside, box;
	struct half in, out; /* into the box, out of it */
	uint16_t port;
	int tries;
	bool connected;
};

static struct port *ports;
static size_t n_links;
static uint32_t box_address; /* besides loopback; 0: there is none */

static void drop(struct link *l, bool reset)
{
	const struct linger hard = {.l_onoff = 1, .l_linger = 0};

	/* What failed on one side fails on the other, and does not look like an end. */
	if (reset) {
		(void)setsockopt(l->outside.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
		if (l->box.fd >= 0)
			(void)setsockopt(l->box.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	}
	abx_loop_unwatch(&l->outside);
	abx_loop_unwatch(&l->box);
	free(l->in.data);
	free(l->out.data);
	free(l);
	n_links--;
}

/* False: the connection is broken. */
static bool fill(struct half *h, int from)
{
	ssize_t n;

	if (h->ended || h->len == BUFFER_BYTES)
		return true;
	if (!h->data)
		h->data = malloc(BUFFER_BYTES);
	if (!h->data)
		return false;
	n = recv(from, h->data + h->len, BUFFER_BYTES - h->len, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0)
		h->ended = true;
	h->len += (size_t)n;
	return true;
}

static bool drain(struct half *h, int to)
{
	while (h->at < h->len) {
		ssize_t n = send(to, h->data + h->at, h->len - h->at, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		h->at += (size_t)n;
	}
	h->at = h->len = 0;
	if (h->ended && !h->passed) {
		h->passed = true;
		/* Fails when the other side is gone already, which is as good. */
		(void)shutdown(to, SHUT_WR);
	}
	return true;
}

static uint32_t interest(const struct half *from, const struct half *to)
{
	uint32_t in = !from->ended && from->len < BUFFER_BYTES ? (uint32_t)EPOLLIN : 0;

	return in | (to->at < to->len ? (uint32_t)EPOLLOUT : 0);
}

static void pump(struct link *l)
{
	if (!fill(&l->in, l->outside.fd) || !drain(&l->in, l->box.fd) ||
	    !fill(&l->out, l->box.fd) || !drain(&l->out, l->outside.fd)) {
		drop(l, true);
		return;
	}
	if (l->in.passed && l->out.passed) {
		drop(l, false);
		return;
	}
	abx_loop_rewatch(&l->outside, interest(&l->in, &l->out));
	abx_loop_rewatch(&l->box, interest(&l->out, &l->in));
}

static void connect_next(struct link *l);

static void on_box(struct abx_loop_source *s, uint32_t events)
{
	struct link *l = ABX_LOOP_OWNER(s, struct link, box);
	int error = 0;
	socklen_t len = sizeof(error);

	(void)events;
	if (l->connected) {
		pump(l);
		return;
	}
	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error) {
		abx_loop_unwatch(s);
		connect_next(l);
		return;
	}
	l->connected = true;
	pump(l);
}

static void on_outside(struct abx_loop_source *s, uint32_t events)
{
	(void)events;
	pump(ABX_LOOP_OWNER(s, struct link, outside));
}

/* A server may listen on one of three: which one is no business of whoever asks for it. */
static int connect_try(struct link *l)
{
	const int one = 1;
	struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_port = htons(l->port)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
				   .sin6_port = htons(l->port),
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	bool six = l->tries == 1;
	int fd = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	in4.sin_addr.s_addr = htonl(l->tries == 0 ? INADDR_LOOPBACK : box_address);
	if (fd < 0)
		return -1;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (six)
		r = connect(fd, (const struct sockaddr *)&in6, sizeof(in6));
	else
		r = connect(fd, (const struct sockaddr *)&in4, sizeof(in4));
	if (r < 0 && errno != EINPROGRESS) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

static void connect_next(struct link *l)
{
	for (; l->tries < (box_address ? 3 : 2);) {
		int fd = connect_try(l);

		l->tries++;
		if (fd < 0)
			continue;
		abx_loop_watch(&l->box, fd, EPOLLOUT, on_box);
		return;
	}
	drop(l, true);
}

static void on_connection(struct abx_loop_source *s, uint32_t events)
{
	const struct port *p = ABX_LOOP_OWNER(s, struct port, listener);
	int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	const int one = 1;
	struct link *l;

	(void)events;
	if (fd < 0)
		return;
	l = n_links < LINKS_MAX ? calloc(1, sizeof(*l)) : NULL;
	if (!l) {
		(void)close(fd);
		return;
	}
	n_links++;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	l->box.fd = -1;
	l->port = p->box;
	/* Nothing is read before there is somebody to give it to. */
	abx_loop_watch(&l->outside, fd, EPOLLIN, on_outside);
	abx_loop_rewatch(&l->outside, 0);
	connect_next(l);
}

void abx_forward_init(uint32_t address)
{
	box_address = address;
}

void abx_forward_add(int listener, uint16_t port, uint16_t outside)
{
	struct port *p = calloc(1, sizeof(*p));

	if (!p) {
		(void)close(listener);
		return;
	}
	*p = (struct port){.box = port, .outside = outside, .next = ports};
	ports = p;
	abx_loop_watch(&p->listener, listener, EPOLLIN, on_connection);
}

uint16_t abx_forward_find(uint16_t port)
{
	for (const struct port *p = ports; p; p = p->next)
		if (p->box == port)
			return p->outside;
	return 0;
}
