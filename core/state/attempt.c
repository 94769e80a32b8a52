/* SPDX-License-Identifier: MIT */
/* Making something outside that belongs to no box. */
#include "core/state/attempt.h"

#include <string.h>

#include "abxsdk/fs.h"
#include "core/state/lock.h"
#include "core/util/log.h"
#include "core/util/mem.h"

#define RECORD_MAX_BYTES ((size_t)1 << 20)

static int insert_row(struct abx_db *db, const struct abx_attempt_of *what, const char *id,
		      struct abx_err *err)
{
	return abx_db_exec(db, err,
			   "INSERT INTO resources (provider, kind, name, phase, attempt, record)"
			   " VALUES (?, ?, ?, ?, ?, ?)",
			   "sssiss", what->provider, what->kind, what->name,
			   (int64_t)ABX_PHASE_INTENT, id, what->record);
}

int abx_attempt_begin(const struct abx_home *home, struct abx_db *db,
		      const struct abx_attempt_of *what, struct abx_attempt *ret,
		      struct abx_err *err)
{
	struct abx_attempt a = ABX_ATTEMPT_INIT;
	int r;

	abx_box_new_id(a.id);
	/* The lock comes first: a row without a holder is an abandoned one. */
	r = abx_lock_box(home, a.id, 0, &a.lock, err);
	if (r < 0)
		return r;
	r = insert_row(db, what, a.id, err);
	if (r < 0) {
		abx_lock_forget(home, a.id);
		(void)close(a.lock);
		return r;
	}
	*ret = a;
	return 0;
}

int abx_attempt_keep(struct abx_db *db, const struct abx_attempt *a, struct abx_err *err)
{
	/* The row that it was begun with; what a provider announced beside it goes by itself. */
	return abx_db_exec(db, err,
			   "DELETE FROM resources WHERE seq ="
			   " (SELECT min(seq) FROM resources WHERE attempt = ?)",
			   "s", a->id);
}

void abx_attempt_end(const struct abx_home *home, struct abx_db *db, struct abx_attempt *a,
		     bool gone)
{
	struct abx_err why = ABX_ERR_INIT;

	if (a->lock < 0)
		return;
	if (gone && abx_attempt_keep(db, a, &why) < 0)
		abx_log(ABX_LOG_INFO, "state", "%s", why.text);
	abx_lock_forget(home, a->id);
	(void)close(abx_steal_fd(&a->lock));
}

/* As a whole string of the JSON text. */
static bool names(const struct abx_buf *text, const char *what)
{
	abx_autofree char *quoted = what ? abx_xasprintf("\"%s\"", what) : NULL;

	return quoted && strstr(abx_buf_str(text), quoted);
}

bool abx_attempt_is_kept(const struct abx_home *home, const struct abx_resource_row *row)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(RECORD_MAX_BYTES);

	if (!row->record || abx_fs_read(home->fd, row->record, &text) < 0)
		return false;
	return names(&text, row->id) || names(&text, row->attempt);
}
