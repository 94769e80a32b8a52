/* SPDX-License-Identifier: MIT */
/*
 * Directories of the host and volumes of a box: what may be asked for, and what box.json
 * says of it.
 *
 *	"mounts":  {"/target": "rw:/source" or "ro:/source"}
 *	"volumes": {"/target": "name"}
 */
#include "providers/local/local.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

#include "abxsdk/fs.h"
#include "abxsdk/json.h"

#define BINDS_MAX 256
#define PATHS_MAX_BYTES ((size_t)2 * PATH_MAX)

/* An absolute path without "//", "." and a slash at its end; false when it has "..". */
static bool clean_path(const char *path, char *out, size_t size)
{
	size_t n = 0;

	if (path[0] != '/')
		return false;
	while (*path) {
		size_t len;

		path += strspn(path, "/");
		len = strcspn(path, "/");
		if (len == 2 && path[0] == '.' && path[1] == '.')
			return false;
		if (len && !(len == 1 && path[0] == '.')) {
			if (n + 1 + len >= size)
				return false;
			out[n++] = '/';
			memcpy(out + n, path, len);
			n += len;
		}
		path += len;
	}
	if (!n)
		out[n++] = '/';
	out[n] = '\0';
	return true;
}

static bool is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strcmp(dir, "/") == 0 ||
	       (strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]));
}

static int32_t check_target(struct abx_call *call, const char *what, const char *target, char *out)
{
	static const char *const kernel[] = {"/proc", "/sys", "/dev"};
	static const char *const whole[] = {"/", LB_WORKSPACE};
	const char *why = NULL;

	if (!target || !clean_path(target, out, PATH_MAX))
		return abx_fail(call, ABX_EINVAL, "give an absolute path without ..",
				"%s: %s: not a place in a box", what, target ? target : "");
	for (size_t i = 0; i < ABX_N_ELEMENTS(kernel); i++)
		if (is_below(out, kernel[i]))
			why = "belongs to the kernel";
	for (size_t i = 0; i < ABX_N_ELEMENTS(whole); i++)
		if (strcmp(out, whole[i]) == 0)
			why = "is the box's own";
	if (!why)
		return ABX_OK;
	return abx_fail(call, ABX_EINVAL, "choose another place in the box", "%s: %s: it %s", what,
			out, why);
}

/* The directory in which store/ is, "" when that cannot be told. */
static void state_directory(const struct abx_session *s, char *out, size_t size)
{
	char link[64];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", s->store_fd);
	n = readlink(link, out, size - 1);
	out[n > 0 ? n : 0] = '\0';
	if (strrchr(out, '/'))
		*strrchr(out, '/') = '\0';
}

static int32_t check_source(const struct abx_session *s, struct abx_call *call, const char *source,
			    char *out)
{
	char state[PATH_MAX];
	struct stat st;

	if (!source || source[0] != '/')
		return abx_fail(call, ABX_EINVAL, NULL, "mount: %s: not an absolute path",
				source ? source : "");
	if (!realpath(source, out) || stat(out, &st) < 0)
		return abx_fail(call, errno == EACCES ? ABX_EPERM : ABX_EINVAL, NULL,
				"mount: %s: %s", source, strerror(errno));
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return abx_fail(call, ABX_EINVAL, NULL, "mount: %s: neither a directory nor a file",
				source);
	state_directory(s, state, sizeof(state));
	if (*state && (is_below(state, out) || is_below(out, state)))
		return abx_fail(call, ABX_EPERM, "mount what lies beside it",
				"mount: %s: it holds agentbox's own files (%s)", source, state);
	return ABX_OK;
}

static int32_t add(struct abx_call *call, cJSON *doc, const char *what, const char *target,
		   const char *value)
{
	if (cJSON_HasObjectItem(doc, target))
		return abx_fail(call, ABX_EINVAL, NULL, "%s: %s: two for the same place in the box",
				what, target);
	if (abx_json_add_str(doc, target, value) < 0)
		return abx_fail(call, ABX_ENOMEM, NULL, "out of memory");
	return ABX_OK;
}

static int32_t add_mount(const struct abx_session *s, struct abx_call *call,
			 const struct abx_mount *m, cJSON *doc)
{
	char target[PATH_MAX], source[PATH_MAX], value[PATH_MAX + 8];
	int32_t r = check_target(call, "mount", m->target, target);

	if (r == ABX_OK && (m->flags & ~ABX_MOUNT_READ_ONLY))
		r = abx_fail(call, ABX_ENOTSUP, NULL, "mount: %s: unknown flags %#x", target,
			     m->flags);
	if (r == ABX_OK)
		r = check_source(s, call, m->source, source);
	if (r != ABX_OK)
		return r;
	(void)snprintf(value, sizeof(value), "%s:%s", m->flags & ABX_MOUNT_READ_ONLY ? "ro" : "rw",
		       source);
	return add(call, doc, "mount", target, value);
}

int32_t local_mounts_make(const struct abx_session *s, struct abx_call *call,
			  const struct abx_provision *p, struct local_mounts *ret)
{
	struct local_mounts m = {cJSON_CreateObject(), cJSON_CreateObject()};
	char target[PATH_MAX];
	int32_t r = ABX_OK;

	if (!m.mounts || !m.volumes)
		r = abx_fail(call, ABX_ENOMEM, NULL, "out of memory");
	if (r == ABX_OK && (p->n_mounts > BINDS_MAX || p->n_volumes > BINDS_MAX))
		r = abx_fail(call, ABX_EINVAL, NULL, "mounts: more than %d", BINDS_MAX);
	for (uint32_t i = 0; r == ABX_OK && i < p->n_mounts; i++)
		r = add_mount(s, call, p->mounts[i], m.mounts);
	for (uint32_t i = 0; r == ABX_OK && i < p->n_volumes; i++) {
		r = check_target(call, "volume", p->volumes[i].value, target);
		if (r == ABX_OK && cJSON_HasObjectItem(m.mounts, target))
			r = add(call, m.mounts, "volume", target, "");
		if (r == ABX_OK)
			r = add(call, m.volumes, "volume", target, p->volumes[i].key);
	}
	if (r == ABX_OK)
		*ret = m;
	else
		local_mounts_release(&m);
	return r;
}

void local_mounts_release(struct local_mounts *m)
{
	cJSON_Delete(m->mounts);
	cJSON_Delete(m->volumes);
	*m = (struct local_mounts){NULL, NULL};
}

int local_mounts_record(cJSON *doc, const struct local_mounts *m)
{
	if ((m->mounts && !cJSON_AddItemReferenceToObject(doc, "mounts", m->mounts)) ||
	    (m->volumes && !cJSON_AddItemReferenceToObject(doc, "volumes", m->volumes)))
		return -ENOMEM;
	return 0;
}

static int plan_mount(void *ctx, const char *target, const char *value)
{
	if (strlen(value) < 4 || strlen(target) + strlen(value) > PATHS_MAX_BYTES)
		return -EPROTO;
	local_plan_add(ctx, LB_PLAN_MOUNT, "%.3s%zu:%s%s", value, strlen(value + 3), value + 3,
		       target);
	return 0;
}

static int plan_volume(void *ctx, const char *target, const char *name)
{
	local_plan_add(ctx, LB_PLAN_VOLUME, "%s:%s", name, target);
	return 0;
}

int local_mounts_plan(const struct local_box *b, struct local_plan *plan)
{
	const cJSON *mounts = NULL, *volumes = NULL;
	int r = abx_json_obj(b->doc, "mounts", &mounts);

	if (r == 0)
		r = abx_json_obj(b->doc, "volumes", &volumes);
	if (r == 0)
		r = abx_json_each_str(mounts, plan_mount, plan);
	if (r == 0)
		r = abx_json_each_str(volumes, plan_volume, plan);
	return r;
}

struct search {
	const char *name;
	bool found;
};

static int look(void *ctx, const char *target, const char *name)
{
	struct search *search = ctx;

	(void)target;
	search->found |= strcmp(name, search->name) == 0;
	return 0;
}

bool local_mounts_use_volume(const struct local_box *b, const char *name)
{
	struct search search = {.name = name};
	const cJSON *volumes = NULL;

	return abx_json_obj(b->doc, "volumes", &volumes) < 0 ||
	       abx_json_each_str(volumes, look, &search) < 0 || search.found;
}

/* A group with its owner's number is that user's own, unless there is a list of others. */
static bool lets_others_in(const char *dir)
{
	struct stat st;

	if (stat(dir, &st) < 0)
		return true;
	if (st.st_mode & S_IXOTH)
		return true;
	return (st.st_mode & S_IXGRP) &&
	       (st.st_gid != st.st_uid || getxattr(dir, "system.posix_acl_access", NULL, 0) > 0);
}

/* Can somebody else reach it, on a file system on which a setuid bit means something? */
static bool is_open(const char *source)
{
	char path[PATH_MAX];
	struct statvfs vfs;
	struct stat st;

	if (statvfs(source, &vfs) == 0 && (vfs.f_flag & ST_NOSUID))
		return false;
	if ((size_t)snprintf(path, sizeof(path), "%s", source) >= sizeof(path))
		return true;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode) && !lets_others_in(path))
		return false;
	for (char *slash; (slash = strrchr(path, '/')) && slash > path;) {
		*slash = '\0';
		if (!lets_others_in(path))
			return false;
	}
	return true;
}

static int look_open(void *ctx, const char *target, const char *value)
{
	bool *open = ctx;

	(void)target;
	*open |= strncmp(value, "rw:", 3) == 0 && is_open(value + 3);
	return 0;
}

bool local_mounts_are_open(const struct local_box *b)
{
	const cJSON *mounts = NULL;
	bool open = false;

	return abx_json_obj(b->doc, "mounts", &mounts) < 0 ||
	       abx_json_each_str(mounts, look_open, &open) < 0 || open;
}
