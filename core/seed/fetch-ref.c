/* SPDX-License-Identifier: MIT */
/* The ref that a box's commits get on this machine. */
#include <fcntl.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/seed/fetch-io.h"
#include "core/seed/stream-git.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

#define LIST_MAX ((size_t)64 << 20)
#define MEMORY_MAX ((size_t)4 << 20)
#define NO_OBJECT "0000000000000000000000000000000000000000"

int abx_fetch_ref(const char *name, char **ret, struct abx_err *err)
{
	const bool full = strncmp(name, "refs/", 5) == 0;
	char shown[200];

	if (abx_is_branch_name(name) && strcmp(name, "HEAD") != 0 &&
	    (!full || strchr(name + 5, '/'))) {
		*ret = full ? abx_xstrdup(name) : abx_xasprintf("refs/heads/%s", name);
		return 0;
	}
	abx_quote_text(name, shown, sizeof(shown));
	(void)abx_err_set(err, ABX_EUSAGE, "--as '%s': not a name for a branch", shown);
	return abx_err_remedy(err, "a branch, or a name that begins with refs/");
}

/* ---- what was written before ----
 * "PATH" NUL "REF" NUL "ID" NUL, ...: what this box's fetches made of a ref.  An id is written
 * down before the ref moves there, beside the one that it has. */

static int read_memory(const struct abx_fetch_ask *ask, struct abx_buf *b, struct abx_err *err)
{
	const int r = abx_fs_read(AT_FDCWD, ask->memory, b);

	if (r == -ENOENT)
		return 0;
	return r < 0 ? abx_err_errno(err, -r, "read '%s'", ask->memory) : 0;
}

/* The three strings of the next entry; false at the end. */
static bool next_entry(const char **at, const char *end, const char *fields[3])
{
	for (int i = 0; i < 3; i++) {
		const char *nul = *at < end ? memchr(*at, '\0', (size_t)(end - *at)) : NULL;

		if (!nul)
			return false;
		fields[i] = *at;
		*at = nul + 1;
	}
	return true;
}

static int we_wrote(const struct abx_fetch_ask *ask, const char *path, const char *id, bool *ret,
		    struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(MEMORY_MAX);
	int r = read_memory(ask, &b, err);
	const char *at = abx_buf_str(&b), *end = at + b.len, *f[3];

	*ret = false;
	while (r == 0 && next_entry(&at, end, f))
		if (strcmp(f[0], path) == 0 && strcmp(f[1], ask->ref) == 0 && strcmp(f[2], id) == 0)
			*ret = true;
	return r;
}

static void add_entry(struct abx_buf *b, const char *path, const char *ref, const char *id)
{
	abx_buf_add(b, path, strlen(path) + 1);
	abx_buf_add(b, ref, strlen(ref) + 1);
	abx_buf_add(b, id, strlen(id) + 1);
}

static int remember(const struct abx_fetch_ask *ask, const struct abx_fetched_repo *repo,
		    bool keep_old, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(MEMORY_MAX);
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(MEMORY_MAX);
	int r = read_memory(ask, &b, err);
	const char *at = abx_buf_str(&b), *end = at + b.len, *f[3];

	if (r < 0)
		return r;
	while (next_entry(&at, end, f))
		if (strcmp(f[0], repo->path) != 0 || strcmp(f[1], ask->ref) != 0 ||
		    (keep_old && repo->old_id && strcmp(f[2], repo->old_id) == 0))
			add_entry(&out, f[0], f[1], f[2]);
	add_entry(&out, repo->path, ask->ref, repo->new_id);
	if (out.failed)
		return abx_err_set(err, ABX_ENOMEM, "write '%s': too many refs", ask->memory);
	r = abx_fs_write_atomic(AT_FDCWD, ask->memory, out.data, out.len, 0600, keep_old);
	return r < 0 ? abx_err_errno(err, -r, "write '%s'", ask->memory) : 0;
}

/* ---- what is there ---- */

static int refuse(struct abx_err *err, const char *fmt, ...) ABX_PRINTF(2, 3);
static int refuse(struct abx_err *err, const char *fmt, ...)
{
	char why[700];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	(void)abx_err_set(err, ABX_EEXIST, "%s", why);
	return abx_err_remedy(err, "agentbox fetch --as OTHER-NAME");
}

/* One line of for-each-ref: "ID SYMREF REF". */
static int take_ref(const char *line, const struct abx_fetch_ask *ask,
		    struct abx_fetched_repo *repo, struct abx_err *err)
{
	const size_t len = strlen(ask->ref);
	const char *symref = line + 41, *name = strchr(symref, ' ');
	size_t n;

	if (!name)
		return abx_err_set(err, ABX_EIO, "git for-each-ref: its output is not understood");
	name++;
	n = strlen(name);
	if (strcmp(name, ask->ref) == 0) {
		if (*symref != ' ')
			return refuse(err, "'%s' is a symbolic ref", ask->ref);
		repo->old_id = abx_xstrndup(line, 40);
	} else if ((n > len && name[len] == '/' && strncmp(name, ask->ref, len) == 0) ||
		   (n < len && ask->ref[n] == '/' && strncmp(name, ask->ref, n) == 0)) {
		return refuse(err, "'%s' cannot be: there is '%s'", ask->ref, name);
	}
	return 0;
}

/* The ref itself, what is below it, and each that is a directory of its name. */
static int look_at_refs(const struct abx_fetch_host *h, const struct abx_fetch_ask *ask,
			struct abx_fetched_repo *repo, struct abx_err *err)
{
	const char *args[40] = {"for-each-ref", "--format=%(objectname) %(symref) %(refname)"};
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(LIST_MAX);
	struct abx_strv names = {NULL, 0, 0};
	const char *at = strchr(ask->ref + 5, '/') + 1;
	size_t n = 2, len;
	int r;

	while ((at = strchr(at, '/')) && n < ABX_N_ELEMENTS(args) - 2) {
		abx_strv_take(&names, abx_xstrndup(ask->ref, (size_t)(at - ask->ref)));
		args[n++] = names.items[names.len - 1];
		at++;
	}
	args[n] = ask->ref;
	r = abx_git_run(&h->git, args, NULL, &out, err);
	for (char *line = out.data; r == 0 && line && *line; line += len + 1) {
		len = strcspn(line, "\n");
		if (!line[len])
			break;
		line[len] = '\0';
		r = len > 42 ? take_ref(line, ask, repo, err) : 0;
	}
	abx_strv_release(&names);
	return r;
}

/* Also a branch without a commit is checked out somewhere. */
static int check_work_trees(const struct abx_fetch_host *h, const struct abx_fetch_ask *ask,
			    struct abx_err *err)
{
	static const char *const args[] = {"worktree", "list", "--porcelain", NULL};
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(LIST_MAX);
	abx_autofree char *line = abx_xasprintf("\nbranch %s\n", ask->ref);
	const char *at, *start;
	char shown[300];
	abx_autofree char *where = NULL;
	int r = abx_git_run(&h->git, args, NULL, &out, err);

	at = r == 0 ? strstr(abx_buf_str(&out), line) : NULL;
	if (!at)
		return r;
	for (start = at; start > out.data && strncmp(start, "\nworktree ", 10) != 0; start--)
		;
	start += (*start == '\n') + strlen("worktree ");
	where = abx_xstrndup(start, strcspn(start, "\n"));
	abx_quote_text(where, shown, sizeof(shown));
	return refuse(err, "'%s' is checked out in '%s'", ask->ref, shown);
}

int abx_fetch_ref_look(const struct abx_fetch_host *h, const struct abx_fetch_ask *ask,
		       struct abx_fetched_repo *repo, struct abx_err *err)
{
	int r = look_at_refs(h, ask, repo, err);

	return r < 0 ? r : check_work_trees(h, ask, err);
}

int abx_fetch_ref_judge(const struct abx_fetch_host *h, const struct abx_fetch_ask *ask,
			struct abx_fetched_repo *repo, struct abx_err *err)
{
	const char *const args[] = {"merge-base", "--is-ancestor", repo->old_id, repo->new_id,
				    NULL};
	bool ours = false;
	int r;

	if (!repo->old_id) {
		repo->result = ABX_FETCH_NEW;
		return 0;
	}
	if (abx_git_run(&h->git, args, NULL, NULL, NULL) == 0) {
		repo->result = ABX_FETCH_FORWARD;
		return 0;
	}
	r = we_wrote(ask, repo->path, repo->old_id, &ours, err);
	if (r < 0)
		return r;
	if (!ours)
		return refuse(err, "'%s' is there, and it is not the box's history", ask->ref);
	repo->result = ABX_FETCH_MOVED;
	return 0;
}

int abx_fetch_ref_write(const struct abx_fetch_host *h, const struct abx_fetch_ask *ask,
			const struct abx_fetched_repo *repo, struct abx_err *err)
{
	const char *const args[] = {"-c",
				    "core.logAllRefUpdates=false",
				    "-c",
				    "core.hooksPath=/dev/null",
				    "update-ref",
				    "--no-deref",
				    ask->ref,
				    repo->new_id,
				    repo->old_id ? repo->old_id : NO_OBJECT,
				    NULL};
	int r = remember(ask, repo, /* keep_old= */ true, err);

	if (r == 0)
		r = abx_git_run(&h->git, args, NULL, NULL, err);
	return r < 0 ? r : remember(ask, repo, /* keep_old= */ false, err);
}
