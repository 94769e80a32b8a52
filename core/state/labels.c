/* SPDX-License-Identifier: MIT */
/* The labels on everything that exists because of us. */
#include "core/state/labels.h"

void abx_labels_of_install(const struct abx_db *db, struct abx_kv ret[ABX_N_INSTALL_LABELS])
{
	ret[0] = (struct abx_kv){ABX_LABEL_MARK, "true"};
	ret[1] = (struct abx_kv){ABX_LABEL_INSTALL, db->install};
}

void abx_labels_of_box(const struct abx_db *db, const struct abx_box *box,
		       struct abx_kv ret[ABX_N_LABELS])
{
	abx_labels_of_install(db, ret);
	ret[2] = (struct abx_kv){ABX_LABEL_BOX, box->id};
	ret[3] = (struct abx_kv){ABX_LABEL_NAME, box->name};
	ret[4] = (struct abx_kv){ABX_LABEL_ATTEMPT, box->attempt};
}

void abx_labels_of_snapshot(const struct abx_db *db, const char *box_id, const char *name,
			    const char *attempt, struct abx_kv ret[ABX_N_LABELS])
{
	abx_labels_of_install(db, ret);
	ret[2] = (struct abx_kv){ABX_LABEL_BOX, box_id};
	ret[3] = (struct abx_kv){ABX_LABEL_NAME, name};
	ret[4] = (struct abx_kv){ABX_LABEL_ATTEMPT, attempt};
}
