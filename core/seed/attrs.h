/* SPDX-License-Identifier: MIT */
/*
 * core/seed/attrs.h: which files of the work tree need not be, byte for byte, what git keeps.
 *
 * Filters (LFS among them), ident, encodings and line ends make the difference.  Such files
 * travel as they are in the work tree; what is said here is that their content must be looked
 * at, and which filters the box would need.
 *
 *	if (abx_attrs_matter(common_dir, &index))
 *		abx_attrs_start(&git, &index, false, &job, err);
 *	...
 *	abx_attrs_finish(&job, &index, abx_git_config_eol(&config), &attrs, err);
 */
#ifndef ABX_ATTRS_H
#define ABX_ATTRS_H

#include "core/seed/git.h"
#include "core/seed/index.h"

struct abx_attrs {
	bool *raw;  /* for each index entry: its file may differ from its blob; or NULL */
	bool *made; /* ... a checkout makes it so; NULL with raw */
	bool *lfs;  /* ... it is kept by Git LFS */
	size_t n_raw, n_lfs, n_filtered; /* filtered: by anything but LFS */
	char *filter;			 /* the first filter that is not LFS, or NULL */
};

/* Is there any file that gives attributes?  Without one there is nothing to ask. */
bool abx_attrs_matter(const char *common_dir, const struct abx_index *index);
/* of_index: as the index has the files that give them, not the work tree. */
int abx_attrs_start(const struct abx_git *git, const struct abx_index *index, bool of_index,
		    struct abx_git_job *ret, struct abx_err *err);
/* eol: bits of git-config.h. */
int abx_attrs_finish(struct abx_git_job *job, const struct abx_index *index, unsigned int eol,
		     struct abx_attrs *ret, struct abx_err *err);
void abx_attrs_release(struct abx_attrs *attrs);

#endif
