/* SPDX-License-Identifier: MIT */
/*
 * net-dns.h: the little of DNS that a box needs, read and written byte by byte.
 *
 * Everything that comes in, from the box or from a name server, is hostile: no function reads
 * or writes outside of the lengths it was given, follows more than a few pointers, or passes
 * on a byte of what it read but names that were asked for and addresses.
 */
#ifndef LOCAL_NET_DNS_H
#define LOCAL_NET_DNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NET_DNS_PORT 53
#define NET_DNS_MAX_BYTES 1232
#define NET_DNS_NAME_MAX 254 /* with its NUL */
#define NET_DNS_ADDRESSES_MAX 30

#define NET_DNS_A 1
#define NET_DNS_CNAME 5
#define NET_DNS_AAAA 28
#define NET_DNS_SVCB 64
#define NET_DNS_HTTPS 65

#define NET_DNS_OK 0
#define NET_DNS_SERVFAIL 2
#define NET_DNS_NXDOMAIN 3
#define NET_DNS_NOTIMP 4
#define NET_DNS_REFUSED 5

struct net_question {
	char name[NET_DNS_NAME_MAX]; /* printable, without a dot at the end, "" for the root */
	size_t name_len;
	uint16_t id, type, class;
	bool recursion;
};

struct net_answer {
	int rcode;
	uint32_t ttl_s; /* the least on the way to the addresses */
	size_t n;
	uint32_t addr[NET_DNS_ADDRESSES_MAX]; /* host byte order */
};

/* One question as a stub resolver asks it.  False: nothing that deserves an answer. */
bool net_dns_read_question(const uint8_t *msg, size_t len, struct net_question *ret);
/* What to say to it: only addresses, all under the name that was asked for. */
size_t net_dns_write_answer(const struct net_question *q, const struct net_answer *a, uint8_t *out,
			    size_t size);
/* A question for the addresses of that name, to somebody else. */
size_t net_dns_write_question(const struct net_question *q, uint16_t id, uint8_t *out, size_t size);
/* His answer; CNAMEs in it are followed.  False: it is not the answer to that question. */
bool net_dns_read_answer(const uint8_t *msg, size_t len, const struct net_question *q, uint16_t id,
			 struct net_answer *ret);

#endif
