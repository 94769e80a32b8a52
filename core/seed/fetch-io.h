/* SPDX-License-Identifier: MIT */
/*
 * core/seed/fetch-io.h: the parts of fetching commits; fetch.h has the cloud's.
 */
#ifndef ABX_FETCH_IO_H
#define ABX_FETCH_IO_H

#include "core/seed/box-io.h"
#include "core/seed/fetch.h"
#include "core/seed/git.h"
#include "core/seed/layout.h"

int abx_fetch_io(const struct abx_box_io *io, const struct abx_fetch_ask *ask,
		 struct abx_fetched *ret, struct abx_err *err);

/* fetch-read.c: what the box says, fed in pieces of any size.  The pack of the n-th repository
 * is <spool>/<n>.pack. */
struct abx_fetch_reader {
	const struct abx_fetch_ask *ask;
	struct abx_fetched *out;
	struct abx_err *err;
	struct abx_buf field;
	char *fields[9];
	unsigned int n_fields;
	uint64_t left, bytes; /* of the pack that comes; so far */
	int fd;
	bool ended;
};
void abx_fetch_reader_init(struct abx_fetch_reader *r, const struct abx_fetch_ask *ask,
			   struct abx_fetched *out, struct abx_err *err);
int abx_fetch_reader_feed(void *reader, const void *data, size_t len);
/* ABX_EPROTO unless all came. */
int abx_fetch_reader_end(struct abx_fetch_reader *r);
void abx_fetch_reader_release(struct abx_fetch_reader *r);

/* A repository of this machine, and git with a quarantine for it below `spool`. */
struct abx_fetch_host {
	char *work, *spool;
	struct abx_git_place place;
	struct abx_git git;
};
/* ABX_ENOTFOUND where there is none.  path: in the workspace. */
int abx_fetch_host_open(const char *workspace, const char *path, const char *spool,
			struct abx_fetch_host *ret, struct abx_err *err);
void abx_fetch_host_close(struct abx_fetch_host *h);
/* Is it a commit that this repository has? */
bool abx_fetch_has(const struct abx_fetch_host *h, const char *id);

/* fetch-land.c: the pack in file `pack` (NULL: none) into the quarantine, and proof that `id`
 * is a commit of which nothing is missing; then into the repository. */
int abx_fetch_check(const struct abx_fetch_host *h, const char *pack, const char *id,
		    struct abx_err *err);
int abx_fetch_land(const struct abx_fetch_host *h, const char *notes, struct abx_err *err);

/* fetch-ref.c: may the ref become `repo->new_id`?  Sets old_id and result. */
int abx_fetch_ref_judge(const struct abx_fetch_host *h, const struct abx_fetch_ask *ask,
			struct abx_fetched_repo *repo, struct abx_err *err);
int abx_fetch_ref_look(const struct abx_fetch_host *h, const struct abx_fetch_ask *ask,
		       struct abx_fetched_repo *repo, struct abx_err *err);
int abx_fetch_ref_write(const struct abx_fetch_host *h, const struct abx_fetch_ask *ask,
			const struct abx_fetched_repo *repo, struct abx_err *err);

#endif
