/* SPDX-License-Identifier: MIT */
/*
 * core/state/attempt.h: making something outside that belongs to no box: a snapshot, an
 * image, a volume.
 *
 *	r = abx_attempt_begin(home, db, &what, &a, err);     on record, before it exists
 *	opts.attempt = a.id;                                 and a label of the request
 *	r = abx_cloud_snapshot_create(...);                  its id is recorded when it is known
 *	... write the file that says that we have it ...
 *	r = abx_attempt_keep(home, db, &a, err);             now the file speaks for it
 *	abx_attempt_end(home, db, &a, surely_not_made);      always
 *
 * `what.record` names that file, below the home.  After a crash at any point, whoever finds
 * the row of an attempt that nobody is at work on looks there: a JSON file that names the
 * object (or the attempt) keeps it, otherwise it is found by its id or label and deleted.
 */
#ifndef ABX_ATTEMPT_H
#define ABX_ATTEMPT_H

#include "core/state/journal.h"

struct abx_attempt_of {
	const char *provider, *kind; /* "snapshot", "image", "volume" */
	const char *name;
	const char *record; /* NULL: none is written, the provider's own list is enough */
};

struct abx_attempt {
	char id[17]; /* 16 hexadecimal digits; a label on what is made */
	int lock;
};
#define ABX_ATTEMPT_INIT       \
	{                      \
		"", .lock = -1 \
	}

int abx_attempt_begin(const struct abx_home *home, struct abx_db *db,
		      const struct abx_attempt_of *what, struct abx_attempt *ret,
		      struct abx_err *err);
/* It is made, and what says so is written: nothing is left to clear up. */
int abx_attempt_keep(struct abx_db *db, const struct abx_attempt *a, struct abx_err *err);
/* Let go of it.  gone: nothing was made, or it is deleted again. */
void abx_attempt_end(const struct abx_home *home, struct abx_db *db, struct abx_attempt *a,
		     bool gone);

/* Does the file that a row names speak for what the row is about? */
bool abx_attempt_is_kept(const struct abx_home *home, const struct abx_resource_row *row);

#endif
