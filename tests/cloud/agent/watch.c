/* SPDX-License-Identifier: MIT */
/* Changes below a directory, in frames. */
#include <dirent.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abxsdk/buf.h"
#include "abxsdk/fs.h"
#include "tests/cloud/agent/agent.h"
#include "tests/cloud/agent/frames.h"

#define WATCHES_MAX 4096
#define MASK \
	(IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_ONLYDIR)

struct watch {
	int fd;
	bool recursive;
	const char *root;
	char *dirs[WATCHES_MAX]; /* by watch descriptor; relative to root, "" or ending in "/" */
};

static void add(struct watch *w, const char *relative)
{
	char path[PATH_MAX];
	DIR *d;
	int wd;

	(void)snprintf(path, sizeof(path), "%s/%s", w->root, relative);
	wd = inotify_add_watch(w->fd, path, MASK);
	if (wd < 0 || wd >= WATCHES_MAX)
		return;
	free(w->dirs[wd]);
	w->dirs[wd] = strdup(relative);
	d = w->recursive ? opendir(path) : NULL;
	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		char below[PATH_MAX];

		if (e->d_type != DT_DIR || abx_fs_is_dot(e->d_name))
			continue;
		(void)snprintf(below, sizeof(below), "%s%s/", relative, e->d_name);
		add(w, below);
	}
	if (d)
		(void)closedir(d);
}

static void say(const char *root, const char *kind, const char *name)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(65536);
	char path[PATH_MAX], *entry = NULL;
	size_t entry_len = 0;
	FILE *f = open_memstream(&entry, &entry_len);

	if (!f)
		_exit(1);
	(void)snprintf(path, sizeof(path), "%s/%s", root, name);
	(void)agent_entry(f, path);
	(void)fclose(f);
	abx_buf_add(&b, kind, strlen(kind) + 1);
	abx_buf_add(&b, name, strlen(name) + 1);
	abx_buf_add(&b, entry, entry_len);
	free(entry);
	agent_say(AGENT_EVENT, b.data, b.len);
}

static void tell(struct watch *w, const struct inotify_event *e)
{
	static const struct {
		uint32_t mask;
		const char *kind;
	} kinds[] = {
		{IN_CREATE | IN_MOVED_TO, "CREATE"}, {IN_MODIFY, "WRITE"}, {IN_DELETE, "REMOVE"},
		{IN_MOVED_FROM, "RENAME"},	     {IN_ATTRIB, "CHMOD"},
	};
	const char *dir = e->wd > 0 && e->wd < WATCHES_MAX ? w->dirs[e->wd] : NULL;
	char name[PATH_MAX];

	if (!dir || !e->len)
		return;
	(void)snprintf(name, sizeof(name), "%s%s", dir, e->name);
	for (size_t i = 0; i < ABX_N_ELEMENTS(kinds); i++)
		if (e->mask & kinds[i].mask)
			say(w->root, kinds[i].kind, name);
	if (w->recursive && (e->mask & IN_ISDIR) && (e->mask & (IN_CREATE | IN_MOVED_TO))) {
		(void)snprintf(name, sizeof(name), "%s%s/", dir, e->name);
		add(w, name);
	}
}

static int fail(const char *kind, const char *text)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(1024);

	abx_buf_add(&b, kind, strlen(kind) + 1);
	abx_buf_adds(&b, text);
	agent_say(AGENT_FAIL, b.data, b.len);
	return 0;
}

int agent_watch(const struct agent_user *u, char **args)
{
	char b[65536] __attribute__((aligned(__alignof__(struct inotify_event))));
	struct watch *w = agent_alloc(1, sizeof(*w));
	char *path = agent_path(u, args[0]);
	struct stat st;

	w->root = path;
	w->recursive = strcmp(args[1], "recursive") == 0;
	if (!path || stat(path, &st) < 0)
		return fail("not_found", "path not found");
	if (!S_ISDIR(st.st_mode))
		return fail("invalid_argument", "path is not a directory");
	w->fd = inotify_init1(IN_CLOEXEC);
	if (w->fd < 0)
		return fail("internal", strerror(errno));
	add(w, "");
	agent_say(AGENT_WATCHING, "", 0);
	for (;;) {
		struct pollfd p[] = {{.fd = w->fd, .events = POLLIN},
				     {.fd = STDIN_FILENO, .events = 0}};
		ssize_t n;

		if (poll(p, 2, -1) < 0)
			continue;
		/* Nobody wants to know any more. */
		if (p[1].revents)
			return 0;
		n = read(w->fd, b, sizeof(b));
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *e = (const struct inotify_event *)(b + at);

			tell(w, e);
			at += (ssize_t)(sizeof(*e) + e->len);
		}
	}
}
