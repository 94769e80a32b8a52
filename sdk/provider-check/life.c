/* SPDX-License-Identifier: MIT */
/* Sandboxes: made, found, stopped, started, destroyed, and missing. */
#include <string.h>

#include "core/util/rand.h"
#include "sdk/provider-check/check.h"

static const struct abx_stop_req stop_req = {ABX_INIT(struct abx_stop_req)};
static const struct abx_start_req start_req = {ABX_INIT(struct abx_start_req)};

struct abx_call_opts check_opts(const struct check *c)
{
	const struct abx_call_opts o = {.timeout_ms = c->timeout_ms};

	return o;
}

static int provision(struct check *c)
{
	const struct abx_call_opts o = check_opts(c);
	struct abx_provision req = {ABX_INIT(struct abx_provision), .name = "provider-check",
				    .labels = c->labels, .n_labels = 3};
	char attempt[33];

	abx_rand_hex(attempt, 32);
	req.idempotency_key = attempt;
	req.options = abx_cloud_box_options(c->cloud, &req.n_options);
	return abx_cloud_provision(c->cloud, &o, &req, &c->box, &c->err);
}

static bool is_listed(struct check *c, const struct abx_kv *labels, uint32_t n, bool *ret_labels)
{
	const struct abx_call_opts o = check_opts(c);
	struct abx_sandbox_list list;
	bool found = false;

	if (!tap_r(c, abx_cloud_list(c->cloud, &o, labels, n, &list, &c->err), "list succeeds"))
		return false;
	for (size_t i = 0; i < list.len; i++) {
		const struct abx_sandbox *s = &list.items[i].s;

		if (strcmp(s->id, c->box.s.id) != 0)
			continue;
		found = true;
		*ret_labels = true;
		for (size_t k = 0; k < 3; k++) {
			const char *value = abx_sandbox_label(s, c->labels[k].key);

			*ret_labels &= value && strcmp(value, c->labels[k].value) == 0;
		}
	}
	abx_sandbox_list_release(&list);
	return found;
}

/* Starting may go on behind provision's back. */
static bool becomes_ready(struct check *c)
{
	struct ran ran = RAN_INIT;
	int r = -1;

	for (int i = 0; i < 100 && r != 0; i++) {
		r = run_script(c, "true", &ran);
		if (r != 0 && !abx_err_retryable(r) && r != ABX_ESTATE)
			break;
	}
	ran_release(&ran);
	return tap_r(c, r, "a first command succeeds");
}

bool check_provision(struct check *c)
{
	static const struct abx_kv other[] = {{"agentbox.box", "nobody-has-this"}};
	const struct abx_call_opts o = check_opts(c);
	struct abx_sandbox_copy got;
	bool labels = false;
	int r;

	if (!tap_r(c, provision(c), "a sandbox is made"))
		return false;
	r = abx_cloud_get(c->cloud, &o, &c->box.s, &got, &c->err);
	if (tap_r(c, r, "get finds it")) {
		(void)tap_ok(c,
			     got.s.state == ABX_STATE_RUNNING || got.s.state == ABX_STATE_STARTING,
			     "it is running or starting");
		abx_sandbox_copy_release(&got);
	}
	(void)tap_ok(c, is_listed(c, c->labels, 3, &labels), "list finds it by its labels");
	(void)tap_ok(c, labels, "its labels come back as they were given");
	(void)tap_ok(c, is_listed(c, NULL, 0, &labels), "list without labels shows it too");
	(void)tap_ok(c, !is_listed(c, other, 1, &labels), "list by another label does not");
	return becomes_ready(c);
}

void check_missing(struct check *c)
{
	const struct abx_call_opts o = check_opts(c);
	const struct abx_sandbox s = {ABX_INIT(struct abx_sandbox),
				      .id = "agentbox-check-there-is-none"};
	const char *const argv[] = {"true", NULL};
	const struct abx_exec exec = {ABX_INIT(struct abx_exec), .argv = argv, .stdin_fd = -1,
				      .control_fd = -1};
	struct abx_sandbox_copy got;
	struct abx_exit e;

	(void)tap_code(c, abx_cloud_get(c->cloud, &o, &s, &got, &c->err), ABX_ENOTFOUND,
		       "get of a missing one is not found");
	(void)tap_code(c, abx_cloud_exec(c->cloud, &o, &s, &exec, &e, &c->err), ABX_ENOTFOUND,
		       "exec in a missing one is not found");
	(void)tap_code(c, abx_cloud_start(c->cloud, &o, &s, &start_req, &c->err), ABX_ENOTFOUND,
		       "start of a missing one is not found");
	(void)tap_code(c, abx_cloud_stop(c->cloud, &o, &s, &stop_req, &c->err), ABX_ENOTFOUND,
		       "stop of a missing one is not found");
	(void)tap_r(c, abx_cloud_destroy(c->cloud, &o, &s, &stop_req, &c->err),
		    "destroy of a missing one is success");
}

static void check_state(struct check *c, uint32_t wanted, const char *what)
{
	const struct abx_call_opts o = check_opts(c);
	struct abx_sandbox_copy got;

	if (!tap_r(c, abx_cloud_get(c->cloud, &o, &c->box.s, &got, &c->err), "get after %s", what))
		return;
	(void)tap_ok(c, got.s.state == wanted, "after %s its state is right (%u)", what,
		     got.s.state);
	abx_sandbox_copy_release(&got);
}

void check_stop_start(struct check *c)
{
	const struct abx_cloud_backend *t = abx_cloud_table(c->cloud);
	const struct abx_call_opts o = check_opts(c);
	struct ran ran = RAN_INIT;

	(void)tap_r(c, run_script(c, "echo kept >kept", &ran), "a file is written");
	for (int i = 0; i < 2; i++)
		(void)tap_r(c, abx_cloud_stop(c->cloud, &o, &c->box.s, &stop_req, &c->err),
			    i ? "stop of a stopped one is success" : "stop");
	check_state(c, t->stop == t->pause ? ABX_STATE_PAUSED : ABX_STATE_STOPPED, "stop");
	for (int i = 0; i < 2; i++)
		(void)tap_r(c, abx_cloud_start(c->cloud, &o, &c->box.s, &start_req, &c->err),
			    i ? "start of a running one is success" : "start");
	if (becomes_ready(c)) {
		check_state(c, ABX_STATE_RUNNING, "start");
		(void)tap_r(c, run_script(c, "cat kept", &ran), "it can be read");
		(void)tap_ok(c, strcmp(abx_buf_str(&ran.out), "kept\n") == 0,
			     "files survive stop and start");
	}
	ran_release(&ran);
}

void check_destroy(struct check *c)
{
	struct abx_call_opts o = check_opts(c);
	struct abx_sandbox_copy got;
	bool labels;

	o.cleanup = true;
	(void)tap_r(c, abx_cloud_destroy(c->cloud, &o, &c->box.s, &stop_req, &c->err), "destroy");
	(void)tap_r(c, abx_cloud_destroy(c->cloud, &o, &c->box.s, &stop_req, &c->err),
		    "destroy once more is success");
	(void)tap_code(c, abx_cloud_get(c->cloud, &o, &c->box.s, &got, &c->err), ABX_ENOTFOUND,
		       "a destroyed one is not found");
	(void)tap_ok(c, !is_listed(c, c->labels, 3, &labels), "a destroyed one is not listed");
	abx_sandbox_copy_release(&c->box);
}
