/* SPDX-License-Identifier: MIT */
/* The emulated E2B: what becomes of a sandbox, also by itself. */
#include <string.h>
#include <time.h>

#include "core/util/clock.h"
#include "tests/cloud/e2b/e2b.h"

#define LOOK_MS 100

static void set_state(struct e2b_box *b, enum e2b_state state)
{
	(void)pthread_mutex_lock(&b->e->lock);
	b->state = state;
	(void)pthread_mutex_unlock(&b->e->lock);
}

/* True: it was listed. */
static bool unlist(struct e2b_box *b)
{
	bool found = false;

	(void)pthread_mutex_lock(&b->e->lock);
	b->state = E2B_GONE;
	for (struct e2b_box **p = &b->e->boxes; *p && !found; p = &(*p)->next) {
		if (*p == b) {
			*p = b->next;
			found = true;
			break;
		}
	}
	(void)pthread_mutex_unlock(&b->e->lock);
	return found;
}

int e2b_kill(struct e2b_box *b, struct abx_err *err)
{
	int r;

	if (!unlist(b))
		return 0;
	e2b_procs_cut(b);
	r = emu_box_end(b->e->engine, b->id, err);
	e2b_box_put(b);
	return r;
}

int e2b_pause(struct e2b_box *b, bool memory, struct abx_err *err)
{
	int r;

	set_state(b, E2B_PAUSED);
	e2b_procs_cut(b);
	b->disk_only = !memory;
	b->end_ms = abx_wall_ms();
	r = memory ? emu_box_pause(b->e->engine, b->id, err)
		   : emu_box_stop(b->e->engine, b->id, err);
	if (r < 0)
		set_state(b, E2B_RUNNING);
	return r;
}

int64_t e2b_clamp(const struct e2b_box *b, int64_t timeout_s)
{
	int64_t left = E2B_LIFE_MAX_S - (abx_wall_ms() - b->run_ms) / 1000;

	return timeout_s < left ? timeout_s : left;
}

int e2b_resume(struct e2b_box *b, int64_t timeout_s, bool memory, struct abx_err *err)
{
	int r = 0;

	if (!b->disk_only && !memory) {
		r = emu_box_resume(b->e->engine, b->id, err);
		if (r == 0)
			r = emu_box_stop(b->e->engine, b->id, err);
		b->disk_only = r == 0;
	}
	if (r == 0)
		r = b->disk_only ? emu_box_start(b->e->engine, b->id, err)
				 : emu_box_resume(b->e->engine, b->id, err);
	if (r < 0)
		return r;
	b->disk_only = false;
	b->run_ms = abx_wall_ms();
	b->end_ms = b->run_ms + e2b_clamp(b, timeout_s) * 1000;
	set_state(b, E2B_RUNNING);
	return 0;
}

/* A box whose time is over; a reference. */
static struct e2b_box *next_expired(struct e2b *e, int64_t now)
{
	struct e2b_box *b;

	for (b = e->boxes; b; b = b->next)
		if (b->state == E2B_RUNNING && b->end_ms <= now)
			break;
	if (b)
		b->refs++;
	return b;
}

static void expire(struct e2b_box *b)
{
	struct abx_err err = ABX_ERR_INIT;
	int r = 0;

	(void)pthread_mutex_lock(&b->op);
	/* It may have been renewed or paused meanwhile. */
	if (b->state == E2B_RUNNING && b->end_ms <= abx_wall_ms())
		r = b->auto_pause ? e2b_pause(b, b->pause_memory, &err) : e2b_kill(b, &err);
	(void)pthread_mutex_unlock(&b->op);
	if (r < 0)
		(void)fprintf(stderr, "agentbox-cloud-emulator: sandbox %s: %s\n", b->id, err.text);
}

static void look_at_procs(struct e2b *e)
{
	struct e2b_box *all[256], *b;
	size_t n = 0;

	(void)pthread_mutex_lock(&e->lock);
	for (b = e->boxes; b && n < ABX_N_ELEMENTS(all); b = b->next)
		if (b->procs) {
			b->refs++;
			all[n++] = b;
		}
	(void)pthread_mutex_unlock(&e->lock);
	for (size_t i = 0; i < n; i++) {
		e2b_procs_reap(all[i], abx_now_ms());
		e2b_box_put(all[i]);
	}
}

void *e2b_reap(void *arg)
{
	struct e2b *e = arg;

	(void)pthread_mutex_lock(&e->lock);
	while (!e->ending) {
		struct e2b_box *b = next_expired(e, abx_wall_ms());
		int64_t at = abx_now_ms() + LOOK_MS;
		struct timespec t = {.tv_sec = at / 1000, .tv_nsec = at % 1000 * 1000000};

		if (b) {
			(void)pthread_mutex_unlock(&e->lock);
			expire(b);
			e2b_box_put(b);
			(void)pthread_mutex_lock(&e->lock);
			continue;
		}
		(void)pthread_mutex_unlock(&e->lock);
		look_at_procs(e);
		(void)pthread_mutex_lock(&e->lock);
		if (!e->ending)
			(void)pthread_cond_timedwait(&e->changed, &e->lock, &t);
	}
	(void)pthread_mutex_unlock(&e->lock);
	return NULL;
}
