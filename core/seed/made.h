/* SPDX-License-Identifier: MIT */
/*
 * core/seed/made.h: files that a checkout makes otherwise than git keeps them: line ends, ident,
 * encodings.
 *
 * The box checks a commit out by the attributes of that and the settings that it is given; the
 * same is done here, in the spool, to know the contents that its files will have.
 */
#ifndef ABX_SEED_MADE_H
#define ABX_SEED_MADE_H

#include "core/seed/seed-state.h"

/* Sets r->made, sorted by entry.  Config, attributes and index of r are known; r->git is told of
 * that index. */
int abx_seed_find_made(struct abx_seed_repo *r, struct abx_err *err);

/* The id of the content that entry i of the index will have, or NULL: that of its blob. */
const char *abx_seed_made_of(const struct abx_seed_repo *r, size_t entry);

#endif
