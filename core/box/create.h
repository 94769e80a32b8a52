/* SPDX-License-Identifier: MIT */
/*
 * core/box/create.h: making a box, as a journaled pipeline.
 *
 * Before a step touches anything outside this process a journal row says what is about to
 * exist; after it, a row says what does.  Killed anywhere, what remains is found by the
 * box's label and removed by the next create, by `recover` or by `prune`.
 */
#ifndef ABX_CREATE_H
#define ABX_CREATE_H

#include "core/box/app.h"
#include "core/box/spec.h"
#include "core/checkpoint/checkpoint.h"
#include "core/seed/seed.h"
#include "core/state/envfile.h"

struct abx_create {
	const char *workspace;	   /* as the user wrote it; NULL = the current directory */
	const char *name;	   /* NULL: one is made up */
	const char *provider;	   /* NULL: as configured */
	const char *image;	   /* NULL: what is prepared, or the provider's own base */
	const char *setup;	   /* shell script run in the workspace; NULL: as configured */
	const struct abx_env *env; /* of every command in the box; may be NULL */
	/* Not the project as it is: a checkpoint of the project, or the provider's name of a
	 * snapshot.  The workspace is what that had. */
	const char *snapshot;
	/* The same for a fork, whose setup is done already and which is given what its source was;
	 * and the file that says what was sent into its source. */
	const struct abx_checkpoint *from;
	const char *from_seed;
	/* A sandbox that is there already, by its id, to be used and left as it is; may be NULL. */
	const char *sandbox_id;
	int64_t timeout_ms;		  /* life of the box; 0 = the provider's own */
	bool has_timeout;		  /* otherwise as configured */
	const struct abx_spec_args *spec; /* network, limits, mounts, ...; may be NULL */
	struct abx_seed_options seed;	  /* depth 0, no include_ignored: as configured */
	/* A provider that is not on this machine is about to be sent so much: say it.  With
	 * `largest` it is more than box.max_seed: a negative code ends it.  NULL: nothing is
	 * said, and too much is refused. */
	int (*amount)(void *ctx, const struct abx_seed_info *info, const char *largest,
		      struct abx_err *err);
	void *amount_ctx;
	/* What is said while an image is made that all boxes of a provider boot from; may be
	 * NULL. */
	const struct abx_log_sink *build_log;
	/* Several boxes of this request: what it looked at.  NULL: each box looks for itself. */
	struct abx_create_look *look;
};

/* What travelled: nothing, for a box from a snapshot. */
struct abx_created {
	uint64_t files, bytes;
	uint64_t commits;      /* where history was cut; 0: all */
	struct abx_strv notes; /* lines for people; the caller's */
	/* What stayed here: ignored files and directories; sockets, FIFOs and devices. */
	uint64_t ignored, skipped;
	char ignored_names[256], skipped_name[256]; /* the first of them, printable */
};

/* For several boxes of one request, on several threads: refuses what would be refused before
 * anything is made, and looks at the workspace once, on a thread of its own.  Lives, as `app` and
 * what `req` points to do, until all boxes are made. */
struct abx_create_look;
int abx_create_look(struct abx_app *app, const struct abx_create *req, struct abx_create_look **ret,
		    struct abx_err *err);
/* Are they boxes of this machine, so that making them is work for it? */
bool abx_create_look_is_here(const struct abx_create_look *look);
void abx_create_look_free(struct abx_create_look *look);

/* On success the box runs and its record is complete.  On failure nothing is left, or what
 * is left is recorded and the error says how to remove it. */
int abx_create_box(struct abx_app *app, const struct abx_create *req, struct abx_box *ret,
		   struct abx_created *ret_created, struct abx_err *err);

/* "28 files, 6.9 MiB, and 2.3 MiB of history"; to be freed. */
char *abx_amount_text(const struct abx_seed_info *info);
/* The refusal of too much, ABX_EPOLICY. */
int abx_create_too_large(const struct abx_seed_info *info, const char *largest,
			 struct abx_err *err);

#endif
