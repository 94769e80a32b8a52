/* SPDX-License-Identifier: MIT */
/* Waiting for whatever is ready next. */
#include "abxsdk/loop.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "abxsdk/clock.h"

#define EVENTS_MAX 64
#define TICK_MS 1000

static int epoll_fd = -1;
static void (*on_broken)(int err);
static struct epoll_event events[EVENTS_MAX];
static int n_events;
static void (*on_tick)(int64_t now_ms);
static const size_t *tick_active;

static _Noreturn void fail(int err)
{
	on_broken(err);
	abort();
}

void abx_loop_init(void (*broken)(int err))
{
	on_broken = broken;
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0)
		fail(errno);
}

void abx_loop_watch(struct abx_loop_source *s, int fd, uint32_t ev,
		    void (*ready)(struct abx_loop_source *, uint32_t))
{
	struct epoll_event e = {.events = ev, .data.ptr = s};

	s->fd = fd;
	s->events = ev;
	s->ready = ready;
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0)
		fail(errno);
}

void abx_loop_rewatch(struct abx_loop_source *s, uint32_t ev)
{
	struct epoll_event e = {.events = ev, .data.ptr = s};
	/* A source of no interest is not in the set: its end would be reported for ever. */
	int op = !s->events ? EPOLL_CTL_ADD : ev ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;

	if (s->events == ev)
		return;
	s->events = ev;
	if (epoll_ctl(epoll_fd, op, s->fd, &e) < 0)
		fail(errno);
}

void abx_loop_unwatch(struct abx_loop_source *s)
{
	if (s->fd < 0)
		return;
	/* What was reported together with the event being served is of no interest now. */
	for (int i = 0; i < n_events; i++)
		if (events[i].data.ptr == s)
			events[i].data.ptr = NULL;
	(void)epoll_ctl(epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
	(void)close(s->fd);
	s->fd = -1;
}

void abx_loop_on_tick(void (*tick)(int64_t now_ms), const size_t *active)
{
	on_tick = tick;
	tick_active = active;
}

void abx_loop_run(void)
{
	for (;;) {
		bool ticking = on_tick && *tick_active;

		n_events = epoll_wait(epoll_fd, events, EVENTS_MAX, ticking ? TICK_MS : -1);
		if (n_events < 0 && errno != EINTR)
			fail(errno);
		for (int i = 0; i < n_events; i++) {
			struct abx_loop_source *s = events[i].data.ptr;

			if (s)
				s->ready(s, events[i].events);
		}
		n_events = 0;
		if (ticking)
			on_tick(abx_monotonic_ms());
	}
}
