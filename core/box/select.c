/* SPDX-License-Identifier: MIT */
/* Which box the user means. */
#include "core/box/select.h"

#include <string.h>

#include "abxsdk/buf.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

static bool project_known(struct abx_db *db, const char *path)
{
	sqlite3_stmt *stmt = NULL;
	bool known = abx_db_query(db, &stmt, NULL, "SELECT 1 FROM projects WHERE path = ?", "s",
				  path) == 0 &&
		     abx_db_step(db, stmt, NULL) == 1;

	sqlite3_finalize(stmt);
	return known;
}

int abx_select_project(struct abx_app *app, char **ret_path, char **ret_key, struct abx_err *err)
{
	abx_autofree char *cwd = realpath(".", NULL), *at = NULL;
	int r = abx_app_open(app, err);

	if (r < 0)
		return r;
	if (!cwd)
		return abx_err_errno(err, errno, "find the current directory");
	at = abx_xstrdup(cwd);
	while (!project_known(app->db, at)) {
		char *slash = strrchr(at, '/');

		if (!slash || slash == at) {
			free(at);
			at = abx_steal_ptr(&cwd);
			break;
		}
		*slash = '\0';
	}
	*ret_key = abx_project_key(at);
	*ret_path = abx_steal_ptr(&at);
	return 0;
}

static void move_box(struct abx_box_list *list, size_t i, struct abx_box *ret)
{
	*ret = list->items[i];
	memset(&list->items[i], 0, sizeof(list->items[i]));
}

static int say_which(const struct abx_box_list *list, const char *what, const size_t *matches,
		     size_t n, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf names = ABX_BUF_INIT(400);

	for (size_t i = 0; i < n && i < 5; i++)
		abx_buf_addf(&names, "%s%s", i ? ", " : "", list->items[matches[i]].name);
	if (n > 5)
		abx_buf_addf(&names, " and %zu more", n - 5);
	if (what)
		(void)abx_err_set(err, ABX_ENOBOX, "'%s' fits %zu boxes: %s", what, n,
				  abx_buf_str(&names));
	else
		(void)abx_err_set(err, ABX_ENOBOX, "this project has %zu boxes: %s", n,
				  abx_buf_str(&names));
	return abx_err_remedy(err, "say which one");
}

static int only_one(struct abx_app *app, const char *project, struct abx_box *ret,
		    struct abx_err *err)
{
	struct abx_box_list list = {0};
	size_t all[6] = {0, 1, 2, 3, 4, 5};
	int r = abx_boxes_list(app->db, project, &list, err);

	if (r == 0 && list.len == 1)
		move_box(&list, 0, ret);
	else if (r == 0 && list.len == 0) {
		(void)abx_err_set(err, ABX_ENOBOX, "this project has no box");
		r = abx_err_remedy(err, "agentbox create makes one; agentbox list -g shows all");
	} else if (r == 0)
		r = say_which(&list, NULL, all, list.len, err);
	abx_box_list_release(&list);
	return r;
}

static bool by_index(const struct abx_box *b, const char *what)
{
	uint64_t n;

	return abx_parse_u64(what, UINT32_MAX, &n) && n == b->index;
}

static bool exact(const struct abx_box *b, const char *what)
{
	return strcmp(b->name, what) == 0 || strcmp(b->id, what) == 0;
}

static bool prefix(const struct abx_box *b, const char *what)
{
	size_t len = strlen(what);

	return len && (strncmp(b->name, what, len) == 0 || strncmp(b->id, what, len) == 0);
}

static int pick(struct abx_box_list *list, const char *what,
		bool (*fits)(const struct abx_box *, const char *), struct abx_box *ret,
		struct abx_err *err)
{
	abx_autofree size_t *matches = abx_xcalloc(list->len, sizeof(*matches));
	size_t n = 0;

	for (size_t i = 0; i < list->len; i++)
		if (fits(&list->items[i], what))
			matches[n++] = i;
	if (n > 1)
		return say_which(list, what, matches, n, err);
	if (n == 0)
		return ABX_ENOBOX;
	move_box(list, matches[0], ret);
	return 0;
}

static int pick_any(struct abx_app *app, const char *project, const char *what, struct abx_box *ret,
		    struct abx_err *err)
{
	bool number = strspn(what, "0123456789") == strlen(what);
	struct abx_box_list list = {0};
	int r = abx_boxes_list(app->db, number ? project : NULL, &list, err);

	if (r == 0)
		r = pick(&list, what, number ? by_index : exact, ret, err);
	if (r == ABX_ENOBOX && !number)
		r = pick(&list, what, prefix, ret, err);
	abx_box_list_release(&list);
	return r;
}

int abx_select_box(struct abx_app *app, const char *what, struct abx_box *ret, struct abx_err *err)
{
	abx_autofree char *path = NULL, *key = NULL;
	char shown[80];
	struct abx_err why = ABX_ERR_INIT;
	bool number = what && *what && strspn(what, "0123456789") == strlen(what);
	/* A name is found from anywhere, a directory that was deleted included. */
	int r = what && !number ? abx_app_open(app, err)
				: abx_select_project(app, &path, &key, err);

	if (r < 0)
		return r;
	if (!what)
		return only_one(app, key, ret, err);
	r = *what ? pick_any(app, key, what, ret, &why) : ABX_ENOBOX;
	if (r == 0)
		return 0;
	if (why.code) {
		if (err)
			*err = why;
		return r;
	}
	abx_quote_text(what, shown, sizeof(shown));
	(void)abx_err_set(err, ABX_ENOBOX, "no box '%s'", shown);
	return abx_err_remedy(err, "agentbox list -g shows all");
}
