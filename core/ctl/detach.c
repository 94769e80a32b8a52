/* SPDX-License-Identifier: MIT */
/* A command that outlives its client: somebody has to stay who knows when its time is over. */
#include <fcntl.h>
#include <poll.h>

#include "abxsdk/detached.h"
#include "core/ctl/ctl.h"

/* The transport waits for the end of our output. */
void ctl_let_go(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd < 3 && null >= 0; fd++)
		(void)dup2(null, fd);
}

void ctl_detach(struct ctl_exec *x)
{
	ctl_launch(x);
	if (x->running && x->launch->log)
		abx_detached_begin(x->launch->log);
	if (x->running)
		abx_wire_put_exit(&x->out, &x->queue, 0, 0, ABX_WIRE_EXIT_DETACHED, "");
	ctl_flush(x);
	ctl_spool_remove(&x->spool);
	ctl_let_go();
	(void)!write(x->done_fd, "", 1);
	while (x->running) {
		struct pollfd p = {.fd = x->sup.signal_fd, .events = POLLIN};

		(void)poll(&p, 1, abx_supervise_wait_ms(&x->sup));
		x->running = !abx_supervise_step(&x->sup);
		if (!x->running && x->launch->log)
			abx_detached_end(x->launch->log, &x->sup);
	}
	_exit(0);
}
