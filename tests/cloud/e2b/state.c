/* SPDX-License-Identifier: MIT */
/* The emulated E2B: what it knows, and its beginning and end. */
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>
#include <time.h>

#include "core/util/clock.h"
#include "core/util/mem.h"
#include "core/util/rand.h"
#include "core/util/thread.h"
#include "tests/cloud/e2b/e2b.h"
#include "tests/cloud/e2b/service.h"

const char e2b_setup[] = "mkdir -p /home/user\n"
			 "if ! grep -q ^user: /etc/passwd; then\n"
			 "	echo user:x:1001:1001::/home/user:/bin/bash >>/etc/passwd\n"
			 "	echo user:x:1001: >>/etc/group\n"
			 "fi\n"
			 "chown user:user /home/user\n";

static const char id_letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";

void e2b_random_id(char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		text[i] = id_letters[abx_rand_below(sizeof(id_letters) - 1)];
	text[len] = '\0';
}

void e2b_token(const struct e2b *e, const char *text, char out[65])
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned int len = 0;

	(void)HMAC(EVP_sha256(), e->seed, (int)strlen(e->seed), (const unsigned char *)text,
		   strlen(text), sum, &len);
	for (unsigned int i = 0; i < 32; i++)
		(void)snprintf(out + 2 * i, 3, "%02x", sum[i]);
}

void e2b_time(int64_t wall_ms, char out[40])
{
	time_t s = (time_t)(wall_ms / 1000);
	struct tm tm;
	size_t n;

	(void)gmtime_r(&s, &tm);
	n = strftime(out, 24, "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(out + n, 40 - n, ".%03dZ", (int)(wall_ms % 1000));
}

struct e2b_box *e2b_box_new(struct e2b *e)
{
	struct e2b_box *b = abx_xcalloc(1, sizeof(*b));

	b->e = e;
	b->refs = 1;
	b->id[0] = 'i';
	e2b_random_id(b->id + 1, 20);
	b->internet = b->pause_memory = true;
	(void)pthread_mutex_init(&b->op, NULL);
	return b;
}

struct e2b_box *e2b_box_get(struct e2b_box *b)
{
	(void)pthread_mutex_lock(&b->e->lock);
	b->refs++;
	(void)pthread_mutex_unlock(&b->e->lock);
	return b;
}

void e2b_box_put(struct e2b_box *b)
{
	bool last;

	(void)pthread_mutex_lock(&b->e->lock);
	last = --b->refs == 0;
	b->e->making -= last && b->reserved;
	(void)pthread_mutex_unlock(&b->e->lock);
	if (!last)
		return;
	e2b_procs_free(b);
	cJSON_Delete(b->metadata);
	cJSON_Delete(b->envs);
	cJSON_Delete(b->network);
	cJSON_Delete(b->mounts);
	free(b->cwd);
	(void)pthread_mutex_destroy(&b->op);
	free(b);
}

struct e2b_box *e2b_box_find(struct e2b *e, const char *id)
{
	size_t len = strcspn(id, "-"); /* the rest was once the id of a client */
	struct e2b_box *b;

	(void)pthread_mutex_lock(&e->lock);
	for (b = e->boxes; b; b = b->next)
		if (strlen(b->id) == len && memcmp(b->id, id, len) == 0)
			break;
	if (b)
		b->refs++;
	(void)pthread_mutex_unlock(&e->lock);
	return b;
}

bool e2b_box_reserve(struct e2b_box *b)
{
	int64_t max = emu_server_limits(b->e->server).sandboxes, n;

	(void)pthread_mutex_lock(&b->e->lock);
	n = b->e->making;
	for (const struct e2b_box *i = b->e->boxes; i; i = i->next)
		n += i->state == E2B_RUNNING;
	b->reserved = max == 0 || n < max;
	b->e->making += b->reserved;
	(void)pthread_mutex_unlock(&b->e->lock);
	return b->reserved;
}

void e2b_box_list_in(struct e2b_box *b)
{
	struct e2b *e = b->e;

	(void)pthread_mutex_lock(&e->lock);
	e->making -= b->reserved;
	b->reserved = false;
	b->refs++;
	b->next = e->boxes;
	e->boxes = b;
	(void)pthread_mutex_unlock(&e->lock);
}

bool e2b_thread(struct e2b *e, void *(*fn)(void *), void *arg)
{
	pthread_t t;
	bool ok;

	(void)pthread_mutex_lock(&e->lock);
	e->threads++;
	(void)pthread_mutex_unlock(&e->lock);
	ok = abx_thread_start(&t, fn, arg) == 0;
	if (ok)
		(void)pthread_detach(t);
	else
		e2b_thread_over(e);
	return ok;
}

void e2b_thread_over(struct e2b *e)
{
	(void)pthread_mutex_lock(&e->lock);
	e->threads--;
	(void)pthread_cond_broadcast(&e->changed);
	(void)pthread_mutex_unlock(&e->lock);
}

static int open_service(struct emu_server *server, struct emu_engine *engine, void **ret,
			struct abx_err *err)
{
	struct e2b *e = abx_xcalloc(1, sizeof(*e));
	pthread_condattr_t attr;
	int r;

	e->server = server;
	e->engine = engine;
	abx_rand_hex(e->seed, 32);
	(void)pthread_mutex_init(&e->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&e->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
	*ret = e;
	r = abx_thread_start(&e->reaper, e2b_reap, e);
	e->has_reaper = r == 0;
	return r ? abx_err_errno(err, r, "thread") : 0;
}

static void begin_request(struct emu_request *req)
{
	if (!e2b_envd_begin(req))
		e2b_control_begin(req);
}

static struct e2b_box *any_box(struct e2b *e)
{
	struct e2b_box *b;

	(void)pthread_mutex_lock(&e->lock);
	b = e->boxes;
	if (b)
		b->refs++;
	(void)pthread_mutex_unlock(&e->lock);
	return b;
}

/* The requests under way end because their streams do. */
static void close_service(void *service)
{
	struct e2b *e = service;
	struct abx_err err = ABX_ERR_INIT;
	struct e2b_box *b;

	(void)pthread_mutex_lock(&e->lock);
	e->ending = true;
	(void)pthread_cond_broadcast(&e->changed);
	(void)pthread_mutex_unlock(&e->lock);
	if (e->has_reaper)
		(void)pthread_join(e->reaper, NULL);
	while ((b = any_box(e))) {
		(void)pthread_mutex_lock(&b->op);
		(void)e2b_kill(b, &err);
		(void)pthread_mutex_unlock(&b->op);
		e2b_box_put(b);
	}
	(void)pthread_mutex_lock(&e->lock);
	while (e->threads)
		(void)pthread_cond_wait(&e->changed, &e->lock);
	(void)pthread_mutex_unlock(&e->lock);
}

static void free_service(void *service)
{
	struct e2b *e = service;

	e2b_templates_free(e);
	e2b_files_free(e);
	(void)pthread_cond_destroy(&e->changed);
	(void)pthread_mutex_destroy(&e->lock);
	free(e);
}

const struct emu_service e2b_service = {"e2b",	       open_service,  e2b_envd_asked,
					begin_request, close_service, free_service};
