/* SPDX-License-Identifier: MIT */
/* What needs a box that runs, and what happens where it does not. */
#include "core/box/running.h"

#include "core/box/lifecycle.h"
#include "core/util/log.h"

#define LOOK_TIMEOUT_MS 30000

int abx_box_start_again(struct abx_app *app, struct abx_box *box, struct abx_err *err)
{
	const bool paused = box->state == ABX_BOX_PAUSED || box->state == ABX_BOX_PAUSING;
	int r = abx_lifecycle_start(app, box, err);

	if (r == 0)
		abx_note("box '%s' was %s, and is running now (agentbox %s %s)", box->name,
			 paused ? "paused" : "stopped", paused ? "pause" : "stop", box->name);
	return r;
}

int abx_box_ensure_running(struct abx_app *app, struct abx_box *box, struct abx_err *err)
{
	int r = abx_lifecycle_check_whole(box, err);

	if (r < 0 || box->state == ABX_BOX_RUNNING)
		return r;
	return abx_box_start_again(app, box, err);
}

static bool is_down(const struct abx_box *box)
{
	return box->state == ABX_BOX_STOPPED || box->state == ABX_BOX_PAUSED;
}

/* Its provider's word; nothing changes when that cannot be had. */
static void look(struct abx_app *app, struct abx_box *box)
{
	const struct abx_call_opts o = {.timeout_ms = LOOK_TIMEOUT_MS};
	struct abx_sandbox s = abx_cloud_sandbox(box);
	struct abx_sandbox_copy got = {.memory = NULL};
	struct abx_cloud *cloud;
	int r = box->pending ? ABX_ESTATE : abx_app_cloud_of(app, box, &cloud, NULL);

	if (r < 0)
		return;
	r = abx_cloud_get(cloud, &o, &s, &got, NULL);
	if (r == 0)
		box->state = abx_box_state_of_sandbox(got.s.state);
	else if (r == ABX_ENOTFOUND)
		box->state = ABX_BOX_GONE;
	if (r == 0 || r == ABX_ENOTFOUND)
		(void)abx_boxes_update(app->db, box, NULL);
	abx_sandbox_copy_release(&got);
}

int abx_box_blame(struct abx_app *app, struct abx_box *box, int r, struct abx_err *err)
{
	if (r != ABX_ESTATE && r != ABX_ENOTFOUND)
		return r;
	look(app, box);
	if (box->state == ABX_BOX_GONE)
		return abx_lifecycle_say_gone(app, box, err);
	/* What is not found in a box that rests is something else. */
	if (r != ABX_ESTATE || !is_down(box))
		return r;
	(void)abx_err_set(err, ABX_ESTATE, "box '%s' is %s", box->name,
			  abx_box_state_name(box->state));
	(void)abx_err_remedy(err, "agentbox start %s", box->name);
	return ABX_ESTATE;
}

int abx_box_reach(struct abx_app *app, struct abx_box *box, struct abx_cloud **ret_cloud,
		  struct abx_sandbox *ret_sandbox, struct abx_err *err)
{
	int r = abx_box_ensure_running(app, box, err);

	if (r == 0)
		r = abx_app_cloud_of(app, box, ret_cloud, err);
	if (r == 0)
		*ret_sandbox = abx_cloud_sandbox(box);
	return r;
}

int abx_box_work(struct abx_app *app, struct abx_box *box, abx_box_work_fn work, void *ctx,
		 struct abx_err *err)
{
	struct abx_err why = ABX_ERR_INIT;
	int r = abx_box_blame(app, box, work(ctx, box, &why), &why);

	if (r == ABX_ESTATE && is_down(box)) {
		r = abx_box_start_again(app, box, &why);
		if (r == 0)
			r = work(ctx, box, &why);
	}
	if (r < 0 && err)
		*err = why;
	return r;
}
