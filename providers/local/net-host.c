/* SPDX-License-Identifier: MIT */
/* What the host's own network looks like, and when that changes. */
#include "providers/local/net.h"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "providers/local/box.h"

#define RANGES_MAX_BYTES ((size_t)4 << 20)
#define ANSWER_BYTES 32768

static int query_fd = -1, monitor_fd = -1;
static struct net_host known;
static struct abx_loop_source monitor = {.fd = -1};
static void (*on_change)(void);

int net_netlink_open(uint32_t groups)
{
	struct sockaddr_nl a = {.nl_family = AF_NETLINK, .nl_groups = groups};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | (groups ? SOCK_NONBLOCK : 0),
			NETLINK_ROUTE);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		box_fail_errno(errno, "network helper: netlink");
	return fd;
}

void net_host_open(void)
{
	query_fd = net_netlink_open(0);
	monitor_fd = net_netlink_open(RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE);
}

static void add_range(struct abx_buf *b, uint32_t addr, unsigned int bits)
{
	uint32_t mask = bits ? UINT32_MAX << (32 - bits) : 0;
	struct net_range r = {addr & mask, addr | ~mask};

	abx_buf_add(b, &r, sizeof(r));
}

/* The kernel's local table, not the list of addresses, is what decides whether the host
 * would answer itself. */
static void take_route(struct nlmsghdr *h, struct abx_buf *own, struct abx_buf *used)
{
	struct rtmsg *rt = NLMSG_DATA(h);
	int len = (int)RTM_PAYLOAD(h);
	uint32_t addr = 0;

	if (h->nlmsg_type != RTM_NEWROUTE || rt->rtm_family != AF_INET || rt->rtm_dst_len > 32)
		return;
	for (struct rtattr *a = RTM_RTA(rt); RTA_OK(a, len); a = RTA_NEXT(a, len))
		if (a->rta_type == RTA_DST && RTA_PAYLOAD(a) == sizeof(addr))
			memcpy(&addr, RTA_DATA(a), sizeof(addr));
	addr = ntohl(addr);
	if (rt->rtm_type == RTN_LOCAL || rt->rtm_type == RTN_BROADCAST ||
	    rt->rtm_type == RTN_ANYCAST)
		add_range(own, addr, rt->rtm_dst_len);
	if (rt->rtm_dst_len > 0)
		add_range(used, addr, rt->rtm_dst_len);
}

/* False: the answer is of no use, because something changed meanwhile. */
static bool ask(struct abx_buf *own, struct abx_buf *used)
{
	static uint32_t seq;
	struct {
		struct nlmsghdr h;
		struct rtmsg rt;
	} q = {
		.h = {.nlmsg_len = sizeof(q),
		      .nlmsg_type = RTM_GETROUTE,
		      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		      .nlmsg_seq = ++seq},
		.rt = {.rtm_family = AF_INET},
	};
	_Alignas(struct nlmsghdr) static char answer[ANSWER_BYTES];

	add_range(own, UINT32_C(127) << 24, 8);
	if (send(query_fd, &q, sizeof(q), 0) < 0)
		box_fail_errno(errno, "network helper: the host's addresses");
	for (;;) {
		ssize_t n = recv(query_fd, answer, sizeof(answer), 0);
		unsigned int len = (unsigned int)n;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			box_fail_errno(errno, "network helper: the host's addresses");
		for (struct nlmsghdr *h = (void *)answer; NLMSG_OK(h, len);
		     h = NLMSG_NEXT(h, len)) {
			if (h->nlmsg_seq != q.h.nlmsg_seq)
				continue;
			if (h->nlmsg_flags & NLM_F_DUMP_INTR)
				return false;
			if (h->nlmsg_type == NLMSG_DONE)
				return true;
			if (h->nlmsg_type == NLMSG_ERROR)
				box_fail_errno(EIO, "network helper: the host's addresses");
			take_route(h, own, used);
		}
	}
}

static void keep(struct abx_buf *b, struct net_range **ret, size_t *ret_n)
{
	free(*ret);
	*ret_n = b->len / sizeof(**ret);
	*ret = (void *)abx_buf_steal(b);
}

bool net_host_load(void)
{
	bool differs;

	for (int tries = 0; tries < 10; tries++) {
		struct abx_buf own = ABX_BUF_INIT(RANGES_MAX_BYTES);
		struct abx_buf used = ABX_BUF_INIT(RANGES_MAX_BYTES);

		if (!ask(&own, &used)) {
			abx_buf_release(&own);
			abx_buf_release(&used);
			continue;
		}
		if (own.failed || used.failed)
			box_fail_errno(ENOMEM, "network helper: the host's addresses");
		differs = own.len != known.n_own * sizeof(*known.own) ||
			  memcmp(own.data, known.own, own.len) != 0;
		keep(&own, &known.own, &known.n_own);
		keep(&used, &known.used, &known.n_used);
		return differs;
	}
	box_fail_errno(EAGAIN, "network helper: the host's addresses");
}

static void changed(struct abx_loop_source *s, uint32_t events)
{
	char drop[8192];

	(void)events;
	/* An overrun (ENOBUFS) is as good a reason to ask again as a message. */
	while (recv(s->fd, drop, sizeof(drop), 0) >= 0 || errno == ENOBUFS)
		;
	if (net_host_load())
		on_change();
}

void net_host_watch(void (*changed_fn)(void))
{
	on_change = changed_fn;
	abx_loop_watch(&monitor, monitor_fd, EPOLLIN, changed);
}

const struct net_host *net_host(void)
{
	return &known;
}

bool net_host_owns(uint32_t addr)
{
	for (size_t i = 0; i < known.n_own; i++)
		if (addr >= known.own[i].first && addr <= known.own[i].last)
			return true;
	return false;
}

uint32_t net_choose_network(const struct net_host *h)
{
	static const uint32_t candidates[] = {
		UINT32_C(0x0a000200), /* 10.0.2.0, which everybody who knows slirp expects */
		UINT32_C(0x0a5a0200), /* 10.90.2.0 */
		UINT32_C(0xac1ede00), /* 172.30.222.0 */
		UINT32_C(0xc0a8de00), /* 192.168.222.0 */
		UINT32_C(0x6464de00), /* 100.100.222.0 */
		UINT32_C(0xc612de00), /* 198.18.222.0 */
	};
	const size_t n = sizeof(candidates) / sizeof(candidates[0]);

	for (size_t i = 0; i < n; i++) {
		bool free_here = true;

		for (size_t k = 0; k < h->n_used && free_here; k++)
			free_here = h->used[k].last < candidates[i] ||
				    h->used[k].first > candidates[i] + 255;
		if (free_here)
			return candidates[i];
	}
	return candidates[0];
}
