/* SPDX-License-Identifier: MIT */
/*
 * Renewing a box that is in use.
 *
 * What the host keeps of the deadline says when it was renewed last, also by another process:
 * nothing is due while it is less than a minute short of what a renewal would make it.  So a
 * deadline is never moved to an earlier time.
 */
#include <string.h>

#include "abxsdk/clock.h"
#include "providers/e2b/e2b.h"

#define AGAIN_MS INT64_C(60000)
#define KEEP_QUIET_MS INT64_C(5000)

struct e2b_kept {
	struct e2b_kept *next;
	int64_t expires_at_ms; /* 0: not known here */
	int64_t rest_until_ms; /* by the clock of deadlines: nothing is due before */
	char id[E2B_ID_BYTES];
};

void e2b_kept_free(struct abx_session *s)
{
	while (s->kept) {
		struct e2b_kept *first = s->kept;

		s->kept = first->next;
		free(first);
	}
}

/* The caller has the lock; NULL: out of memory. */
static struct e2b_kept *find(struct abx_session *s, const char *id)
{
	struct e2b_kept *k;

	for (k = s->kept; k && strcmp(k->id, id) != 0; k = k->next)
		;
	if (k)
		return k;
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	(void)snprintf(k->id, sizeof(k->id), "%s", id);
	k->next = s->kept;
	s->kept = k;
	return k;
}

void e2b_kept_until(struct abx_session *s, const char *id, int64_t expires_at_ms)
{
	struct e2b_kept *k;

	(void)pthread_mutex_lock(&s->lock);
	k = find(s, id);
	if (k) {
		k->expires_at_ms = expires_at_ms;
		k->rest_until_ms = 0;
	}
	(void)pthread_mutex_unlock(&s->lock);
}

/* So long it is to live from now on; 0: it is not renewed. */
static int64_t life_ms(const struct abx_session *s, const struct abx_sandbox *sb)
{
	int64_t made_for_s;

	if (s->keep_alive_ms >= 0)
		return s->keep_alive_ms;
	made_for_s = e2b_data_timeout_s(sb);
	/* Found by its label, after its record was lost. */
	return made_for_s ? made_for_s * 1000 : s->timeout_ms;
}

/* Whoever is told that it is due does it: two threads never do. */
static bool is_due(struct abx_session *s, const struct abx_sandbox *sb, int64_t *ret_life_ms)
{
	struct e2b_kept *k;
	int64_t now = abx_monotonic_ms();
	bool due = false;

	(void)pthread_mutex_lock(&s->lock);
	k = find(s, sb->id);
	if (k && now >= k->rest_until_ms) {
		int64_t known = k->expires_at_ms ? k->expires_at_ms : sb->expires_at_ms;
		int64_t life = life_ms(s, sb);
		int64_t early = known - (abx_realtime_ms() + life - AGAIN_MS);

		due = life && early < 0;
		k->rest_until_ms = now + (due || early > AGAIN_MS ? AGAIN_MS : early + 1);
		*ret_life_ms = life;
	}
	(void)pthread_mutex_unlock(&s->lock);
	return due;
}

static void emit_until(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		       int64_t expires_at_ms)
{
	const struct abx_sandbox now = {ABX_INIT(struct abx_sandbox),
					.id = sb->id,
					.name = sb->name,
					.state = ABX_STATE_RUNNING,
					.provider_data = sb->provider_data,
					.expires_at_ms = expires_at_ms};

	e2b_kept_until(s, sb->id, expires_at_ms);
	(void)abx_plugin_host->emit_sandbox(call, &now);
}

/* A failure of its own is none of the operation that it is done for. */
void e2b_keep(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb)
{
	/* Whoever is in the middle of a stream waits for it: once, and not for long. */
	struct e2b_request q = {.method = "POST", .brief = true, .quiet_ms = KEEP_QUIET_MS};
	struct e2b_answer a;
	struct e2b_data data;
	int64_t life = 0, wanted_ms;
	cJSON *body;
	bool foreign;
	int32_t r;

	if (!s->keep_alive_ms || !e2b_is_id(sb->id) || !is_due(s, sb, &life))
		return;
	wanted_ms = abx_realtime_ms() + life;
	body = cJSON_CreateObject();
	(void)abx_json_add_i64(body, "timeout", life / 1000);
	q.body = body;
	e2b_data_read(call, sb, &data);
	foreign = data.foreign;
	explicit_bzero(&data, sizeof(data));
	/* What lives longer than we know of must not live shorter: connect only prolongs. */
	r = e2b_ask(s, call, &q, &a, "/sandboxes/%s/%s", sb->id, foreign ? "connect" : "timeout");
	if (r == ABX_OK && a.status >= 200 && a.status < 300)
		emit_until(s, call, sb, wanted_ms);
	else
		abx_plugin_host->log(abx_plugin_host->ctx, ABX_LOG_WARN, "e2b",
				     *a.message ? a.message : "the box was not renewed");
	e2b_answer_release(&a);
	cJSON_Delete(body);
}
