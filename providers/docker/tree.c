/* SPDX-License-Identifier: MIT */
/* Trees in and out of a box, as tar streams, by its own tar. */
#include <string.h>

#include "providers/docker/docker.h"
#include "providers/docker/move.h"

/* $1 directory, $2 "p" when it is to be made, $3 whose files they are to be. */
static const char unpack_script[] = "[ -z \"$2\" ] || mkdir -p -- \"$1\" || exit 1\n"
				    "cd -- \"$1\" || exit 44\n"
				    "exec tar -x -p \"$3\" -f -\n";

/* $1 a directory, whose contents it is, or something else, which it is itself. */
static const char pack_script[] = "if [ -d \"$1\" ]; then cd -- \"$1\" && exec tar -c -f - .; fi\n"
				  "[ -e \"$1\" ] || [ -L \"$1\" ] || exit 44\n"
				  "case $1 in */*) d=${1%/*} ;; *) d=. ;; esac\n"
				  "cd -- \"${d:-/}\" && exec tar -c -f - \"./${1##*/}\"\n";

int32_t docker_put_tar(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		       const struct abx_transfer *t)
{
	const char *const argv[] = {"/bin/sh",
				    "-c",
				    unpack_script,
				    "agentbox",
				    t->path,
				    t->flags & ABX_XFER_CREATE_PARENTS ? "p" : "",
				    t->flags & ABX_XFER_NO_OWNER ? "--same-owner" : "-o",
				    NULL};
	struct docker_move m = {.call = call, .out = -1, .what = "put_tar"};

	m.argv = argv;
	m.in = t->fd;
	m.in_bytes = t->size_bytes;
	return docker_move(s, sb, t, &m);
}

int32_t docker_get_tar(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		       const struct abx_transfer *t)
{
	const char *const argv[] = {"/bin/sh", "-c", pack_script, "agentbox", t->path, NULL};
	struct docker_move m = {.call = call, .out = t->fd, .in = -1, .what = "get_tar"};

	m.argv = argv;
	return docker_move(s, sb, t, &m);
}
