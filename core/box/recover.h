/* SPDX-License-Identifier: MIT */
/*
 * core/box/recover.h: what dead processes left behind.
 *
 * A record with an operation pending while its lock is free was abandoned.  A sandbox with
 * this install's label but without a record is an orphan.  Directories in the home that
 * belong to no box are litter.  Sandboxes of other installs are never touched.
 */
#ifndef ABX_RECOVER_H
#define ABX_RECOVER_H

#include "core/box/app.h"

struct abx_leftover {
	enum abx_leftover_kind {
		ABX_LEFT_BOX,
		ABX_LEFT_SANDBOX,
		ABX_LEFT_FILES,
		ABX_LEFT_SNAPSHOT,
		ABX_LEFT_IMAGE,
		ABX_LEFT_RESOURCE,
	} kind;
	char *provider, *name, *id; /* name may be NULL */
	char *box_id;		    /* of a sandbox, as its label says; or NULL */
	char *done;		    /* "removed", "recovered", or NULL: nothing was done */
	char *problem;
};
struct abx_leftovers {
	struct abx_leftover *items;
	size_t len;
	size_t n_unreachable; /* providers that could not be asked; warned about */
};
void abx_leftovers_release(struct abx_leftovers *l);
struct abx_leftover *abx_leftovers_add(struct abx_leftovers *l, enum abx_leftover_kind kind,
				       const char *provider, const char *name, const char *id);
/* What came of it: `done`, or what `err` says when r is negative. */
void abx_leftover_settle(struct abx_leftover *one, int r, const char *done,
			 const struct abx_err *err);

enum abx_recover_mode {
	ABX_RECOVER_LOOK,  /* only find */
	ABX_RECOVER_PRUNE, /* remove all of it */
	ABX_RECOVER_ADOPT, /* give orphans a record again, remove the rest */
};

int abx_recover(struct abx_app *app, enum abx_recover_mode mode, const char *provider,
		struct abx_leftovers *ret, struct abx_err *err);

/* Before a new create: quietly finish what is abandoned at this provider. */
void abx_recover_abandoned(struct abx_app *app, const char *provider);

/*
 * What was being made outside of any box (core/state/attempt.h) by somebody who died: dropped
 * from the record where a file keeps it, deleted otherwise.  One that its provider does not let
 * go of yet, because boxes need it, stays on record and is not reported.
 */
int abx_recover_attempts(struct abx_app *app, enum abx_recover_mode mode, const char *provider,
			 struct abx_leftovers *ret, struct abx_err *err);

#endif
