/* SPDX-License-Identifier: MIT */
/*
 * abxsdk/loop.h: waiting for whatever is ready next, in a small program of one thread.
 *
 *	struct peer { struct abx_loop_source source; ... };
 *
 *	static void on_peer(struct abx_loop_source *s, uint32_t events)
 *	{
 *		struct peer *p = ABX_LOOP_OWNER(s, struct peer, source);
 *		...
 *	}
 *
 *	abx_loop_init(broken);
 *	abx_loop_watch(&p->source, fd, EPOLLIN, on_peer);
 *	abx_loop_run();
 *
 * There is one loop in a process.  What the kernel refuses it ends the process: `broken` says so
 * and does not return.
 */
#ifndef ABXSDK_LOOP_H
#define ABXSDK_LOOP_H

#include <stddef.h>
#include <stdint.h>

struct abx_loop_source {
	int fd; /* -1: not watched */
	uint32_t events;
	void (*ready)(struct abx_loop_source *, uint32_t events);
};
#define ABX_LOOP_OWNER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

void abx_loop_init(void (*broken)(int err));
/* events: of epoll_ctl(2). */
void abx_loop_watch(struct abx_loop_source *s, int fd, uint32_t events,
		    void (*ready)(struct abx_loop_source *, uint32_t));
void abx_loop_rewatch(struct abx_loop_source *s, uint32_t events);
void abx_loop_unwatch(struct abx_loop_source *s); /* and close */
/* Called about once a second while *active is not zero. */
void abx_loop_on_tick(void (*tick)(int64_t now_ms), const size_t *active);
_Noreturn void abx_loop_run(void);

#endif
