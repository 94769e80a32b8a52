/* SPDX-License-Identifier: MIT */
/*
 * core/util/room.h: is there room for what is about to come?
 *
 * Asked where its size is known, before the first byte of it is written: a disk that fills up
 * halfway is worse for all others on it than a refusal.
 */
#ifndef ABX_ROOM_H
#define ABX_ROOM_H

#include <stdint.h>

#include "core/util/err.h"

/* `bytes` more where `fd` lies; `what` is named.  ABX_EIO, with both amounts, when there is not. */
int abx_room_check(int fd, uint64_t bytes, const char *what, struct abx_err *err);

#endif
