/* SPDX-License-Identifier: MIT */
/* What dead processes left behind. */
#include "core/box/recover.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/box/undo.h"
#include "core/host/registry.h"
#include "core/state/labels.h"
#include "core/state/lock.h"
#include "core/util/clock.h"
#include "core/util/log.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

#define LIST_TIMEOUT_MS 60000

void abx_leftovers_release(struct abx_leftovers *l)
{
	for (size_t i = 0; i < l->len; i++) {
		free(l->items[i].provider);
		free(l->items[i].name);
		free(l->items[i].id);
		free(l->items[i].box_id);
		free(l->items[i].done);
		free(l->items[i].problem);
	}
	free(l->items);
	memset(l, 0, sizeof(*l));
}

struct abx_leftover *abx_leftovers_add(struct abx_leftovers *l, enum abx_leftover_kind kind,
				       const char *provider, const char *name, const char *id)
{
	struct abx_leftover *one;

	l->items = abx_xreallocarray(l->items, l->len + 1, sizeof(*l->items));
	one = &l->items[l->len++];
	memset(one, 0, sizeof(*one));
	one->kind = kind;
	one->provider = abx_xstrdup_null(provider);
	one->name = abx_xstrdup_null(name);
	one->id = abx_xstrdup(id);
	return one;
}

void abx_leftover_settle(struct abx_leftover *one, int r, const char *done,
			 const struct abx_err *err)
{
	if (r < 0)
		one->problem = abx_xstrdup(err->text);
	else
		one->done = abx_xstrdup(done);
}

/* Does anybody still work on it?  The lock comes back when nobody does. */
static bool abandoned(struct abx_app *app, const char *id, int *ret_lock)
{
	return abx_lock_box(&app->home, id, 0, ret_lock, NULL) == 0;
}

static int finish_box(struct abx_app *app, const char *id, enum abx_recover_mode mode,
		      struct abx_leftovers *ret, struct abx_err *err)
{
	const struct abx_undo how = {0};
	abx_autoclose int lock = -1;
	struct abx_err why = ABX_ERR_INIT;
	struct abx_box box = {0};
	int r;

	if (!abandoned(app, id, &lock))
		return 0;
	/* It may have been finished between the listing and the lock. */
	r = abx_boxes_load(app->db, id, &box, err);
	if (r == ABX_ENOBOX)
		return 0;
	if (r == 0 && box.pending) {
		struct abx_leftover *one =
			abx_leftovers_add(ret, ABX_LEFT_BOX, box.provider, box.name, box.id);

		if (mode != ABX_RECOVER_LOOK)
			abx_leftover_settle(one, abx_undo_box(app, &box, &how, &why), "removed",
					    &why);
	}
	abx_box_release(&box);
	return r;
}

static int finish_boxes(struct abx_app *app, enum abx_recover_mode mode, const char *provider,
			struct abx_leftovers *ret, struct abx_err *err)
{
	struct abx_box_list boxes = {0};
	int r = abx_boxes_list(app->db, NULL, &boxes, err);

	for (size_t i = 0; i < boxes.len && r == 0; i++) {
		const struct abx_box *b = &boxes.items[i];

		if (b->pending && (!provider || strcmp(b->provider, provider) == 0))
			r = finish_box(app, b->id, mode, ret, err);
	}
	abx_box_list_release(&boxes);
	return r;
}

static int adopt(struct abx_app *app, const char *provider, const struct abx_sandbox *s,
		 const char *box_id, struct abx_err *err)
{
	const char *name = abx_sandbox_label(s, ABX_LABEL_NAME);
	abx_autofree char *cwd = realpath(".", NULL), *branch = NULL;
	struct abx_reserve in = {.id = box_id,
				 .name = name,
				 .project_path = cwd,
				 .workspace = cwd,
				 .provider = provider};
	struct abx_box box = {0};
	int r;

	if (!cwd)
		return abx_err_errno(err, errno, "find the current directory");
	if (!name || abx_check_box_name(name, NULL) < 0)
		in.name = NULL;
	r = abx_boxes_reserve(app->db, &in, &box, err);
	if (r < 0)
		return r;
	branch = abx_xasprintf("agentbox/%s", box.name);
	abx_xreplace(&box.sandbox_id, s->id);
	abx_xreplace(&box.account, s->account);
	abx_xreplace(&box.provider_data, s->provider_data);
	abx_xreplace(&box.attempt, abx_sandbox_label(s, ABX_LABEL_ATTEMPT));
	abx_xreplace(&box.branch, branch);
	abx_xreplace(&box.pending, NULL);
	box.state = abx_box_state_of_sandbox(s->state);
	box.expires_at_ms = s->expires_at_ms;
	r = abx_boxes_update(app->db, &box, err);
	abx_box_release(&box);
	return r;
}

static int remove_orphan(struct abx_cloud *cloud, const struct abx_sandbox *s, struct abx_err *err)
{
	struct abx_call_opts o = {.timeout_ms = LIST_TIMEOUT_MS, .cleanup = true};
	struct abx_stop_req req = {ABX_INIT(struct abx_stop_req)};
	int r = abx_cloud_destroy(cloud, &o, s, &req, err);

	return r == ABX_ENOTFOUND ? 0 : r;
}

/* Older than the database, which was lost and started anew: its record went with it, and
 * what is in it may be somebody's work. */
static bool predates_database(struct abx_app *app, const struct abx_sandbox *s)
{
	char begun[ABX_TIME_TEXT_BYTES] = "";
	sqlite3_stmt *stmt = NULL;

	if (abx_db_query(app->db, &stmt, NULL, "SELECT created_at FROM install", "") == 0 &&
	    abx_db_step(app->db, stmt, NULL) == 1)
		abx_time_text(sqlite3_column_int64(stmt, 0), begun);
	(void)sqlite3_finalize(stmt);
	return s->created_at && *begun && strcmp(s->created_at, begun) < 0;
}

static bool id_safe(const char *id)
{
	return id && strlen(id) == 16 && strspn(id, "0123456789abcdef") == 16;
}

static int settle_orphan(struct abx_app *app, struct abx_cloud *cloud, const struct abx_sandbox *s,
			 enum abx_recover_mode mode, struct abx_leftovers *ret, struct abx_err *err)
{
	const char *box_id = abx_sandbox_label(s, ABX_LABEL_BOX);
	abx_autoclose int lock = -1;
	struct abx_err why = ABX_ERR_INIT;
	struct abx_leftover *one;
	struct abx_box box = {0};
	int r = ABX_ENOBOX;

	if (id_safe(box_id)) {
		if (!abandoned(app, box_id, &lock))
			return 0;
		r = abx_boxes_load(app->db, box_id, &box, err);
	}
	if (r != ABX_ENOBOX) {
		/* A second sandbox of a living box: what a lost answer made. */
		bool same = r == 0 && (!box.sandbox_id || strcmp(box.sandbox_id, s->id) == 0);

		abx_box_release(&box);
		if (r < 0 || same)
			return r;
	}
	one = abx_leftovers_add(ret, ABX_LEFT_SANDBOX, abx_cloud_name(cloud),
				abx_sandbox_label(s, ABX_LABEL_NAME), s->id);
	one->box_id = abx_xstrdup_null(box_id);
	if (mode == ABX_RECOVER_ADOPT && r == ABX_ENOBOX && id_safe(box_id) &&
	    s->state != ABX_STATE_FAILED)
		abx_leftover_settle(one, adopt(app, abx_cloud_name(cloud), s, box_id, &why),
				    "recovered", &why);
	else if (mode == ABX_RECOVER_PRUNE && r == ABX_ENOBOX && predates_database(app, s))
		one->problem = abx_xstrdup("its record was lost; agentbox recover brings it back, "
					   "and then agentbox destroy removes it");
	else if (mode != ABX_RECOVER_LOOK)
		abx_leftover_settle(one, remove_orphan(cloud, s, &why), "removed", &why);
	/* Nobody else will need it: there is no record that could be locked again. */
	if (lock >= 0 && one->done && strcmp(one->done, "removed") == 0 && r == ABX_ENOBOX)
		abx_lock_forget(&app->home, box_id);
	return 0;
}

static int settle_orphans(struct abx_app *app, const char *provider, bool expected,
			  enum abx_recover_mode mode, struct abx_leftovers *ret,
			  struct abx_err *err)
{
	struct abx_call_opts o = {.timeout_ms = LIST_TIMEOUT_MS};
	struct abx_kv labels[ABX_N_INSTALL_LABELS];
	struct abx_sandbox_list found = {0};
	struct abx_err why = ABX_ERR_INIT;
	struct abx_config *config = NULL;
	struct abx_cloud *cloud;
	int r = abx_config_open(&app->home, NULL, NULL, &config, err);

	if (r < 0)
		return r;
	r = abx_app_cloud(app, provider, config, &cloud, &why);
	abx_config_close(config);
	abx_labels_of_install(app->db, labels);
	if (r == 0)
		r = abx_cloud_list(cloud, &o, labels, ABX_N_INSTALL_LABELS, &found, &why);
	if (r == ABX_ECANCELED)
		return abx_err_set(err, r, "%s", why.text);
	if (r < 0) {
		/* One that was never set up here has nothing of ours. */
		if (expected) {
			abx_warn("%s: its boxes were not looked at", why.text);
			ret->n_unreachable++;
		}
		return 0;
	}
	for (size_t i = 0; i < found.len && r == 0; i++) {
		const char *install = abx_sandbox_label(&found.items[i].s, ABX_LABEL_INSTALL);

		/* Whatever the provider answered: only what carries our own label. */
		if (install && strcmp(install, app->db->install) == 0)
			r = settle_orphan(app, cloud, &found.items[i].s, mode, ret, err);
	}
	abx_sandbox_list_release(&found);
	return r;
}

static bool listed(const struct abx_strv *v, const char *s)
{
	for (size_t i = 0; i < v->len; i++)
		if (strcmp(v->items[i], s) == 0)
			return true;
	return false;
}

/* Whoever only looked left an empty directory. */
static bool has_entries(int parent, const char *name)
{
	DIR *dir = abx_fs_opendir(parent, name);
	struct dirent *e;
	bool found = false;

	while (dir && !found && (e = readdir(dir)))
		found = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	if (dir)
		(void)closedir(dir);
	return found;
}

/* Providers that were used (they keep something in the home, or have boxes), then the others
 * that are installed.  ret_n_used says how many are of the first kind. */
static int all_providers(struct abx_app *app, struct abx_strv *ret, size_t *ret_n_used,
			 struct abx_err *err)
{
	DIR *dir = abx_fs_opendir(app->home.fd, "providers");
	struct abx_provider_files files = {0};
	struct abx_box_list boxes = {0};
	struct dirent *e;
	int r;

	while (dir && (e = readdir(dir)))
		if (abx_is_provider_name(e->d_name) && has_entries(dirfd(dir), e->d_name))
			abx_strv_add(ret, e->d_name);
	if (dir)
		(void)closedir(dir);
	r = abx_boxes_list(app->db, NULL, &boxes, err);
	for (size_t i = 0; i < boxes.len; i++)
		if (!listed(ret, boxes.items[i].provider))
			abx_strv_add(ret, boxes.items[i].provider);
	abx_box_list_release(&boxes);
	*ret_n_used = ret->len;
	if (r == 0)
		r = abx_registry_scan(&files, err);
	for (size_t i = 0; r == 0 && i < files.len; i++)
		if (!files.items[i].problem.code && !listed(ret, files.items[i].name))
			abx_strv_add(ret, files.items[i].name);
	abx_provider_files_release(&files);
	return r;
}

/* A sandbox that was left alone keeps what this machine knows of it. */
static bool belongs_to_kept(const struct abx_leftovers *l, const char *box_id)
{
	for (size_t i = 0; i < l->len; i++)
		if (l->items[i].kind == ABX_LEFT_SANDBOX && l->items[i].problem &&
		    l->items[i].box_id && strcmp(l->items[i].box_id, box_id) == 0)
			return true;
	return false;
}

/* Directories named after boxes that have no record. */
static int sweep_dir(struct abx_app *app, const char *name, enum abx_recover_mode mode,
		     struct abx_leftovers *ret, struct abx_err *err)
{
	DIR *dir = abx_fs_opendir(app->home.fd, name);
	struct dirent *e;
	int r = 0;

	while (dir && r == 0 && (e = readdir(dir))) {
		abx_autoclose int lock = -1;
		abx_autofree char *what = abx_xasprintf("%s/%s", name, e->d_name);
		struct abx_err why = ABX_ERR_INIT;
		struct abx_leftover *one;
		struct abx_box box = {0};

		if (!id_safe(e->d_name) || !abandoned(app, e->d_name, &lock))
			continue;
		r = abx_boxes_load(app->db, e->d_name, &box, err);
		abx_box_release(&box);
		if (r != ABX_ENOBOX)
			continue;
		r = 0;
		if (belongs_to_kept(ret, e->d_name))
			continue;
		if (strcmp(name, "locks") != 0) {
			one = abx_leftovers_add(ret, ABX_LEFT_FILES, NULL, NULL, what);
			if (mode == ABX_RECOVER_LOOK)
				continue;
			r = abx_fs_remove_tree(app->home.fd, what);
			if (r < 0)
				(void)abx_err_errno(&why, r, "remove '%s/%s'", app->home.path,
						    what);
			abx_leftover_settle(one, r, "removed", &why);
			r = 0;
		}
		abx_lock_forget(&app->home, e->d_name);
	}
	if (dir)
		(void)closedir(dir);
	return r;
}

int abx_recover(struct abx_app *app, enum abx_recover_mode mode, const char *provider,
		struct abx_leftovers *ret, struct abx_err *err)
{
	static const char *const dirs[] = {"tmp", "boxes", "locks"};
	struct abx_strv providers = {0};
	size_t n_used = 0;
	int r = abx_app_open(app, err);

	if (r == 0)
		r = finish_boxes(app, mode, provider, ret, err);
	if (r == 0)
		r = abx_recover_attempts(app, mode, provider, ret, err);
	if (r == 0)
		r = all_providers(app, &providers, &n_used, err);
	for (size_t i = 0; i < providers.len && r == 0; i++)
		if (!provider || strcmp(provider, providers.items[i]) == 0)
			r = settle_orphans(app, providers.items[i], i < n_used || provider, mode,
					   ret, err);
	for (size_t i = 0; i < ABX_N_ELEMENTS(dirs) && r == 0; i++)
		r = sweep_dir(app, dirs[i], mode, ret, err);
	abx_strv_release(&providers);
	return r;
}

void abx_recover_abandoned(struct abx_app *app, const char *provider)
{
	struct abx_leftovers found = {0};
	struct abx_err why = ABX_ERR_INIT;

	if (finish_boxes(app, ABX_RECOVER_PRUNE, provider, &found, &why) < 0 ||
	    abx_recover_attempts(app, ABX_RECOVER_PRUNE, provider, &found, &why) < 0 ||
	    sweep_dir(app, "tmp", ABX_RECOVER_PRUNE, &found, &why) < 0)
		abx_log(ABX_LOG_INFO, "recover", "%s", why.text);
	for (size_t i = 0; i < found.len; i++) {
		const struct abx_leftover *one = &found.items[i];

		if (one->problem)
			abx_warn("%s '%s' was left unfinished and could not be removed: %s "
				 "(agentbox prune)",
				 one->kind == ABX_LEFT_BOX ? "box" : "snapshot",
				 one->name ? one->name : one->id, one->problem);
		else
			abx_log(ABX_LOG_INFO, "recover", "removed '%s', left unfinished",
				one->name ? one->name : one->id);
	}
	abx_leftovers_release(&found);
}
