/* SPDX-License-Identifier: MIT */
/* core/box/network.h: changing where a box that is there may connect to. */
#ifndef ABX_NETWORK_H
#define ABX_NETWORK_H

#include "core/box/app.h"
#include "core/util/egress.h"

/* With the box's lock; its record says so afterwards, also for its next start. */
int abx_box_set_egress(struct abx_app *app, struct abx_box *box, const struct abx_egress *egress,
		       struct abx_err *err);

#endif
