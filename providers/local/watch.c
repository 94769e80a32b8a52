/* SPDX-License-Identifier: MIT */
/*
 * Telling of every change of every box, as it happens.
 *
 * inotify says that a record has changed, a pidfd that a box has ended by itself; what the
 * change was is found by looking at all boxes again, which costs microseconds each.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>

#include "providers/local/local.h"
#include "providers/local/pause.h"

#include "abxsdk/fs.h"

/* A box that starts says so in no file: look again. */
#define STARTING_MS 10

struct seen {
	char id[LOCAL_ID_MAX + 1];
	uint32_t state;
	int64_t pid;
	struct local_box box; /* as it was when it was first seen; no descriptors */
	int pidfd, watch;
	bool there; /* in this round */
};

struct watcher {
	struct abx_session *s;
	struct abx_call *call;
	const struct abx_list_req *req;
	int inotify_fd, epoll_fd;
	struct seen *v;
	size_t n, cap;
	bool quiet;    /* the first round only looks */
	bool starting; /* somebody is */
};

static struct seen *find(struct watcher *w, const char *id)
{
	for (size_t i = 0; i < w->n; i++)
		if (strcmp(w->v[i].id, id) == 0)
			return &w->v[i];
	return NULL;
}

static struct seen *add(struct watcher *w, const char *id)
{
	if (w->n == w->cap) {
		size_t cap = w->cap ? 2 * w->cap : 32;
		struct seen *v = reallocarray(w->v, cap, sizeof(*v));

		if (!v)
			return NULL;
		w->v = v;
		w->cap = cap;
	}
	w->v[w->n] = (struct seen){.pidfd = -1, .watch = -1, .box = LOCAL_BOX_INIT};
	(void)snprintf(w->v[w->n].id, sizeof(w->v[w->n].id), "%.64s", id);
	return &w->v[w->n++];
}

/* The box's own directory, where run.json is written, and paused comes and goes. */
static void watch_dir(struct watcher *w, struct seen *e, const struct local_box *b)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", b->dir_fd);
	e->watch = inotify_add_watch(w->inotify_fd, path,
				     IN_MOVED_TO | IN_CLOSE_WRITE | IN_DELETE | IN_ONLYDIR);
}

/* Its first process: a new one after each start. */
static void watch_process(struct watcher *w, struct seen *e, struct local_run *run)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLONESHOT};

	if (e->pidfd >= 0 && e->pid == run->pid && run->pidfd >= 0)
		return;
	/* Closing it takes it out of the epoll set. */
	abx_cleanup_close(&e->pidfd);
	e->pidfd = run->pidfd;
	e->pid = run->pid;
	run->pidfd = -1;
	if (e->pidfd >= 0)
		(void)epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, e->pidfd, &ev);
}

static int32_t look_at(struct watcher *w, const char *id)
{
	struct local_box b = LOCAL_BOX_INIT;
	struct local_run run = LOCAL_RUN_INIT;
	struct seen *e = find(w, id);
	bool is_new = !e;
	int32_t r = ABX_OK;
	uint32_t state;

	if (local_box_open(w->s, id, &b) < 0 || !local_labels_match(b.labels, w->req)) {
		local_box_release(&b);
		return ABX_OK;
	}
	if (!e)
		e = add(w, id);
	if (!e) {
		local_box_release(&b);
		return abx_fail(w->call, ABX_ENOMEM, NULL, "out of memory");
	}
	/* Watched before it is looked at: nothing falls in between. */
	if (is_new)
		watch_dir(w, e, &b);
	(void)local_run_open(w->s, &b, &run);
	state = local_box_state(&b, &run);
	w->starting |= state == ABX_STATE_STARTING || state == ABX_STATE_STOPPING;
	e->there = true;
	if ((is_new || e->state != state || (run.pidfd >= 0 && e->pid != run.pid)) && !w->quiet)
		r = local_box_emit(w->s, w->call, &b, &run, state);
	e->state = state;
	watch_process(w, e, &run);
	local_run_release(&run);
	if (is_new) {
		abx_cleanup_close(&b.dir_fd);
		b.dir_fd = -1;
		e->box = b;
	} else {
		local_box_release(&b);
	}
	return r;
}

static void forget(struct watcher *w, size_t i)
{
	abx_cleanup_close(&w->v[i].pidfd);
	if (w->v[i].watch >= 0)
		(void)inotify_rm_watch(w->inotify_fd, w->v[i].watch);
	local_box_release(&w->v[i].box);
	w->v[i] = w->v[--w->n];
}

/* Those that were here and are no more.  "Gone" is no state: nobody knows, until asked. */
static int32_t say_gone(struct watcher *w)
{
	for (size_t i = 0; i < w->n;) {
		int32_t r;

		if (w->v[i].there) {
			i++;
			continue;
		}
		r = local_box_emit(w->s, w->call, &w->v[i].box, NULL, ABX_STATE_UNKNOWN);
		if (r)
			return r;
		forget(w, i);
	}
	return ABX_OK;
}

static int32_t look_at_all(struct watcher *w)
{
	DIR *d = abx_fs_opendir(w->s->boxes_fd, ".");
	struct dirent *e;
	int32_t r = ABX_OK;

	if (!d)
		return abx_fail_errno(w->call, errno, "state directory");
	w->starting = false;
	for (size_t i = 0; i < w->n; i++)
		w->v[i].there = false;
	while (r == ABX_OK && (e = readdir(d)))
		if (local_id_valid(e->d_name))
			r = look_at(w, e->d_name);
	(void)closedir(d);
	return r == ABX_OK ? say_gone(w) : r;
}

static int open_watcher(struct watcher *w)
{
	struct epoll_event ev = {.events = EPOLLIN};
	char path[64];

	w->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (w->inotify_fd < 0 || w->epoll_fd < 0 ||
	    epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, w->inotify_fd, &ev) < 0)
		return -errno;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", w->s->boxes_fd);
	if (inotify_add_watch(w->inotify_fd, path,
			      IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ONLYDIR) < 0)
		return -errno;
	return 0;
}

/* Until something may have changed. */
static int32_t wait_for_change(struct watcher *w)
{
	struct pollfd p = {.fd = w->epoll_fd, .events = POLLIN};
	int32_t r = abx_call_poll(w->call, &p, 1, w->starting ? STARTING_MS : -1);
	struct epoll_event ev[16];
	char events[4096];

	if (r == ABX_OK && p.revents) {
		(void)epoll_wait(w->epoll_fd, ev, ABX_N_ELEMENTS(ev), 0);
		while (read(w->inotify_fd, events, sizeof(events)) > 0)
			;
	}
	return r;
}

int32_t local_watch(struct abx_session *s, struct abx_call *call, const struct abx_list_req *req)
{
	struct watcher w = {
		.s = s, .call = call, .req = req, .inotify_fd = -1, .epoll_fd = -1, .quiet = true};
	int e = open_watcher(&w);
	int32_t r = e < 0 ? abx_fail_errno(call, -e, "watch") : look_at_all(&w);

	w.quiet = false;
	while (r == ABX_OK) {
		r = wait_for_change(&w);
		if (r == ABX_OK)
			r = look_at_all(&w);
	}
	while (w.n)
		forget(&w, 0);
	free(w.v);
	abx_cleanup_close(&w.epoll_fd);
	abx_cleanup_close(&w.inotify_fd);
	return r;
}
