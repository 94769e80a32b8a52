/* SPDX-License-Identifier: MIT */
/* Snapshots of boxes, and checkpoints made of them. */
#include "core/checkpoint/take.h"

#include <string.h>

#include "core/checkpoint/store.h"
#include "core/state/labels.h"
#include "core/util/clock.h"
#include "core/util/log.h"
#include "core/util/mem.h"

#define SNAPSHOT_TIMEOUT_MS 900000
#define DELETE_TIMEOUT_MS 120000

int abx_checkpoint_supported(const struct abx_checkpointer *k, struct abx_err *err)
{
	if (abx_cloud_table(k->cloud)->snapshot_create)
		return 0;
	return abx_err_set(err, ABX_ENOTSUP, "provider '%s': cannot take snapshots",
			   abx_cloud_name(k->cloud));
}

static bool durable(const struct abx_checkpointer *k)
{
	return !(abx_cloud_caps(k->cloud) & ABX_CAP_LOCAL);
}

static void describe(const struct abx_box *box, const char *name, const char *attempt,
		     struct abx_checkpoint *ret)
{
	char now[ABX_TIME_TEXT_BYTES];

	abx_time_text(abx_wall_ms(), now);
	*ret = (struct abx_checkpoint){
		.name = abx_xstrdup_null(name),
		.provider = abx_xstrdup(box->provider),
		.account = abx_xstrdup_null(box->account),
		.attempt = abx_xstrdup(attempt),
		.created_at = abx_xstrdup(now),
		.box_id = abx_xstrdup(box->id),
		.box_name = abx_xstrdup(box->name),
		.project = abx_xstrdup(box->project),
		.workspace = abx_xstrdup(box->workspace),
		.branch = abx_xstrdup_null(box->branch),
		.base_commit = abx_xstrdup_null(box->base_commit),
		.seed_tree = abx_xstrdup_null(box->seed_tree),
		.spec = abx_xstrdup_null(box->spec),
	};
}

/* Everything that carries the attempt's label, also what an answer that was lost made.  Returns
 * how many there were. */
static int delete_labelled(const struct abx_checkpointer *k, const struct abx_checkpoint *c)
{
	const struct abx_call_opts o = {.timeout_ms = DELETE_TIMEOUT_MS, .cleanup = true};
	const struct abx_kv labels[] = {{ABX_LABEL_MARK, "true"},
					{ABX_LABEL_INSTALL, k->db->install},
					{ABX_LABEL_ATTEMPT, c->attempt}};
	struct abx_snapshot_list found = {0};
	int r;

	r = abx_cloud_snapshot_list(k->cloud, &o, labels, ABX_N_ELEMENTS(labels), &found, NULL);
	for (size_t i = 0; i < found.len && r == 0; i++)
		r = abx_cloud_snapshot_delete(k->cloud, &o, found.items[i].s.ref, NULL);
	if (r == 0)
		r = found.len ? 1 : 0;
	abx_snapshot_list_release(&found);
	return r;
}

static bool leaves_nothing(const struct abx_checkpointer *k, const struct abx_checkpoint *c, int r,
			   const struct abx_err *err)
{
	const int found = delete_labelled(k, c);

	/* A service may go on making what nobody waits for: nothing is there yet, and the attempt
	 * stays on record for prune. */
	return found > 0 || !abx_err_may_have_happened(r, err) || (found == 0 && !durable(k));
}

/* With the attempt on record. */
static int ask_provider(const struct abx_checkpointer *k, const struct abx_box *box,
			struct abx_checkpoint *c, struct abx_err *err)
{
	const struct abx_call_opts o = {
		.timeout_ms = SNAPSHOT_TIMEOUT_MS, .box_id = box->id, .attempt = c->attempt};
	abx_autofree char *outside = abx_xasprintf("agentbox-%s", c->attempt);
	struct abx_snapshot_req req = {ABX_INIT(struct abx_snapshot_req)};
	struct abx_sandbox s = abx_cloud_sandbox(box);
	struct abx_kv labels[ABX_N_LABELS];
	struct abx_snapshot_copy got = {0};
	int r;

	abx_labels_of_snapshot(k->db, box->id, c->name ? c->name : "", c->attempt, labels);
	req.flags = k->stop ? ABX_SNAPREQ_STOP : 0;
	req.name = outside;
	req.labels = labels;
	req.n_labels = ABX_N_LABELS;
	r = abx_cloud_snapshot_create(k->cloud, &o, &s, &req, &got, err);
	if (r < 0)
		return r;
	c->ref = abx_xstrdup(got.s.ref);
	c->size_bytes = got.s.size_bytes;
	c->memory = got.s.flags & ABX_SNAP_WITH_MEMORY;
	if (got.s.account)
		abx_xreplace(&c->account, got.s.account);
	abx_snapshot_copy_release(&got);
	return 0;
}

static int snapshot(const struct abx_checkpointer *k, const struct abx_box *box,
		    struct abx_attempt *attempt, const char *name, struct abx_checkpoint *ret,
		    struct abx_err *err)
{
	struct abx_err why = ABX_ERR_INIT;
	struct abx_checkpoint c;
	int r;

	describe(box, name, attempt->id, &c);
	r = ask_provider(k, box, &c, &why);
	if (r == 0) {
		*ret = c;
		return 0;
	}
	abx_attempt_end(k->home, k->db, attempt, leaves_nothing(k, &c, r, &why));
	abx_checkpoint_release(&c);
	if (err)
		*err = why;
	return r;
}

int abx_checkpoint_snapshot(const struct abx_checkpointer *k, const struct abx_box *box,
			    struct abx_attempt *ret_attempt, struct abx_checkpoint *ret,
			    struct abx_err *err)
{
	const struct abx_attempt_of what = {.provider = box->provider, .kind = "snapshot"};
	struct abx_attempt attempt = ABX_ATTEMPT_INIT;
	int r = abx_attempt_begin(k->home, k->db, &what, &attempt, err);

	if (r == 0)
		r = snapshot(k, box, &attempt, NULL, ret, err);
	if (r == 0)
		*ret_attempt = attempt;
	return r;
}

static int say_taken(const struct abx_checkpoint *c, struct abx_err *err)
{
	(void)abx_err_set(err, ABX_EEXIST, "checkpoint '%s': there is one, taken of box '%s' at %s",
			  c->name, c->box_name ? c->box_name : "?", c->created_at);
	return abx_err_remedy(err, "choose another name, or: agentbox checkpoint rm %s", c->name);
}

/* 1 when a row of that record is there. */
static int under_way(struct abx_db *db, const char *record, struct abx_err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = abx_db_query(db, &stmt, err, "SELECT 1 FROM resources WHERE record = ?", "s",
			     record);

	if (r < 0)
		return r;
	r = abx_db_step(db, stmt, err);
	(void)sqlite3_finalize(stmt);
	return r;
}

static int check_free(const struct abx_checkpointer *k, const struct abx_box *box, const char *name,
		      const char *record, struct abx_err *err)
{
	struct abx_checkpoint there = {0};
	struct abx_err why = ABX_ERR_INIT;
	int r = under_way(k->db, record, err);

	if (r < 0)
		return r;
	if (r > 0) {
		(void)abx_err_set(err, ABX_ESTATE,
				  "checkpoint '%s': busy, another command is making it", name);
		return abx_err_remedy(err, "wait until it is done; agentbox prune removes what an "
					   "interrupted one left");
	}
	r = abx_checkpoint_load(k->home, box->provider, box->project, name, &there, &why);
	if (r == ABX_ENOBOX)
		return 0;
	if (r == 0)
		r = say_taken(&there, err);
	else if (err)
		*err = why;
	abx_checkpoint_release(&there);
	return r;
}

/* Whoever comes second finds the row or the manifest of the first. */
static int reserve(const struct abx_checkpointer *k, const struct abx_box *box, const char *name,
		   struct abx_attempt *ret, struct abx_err *err)
{
	abx_autofree char *record = abx_checkpoint_record(box->provider, box->project, name);
	const struct abx_attempt_of what = {
		.provider = box->provider, .kind = "snapshot", .name = name, .record = record};
	int r = abx_db_begin(k->db, err);

	if (r < 0)
		return r;
	r = check_free(k, box, name, record, err);
	if (r == 0)
		r = abx_attempt_begin(k->home, k->db, &what, ret, err);
	if (r == 0)
		r = abx_db_commit(k->db, err);
	if (r < 0) {
		abx_db_rollback(k->db);
		abx_attempt_end(k->home, k->db, ret, /* gone= */ true);
	}
	return r;
}

int abx_checkpoint_take(const struct abx_checkpointer *k, const struct abx_box *box,
			const char *name, const char *seed, struct abx_checkpoint *ret,
			struct abx_err *err)
{
	struct abx_attempt attempt = ABX_ATTEMPT_INIT;
	struct abx_checkpoint c = {0};
	int r = reserve(k, box, name, &attempt, err);

	if (r == 0)
		r = snapshot(k, box, &attempt, name, &c, err);
	if (r < 0)
		return r;
	r = abx_checkpoint_save(k->home, &c, seed, durable(k), err);
	if (r == 0)
		r = abx_attempt_keep(k->db, &attempt, err);
	if (r < 0) {
		bool gone = abx_checkpoint_remove(k, &c, NULL) == 0;

		abx_attempt_end(k->home, k->db, &attempt, gone);
		abx_checkpoint_release(&c);
		return r;
	}
	abx_attempt_end(k->home, k->db, &attempt, /* gone= */ false);
	*ret = c;
	return 0;
}

void abx_checkpoint_discard(const struct abx_checkpointer *k, const struct abx_checkpoint *c,
			    struct abx_attempt *attempt)
{
	const struct abx_call_opts o = {.timeout_ms = DELETE_TIMEOUT_MS, .cleanup = true};
	struct abx_err why = ABX_ERR_INIT;
	int r = abx_cloud_snapshot_delete(k->cloud, &o, c->ref, &why);

	if (r < 0)
		abx_log(ABX_LOG_INFO, "checkpoint", "snapshot %s stays for now: %s", c->ref,
			why.text);
	abx_attempt_end(k->home, k->db, attempt, r == 0);
}

int abx_checkpoint_remove(const struct abx_checkpointer *k, const struct abx_checkpoint *c,
			  struct abx_err *err)
{
	const struct abx_call_opts o = {.timeout_ms = DELETE_TIMEOUT_MS, .cleanup = true};
	int r = abx_cloud_snapshot_delete(k->cloud, &o, c->ref, err);

	if (r < 0)
		return abx_err_wrap(err, "checkpoint '%s'", c->name);
	return abx_checkpoint_remove_files(k->home, c->provider, c->project, c->name, err);
}

static bool spoken_for(const struct abx_checkpoint_list *all, const struct abx_snapshot *s)
{
	for (size_t i = 0; i < all->len; i++)
		if (strcmp(all->items[i].ref, s->ref) == 0)
			return true;
	return false;
}

int abx_checkpoint_remove_damaged(const struct abx_checkpointer *k, const char *project,
				  const char *name, struct abx_err *err)
{
	const struct abx_call_opts o = {.timeout_ms = DELETE_TIMEOUT_MS, .cleanup = true};
	const char *provider = abx_cloud_name(k->cloud);
	const struct abx_kv labels[] = {{ABX_LABEL_MARK, "true"},
					{ABX_LABEL_INSTALL, k->db->install},
					{ABX_LABEL_NAME, name}};
	struct abx_checkpoint_list all = {0};
	struct abx_snapshot_list found = {0};
	int r = abx_cloud_snapshot_list(k->cloud, &o, labels, ABX_N_ELEMENTS(labels), &found, err);

	abx_checkpoints_list(k->home, provider, /* project= */ NULL, &all);
	for (size_t i = 0; i < found.len && r == 0; i++)
		if (!spoken_for(&all, &found.items[i].s))
			r = abx_cloud_snapshot_delete(k->cloud, &o, found.items[i].s.ref, err);
	abx_snapshot_list_release(&found);
	abx_checkpoint_list_release(&all);
	if (r < 0)
		return abx_err_wrap(err, "checkpoint '%s'", name);
	return abx_checkpoint_remove_files(k->home, provider, project, name, err);
}
