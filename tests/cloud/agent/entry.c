/* SPDX-License-Identifier: MIT */
/* What is known of one file, as a service shows it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "abxsdk/buf.h"
#include "abxsdk/fs.h"
#include "tests/cloud/agent/agent.h"

#define NAMES_MAX_BYTES ((size_t)1 << 20)

/* The name of an id in a file of the kind of /etc/passwd, or its digits. */
static void id_name(const char *file, unsigned int id, char *out, size_t size)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(NAMES_MAX_BYTES);
	char *line, *save = NULL;

	(void)snprintf(out, size, "%u", id);
	if (abx_fs_read(AT_FDCWD, file, &b) < 0 || !b.data)
		return;
	for (line = strtok_r(b.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *rest = strchr(line, ':'), *number = rest ? strchr(rest + 1, ':') : NULL;
		uint32_t have;

		if (!number)
			continue;
		*rest = '\0';
		number++;
		number[strcspn(number, ":")] = '\0';
		if (abx_user_parse_id(number, &have) && have == id) {
			(void)snprintf(out, size, "%s", line);
			return;
		}
	}
}

static void permissions(mode_t mode, char out[12])
{
	static const char letters[] = "rwxrwxrwx";

	out[0] = S_ISDIR(mode) ? 'd' : S_ISLNK(mode) ? 'L' : '-';
	for (int i = 0; i < 9; i++)
		out[i + 1] = mode & (1U << (8 - i)) ? letters[i] : '-';
	out[10] = '\0';
}

static const char *type_of(mode_t mode)
{
	return S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "directory" : "";
}

int agent_entry(FILE *to, const char *path)
{
	const char *slash = strrchr(path, '/');
	char bits[12], owner[64], group[64], when[48], target[PATH_MAX] = "";
	struct stat st, at;
	struct tm tm;

	if (lstat(path, &st) < 0)
		return -errno;
	at = st;
	if (S_ISLNK(st.st_mode)) {
		/* One that leads nowhere has no type, and is its own target. */
		if (!realpath(path, target) || stat(path, &at) < 0)
			(void)snprintf(target, sizeof(target), "%s", path);
	}
	permissions(st.st_mode, bits);
	id_name("/etc/passwd", st.st_uid, owner, sizeof(owner));
	id_name("/etc/group", st.st_gid, group, sizeof(group));
	(void)gmtime_r(&st.st_mtim.tv_sec, &tm);
	(void)strftime(when, 24, "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(when + strlen(when), sizeof(when) - strlen(when), ".%09ldZ",
		       st.st_mtim.tv_nsec);
	(void)fprintf(to, "%s%c%s%c%s%c%" PRId64 "%c%u%c%s%c%s%c%s%c%s%c%s%c",
		      slash && slash[1] ? slash + 1 : path, 0, type_of(at.st_mode), 0, path, 0,
		      (int64_t)st.st_size, 0, at.st_mode & 07777, 0, bits, 0, owner, 0, group, 0,
		      when, 0, target, 0);
	return 0;
}
