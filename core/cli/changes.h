/* SPDX-License-Identifier: MIT */
/* core/cli/changes.h: what diff and download share: a box that runs, and what to compare. */
#ifndef ABX_CHANGES_H
#define ABX_CHANGES_H

#include "core/cli/cmd.h"
#include "core/seed/back.h"

struct abx_changes_session {
	struct abx_box box;
	struct abx_cloud *cloud;
	struct abx_call_opts opts;
	struct abx_sandbox sandbox;
	struct abx_back back;
	char *manifest;
};

/* Find the box and start it if need be.  workspace NULL: where the box came from. */
int abx_changes_open(struct abx_cli *cli, const char *what, const char *workspace,
		     struct abx_changes_session *ret, struct abx_err *err);
void abx_changes_close(struct abx_changes_session *s);

cJSON *abx_changes_json(const struct abx_changes *changes);

#endif
