/* SPDX-License-Identifier: MIT */
/* Objects of a box: looked at in a quarantine, then moved into a repository. */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"
#include "core/seed/fetch-io.h"
#include "core/seed/seed-state.h"
#include "core/util/beneath.h"
#include "core/util/landing.h"
#include "core/util/mem.h"
#include "core/util/parse.h"
#include "core/util/room.h"
#include "core/util/walk.h"

#define CHUNK_BYTES ((size_t)1 << 20)

/* What lies in the workspace is entered without following a link. */
static int check_path(const char *workspace, const char *path, struct abx_err *err)
{
	abx_autoclose int root = abx_fs_open_dir(AT_FDCWD, workspace);
	abx_autoclose int fd = -1;

	if (root < 0)
		return abx_err_errno(err, -root, "workspace '%s'", workspace);
	fd = abx_open_beneath(root, path, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return abx_err_set(err, ABX_ENOTFOUND,
				   "there is no such directory on this machine");
	return 0;
}

int abx_fetch_host_open(const char *workspace, const char *path, const char *spool,
			struct abx_fetch_host *ret, struct abx_err *err)
{
	enum abx_workspace_kind kind = ABX_WORKSPACE_PLAIN;
	struct abx_fetch_host h = {0};
	abx_autofree char *whole = abx_xstrdup("");
	struct abx_seed_repo like = {.path = whole};
	int r = *path ? check_path(workspace, path, err) : 0;

	if (r < 0)
		return r;
	h.work = *path ? abx_xasprintf("%s/%s", workspace, path) : abx_xstrdup(workspace);
	h.spool = abx_xstrdup(spool);
	r = abx_fs_mkdir_p(AT_FDCWD, spool, 0700);
	if (r < 0)
		r = abx_err_errno(err, -r, "make '%s'", spool);
	if (r == 0)
		r = abx_layout_find(h.work, spool, &kind, &h.place, err);
	if (r == 0 && kind != ABX_WORKSPACE_GIT)
		r = abx_err_set(err, ABX_ENOTFOUND, "it is not a git repository on this machine");
	like.work = h.work;
	like.spool = h.spool;
	like.place = h.place;
	if (r == 0)
		r = abx_seed_repo_git(&like, &h.git, err);
	if (r < 0) {
		abx_fetch_host_close(&h);
		return r;
	}
	abx_git_setenv(&h.git, "GIT_NO_REPLACE_OBJECTS=1");
	*ret = h;
	/* It points at the directory by name. */
	ret->git.dir = ret->work;
	ret->git.spool = ret->spool;
	return 0;
}

void abx_fetch_host_close(struct abx_fetch_host *h)
{
	abx_git_release(&h->git);
	abx_git_place_release(&h->place);
	free(h->work);
	free(h->spool);
	memset(h, 0, sizeof(*h));
}

bool abx_fetch_has(const struct abx_fetch_host *h, const char *id)
{
	abx_autofree char *commit = abx_xasprintf("%s^{commit}", id);
	const char *const args[] = {"cat-file", "-e", commit, NULL};

	return abx_is_oid_hex(id) && abx_git_run(&h->git, args, NULL, NULL, NULL) == 0;
}

/* Every object is looked at, and that each names only what is there and of the right kind. */
static int unpack(const struct abx_fetch_host *h, const char *pack, struct abx_err *err)
{
	static const char *const args[] = {"-c",	 "pack.writeReverseIndex=false",
					   "-c",	 "core.fsync=none",
					   "index-pack", "--stdin",
					   "--fix-thin", "--strict",
					   NULL};
	abx_autoclose int fd = open(pack, O_RDONLY | O_CLOEXEC);
	struct abx_git_job job = ABX_GIT_JOB_INIT;
	int r;

	if (fd < 0)
		return abx_err_errno(err, errno, "read '%s'", pack);
	r = abx_git_start_fd(&h->git, args, fd, 0, &job, err);
	return r < 0 ? r : abx_git_finish(&job, NULL, err);
}

int abx_fetch_check(const struct abx_fetch_host *h, const char *pack, const char *id,
		    struct abx_err *err)
{
	static const char *const connected[] = {"rev-list", "--objects", "--quiet", "--stdin",
						"--not",    "--all",	 NULL};
	const char *const kind[] = {"cat-file", "-t", id, NULL};
	abx_auto(abx_buf) struct abx_buf in = ABX_BUF_INIT(256);
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(256);
	struct abx_err why = ABX_ERR_INIT;
	int r = pack ? unpack(h, pack, &why) : 0;

	if (r < 0)
		return abx_err_set(err, r == ABX_EIO ? ABX_EPROTO : r,
				   "its commits are refused: %s", why.text);
	r = abx_git_run(&h->git, kind, NULL, &out, &why);
	if (r == 0 && strcmp(abx_buf_str(&out), "commit\n") != 0)
		return abx_err_set(err, ABX_EPROTO, "its commits are refused: HEAD is no commit");
	abx_buf_addf(&in, "%s\n", id);
	if (r == 0)
		r = abx_git_run(&h->git, connected, &in, NULL, &why);
	if (r < 0) {
		(void)abx_err_set(err, r == ABX_EIO ? ABX_EPROTO : r,
				  "its commits are refused: what they build on is not here: %s",
				  why.text);
		return abx_err_remedy(err, "agentbox download brings the files");
	}
	return 0;
}

/* ---- into the repository ---- */

static int copy(int from, int to)
{
	abx_autofree char *chunk = abx_xcalloc(1, CHUNK_BYTES);

	for (;;) {
		const ssize_t n = read(from, chunk, CHUNK_BYTES);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		r = abx_fs_write_all(to, chunk, (size_t)n);
		if (r < 0)
			return r;
	}
}

/* Seen when it is whole and on disk. */
static int move_file(struct abx_landing *l, int from_dir, int to_dir, const char *name)
{
	abx_autoclose int from = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int r;

	if (from < 0)
		return -errno;
	/* The name is that of the content. */
	if (fstatat(to_dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	r = abx_landing_begin(l, to_dir, 0444);
	if (r < 0)
		return r;
	r = copy(from, l->fd);
	if (r == 0 && fsync(l->fd) < 0)
		r = -errno;
	if (r == 0)
		return abx_landing_land(l, name);
	abx_landing_drop(l);
	return r;
}

/* The index comes last: with it the pack is seen, and a pack without it is only in the way. */
static int move_pack(struct abx_landing *l, const char *notes, int from_dir, int to_dir,
		     const char *name)
{
	struct abx_landing alone = ABX_LANDING_INIT;
	abx_autofree char *idx = abx_xasprintf("%.*sidx", (int)(strlen(name) - 4), name);
	struct stat st;
	int r;

	alone.notes = notes;
	r = abx_landing_unless(&alone, to_dir, name, idx);
	if (r == 0)
		r = move_file(l, from_dir, to_dir, name);
	if (r == 0)
		r = move_file(l, from_dir, to_dir, idx);
	if (r < 0 && fstatat(to_dir, idx, &st, AT_SYMLINK_NOFOLLOW) < 0)
		(void)unlinkat(to_dir, name, 0);
	abx_landing_close(&alone);
	return r;
}

static int move_all(const char *notes, int from_dir, int to_dir, const struct abx_strv *names)
{
	struct abx_landing l = ABX_LANDING_INIT;
	int r = 0;

	l.notes = notes;
	for (size_t i = 0; i < names->len && r == 0; i++) {
		const char *name = names->items[i];
		const size_t n = strlen(name);

		if (n > 5 && strcmp(name + n - 5, ".pack") == 0)
			r = move_pack(&l, notes, from_dir, to_dir, name);
	}
	abx_landing_close(&l);
	return r;
}

static int check_room(int from_dir, const struct abx_strv *names, int to_dir, const char *to,
		      struct abx_err *err)
{
	uint64_t bytes = 0;
	struct stat st;

	for (size_t i = 0; i < names->len; i++)
		if (fstatat(from_dir, names->items[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
			bytes += (uint64_t)st.st_size;
	return abx_room_check(to_dir, bytes, to, err);
}

int abx_fetch_land(const struct abx_fetch_host *h, const char *notes, struct abx_err *err)
{
	abx_autofree char *from = abx_xasprintf("%s/objects/pack", h->spool);
	abx_autofree char *to = abx_xasprintf("%s/objects/pack", h->place.common_dir);
	abx_autoclose int from_dir = abx_fs_open_dir(AT_FDCWD, from);
	abx_autoclose int to_dir = -1;
	struct abx_strv names = {NULL, 0, 0};
	int r;

	if (from_dir < 0)
		return abx_err_errno(err, -from_dir, "read '%s'", from);
	r = abx_list_dir(from_dir, &names, err);
	if (r == 0 && names.len) {
		r = abx_fs_mkdir_p(AT_FDCWD, to, 0777);
		to_dir = r == 0 ? abx_fs_open_dir(AT_FDCWD, to) : r;
		r = to_dir < 0 ? to_dir : 0;
		if (r == 0 && check_room(from_dir, &names, to_dir, to, err) < 0) {
			abx_strv_release(&names);
			return ABX_EIO;
		}
		if (r == 0)
			r = move_all(notes, from_dir, to_dir, &names);
		if (r == 0 && fsync(to_dir) < 0)
			r = -errno;
		if (r < 0)
			r = abx_err_errno(err, -r, "fetch: write in '%s'", to);
	}
	abx_strv_release(&names);
	return r;
}
