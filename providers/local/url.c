/* SPDX-License-Identifier: MIT */
/* Ports of a box at loopback ports of this machine, and what a box may reach, changed while it
 * runs: both asked of the network helper, both kept in net.json for the next one. */
#include "providers/local/local.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "abxsdk/fs.h"
#include "abxsdk/json.h"
#include "abxsdk/number.h"
#include "abxsdk/pass.h"
#include "providers/local/pause.h"

#define RECORD_MAX_BYTES ((size_t)4 << 20)
#define ANSWER_WAIT_MS 10000
#define BACKLOG 128
#define NEIGHBOURS 1000
/* Where the ports begin that everybody may open, and where those of a box below that go. */
#define FIRST_FREE_PORT 1024
#define LOW_PORT_OFFSET 8000

/* net.json: what became of box.json's wishes. */

static int write_net(const struct local_box *b, const char *egress, const char *deny,
		     uint16_t box_port, uint16_t host_port)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(RECORD_MAX_BYTES);
	cJSON *doc = cJSON_CreateObject(), *ports = cJSON_Duplicate(b->ports, true);
	char key[16], value[16];
	int r = doc ? 0 : -ENOMEM;

	if (!ports)
		ports = cJSON_CreateObject();
	(void)snprintf(key, sizeof(key), "%u", box_port);
	(void)snprintf(value, sizeof(value), "%u", host_port);
	if (box_port) {
		cJSON_DeleteItemFromObjectCaseSensitive(ports, key);
		if (r == 0)
			r = abx_json_add_str(ports, key, value);
	}
	if (r == 0)
		r = abx_json_add_str(doc, "egress", egress);
	if (r == 0)
		r = abx_json_add_str(doc, "deny", deny);
	if (r == 0 && !cJSON_AddItemToObject(doc, "ports", ports))
		r = -ENOMEM;
	if (r < 0)
		cJSON_Delete(ports);
	if (r == 0)
		r = abx_json_print(doc, &text);
	cJSON_Delete(doc);
	if (r == 0)
		r = abx_fs_write_atomic(b->dir_fd, "net.json", text.data, text.len, 0600, true);
	return r;
}

static uint16_t parse_port(const char *s)
{
	uint64_t v = 0;

	return abx_parse_u64(s, UINT16_MAX, &v) ? (uint16_t)v : 0;
}

static uint16_t recorded_port(const struct local_box *b, uint16_t box_port)
{
	char key[16];
	const char *v = NULL;

	(void)snprintf(key, sizeof(key), "%u", box_port);
	return abx_json_str(b->ports, key, 8, &v) == 0 && v ? parse_port(v) : 0;
}

/* Listening sockets, in the network namespace of whoever runs the command. */

static int listen_at(uint16_t port, uint16_t *ret_port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons(port),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	abx_autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t len = sizeof(a);
	const int one = 1;

	/* What old connections left behind is no reason to move on to another port. */
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, BACKLOG) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		return -errno;
	*ret_port = ntohs(a.sin_port);
	return abx_steal_fd(&fd);
}

/* The port it had before, or the same as in the box, or the next one that is free. */
static int listen_for(const struct local_box *b, uint16_t box_port, uint16_t *ret_port)
{
	uint16_t old = recorded_port(b, box_port);
	uint32_t first = box_port < FIRST_FREE_PORT ? box_port + LOW_PORT_OFFSET : box_port;
	int fd = old ? listen_at(old, ret_port) : -ENOENT;

	for (uint32_t p = first; fd < 0 && p <= UINT16_MAX && p < first + NEIGHBOURS; p++)
		fd = listen_at((uint16_t)p, ret_port);
	return fd < 0 ? listen_at(0, ret_port) : fd;
}

/* Talking to the helper. */

static int connect_control(const struct local_box *b)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	abx_autoclose int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/net.sock", b->dir_fd);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		return -errno;
	return abx_steal_fd(&fd);
}

/* *ret_gone: it ended instead of answering. */
static int32_t ask_once(struct abx_call *call, const struct local_box *b,
			const struct lb_net_req *req, int fd, struct lb_net_rep *ret,
			bool *ret_gone)
{
	abx_autoclose int control = connect_control(b);
	struct pollfd p = {.fd = control, .events = POLLIN};
	int r = control < 0 ? control : abx_pass_send(control, req, sizeof(*req), fd);
	int32_t e;
	ssize_t n;

	*ret_gone = r == -EPIPE || r == -ECONNREFUSED || r == -ECONNRESET;
	if (r < 0)
		return abx_fail_errno(call, -r, "box %s: its network helper", b->id);
	e = abx_call_poll(call, &p, 1, ANSWER_WAIT_MS);
	if (e != ABX_OK)
		return e;
	n = recv(control, ret, sizeof(*ret), MSG_DONTWAIT);
	*ret_gone = n == 0 || (n < 0 && errno == ECONNRESET);
	if (n != (ssize_t)sizeof(*ret))
		return abx_fail(call, ABX_EIO, "run the command again",
				"box %s: its network helper does not answer", b->id);
	ret->text[sizeof(ret->text) - 1] = '\0';
	return ABX_OK;
}

/* One that was killed takes its time to end: whoever asks it meanwhile asks the next one. */
static int32_t ask(struct abx_session *s, struct abx_call *call, const struct local_box *b,
		   const struct local_run *run, const struct lb_net_req *req, int fd,
		   struct lb_net_rep *ret)
{
	bool gone = false;
	int32_t r = ask_once(call, b, req, fd, ret, &gone);

	if (!gone)
		return r;
	r = local_net_ended(call, b);
	if (r == ABX_OK)
		r = local_net_up(s, call, b, run);
	return r == ABX_OK ? ask_once(call, b, req, fd, ret, &gone) : r;
}

static int push_port(void *ctx, const char *key, const char *value)
{
	const struct local_box *b = ctx;
	struct lb_net_req req = {.kind = LB_NET_FORWARD, .box_port = parse_port(key)};
	uint16_t host_port = parse_port(value);
	abx_autoclose int fd = -1, control = -1;

	if (!req.box_port || !host_port)
		return 0;
	fd = listen_at(host_port, &req.host_port);
	control = connect_control(b);
	/* Taken by somebody else meanwhile: `url` finds another one when it is asked for. */
	if (fd >= 0 && control >= 0)
		(void)abx_pass_send(control, &req, sizeof(req), fd);
	return 0;
}

void local_ports_reopen(const struct local_box *b)
{
	(void)abx_json_each_str(b->ports, push_port, (void *)(uintptr_t)b);
}

int32_t local_ports_assign(struct abx_call *call, struct local_box *b)
{
	const char *at = b->wanted_ports ? b->wanted_ports : "";

	while (*at) {
		char text[8] = "";
		size_t n = strcspn(at, ",");
		uint16_t port, host_port = 0;
		int fd, r;

		(void)snprintf(text, sizeof(text), "%.*s", (int)n, at);
		at += n + (at[n] == ',');
		port = parse_port(text);
		if (!port || recorded_port(b, port))
			continue;
		fd = listen_for(b, port, &host_port);
		r = fd < 0 ? fd : write_net(b, b->egress, b->deny, port, host_port);
		abx_cleanup_close(&fd);
		if (r == 0)
			r = local_net_load(b);
		if (r < 0)
			return abx_fail_errno(call, -r, "box %s: port %u", b->id, port);
	}
	return ABX_OK;
}

static int32_t emit(struct abx_call *call, uint32_t port)
{
	char text[64];
	struct abx_url u = {ABX_INIT(struct abx_url), .flags = ABX_URL_LOOPBACK, .url = text};

	(void)snprintf(text, sizeof(text), "http://127.0.0.1:%u", port);
	return abx_plugin_host->emit_url(call, &u);
}

static int32_t open_port(struct abx_session *s, struct abx_call *call, const struct local_box *b,
			 const struct local_run *run, uint16_t port, uint16_t *ret_host_port)
{
	struct lb_net_req req = {.kind = LB_NET_FIND, .box_port = port};
	struct lb_net_rep rep = {.code = ABX_OK};
	abx_autoclose int fd = -1;
	int32_t r = ask(s, call, b, run, &req, -1, &rep);
	int e;

	if (r != ABX_OK)
		return r;
	*ret_host_port = rep.host_port;
	if (rep.host_port)
		return ABX_OK;
	req.kind = LB_NET_FORWARD;
	fd = listen_for(b, port, &req.host_port);
	if (fd < 0)
		return abx_fail_errno(call, -fd, "box %s: a port for %u", b->id, port);
	e = write_net(b, b->egress, b->deny, port, req.host_port);
	if (e < 0)
		return abx_fail_errno(call, -e, "box %s: write net.json", b->id);
	r = ask(s, call, b, run, &req, fd, &rep);
	if (r == ABX_OK && rep.code != ABX_OK)
		r = abx_fail(call, rep.code, NULL, "box %s: port %u: %s", b->id, port, rep.text);
	*ret_host_port = rep.host_port;
	return r;
}

/* A running box, locked, with its helper alive. */
static int32_t open_running(struct abx_session *s, struct abx_call *call, const char *id,
			    struct local_box *b, struct local_run *run)
{
	int32_t r = local_open(s, call, id, b);

	if (r == ABX_OK)
		r = local_lock(s, call, b);
	if (r == ABX_OK)
		(void)local_run_open(s, b, run);
	/* It may have been changed while we waited for the lock. */
	if (r == ABX_OK && local_net_load(b) < 0)
		r = abx_fail(call, ABX_EPROTO, NULL, "box %s: net.json is damaged", id);
	return r;
}

int32_t local_url(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		  const struct abx_url_req *req)
{
	struct local_box b = LOCAL_BOX_INIT;
	struct local_run run = LOCAL_RUN_INIT;
	uint16_t host_port = 0;
	int32_t r;

	if (req->flags & ABX_URLREQ_SIGNED)
		return abx_fail(call, ABX_ENOTSUP, "leave it out",
				"--ttl: an address on this machine is not signed");
	if (!req->port || req->port > UINT16_MAX)
		return abx_fail(call, ABX_EINVAL, NULL, "url: %u: not a port", req->port);
	r = open_running(s, call, sb->id, &b, &run);
	if (r == ABX_OK && (run.pidfd < 0 || !run.ready))
		r = abx_fail(call, ABX_ESTATE, "start it", "box %s: it is not running", sb->id);
	if (r == ABX_OK && local_box_state(&b, &run) == ABX_STATE_PAUSED)
		r = abx_fail(call, ABX_ESTATE, "resume it", "box %s: it is paused", sb->id);
	if (r == ABX_OK && local_net_is_host(&b)) {
		r = emit(call, req->port);
	} else if (r == ABX_OK) {
		r = local_net_up(s, call, &b, &run);
		if (r == ABX_OK)
			r = open_port(s, call, &b, &run, (uint16_t)req->port, &host_port);
		if (r == ABX_OK)
			r = emit(call, host_port);
	}
	local_run_release(&run);
	local_box_release(&b);
	return r;
}

/* Egress. */

static int policy_file(const struct local_box *b, const char *egress, const char *deny)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(LB_NET_POLICY_MAX_BYTES);
	abx_autoclose int fd = memfd_create("agentbox-policy", MFD_CLOEXEC);
	int r;

	(void)b;
	if (fd < 0)
		return -errno;
	r = local_net_texts(egress, deny, &text);
	if (r == 0)
		r = abx_fs_write_all(fd, text.data, text.len);
	return r < 0 ? r : abx_steal_fd(&fd);
}

/* A helper that was started for ports only has no network to give rules to: another takes its
 * place. */
static int32_t apply(struct abx_session *s, struct abx_call *call, struct local_box *b,
		     const struct local_run *run)
{
	struct lb_net_req req = {.kind = LB_NET_POLICY};
	struct lb_net_rep rep = {.code = ABX_OK};
	abx_autoclose int fd = policy_file(b, b->egress, b->deny ? b->deny : "");
	bool gone;
	int32_t r;

	if (fd < 0)
		return abx_fail_errno(call, -fd, "egress");
	if (!local_net_alive(b))
		return local_net_up(s, call, b, run);
	r = ask(s, call, b, run, &req, fd, &rep);
	if (r == ABX_OK && rep.code == ABX_ENOTSUP) {
		req.kind = LB_NET_END;
		(void)ask_once(call, b, &req, -1, &rep, &gone);
		r = local_net_ended(call, b);
		return r == ABX_OK ? local_net_up(s, call, b, run) : r;
	}
	if (r == ABX_OK && rep.code != ABX_OK)
		r = abx_fail(call, rep.code, NULL, "box %s: egress: %s", b->id, rep.text);
	return r;
}

static int32_t change(struct abx_session *s, struct abx_call *call, struct local_box *b,
		      const struct local_run *run, const char *egress, const char *deny)
{
	abx_autofree char *old = strdup(b->egress ? b->egress : "none");
	abx_autofree char *old_deny = b->deny ? strdup(b->deny) : NULL;
	int e = old ? write_net(b, egress, deny, 0, 0) : -ENOMEM;
	int32_t r;

	if (e == 0)
		e = local_net_load(b);
	if (e < 0)
		return abx_fail_errno(call, -e, "box %s: write net.json", b->id);
	r = run->pidfd >= 0 ? apply(s, call, b, run) : ABX_OK;
	/* What is on record is what is in force. */
	if (r != ABX_OK)
		(void)write_net(b, old, old_deny, 0, 0);
	return r;
}

int32_t local_set_egress(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
			 const struct abx_policy *req)
{
	const struct abx_provision p = {ABX_INIT(struct abx_provision), .egress_allow = req->allow,
					.egress_deny = req->deny};
	abx_auto(abx_buf) struct abx_buf egress = ABX_BUF_INIT(LB_NET_POLICY_MAX_BYTES);
	abx_auto(abx_buf) struct abx_buf deny = ABX_BUF_INIT(LB_NET_POLICY_MAX_BYTES);
	struct local_box b = LOCAL_BOX_INIT;
	struct local_run run = LOCAL_RUN_INIT;
	int32_t r = open_running(s, call, sb->id, &b, &run);

	if (r == ABX_OK)
		r = local_net_check(call, &p, b.pasta);
	if (r == ABX_OK)
		r = local_net_lists(call, req->allow, req->deny, &egress, &deny);
	if (r == ABX_OK && (local_net_is_host(&b) || strcmp(egress.data, "host") == 0))
		r = abx_fail(call, ABX_ENOTSUP, "make another box",
			     "egress: host: a box has the host's network from its start or never");
	if (r == ABX_OK)
		r = change(s, call, &b, &run, egress.data, deny.data);
	local_run_release(&run);
	local_box_release(&b);
	return r;
}
