/* SPDX-License-Identifier: MIT */
/* Sockets, FIFOs and devices in the work tree of a repository. */
#include "core/seed/special.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/util/walk.h"

/* More need not be named, and are not asked about. */
#define SPECIAL_MAX 10000U

struct search {
	const struct abx_strv *ignored; /* sorted; a directory ends with a slash */
	struct abx_strv found;
};

static bool is_dot(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* The type that readdir says; file systems that do not are asked. */
static unsigned char type_of(int dirfd, const struct dirent *e)
{
	struct stat st;

	if (e->d_type != DT_UNKNOWN)
		return e->d_type;
	if (fstatat(dirfd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_REG;
	return (unsigned char)IFTODT(st.st_mode);
}

static void look_in(struct search *s, int dirfd, const char *prefix, unsigned int depth);

static void look_below(struct search *s, int dirfd, const char *name, const char *path,
		       unsigned int depth)
{
	abx_autofree char *as_ignored = abx_xasprintf("%s/", path);
	struct stat st;
	int fd;

	if (depth > ABX_WALK_MAX_DEPTH || abx_paths_have(s->ignored, as_ignored))
		return;
	/* One that cannot be read is git's to report. */
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	if (fstatat(fd, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0)
		look_in(s, fd, path, depth);
	else
		(void)close(fd);
}

/* Takes dirfd over. */
static void look_in(struct search *s, int dirfd, const char *prefix, unsigned int depth)
{
	DIR *dir = fdopendir(dirfd);
	const struct dirent *e;

	if (!dir) {
		(void)close(dirfd);
		return;
	}
	while ((e = readdir(dir)) && s->found.len < SPECIAL_MAX) {
		const unsigned char type = type_of(dirfd, e);
		abx_autofree char *path = NULL;

		if (type == DT_REG || type == DT_LNK || is_dot(e->d_name))
			continue;
		path = abx_xasprintf("%s%s%s", prefix, *prefix ? "/" : "", e->d_name);
		if (type != DT_DIR)
			abx_strv_take(&s->found, abx_steal_ptr(&path));
		else if (*prefix || strcmp(e->d_name, ".git") != 0)
			look_below(s, dirfd, e->d_name, path, depth + 1);
	}
	(void)closedir(dir);
}

/* Without those that git or .agentboxignore ignores. */
static int drop_ignored(const struct abx_seed *s, const struct abx_seed_repo *r,
			struct abx_strv *found, struct abx_err *err)
{
	static const char *const args[] = {"check-ignore", "-z", "--stdin", NULL};
	abx_auto(abx_buf) struct abx_buf in = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	struct abx_strv stay = {NULL, 0, 0};
	const char *at, *end;
	int code;

	for (size_t i = 0; i < found->len; i++)
		abx_buf_add(&in, found->items[i], strlen(found->items[i]) + 1);
	/* It fails when nothing is ignored. */
	(void)abx_git_run(&r->git, args, &in, &out, NULL);
	at = abx_buf_str(&out);
	for (end = at + out.len; at < end; at += strlen(at) + 1)
		abx_strv_add(&stay, at);
	code = abx_ignore_ask(&s->ignore, r->path, found, &stay, err);
	abx_paths_sort(&stay);
	abx_paths_drop(found, &stay);
	abx_strv_release(&stay);
	return code;
}

int abx_seed_count_special(const struct abx_seed *s, const struct abx_seed_repo *r,
			   struct abx_seed_files *files, struct abx_err *err)
{
	struct search search = {.found = {NULL, 0, 0}};
	struct abx_strv ignored = {NULL, 0, 0};
	int fd = abx_fs_open_dir(r->root_fd, "."), code = 0;

	if (fd < 0)
		return abx_err_errno(err, -fd, "workspace '%s'", r->shown);
	for (size_t i = 0; i < r->status.ignored.len; i++)
		abx_strv_add(&ignored, r->status.ignored.items[i]);
	abx_paths_sort(&ignored);
	search.ignored = &ignored;
	look_in(&search, fd, "", 0);
	abx_paths_sort(&search.found);
	if (search.found.len)
		code = drop_ignored(s, r, &search.found, err);
	if (code == 0 && search.found.len && !files->skipped)
		files->skipped_first = abx_xasprintf("%s%s%s", r->path, *r->path ? "/" : "",
						     search.found.items[0]);
	if (code == 0)
		files->skipped += search.found.len;
	abx_strv_release(&search.found);
	abx_strv_release(&ignored);
	return code;
}
