/* SPDX-License-Identifier: MIT */
/* What detached commands in a box have said. */
#include "core/box/logs.h"

#include <string.h>

#include "core/box/exec.h"

#define NO_LOG 66

/* $1 ID or nothing, $2 lines or "+1", $3 -f or nothing */
static const char script[] =
	"for d in /var/log/agentbox ~/.agentbox/log; do\n"
	"	[ -d \"$d\" ] || continue\n"
	"	f=$1\n"
	"	if [ -z \"$f\" ]; then\n"
	"		for l in \"$d\"/*.log; do\n"
	"			[ -r \"$l\" ] || continue\n"
	"			if [ -z \"$f\" ] || [ \"$l\" -nt \"$f\" ]; then f=$l; fi\n"
	"		done\n"
	"	else\n"
	"		f=$d/$f.log\n"
	"	fi\n"
	"	[ -n \"$f\" ] && [ -f \"$f\" ] || continue\n"
	"	exec tail -n \"$2\" $3 -- \"$f\"\n"
	"done\n"
	"exit 66\n";

static bool is_id(const char *s)
{
	return *s && *s != '.' && strlen(s) < 128 &&
	       !s[strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")];
}

int abx_box_logs(struct abx_app *app, struct abx_box *box, const struct abx_logs_request *req,
		 struct abx_err *err)
{
	char lines[32] = "+1";
	const char *const argv[] = {"/bin/sh",
				    "-c",
				    script,
				    "sh",
				    req->exec_id ? req->exec_id : "",
				    lines,
				    req->follow ? "-f" : "",
				    NULL};
	const struct abx_exec_request exec = {.argv = argv,
					      .cwd = "/",
					      .user = req->user,
					      .fd_in = -1,
					      .fd_out = req->fd_out,
					      .fd_err = STDERR_FILENO};
	int code = 0, r;

	if (req->exec_id && !is_id(req->exec_id))
		return abx_err_set(err, ABX_EINVAL, "logs: '%.100s' is no id of a command",
				   req->exec_id);
	if (req->lines)
		(void)snprintf(lines, sizeof(lines), "%llu", (unsigned long long)req->lines);
	r = abx_box_exec(app, box, &exec, &code, err);
	/* Who follows has no other way to end it. */
	if (r == ABX_ECANCELED && req->follow)
		return 0;
	if (r < 0)
		return r;
	if (code == NO_LOG && req->exec_id) {
		(void)abx_err_set(err, ABX_ENOTFOUND, "logs: box '%s': no log of '%s'", box->name,
				  req->exec_id);
		return abx_err_remedy(err, "only commands started with exec -d have one; --user "
					   "shows another user's");
	}
	if (code == NO_LOG)
		return abx_err_set(err, ABX_ENOTFOUND,
				   "logs: box '%s': no command was started with exec -d",
				   box->name);
	if (code && code != 141)
		return abx_err_set(err, ABX_EREMOTE, "logs: tail in the box ended with %d", code);
	return 0;
}
