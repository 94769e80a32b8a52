/* SPDX-License-Identifier: MIT */
/* Can this machine hold boxes, and if not, which setting is it? */
#include "providers/local/local.h"

#include <string.h>

#include "providers/local/cgroup.h"
#include "providers/local/limits.h"

static int32_t row(struct abx_call *call, const char *check, const char *status, const char *detail,
		   const char *remedy)
{
	const struct abx_kv cells[] = {
		{"check", check}, {"status", status}, {"detail", detail}, {"remedy", remedy}};

	return abx_plugin_host->emit_row(call, cells, ABX_N_ELEMENTS(cells));
}

static int32_t check_helpers(struct abx_session *s, struct abx_call *call)
{
	const char *const programs[] = {s->box_helper, s->tar_helper};

	for (size_t i = 0; i < ABX_N_ELEMENTS(programs); i++)
		if (access(programs[i], X_OK) < 0)
			return row(call, "helpers", "fail", programs[i],
				   "reinstall agentbox, or set AGENTBOX_LIBEXEC_PATH");
	return row(call, "helpers", "ok", s->box_helper, "");
}

static int32_t check_ids(struct abx_session *s, struct abx_call *call)
{
	struct local_lack lack;
	char detail[128];

	(void)snprintf(detail, sizeof(detail), "box ids 0 to %u are %u to %u here", LB_MAP_IDS - 1,
		       s->ids.uid_base, s->ids.uid_base + LB_MAP_IDS - 1);
	if (s->ids.map == LB_MAP_NONE) {
		local_ids_lack(s, &lack);
		return row(call, "uid range", "fail", lack.text, lack.remedy);
	}
	if (s->ids.map != LB_MAP_SINGLE)
		return row(call, "uid range", "ok", detail, "");
	if (s->ids_could_be_more)
		return row(call, "uid range", "warn",
			   "only your own id, with which the boxes here were made",
			   "destroy these boxes, their images and volumes: new ones get the ids of "
			   "/etc/subuid");
	return row(call, "uid range", "warn",
		   "only your own id: a box has no user but root, which is you, and no sudo",
		   "install the package uidmap and give your user 65536 ids in /etc/subuid and "
		   "/etc/subgid");
}

static int32_t check_sudo(struct abx_session *s, struct abx_call *call)
{
	if (s->ids.map == LB_MAP_SINGLE)
		return ABX_OK; /* said with the ids */
	return row(call, "sudo", "ok",
		   "in boxes with --image; over this machine's own root a box has none, and "
		   "cannot install packages",
		   "");
}

/* The truth about namespaces and overlays is told by making a box of them. */
static int32_t check_box(struct abx_session *s, struct abx_call *call)
{
	static const char namespaces[] = "user namespaces",
			  overlay[] = "overlay in a user namespace";
	struct lb_msg m = {.kind = 0};
	bool no_namespace;
	int32_t r = local_probe(s, call, /* image= */ NULL, &m);

	if (r != ABX_OK)
		return r;
	if (m.kind == LB_MSG_READY) {
		r = row(call, namespaces, "ok", "", "");
		return r ? r : row(call, overlay, "ok", "", "");
	}
	no_namespace = strncmp(m.text, "new ", 4) == 0 || strstr(m.text, "uid_map") ||
		       strstr(m.text, "gid_map") || strstr(m.text, ": forbidden by ") ||
		       strstr(m.text, "has no rights");
	if (no_namespace)
		return row(call, namespaces, "fail", m.text, m.remedy);
	r = row(call, namespaces, "ok", "", "");
	return r ? r : row(call, overlay, "fail", m.text, m.remedy);
}

static int32_t check_network(struct abx_session *s, struct abx_call *call)
{
	struct local_lack lack;
	char detail[64];
	bool pasta;

	if (access(s->net_helper, X_OK) < 0)
		return row(call, "network", "fail", s->net_helper,
			   "reinstall agentbox, or set AGENTBOX_LIBEXEC_PATH");
	if (local_net_carrier(s->network, &pasta) < 0)
		return row(call, "network", "fail",
			   "local.network is neither " LOCAL_SLIRP " nor " LOCAL_PASTA,
			   "agentbox config set local.network " LOCAL_SLIRP);
	if (local_net_lacks(pasta, &lack))
		return row(call, "network", "warn", lack.text, lack.remedy);
	(void)snprintf(detail, sizeof(detail), "%s and /dev/net/tun",
		       pasta ? LOCAL_PASTA : LOCAL_SLIRP);
	return row(call, "network", "ok", detail, "");
}

static int32_t check_prepare(struct abx_session *s, struct abx_call *call)
{
	static const char check[] = "images of a suite";

	if (s->ids.map == LB_MAP_SINGLE)
		return row(call, check, "warn", "not possible with your own id alone",
			   "install the package uidmap, see above");
	if (!local_in_path("mmdebstrap"))
		return row(call, check, "warn",
			   "mmdebstrap is missing, and so is what needs it: "
			   "prepare --from debian:SUITE or ubuntu:SUITE",
			   "install the package mmdebstrap");
	return row(call, check, "ok", "by mmdebstrap", "");
}

/* None of these is needed for a box; who asks for one is told what is missing. */
static int32_t check_limits(struct abx_session *s, struct abx_call *call)
{
	static const char *const controllers[] = {"cpu", "memory", "pids"};
	abx_auto(abx_buf) struct abx_buf can = ABX_BUF_INIT(256), cannot = ABX_BUF_INIT(256);
	abx_auto(abx_buf) struct abx_buf detail = ABX_BUF_INIT(1024);
	struct local_place place;
	bool cgroups = true;
	uint32_t project;

	for (size_t i = 0; i < ABX_N_ELEMENTS(controllers); i++) {
		bool found = local_cgroup_find(controllers[i], &place) == 0;

		abx_buf_addf(found ? &can : &cannot, " %s", controllers[i]);
		cgroups = cgroups && found;
	}
	abx_buf_adds(local_quota_choose(s->boxes_fd, &project) < 0 ? &cannot : &can, " disk");
	abx_buf_addf(&detail, "can be kept:%s; cannot:%s; pausing by %s",
		     can.len ? abx_buf_str(&can) : " none",
		     cannot.len ? abx_buf_str(&cannot) : " none",
		     local_cgroup_find("freezer", &place) == 0 ? "cgroup" : "signals");
	if (!cgroups)
		return row(call, "limits", "warn", abx_buf_str(&detail),
			   "run as root, or under a systemd that delegates: systemd-run --user "
			   "--scope -p Delegate=yes");
	return row(call, "limits", "ok", abx_buf_str(&detail), "");
}

int32_t local_doctor(struct abx_session *s, struct abx_call *call)
{
	int32_t r = check_helpers(s, call);

	if (r == ABX_OK)
		r = check_ids(s, call);
	if (r == ABX_OK && s->ids.map != LB_MAP_NONE)
		r = check_sudo(s, call);
	if (r == ABX_OK)
		r = check_prepare(s, call);
	if (r == ABX_OK && access(s->box_helper, X_OK) == 0 && s->ids.map != LB_MAP_NONE)
		r = check_box(s, call);
	if (r == ABX_OK)
		r = check_limits(s, call);
	return r == ABX_OK ? check_network(s, call) : r;
}
