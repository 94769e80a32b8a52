/* SPDX-License-Identifier: MIT */
/*
 * core/util/landing.h: files that appear in a directory whole or not at all, whenever we die.
 *
 *	struct abx_landing l = ABX_LANDING_INIT;
 *
 *	l.notes = "/root/.agentbox/landing";
 *	r = abx_landing_begin(&l, dirfd, 0644);
 *	r = abx_fs_write_all(l.fd, data, len);
 *	r = abx_landing_land(&l, "name");
 *	...
 *	abx_landing_close(&l);
 *
 * A file waits without a name, and what is new gets its own.  Only what replaces another, and all
 * on a file system that knows no files without a name, has a second one for a while; that is
 * written down first, in a file of `notes` that is locked while its process lives.  Whoever comes
 * after a dead one removes what it names.
 *
 * Functions return 0 or -errno.
 */
#ifndef ABX_LANDING_H
#define ABX_LANDING_H

#include <stdbool.h>
#include <sys/types.h>

struct abx_landing {
	const char *notes; /* a private directory, made when it is needed; NULL: write nothing */
	int fd;		   /* the file under way, for writing; or -1 */
	int dirfd;	   /* where it lands */
	int own_dirfd;	   /* to be closed with it, or -1 */
	bool named;	   /* it waits as `tmp` */
	char tmp[40];
	char *note; /* its path, or NULL */
	int note_fd;
};
#define ABX_LANDING_INIT                                              \
	{                                                             \
		.fd = -1, .dirfd = -1, .own_dirfd = -1, .note_fd = -1 \
	}

/* One at a time.  `dirfd` is borrowed until the file has landed or is dropped. */
int abx_landing_begin(struct abx_landing *l, int dirfd, mode_t mode);
/* In the directory of `path`, whose last component is the name that it is to land as. */
int abx_landing_begin_at(struct abx_landing *l, const char *path, mode_t mode,
			 const char **ret_name);
/* What `name` was is replaced; a link is not followed.  On failure the file is dropped. */
int abx_landing_land(struct abx_landing *l, const char *name);
/* Nothing happens when there is none. */
void abx_landing_drop(struct abx_landing *l);

/* The same for a symbolic link, and for one more name of a file. */
int abx_landing_symlink(struct abx_landing *l, const char *target, int dirfd, const char *name);
int abx_landing_link(struct abx_landing *l, int from_dirfd, const char *from, int dirfd,
		     const char *name);

/* Should we die from now on, `name` is no good unless `proof` is there as well. */
int abx_landing_unless(struct abx_landing *l, int dirfd, const char *name, const char *proof);

void abx_landing_close(struct abx_landing *l);

/* Remove what dead processes have left. */
void abx_landing_sweep(const char *notes);

#endif
