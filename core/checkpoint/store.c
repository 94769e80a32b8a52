/* SPDX-License-Identifier: MIT */
/* The checkpoints of an install, as files. */
#include "core/checkpoint/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"
#include "core/state/aside.h"
#include "core/state/lock.h"
#include "core/util/log.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

#define ROOT "cloud-checkpoints"
#define SEED_FILE_MAX ((size_t)2 << 30)

char *abx_checkpoint_record(const char *provider, const char *project, const char *name)
{
	return abx_xasprintf(ROOT "/%s/%s/%s/manifest.json", provider, project, name);
}

static char *relative_dir(const char *provider, const char *project, const char *name)
{
	return abx_xasprintf(ROOT "/%s/%s/%s", provider, project, name);
}

char *abx_checkpoint_seed_path(const struct abx_home *home, const struct abx_checkpoint *c)
{
	return abx_home_path(home, ROOT "/%s/%s/%s/seed", c->provider, c->project, c->name);
}

static int copy_file(const char *from, const char *to, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(SEED_FILE_MAX);
	int r = abx_fs_read(AT_FDCWD, from, &b);

	if (r < 0)
		return abx_err_errno(err, r, "read '%s'", from);
	r = abx_fs_write_atomic(AT_FDCWD, to, b.data, b.len, 0600, false);
	return r < 0 ? abx_err_errno(err, r, "write '%s'", to) : 0;
}

int abx_checkpoint_share_file(const char *from, const char *to, struct abx_err *err)
{
	if (link(from, to) == 0)
		return 0;
	if (errno == EEXIST && unlink(to) == 0 && link(from, to) == 0)
		return 0;
	return copy_file(from, to, err);
}

int abx_checkpoint_save(const struct abx_home *home, const struct abx_checkpoint *c,
			const char *seed, bool durable, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(ABX_CHECKPOINT_BYTES_MAX);
	abx_autofree char *dir = NULL, *path = NULL, *kept = NULL;
	int r = abx_checkpoint_print(c, &text, err);

	if (r == 0)
		r = abx_home_dir(home, &dir, err, ROOT "/%s/%s/%s", c->provider, c->project,
				 c->name);
	if (r < 0)
		return r;
	kept = abx_xasprintf("%s/seed", dir);
	path = abx_xasprintf("%s/manifest.json", dir);
	/* A box without git has none. */
	if (seed && access(seed, F_OK) == 0)
		r = abx_checkpoint_share_file(seed, kept, err);
	if (r < 0)
		return r;
	r = abx_fs_write_atomic(AT_FDCWD, path, text.data, text.len, 0600, durable);
	return r < 0 ? abx_err_errno(err, r, "write '%s'", path) : 0;
}

static int read_manifest(const struct abx_home *home, const char *name, struct abx_checkpoint *ret,
			 struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(ABX_CHECKPOINT_BYTES_MAX);
	int r = abx_fs_read(home->fd, name, &text);

	if (r == -ENOENT || r == -ENOTDIR)
		return ABX_ENOBOX;
	if (r == -EFBIG)
		return abx_err_set(err, ABX_ECORRUPT, "it does not describe a checkpoint");
	if (r < 0)
		return abx_err_errno(err, r, "read '%s/%s'", home->path, name);
	return abx_checkpoint_parse(abx_buf_str(&text), text.len, ret, err);
}

/* Nobody may have repaired it meanwhile: looked at again under the lock. */
static int set_aside(const struct abx_home *home, const char *name, struct abx_checkpoint *ret,
		     struct abx_err *err)
{
	abx_autoclose int lock = abx_lock_home(home, err);
	struct abx_err why = ABX_ERR_INIT;
	int r = lock < 0 ? lock : read_manifest(home, name, ret, &why);

	if (r != ABX_ECORRUPT)
		return r;
	r = abx_set_aside(home, name, /* companions= */ NULL, why.text, err);
	return r < 0 ? r : ABX_ECORRUPT;
}

/* One that was set aside keeps its name until it is removed. */
static bool was_damaged(const struct abx_home *home, const char *provider, const char *project,
			const char *name)
{
	static const char prefix[] = "manifest.json.damaged-";
	abx_autofree char *path = relative_dir(provider, project, name);
	DIR *dir = abx_fs_opendir(home->fd, path);
	struct dirent *e = NULL;

	while (dir && (e = readdir(dir)))
		if (strncmp(e->d_name, prefix, sizeof(prefix) - 1) == 0)
			break;
	if (dir)
		(void)closedir(dir);
	return e != NULL;
}

int abx_checkpoint_load(const struct abx_home *home, const char *provider, const char *project,
			const char *name, struct abx_checkpoint *ret, struct abx_err *err)
{
	abx_autofree char *path = abx_checkpoint_record(provider, project, name);
	struct abx_err why = ABX_ERR_INIT;
	struct abx_checkpoint c = {0};
	int r = read_manifest(home, path, &c, &why);

	if (r == ABX_ECORRUPT) {
		why.text[0] = '\0';
		r = set_aside(home, path, &c, &why);
	}
	if (r == ABX_ENOBOX && was_damaged(home, provider, project, name))
		r = ABX_ECORRUPT;
	/* The file says where it is: a copy by hand under another name is not a checkpoint. */
	if (r == 0 && (strcmp(c.name, name) != 0 || strcmp(c.provider, provider) != 0 ||
		       strcmp(c.project, project) != 0)) {
		abx_checkpoint_release(&c);
		return abx_err_set(err, ABX_ENOTSUP,
				   "checkpoint '%s': '%s/%s' belongs to another one", name,
				   home->path, path);
	}
	if (r == 0) {
		*ret = c;
		return 0;
	}
	if (r == ABX_ENOBOX)
		(void)abx_err_set(err, r, "no checkpoint '%s' of this project at %s", name,
				  provider);
	else if (r == ABX_ECORRUPT)
		(void)abx_err_set(err, r, "checkpoint '%s': its manifest was damaged", name);
	else
		(void)abx_err_set(err, r, "checkpoint '%s': %s", name, why.text);
	if (r == ABX_ECORRUPT)
		(void)abx_err_remedy(err, "agentbox checkpoint rm %s removes the rest", name);
	else if (r == ABX_ENOBOX)
		(void)abx_err_remedy(err, "agentbox checkpoint ls shows all");
	return r;
}

/* Directories below `path` whose names do not begin with a dot. */
static void subdirs(const struct abx_home *home, const char *path, struct abx_strv *ret)
{
	DIR *dir = abx_fs_opendir(home->fd, path);
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (e->d_name[0] != '.')
			abx_strv_add(ret, e->d_name);
	if (dir)
		(void)closedir(dir);
}

static void list_project(const struct abx_home *home, const char *provider, const char *project,
			 struct abx_checkpoint_list *ret)
{
	abx_autofree char *path = abx_xasprintf(ROOT "/%s/%s", provider, project);
	struct abx_strv names = {0};

	subdirs(home, path, &names);
	for (size_t i = 0; i < names.len; i++) {
		struct abx_err why = ABX_ERR_INIT;
		struct abx_checkpoint c = {0};
		int r;

		if (abx_check_box_name(names.items[i], NULL) < 0)
			continue;
		r = abx_checkpoint_load(home, provider, project, names.items[i], &c, &why);
		if (r < 0 && r != ABX_ENOBOX)
			abx_warn("%s", why.text);
		if (r < 0)
			continue;
		ret->items = abx_xreallocarray(ret->items, ret->len + 1, sizeof(*ret->items));
		ret->items[ret->len++] = c;
	}
	abx_strv_release(&names);
}

static void list_provider(const struct abx_home *home, const char *provider, const char *project,
			  struct abx_checkpoint_list *ret)
{
	abx_autofree char *path = abx_xasprintf(ROOT "/%s", provider);
	struct abx_strv projects = {0};

	if (project)
		abx_strv_add(&projects, project);
	else
		subdirs(home, path, &projects);
	for (size_t i = 0; i < projects.len; i++)
		list_project(home, provider, projects.items[i], ret);
	abx_strv_release(&projects);
}

static int by_age(const void *a, const void *b)
{
	const struct abx_checkpoint *x = a, *y = b;
	int order = strcmp(x->created_at, y->created_at);

	return order ? order : strcmp(x->name, y->name);
}

void abx_checkpoints_list(const struct abx_home *home, const char *provider, const char *project,
			  struct abx_checkpoint_list *ret)
{
	struct abx_checkpoint_list list = {0};
	struct abx_strv providers = {0};

	if (provider)
		abx_strv_add(&providers, provider);
	else
		subdirs(home, ROOT, &providers);
	for (size_t i = 0; i < providers.len; i++)
		list_provider(home, providers.items[i], project, &list);
	abx_strv_release(&providers);
	if (list.len)
		qsort(list.items, list.len, sizeof(*list.items), by_age);
	*ret = list;
}

int abx_checkpoint_remove_files(const struct abx_home *home, const char *provider,
				const char *project, const char *name, struct abx_err *err)
{
	abx_autofree char *dir = relative_dir(provider, project, name);
	abx_autofree char *manifest = abx_checkpoint_record(provider, project, name);
	int r = 0;

	/* First what makes it one. */
	if (unlinkat(home->fd, manifest, 0) < 0 && errno != ENOENT && errno != ENOTDIR)
		r = -errno;
	if (r == 0)
		r = abx_fs_remove_tree(home->fd, dir);
	return r < 0 ? abx_err_errno(err, r, "remove '%s/%s'", home->path, dir) : 0;
}
