/* SPDX-License-Identifier: MIT */
/*
 * core/seed/seed-script.h: what runs inside a box, for POSIX sh and git 2.20 or newer.
 *
 * Values come as positional arguments, never inside of the text.  The base of `diff` and
 * `download` is a bare repository of its own, $HOME/.agentbox/seed.git, whose work tree is the
 * workspace: it holds contents as they are (no filters, no line ends), shares the packs of the
 * workspace's repository by hard links, so that nothing is copied and nothing that happens to
 * the workspace's .git matters, and is not disturbed by the box's git configuration.  Each
 * repository that lies in the workspace has one like it, seed.git/nested/N, and its tree is
 * put into that of the workspace, so that one tree says what all files are.
 *
 * Exit codes: 0; ABX_SCRIPT_FAILED with the reason as the last line of stderr; the others
 * below.
 */
#ifndef ABX_SEED_SCRIPT_H
#define ABX_SEED_SCRIPT_H

#define ABX_SCRIPT_FAILED 90
#define ABX_SCRIPT_NO_GIT 91
#define ABX_SCRIPT_DIFFERS 92	 /* found here: git status in the box is not the host's */
#define ABX_SCRIPT_NO_RECORD 93	 /* there is no seed.git (any more) */
#define ABX_SCRIPT_BAD_RECORD 94 /* what it began with is not in it any more */

/* After the stream: DIR, then for each repository (or the plain workspace) PATH
 * git|partial|plain BASE clean|dirty|assumed|raw.  stdout: the box's `git status` of each (not
 * plain), then "tree <id>\n", or nothing for a plain directory without git. */
extern const char abx_script_seed[];

/* DIR: nothing is in it any more. */
extern const char abx_script_clear[];

/* DIR SEED-TREE MAX-BYTES:MAX-FILES [PATTERN...].  stdin: what came back before, as records of
 * `git update-index -z --index-info`.  stdout: "tree <id>\n", then for each change since the seed
 * with those in it a record of `git diff-tree -r -z --raw`, then "large PATH", "special PATH",
 * "many PATH" and "left PREFIX" with paths and an empty one, each with NUL behind it, for what
 * cannot come, then "end" and NUL.  PATTERNs are those of .gitignore. */
extern const char abx_script_changes[];

/* DIR SEED-TREE MAX-BYTES:MAX-FILES base|seed diff|stat|list always|never.  stdout: git's diff;
 * list: records of --raw -z and --numstat -z, then "end" and NUL.  stderr: "left out" when there is
 * more than a diff can say. */
extern const char abx_script_diff[];

/* DIR.  stdin: object ids, one a line.  stdout: git cat-file --batch. */
extern const char abx_script_contents[];

/* DIR.  stdin: commits that the host has, one a line.  stdout: for each repository "repo", its
 * PATH in the workspace, HEAD's commit (- before the first; ? when git does not take it, and then
 * why in place of the branch), its BRANCH or nothing, what is under way or nothing, the number of
 * files that are not committed, that of stashes, the SIZE of a thin pack, each ended by NUL, and
 * the pack; at last "end" and NUL. */
extern const char abx_script_fetch[];

/* DIR SEED-TREE dry|do HEAD (or -) BRANCH raw|dirty.  stdin: a tar stream with "old", "new" and
 * "merged" (records of git update-index --index-info: what was sent and what is there now of the
 * paths that differ; merged: the same as old, but as new where it is committed), the contents f/N,
 * "names" and "ids" of them, and "pack", if the box lacks commits.  stdout: "KIND=VALUE" and NUL:
 * taken, conflict and unmerged with a path, branch, why, tree, at last end. */
extern const char abx_script_sync[];

#endif
