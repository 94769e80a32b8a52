/* SPDX-License-Identifier: MIT */
/*
 * core/state/labels.h: the labels on everything that exists because of us.
 *
 * They are how a lost object is found again, and how an object of somebody else's is told
 * from ours: nothing without this install's label is ever touched.
 */
#ifndef ABX_LABELS_H
#define ABX_LABELS_H

#include "core/state/boxes.h"

#define ABX_LABEL_MARK "agentbox"
#define ABX_LABEL_INSTALL "agentbox.install"
#define ABX_LABEL_BOX "agentbox.box"
#define ABX_LABEL_NAME "agentbox.name"
#define ABX_LABEL_ATTEMPT "agentbox.attempt"

#define ABX_N_LABELS 5

/* All of a box's; pointers into `db` and `box`. */
void abx_labels_of_box(const struct abx_db *db, const struct abx_box *box,
		       struct abx_kv ret[ABX_N_LABELS]);
/* Of a snapshot taken of a box; `name` is the checkpoint's, "" when it has none. */
void abx_labels_of_snapshot(const struct abx_db *db, const char *box_id, const char *name,
			    const char *attempt, struct abx_kv ret[ABX_N_LABELS]);
/* What finds everything of this install: the first two. */
#define ABX_N_INSTALL_LABELS 2
void abx_labels_of_install(const struct abx_db *db, struct abx_kv ret[ABX_N_INSTALL_LABELS]);

#endif
