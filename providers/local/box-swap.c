/* SPDX-License-Identifier: MIT */
/*
 * What a running box wrote becomes a shared layer, and the box goes on over it.
 *
 * Only its first process is there.  What shows the writable layer in the box becomes read-only,
 * which the kernel refuses as long as a file is open for writing or mapped so; from then on
 * nobody writes to it, whoever holds what of it.  Nothing else can show it: what runs in a box
 * may make no mounts and no namespaces (box-seccomp.c, box-creds.c).  Then the first process
 * gets a new root over what has become of the layer.  What is mounted in the box beside its
 * layers, with all that is in it, is taken along.
 *
 * The old root goes when this program ends, which nobody waits for: the kernel takes as long for
 * it as many files were looked at there.
 *
 * Two mount namespaces are in use: the box's, and a copy of ours that belongs to the box's
 * user namespace, for what lies in the store can be mounted only from where the store is.
 */
#include "providers/local/box.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "abxsdk/fs.h"
#include "providers/local/mount-api.h"

#define MOUNTINFO_MAX ((size_t)1 << 20)
#define SKELETON_LEN 32

/* One line of /proc/PID/mountinfo; strings are the line's. */
struct entry {
	unsigned long id, parent;
	char *path;
	const char *type, *options;
};

/* Whoever was in the box ends, but its files are closed a moment later. */
#define BUSY_TRIES 50
#define BUSY_WAIT_NS 1000000
#define LET_GO_AFTER_NS 200000000

/* Something mounted in the box that is no layer. */
struct point {
	char *path;
	int tree_fd;
};

struct swap {
	const struct box_req *rq;
	struct box_plan plan;
	struct entry *entries;
	size_t n_entries;
	struct point *points;
	size_t n_points;
	char skeleton[SKELETON_LEN + 1];
	int outside; /* the other mount namespace, */
	int store;   /* and the store there */
	int own;     /* the box's part of it */
};

/* As long as nothing has changed, the box can be sealed in another way. */
static _Noreturn void not_here(int err)
{
	box_send(&(struct lb_msg){.kind = LB_MSG_IN_USE, .code = err});
	_exit(0);
}

/* ID PARENT DEVICE ROOT PATH FLAGS [TAG]... - TYPE SOURCE OPTIONS */
static bool parse_entry(char *line, struct entry *ret)
{
	char *rest = strstr(line, " - "), *field, *save = NULL;
	struct entry e = {.id = strtoul(line, NULL, 10)};

	if (!rest)
		return false;
	*rest = '\0';
	field = strtok_r(line, " ", &save);
	for (int i = 0; field && i < 5; i++) {
		if (i == 1)
			e.parent = strtoul(field, NULL, 10);
		if (i == 4)
			e.path = field;
		field = strtok_r(NULL, " ", &save);
	}
	e.type = strtok_r(rest + 3, " ", &save);
	(void)strtok_r(NULL, " ", &save);
	e.options = strtok_r(NULL, " ", &save);
	if (!e.path || !e.type || !e.options)
		return false;
	box_unescape(e.path);
	*ret = e;
	return true;
}

static char *read_mountinfo(void)
{
	char *text = box_alloc(MOUNTINFO_MAX);
	size_t len = 0;
	ssize_t n;

	while ((n = read(STDIN_FILENO, text + len, MOUNTINFO_MAX - 1 - len)) > 0)
		len += (size_t)n;
	if (n < 0 || len == MOUNTINFO_MAX - 1)
		not_here(n < 0 ? errno : E2BIG);
	text[len] = '\0';
	/* It holds the root of whom it is about. */
	(void)close(STDIN_FILENO);
	return text;
}

static void load_entries(struct swap *w)
{
	char *text = read_mountinfo(), *line, *save = NULL;
	size_t n = 1;

	for (const char *c = text; *c; c++)
		n += *c == '\n';
	w->entries = box_alloc(n * sizeof(*w->entries));
	w->points = box_alloc(n * sizeof(*w->points));
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (!parse_entry(line, &w->entries[w->n_entries]))
			not_here(EPROTO);
		w->n_entries++;
	}
}

/* Does it show what the box writes? */
static bool is_layer(const struct entry *e)
{
	return strcmp(e->type, "overlay") == 0 && strstr(e->options, "upperdir=/proc/self/fd/");
}

/* Of a root or directory of this machine: "cache/SKELETON/root" is the lowest of its layers. */
static void find_skeleton(struct swap *w, const struct entry *root)
{
	const char *at = root->options;

	while ((at = strstr(at, "/cache/"))) {
		at += strlen("/cache/");
		if (strspn(at, "0123456789abcdef") == SKELETON_LEN &&
		    strncmp(at + SKELETON_LEN, "/root", 5) == 0)
			memcpy(w->skeleton, at, SKELETON_LEN);
	}
}

static bool is_remade(const struct swap *w, const struct entry *e)
{
	return strcmp(e->path, "/") == 0 || (!w->plan.image && box_is_host_part(e->path));
}

static bool is_on_remade(const struct swap *w, const struct entry *e)
{
	for (size_t i = 0; i < w->n_entries; i++)
		if (w->entries[i].id == e->parent && is_remade(w, &w->entries[i]))
			return true;
	return false;
}

static void find_points(struct swap *w)
{
	bool found = false;

	for (struct entry *e = w->entries; e < w->entries + w->n_entries; e++) {
		if (strcmp(e->path, "/") == 0 && is_layer(e)) {
			find_skeleton(w, e);
			found = true;
		}
		if (is_remade(w, e))
			continue;
		/* A read-only workspace: made of what is about to be replaced. */
		if (is_layer(e))
			not_here(EBUSY);
		if (is_on_remade(w, e))
			w->points[w->n_points++] = (struct point){e->path, -1};
	}
	if (!found || (!w->plan.image && !*w->skeleton))
		not_here(ENOENT);
}

static void join(int fd, int kind)
{
	if (setns(fd, kind) < 0)
		box_fail_errno(errno, "enter the box");
}

static void go_outside(const struct swap *w)
{
	join(w->outside, CLONE_NEWNS);
	if (fchdir(w->store) < 0)
		box_fail_errno(errno, "state directory");
}

/* Everybody in the box whose root is the present one gets the tree behind the descriptor. */
static void change_root(int tree_fd)
{
	int old = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (old < 0 || abx_move_mount_fd(tree_fd, old) < 0)
		box_fail_errno(errno, "root of the box");
	(void)close(old);
	if (fchdir(tree_fd) < 0)
		box_fail_errno(errno, "root of the box");
}

static void leave_old_root(void)
{
	if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0)
		box_fail_errno(errno, "root of the box");
}

static int make_read_only(int fd)
{
	const struct abx_mount_attr attr = {.attr_set = ABX_ATTR_RDONLY};
	const struct timespec pause = {.tv_nsec = BUSY_WAIT_NS};
	int r = EBUSY;

	for (int i = 0; i < BUSY_TRIES && r == EBUSY; i++) {
		if (i)
			(void)nanosleep(&pause, NULL);
		r = abx_mount_setattr_top(fd, &attr) < 0 ? errno : 0;
	}
	return r;
}

/* Nobody writes to the layers of the box any more.  The descriptors keep them until the end. */
static void forbid_writing(const struct swap *w)
{
	for (const struct entry *e = w->entries; e < w->entries + w->n_entries; e++) {
		struct statx st;
		int fd, r;

		if (!is_layer(e))
			continue;
		fd = open(e->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0)
			not_here(errno);
		if (!(st.stx_mask & STATX_MNT_ID) || st.stx_mnt_id != e->id)
			not_here(ENOTSUP);
		r = make_read_only(fd);
		if (r)
			not_here(r);
	}
}

/* The writable layer becomes a shared one. */
static void seal(struct swap *w)
{
	int r;

	w->own = open(w->rq->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (w->own < 0)
		box_fail_errno(errno, "state directory: %s", w->rq->path);
	/* The last one may have died before it had done this, or be at it yet. */
	r = abx_fs_remove_tree(w->own, "work.old");
	if (r < 0)
		box_fail_errno(-r, "state directory: work.old");
	/* What the old root works with is of no use any more. */
	if (renameat(w->own, "work", w->own, "work.old") < 0 ||
	    renameat(w->own, "upper", w->store, w->plan.seal) < 0)
		box_fail_errno(errno, "state directory: %s", w->plan.seal);
}

static void take_points(struct swap *w)
{
	for (struct point *p = w->points; p < w->points + w->n_points; p++) {
		p->tree_fd = abx_open_tree(AT_FDCWD, p->path);
		if (p->tree_fd < 0)
			not_here(errno);
	}
}

/* What was mounted there is there, with the names that it had; never through a link. */
static void attach_points(const struct swap *w, int root)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS};

	for (const struct point *p = w->points; p < w->points + w->n_points; p++) {
		int at = (int)syscall(SYS_openat2, root, p->path + 1, &how, sizeof(how));

		if (at < 0 || abx_move_mount_fd(p->tree_fd, at) < 0)
			box_fail_errno(errno, "mount %.256s again", p->path);
		(void)close(at);
		(void)close(p->tree_fd);
	}
}

static int make_new_root(const struct swap *w)
{
	struct box_store st;
	int tree;

	box_store_open(&st, w->rq->path, &w->plan);
	box_mount_layers(&st, w->skeleton);
	tree = abx_open_tree(AT_FDCWD, ".");
	if (tree < 0)
		box_fail_errno(errno, "root of the box");
	if (!w->plan.image)
		box_ignore_file_capabilities(tree);
	box_store_close(&st);
	return tree;
}

static void enter(struct swap *w)
{
	join(LB_FD_BOX, CLONE_NEWUSER);
	box_become_root(w->rq->h.flags & LB_F_SINGLE_ID);
	if (fchdir(LB_FD_CONTROL) < 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		not_here(errno);
	w->outside = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	w->store = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (w->outside < 0 || w->store < 0)
		not_here(errno);
	join(LB_SWAP_NS_FD, CLONE_NEWNS);
}

void box_op_swap(const struct box_req *rq)
{
	const struct timespec later = {.tv_nsec = LET_GO_AFTER_NS};
	struct swap w = {.rq = rq};
	int root;

	(void)umask(0);
	box_plan_parse(rq, &w.plan);
	if (!w.plan.seal)
		box_fail(ABX_EPROTO, NULL, "helper: malformed request");
	load_entries(&w);
	find_points(&w);
	enter(&w);
	take_points(&w);
	forbid_writing(&w);
	go_outside(&w);
	seal(&w);
	root = make_new_root(&w);
	join(LB_SWAP_NS_FD, CLONE_NEWNS);
	change_root(root);
	attach_points(&w, root);
	leave_old_root();
	if (ftruncate(LB_FD_LIVE, 0) < 0)
		box_fail_errno(errno, "root of the box");
	(void)close(LB_FD_LIVE);
	box_send_kind(LB_MSG_DONE, 0);
	/*
	 * From here on nobody waits for it.  But what comes next, a fork's new box, would feel
	 * it when the old root goes: with 20,000 files in memory that keeps a processor, and the
	 * caches of its neighbour, for 10 ms.  So that root, which our descriptors keep, goes
	 * later.
	 */
	(void)abx_fs_remove_tree(w.own, "work.old");
	(void)nanosleep(&later, NULL);
	_exit(0);
}
