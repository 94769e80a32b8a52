/* SPDX-License-Identifier: MIT */
/*
 * tests/unit/seed-box.h: boxes that are directories of this machine, and hosts to seed from.
 *
 * A box is unit_dir()/box: its workspace is box/workspace, its home box/home.  A stream is
 * unpacked by tar, a script is run by sh, so that everything but a provider is the real thing.
 */
#ifndef ABX_TEST_SEED_BOX_H
#define ABX_TEST_SEED_BOX_H

#include "core/seed/into.h"
#include "tests/unit/unit.h"

/* A fixture: unit_dir with host/, box/ and spool/, HOME with a git configuration. */
void seed_setup(void);

/* Tests with these fixtures; teardown is unit_dir_teardown, or ends with it. */
void seed_add_tests(Suite *s, const char *name, const TTest *const *tests, size_t n,
		    void (*teardown)(void));

/* Run a shell script in host/ (sh) or box/workspace (in_box); it must succeed. */
void sh(const char *script);
void in_box(const char *script);
/* The same, and what it printed; free it. */
char *sh_out(const char *script);
char *in_box_out(const char *script);

/* How a box misbehaves. */
struct seed_faults {
	const char *path; /* PATH in the box, NULL = ours */
	size_t cut_after; /* the receiving side ends after so many bytes; 0 = never */
	bool tar_fails;	  /* ... and says that it failed */
	bool exec_fails;
	const char *answer; /* instead of running the script, say this ... */
	size_t answer_len;
	int answer_code;	/* ... and exit so */
	unsigned int answer_at; /* only the n-th exec from now, 1 = the next; 0 = each */
};
extern struct seed_faults seed_faults;
extern unsigned int seed_tars, seed_execs; /* round trips so far */

struct abx_box_io seed_box_io(void);
const char *seed_box_dir(void);
extern const char *seed_box_home; /* NULL: box/home */

/* What of host/ goes into the box; nothing special unless a test says so. */
extern struct abx_seed_options seed_how;
extern const char *seed_branch; /* "agentbox/one" unless it is set */

/* host/ into the box as branch agentbox/one; fails the test unless it succeeds. */
void seed_all(struct abx_seed_result *ret);
/* Inspect host/; the code, with unit_err. */
int seed_refused(void);

/* Everything in `dir` as text: types, modes, times, names, links, contents.  `find_args` says
 * which, `times` is find's format for what must not differ. */
char *tree_of(const char *dir, const char *find_args, const char *times);
#define TREE_SECONDS "%Ts"
#define TREE_UNTOUCHED "%T@ %C@ %i"

/* A small repository, for a script that goes on. */
#define REPO                                                                                 \
	"git init -q . && printf 'alpha\\n' >a.txt && mkdir src && printf '#!/bin/sh\\n' "   \
	">src/run && chmod 755 src/run && ln -s src/run link && ln -s /nowhere dangling && " \
	"git add . && git commit -q -m one && printf 'beta\\n' >b.txt && git add . && "      \
	"git commit -q -m two && "

/* The host and the box have the same files; find_args say which. */
void same_work_tree(const char *find_args);
#define NOT_GIT "-path ./.git -prune -o -mindepth 1"
/* A script prints the same in both; commits, index, status and differences are the same. */
void same_output(const char *script);
void same_repository(void);
/* Seed host/, which stays as it is to the last byte, time and inode, in two round trips. */
void seed_untouched(struct abx_seed_result *ret);
/* Make a repository with a script, seed it, and compare. */
void seed_repo(const char *script);

#endif
