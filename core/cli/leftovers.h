/* SPDX-License-Identifier: MIT */
/* core/cli/leftovers.h: how prune and recover report what they found. */
#ifndef ABX_LEFTOVERS_H
#define ABX_LEFTOVERS_H

#include "core/box/recover.h"
#include "core/cli/cmd.h"

/* Negative when one of them has a problem. */
int abx_leftovers_report(struct abx_cli *cli, const struct abx_leftovers *found,
			 struct abx_err *err);

#endif
