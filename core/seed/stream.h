/* SPDX-License-Identifier: MIT */
/*
 * core/seed/stream.h: an inspected workspace as one tar stream.
 *
 * First the files of the work tree, then `.git` (of a repository): so git pack-objects, which
 * inspecting started, has time until its pack is needed.  A file that changed since git looked
 * at it ends the stream with ABX_ESTATE and seed->moved; stream-file.h says what else does.
 */
#ifndef ABX_SEED_STREAM_H
#define ABX_SEED_STREAM_H

#include "core/seed/manifest.h"
#include "core/seed/seed.h"

struct abx_seed_stream {
	int fd;
	int stop_fd; /* readable: give up; -1 = never.  With it fd becomes non-blocking. */
	const char *branch;
	/* A file of this machine that travels along, first of all, under a name in the target
	 * directory that the project does not have; NULL: none. */
	const char *program, *program_name;
	bool last; /* there is no beginning again: carry also what changes all the time */
	abx_progress_fn progress;
	void *progress_ctx;
};

/* The caller blocks SIGPIPE.  `sent` gets every file and link. */
int abx_seed_write_stream(struct abx_seed *seed, const struct abx_seed_stream *stream,
			  struct abx_manifest *sent, struct abx_err *err);

#endif
