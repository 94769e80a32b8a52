/* SPDX-License-Identifier: MIT */
/*
 * core/host/gate.h: one at a time, with a wait that can be given up.
 *
 * A mutex cannot be waited for together with a cancel descriptor; this can.  One that was
 * never opened lets everybody through.
 */
#ifndef ABX_GATE_H
#define ABX_GATE_H

#include "core/util/err.h"

struct abx_gate {
	int fd; /* eventfd semaphore; -1 = no gate */
};

#define ABX_GATE_INIT \
	{             \
		-1    \
	}

int abx_gate_open(struct abx_gate *g, struct abx_err *err);
void abx_gate_close(struct abx_gate *g);

/* deadline_ms is on abx_now_ms()'s clock, INT64_MAX = none; cancel_fd may be -1.
 * 0, ABX_ECANCELED or ABX_ETIMEDOUT. */
int abx_gate_enter(struct abx_gate *g, int64_t deadline_ms, int cancel_fd);
void abx_gate_leave(struct abx_gate *g);

#endif
