/* SPDX-License-Identifier: MIT */
/*
 * core/seed/into.h: seeding by any means of reaching a box; seed.h has the cloud's.
 */
#ifndef ABX_SEED_INTO_H
#define ABX_SEED_INTO_H

#include "core/seed/box-io.h"
#include "core/seed/seed.h"

int abx_seed_into_io(struct abx_seed *seed, const struct abx_box_io *io,
		     const struct abx_seed_target *target, struct abx_seed_result *ret,
		     struct abx_err *err);

#endif
