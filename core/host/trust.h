/* SPDX-License-Identifier: MIT */
/*
 * core/host/trust.h: may this file run inside the program?
 *
 * Only a regular file that belongs to root or to the user, and that nobody else could have
 * written or replaced: neither it nor the directory that it lies in (nor the one that a
 * symbolic link to it lies in) is writable by group or others, sticky or not.  The checks are
 * made on descriptors, and the descriptor that was checked is the one to load.
 */
#ifndef ABX_TRUST_H
#define ABX_TRUST_H

#include "core/util/err.h"

/* `path` is absolute.  ABX_EPROVIDER "PATH: refused: ..." */
int abx_trust_open(const char *path, int *ret_fd, struct abx_err *err);

#endif
