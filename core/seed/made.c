/* SPDX-License-Identifier: MIT */
/* Files that a checkout makes otherwise than git keeps them. */
#include "core/seed/made.h"

#include <fcntl.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/seed/back-host.h"
#include "core/util/beneath.h"

#define CONFIG_MAX ((size_t)1 << 20)

static int write_file(const char *dir, const char *name, const char *data, size_t len,
		      struct abx_err *err)
{
	abx_autofree char *path = abx_xasprintf("%s/%s", dir, name);
	const int r = abx_fs_write_atomic(AT_FDCWD, path, data, len, 0600, /* durable= */ false);

	return r < 0 ? abx_err_errno(err, -r, "write '%s'", path) : 0;
}

static int make_dir(const char *dir, const char *name, struct abx_err *err)
{
	abx_autofree char *path = abx_xasprintf("%s/%s", dir, name);
	const int r = abx_fs_mkdir_p(AT_FDCWD, path, 0700);

	return r < 0 ? abx_err_errno(err, -r, "make '%s'", path) : 0;
}

/* A repository with the settings that the box's will have, and no object of its own. */
static int make_repository(const struct abx_seed_repo *r, const char *dir, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf config = ABX_BUF_INIT(CONFIG_MAX);
	static const char head[] = "ref: refs/heads/none\n";
	static const char *const dirs[] = {"objects", "refs", "info", "files"};
	int code = 0;

	abx_git_config_write(&r->config, 0, &config);
	if (config.failed)
		return abx_err_set(err, ABX_ENOMEM, "workspace '%s': its settings are too long",
				   r->shown);
	for (size_t i = 0; i < ABX_N_ELEMENTS(dirs) && code == 0; i++)
		code = make_dir(dir, dirs[i], err);
	if (code == 0)
		code = write_file(dir, "HEAD", head, sizeof(head) - 1, err);
	if (code == 0)
		code = write_file(dir, "config", config.data, config.len, err);
	if (code == 0)
		code = write_file(dir, "info/attributes", abx_buf_str(&r->attributes),
				  r->attributes.len, err);
	return code;
}

/* The user's own settings and filters are not in the box. */
static bool is_of_the_host(const char *assignment)
{
	static const char *const names[] = {"GIT_CONFIG_", "GIT_DIR=", "GIT_WORK_TREE="};

	for (size_t i = 0; i < ABX_N_ELEMENTS(names); i++)
		if (strncmp(assignment, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static void init_git(const struct abx_seed_repo *r, const char *dir, const char *work,
		     struct abx_git *ret)
{
	abx_autofree char *git_dir = abx_xasprintf("GIT_DIR=%s", dir);
	abx_autofree char *work_tree = abx_xasprintf("GIT_WORK_TREE=%s", work);

	abx_git_init(ret, work, r->spool);
	abx_strv_release(&ret->env);
	for (size_t i = 0; i < r->git.env.len; i++)
		if (!is_of_the_host(r->git.env.items[i]))
			abx_git_setenv(ret, r->git.env.items[i]);
	abx_git_setenv(ret, "GIT_CONFIG_GLOBAL=/dev/null");
	abx_git_setenv(ret, "GIT_CONFIG_NOSYSTEM=1");
	abx_git_setenv(ret, git_dir);
	abx_git_setenv(ret, work_tree);
}

static bool is_made(const struct abx_seed_repo *r, size_t i)
{
	return r->attrs.made && r->attrs.made[i] && !r->attrs.lfs[i] &&
	       S_ISREG(r->index.entries[i].mode);
}

static int check_out(const struct abx_seed_repo *r, const char *dir, const char *work,
		     struct abx_err *err)
{
	static const char *const args[] = {"checkout-index", "-q", "-f", "-z", "--stdin", NULL};
	abx_auto(abx_buf) struct abx_buf in = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	struct abx_git git;
	int code;

	for (size_t i = 0; i < r->index.len; i++)
		if (is_made(r, i))
			abx_buf_add(&in, r->index.entries[i].path,
				    strlen(r->index.entries[i].path) + 1);
	if (in.failed)
		return abx_err_set(err, ABX_ENOMEM, "git checkout-index: too many files");
	init_git(r, dir, work, &git);
	code = abx_git_run(&git, args, &in, NULL, err);
	abx_git_release(&git);
	/* A partial clone lacks some, and so does its box. */
	return r->config.promisor ? 0 : code;
}

static int take_ids(struct abx_seed_repo *r, const char *work, struct abx_err *err)
{
	abx_autoclose int work_fd = abx_fs_open_dir(AT_FDCWD, work);
	int code = abx_sha1_open(err);

	if (code == 0 && work_fd < 0)
		return abx_err_errno(err, -work_fd, "read '%s'", work);
	for (size_t i = 0; i < r->index.len && code == 0; i++) {
		struct abx_seed_made made = {.entry = i};
		abx_autoclose int dirfd = -1;
		const char *name;
		struct stat st;

		if (!is_made(r, i) ||
		    abx_open_parent_beneath(work_fd, r->index.entries[i].path, 0, &dirfd, &name) <
			    0 ||
		    fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		code = abx_blob_id_of(dirfd, name, &st, made.oid);
		if (code < 0)
			return abx_err_errno(err, -code, "read what git checked out in '%s'", work);
		r->made[r->n_made++] = made;
	}
	return code;
}

int abx_seed_find_made(struct abx_seed_repo *r, struct abx_err *err)
{
	abx_autofree char *dir = abx_xasprintf("%s/made", r->spool);
	abx_autofree char *work = abx_xasprintf("%s/files", dir);
	size_t n = 0;
	int code;

	for (size_t i = 0; i < r->index.len; i++)
		n += is_made(r, i);
	if (!n)
		return 0;
	r->made = abx_xcalloc(n, sizeof(*r->made));
	code = make_repository(r, dir, err);
	if (code == 0)
		code = check_out(r, dir, work, err);
	if (code == 0)
		code = take_ids(r, work, err);
	(void)abx_fs_remove_tree(AT_FDCWD, dir);
	return code;
}

static int by_entry(const void *a, const void *b)
{
	const struct abx_seed_made *x = a, *y = b;

	return (x->entry > y->entry) - (x->entry < y->entry);
}

const char *abx_seed_made_of(const struct abx_seed_repo *r, size_t entry)
{
	const struct abx_seed_made key = {.entry = entry}, *found = NULL;

	if (r->n_made)
		found = bsearch(&key, r->made, r->n_made, sizeof(*r->made), by_entry);
	return found ? found->oid : NULL;
}
