/* SPDX-License-Identifier: MIT */
/*
 * core/box/amount.h: how much of a project goes into a box, before and after.
 */
#ifndef ABX_AMOUNT_H
#define ABX_AMOUNT_H

#include "core/box/create.h"

/* Before it is sent: say it, ask or refuse, as req->amount has it.  max: what box.max_seed
 * says, or NULL; stop_fd: readable once the user gave up. */
int abx_amount_check(const struct abx_create *req, struct abx_seed *seed, bool local, int stop_fd,
		     const char *max, struct abx_err *err);
/* What went, and what stayed here. */
void abx_amount_fill(const struct abx_seed_info *info, struct abx_created *ret);

#endif
