/* SPDX-License-Identifier: MIT */
/* What git has under way in a work tree. */
#include "core/seed/underway.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"
#include "core/seed/index.h"
#include "core/util/walk.h"

#define STATE_FILE_MAX ((size_t)64 << 20)
#define OID_HEX ((size_t)2 * ABX_OID_BYTES)

/* Files and directories of gitrepository-layout(5) and of git's builtins that an operation
 * leaves behind until it is finished.  The first ones say that there is one. */
static const char *const begins[] = {
	"MERGE_HEAD",	"CHERRY_PICK_HEAD", "REVERT_HEAD", "sequencer",
	"rebase-merge", "rebase-apply",	    "BISECT_LOG",  "BISECT_START",
};
static const char *const others[] = {
	"ORIG_HEAD",	       "MERGE_MODE",	      "MERGE_RR",
	"AUTO_MERGE",	       "REBASE_HEAD",	      "BISECT_TERMS",
	"MERGE_AUTOSTASH",     "BISECT_EXPECTED_REV", "BISECT_NAMES",
	"BISECT_ANCESTORS_OK", "BISECT_FIRST_PARENT",
};
/* What somebody wrote for the next commit. */
static const char *const messages[] = {"MERGE_MSG", "SQUASH_MSG"};

static bool has_id(const struct abx_underway *u, const char *id)
{
	for (size_t i = 0; i < u->ids.len; i++)
		if (strcmp(u->ids.items[i], id) == 0)
			return true;
	return false;
}

/* Every word of 40 hexadecimal digits. */
static void take_ids(struct abx_underway *u, const char *text, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = text, *end = text + len;

	while (at < end) {
		size_t n = strspn(at, digits);

		if (n == OID_HEX) {
			abx_autofree char *id = abx_xstrndup(at, n);

			if (!has_id(u, id))
				abx_strv_add(&u->ids, id);
		}
		at += n;
		at += strcspn(at, digits);
		if (at < end && !*at)
			at++;
	}
}

static int take_file(struct abx_underway *u, int dirfd, const char *name, const char *path,
		     struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(STATE_FILE_MAX);
	const int r = abx_fs_read(dirfd, name, &text);

	if (r < 0)
		return abx_err_errno(err, -r, "read '%s' of the git directory", path);
	abx_strv_add(&u->files, path);
	take_ids(u, abx_buf_str(&text), text.len);
	return 0;
}

struct walk {
	struct abx_underway *u;
	const char *dir;
};

static int visit(void *ctx, const struct abx_walk_item *item, struct abx_err *err)
{
	struct walk *w = ctx;
	abx_autofree char *path = abx_xasprintf("%s/%s", w->dir, item->path);

	if (S_ISDIR(item->st->st_mode)) {
		abx_strv_add(&w->u->files, path);
		return 0;
	}
	return S_ISREG(item->st->st_mode) ? take_file(w->u, item->dirfd, item->name, path, err) : 0;
}

static int take_dir(struct abx_underway *u, int git_fd, const char *name, struct abx_err *err)
{
	abx_autoclose int fd = abx_fs_open_dir(git_fd, name);
	struct walk w = {u, name};

	if (fd < 0)
		return abx_err_errno(err, -fd, "read '%s' of the git directory", name);
	abx_strv_add(&u->files, name);
	return abx_walk(fd, visit, &w, err);
}

/* A rebase moves its branch only at its end; until then the branch is where it began. */
static void take_branch(struct abx_underway *u, int git_fd, const char *dir)
{
	static const char heads[] = "refs/heads/";
	abx_autofree char *name_path = abx_xasprintf("%s/head-name", dir);
	abx_autofree char *id_path = abx_xasprintf("%s/orig-head", dir);
	abx_auto(abx_buf) struct abx_buf name = ABX_BUF_INIT(8192);
	abx_auto(abx_buf) struct abx_buf id = ABX_BUF_INIT(8192);

	if (abx_fs_read(git_fd, name_path, &name) < 0 || abx_fs_read(git_fd, id_path, &id) < 0 ||
	    !name.len || !id.len)
		return;
	u->detached = true;
	name.data[strcspn(name.data, "\n")] = '\0';
	id.data[strcspn(id.data, "\n")] = '\0';
	if (strncmp(name.data, heads, sizeof(heads) - 1) != 0 || !abx_is_oid_hex(id.data))
		return;
	abx_xreplace(&u->branch, name.data);
	abx_xreplace(&u->branch_id, id.data);
}

static int take_names(struct abx_underway *u, int fd, const char *const *names, size_t n,
		      struct abx_err *err)
{
	struct stat st;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		if (fstatat(fd, names[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode))
			r = take_dir(u, fd, names[i], err);
		else if (S_ISREG(st.st_mode))
			r = take_file(u, fd, names[i], names[i], err);
	}
	return r;
}

int abx_underway_read(const char *git_dir, struct abx_underway *ret, struct abx_err *err)
{
	abx_autoclose int fd = abx_fs_open_dir(AT_FDCWD, git_dir);
	struct abx_underway u = {0};
	int r;

	if (fd < 0)
		return abx_err_errno(err, -fd, "read '%s'", git_dir);
	r = take_names(&u, fd, begins, ABX_N_ELEMENTS(begins), err);
	if (r == 0 && u.files.len)
		r = take_names(&u, fd, others, ABX_N_ELEMENTS(others), err);
	if (r == 0)
		r = take_names(&u, fd, messages, ABX_N_ELEMENTS(messages), err);
	take_branch(&u, fd, "rebase-merge");
	take_branch(&u, fd, "rebase-apply");
	if (r < 0)
		abx_underway_release(&u);
	else
		*ret = u;
	return r;
}

void abx_underway_release(struct abx_underway *u)
{
	abx_strv_release(&u->files);
	abx_strv_release(&u->ids);
	free(u->branch);
	free(u->branch_id);
	memset(u, 0, sizeof(*u));
}
