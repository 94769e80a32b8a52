/* SPDX-License-Identifier: MIT */
/* Changing where a box that is there may connect to. */
#include "core/box/network.h"

#include <string.h>

#include "core/box/lifecycle.h"
#include "core/box/running.h"
#include "core/box/spec.h"
#include "core/util/mem.h"

#define SET_TIMEOUT_MS 60000

static int tell_provider(struct abx_app *app, const struct abx_box *box,
			 const struct abx_egress *egress, struct abx_err *err)
{
	const struct abx_call_opts o = {.timeout_ms = SET_TIMEOUT_MS};
	const struct abx_policy policy = {ABX_INIT(struct abx_policy),
					  .allow = abx_egress_list(egress)};
	struct abx_sandbox s = abx_cloud_sandbox(box);
	struct abx_cloud *cloud;
	int r = abx_app_cloud_of(app, box, &cloud, err);

	return r < 0 ? r : abx_cloud_set_egress(cloud, &o, &s, &policy, err);
}

int abx_box_set_egress(struct abx_app *app, struct abx_box *box, const struct abx_egress *egress,
		       struct abx_err *err)
{
	abx_autofree char *text = abx_egress_text(egress), *json = NULL;
	const struct abx_spec_args args = {.egress = text};
	struct abx_box_spec spec = {0};
	abx_autoclose int lock = -1;
	int r = abx_lifecycle_lock(app, box, &lock, err);

	if (r == 0)
		r = abx_box_spec_make(&args, box->spec ? box->spec : "{}", NULL, &app->home, &spec,
				      err);
	if (r == 0)
		r = abx_box_blame(app, box, tell_provider(app, box, egress, err), err);
	if (r == 0) {
		json = abx_box_spec_json(&spec);
		abx_xreplace(&box->spec, json);
		r = abx_boxes_update(app->db, box, err);
	}
	abx_box_spec_release(&spec);
	return r;
}
