/* SPDX-License-Identifier: MIT */
/* Several boxes at once. */
#include "core/cli/create-many.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>

#include "core/util/mem.h"
#include "core/util/parse.h"
#include "core/util/redact.h"
#include "core/util/thread.h"

/* Creates mostly wait for a provider, but on this machine for each other. */
#define MAX_THREADS 64
#define MAX_THREADS_HERE 16
/* Files that one create has open at most, and that the program has. */
#define FILES_EACH 32
#define FILES_OURS 64

/* One box of them. */
struct one {
	char *name; /* NULL: made up */
	int r;
	struct abx_box box;
	struct abx_created created;
	struct abx_err err;
};

struct many {
	struct abx_cli *cli;
	const struct abx_create *req;
	struct abx_create_look *look;
	struct one *items;
	unsigned int count;
	atomic_uint next;
};

/* Their lines would overwrite each other. */
static int only_cancel(void *app, uint64_t done ABX_UNUSED, uint64_t total ABX_UNUSED,
		       const char *what ABX_UNUSED)
{
	return abx_app_cancelled(app) ? ABX_ECANCELED : 0;
}

static void make_one(const struct many *m, struct abx_app *app, struct one *one)
{
	struct abx_create req = *m->req;

	req.name = one->name;
	req.look = m->look;
	one->r = abx_create_box(app, &req, &one->box, &one->created, &one->err);
}

/* Database, home and provider are each thread's own. */
static void *work(void *arg)
{
	struct many *m = arg;
	struct abx_app app;

	abx_app_init(&app);
	app.host.cancel_fd = m->cli->app.host.cancel_fd;
	app.host.progress = only_cancel;
	app.host.progress_ctx = &app;
	for (;;) {
		unsigned int i = atomic_fetch_add(&m->next, 1);

		if (i >= m->count)
			break;
		make_one(m, &app, &m->items[i]);
	}
	abx_app_release(&app);
	return NULL;
}

/* As many as may have their files open. */
static unsigned int max_threads(const struct many *m)
{
	const rlim_t wanted = abx_create_look_is_here(m->look) ? MAX_THREADS_HERE : MAX_THREADS;
	struct rlimit l;
	rlim_t most = wanted;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur / FILES_EACH < wanted + 2)
		most = l.rlim_cur > FILES_OURS + FILES_EACH ? (l.rlim_cur - FILES_OURS) / FILES_EACH
							    : 1;
	return (unsigned int)(most < wanted ? most : wanted);
}

static void make_all(struct many *m)
{
	const unsigned int most = max_threads(m);
	pthread_t threads[MAX_THREADS];
	unsigned int n = 0;

	while (n + 1 < m->count && n + 1 < most && abx_thread_start(&threads[n], work, m) == 0)
		n++;
	(void)work(m);
	while (n)
		(void)pthread_join(threads[--n], NULL);
}

static void say_failed(const struct one *one)
{
	struct abx_err err = one->err;

	abx_redact(err.text);
	abx_redact(err.remedy);
	(void)fprintf(stderr, "agentbox: box '%s': %s%s%s%s\n", one->name ? one->name : "(unnamed)",
		      err.text, err.remedy[0] ? " (" : "", err.remedy, err.remedy[0] ? ")" : "");
}

static cJSON *one_json(const struct abx_cli *cli, const struct one *one)
{
	cJSON *o;

	if (one->r == 0)
		return abx_json_box(&one->box);
	o = cJSON_CreateObject();
	abx_json_text(o, "name", one->name);
	(void)cJSON_AddItemToObject(o, "error",
				    abx_json_error(&one->err, cli->provider, one->name));
	return o;
}

static int report(const struct many *m, struct abx_err *err)
{
	cJSON *doc = m->cli->json ? cJSON_CreateArray() : NULL;
	unsigned int n_made = 0;
	bool cancelled = false;
	int r = 0;

	for (unsigned int i = 0; i < m->count; i++) {
		const struct one *one = &m->items[i];

		n_made += one->r == 0;
		cancelled = cancelled || one->r == ABX_ECANCELED;
		if (doc)
			(void)cJSON_AddItemToArray(doc, one_json(m->cli, one));
		else if (one->r < 0)
			say_failed(one);
		else
			r = abx_out_line(err, "box %u '%s' is running (%s)", one->box.index,
					 one->box.name, one->box.provider);
	}
	if (doc)
		r = abx_out_json(doc, err);
	else if (n_made < m->count)
		(void)fprintf(stderr, "agentbox: %u of %u boxes were made\n", n_made, m->count);
	if (r < 0)
		return r;
	return cancelled ? 130 : n_made < m->count ? 1 : 0;
}

int abx_create_many(struct abx_cli *cli, const struct abx_create *req, unsigned int count,
		    struct abx_err *err)
{
	struct many m = {.cli = cli, .req = req, .count = count};
	int r = abx_create_look(&cli->app, req, &m.look, err);

	if (r < 0)
		return r;
	m.items = abx_xcalloc(count, sizeof(*m.items));
	for (unsigned int i = 0; i < count; i++) {
		const struct abx_err none = ABX_ERR_INIT;

		m.items[i].err = none;
		if (req->name)
			m.items[i].name = abx_xasprintf("%s-%u", req->name, i + 1);
		/* All of the names are right or none is used. */
		if (req->name && r == 0)
			r = abx_check_box_name(m.items[i].name, err);
	}
	if (r == 0)
		make_all(&m);
	if (r == 0)
		r = report(&m, err);
	for (unsigned int i = 0; i < count; i++) {
		free(m.items[i].name);
		abx_box_release(&m.items[i].box);
		abx_strv_release(&m.items[i].created.notes);
	}
	free(m.items);
	abx_create_look_free(m.look);
	return r;
}
