/* SPDX-License-Identifier: MIT */
/* core/cli/create-many.h: several boxes at once. */
#ifndef ABX_CREATE_MANY_H
#define ABX_CREATE_MANY_H

#include "core/box/create.h"
#include "core/cli/cmd.h"

#define ABX_CREATE_MAX_COUNT 100

/* NAME-1 to NAME-count, or names made up.  Each is made or not by itself, and what is made
 * stays.  Returns the exit code: 1 when one was not made. */
int abx_create_many(struct abx_cli *cli, const struct abx_create *req, unsigned int count,
		    struct abx_err *err);

#endif
