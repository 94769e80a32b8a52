/* SPDX-License-Identifier: MIT */
/* A user by /etc/passwd and /etc/group, without NSS. */
#include "abxsdk/user.h"

#include <string.h>

#include "abxsdk/number.h"

bool abx_user_parse_id(const char *s, uint32_t *ret)
{
	uint64_t v;

	if (!abx_parse_u64(s, UINT32_MAX - 1, &v))
		return false;
	*ret = (uint32_t)v;
	return true;
}

/* Split `line` at colons in place; returns how many fields there were. */
static size_t split(char *line, char **field, size_t max)
{
	size_t n = 0;

	while (n < max) {
		field[n++] = line;
		line = strchr(line, ':');
		if (!line)
			break;
		*line++ = '\0';
	}
	return n;
}

bool abx_user_find(char *passwd, const char *name, struct abx_user *ret)
{
	uint32_t want = 0;
	bool numeric = abx_user_parse_id(name, &want);
	char *line, *save = NULL;

	for (line = strtok_r(passwd, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *f[7];
		uint32_t uid, gid;

		if (split(line, f, 7) != 7 || !abx_user_parse_id(f[2], &uid) ||
		    !abx_user_parse_id(f[3], &gid))
			continue;
		if (strcmp(f[0], name) != 0 && !(numeric && uid == want))
			continue;
		ret->uid = uid;
		ret->gid = gid;
		ret->name = f[0];
		ret->home = *f[5] == '/' ? f[5] : "/";
		ret->shell = *f[6] == '/' ? f[6] : "/bin/sh";
		return true;
	}
	return false;
}

static bool is_member(const char *list, const char *name)
{
	size_t len = strlen(name);

	while (*list) {
		size_t n = strcspn(list, ",");

		if (n == len && memcmp(list, name, n) == 0)
			return true;
		list += n + (list[n] == ',');
	}
	return false;
}

void abx_user_add_groups(char *group, struct abx_user *u)
{
	char *line, *save = NULL;

	u->n_groups = 0;
	u->groups[u->n_groups++] = u->gid;
	if (!group)
		return;
	for (line = strtok_r(group, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *f[4];
		uint32_t gid;

		if (u->n_groups == sizeof(u->groups) / sizeof(u->groups[0]))
			return;
		if (split(line, f, 4) == 4 && abx_user_parse_id(f[2], &gid) && gid != u->gid &&
		    is_member(f[3], u->name))
			u->groups[u->n_groups++] = gid;
	}
}
