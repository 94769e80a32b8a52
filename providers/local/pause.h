/* SPDX-License-Identifier: MIT */
/*
 * pause.h: holding all processes of a box, and letting them go on.
 *
 * By the freezer of cgroups where one can be had, else by SIGSTOP.  boxes/<id>/paused says how
 * and by whom, and is there before the first process is held.  A box is paused when that
 * record is complete and the kernel agrees; anything less is what a dead client has left, and
 * the next operation that meets it lets the processes go on.
 *
 * Who enters a box holds boxes/<id>/gate shared until it is in sight of others; who holds
 * the box's processes takes it exclusively first.  So nobody slips in unheld:
 *
 *	struct local_freeze f;
 *
 *	r = local_freeze(s, call, &b, &run, &f);     the box's lock is held, the box runs
 *	if (r == ABX_OK) {
 *		... nothing in the box runs, and nobody enters ...
 *		r = local_thaw(s, call, &b, &run, &f);
 *	}
 */
#ifndef LOCAL_PAUSE_H
#define LOCAL_PAUSE_H

#include "providers/local/local.h"

struct local_freeze {
	int gate_fd;
	bool was_paused; /* by its user: it stays so */
};

int32_t local_freeze(struct abx_session *s, struct abx_call *call, const struct local_box *b,
		     const struct local_run *run, struct local_freeze *ret);
/* Never waits for the call's deadline: what was held goes on. */
int32_t local_thaw(struct abx_session *s, struct abx_call *call, const struct local_box *b,
		   const struct local_run *run, struct local_freeze *f);

/* ABX_STATE_* of a box. */
uint32_t local_box_state(const struct local_box *b, const struct local_run *run);
/* Wait until the box may be entered, and look who its first process is: *ret_gate is to be
 * held until that has happened.  ABX_ESTATE, already failed, when it is paused; a box that
 * does not run is for the caller to judge. */
int32_t local_pause_pass(struct abx_session *s, struct abx_call *call, const struct local_box *b,
			 struct local_run *run, int *ret_gate);
/* The gate alone, for who looks at a box that may be paused. */
int32_t local_pause_gate(struct abx_call *call, const struct local_box *b, int *ret_gate);
/* Nobody enters while *ret_gate is open, and whoever has entered can be seen. */
int32_t local_gate_close(struct abx_call *call, const struct local_box *b, int *ret_gate);
/* The first process was told to end, or to die: the others must be able to. */
void local_pause_release(const struct local_box *b);
/* The box has ended. */
void local_pause_forget(const struct local_box *b);

#endif
