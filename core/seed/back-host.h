/* SPDX-License-Identifier: MIT */
/*
 * core/seed/back-host.h: may a change of the box land on this machine?
 *
 * Judged by the manifest and the file that is there now, never by what the box says of them.
 */
#ifndef ABX_BACK_HOST_H
#define ABX_BACK_HOST_H

#include "core/seed/back-list.h"
#include "core/seed/manifest.h"

struct abx_back_host {
	int root_fd; /* the workspace */
	const struct abx_manifest *sent;
	/* Deletions of this list have not happened yet: a file where a directory must come is
	 * in nobody's way when it goes.  NULL: the disk is as it is. */
	const struct abx_changes *pending;
};

/* Sets c->problem when it may not.  Returns true when there is something to do: no problem,
 * and the host does not have the box's version already. */
bool abx_back_judge(const struct abx_back_host *h, struct abx_change *c);

/* git's id of a file or link below dirfd; -errno. */
int abx_blob_id_of(int dirfd, const char *name, const struct stat *st,
		   char oid[ABX_SHA1_HEX_BYTES]);

#endif
