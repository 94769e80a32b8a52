/* SPDX-License-Identifier: MIT */
/*
 * core/seed/seed-state.h: what inspecting a workspace found; shared by the files that
 * inspect (inspect.c, repo.c, pack.c), make the stream (stream.c, stream-git.c) and send it
 * (into.c).
 */
#ifndef ABX_SEED_STATE_H
#define ABX_SEED_STATE_H

#include "core/seed/attrs.h"
#include "core/seed/files.h"
#include "core/seed/git-config.h"
#include "core/seed/git.h"
#include "core/seed/ignore.h"
#include "core/seed/layout.h"
#include "core/seed/lfs.h"
#include "core/seed/seed.h"
#include "core/seed/underway.h"
#include "core/util/sha1.h"

/* What is wanted of a repository: as it is, or a commit of it. */
struct abx_seed_want {
	bool clean;
	char *commit; /* NULL: the first one has not been made */
	char *branch; /* that it is on, or NULL */
};

/* A file that a checkout makes otherwise than git keeps it. */
struct abx_seed_made {
	size_t entry; /* of the index */
	char oid[ABX_SHA1_HEX_BYTES];
};

/* One repository of the workspace: its own, a submodule, or one that just lies in it. */
struct abx_seed_repo {
	char *path; /* in the workspace; "" is the workspace itself */
	char *work, *spool;
	char shown[256]; /* work, fit for an error text */
	int root_fd;
	struct abx_git_place place;
	struct abx_seed_want want;
	char *head_branch;	      /* NULL: detached */
	struct abx_git git, pack_git; /* pack_git does not see what replaces objects */
	struct abx_git_config config;
	struct abx_index index;
	struct abx_status status;
	struct abx_attrs attrs;
	struct abx_lfs lfs;
	struct abx_seed_made *made; /* of a commit; core/seed/made.h */
	size_t n_made;
	struct abx_underway underway;
	struct abx_strv refs;		    /* "OID refs/...", beside the branches */
	struct abx_buf exclude, attributes; /* for the box's .git/info */
	struct abx_buf sparse;		    /* the same, of a sparse checkout */
	struct abx_buf shallow;		    /* for the box's .git/shallow */
	size_t n_commits;		    /* that travel, when history was cut; or 0 */
	struct abx_strv included;	    /* ignored files that travel, sorted */
	struct abx_strv unkept;		    /* files that stay, see abx_unkept */
	struct abx_strv nested, absent;	    /* repositories in it; submodules not there */
	struct abx_git_job pack;	    /* git pack-objects, until it is waited for */
	bool packed;
	bool assumed; /* some files are assumed unchanged */
};

/* How often a workspace in which somebody works is looked at before it is taken as it is. */
#define ABX_SEED_ROUNDS 3

struct abx_seed {
	char *workspace, *spool;
	char shown[256]; /* the workspace, fit for an error text */
	int root_fd, spool_fd;
	struct abx_seed_options options;
	struct abx_seed_info info;
	struct abx_strv notes; /* for people: what is not as they may expect */
	struct abx_ignore ignore;
	char *ignored_names;
	struct abx_seed_files files; /* of all repositories, each after the one it lies in */
	struct abx_seed_repo **repos;
	size_t n_repos;
	bool borrowed;		  /* files, repositories and root_fd are another seed's, to read */
	unsigned int round;	  /* how often it was looked at before */
	bool moved;		  /* something changed while it was read: look again */
	struct abx_strv unsteady; /* files that did, in any round */
	struct abx_strv taken;	  /* ... of which the box has what was read last, or nothing */
};

/* inspect.c: look at it all once more. */
int abx_seed_look_again(struct abx_seed *s, struct abx_err *err);
/* Has git changed index or HEAD of any repository since? */
bool abx_seed_is_outdated(const struct abx_seed *s);

/* The repository of the workspace itself, or NULL. */
static inline struct abx_seed_repo *abx_seed_root(const struct abx_seed *s)
{
	return s->info.git ? s->repos[0] : NULL;
}

/* inspect.c */
void abx_seed_note(struct abx_seed *s, const char *fmt, ...) ABX_PRINTF(2, 3);

/* repo.c.  `spool` is made, and lies in the seed's; `want` and `place` are taken over. */
int abx_seed_repo_inspect(const struct abx_seed *s, const char *path, const char *spool,
			  struct abx_git_place *place, struct abx_seed_want *want,
			  struct abx_seed_files *files, struct abx_seed_repo **ret,
			  struct abx_err *err);
/* Has git changed its index or HEAD since? */
bool abx_seed_repo_is_outdated(const struct abx_seed_repo *r);
void abx_seed_repo_free(struct abx_seed_repo *r);
/* Does its packed-refs have one of these texts, the last of which is NULL? */
bool abx_seed_repo_packs(const struct abx_seed_repo *r, const char *const texts[]);
/* Does git stash keep something there? */
bool abx_seed_repo_stashes(const struct abx_seed_repo *r);

/* pack.c: git that reads the repository and writes into r->spool; and pack-objects of what the box
 * needs, into r->spool. */
int abx_seed_repo_git(const struct abx_seed_repo *r, struct abx_git *ret, struct abx_err *err);
int abx_seed_pack_start(struct abx_seed_repo *r, int64_t depth, struct abx_err *err);
/* Wait for it, but not when stop_fd (-1: none) is readable: ABX_ECANCELED.  Once is enough. */
int abx_seed_pack_finish(struct abx_seed_repo *r, int stop_fd, struct abx_err *err);
/* Where it leaves its files: <spool>/pack-<hash>.pack and .idx. */
#define ABX_SEED_PACK "pack"

#endif
