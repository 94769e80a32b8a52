/* SPDX-License-Identifier: MIT */
/* Overlays of what a box writes over what it and others have written before. */
#include "providers/local/box.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* mount() reads one page of options; what is longer fails, and does not lose layers. */
#define OPTIONS_MAX 4096

struct options {
	char text[OPTIONS_MAX];
	size_t len;
};

static __attribute__((format(printf, 2, 3))) void add(struct options *o, const char *fmt, ...)
{
	size_t room = sizeof(o->text) - o->len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(o->text + o->len, room, fmt, ap);
	va_end(ap);
	o->len = n < 0 || (size_t)n >= room ? sizeof(o->text) : o->len + (size_t)n;
}

static void make_directory(int at, const char *name)
{
	if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
		box_fail_errno(errno, "state directory: layer %s", name);
}

void box_store_open(struct box_store *st, const char *own, const struct box_plan *plan)
{
	st->plan = plan;
	st->fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	st->layers_fd = openat(st->fd, own, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (st->fd < 0 || st->layers_fd < 0)
		box_fail_errno(errno, "state directory: %s", own);
	make_directory(st->layers_fd, "upper");
	make_directory(st->layers_fd, "work");
}

void box_store_close(struct box_store *st)
{
	(void)close(st->layers_fd);
	(void)close(st->fd);
}

/* A top of the writable layer looks as it did in the layer below: an overlay shows the
 * attributes of its uppermost directory. */
static void make_top(const struct box_store *st, const char *upper, const char *below)
{
	static const char made[] = "work/new-top";
	struct stat like;

	if (faccessat(st->layers_fd, upper, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return;
	make_directory(st->layers_fd, made);
	if (*below &&
	    (fstatat(st->fd, below, &like, AT_SYMLINK_NOFOLLOW) < 0 ||
	     fchownat(st->layers_fd, made, like.st_uid, like.st_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
	     fchmodat(st->layers_fd, made, like.st_mode & 07777, 0) < 0))
		box_fail_errno(errno, "state directory: layer %s", upper);
	if (renameat(st->layers_fd, made, st->layers_fd, upper) < 0)
		box_fail_errno(errno, "state directory: layer %s", upper);
}

int box_layer_mount(const struct box_store *st, const char *target, const char *top,
		    const char *lowest)
{
	struct options o = {.len = 0};
	char upper[64], work[64], path[128], topmost[128] = "";

	(void)snprintf(upper, sizeof(upper), "upper/%s", top);
	(void)snprintf(work, sizeof(work), "work/%s", top);
	/* An old root may not have gone yet whose upper directory, which it cannot write to any
	 * more, is the layer below: with an index the kernel would refuse that. */
	add(&o,
	    "userxattr,index=off,upperdir=/proc/self/fd/%d/%s,workdir=/proc/self/fd/%d/%s,"
	    "lowerdir=",
	    st->layers_fd, upper, st->layers_fd, work);
	for (size_t i = 0; i < st->plan->n_layers; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", st->plan->layers[i], top);
		if (faccessat(st->fd, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
			/* A layer that is gone must not look like one that wrote nothing. */
			if (faccessat(st->fd, st->plan->layers[i], F_OK, 0) < 0)
				box_fail_errno(errno, "state directory: %s", st->plan->layers[i]);
			continue;
		}
		if (!*topmost)
			(void)snprintf(topmost, sizeof(topmost), "%s", path);
		add(&o, "/proc/self/fd/%d/%s:", st->fd, path);
	}
	add(&o, "%s", lowest);
	if (o.len >= sizeof(o.text))
		return ENAMETOOLONG;
	make_top(st, upper, topmost);
	make_directory(st->layers_fd, work);
	return mount("overlay", target, "overlay", MS_NODEV, o.text) < 0 ? errno : 0;
}
