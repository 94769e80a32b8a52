/* SPDX-License-Identifier: MIT */
/* agentbox-local-tar: tar streams in and out of a box. */
#include "providers/local/tar.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A directory on PATH of its own is entered first: what is in the stream cannot move it. */
static int put(const struct box_req *rq)
{
	struct tar_unpack u = {
		.size_bytes = rq->h.size_bytes,
		.keep_owner = rq->h.flags & LB_F_KEEP_OWNER,
		.begun = rq->h.flags & LB_F_REST,
		.what = rq->path,
	};

	box_enter_target(rq);
	box_send_kind(LB_MSG_DONE, tar_unpack(&u));
	return 0;
}

static int get(const struct box_req *rq)
{
	char *copy = box_strdup(rq->path), *name;
	struct stat st;

	if (rq->path[0] != '/')
		box_fail(ABX_EINVAL, NULL, "get: %.512s: not an absolute path", rq->path);
	/* A link on the command line means what it leads to, when that is a directory. */
	if (stat(copy, &st) < 0 && lstat(copy, &st) < 0)
		box_fail_errno(errno, "get: %.512s", rq->path);
	if (S_ISDIR(st.st_mode)) {
		if (chdir(copy) < 0)
			box_fail_errno(errno, "get: %.512s", rq->path);
		tar_pack(NULL, false, rq->path);
	} else {
		name = strrchr(copy, '/');
		*name++ = '\0';
		if (!*name || chdir(*copy ? copy : "/") < 0)
			box_fail_errno(*name ? errno : EINVAL, "get: %.512s", rq->path);
		tar_pack(name, false, rq->path);
	}
	box_send_kind(LB_MSG_DONE, 0);
	free(copy);
	return 0;
}

/* In a user namespace with the ids of boxes, and confined to the new image. */
static int unpack_image(const struct box_req *rq)
{
	struct tar_unpack u = {
		.size_bytes = -1,
		.keep_owner = rq->h.map != LB_MAP_SINGLE,
		.is_image = true,
		.what = rq->path,
	};

	(void)umask(0);
	if (fchdir(LB_FD_BOX) < 0 || mkdir("root", 0755) < 0 || chroot("root") < 0 ||
	    chdir("/") < 0)
		box_fail_errno(errno, "image: state directory");
	(void)close(LB_FD_BOX);
	box_send_kind(LB_MSG_DONE, tar_unpack(&u));
	return 0;
}

static _Noreturn void pack_image(const struct box_req *rq)
{
	if (fchdir(LB_FD_BOX) < 0)
		box_fail_errno(errno, "image: %.512s", rq->path);
	tar_pack(NULL, true, rq->path);
	box_send_kind(LB_MSG_DONE, 0);
	_exit(0);
}

int main(void)
{
	struct box_req rq;

	box_harden();
	/* Loaded here, before a box is entered.  Without a UTF-8 locale libarchive would
	 * rewrite names in pax headers that are not ASCII. */
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		(void)setlocale(LC_CTYPE, "C");
	box_req_load(&rq);
	switch (rq.h.op) {
	case LB_OP_PUT_TAR:
		box_serve(&rq, put);
	case LB_OP_GET_TAR:
		box_serve(&rq, get);
	case LB_OP_UNPACK:
		_exit(box_in_userns(&rq, unpack_image) == 0 ? 0 : 1);
	case LB_OP_PACK:
		pack_image(&rq);
	default:
		box_fail(ABX_EPROTO, "install plugin and helpers of one version",
			 "helper: unknown request %u", rq.h.op);
	}
}
