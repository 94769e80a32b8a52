/* SPDX-License-Identifier: MIT */
/*
 * core/state/lock.h: one operation at a time on a box.
 *
 * flock on locks/<id>, so that a dead owner never holds it.  A box whose operation is
 * pending while its lock is free was abandoned.  Locks are not inherited by children.
 */
#ifndef ABX_LOCK_H
#define ABX_LOCK_H

#include "core/state/home.h"

/* Waits up to wait_ms (0: not at all); ABX_ESTATE when somebody else is at work on it.
 * Close the descriptor to let go. */
int abx_lock_box(const struct abx_home *home, const char *box_id, int64_t wait_ms, int *ret_fd,
		 struct abx_err *err);
/* The same of a directory, which is the lock itself: -EWOULDBLOCK when somebody else has it, or
 * another negative errno. */
int abx_lock_dir(const char *path, int64_t wait_ms, int *ret_fd);
/* Remove the lock file of a box that is no more; call it with the lock held. */
void abx_lock_forget(const struct abx_home *home, const char *box_id);

/* The install's own lock, around changes of its files by reading and writing back; waits.
 * Returns a descriptor to close, or a negative code. */
int abx_lock_home(const struct abx_home *home, struct abx_err *err);

#endif
