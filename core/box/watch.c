/* SPDX-License-Identifier: MIT */
/* What becomes of boxes, as it happens. */
#include "core/box/watch.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "core/box/lifecycle.h"
#include "core/state/labels.h"
#include "core/util/clock.h"
#include "core/util/log.h"
#include "core/util/mem.h"

#define LOOK_MS 100	 /* at the records */
#define ASK_MS 2000	 /* a provider that reports nothing by itself */
#define ASK_ALL_MS 10000 /* every provider: what went says nothing any more */
#define REPORT_MS 3000	 /* a watch is asked for anew so often, so that it can end */

/* A provider that reports by itself, on a thread of its own. */
struct reporter {
	struct abx_app *app;
	struct abx_cloud *cloud;
	char *provider;
	pthread_t thread;
	atomic_bool stop, failed;
};

struct watch {
	struct abx_app *app;
	const char *project;
	abx_box_event_fn tell;
	void *ctx;
	struct abx_box_list known;
	int64_t seen; /* of the changes on record; -1: none yet */
	struct reporter **reporters;
	size_t n_reporters;
	struct abx_strv tried; /* providers that were looked at for that */
};

static int note(void *ctx, const struct abx_sandbox *s)
{
	struct reporter *r = ctx;
	const char *id = abx_sandbox_label(s, ABX_LABEL_BOX);
	struct abx_box box = {0};

	if (atomic_load(&r->stop))
		return 1;
	/* Only a sandbox that a record knows. */
	if (id && abx_boxes_load(r->app->db, id, &box, NULL) == 0 && box.sandbox_id &&
	    strcmp(box.sandbox_id, s->id) == 0)
		(void)abx_boxes_set_sandbox(r->app->db, id, s, NULL);
	abx_box_release(&box);
	return 0;
}

static void *report(void *ctx)
{
	struct reporter *rep = ctx;
	const struct abx_call_opts o = {.timeout_ms = REPORT_MS};
	const struct abx_watcher to = {note, rep};
	struct abx_kv labels[ABX_N_INSTALL_LABELS];
	struct abx_err why = ABX_ERR_INIT;
	int r = ABX_ETIMEDOUT;

	abx_labels_of_install(rep->app->db, labels);
	while (!atomic_load(&rep->stop) && (r == 0 || r == ABX_ETIMEDOUT))
		r = abx_cloud_watch(rep->cloud, &o, labels, ABX_N_INSTALL_LABELS, &to, &why);
	if (!atomic_load(&rep->stop) && r != ABX_ECANCELED)
		abx_log(ABX_LOG_INFO, "watch", "%s", why.text);
	atomic_store(&rep->failed, true);
	return NULL;
}

/* While it reports, nothing else of the provider may have to wait for it. */
static bool can_report(const struct abx_cloud *cloud)
{
	const struct abx_cloud_backend *t = abx_cloud_table(cloud);

	return t->watch && t->thread_model >= ABX_THREADS_PARALLEL;
}

static void start_reporter(struct watch *w, const struct abx_box *box)
{
	struct abx_cloud *cloud;
	struct reporter *r;

	for (size_t i = 0; i < w->tried.len; i++)
		if (strcmp(w->tried.items[i], box->provider) == 0)
			return;
	abx_strv_add(&w->tried, box->provider);
	if (abx_app_cloud_of(w->app, box, &cloud, NULL) < 0 || !can_report(cloud))
		return;
	r = abx_xcalloc(1, sizeof(*r));
	r->app = w->app;
	r->cloud = cloud;
	r->provider = abx_xstrdup(box->provider);
	if (pthread_create(&r->thread, NULL, report, r) != 0) {
		free(r->provider);
		free(r);
		return;
	}
	w->reporters = abx_xreallocarray(w->reporters, w->n_reporters + 1, sizeof(*w->reporters));
	w->reporters[w->n_reporters++] = r;
}

static void stop_reporters(struct watch *w)
{
	for (size_t i = 0; i < w->n_reporters; i++)
		atomic_store(&w->reporters[i]->stop, true);
	for (size_t i = 0; i < w->n_reporters; i++) {
		(void)pthread_join(w->reporters[i]->thread, NULL);
		free(w->reporters[i]->provider);
		free(w->reporters[i]);
	}
	free(w->reporters);
	abx_strv_release(&w->tried);
}

static bool is_reported(const struct watch *w, const struct abx_box *box)
{
	for (size_t i = 0; i < w->n_reporters; i++)
		if (strcmp(w->reporters[i]->provider, box->provider) == 0)
			return !atomic_load(&w->reporters[i]->failed);
	return false;
}

/* Ask those providers that have to be asked; what they say is recorded. */
static int ask(struct watch *w, struct abx_box_list *boxes, bool all, struct abx_err *err)
{
	struct abx_box_list some = {abx_xcalloc(boxes->len + 1, sizeof(*some.items)), 0};
	int r;

	/* Borrowed for the call, then put back: they sort by provider only by chance. */
	for (size_t i = 0; i < boxes->len; i++)
		if (all || !is_reported(w, &boxes->items[i]))
			some.items[some.len++] = boxes->items[i];
	r = abx_lifecycle_refresh(w->app, &some, err);
	for (size_t i = 0; i < some.len; i++)
		for (size_t k = 0; k < boxes->len; k++)
			if (boxes->items[k].id == some.items[i].id)
				boxes->items[k] = some.items[i];
	free(some.items);
	/* Destroyed meanwhile by somebody else. */
	return r == ABX_ENOBOX ? 0 : r;
}

static struct abx_box *find(const struct abx_box_list *list, const char *id)
{
	for (size_t i = 0; i < list->len; i++)
		if (strcmp(list->items[i].id, id) == 0)
			return &list->items[i];
	return NULL;
}

static const char *state_of(const struct abx_box *box)
{
	return abx_box_state_name(box->state);
}

/* A state that is the known one was told of when the box was looked at. */
static int on_change(void *ctx, const char *id, enum abx_box_state was, enum abx_box_state state)
{
	const struct watch *w = ctx;
	struct abx_box *box = find(&w->known, id);
	struct abx_box_event event = {box, abx_box_state_name(state), abx_box_state_name(was)};

	if (!box || box->state == state)
		return 0;
	box->state = state;
	return w->tell(w->ctx, &event);
}

static int compare(struct watch *w, struct abx_box_list *now)
{
	int r = 0;

	for (size_t i = 0; i < now->len && r == 0; i++) {
		const struct abx_box *box = &now->items[i], *old = find(&w->known, box->id);
		const struct abx_box_event event = {box, state_of(box), old ? state_of(old) : NULL};

		if (!old || old->state != box->state)
			r = w->tell(w->ctx, &event);
	}
	for (size_t i = 0; i < w->known.len && r == 0; i++) {
		const struct abx_box *old = &w->known.items[i];
		const struct abx_box_event event = {old, "destroyed", state_of(old)};

		if (!find(now, old->id))
			r = w->tell(w->ctx, &event);
	}
	abx_box_list_release(&w->known);
	w->known = *now;
	memset(now, 0, sizeof(*now));
	return r;
}

static bool wait_a_moment(const struct abx_app *app)
{
	struct pollfd fd = {app->host.cancel_fd, POLLIN, 0};

	return poll(&fd, 1, LOOK_MS) <= 0;
}

static int watch_loop(struct watch *w, struct abx_err *err)
{
	int64_t asked = 0, asked_all = 0;
	int r = 0;

	do {
		struct abx_box_list now = {0};
		int64_t at = abx_now_ms();
		bool all = !asked_all || at - asked_all >= ASK_ALL_MS;

		r = abx_boxes_changes(w->app->db, &w->seen, on_change, w, err);
		if (r == 0)
			r = abx_boxes_list(w->app->db, w->project, &now, err);
		for (size_t i = 0; i < now.len && r == 0; i++)
			start_reporter(w, &now.items[i]);
		if (r == 0 && (all || at - asked >= ASK_MS)) {
			r = ask(w, &now, all, err);
			asked = abx_now_ms();
			asked_all = all ? asked : asked_all;
		}
		if (r == 0)
			r = compare(w, &now);
		abx_box_list_release(&now);
	} while (r == 0 && wait_a_moment(w->app));
	return r == ABX_ECANCELED ? 0 : r;
}

int abx_box_watch(struct abx_app *app, const char *project, abx_box_event_fn tell, void *ctx,
		  struct abx_err *err)
{
	struct watch w = {.app = app, .project = project, .tell = tell, .ctx = ctx, .seen = -1};
	int r = abx_app_open(app, err);

	if (r == 0)
		r = watch_loop(&w, err);
	stop_reporters(&w);
	abx_box_list_release(&w.known);
	return r;
}
