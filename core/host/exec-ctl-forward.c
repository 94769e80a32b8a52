/* SPDX-License-Identifier: MIT */
/* Ports that a provider reaches by another one, where agentbox-ctl listens. */
#include "core/host/exec-ctl.h"
#include "core/host/run.h"

#define TIMEOUT_MS 30000
#define NOT_THERE 127 /* as find_script ends */

int abx_ctl_forward(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		    uint32_t box_port, uint32_t port, struct abx_err *err)
{
	char from[16], to[16];
	struct abx_ctl_place place;
	struct abx_call_opts plain = *o;
	struct abx_exit e = {ABX_INIT(struct abx_exit)};
	const char *const argv[] = {
		"/bin/sh", "-c", abx_ctl_find_script, place.name, "forward", from, to, NULL};
	const struct abx_exec req = {ABX_INIT(struct abx_exec), .argv = argv,	.cwd = "/",
				     .timeout_ms = TIMEOUT_MS,	.stdin_fd = -1, .control_fd = -1};
	int r = abx_ctl_place_init(c, s, &place, err);

	(void)snprintf(from, sizeof(from), "%u", box_port);
	(void)snprintf(to, sizeof(to), "%u", port);
	plain.plain_exec = true;
	for (bool brought = false; r == 0; brought = true) {
		r = abx_cloud_exec(c, &plain, s, &req, &e, err);
		if (r < 0 || e.code != NOT_THERE || brought)
			break;
		r = abx_ctl_install(c, o, s, NULL, &place, err);
	}
	if (r == 0 && e.code)
		return abx_run_fail(c, "url", ABX_EIO, err,
				    "in the box nothing listens at port %u for it (agentbox-ctl "
				    "ended with %d)",
				    box_port, e.code);
	return r;
}
