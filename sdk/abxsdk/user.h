/* SPDX-License-Identifier: MIT */
/*
 * abxsdk/user.h: a user by /etc/passwd and /etc/group, without NSS.
 *
 * Works on the texts of the two files, which it cuts into pieces; what it returns points into
 * them.
 */
#ifndef ABXSDK_USER_H
#define ABXSDK_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct abx_user {
	uid_t uid;
	gid_t gid;
	const char *name, *home, *shell;
	gid_t groups[64];
	size_t n_groups;
};

/* By name or number; false when it is not in there.  Leaves the groups alone. */
bool abx_user_find(char *passwd, const char *name, struct abx_user *ret);
/* Add its groups; `group` may be NULL: only its own. */
void abx_user_add_groups(char *group, struct abx_user *u);
/* A user or group id in decimal. */
bool abx_user_parse_id(const char *s, uint32_t *ret);

#endif
