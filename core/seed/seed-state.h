/* SPDX-License-Identifier: MIT */
/*
 * core/seed/seed-state.h: what inspecting a workspace found; shared by the files that
 * inspect (inspect.c), make the stream (stream.c) and send it (into.c).
 */
#ifndef ABX_SEED_STATE_H
#define ABX_SEED_STATE_H

#include "core/seed/files.h"
#include "core/seed/git-config.h"
#include "core/seed/git.h"
#include "core/seed/seed.h"

struct abx_seed {
	char *workspace, *spool;
	char shown[256]; /* the workspace, fit for an error text */
	int root_fd, spool_fd;
	struct abx_seed_info info;
	struct abx_seed_files files;

	/* Of a repository only. */
	char *head_branch;
	struct abx_git git;	 /* an ordinary one, and ... */
	struct abx_git pack_git; /* ... one that writes objects into the spool */
	struct abx_git_config config;
	struct abx_index index;
	struct abx_status status;
	struct abx_buf exclude, attributes; /* for the box's .git/info */
	struct abx_git_job pack;	    /* git pack-objects, until it is waited for */
	bool packed;
	bool assumed; /* some files are assumed unchanged */
};

/* Where git pack-objects leaves its files: <spool>/pack-<hash>.pack and .idx. */
#define ABX_SEED_PACK "pack"

#endif
