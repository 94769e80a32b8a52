/* SPDX-License-Identifier: MIT */
/* What commands ask of the network helper of a box. */
#include "providers/local/net.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abxsdk/pass.h"
#include "providers/local/box.h"

static struct abx_loop_source control = {.fd = -1};
static int32_t (*change_policy)(struct net_policy *p, char *ret_why, size_t size);

static void say(struct lb_net_rep *rep, int32_t code, const char *text)
{
	rep->code = code;
	(void)snprintf(rep->text, sizeof(rep->text), "%s", text);
}

/* The texts stay for as long as the policy refers to them: for good, which is a few hundred
 * bytes for each change. */
static bool read_policy(int fd, struct net_policy *ret)
{
	struct stat st;
	const char **text;
	size_t n = 0;
	char *data;
	int r;

	if (fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > LB_NET_POLICY_MAX_BYTES)
		return false;
	data = box_alloc((size_t)st.st_size + 1);
	if (pread(fd, data, (size_t)st.st_size, 0) != st.st_size) {
		free(data);
		return false;
	}
	text = box_alloc((size_t)st.st_size * sizeof(*text));
	for (char *at = data; at < data + st.st_size; at += strlen(at) + 1)
		text[n++] = at;
	r = net_policy_parse(text, n, ret);
	free((void *)text);
	if (r < 0)
		free(data);
	return r == 0;
}

static void on_policy(int fd, struct lb_net_rep *rep)
{
	struct net_policy p;
	char why[sizeof(rep->text)] = "";
	int32_t r;

	if (fd < 0 || !read_policy(fd, &p)) {
		say(rep, ABX_EINVAL, "malformed policy");
		return;
	}
	r = change_policy(&p, why, sizeof(why));
	if (r != ABX_OK)
		net_policy_release(&p);
	say(rep, r, why);
}

static void serve(const struct lb_net_req *req, int *fd, struct lb_net_rep *rep)
{
	switch (req->kind) {
	case LB_NET_FIND:
		rep->host_port = abx_forward_find(req->box_port);
		break;
	case LB_NET_FORWARD:
		rep->host_port = abx_forward_find(req->box_port);
		if (rep->host_port || *fd < 0)
			break;
		abx_forward_add(*fd, req->box_port, req->host_port);
		*fd = -1;
		rep->host_port = req->host_port;
		break;
	case LB_NET_POLICY:
		on_policy(*fd, rep);
		break;
	case LB_NET_END:
		_exit(0);
	default:
		say(rep, ABX_ENOTSUP, "unknown request");
	}
}

static void on_request(struct abx_loop_source *s, uint32_t events)
{
	struct lb_net_req req;
	struct lb_net_rep rep = {.code = ABX_OK};
	int fd = -1;
	ssize_t n = abx_pass_recv(s->fd, &req, sizeof(req), MSG_DONTWAIT, &fd);

	(void)events;
	if (n == (ssize_t)sizeof(req)) {
		serve(&req, &fd, &rep);
		/* Whoever does not wait for the answer does not want it. */
		(void)send(s->fd, &rep, sizeof(rep), MSG_NOSIGNAL | MSG_DONTWAIT);
	} else if (n >= 0 || (n != -EAGAIN && n != -EINTR)) {
		abx_loop_unwatch(s);
		free(s);
	}
	abx_cleanup_close(&fd);
}

static void on_command(struct abx_loop_source *s, uint32_t events)
{
	int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct abx_loop_source *c;

	(void)events;
	if (fd < 0)
		return;
	c = box_alloc(sizeof(*c));
	abx_loop_watch(c, fd, EPOLLIN, on_request);
}

void net_control_open(int32_t (*set_policy)(struct net_policy *p, char *ret_why, size_t size))
{
	change_policy = set_policy;
	abx_loop_watch(&control, LB_FD_CONTROL, EPOLLIN, on_command);
}
