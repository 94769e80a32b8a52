/* SPDX-License-Identifier: MIT */
/*
 * net-policy.h: what a box may reach, as plugin and network helper both read it.
 *
 * An entry is an IPv4 address, a range A.B.C.D/N, a name (exactly this one) or *.NAME (every
 * name below it).  Numbers are in host byte order.  A policy borrows the texts it was given.
 */
#ifndef LOCAL_NET_POLICY_H
#define LOCAL_NET_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "all": everything but the host; "list": what `allow` says; "none": nothing at all. */
enum net_mode { NET_NONE, NET_LIST, NET_ALL };

struct net_range {
	uint32_t first, last;
};

struct net_entry {
	const char *name; /* NULL: a range */
	size_t name_len;
	bool below; /* *.NAME */
	struct net_range range;
};

struct net_policy {
	enum net_mode mode;
	bool names; /* some entry of `allow` is a name */
	struct net_entry *allow, *deny;
	size_t n_allow, n_deny;
};

/* 0; -EINVAL: it is none of these; -EAFNOSUPPORT: an IPv6 address. */
int net_entry_parse(const char *text, struct net_entry *ret);
/* May this name be looked up?  `name` has no dot at its end; case does not matter. */
bool net_policy_allows_name(const struct net_policy *p, const char *name, size_t len);
/* Is this address in one of the entries? */
bool net_entries_have(const struct net_entry *e, size_t n, uint32_t addr);

/*
 * From texts "all", "list" or "none", then any number of "allow:ENTRY" and "deny:ENTRY";
 * -EINVAL, -EAFNOSUPPORT, -ENOMEM.  Names in `deny` are -EINVAL.
 */
int net_policy_parse(const char *const *text, size_t n, struct net_policy *ret);
void net_policy_release(struct net_policy *p);

#endif
