/* SPDX-License-Identifier: MIT */
/*
 * The print of a tree, by a list that was kept of its directories and files.
 *
 * Each is looked at, by the time at which the kernel noticed its last change, which nobody can
 * set.  While those of the directories stay, there are no names but those of the list.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "abxsdk/buf.h"
#include "abxsdk/fs.h"
#include "providers/local/print.h"

#define LIST_MAX_BYTES ((size_t)4 << 20)
#define NEW_NAME "list.new"

struct head {
	struct local_print tree;  /* what it is all about */
	struct local_print exact; /* of the files and directories, and of it */
};

struct listing {
	struct abx_buf text; /* struct head, then each name with a NUL */
	struct local_print exact;
	time_t newest;
	bool failed;
};

static void add_head(struct local_print *exact, const struct local_print *tree)
{
	const struct stat nothing = {.st_mode = 0};
	char text[LOCAL_PRINT_TEXT];

	local_print_text(tree, text);
	local_print_exact(exact, text, &nothing);
}

static int64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* The time of a list is when the last look at the tree began. */
static void stamp(int fd, int64_t begun_ns)
{
	const struct timespec t = {.tv_sec = begun_ns / INT64_C(1000000000),
				   .tv_nsec = begun_ns % INT64_C(1000000000)};
	const struct timespec times[2] = {t, t};

	(void)futimens(fd, times);
}

/* Seen by somebody since then, unless the clock was set back. */
static bool was_seen_since(int fd, int64_t since_ns, int64_t begun_ns)
{
	struct stat st;
	int64_t seen;

	if (fstat(fd, &st) < 0)
		return false;
	seen = (int64_t)st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
	return seen > since_ns && seen <= begun_ns;
}

static bool is_as_listed(int tree_fd, const struct abx_buf *b, bool look, struct local_print *ret)
{
	struct local_print exact = LOCAL_PRINT_INIT;
	struct head head;
	struct stat st;

	if (b->len <= sizeof(head) || b->data[b->len - 1] != '\0')
		return false;
	memcpy(&head, b->data, sizeof(head));
	if (!look) {
		*ret = head.tree;
		return true;
	}
	for (const char *name = b->data + sizeof(head); name < b->data + b->len;
	     name += strlen(name) + 1) {
		if (fstatat(tree_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return false;
		local_print_exact(&exact, name, &st);
	}
	add_head(&exact, &head.tree);
	if (exact.a != head.exact.a || exact.b != head.exact.b)
		return false;
	*ret = head.tree;
	return true;
}

static void list_one(void *ctx, const char *path, const struct stat *st)
{
	struct listing *l = ctx;

	if (!path) {
		l->failed = true;
		return;
	}
	abx_buf_add(&l->text, path, strlen(path) + 1);
	local_print_exact(&l->exact, path, st);
	if (st->st_ctim.tv_sec > l->newest)
		l->newest = st->st_ctim.tv_sec;
}

static bool is_kept(int tree_fd, int keep_fd, const char *list, int64_t since_ns, int64_t begun_ns,
		    struct local_print *ret)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(LIST_MAX_BYTES);
	abx_autoclose int fd = openat(keep_fd, list, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	bool look;

	if (fd < 0 || abx_buf_read_fd(&b, fd) < 0)
		return false;
	look = !was_seen_since(fd, since_ns, begun_ns);
	if (!is_as_listed(tree_fd, &b, look, ret))
		return false;
	if (look)
		stamp(fd, begun_ns);
	return true;
}

/* It only saves time: whatever fails, there is none.  Of several at once, one writes. */
static void keep(int keep_fd, const char *list, const struct listing *l, int64_t begun_ns)
{
	abx_autoclose int fd =
		openat(keep_fd, NEW_NAME, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat own, named;

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &own) < 0 ||
	    fstatat(keep_fd, NEW_NAME, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
	    own.st_ino != named.st_ino)
		return;
	if (ftruncate(fd, 0) < 0 || abx_fs_write_all(fd, l->text.data, l->text.len) < 0) {
		(void)unlinkat(keep_fd, NEW_NAME, 0);
		return;
	}
	stamp(fd, begun_ns);
	(void)renameat(keep_fd, NEW_NAME, keep_fd, list);
}

void local_print_tree(struct local_print *p, const char *tree, int keep_fd, const char *list,
		      int settled_s, int64_t since_ns)
{
	abx_autoclose int tree_fd = open(tree, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct listing l = {.text = ABX_BUF_INIT(LIST_MAX_BYTES), .exact = LOCAL_PRINT_INIT};
	struct local_print found = LOCAL_PRINT_INIT;
	struct head head = {.tree = LOCAL_PRINT_INIT};
	const int64_t begun_ns = now_ns();

	if (tree_fd < 0 || !is_kept(tree_fd, keep_fd, list, since_ns, begun_ns, &found)) {
		abx_buf_add(&l.text, &head, sizeof(head));
		local_print_walk(&found, AT_FDCWD, tree, list_one, &l);
		head.tree = found;
		add_head(&l.exact, &found);
		head.exact = l.exact;
		if (!l.failed && !l.text.failed &&
		    l.newest < begun_ns / INT64_C(1000000000) - settled_s) {
			memcpy(l.text.data, &head, sizeof(head));
			keep(keep_fd, list, &l, begun_ns);
		}
	}
	p->a += found.a;
	p->b += found.b;
	abx_buf_release(&l.text);
}
