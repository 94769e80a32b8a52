/* SPDX-License-Identifier: MIT */
/* Making a box, as a journaled pipeline. */
#include "core/box/create-io.h"

#include <string.h>
#include <time.h>

#include "abxsdk/fs.h"
#include "core/box/amount.h"
#include "core/box/recover.h"
#include "core/box/undo.h"
#include "core/box/volumes.h"
#include "core/box/workspace.h"
#include "core/host/exec-tar.h"
#include "core/state/journal.h"
#include "core/state/labels.h"
#include "core/state/lock.h"
#include "core/util/clock.h"
#include "core/util/log.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

#define PROVISION_TIMEOUT_MS 600000
#define READY_TIMEOUT_MS 60000
#define READY_FIRST_WAIT_MS 100
#define READY_MAX_WAIT_MS 1000
#define SEED_TIMEOUT_MS 3600000
#define RESTART_TIMEOUT_MS 300000

/* The lock comes before the record: a record without a holder is an abandoned one. */
static int reserve(struct abx_creating *c, struct abx_err *err)
{
	abx_autofree char *spec = abx_box_spec_json(&c->spec);
	char id[17];
	struct abx_reserve in = {.id = id,
				 .spec = spec,
				 .name = c->req->name,
				 .project_path = c->workspace,
				 .workspace = c->workspace,
				 .provider = abx_cloud_name(c->cloud)};
	int r;

	abx_box_new_id(id);
	r = abx_lock_box(&c->app->home, id, 0, &c->lock, err);
	if (r < 0)
		return r;
	r = abx_boxes_reserve(c->app->db, &in, &c->box, err);
	if (r < 0) {
		abx_lock_forget(&c->app->home, id);
		return r;
	}
	c->reserved = true;
	return 0;
}

static int check_amount(struct abx_creating *c, struct abx_err *err)
{
	const bool local = abx_cloud_caps(c->cloud) & ABX_CAP_LOCAL;
	const char *max = abx_config_get(c->config, "box.max_seed", NULL);

	return abx_amount_check(c->req, c->seed, local, c->app->host.cancel_fd, max, err);
}

static int inspect(struct abx_creating *c, struct abx_err *err)
{
	abx_autofree char *spool = NULL;
	int r;

	if (c->origin.point.ref)
		return 0;
	r = abx_home_dir(&c->app->home, &spool, err, "tmp/%s", c->box.id);
	if (r < 0)
		return r;
	/* What a box on this machine costs is time; elsewhere nothing is made before the
	 * workspace is known to be one that can be carried. */
	if (abx_cloud_caps(c->cloud) & ABX_CAP_LOCAL)
		return c->req->look
			       ? 0
			       : abx_inspection_start(&c->look, c->workspace, spool, &c->how, err);
	r = c->req->look ? abx_create_borrow(c->req->look, spool, &c->seed, err)
			 : abx_seed_inspect(c->workspace, spool, &c->how, &c->seed, err);
	return r < 0 ? r : check_amount(c, err);
}

/* What was looked at while the box was made. */
static int inspected(struct abx_creating *c, struct abx_err *err)
{
	abx_autofree char *spool = abx_home_path(&c->app->home, "tmp/%s", c->box.id);
	int r = 0;

	if (!c->seed) {
		r = c->req->look ? abx_create_borrow(c->req->look, spool, &c->seed, err)
				 : abx_inspection_finish(&c->look, &c->seed, err);
		if (r == 0)
			r = check_amount(c, err);
	}
	return r;
}

static int journal(struct abx_creating *c, const char *step, enum abx_journal_phase phase,
		   const char *detail, struct abx_err *err)
{
	abx_log(ABX_LOG_INFO, "create", "%s: %s%s%s", step,
		phase == ABX_JOURNAL_INTENT ? "begins" : "done", detail ? ": " : "",
		detail ? detail : "");
	return abx_journal_add(c->app->db, c->box.id, "create", step, phase, detail, err);
}

/* What the provider said of it is in the record by now: take it over. */
static int reload(struct abx_creating *c, struct abx_err *err)
{
	return abx_boxes_reload(c->app->db, &c->box, err);
}

/* The answer was lost, the sandbox perhaps not: it carries this attempt's label. */
static int adopt_lost(struct abx_creating *c, struct abx_err *err)
{
	struct abx_call_opts o = {.timeout_ms = READY_TIMEOUT_MS};
	struct abx_kv labels[ABX_N_LABELS];
	struct abx_sandbox_list found = {0};
	int r;

	abx_labels_of_box(c->app->db, &c->box, labels);
	r = abx_cloud_list(c->cloud, &o, labels, ABX_N_LABELS, &found, err);
	if (r == 0 && found.len == 1)
		r = abx_boxes_set_sandbox(c->app->db, c->box.id, &found.items[0].s, err);
	else if (r == 0)
		r = ABX_ENOTFOUND;
	abx_sandbox_list_release(&found);
	return r;
}

/* They outlive the box, so they are no part of what a failed create takes back. */
static int ensure_volumes(struct abx_creating *c, struct abx_err *err)
{
	int r;

	if (!c->spec.volumes.len)
		return 0;
	r = journal(c, "volumes", ABX_JOURNAL_INTENT, NULL, err);
	if (r == 0)
		r = abx_volumes_ensure(c->app, c->cloud, &c->spec.volumes, &c->volume_ids, err);
	return r < 0 ? r : journal(c, "volumes", ABX_JOURNAL_DONE, NULL, err);
}

static int ask_provider(struct abx_creating *c, struct abx_err *err)
{
	struct abx_call_opts o = {.timeout_ms = PROVISION_TIMEOUT_MS, .box_id = c->box.id};
	struct abx_provision req = {ABX_INIT(struct abx_provision)};
	abx_autofree struct abx_kv *env = NULL, *options = NULL;
	struct abx_kv labels[ABX_N_LABELS];
	struct abx_sandbox_copy got = {0};
	struct abx_spec_lists lists = {0};
	int r;

	abx_labels_of_box(c->app->db, &c->box, labels);
	env = abx_env_kv(&c->env);
	req.name = c->box.name;
	req.image = c->image;
	req.snapshot = c->origin.point.ref;
	req.idempotency_key = c->box.attempt;
	req.labels = labels;
	req.n_labels = ABX_N_LABELS;
	req.env = env;
	req.n_env = (uint32_t)c->env.len;
	options = abx_create_options(c, &req.n_options);
	req.options = options;
	req.timeout_ms = c->timeout_ms;
	abx_box_spec_fill(&c->spec, &c->volume_ids, &lists, &req);
	r = abx_cloud_provision(c->cloud, &o, &req, &got, err);
	abx_sandbox_copy_release(&got);
	abx_spec_lists_release(&lists);
	return r;
}

static int provision(struct abx_creating *c, struct abx_err *err)
{
	struct abx_err why = ABX_ERR_INIT;
	int r = journal(c, "provision", ABX_JOURNAL_INTENT, c->box.attempt, err), again = 0;

	if (r == 0)
		r = abx_origin_env_save(c->app, c->box.id, &c->env, err);
	if (r < 0)
		return r;
	abx_env_set(&c->env, "AGENTBOX", c->box.name);
	r = ask_provider(c, &why);
	if (r < 0 && !abx_err_may_have_happened(r, &why))
		again = abx_create_replace_base(c, err);
	if (again < 0)
		return again;
	if (again) {
		why = (struct abx_err)ABX_ERR_INIT;
		r = ask_provider(c, &why);
	}
	if (r < 0 && r != ABX_ECANCELED && why.outcome_unknown && adopt_lost(c, NULL) == 0)
		r = 0;
	*err = why;
	if (r == 0)
		r = reload(c, err);
	else
		r = abx_origin_explain(&c->origin, r, err);
	return r < 0 ? r : journal(c, "provision", ABX_JOURNAL_DONE, c->box.sandbox_id, err);
}

static bool may_become_ready(int code)
{
	return code != ABX_EAUTH && code != ABX_EPERM && code != ABX_ECANCELED &&
	       code != ABX_ENOTSUP && code != ABX_EINVAL;
}

static int sleep_unless_cancelled(const struct abx_app *app, int64_t ms)
{
	int64_t until = abx_now_ms() + ms;

	while (abx_now_ms() < until) {
		struct timespec step = {0, 20000000};

		if (abx_app_cancelled(app))
			return ABX_ECANCELED;
		(void)nanosleep(&step, NULL);
	}
	return 0;
}

/* Until a trivial command succeeds, which may ask on the way what else has to be known. */
static int wait_ready(struct abx_creating *c, struct abx_err *err)
{
	static const char *const trivial[] = {"true", NULL};
	static const char *const asking[] = {"/bin/sh", "-c", ABX_ASK_ZSTD_SH, NULL};
	const bool asks = abx_exec_put_asks(c->cloud);
	const struct abx_exec_request req = {.argv = asks ? asking : trivial,
					     .cwd = "/",
					     .fd_in = -1,
					     .fd_out = -1,
					     .fd_err = -1};
	int64_t deadline = abx_now_ms() + READY_TIMEOUT_MS, wait = READY_FIRST_WAIT_MS;
	struct abx_sandbox s = abx_cloud_sandbox(&c->box);

	if (abx_cloud_caps(c->cloud) & (ABX_CAP_LOCAL | ABX_CAP_READY))
		return 0;
	for (;;) {
		struct abx_call_opts o = {.timeout_ms = deadline - abx_now_ms(),
					  .plain_exec = true};
		int code = 0, r;

		if (o.timeout_ms < 1)
			return abx_err_set(err, ABX_ETIMEDOUT,
					   "box '%s' did not become ready within %d s", c->box.name,
					   READY_TIMEOUT_MS / 1000);
		r = abx_exec_on(c->cloud, &o, &s, &req, &code, err);
		if (r == 0 && (code == 0 || (asks && code == ABX_ASK_ZSTD_NO))) {
			if (asks)
				c->zstd = code == 0 ? ABX_BOX_ZSTD_YES : ABX_BOX_ZSTD_NO;
			return 0;
		}
		if (r < 0 && !may_become_ready(r))
			return r;
		if (sleep_unless_cancelled(c->app, wait) < 0)
			return abx_err_set(err, ABX_ECANCELED, "interrupted");
		wait = wait * 3 / 2 > READY_MAX_WAIT_MS ? READY_MAX_WAIT_MS : wait * 3 / 2;
	}
}

/* What is in the box came with its snapshot; what is known of it comes along. */
static int adopt_origin(struct abx_creating *c, struct abx_err *err)
{
	const struct abx_checkpoint *point = &c->origin.point;
	int r = abx_origin_adopt(c->app, &c->origin, &c->box, err);

	if (r < 0)
		return r;
	if (!c->req->from)
		abx_xreplace(&c->box.checkpoint, point->name ? point->name : point->ref);
	return abx_boxes_update(c->app->db, &c->box, err);
}

/* --use-branch of what is checked out is no other state than that. */
static void record_state(struct abx_creating *c)
{
	abx_autofree char *spec = NULL;

	c->spec.committed = abx_seed_info(c->seed)->committed;
	spec = abx_box_spec_json(&c->spec);
	abx_xreplace(&c->box.spec, spec);
}

static int seed(struct abx_creating *c, struct abx_err *err)
{
	struct abx_call_opts o = {.timeout_ms = SEED_TIMEOUT_MS,
				  .box_id = c->box.id,
				  .has_mounts = abx_box_spec_has_mounts(c->box.spec)};
	struct abx_sandbox s = abx_cloud_sandbox(&c->box);
	abx_autofree char *branch = c->how.use_branch ? abx_xstrdup(c->how.use_branch)
						      : abx_xasprintf("agentbox/%s", c->box.name);
	abx_autofree char *dir = NULL;
	abx_autofree char *manifest = NULL;
	struct abx_seed_target target = {.dir = WORKSPACE_IN_BOX,
					 .branch = branch,
					 .progress = c->app->host.progress,
					 .progress_ctx = c->app->host.progress_ctx};
	struct abx_seed_result got = {0};
	int r;

	if (c->origin.point.ref)
		return adopt_origin(c, err);
	r = abx_home_dir(&c->app->home, &dir, err, "boxes/%s", c->box.id);
	if (r == 0)
		r = inspected(c, err);
	if (r == 0)
		r = journal(c, "seed", ABX_JOURNAL_INTENT, NULL, err);
	if (r < 0)
		return r;
	o.zstd = c->zstd;
	target.manifest = manifest = abx_xasprintf("%s/manifest", dir);
	r = abx_seed_into(c->seed, c->cloud, &o, &s, &target, &got, err);
	if (r < 0)
		return r;
	abx_xreplace(&c->box.branch, got.branch);
	abx_xreplace(&c->box.base_commit, got.base_commit);
	abx_xreplace(&c->box.seed_tree, got.seed_tree);
	abx_seed_result_release(&got);
	record_state(c);
	r = abx_boxes_update(c->app->db, &c->box, err);
	return r < 0 ? r : journal(c, "seed", ABX_JOURNAL_DONE, c->box.base_commit, err);
}

static int run_setup(struct abx_creating *c, struct abx_err *err)
{
	const char *script =
		c->req->setup ? c->req->setup : abx_config_get(c->config, "box.setup", NULL);
	const char *const argv[] = {"/bin/sh", "-c", script, NULL};
	abx_autofree char *cwd = abx_box_spec_cwd(&c->spec);
	struct abx_exec_request req = {.argv = argv,
				       .cwd = cwd,
				       .fd_in = -1,
				       .fd_out = STDERR_FILENO,
				       .fd_err = STDERR_FILENO};
	struct abx_call_opts o = {.box_id = c->box.id};
	struct abx_sandbox s = abx_cloud_sandbox(&c->box);
	int code = 0, r;

	if (!script || !*script || c->req->from)
		return 0;
	r = journal(c, "setup", ABX_JOURNAL_INTENT, NULL, err);
	if (r == 0)
		r = abx_exec_on(c->cloud, &o, &s, &req, &code, err);
	if (r < 0)
		return r;
	if (code) {
		(void)abx_err_set(err, ABX_ESTATE, "the setup script ended with exit code %d",
				  code);
		return abx_err_remedy(err, "the box was removed; create it without --setup to "
					   "look into it");
	}
	return journal(c, "setup", ABX_JOURNAL_DONE, NULL, err);
}

/* The project is there: from now on nobody in the box changes it. */
static int make_read_only(struct abx_creating *c, struct abx_err *err)
{
	struct abx_call_opts o = {.timeout_ms = RESTART_TIMEOUT_MS, .box_id = c->box.id};
	struct abx_stop_req stop = {ABX_INIT(struct abx_stop_req)};
	struct abx_start_req start = {ABX_INIT(struct abx_start_req)};
	struct abx_sandbox s = abx_cloud_sandbox(&c->box);
	int r;

	if (!c->spec.read_only)
		return 0;
	start = abx_box_start_req(&c->box);
	r = journal(c, "read_only", ABX_JOURNAL_INTENT, NULL, err);
	if (r == 0)
		r = abx_cloud_stop(c->cloud, &o, &s, &stop, err);
	if (r == 0)
		r = abx_cloud_start(c->cloud, &o, &s, &start, err);
	if (r == 0)
		r = reload(c, err);
	if (r == 0)
		r = wait_ready(c, err);
	return r < 0 ? r : journal(c, "read_only", ABX_JOURNAL_DONE, NULL, err);
}

/* The last row and the record's new state are one transaction: a box is whole or pending. */
static int finish(struct abx_creating *c, struct abx_err *err)
{
	abx_autofree char *spool = abx_xasprintf("tmp/%s", c->box.id);
	int r = abx_fs_remove_tree(c->app->home.fd, spool);

	if (r < 0)
		return abx_err_errno(err, r, "remove '%s/%s'", c->app->home.path, spool);
	r = abx_db_begin(c->app->db, err);
	if (r < 0)
		return r;
	abx_xreplace(&c->box.pending, NULL);
	c->box.state = ABX_BOX_RUNNING;
	r = abx_boxes_update(c->app->db, &c->box, err);
	if (r == 0)
		r = journal(c, "done", ABX_JOURNAL_DONE, NULL, err);
	if (r == 0)
		r = abx_db_commit(c->app->db, err);
	else
		abx_db_rollback(c->app->db);
	return r;
}

static int run_steps(struct abx_creating *c, struct abx_err *err)
{
	static int (*const steps[])(struct abx_creating *, struct abx_err *) = {
		abx_create_make_base, reserve, inspect,	  ensure_volumes, provision, wait_ready,
		abx_create_send_ca,   seed,    run_setup, make_read_only, finish};

	for (size_t i = 0; i < ABX_N_ELEMENTS(steps); i++) {
		int r = steps[i](c, err);

		if (r < 0)
			return r;
		if (i + 1 < ABX_N_ELEMENTS(steps) && abx_app_cancelled(c->app))
			return abx_err_set(err, ABX_ECANCELED, "create: interrupted");
	}
	return 0;
}

static void undo(struct abx_creating *c)
{
	const struct abx_undo how = {0};
	struct abx_err why = ABX_ERR_INIT;

	if (!c->reserved)
		return;
	/* An emitted sandbox may be on record that this process has not read back yet. */
	(void)reload(c, NULL);
	if (abx_undo_box(c->app, &c->box, &how, &why) < 0)
		abx_warn("box '%s' could not be removed again: %s (agentbox prune tries again)",
			 c->box.name, why.text);
}

void abx_creating_release(struct abx_creating *c)
{
	abx_origin_release(&c->origin);
	abx_seed_free(c->seed);
	abx_env_release(&c->env);
	abx_buf_release(&c->ca);
	abx_box_spec_release(&c->spec);
	abx_strv_release(&c->volume_ids);
	abx_strv_release(&c->included);
	abx_box_release(&c->box);
	abx_config_close(c->config);
	abx_cleanup_close(&c->lock);
	free(c->elsewhere);
	free(c->workspace);
	free(c->subdir);
	free(c->image);
	free(c->base_from);
}

static void say_subdir(const struct abx_creating *c, struct abx_strv *notes)
{
	char top[256], sub[256];

	if (!c->subdir)
		return;
	abx_quote_text(c->workspace, top, sizeof(top));
	abx_quote_text(c->subdir, sub, sizeof(sub));
	abx_strv_take(notes,
		      abx_xasprintf("'%s' is a part of the repository '%s', which the box has as a "
				    "whole; commands start in " WORKSPACE_IN_BOX "%s%s",
				    sub, top, c->spec.subdir ? "/" : "",
				    c->spec.subdir ? sub : ""));
}

int abx_create_box(struct abx_app *app, const struct abx_create *req, struct abx_box *ret,
		   struct abx_created *ret_created, struct abx_err *err)
{
	struct abx_creating c = {.app = app, .req = req, .look = ABX_INSPECTION_INIT, .lock = -1};
	int r = abx_create_prepare(&c, err);

	if (r == 0)
		r = run_steps(&c, err);
	/* Undoing removes what it may be writing to. */
	abx_inspection_release(&c.look);
	if (r < 0)
		undo(&c);
	*ret_created = (struct abx_created){0};
	if (r == 0) {
		const struct abx_seed_info *info = c.seed ? abx_seed_info(c.seed) : NULL;

		if (info)
			abx_amount_fill(info, ret_created);
		say_subdir(&c, &ret_created->notes);
		*ret = c.box;
		memset(&c.box, 0, sizeof(c.box));
	}
	abx_creating_release(&c);
	return r;
}
