/* SPDX-License-Identifier: MIT */
/* The environment that a box was given: a file of "K=V", each with a NUL behind it. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abxsdk/fs.h"
#include "providers/docker/docker.h"

#define ENV_MAX_BYTES ((size_t)4 << 20)

static int path_of(const struct abx_session *s, const char *id, char path[DOCKER_PATH_MAX])
{
	if (!docker_is_word(id) || strchr(id, '/'))
		return -EINVAL;
	return snprintf(path, DOCKER_PATH_MAX, "%s/env/%s", s->state_dir, id) < DOCKER_PATH_MAX
		       ? 0
		       : -ENAMETOOLONG;
}

int docker_env_write(const struct abx_session *s, const char *id, const struct abx_kv *env,
		     uint32_t n)
{
	struct abx_buf b = ABX_BUF_INIT(ENV_MAX_BYTES);
	char path[DOCKER_PATH_MAX], dir[DOCKER_PATH_MAX];
	int r = path_of(s, id, path);

	if (r < 0 || !n)
		return r;
	for (uint32_t i = 0; i < n; i++) {
		abx_buf_addf(&b, "%s=%s", env[i].key, env[i].value);
		abx_buf_addc(&b, '\0');
	}
	if (b.failed)
		return -E2BIG;
	(void)snprintf(dir, sizeof(dir), "%s/env", s->state_dir);
	r = abx_fs_mkdir_p(AT_FDCWD, dir, 0700);
	if (r == 0)
		r = abx_fs_write_atomic(AT_FDCWD, path, b.data, b.len, 0600, true);
	explicit_bzero(b.data, b.len);
	abx_buf_release(&b);
	return r;
}

bool docker_env_has(const cJSON *array, const char *pair)
{
	size_t n = strcspn(pair, "=") + 1;
	const cJSON *item;

	cJSON_ArrayForEach(item, array)
		if (strncmp(item->valuestring, pair, n) == 0)
			return true;
	return false;
}

int docker_env_add(const struct abx_session *s, const char *id, cJSON *array)
{
	struct abx_buf b = ABX_BUF_INIT(ENV_MAX_BYTES);
	char path[DOCKER_PATH_MAX];
	int r = path_of(s, id, path);

	if (r == 0)
		r = abx_fs_read(AT_FDCWD, path, &b);
	for (size_t i = 0; r == 0 && i < b.len; i += strlen(b.data + i) + 1)
		if (!docker_env_has(array, b.data + i) &&
		    !cJSON_AddItemToArray(array, cJSON_CreateString(b.data + i)))
			r = -ENOMEM;
	if (b.data)
		explicit_bzero(b.data, b.len);
	abx_buf_release(&b);
	return r == -ENOENT ? 0 : r;
}

int docker_env_copy(const struct abx_session *s, const char *from, const char *to)
{
	struct abx_buf b = ABX_BUF_INIT(ENV_MAX_BYTES);
	char path[DOCKER_PATH_MAX];
	int r = path_of(s, from, path);

	if (r == 0)
		r = abx_fs_read(AT_FDCWD, path, &b);
	if (r == 0)
		r = path_of(s, to, path);
	if (r == 0)
		r = abx_fs_write_atomic(AT_FDCWD, path, b.data, b.len, 0600, true);
	if (b.data)
		explicit_bzero(b.data, b.len);
	abx_buf_release(&b);
	return r == -ENOENT ? 0 : r;
}

/* Also what a writer that was killed left of it. */
void docker_env_remove(const struct abx_session *s, const char *id)
{
	char path[DOCKER_PATH_MAX];
	const size_t len = strlen(id);
	struct dirent *e;
	DIR *dir;

	if (path_of(s, id, path) < 0)
		return;
	*strrchr(path, '/') = '\0';
	dir = opendir(path);
	while (dir && (e = readdir(dir)))
		if (strncmp(e->d_name, id, len) == 0 &&
		    (!e->d_name[len] || strncmp(e->d_name + len, ".tmp-", 5) == 0))
			(void)unlinkat(dirfd(dir), e->d_name, 0);
	if (dir)
		(void)closedir(dir);
}
