/* SPDX-License-Identifier: MIT */
/* core/cli/changes.h: what diff and download share: a box that runs, and what to compare. */
#ifndef ABX_CHANGES_H
#define ABX_CHANGES_H

#include "core/cli/cmd.h"
#include "core/seed/back.h"

struct abx_changes_session {
	struct abx_cloud *cloud;
	struct abx_call_opts opts;
	struct abx_sandbox sandbox;
	struct abx_back back;
	const struct abx_box *box;
};

enum abx_changes_use {
	ABX_CHANGES_READ,
	ABX_CHANGES_APPLY, /* what came is recorded: one at a time */
};

typedef int (*abx_changes_fn)(void *ctx, struct abx_changes_session *s, struct abx_err *err);
/* Find the box, let it run (core/box/running.h), and call `fn`, which may be begun again. */
int abx_changes_run(struct abx_cli *cli, const char *what, enum abx_changes_use use,
		    abx_changes_fn fn, void *ctx, struct abx_err *err);

/* git's letter as a word: added, modified, deleted, renamed. */
const char *abx_change_word(char status);
/* As git writes it, "100644"; 0 is null. */
void abx_json_mode(cJSON *o, const char *key, uint32_t mode);
/* An array of {path, kind, mode, problem}. */
cJSON *abx_changes_json(const struct abx_changes *changes);

#endif
