/* SPDX-License-Identifier: MIT */
/* Bytes from one thread to another. */
#include "tests/cloud/feed.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "core/util/clock.h"
#include "core/util/mem.h"

struct piece {
	struct piece *next;
	size_t len, at;
	char data[];
};

struct emu_feed {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int refs;
	struct piece *first, **end;
	size_t bytes, max;
	bool ended, broken, left;
	int64_t idle_ms, idle_at;
	char *idle, *last;
	size_t idle_len, last_len;
	int64_t last_at; /* 0: never */
	void (*on_left)(void *ctx);
	void *on_left_ctx;
};

struct emu_feed *emu_feed_new(size_t max_bytes)
{
	struct emu_feed *f = abx_xcalloc(1, sizeof(*f));
	pthread_condattr_t attr;

	(void)pthread_mutex_init(&f->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&f->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
	f->refs = 1;
	f->max = max_bytes;
	f->end = &f->first;
	return f;
}

struct emu_feed *emu_feed_get(struct emu_feed *f)
{
	(void)pthread_mutex_lock(&f->lock);
	f->refs++;
	(void)pthread_mutex_unlock(&f->lock);
	return f;
}

static struct piece *take_first(struct emu_feed *f)
{
	struct piece *p = f->first;

	f->first = p->next;
	if (!f->first)
		f->end = &f->first;
	return p;
}

void emu_feed_put(struct emu_feed *f)
{
	bool last;

	(void)pthread_mutex_lock(&f->lock);
	last = --f->refs == 0;
	(void)pthread_mutex_unlock(&f->lock);
	if (!last)
		return;
	while (f->first)
		free(take_first(f));
	(void)pthread_cond_destroy(&f->changed);
	(void)pthread_mutex_destroy(&f->lock);
	if (f->on_left)
		f->on_left(f->on_left_ctx);
	free(f->idle);
	free(f->last);
	free(f);
}

void emu_feed_idle(struct emu_feed *f, int64_t ms, const void *data, size_t len)
{
	(void)pthread_mutex_lock(&f->lock);
	free(f->idle);
	f->idle = abx_xcalloc(1, len + 1);
	memcpy(f->idle, data, len);
	f->idle_len = len;
	f->idle_ms = ms;
	f->idle_at = abx_now_ms() + ms;
	(void)pthread_mutex_unlock(&f->lock);
}

void emu_feed_until(struct emu_feed *f, int64_t ms, const void *data, size_t len)
{
	(void)pthread_mutex_lock(&f->lock);
	free(f->last);
	f->last = abx_xcalloc(1, len + 1);
	memcpy(f->last, data, len);
	f->last_len = len;
	f->last_at = abx_now_ms() + ms;
	(void)pthread_mutex_unlock(&f->lock);
}

void emu_feed_on_left(struct emu_feed *f, void (*fn)(void *ctx), void *ctx)
{
	(void)pthread_mutex_lock(&f->lock);
	f->on_left = fn;
	f->on_left_ctx = ctx;
	(void)pthread_mutex_unlock(&f->lock);
}

static void append(struct emu_feed *f, const void *data, size_t len)
{
	struct piece *p = abx_xcalloc(1, sizeof(*p) + len);

	p->len = len;
	memcpy(p->data, data, len);
	*f->end = p;
	f->end = &p->next;
	f->bytes += len;
	(void)pthread_cond_broadcast(&f->changed);
}

bool emu_feed_push(struct emu_feed *f, const void *data, size_t len)
{
	bool open;

	(void)pthread_mutex_lock(&f->lock);
	while (!f->left && !f->ended && f->bytes >= f->max)
		(void)pthread_cond_wait(&f->changed, &f->lock);
	open = !f->left && !f->ended;
	if (open && len)
		append(f, data, len);
	(void)pthread_mutex_unlock(&f->lock);
	return open;
}

void emu_feed_push_now(struct emu_feed *f, const void *data, size_t len)
{
	(void)pthread_mutex_lock(&f->lock);
	if (!f->left && !f->ended)
		append(f, data, len);
	(void)pthread_mutex_unlock(&f->lock);
}

void emu_feed_end(struct emu_feed *f, bool broken)
{
	(void)pthread_mutex_lock(&f->lock);
	f->broken = f->broken || (broken && !f->ended);
	f->ended = true;
	(void)pthread_cond_broadcast(&f->changed);
	(void)pthread_mutex_unlock(&f->lock);
}

void emu_feed_leave(struct emu_feed *f)
{
	void (*on_left)(void *ctx);

	(void)pthread_mutex_lock(&f->lock);
	f->left = true;
	on_left = f->on_left;
	f->on_left = NULL;
	(void)pthread_cond_broadcast(&f->changed);
	(void)pthread_mutex_unlock(&f->lock);
	if (on_left)
		on_left(f->on_left_ctx);
}

bool emu_feed_left(struct emu_feed *f)
{
	bool left;

	(void)pthread_mutex_lock(&f->lock);
	left = f->left;
	(void)pthread_mutex_unlock(&f->lock);
	return left;
}

static void wait_until(struct emu_feed *f, int64_t at_ms)
{
	struct timespec t = {.tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000};

	(void)pthread_cond_timedwait(&f->changed, &f->lock, &t);
}

static ssize_t give(struct emu_feed *f, char *to, size_t size)
{
	size_t n = 0;

	while (f->first && (n == 0 || f->first->len - f->first->at <= size - n)) {
		struct piece *p = f->first;
		size_t part = p->len - p->at < size - n ? p->len - p->at : size - n;

		memcpy(to + n, p->data + p->at, part);
		n += part;
		p->at += part;
		f->bytes -= part;
		if (p->at < p->len)
			break;
		free(take_first(f));
	}
	f->idle_at = abx_now_ms() + f->idle_ms;
	(void)pthread_cond_broadcast(&f->changed);
	return (ssize_t)n;
}

ssize_t emu_feed_pull(struct emu_feed *f, void *data, size_t size, int64_t wait_ms)
{
	int64_t until = abx_now_ms() + wait_ms;
	ssize_t n = -EAGAIN;

	(void)pthread_mutex_lock(&f->lock);
	for (;;) {
		int64_t now = abx_now_ms();

		if (f->last_at && now >= f->last_at && !f->ended) {
			append(f, f->last, f->last_len);
			f->ended = true;
		}
		if (f->first && !f->broken)
			n = give(f, data, size);
		else if (f->ended)
			n = f->broken ? -EPIPE : 0;
		else if (f->idle_ms && now >= f->idle_at && f->idle_len <= size) {
			memcpy(data, f->idle, f->idle_len);
			n = (ssize_t)f->idle_len;
			f->idle_at = now + f->idle_ms;
		} else if (now < until) {
			wait_until(f, f->idle_ms && f->idle_at < until ? f->idle_at : until);
			continue;
		}
		break;
	}
	(void)pthread_mutex_unlock(&f->lock);
	return n;
}
