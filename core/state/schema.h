/* SPDX-License-Identifier: MIT */
/*
 * core/state/schema.h: the tables of agentbox.db and how they came to be.
 *
 * The schema version is SQLite's user_version.  Migrations are an ordered list that is only
 * ever appended to; each runs in a transaction of its own together with its new version, so
 * that an interrupted one has not happened.
 */
#ifndef ABX_SCHEMA_H
#define ABX_SCHEMA_H

#include "core/state/db.h"

/* The version that this program knows. */
int64_t abx_schema_version(void);
int abx_schema_read_version(struct abx_db *db, int64_t *ret, struct abx_err *err);
/* Bring an older database to it; call it under abx_lock_home().  A new one gets `uuid` as its
 * install.  A database that holds tables but no version is not ours: ABX_ECORRUPT. */
int abx_schema_migrate(struct abx_db *db, const char *uuid, struct abx_err *err);

#endif
