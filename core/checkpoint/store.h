/* SPDX-License-Identifier: MIT */
/*
 * core/checkpoint/store.h: the checkpoints of an install, as files.
 *
 *	cloud-checkpoints/<provider>/<project>/<name>/manifest.json
 *	cloud-checkpoints/<provider>/<project>/<name>/seed
 *
 * `seed` is what was sent into the box (core/seed/manifest.h), as it was when the checkpoint
 * was taken.  manifest.json comes last, whole, so a checkpoint is there or not.  A damaged one
 * is set aside with a warning (core/state/aside.h) and its directory stays, so that nobody
 * takes its snapshot for an orphan.
 */
#ifndef ABX_CHECKPOINT_STORE_H
#define ABX_CHECKPOINT_STORE_H

#include "core/checkpoint/checkpoint.h"
#include "core/state/home.h"

#define ABX_CHECKPOINT_BYTES_MAX 1048576

/* `seed` is the path of a file to keep beside it (NULL: none), which is only ever replaced,
 * never written in place.  durable: it survives a power cut. */
int abx_checkpoint_save(const struct abx_home *home, const struct abx_checkpoint *c,
			const char *seed, bool durable, struct abx_err *err);
/* ABX_ENOBOX when there is none. */
int abx_checkpoint_load(const struct abx_home *home, const char *provider, const char *project,
			const char *name, struct abx_checkpoint *ret, struct abx_err *err);
/* By age; of one provider and one project, or of all (NULL).  What cannot be read costs a
 * warning. */
void abx_checkpoints_list(const struct abx_home *home, const char *provider, const char *project,
			  struct abx_checkpoint_list *ret);
/* A missing one is success. */
int abx_checkpoint_remove_files(const struct abx_home *home, const char *provider,
				const char *project, const char *name, struct abx_err *err);

/* Path of manifest.json below the home, and of the kept seed file; free them.  The latter may not
 * exist. */
char *abx_checkpoint_record(const char *provider, const char *project, const char *name);
char *abx_checkpoint_seed_path(const struct abx_home *home, const struct abx_checkpoint *c);
/* The same file under another name: replaced as a whole wherever it is written, so a link is as
 * good as a copy, and one is made where there can be no link. */
int abx_checkpoint_share_file(const char *from, const char *to, struct abx_err *err);

#endif
