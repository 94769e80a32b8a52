/* SPDX-License-Identifier: MIT */
/* Which ids of this machine the ids of boxes become. */
#include "providers/local/local.h"

#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"

#define SUBID_MAX_BYTES ((size_t)4 << 20)
/* For root where nobody has set a range aside: high, away from the usual ones, and the
 * same for every installation, so that state directories can move. */
#define DEFAULT_BASE UINT32_C(1900544000)

static bool parse_u32(const char *s, size_t len, uint32_t *ret)
{
	uint64_t v = 0;

	if (!len || len > 10)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(s[i] - '0');
	}
	*ret = (uint32_t)v;
	return v < UINT32_MAX;
}

/* "name-or-uid:first:count": the first line of ours with enough ids. */
static bool find_range(const char *path, const char *name, uid_t uid, uint32_t *ret)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(SUBID_MAX_BYTES);
	char number[16];
	const char *line;

	(void)snprintf(number, sizeof(number), "%u", uid);
	if (abx_fs_read(AT_FDCWD, path, &b) < 0 || !b.len)
		return false;
	for (line = b.data; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t n = strcspn(line, ":\n");
		const char *first = line + n + 1, *count;
		uint32_t base, ids;

		if (line[n] != ':' || !((n == strlen(name) && memcmp(line, name, n) == 0) ||
					(n == strlen(number) && memcmp(line, number, n) == 0)))
			continue;
		n = strcspn(first, ":\n");
		count = first + n + 1;
		if (first[n] == ':' && parse_u32(first, n, &base) &&
		    parse_u32(count, strcspn(count, "\n"), &ids) && ids >= LB_MAP_IDS && base > 0 &&
		    base <= UINT32_MAX - LB_MAP_IDS) {
			*ret = base;
			return true;
		}
	}
	return false;
}

static bool user_name(uid_t uid, char *name, size_t size)
{
	char b[4096];
	struct passwd pw, *found = NULL;

	if (getpwuid_r(uid, &pw, b, sizeof(b), &found) != 0 || !found)
		return false;
	return (size_t)snprintf(name, size, "%s", pw.pw_name) < size;
}

bool local_in_path(const char *program)
{
	static const char dirs[] = LB_PATH;
	char path[128];

	for (const char *d = dirs; *d; d += strcspn(d, ":"), d += *d == ':') {
		(void)snprintf(path, sizeof(path), "%.*s/%s", (int)strcspn(d, ":"), d, program);
		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

/* Are all ids of the range real here?  Inside a user namespace, many are not. */
static bool is_mapped(const char *map_file, uint32_t base)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(65536);
	abx_autoclose int fd = open(map_file, O_RDONLY | O_CLOEXEC);
	const char *line;

	if (fd < 0 || abx_buf_read_fd(&b, fd) < 0 || !b.len)
		return true;
	for (line = b.data; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		uint32_t v[3] = {0, 0, 0};
		const char *at = line;

		for (size_t i = 0; i < ABX_N_ELEMENTS(v); i++) {
			size_t n;

			at += strspn(at, " ");
			n = strcspn(at, " \n");
			if (!parse_u32(at, n, &v[i]))
				v[i] = i == 2 ? UINT32_MAX : 0;
			at += n;
		}
		if (base >= v[0] && (uint64_t)base + LB_MAP_IDS <= (uint64_t)v[0] + v[2])
			return true;
	}
	return false;
}

void local_idmap_init(struct abx_session *s)
{
	uid_t uid = geteuid();
	char name[256] = "root";
	bool found;

	if (uid != 0 && !user_name(uid, name, sizeof(name)))
		(void)snprintf(name, sizeof(name), "%u", uid);
	found = find_range("/etc/subuid", name, uid, &s->uid_base) &&
		find_range("/etc/subgid", name, uid, &s->gid_base);
	if (uid == 0) {
		s->map = LB_MAP_DIRECT;
		if (!found)
			s->uid_base = s->gid_base = DEFAULT_BASE;
		if (!is_mapped("/proc/self/uid_map", s->uid_base) ||
		    !is_mapped("/proc/self/gid_map", s->gid_base))
			s->map = LB_MAP_NONE;
	} else if (found && local_in_path("newuidmap") && local_in_path("newgidmap")) {
		s->map = LB_MAP_SUBID;
	} else {
		s->map = LB_MAP_SINGLE;
		s->uid_base = uid;
		s->gid_base = getegid();
	}
}
