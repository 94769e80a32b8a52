/* SPDX-License-Identifier: MIT */
/* Messages of nf_tables: what a batch is made of, and its way to the kernel. */
#include "providers/local/net-nft.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "providers/local/box.h"
#include "providers/local/net-nft-put.h"

/* What nft calls ipv4_addr; only programs that list sets want to know. */
#define TYPE_IPV4_ADDR 7
/* An attribute has at most 64 KiB. */
#define RANGES_A_MESSAGE 1000
#define REPLY_BYTES 8192

static int nfnl_fd = -1;
static uint32_t last_seq; /* of all batches so far */

void nft_put(struct nft_batch *b, uint16_t type, const void *data, size_t len)
{
	static const char zero[NLA_ALIGNTO];
	struct nlattr a = {.nla_len = (uint16_t)(sizeof(a) + len), .nla_type = type};

	abx_buf_add(&b->b, &a, sizeof(a));
	abx_buf_add(&b->b, data, len);
	abx_buf_add(&b->b, zero, NLA_ALIGN(len) - len);
}

void nft_put_str(struct nft_batch *b, uint16_t type, const char *s)
{
	nft_put(b, type, s, strlen(s) + 1);
}

void nft_put_be32(struct nft_batch *b, uint16_t type, uint32_t v)
{
	v = htonl(v);
	nft_put(b, type, &v, sizeof(v));
}

void nft_open_nest(struct nft_batch *b, uint16_t type)
{
	if (b->depth == ABX_N_ELEMENTS(b->nest))
		abort();
	b->nest[b->depth++] = b->b.len;
	nft_put(b, type | NLA_F_NESTED, "", 0);
}

void nft_close_nest(struct nft_batch *b)
{
	size_t at = b->nest[--b->depth];
	uint16_t len = (uint16_t)(b->b.len - at);

	if (!b->b.failed)
		memcpy(b->b.data + at + offsetof(struct nlattr, nla_len), &len, sizeof(len));
}

static void finish_message(struct nft_batch *b)
{
	uint32_t len;

	while (b->depth)
		nft_close_nest(b);
	len = (uint32_t)(b->b.len - b->msg);
	if (b->b.len && !b->b.failed)
		memcpy(b->b.data + b->msg + offsetof(struct nlmsghdr, nlmsg_len), &len,
		       sizeof(len));
}

static void start_message(struct nft_batch *b, uint16_t type, uint8_t family, uint16_t res_id)
{
	struct nlmsghdr h = {.nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST};
	struct nfgenmsg g = {
		.nfgen_family = family, .version = NFNETLINK_V0, .res_id = htons(res_id)};

	finish_message(b);
	b->msg = b->b.len;
	h.nlmsg_seq = ++b->seq;
	abx_buf_add(&b->b, &h, sizeof(h));
	abx_buf_add(&b->b, &g, sizeof(g));
}

static void set_flags(struct nft_batch *b, uint16_t flags)
{
	if (!b->b.failed)
		memcpy(b->b.data + b->msg + offsetof(struct nlmsghdr, nlmsg_flags), &flags,
		       sizeof(flags));
}

/* The first attribute of each message is the table, the second what it is about: blame()
 * relies on this. */
static void start(struct nft_batch *b, uint16_t type, uint16_t name_type, const char *name)
{
	start_message(b, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), NFPROTO_INET, 0);
	set_flags(b, NLM_F_REQUEST | NLM_F_CREATE | NLM_F_APPEND);
	nft_put_str(b, NFTA_TABLE_NAME, NET_TABLE);
	if (name)
		nft_put_str(b, name_type, name);
}

void nft_open(void)
{
	struct sockaddr_nl a = {.nl_family = AF_NETLINK};
	const int on = 1;

	nfnl_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	if (nfnl_fd < 0 || bind(nfnl_fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		box_fail(ABX_ENOTSUP, NFT_KERNEL_REMEDY, "network: netfilter: %s", strerror(errno));
	(void)setsockopt(nfnl_fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
}

void nft_begin(struct nft_batch *b)
{
	b->first_seq = b->seq = last_seq;
	start_message(b, NFNL_MSG_BATCH_BEGIN, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
}

/* What the message of this number was about. */
static void blame(const struct nft_batch *b, uint32_t seq, char *ret, size_t size)
{
	static const char *const kinds[NFT_MSG_MAX] = {
		[NFT_MSG_NEWTABLE] = "table",
		[NFT_MSG_DELTABLE] = "table",
		[NFT_MSG_NEWCHAIN] = "chain",
		[NFT_MSG_NEWRULE] = "rule in chain",
		[NFT_MSG_NEWSET] = "set",
		[NFT_MSG_NEWSETELEM] = "elements of set",
		[NFT_MSG_DELSETELEM] = "elements of set",
	};
	struct nlmsghdr h;

	(void)snprintf(ret, size, "transaction");
	for (size_t at = 0; at < b->b.len; at += NLMSG_ALIGN(h.nlmsg_len)) {
		const char *attr = b->b.data + at + sizeof(h) + sizeof(struct nfgenmsg);
		const char *kind;

		memcpy(&h, b->b.data + at, sizeof(h));
		if (h.nlmsg_seq != seq || h.nlmsg_type >> 8 != NFNL_SUBSYS_NFTABLES)
			continue;
		kind = kinds[h.nlmsg_type & 0xff];
		attr += sizeof(struct nlattr);
		if (strcmp(kind, "table") != 0)
			attr += NLA_ALIGN(sizeof(NET_TABLE)) + sizeof(struct nlattr);
		(void)snprintf(ret, size, "%s %s, step %u", kind, attr, seq - b->first_seq);
	}
}

/* The kernel has done all of it when send() returns, and its answers are there: one for each
 * message that failed, and one for the last.  The first that failed is the cause. */
static int take_answers(const struct nft_batch *b, uint32_t last, uint32_t *ret_failed)
{
	_Alignas(struct nlmsghdr) char reply[REPLY_BYTES];
	bool done = false;
	int err = 0;

	*ret_failed = 0;
	for (;;) {
		ssize_t n = recv(nfnl_fd, reply, sizeof(reply), MSG_DONTWAIT);
		unsigned int len = (unsigned int)n;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			err = err ? err : -errno;
			continue;
		}
		for (struct nlmsghdr *h = (void *)reply; NLMSG_OK(h, len); h = NLMSG_NEXT(h, len)) {
			const struct nlmsgerr *e = NLMSG_DATA(h);

			if (h->nlmsg_type != NLMSG_ERROR ||
			    h->nlmsg_len < NLMSG_LENGTH(sizeof(*e)) ||
			    h->nlmsg_seq <= b->first_seq || h->nlmsg_seq > b->seq)
				continue;
			if (e->error && !err) {
				err = e->error;
				*ret_failed = h->nlmsg_seq;
			}
			done = done || (!e->error && h->nlmsg_seq == last);
		}
	}
	return err ? err : done ? 0 : -EIO;
}

static const char *remedy_of(int err)
{
	switch (err) {
	case -ENOENT:
	case -EOPNOTSUPP:
	case -EPROTONOSUPPORT:
	case -EAFNOSUPPORT:
		return NFT_KERNEL_REMEDY;
	case -EMSGSIZE:
		return "allow and deny fewer ranges";
	case -EPERM:
		return "the container around this needs NET_ADMIN in new user namespaces";
	default:
		return NULL;
	}
}

int nft_commit(struct nft_batch *b, char ret_why[NFT_WHY_BYTES], const char **ret_remedy)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	char what[NFT_WHY_BYTES / 2] = "transaction";
	uint32_t last = b->seq, failed;
	int size = (int)b->b.len * 2, r;
	ssize_t n;

	set_flags(b, NLM_F_REQUEST | NLM_F_CREATE | NLM_F_APPEND | NLM_F_ACK);
	start_message(b, NFNL_MSG_BATCH_END, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
	finish_message(b);
	last_seq = b->seq;
	if (b->b.failed)
		box_fail_errno(ENOMEM, "network: rules");
	(void)setsockopt(nfnl_fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	do
		n = sendto(nfnl_fd, b->b.data, b->b.len, 0, (const struct sockaddr *)&kernel,
			   sizeof(kernel));
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		r = -errno;
	} else {
		r = take_answers(b, last, &failed);
		if (r < 0)
			blame(b, failed, what, sizeof(what));
	}
	if (r < 0) {
		(void)snprintf(ret_why, NFT_WHY_BYTES, "%s: %s", what, strerror(-r));
		*ret_remedy = remedy_of(r);
	}
	abx_buf_release(&b->b);
	return r;
}

void nft_new_table(struct nft_batch *b)
{
	start(b, NFT_MSG_NEWTABLE, 0, NULL);
	start(b, NFT_MSG_DELTABLE, 0, NULL);
	start(b, NFT_MSG_NEWTABLE, 0, NULL);
}

static void new_set(struct nft_batch *b, const char *set, uint32_t flags)
{
	start(b, NFT_MSG_NEWSET, NFTA_SET_NAME, set);
	nft_put_be32(b, NFTA_SET_FLAGS, flags);
	nft_put_be32(b, NFTA_SET_KEY_TYPE, TYPE_IPV4_ADDR);
	nft_put_be32(b, NFTA_SET_KEY_LEN, sizeof(uint32_t));
	/* The kernel wants a number by which this batch could name it. */
	nft_put_be32(b, NFTA_SET_ID, b->seq);
}

void nft_range_set(struct nft_batch *b, const char *set)
{
	new_set(b, set, NFT_SET_INTERVAL);
}

/* Without a bound: for one, the kernel allocates and clears as much at once, which is most of
 * the time that the rules take.  Whoever adds to it counts. */
void nft_timed_set(struct nft_batch *b, const char *set)
{
	new_set(b, set, NFT_SET_TIMEOUT);
}

void nft_flush_set(struct nft_batch *b, const char *set)
{
	start(b, NFT_MSG_DELSETELEM, NFTA_SET_ELEM_LIST_SET, set);
}

static void put_key(struct nft_batch *b, uint32_t addr)
{
	nft_open_nest(b, NFTA_SET_ELEM_KEY);
	nft_put_be32(b, NFTA_DATA_VALUE, addr);
	nft_close_nest(b);
}

static void put_range(struct nft_batch *b, const struct net_range *r)
{
	nft_open_nest(b, NFTA_LIST_ELEM);
	put_key(b, r->first);
	nft_close_nest(b);
	/* The end is the first address behind it, and there is none behind the last of all. */
	if (r->last == UINT32_MAX)
		return;
	nft_open_nest(b, NFTA_LIST_ELEM);
	nft_put_be32(b, NFTA_SET_ELEM_FLAGS, NFT_SET_ELEM_INTERVAL_END);
	put_key(b, r->last + 1);
	nft_close_nest(b);
}

static int by_first(const void *a, const void *z)
{
	const struct net_range *x = a, *y = z;

	return (x->first > y->first) - (x->first < y->first);
}

/* The kernel takes no ranges that overlap or touch. */
static size_t merge(struct net_range *r, size_t n)
{
	size_t kept = 0;

	qsort(r, n, sizeof(*r), by_first);
	for (size_t i = 0; i < n; i++) {
		struct net_range *before = kept ? &r[kept - 1] : NULL;

		if (!before || (before->last != UINT32_MAX && r[i].first > before->last + 1))
			r[kept++] = r[i];
		else if (r[i].last > before->last)
			before->last = r[i].last;
	}
	return kept;
}

void nft_add_ranges(struct nft_batch *b, const char *set, const struct net_range *r, size_t n)
{
	struct net_range *sorted = box_alloc(n * sizeof(*sorted));

	if (n)
		memcpy(sorted, r, n * sizeof(*sorted));
	n = merge(sorted, n);
	for (size_t i = 0; i < n; i++) {
		if (i % RANGES_A_MESSAGE == 0) {
			start(b, NFT_MSG_NEWSETELEM, NFTA_SET_ELEM_LIST_SET, set);
			nft_open_nest(b, NFTA_SET_ELEM_LIST_ELEMENTS);
		}
		put_range(b, &sorted[i]);
	}
	free(sorted);
}

static void timed(struct nft_batch *b, uint16_t type, const char *set, uint32_t addr, uint64_t ms)
{
	start(b, type, NFTA_SET_ELEM_LIST_SET, set);
	nft_open_nest(b, NFTA_SET_ELEM_LIST_ELEMENTS);
	nft_open_nest(b, NFTA_LIST_ELEM);
	put_key(b, addr);
	ms = htobe64(ms);
	if (ms)
		nft_put(b, NFTA_SET_ELEM_TIMEOUT, &ms, sizeof(ms));
}

void nft_put_timed(struct nft_batch *b, const char *set, uint32_t addr, uint64_t ms)
{
	/* A time-out is changed by adding the element anew, and only what is there can be
	 * deleted. */
	timed(b, NFT_MSG_NEWSETELEM, set, addr, 0);
	timed(b, NFT_MSG_DELSETELEM, set, addr, 0);
	timed(b, NFT_MSG_NEWSETELEM, set, addr, ms);
}

void nft_chain(struct nft_batch *b, const char *chain)
{
	start(b, NFT_MSG_NEWCHAIN, NFTA_CHAIN_NAME, chain);
}

void nft_base_chain(struct nft_batch *b, const char *chain, const char *type, uint32_t hook,
		    int32_t priority, uint32_t policy)
{
	nft_chain(b, chain);
	nft_put_str(b, NFTA_CHAIN_TYPE, type);
	nft_put_be32(b, NFTA_CHAIN_POLICY, policy);
	nft_open_nest(b, NFTA_CHAIN_HOOK);
	nft_put_be32(b, NFTA_HOOK_HOOKNUM, hook);
	nft_put_be32(b, NFTA_HOOK_PRIORITY, (uint32_t)priority);
	nft_close_nest(b);
}

void nft_rule(struct nft_batch *b, const char *chain)
{
	start(b, NFT_MSG_NEWRULE, NFTA_RULE_CHAIN, chain);
	nft_open_nest(b, NFTA_RULE_EXPRESSIONS);
}
