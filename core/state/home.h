/* SPDX-License-Identifier: MIT */
/*
 * core/state/home.h: AGENTBOX_HOME, the directory of one install.
 *
 * $AGENTBOX_HOME, or ~/.agentbox.  Created 0700 on first use; one that belongs to somebody
 * else, or that others can write, is refused.  Everything of ours lies below it:
 *
 *	install agentbox.db secrets.env config.yaml <provider>-prepared.json
 *	projects/<key>/config.yaml  boxes/<id>/  locks/<id>  providers/<name>/  tmp/<id>/  logs/
 */
#ifndef ABX_HOME_H
#define ABX_HOME_H

#include "core/util/err.h"

struct abx_home {
	char *path; /* absolute, real */
	int fd;
};

#define ABX_HOME_INIT    \
	{                \
		NULL, -1 \
	}

int abx_home_open(struct abx_home *ret, struct abx_err *err);
void abx_home_release(struct abx_home *h);

/* An absolute path below the home; free it.  Nothing is created. */
char *abx_home_path(const struct abx_home *h, const char *fmt, ...) ABX_PRINTF(2, 3);
/* The same, and the directory (0700, with its parents) exists afterwards. */
int abx_home_dir(const struct abx_home *h, char **ret, struct abx_err *err, const char *fmt, ...)
	ABX_PRINTF(4, 5);

#endif
