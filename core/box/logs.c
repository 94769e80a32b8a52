/* SPDX-License-Identifier: MIT */
/* What detached commands in a box have said, and how they ended. */
#include "core/box/logs.h"

#include <string.h>

#include "core/box/exec-text.h"
#include "core/box/exec.h"
#include "core/box/running.h"
#include "core/util/parse.h"

#define NO_LOG 66
#define FIND_TIMEOUT_MS 60000
#define FOUND_BYTES_MAX 1024
#define EXIT_TIMED_OUT 124
#define EXIT_SIGPIPE 141

/* Is the supervisor there that $s speaks of?  $w, $p, $t and $u are what it says. */
#define LOOK                                                  \
	"look() {\n"                                          \
	"	w= p= t= u= line=\n"                                \
	"	{ read -r w p t u <\"$s\"; } 2>/dev/null\n"         \
	"	[ \"$w\" = running ] || return\n"                   \
	"	{ read -r line <\"/proc/$p/stat\"; } 2>/dev/null\n" \
	"	set -- ${line##*) }\n"                              \
	"	[ \"${20-}\" = \"$t\" ] || w=lost\n"                \
	"}\n"

/* $1 ID or nothing: the path of the log, and the line of its state */
static const char find_script[] =
	LOOK "for d in /var/log/agentbox ~/.agentbox/log; do\n"
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
	     "	s=${f%.log}.state\n"
	     "	look\n"
	     "	printf '%s\\n%s %s %s %s\\n' \"$f\" \"${w:-unknown}\" \"$p\" \"$t\" \"$u\"\n"
	     "	exit 0\n"
	     "done\n"
	     "exit 66\n";

/* $1 the log, $2 lines or "+1".  It is looked at before it is read, so that the last words of a
 * command are read for certain. */
static const char follow_script[] =
	LOOK "f=$1 s=${1%.log}.state\n"
	     "at=$(stat -c %s -- \"$f\") || exit\n"
	     "head -c \"$at\" -- \"$f\" | tail -n \"$2\"\n"
	     "while :; do\n"
	     "	look\n"
	     "	n=$(stat -c %s -- \"$f\") || exit\n"
	     "	if [ \"$n\" -gt \"$at\" ]; then\n"
	     "		tail -c \"+$((at + 1))\" -- \"$f\" | head -c \"$((n - at))\"\n"
	     "	fi\n"
	     "	at=$n\n"
	     "	[ \"$w\" = running ] || exit 0\n"
	     "	sleep 0.2 2>/dev/null || sleep 1\n"
	     "done\n";

static bool is_id(const char *s)
{
	return *s && *s != '.' && strlen(s) < 128 &&
	       !s[strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")];
}

static bool small_number(const char **at, uint64_t max, int *ret)
{
	uint64_t v;

	if (**at != ' ')
		return false;
	++*at;
	if (!abx_parse_digits(at, max, &v))
		return false;
	*ret = (int)v;
	return true;
}

/* The box says so, and may say anything. */
static void parse_state(const char *line, struct abx_logs_result *ret)
{
	const char *at = line + strcspn(line, " ");
	int code, signo, timed_out;

	if (strncmp(line, "running ", 8) == 0)
		ret->state = ABX_LOGS_RUNNING;
	else if (strncmp(line, "lost ", 5) == 0)
		ret->state = ABX_LOGS_LOST;
	if (strncmp(line, "ended ", 6) != 0 || !small_number(&at, 255, &code) ||
	    !small_number(&at, 64, &signo) || !small_number(&at, 1, &timed_out))
		return;
	ret->state = ABX_LOGS_ENDED;
	ret->code = timed_out ? EXIT_TIMED_OUT : signo ? 128 + signo : code;
	ret->signo = signo;
	ret->timed_out = timed_out;
}

static bool parse_found(const char *text, struct abx_logs_result *ret)
{
	struct abx_logs_result got = {.state = ABX_LOGS_UNKNOWN};
	const size_t len = strcspn(text, "\n");
	const char *name;

	if (text[len] != '\n' || len >= sizeof(got.path))
		return false;
	memcpy(got.path, text, len);
	name = strrchr(got.path, '/');
	if (!name || len < 5 || strcmp(got.path + len - 4, ".log") != 0)
		return false;
	(void)snprintf(got.exec_id, sizeof(got.exec_id), "%.*s", (int)(strlen(name + 1) - 4),
		       name + 1);
	if (!is_id(got.exec_id))
		return false;
	parse_state(text + len + 1, &got);
	*ret = got;
	return true;
}

static int say_none(const struct abx_box *box, const char *exec_id, struct abx_err *err)
{
	if (!exec_id)
		return abx_err_set(err, ABX_ENOTFOUND,
				   "logs: box '%s': no command was started with exec -d",
				   box->name);
	(void)abx_err_set(err, ABX_ENOTFOUND, "logs: box '%s': no log of '%s'", box->name, exec_id);
	(void)abx_err_remedy(err, "only commands started with exec -d have one; --user shows "
				  "another user's");
	return ABX_ENOTFOUND;
}

struct question {
	struct abx_app *app;
	const char *exec_id, *user;
	struct abx_logs_result *ret;
};

static int find(void *ctx, struct abx_box *box, struct abx_err *err)
{
	const struct question *q = ctx;
	const char *const argv[] = {
		"/bin/sh", "-c", find_script, "sh", q->exec_id ? q->exec_id : "", NULL};
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(FOUND_BYTES_MAX);
	const struct abx_call_opts o = {.box_id = box->id};
	struct abx_sandbox s;
	struct abx_cloud *cloud;
	int code = 0, r = abx_box_reach(q->app, box, &cloud, &s, err);

	if (r < 0)
		return r;
	r = abx_exec_text(cloud, &o, &s, argv, q->user, FIND_TIMEOUT_MS, &text, &code, err);
	if (r < 0)
		return r;
	if (code == NO_LOG)
		return say_none(box, q->exec_id, err);
	if (code || !parse_found(abx_buf_str(&text), q->ret))
		return abx_err_set(err, ABX_EREMOTE,
				   "logs: box '%s': its answer is not understood (exit code %d)",
				   box->name, code);
	return 0;
}

/* *ret_gave_up: nobody wants to see more. */
static int print(struct abx_app *app, struct abx_box *box, const struct abx_logs_request *req,
		 const char *path, bool *ret_gave_up, struct abx_err *err)
{
	char lines[32] = "+1";
	const char *const show[] = {"tail", "-n", lines, "--", path, NULL};
	const char *const follow[] = {"/bin/sh", "-c", follow_script, "sh", path, lines, NULL};
	const struct abx_exec_request exec = {.argv = req->follow ? follow : show,
					      .cwd = "/",
					      .user = req->user,
					      .fd_in = -1,
					      .fd_out = req->fd_out,
					      .fd_err = STDERR_FILENO};
	int code = 0, r;

	if (req->lines)
		(void)snprintf(lines, sizeof(lines), "%llu", (unsigned long long)req->lines);
	r = abx_box_exec(app, box, &exec, &code, err);
	*ret_gave_up = code == EXIT_SIGPIPE || (r == ABX_ECANCELED && req->follow);
	if (*ret_gave_up)
		return 0;
	if (r == 0 && code)
		return abx_err_set(err, ABX_EREMOTE,
				   "logs: box '%s': it could not be read there "
				   "(exit code %d)",
				   box->name, code);
	return r;
}

int abx_box_logs(struct abx_app *app, struct abx_box *box, const struct abx_logs_request *req,
		 struct abx_logs_result *ret, struct abx_err *err)
{
	struct abx_logs_result got = {.state = ABX_LOGS_UNKNOWN};
	struct question q = {app, req->exec_id, req->user, &got};
	bool gave_up = false;
	int r;

	if (req->exec_id && !is_id(req->exec_id))
		return abx_err_set(err, ABX_EINVAL, "logs: '%.100s' is no id of a command",
				   req->exec_id);
	r = abx_box_work(app, box, find, &q, err);
	if (r == 0 && (req->fd_out >= 0 || req->follow))
		r = print(app, box, req, got.path, &gave_up, err);
	if (r == 0 && req->follow && !gave_up) {
		char id[sizeof(got.exec_id)];

		(void)snprintf(id, sizeof(id), "%s", got.exec_id);
		q.exec_id = id;
		r = abx_box_work(app, box, find, &q, err);
	}
	if (r == 0)
		*ret = got;
	return r;
}
