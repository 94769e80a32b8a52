/* SPDX-License-Identifier: MIT */
/*
 * core/seed/attrs.h: is what lies in the work tree what git keeps, byte for byte?
 *
 * Filters (LFS among them), ident and encodings are refused for tracked files.  Line ends
 * are refused only where they make a difference: where a file that git calls unchanged has
 * not the size of its blob, since a conversion always changes the size.
 *
 *	if (abx_attrs_matter(workspace, &index))
 *		abx_attrs_start(&git, &index, &job, err);
 *	...
 *	abx_attrs_finish(&job, workspace, &index, autocrlf, &attrs, err);
 *	abx_attrs_check_sizes(&attrs, &git, workspace, &index, &files, err);
 */
#ifndef ABX_ATTRS_H
#define ABX_ATTRS_H

#include "core/seed/files.h"
#include "core/seed/git.h"

struct abx_attrs {
	bool *converts; /* for each index entry: line ends may be converted */
	size_t n_converts;
};

/* Is there any file that gives attributes?  Without one there is nothing to ask. */
bool abx_attrs_matter(const char *workspace, const struct abx_index *index);
int abx_attrs_start(const struct abx_git *git, const struct abx_index *index,
		    struct abx_git_job *ret, struct abx_err *err);
/* autocrlf: core.autocrlf converts files that no attribute speaks of. */
int abx_attrs_finish(struct abx_git_job *job, const char *workspace, const struct abx_index *index,
		     bool autocrlf, struct abx_attrs *ret, struct abx_err *err);
int abx_attrs_check_sizes(const struct abx_attrs *attrs, const struct abx_git *git,
			  const char *workspace, const struct abx_index *index,
			  const struct abx_seed_files *files, struct abx_err *err);
void abx_attrs_release(struct abx_attrs *attrs);

#endif
