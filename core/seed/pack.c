/* SPDX-License-Identifier: MIT */
/* The objects that a box needs, as one pack. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"
#include "core/seed/seed-state.h"

/* History beyond this much is cut by itself: in a repository whose packs are larger. */
#define CHEAP_BYTES ((uint64_t)96 << 20)
#define CHEAP_DEPTH 1000
#define ID_LEN (2 * (size_t)ABX_OID_BYTES)
#define SHALLOW_MAX ((size_t)64 << 20)
#define PACK_HASH_MAX 128

/* The host's index is about the host's work tree. */
static void name_index(const struct abx_seed_repo *r, struct abx_git *git)
{
	abx_autofree char *index = abx_xasprintf("GIT_INDEX_FILE=%s/index", r->spool);
	abx_autofree char *work = abx_xasprintf("GIT_WORK_TREE=%s", r->spool);

	abx_git_setenv(git, index);
	if (!*r->path)
		return;
	abx_git_setenv(git, "GIT_DIR=.");
	abx_git_setenv(git, work);
}

/* New objects and temporary files of git go to the spool, also where git status makes trees
 * for itself; the repository is read as an alternate.  Quoted as git unquotes it: paths may
 * have any byte. */
int abx_seed_repo_git(const struct abx_seed_repo *r, struct abx_git *ret, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(4 * 4096);
	abx_autofree char *dir = abx_xasprintf("%s/objects/pack", r->spool);
	abx_autofree char *env = abx_xasprintf("GIT_OBJECT_DIRECTORY=%s/objects", r->spool);
	const int code = abx_fs_mkdir_p(AT_FDCWD, dir, 0700);

	if (code < 0)
		return abx_err_errno(err, -code, "make '%s'", dir);
	abx_buf_adds(&b, "GIT_ALTERNATE_OBJECT_DIRECTORIES=\"");
	for (const char *at = r->place.common_dir; *at; at++) {
		if (*at == '"' || *at == '\\')
			abx_buf_addc(&b, '\\');
		abx_buf_addc(&b, *at);
	}
	abx_buf_adds(&b, "/objects\"");
	/* A submodule at a commit need not have a work tree here. */
	abx_git_init(ret, *r->path && r->want.clean ? r->place.git_dir : r->work, r->spool);
	abx_git_setenv(ret, env);
	abx_git_setenv(ret, abx_buf_str(&b));
	if (r->want.clean)
		name_index(r, ret);
	return 0;
}

static int prepare_git(struct abx_seed_repo *r, struct abx_err *err)
{
	const int code = abx_seed_repo_git(r, &r->pack_git, err);

	if (code < 0)
		return code;
	/* Replaced objects travel as they are, beside what replaces them. */
	abx_git_setenv(&r->pack_git, "GIT_NO_REPLACE_OBJECTS=1");
	/* zlib takes 268 KiB for each object, which glibc would give back each time: half of the
	 * time for a small repository. */
	abx_git_setenv(&r->pack_git, "MALLOC_TRIM_THRESHOLD_=67108864");
	return 0;
}

/* The bytes of the packs, without looking into alternates; and is one of them of a partial
 * clone? */
static uint64_t packed_bytes(const struct abx_seed_repo *r, bool *ret_partial)
{
	abx_autofree char *path = abx_xasprintf("%s/objects/pack", r->place.common_dir);
	DIR *d = abx_fs_opendir(AT_FDCWD, path);
	const struct dirent *e;
	uint64_t sum = 0;
	struct stat st;

	while (d && (e = readdir(d))) {
		const size_t len = strlen(e->d_name);

		if (len > 9 && strcmp(e->d_name + len - 9, ".promisor") == 0)
			*ret_partial = true;
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode))
			sum += (uint64_t)st.st_size;
	}
	if (d)
		(void)closedir(d);
	return sum;
}

/* The repository's own boundaries hold; those of a cut come behind them. */
static int read_shallow(struct abx_seed_repo *r, struct abx_err *err)
{
	abx_autofree char *path = abx_xasprintf("%s/shallow", r->place.common_dir);
	const int code = abx_fs_read(AT_FDCWD, path, &r->shallow);

	if (code < 0 && code != -ENOENT)
		return abx_err_errno(err, -code, "read '%s'", path);
	return 0;
}

/* The lines of `git rev-list --parents`, each once: "ID PARENT...", "-ID PARENT..." for a
 * boundary. */
static int by_id(const void *a, const void *b)
{
	return memcmp(*(const char *const *)a, *(const char *const *)b, ID_LEN);
}

static bool is_kept(const char *id, const char *const *kept, size_t n)
{
	return n && bsearch(&id, kept, n, sizeof(*kept), by_id);
}

static bool is_cut(const char *commit, const char *const *kept, size_t n)
{
	for (const char *at = commit + ID_LEN; *at == ' '; at += ID_LEN + 1)
		if (!is_kept(at + 1, kept, n))
			return true;
	return false;
}

/* Boundaries that the repository has itself, among those commits. */
static void keep_shallow(struct abx_seed_repo *r, const char *const *kept, size_t n)
{
	abx_auto(abx_buf) struct abx_buf old = r->shallow;
	const char *at = abx_buf_str(&old);

	r->shallow = (struct abx_buf)ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	for (; strcspn(at, "\n") >= ID_LEN; at += strcspn(at, "\n") + (strchr(at, '\n') != NULL))
		if (is_kept(at, kept, n))
			abx_buf_addf(&r->shallow, "%.40s\n", at);
}

/* Everything whose parents do not all come along has none in the box. */
static void take_cut(struct abx_seed_repo *r, const struct abx_buf *out, struct abx_buf *in)
{
	abx_autofree const char **kept = NULL;
	const char *at = abx_buf_str(out), *end = at + out->len;
	size_t n = 0, lines = 0;
	bool any = false;

	for (const char *c = at; c < end; c++)
		lines += *c == '\n';
	kept = abx_xcalloc(lines + 1, sizeof(*kept));
	for (; at < end && n < lines; at += strcspn(at, "\n") + 1)
		kept[n++] = at + (*at == '-');
	qsort(kept, n, sizeof(*kept), by_id);
	for (size_t i = 0; i < n && !any; i++)
		any = is_cut(kept[i], kept, n);
	if (!any)
		return;
	keep_shallow(r, kept, n);
	for (size_t i = 0; i < n; i++) {
		if (!is_cut(kept[i], kept, n))
			continue;
		abx_buf_addf(in, "--shallow %.40s\n", kept[i]);
		abx_buf_addf(&r->shallow, "%.40s\n", kept[i]);
	}
	r->n_commits = n;
}

/* Keep the newest `depth` commits that lead to `tips`: all but one of them, and of what comes
 * before those the first one of each line, what git calls a boundary.  So the history of a
 * merge stays in one piece.  Nothing is cut when there are no more than that. */
static int cut(struct abx_seed_repo *r, int64_t depth, const struct abx_buf *tips,
	       struct abx_buf *in, struct abx_err *err)
{
	abx_autofree char *count = abx_xasprintf("--max-count=%lld", (long long)depth - 1);
	const char *const args[] = {"rev-list",
				    "--parents",
				    depth > 1 ? "--boundary" : "--no-walk",
				    "--stdin",
				    depth > 1 ? count : NULL,
				    NULL};
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	const int code = abx_git_run(&r->pack_git, args, tips, &out, err);

	if (code == 0)
		take_cut(r, &out, in);
	return code;
}

/* Of what the files of an operation name, what there is. */
static int add_underway(const struct abx_seed_repo *r, struct abx_buf *in, struct abx_err *err)
{
	static const char *const args[] = {"cat-file", "--batch-check=%(objectname) %(objecttype)",
					   NULL};
	abx_auto(abx_buf) struct abx_buf ask = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(ABX_GIT_OUTPUT_MAX);
	const char *at;
	int code;

	if (!r->underway.ids.len)
		return 0;
	for (size_t i = 0; i < r->underway.ids.len; i++)
		abx_buf_addf(&ask, "%s\n", r->underway.ids.items[i]);
	code = abx_git_run(&r->pack_git, args, &ask, &out, err);
	if (code < 0)
		return code;
	for (at = abx_buf_str(&out); *at; at += strcspn(at, "\n") + (strchr(at, '\n') != NULL))
		if (strncmp(at + 2 * ABX_OID_BYTES, " missing", 8) != 0)
			abx_buf_addf(in, "%.40s\n", at);
	return 0;
}

/* Does HEAD name a commit?  Asked before git status has answered. */
static bool has_head(const struct abx_seed_repo *r)
{
	abx_autofree char *loose = NULL, *line = NULL;

	if (!r->head_branch)
		return true;
	loose = abx_xasprintf("%s/refs/heads/%s", r->place.common_dir, r->head_branch);
	line = abx_xasprintf(" refs/heads/%s\n", r->head_branch);
	return access(loose, F_OK) == 0 ||
	       abx_seed_repo_packs(r, (const char *const[]){line, NULL});
}

int abx_seed_pack_start(struct abx_seed_repo *r, int64_t depth, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf in = ABX_BUF_INIT(SHALLOW_MAX);
	abx_auto(abx_buf) struct abx_buf tips = ABX_BUF_INIT(SHALLOW_MAX);
	abx_autofree char *base = abx_xasprintf("%s/%s", r->spool, ABX_SEED_PACK);
	const char *more[3] = {NULL};
	size_t n = 0;
	bool partial = false;
	const uint64_t bytes = packed_bytes(r, &partial);
	int code = prepare_git(r, err);

	if (code == 0)
		code = read_shallow(r, err);
	if (r->want.commit)
		abx_buf_addf(&tips, "%s\n", r->want.commit);
	else if (!r->want.clean && has_head(r))
		abx_buf_adds(&tips, "HEAD\n");
	for (size_t i = 0; i < r->refs.len; i++)
		abx_buf_addf(&tips, "%.40s\n", r->refs.items[i]);
	if (code == 0)
		code = add_underway(r, &tips, err);
	if (!depth && bytes > CHEAP_BYTES)
		depth = CHEAP_DEPTH;
	if (code == 0 && tips.len && depth > 0)
		code = cut(r, depth, &tips, &in, err);
	if (code < 0)
		return code;
	abx_buf_add(&in, abx_buf_str(&tips), tips.len);
	if (in.failed || tips.failed || r->shallow.failed)
		return abx_err_set(err, ABX_ENOMEM, "git pack-objects: too many commits to name");
	if (!r->want.clean)
		more[n++] = "--indexed-objects";
	if (partial)
		more[n++] = "--missing=allow-any";
	return abx_git_start_pack(&r->pack_git, more, &in, base, &r->pack, err);
}

int abx_seed_pack_finish(struct abx_seed_repo *r, int stop_fd, struct abx_err *err)
{
	struct pollfd fds[2] = {{r->pack.out_fd, POLLIN, 0}, {stop_fd, POLLIN, 0}};
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(PACK_HASH_MAX);
	int code;

	if (r->packed)
		return 0;
	while (!(fds[0].revents | fds[1].revents) && poll(fds, 2, -1) < 0)
		if (errno != EINTR)
			return abx_err_errno(err, errno, "wait for git");
	if (fds[1].revents)
		return abx_err_set(err, ABX_ECANCELED, "git pack-objects: given up");
	code = abx_git_finish(&r->pack, &out, err);
	r->packed = code == 0;
	return code;
}
