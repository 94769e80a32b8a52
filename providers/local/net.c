/* SPDX-License-Identifier: MIT */
/* The network of a box: what was asked for, and the helper that keeps it. */
#include "providers/local/local.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "abxsdk/json.h"
#include "providers/local/net-policy.h"

#define LIST_MAX_BYTES ((size_t)1 << 20)
#define READY_WAIT_MS 5000
#define END_WAIT_MS 5000
#define CONTROL_BACKLOG 16

/* What a box may reach, as it was asked for: "all", "none", "host" or ENTRY[,...]. */

static int32_t join(struct abx_call *call, const char *const *list, const char *what,
		    bool names_too, struct abx_buf *b)
{
	for (; list && *list; list++) {
		struct net_entry e;
		int r = net_entry_parse(*list, &e);

		if (r == 0 && e.name && !names_too)
			return abx_fail(call, ABX_ENOTSUP, NULL,
					"egress: %s: names cannot be denied, only addresses",
					*list);
		if (r == -EAFNOSUPPORT)
			return abx_fail(call, ABX_ENOTSUP, NULL,
					"egress: %s: boxes of this provider have no IPv6", *list);
		if (r < 0)
			return abx_fail(call, ABX_EINVAL, NULL,
					"egress: %s: %s: not an address, A.B.C.D/N, DOMAIN or "
					"*.DOMAIN",
					what, *list);
		if (b->len)
			abx_buf_addc(b, ',');
		abx_buf_adds(b, *list);
	}
	return b->failed ? abx_fail(call, ABX_EINVAL, NULL, "egress: too long") : ABX_OK;
}

int32_t local_net_lists(struct abx_call *call, const char *const *allow, const char *const *deny,
			struct abx_buf *ret_egress, struct abx_buf *ret_deny)
{
	int32_t r;

	if (allow && allow[0] && strcmp(allow[0], "host") == 0) {
		if (allow[1] || (deny && deny[0]))
			return abx_fail(call, ABX_EINVAL, NULL, "egress: host: stands alone");
		abx_buf_adds(ret_egress, "host");
		return ABX_OK;
	}
	if (!allow)
		abx_buf_adds(ret_egress, "all");
	else if (!allow[0])
		abx_buf_adds(ret_egress, "none");
	r = allow ? join(call, allow, "allow", true, ret_egress) : ABX_OK;
	return r == ABX_OK ? join(call, deny, "deny", false, ret_deny) : r;
}

static void warn(const char *text, const char *remedy)
{
	char line[1024];

	(void)snprintf(line, sizeof(line), "%s%s%s%s", text, *remedy ? " (" : "", remedy,
		       *remedy ? ")" : "");
	abx_plugin_host->log(abx_plugin_host->ctx, ABX_LOG_WARN, "local", line);
}

int local_net_carrier(const char *network, bool *ret_pasta)
{
	bool pasta = network && strcmp(network, LOCAL_PASTA) == 0;

	if (!pasta && network && strcmp(network, LOCAL_SLIRP) != 0)
		return -EINVAL;
	*ret_pasta = pasta;
	return 0;
}

int32_t local_net_check(struct abx_call *call, const struct abx_provision *p, bool pasta)
{
	abx_auto(abx_buf) struct abx_buf egress = ABX_BUF_INIT(LIST_MAX_BYTES);
	abx_auto(abx_buf) struct abx_buf deny = ABX_BUF_INIT(LIST_MAX_BYTES);
	int32_t r = local_net_lists(call, p->egress_allow, p->egress_deny, &egress, &deny);
	struct local_lack lack;

	if (r == ABX_OK && strcmp(egress.data, "host") == 0)
		warn("egress: host: the box shares this machine's network, services on its "
		     "loopback included",
		     "");
	if (r != ABX_OK || strcmp(egress.data, "none") == 0 || strcmp(egress.data, "host") == 0)
		return r;
	if (!local_net_lacks(pasta, &lack))
		return ABX_OK;
	return abx_fail(call, lack.code, lack.remedy, "network: %s", lack.text);
}

int local_net_record(cJSON *doc, const struct abx_provision *p, bool pasta)
{
	abx_auto(abx_buf) struct abx_buf egress = ABX_BUF_INIT(LIST_MAX_BYTES);
	abx_auto(abx_buf) struct abx_buf deny = ABX_BUF_INIT(LIST_MAX_BYTES);
	abx_auto(abx_buf) struct abx_buf ports = ABX_BUF_INIT(LIST_MAX_BYTES);
	cJSON *o = cJSON_AddObjectToObject(doc, "network");
	int r = o ? 0 : -ENOMEM;

	/* local_net_check() has seen the same request. */
	if (local_net_lists(NULL, p->egress_allow, p->egress_deny, &egress, &deny) != ABX_OK)
		return -EINVAL;
	if (r == 0)
		r = abx_json_add_str(o, "egress", egress.data);
	if (r == 0)
		r = abx_json_add_str(o, "deny", deny.data);
	if (r == 0 && pasta)
		r = abx_json_add_str(o, "carrier", LOCAL_PASTA);
	for (uint32_t i = 0; i < p->n_ports; i++)
		abx_buf_addf(&ports, "%s%u", i ? "," : "", p->ports[i]);
	if (r == 0)
		r = abx_json_add_str(o, "ports", ports.data);
	return r;
}

static int load_lists(const cJSON *o, struct local_box *b)
{
	int r = abx_json_str(o, "egress", LIST_MAX_BYTES, &b->egress);

	return r == 0 ? abx_json_str(o, "deny", LIST_MAX_BYTES, &b->deny) : r;
}

int local_net_load(struct local_box *b)
{
	const char *carrier = NULL;
	const cJSON *o = NULL;
	cJSON *now = NULL;
	int r = abx_json_obj(b->doc, "network", &o);

	if (r == 0 && o)
		r = load_lists(o, b);
	if (r == 0 && o)
		r = abx_json_str(o, "ports", LIST_MAX_BYTES, &b->wanted_ports);
	if (r == 0 && o)
		r = abx_json_str(o, "carrier", sizeof(LOCAL_PASTA), &carrier);
	if (r < 0)
		return r;
	b->pasta = carrier != NULL;
	r = local_read_json(b->dir_fd, "net.json", &now);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = load_lists(now, b);
	if (r == 0)
		r = abx_json_obj(now, "ports", &b->ports);
	if (r < 0) {
		cJSON_Delete(now);
		return r;
	}
	cJSON_Delete(b->net_doc);
	b->net_doc = now;
	return 0;
}

bool local_net_is_host(const struct local_box *b)
{
	return b->egress && strcmp(b->egress, "host") == 0;
}

/* What this machine lacks for any network but the host's. */
bool local_net_lacks(bool pasta, struct local_lack *ret)
{
	const char *program = pasta ? LOCAL_PASTA : LOCAL_SLIRP;
	struct local_lack l = {.code = ABX_EPERM};
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		(void)snprintf(l.text, sizeof(l.text), "/dev/net/tun: %s", strerror(errno));
		(void)snprintf(
			l.remedy, sizeof(l.remedy), "%s, or use --egress none",
			errno == EACCES || errno == EPERM
				? "chmod 0666 /dev/net/tun (in a container: give it the device)"
				: "modprobe tun (in a container: --device /dev/net/tun)");
		*ret = l;
		return true;
	}
	(void)close(fd);
	if (local_in_path(program))
		return false;
	l.code = ABX_ENOTFOUND;
	(void)snprintf(l.text, sizeof(l.text), "%s is missing", program);
	(void)snprintf(l.remedy, sizeof(l.remedy), "install the package %s, or use --egress none",
		       pasta ? "passt" : program);
	*ret = l;
	return true;
}

/* The helper. */

static void add_list(struct abx_buf *b, const char *prefix, const char *list)
{
	while (*list) {
		size_t n = strcspn(list, ",");

		if (n) {
			abx_buf_addf(b, "%s:%.*s", prefix, (int)n, list);
			abx_buf_addc(b, '\0');
		}
		list += n + (list[n] == ',');
	}
}

int local_net_texts(const char *egress, const char *deny, struct abx_buf *b)
{
	bool all = strcmp(egress, "all") == 0, none = strcmp(egress, "none") == 0;

	abx_buf_adds(b, all ? "all" : none ? "none" : "list");
	abx_buf_addc(b, '\0');
	if (!all && !none)
		add_list(b, "allow", egress);
	add_list(b, "deny", deny);
	return b->failed ? -ENOMEM : 0;
}

/* The same as an argument vector that points into `b`. */
static int make_texts(const struct local_box *b, struct abx_buf *text, const char ***ret)
{
	int r = local_net_texts(b->egress ? b->egress : "none", b->deny ? b->deny : "", text);
	size_t n = 0;

	if (r < 0)
		return r;
	for (size_t i = 0; i < text->len; i++)
		n += !text->data[i];
	*ret = calloc(n + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	n = 0;
	for (const char *at = text->data; at < text->data + text->len; at += strlen(at) + 1)
		(*ret)[n++] = at;
	return 0;
}

/* 1: locked, so that none is running; 0: one is; or -errno. */
static int take_lock(const struct local_box *b, int *ret_fd)
{
	abx_autoclose int fd =
		openat(b->dir_fd, "net", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return -errno;
	r = flock(fd, LOCK_EX | LOCK_NB) == 0;
	if (!r && errno != EWOULDBLOCK)
		return -errno;
	*ret_fd = abx_steal_fd(&fd);
	return r;
}

static bool has_network(const struct local_box *b)
{
	return b->egress && strcmp(b->egress, "none") != 0 && strcmp(b->egress, "host") != 0;
}

/* Without a network of its own a box needs the helper for its ports only. */
static bool wants_helper(const struct local_box *b)
{
	return has_network(b) || (b->ports && b->ports->child && !local_net_is_host(b));
}

bool local_net_alive(const struct local_box *b)
{
	abx_autoclose int fd = -1;

	return take_lock(b, &fd) == 0;
}

/* Where commands reach the helper; the lock is held. */
static int make_control(const struct local_box *b, int *ret_fd)
{
	abx_autoclose int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/net.sock", b->dir_fd);
	if (fd < 0 || (unlinkat(b->dir_fd, "net.sock", 0) < 0 && errno != ENOENT) ||
	    bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 ||
	    fchmodat(b->dir_fd, "net.sock", 0600, 0) < 0 || listen(fd, CONTROL_BACKLOG) < 0)
		return -errno;
	*ret_fd = abx_steal_fd(&fd);
	return 0;
}

static int32_t spawn_helper(struct abx_session *s, struct abx_call *call, const struct local_box *b,
			    const struct local_run *run, int lock_fd)
{
	struct local_helper_args a = {LOCAL_HELPER_ARGS_INIT, .req.op = LB_OP_NET,
				      .req.flags = b->pasta ? LB_F_PASTA : 0};
	struct local_helper h = LOCAL_HELPER_INIT;
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(LB_NET_POLICY_MAX_BYTES);
	const char **argv = NULL;
	int32_t r = ABX_OK;
	int e = ftruncate(lock_fd, 0) < 0 ? -errno : 0;

	if (e == 0)
		e = make_control(b, &a.fd_control);
	/* Not the one by which the box is locked. */
	if (e == 0)
		a.fd_dir = openat(b->dir_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (e == 0 && a.fd_dir < 0)
		e = -errno;
	if (e == 0)
		e = make_texts(b, &text, &argv);
	if (e < 0)
		r = abx_fail_errno(call, -e, "box %s: its network", b->id);
	a.program = s->net_helper;
	a.argv = argv;
	a.fd_box = run->pidfd;
	a.fd_live = lock_fd;
	if (r == ABX_OK)
		r = local_helper_start(s, call, &a, &h);
	if (r == ABX_OK) {
		local_helper_leave(&h);
		local_ports_reopen(b);
	}
	abx_cleanup_close(&a.fd_control);
	abx_cleanup_close(&a.fd_dir);
	free((void *)argv);
	return r;
}

static int32_t start_helper(struct abx_session *s, struct abx_call *call, const struct local_box *b,
			    const struct local_run *run)
{
	abx_autoclose int fd = -1;
	int r = take_lock(b, &fd);

	if (r < 0)
		return abx_fail_errno(call, -r, "box %s: its network", b->id);
	return r == 1 ? spawn_helper(s, call, b, run, fd) : ABX_OK;
}

int32_t local_net_start(struct abx_session *s, struct abx_call *call, const struct local_box *b,
			const struct local_run *run)
{
	return wants_helper(b) && run->pidfd >= 0 ? start_helper(s, call, b, run) : ABX_OK;
}

/* 1: it is up; 0: it is coming up; or a LB_MSG_FAIL in *m. */
static int read_state(int fd, struct lb_msg *m)
{
	ssize_t n = pread(fd, m, sizeof(*m), 0);

	if (n != (ssize_t)sizeof(*m))
		return 0;
	m->text[sizeof(m->text) - 1] = m->remedy[sizeof(m->remedy) - 1] = '\0';
	return m->kind == LB_MSG_READY ? 1 : -1;
}

static int32_t await_helper(struct abx_session *s, struct abx_call *call, const struct local_box *b,
			    const struct local_run *run, struct lb_msg *ret)
{
	int64_t end = abx_plugin_host->now_ms(abx_plugin_host->ctx) + READY_WAIT_MS;
	bool tried = false;

	for (;;) {
		abx_autoclose int fd = -1;
		int r = take_lock(b, &fd), state;

		if (r < 0)
			return abx_fail_errno(call, -r, "box %s: its network", b->id);
		state = read_state(fd, ret);
		if (r == 0 && state == 1)
			return ABX_OK;
		if (r == 1 && tried) {
			if (state >= 0)
				(void)snprintf(ret->text, sizeof(ret->text),
					       "network: the helper was killed");
			ret->kind = LB_MSG_FAIL;
			return ABX_OK;
		}
		if (r == 1) {
			int32_t e = spawn_helper(s, call, b, run, fd);

			if (e != ABX_OK)
				return e;
			tried = true;
		}
		if (abx_plugin_host->now_ms(abx_plugin_host->ctx) > end) {
			*ret = (struct lb_msg){.kind = LB_MSG_FAIL, .code = ABX_ETIMEDOUT};
			(void)snprintf(ret->text, sizeof(ret->text), "network: not up after %d s",
				       READY_WAIT_MS / 1000);
			return ABX_OK;
		}
		abx_cleanup_close(&fd);
		fd = -1;
		r = abx_plugin_host->wait_ms(call, 1);
		if (r == ABX_ECANCELED)
			return abx_fail_canceled(call);
		if (r != ABX_OK)
			return abx_fail_timed_out(call);
	}
}

int32_t local_net_ready(struct abx_session *s, struct abx_call *call, const struct local_box *b,
			const struct local_run *run)
{
	struct lb_msg m = {.kind = LB_MSG_READY};
	int32_t r;

	if (!has_network(b))
		return local_net_start(s, call, b, run);
	r = await_helper(s, call, b, run, &m);
	/* A box without its network is of use still; nothing is open that should not be. */
	if (r == ABX_OK && m.kind == LB_MSG_FAIL)
		warn(m.text, m.remedy);
	return r;
}

int32_t local_net_up(struct abx_session *s, struct abx_call *call, const struct local_box *b,
		     const struct local_run *run)
{
	struct lb_msg m = {.kind = LB_MSG_READY};
	int32_t r = await_helper(s, call, b, run, &m);

	if (r == ABX_OK && m.kind == LB_MSG_FAIL)
		return abx_fail(call, m.code < 0 ? m.code : ABX_EIO, m.remedy, "%s", m.text);
	return r;
}

int32_t local_net_ended(struct abx_call *call, const struct local_box *b)
{
	int64_t end = abx_plugin_host->now_ms(abx_plugin_host->ctx) + END_WAIT_MS;

	for (;;) {
		abx_autoclose int fd = openat(b->dir_fd, "net", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
		int32_t r;

		if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0 ||
		    abx_plugin_host->now_ms(abx_plugin_host->ctx) > end)
			return ABX_OK;
		r = abx_plugin_host->wait_ms(call, 1);
		if (r != ABX_OK)
			return r == ABX_ECANCELED ? abx_fail_canceled(call)
						  : abx_fail_timed_out(call);
	}
}
