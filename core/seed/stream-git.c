/* SPDX-License-Identifier: MIT */
/* The .git that a repository of the workspace has in the box. */
#include "core/seed/stream-git.h"

#include <fcntl.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/util/walk.h"

struct writer {
	struct abx_seed_repo *repo;
	struct abx_tar *tar;
	const char *branch;
	int stop_fd;
	time_t now;	  /* for what is made here */
	char *parents_of; /* the last name whose directories were sent, or NULL */
};

/* "sub/.git/config" for "config"; "sub/.git" for "". */
static char *in_git(const struct writer *w, const char *name)
{
	return abx_xasprintf("%s%s.git%s%s", w->repo->path, *w->repo->path ? "/" : "",
			     *name ? "/" : "", name);
}

static int send_dir(struct writer *w, const char *name, struct abx_err *err)
{
	abx_autofree char *path = in_git(w, name);

	return abx_tar_dir(w->tar, path, 0755, w->now, err);
}

/* What every .git has, in this order. */
static const char *const skeleton[] = {"",	  "hooks",	  "info",
				       "objects", "objects/info", "objects/pack",
				       "refs",	  "refs/heads",	  "refs/tags"};

static int send_skeleton(struct writer *w, struct abx_err *err)
{
	int r = 0;

	for (size_t i = 0; i < ABX_N_ELEMENTS(skeleton) && r == 0; i++)
		r = send_dir(w, skeleton[i], err);
	return r;
}

static bool is_sent(const struct writer *w, const char *dir)
{
	const size_t n = strlen(dir);

	for (size_t i = 0; i < ABX_N_ELEMENTS(skeleton); i++)
		if (strcmp(skeleton[i], dir) == 0)
			return true;
	return w->parents_of && strncmp(w->parents_of, dir, n) == 0 && w->parents_of[n] == '/';
}

/* The directories above `name`, below .git.  The local provider unpacks by itself only what comes
 * once. */
static int send_parents(struct writer *w, const char *name, struct abx_err *err)
{
	abx_autofree char *path = abx_xstrdup(name);
	int r = 0;

	for (char *at = path; r == 0 && (at = strchr(at, '/')); *at++ = '/') {
		*at = '\0';
		if (!is_sent(w, path))
			r = send_dir(w, path, err);
	}
	free(w->parents_of);
	w->parents_of = abx_steal_ptr(&path);
	return r;
}

static int send_bytes(struct writer *w, const char *name, time_t mtime, const void *data,
		      size_t len, struct abx_err *err)
{
	abx_autofree char *path = in_git(w, name);

	return abx_tar_bytes(w->tar, path, 0644, mtime, data, len, err);
}

static int send_text(struct writer *w, const char *name, const char *text, struct abx_err *err)
{
	return send_bytes(w, name, w->now, text, strlen(text), err);
}

static int send_buf(struct writer *w, const char *name, const struct abx_buf *b,
		    struct abx_err *err)
{
	if (!b->len)
		return 0;
	return send_bytes(w, name, w->now, b->data, b->len, err);
}

/* ---- objects ---- */

static int send_spooled(struct writer *w, const char *name, struct abx_err *err)
{
	abx_autofree char *from = abx_xasprintf("%s/%s", w->repo->spool, name);
	abx_autofree char *below = abx_xasprintf("objects/pack/%s", name);
	abx_autofree char *to = in_git(w, below);
	abx_autoclose int fd = open(from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return abx_err_errno(err, errno, "read '%s'", from);
	return abx_tar_file(w->tar, to, fd, &st, NULL, err);
}

static bool is_suffix(const char *name, const char *end)
{
	const size_t n = strlen(name), m = strlen(end);

	return n >= m && strcmp(name + n - m, end) == 0;
}

/* The mark of a pack of which git expects that it refers to what is not there. */
static int send_promisor(struct writer *w, const char *pack, struct abx_err *err)
{
	abx_autofree char *name = NULL;

	if (!w->repo->config.promisor)
		return 0;
	name = abx_xasprintf("objects/pack/%.*s.promisor", (int)(strlen(pack) - 5), pack);
	return send_text(w, name, "", err);
}

static int send_pack(struct writer *w, struct abx_strv *sent, struct abx_err *err)
{
	abx_autoclose int fd = open(w->repo->spool, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct abx_strv names = {NULL, 0, 0};
	int r = fd < 0 ? abx_err_errno(err, errno, "read '%s'", w->repo->spool)
		       : abx_list_dir(fd, &names, err);

	for (size_t i = 0; i < names.len && r == 0; i++) {
		const char *name = names.items[i];
		const bool pack = is_suffix(name, ".pack");

		if (strncmp(name, ABX_SEED_PACK "-", sizeof(ABX_SEED_PACK)) != 0 ||
		    (!pack && !is_suffix(name, ".idx")))
			continue;
		r = send_spooled(w, name, err);
		abx_strv_add(sent, name);
		if (r == 0 && pack)
			r = send_promisor(w, name, err);
	}
	abx_strv_release(&names);
	return r;
}

/* ---- refs ---- */

const char *abx_seed_box_branch(const struct abx_seed_repo *repo, const char *branch)
{
	if (*repo->path)
		return repo->head_branch;
	if (repo->underway.detached && !repo->head_branch)
		return NULL;
	/* Nobody has made the first commit yet: its branch is the user's to name. */
	return repo->status.head ? branch : repo->head_branch;
}

/* A reference and a directory cannot have the same name: then the box's branch counts. */
static bool in_the_way(const char *a, const char *b)
{
	const size_t n = strlen(a), m = strlen(b);

	return (n < m && strncmp(a, b, n) == 0 && b[n] == '/') ||
	       (m < n && strncmp(a, b, m) == 0 && a[m] == '/');
}

static int send_ref(struct writer *w, const char *ref, const char *id, struct abx_err *err)
{
	char text[2 * ABX_OID_BYTES + 2];
	int r = send_parents(w, ref, err);

	(void)snprintf(text, sizeof(text), "%.40s\n", id);
	return r < 0 ? r : send_text(w, ref, text, err);
}

static int send_branch(struct writer *w, const char *branch, const char *id, struct abx_err *err)
{
	const char *box = abx_seed_box_branch(w->repo, w->branch);
	abx_autofree char *ref = abx_xasprintf("refs/heads/%s", branch);

	if (box && branch != box && (strcmp(branch, box) == 0 || in_the_way(branch, box)))
		return 0;
	return send_ref(w, ref, id, err);
}

static int send_refs(struct writer *w, struct abx_err *err)
{
	const struct abx_seed_repo *repo = w->repo;
	const char *box = abx_seed_box_branch(repo, w->branch), *head = repo->status.head;
	int r = 0;

	if (head && box)
		r = send_branch(w, box, head, err);
	if (r == 0 && head && repo->head_branch)
		r = send_branch(w, repo->head_branch, head, err);
	if (r == 0 && repo->underway.branch)
		r = send_branch(w, repo->underway.branch + sizeof("refs/heads/") - 1,
				repo->underway.branch_id, err);
	for (size_t i = 0; i < repo->refs.len && r == 0; i++)
		r = send_ref(w, repo->refs.items[i] + 2 * ABX_OID_BYTES + 1, repo->refs.items[i],
			     err);
	return r;
}

/* Last of all: from now on it is a repository. */
static int send_head(struct writer *w, struct abx_err *err)
{
	const char *box = abx_seed_box_branch(w->repo, w->branch);
	abx_autofree char *text = box ? abx_xasprintf("ref: refs/heads/%s\n", box)
				      : abx_xasprintf("%s\n", w->repo->status.head);

	return send_text(w, "HEAD", text, err);
}

/* ---- what else there is ---- */

/* Git LFS without git-lfs: pointers for what is committed, contents where they are known.
 * Where the box has git-lfs, that does it. */
static const char lfs_script[] =
	"#!/bin/sh\n"
	"# Git LFS filter: clean|smudge FILE\n"
	"if [ -z \"${AGENTBOX_SEED-}\" ] && command -v git-lfs >/dev/null 2>&1; then\n"
	"\texec git-lfs \"$1\" -- \"$2\"\nfi\n"
	"umask 077\n"
	"dir=$(git rev-parse --git-common-dir)/lfs || exit 1\n"
	"mkdir -p \"$dir/tmp\" && tmp=$(mktemp \"$dir/tmp/XXXXXX\") || exit 1\n"
	"trap 'rm -f \"$tmp\"' EXIT\n"
	"cat >\"$tmp\" || exit 1\n"
	"size=$(($(wc -c <\"$tmp\")))\n"
	"oid=\n"
	"if [ \"$size\" -lt 1024 ] && head -n 1 \"$tmp\" | grep -q '^version https://git-lfs'; "
	"then\n"
	"\toid=$(sed -n 's/^oid sha256:\\([0-9a-f]\\{64\\}\\)$/\\1/p' \"$tmp\")\n"
	"fi\n"
	"case $1 in\n"
	"clean)\n"
	"\tif [ -n \"$oid\" ] || [ \"$size\" = 0 ]; then cat \"$tmp\"; exit; fi\n"
	"\toid=$(sha256sum <\"$tmp\") && oid=${oid%% *} || exit 1\n"
	"\tat=$dir/objects/$(printf %.2s \"$oid\")/$(printf %.2s \"${oid#??}\")\n"
	"\tmkdir -p \"$at\" && mv -f \"$tmp\" \"$at/$oid\" || exit 1\n"
	"\tprintf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%s\\nsize %s\\n' \\\n"
	"\t\t\"$oid\" \"$size\"\n"
	"\t;;\n"
	"*)\n"
	"\tat=$dir/objects/$(printf %.2s \"$oid\")/$(printf %.2s \"${oid#??}\")/$oid\n"
	"\tif [ -n \"$oid\" ] && [ -f \"$at\" ]; then cat \"$at\"; exit; fi\n"
	"\t[ -z \"$oid\" ] || echo \"the content of $2 is not here: a Git LFS pointer\" >&2\n"
	"\tcat \"$tmp\"\n"
	"\t;;\n"
	"esac\n";

static bool is_by_time(const struct abx_seed_repo *repo)
{
	/* What git in the box checks out it also knows. */
	return !repo->want.clean && (repo->attrs.n_filtered || repo->attrs.n_lfs);
}

static int send_config(struct writer *w, struct abx_err *err)
{
	const struct abx_seed_repo *repo = w->repo;
	abx_auto(abx_buf) struct abx_buf config = ABX_BUF_INIT((size_t)4 << 20);
	unsigned int flags = 0;
	int r;

	if (repo->index.untracked_cache || repo->index.fsmonitor)
		flags |= ABX_GIT_CONFIG_NO_CACHES;
	if (is_by_time(repo))
		flags |= ABX_GIT_CONFIG_BY_TIME;
	if (repo->attrs.n_lfs)
		flags |= ABX_GIT_CONFIG_LFS;
	abx_git_config_write(&repo->config, flags, &config);
	if (config.failed)
		return abx_err_set(err, ABX_EINVAL, "git config: its values are too long");
	r = send_buf(w, "config", &config, err);
	if (r == 0 && repo->attrs.n_lfs)
		r = send_text(w, "agentbox-lfs", lfs_script, err);
	return r;
}

/* With its own time: git tells by it which entries it must not trust. */
static int send_index(struct writer *w, const char *name, time_t when, struct abx_err *err)
{
	const struct abx_index *index = &w->repo->index;

	if (index->missing || w->repo->want.clean)
		return 0;
	return send_bytes(w, name, when, index->bytes.data, index->bytes.len, err);
}

static int send_info(struct writer *w, struct abx_err *err)
{
	const struct abx_seed_repo *repo = w->repo;
	/* Where a filter would have to tell what git must not trust, and is not there, the
	 * host's git has told already. */
	const time_t when = is_by_time(repo) ? w->now + 1 : repo->index.st.st_mtim.tv_sec;
	int r = send_config(w, err);

	if (r == 0)
		r = send_text(w, "info/exclude", abx_buf_str(&repo->exclude), err);
	if (r == 0)
		r = send_buf(w, "info/attributes", &repo->attributes, err);
	if (r == 0)
		r = send_buf(w, "info/sparse-checkout", &repo->sparse, err);
	if (r == 0)
		r = send_buf(w, "shallow", &repo->shallow, err);
	return r < 0 ? r : send_index(w, "index", when, err);
}

/* ---- the record of what was seeded, which the script moves to its place ---- */

#define RECORD "agentbox/seed.git"

static int send_record_packs(struct writer *w, const struct abx_strv *packs, struct abx_err *err)
{
	int r = 0;

	for (size_t i = 0; i < packs->len && r == 0; i++) {
		abx_autofree char *name = abx_xasprintf("objects/pack/%s", packs->items[i]);
		abx_autofree char *as = abx_xasprintf(RECORD "/%s", name);
		abx_autofree char *from = in_git(w, name), *to = in_git(w, as);

		r = abx_tar_hardlink(w->tar, to, from, 0444, w->now, err);
	}
	return r;
}

static int send_record(struct writer *w, const struct abx_strv *packs, struct abx_err *err)
{
	static const char *const dirs[] = {"agentbox",
					   RECORD,
					   RECORD "/info",
					   RECORD "/objects",
					   RECORD "/objects/info",
					   RECORD "/objects/pack",
					   RECORD "/refs",
					   RECORD "/refs/heads"};
	const struct abx_seed_repo *repo = w->repo;
	/* Of an old index git looks at every file. */
	const time_t when = repo->attrs.n_raw ? 86400 : repo->index.st.st_mtim.tv_sec;
	int r = 0;

	for (size_t i = 0; i < ABX_N_ELEMENTS(dirs) && r == 0; i++)
		r = send_dir(w, dirs[i], err);
	if (r == 0)
		r = send_text(w, RECORD "/info/exclude", abx_buf_str(&repo->exclude), err);
	if (r == 0)
		r = send_index(w, RECORD "/index", when, err);
	return r < 0 ? r : send_record_packs(w, packs, err);
}

/* Contents that git in the box will put into the files that it checks out. */
static int send_lfs(struct writer *w, struct abx_lfs_file *f, struct abx_err *err)
{
	abx_auto(abx_sha1) struct abx_sha1 hash = ABX_SHA1_INIT;
	abx_autofree char *place = abx_lfs_place(f), *to = in_git(w, place);
	abx_autofree char *from = abx_xasprintf("%s/%s", w->repo->place.common_dir, place);
	abx_autoclose int fd = open(from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return abx_err_errno(err, errno, "read '%s'", from);
	r = abx_sha1_open(err);
	if (r == 0)
		r = send_parents(w, place, err);
	if (r == 0)
		r = abx_tar_file(w->tar, to, fd, &st, &hash, err);
	if (r == 0)
		abx_sha1_hex(&hash, f->sent);
	return r;
}

static int send_contents(struct writer *w, struct abx_err *err)
{
	const struct abx_lfs *lfs = &w->repo->lfs;
	int r = 0;

	if (!w->repo->want.clean)
		return 0;
	for (size_t i = 0; i < lfs->len && r == 0; i++)
		if (lfs->items[i].here)
			r = send_lfs(w, &lfs->items[i], err);
	return r;
}

static int send_underway(struct writer *w, struct abx_err *err)
{
	const struct abx_strv *files = &w->repo->underway.files;
	abx_autoclose int fd = -1;
	int r = 0;

	if (!files->len)
		return 0;
	fd = abx_fs_open_dir(AT_FDCWD, w->repo->place.git_dir);
	if (fd < 0)
		return abx_err_errno(err, -fd, "read '%s'", w->repo->place.git_dir);
	for (size_t i = 0; i < files->len && r == 0; i++) {
		abx_autofree char *to = in_git(w, files->items[i]);
		const struct abx_tar_tree tree = {.dirfd = fd, .path = files->items[i], .as = to};
		struct stat st;

		if (fstatat(fd, files->items[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
			return abx_err_errno(err, errno, "read '%s/%s'", w->repo->place.git_dir,
					     files->items[i]);
		r = S_ISDIR(st.st_mode) ? send_dir(w, files->items[i], err)
					: abx_tar_write_tree(w->tar, &tree, NULL, err);
	}
	return r;
}

static int send_objects(struct writer *w, struct abx_err *err)
{
	struct abx_strv packs = {NULL, 0, 0};
	int r = abx_seed_pack_finish(w->repo, w->stop_fd, err);

	if (r == 0)
		r = send_pack(w, &packs, err);
	if (r == 0)
		r = send_record(w, &packs, err);
	abx_strv_release(&packs);
	return r;
}

int abx_seed_write_git(struct abx_tar *tar, struct abx_seed_repo *repo, const char *branch,
		       int stop_fd, struct abx_err *err)
{
	struct writer w = {
		.repo = repo, .tar = tar, .branch = branch, .stop_fd = stop_fd, .now = time(NULL)};
	int r = send_skeleton(&w, err);

	if (r == 0)
		r = send_info(&w, err);
	if (r == 0)
		r = send_underway(&w, err);
	if (r == 0)
		r = send_contents(&w, err);
	if (r == 0)
		r = send_objects(&w, err);
	if (r == 0)
		r = send_refs(&w, err);
	if (r == 0)
		r = send_head(&w, err);
	free(w.parents_of);
	return r;
}

bool abx_is_branch_name(const char *name)
{
	const char *at = name;

	if (!name || !*name || *name == '-' || strstr(name, "..") || strstr(name, "@{") ||
	    strcmp(name, "@") == 0)
		return false;
	for (const char *c = name; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f || strchr("~^:?*[\\", *c))
			return false;
	for (;;) {
		const size_t len = strcspn(at, "/");

		if (!len || at[0] == '.' || at[len - 1] == '.' ||
		    (len >= 5 && strncmp(at + len - 5, ".lock", 5) == 0))
			return false;
		if (!at[len])
			return true;
		at += len + 1;
	}
}
