/* SPDX-License-Identifier: MIT */
/*
 * core/state/journal.h: what is about to exist, and what does.
 *
 * Before a step touches anything outside this process, a row says so; after it, a row says
 * what came of it.  Whoever finds a box with a pending operation and a free lock reads here
 * how far it came.  Resources are the objects beside the sandbox that a provider announced.
 */
#ifndef ABX_JOURNAL_H
#define ABX_JOURNAL_H

#include "core/state/boxes.h"

enum abx_journal_phase {
	ABX_JOURNAL_INTENT = 1,
	ABX_JOURNAL_DONE = 2,
	ABX_JOURNAL_FAILED = 3,
};

struct abx_journal_row {
	int64_t seq, at_ms;
	char *box_id, *op, *step, *detail;
	enum abx_journal_phase phase;
};
struct abx_journal_rows {
	struct abx_journal_row *items;
	size_t len;
};
void abx_journal_rows_release(struct abx_journal_rows *rows);

/* op "create" or "destroy"; step "reserve", "provision", "seed", "setup", ...; detail may be
 * NULL and is redacted. */
int abx_journal_add(struct abx_db *db, const char *box_id, const char *op, const char *step,
		    enum abx_journal_phase phase, const char *detail, struct abx_err *err);
int abx_journal_list(struct abx_db *db, const char *box_id, struct abx_journal_rows *ret,
		     struct abx_err *err);

struct abx_resource_row {
	int64_t seq;
	char *box_id, *provider, *kind, *id, *name, *sandbox_id;
	char *attempt, *record; /* core/state/attempt.h; NULL for what belongs to a box */
	uint32_t phase;		/* ABX_PHASE_INTENT or ABX_PHASE_EXISTS; gone ones are deleted */
};
struct abx_resource_rows {
	struct abx_resource_row *items;
	size_t len;
};
void abx_resource_rows_release(struct abx_resource_rows *rows);

/* box_id may be NULL for what belongs to no box.  EXISTS fills in the id of the INTENT row
 * with the same kind and name; GONE deletes. */
int abx_resources_note(struct abx_db *db, const char *provider, const char *box_id,
		       const struct abx_resource *res, uint32_t phase, struct abx_err *err);
/* The same for what an attempt makes outside of any box; attempt may be NULL. */
int abx_resources_note_of(struct abx_db *db, const char *provider, const char *box_id,
			  const char *attempt, const struct abx_resource *res, uint32_t phase,
			  struct abx_err *err);
/* What the attempt was begun for exists now, and this is its id. */
int abx_resources_made(struct abx_db *db, const char *attempt, const char *id, struct abx_err *err);
/* box_id NULL: all of the provider; provider NULL: all. */
int abx_resources_list(struct abx_db *db, const char *provider, const char *box_id,
		       struct abx_resource_rows *ret, struct abx_err *err);

#endif
