/* SPDX-License-Identifier: MIT */
/*
 * Which version of its API an engine spoke last: asking costs a request in each command.  It is
 * remembered of the last engine at a socket of this machine, as "MINOR DEV INODE CTIME PATH";
 * an engine that starts again makes its socket anew.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abxsdk/fs.h"
#include "abxsdk/number.h"
#include "providers/docker/docker.h"

#define KNOWN_MAX_BYTES 512

static bool path_of(const struct abx_session *s, char path[DOCKER_PATH_MAX])
{
	return snprintf(path, DOCKER_PATH_MAX, "%s/engine", s->state_dir) < DOCKER_PATH_MAX;
}

/* What the file says of this socket, but for the version; false: nothing can be said. */
static bool identify(const char *socket_path, char ret[KNOWN_MAX_BYTES])
{
	struct stat st;

	if (!*socket_path || stat(socket_path, &st) < 0)
		return false;
	return snprintf(ret, KNOWN_MAX_BYTES, "%llx %llx %lld.%09ld %s",
			(unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
			(long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec,
			socket_path) < KNOWN_MAX_BYTES;
}

int docker_known_minor(const struct abx_session *s, const char *socket_path)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(2 * KNOWN_MAX_BYTES);
	char path[DOCKER_PATH_MAX], engine[KNOWN_MAX_BYTES];
	const char *at;
	uint64_t minor;

	if (!path_of(s, path) || !identify(socket_path, engine) ||
	    abx_fs_read(AT_FDCWD, path, &b) < 0)
		return 0;
	at = abx_buf_str(&b);
	if (!abx_parse_digits(&at, DOCKER_API_MINOR_MAX, &minor) || *at != ' ')
		return 0;
	return minor >= DOCKER_API_MINOR_MIN && strcmp(at + 1, engine) == 0 ? (int)minor : 0;
}

void docker_known_keep(const struct abx_session *s, const char *socket_path, int minor)
{
	char path[DOCKER_PATH_MAX], engine[KNOWN_MAX_BYTES], text[KNOWN_MAX_BYTES + 16];
	int n;

	if (!path_of(s, path) || !identify(socket_path, engine))
		return;
	n = snprintf(text, sizeof(text), "%d %s", minor, engine);
	/* Where nothing can be kept it is asked for again. */
	(void)abx_fs_write_atomic(AT_FDCWD, path, text, (size_t)n, 0600, false);
}

void docker_known_forget(const struct abx_session *s)
{
	char path[DOCKER_PATH_MAX];

	if (path_of(s, path))
		(void)unlink(path);
}
