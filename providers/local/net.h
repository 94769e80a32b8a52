/* SPDX-License-Identifier: MIT */
/*
 * net.h: inside agentbox-local-net, the network of one box.
 *
 * One process a box, started by whichever command needs it first, alive for as long as the
 * box's first process and no longer.  It starts in the host's namespaces, opens there what
 * belongs there, starts the carrier of packets, and then joins the user and network namespace of
 * the box for good, where it has every capability and the box has none that matters: rules first,
 * an interface that is up afterwards.  It is not in the box's pid namespace, so nothing in
 * the box sees it.
 *
 * Its state is one struct lb_msg at the beginning of the file behind LB_FD_LIVE, which it
 * keeps locked: empty while it comes up, LB_MSG_READY, or LB_MSG_FAIL with the reason.
 *
 * Single-threaded; whatever fails for good ends the process through box_fail(), and the
 * carrier (slirp4netns or pasta) ends with it.
 */
#ifndef LOCAL_NET_H
#define LOCAL_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "abxsdk/forward.h"
#include "abxsdk/loop.h"
#include "providers/local/net-nft.h"
#include "providers/local/net-policy.h"

#define NET_TAP "tap0"
/* LB_RESOLVER, whatever network the carrier has. */
#define NET_RESOLVER UINT32_C(0x0a000203)
#define NET_NAMED "named" /* the set of addresses that allowed names have just now */

/* net-host.c: what the host's own network looks like. */
struct net_host {
	struct net_range *own; /* addresses at which the host would answer; 127/8 among them */
	size_t n_own;
	struct net_range *used; /* networks that it has a route to, without the default one */
	size_t n_used;
};
int net_netlink_open(uint32_t groups); /* in the namespace of now */
/* Open the sockets, in the host's namespace. */
void net_host_open(void);
/* Ask again.  True when `own` differs from before. */
bool net_host_load(void);
/* From now on call `changed` when the host's own addresses are others. */
void net_host_watch(void (*changed_fn)(void));
const struct net_host *net_host(void);
bool net_host_owns(uint32_t addr);
/* A network of 256 addresses that the host does not use. */
uint32_t net_choose_network(const struct net_host *h);

/* net-rules.c: the ruleset. */
struct net_rules {
	const struct net_policy *policy;
	const struct net_host *host;
	uint32_t network;    /* of the carrier: .2 is the host, .3 resolves names */
	bool tcp_names;	     /* .3 does it by TCP too */
	uint16_t dns_port;   /* where our resolver listens; 0: there is none */
	uint32_t mark;	     /* on what our resolver sends; nobody in a box can set marks */
	uint32_t generation; /* of connections that these rules allowed */
};
void net_rules_write(const struct net_rules *r, struct nft_batch *b);
/* Only the host's addresses, replaced in one step. */
void net_rules_write_host(const struct net_rules *r, struct nft_batch *b);

/* net-main.c: user and network namespace of the box, for good.  Ends where the box has. */
void net_join_box(void);

/* net-slirp.c, net-pasta.c: the program that carries packets. */
struct net_carrier {
	const char *name;
	const char *install, *remedy; /* where it is missing; where it fails */
	bool tcp_names;		      /* it passes on what asks for names by TCP, not only UDP */
	void (*prepare)(void);	      /* descriptors that it and this process share, or NULL */
	/* Become the program, for the namespaces of the process `of`; returns where that fails. */
	void (*become)(uint32_t network, pid_t of);
	/* Called in the box's network namespace: what becomes readable when it may be ready. */
	int (*watch)(void);
	bool (*ready)(void);
	/* Where it takes and gives frames; NULL: at an interface that it makes itself. */
	int (*frames)(void);
};
extern const struct net_carrier net_slirp, net_pasta;

/* net-carrier.c: in the host's namespaces, fork what becomes the program. */
void net_carrier_fork(const struct net_carrier *c, uint32_t network);
/* From now on our end is that of whatever it is. */
void net_carrier_watch(void);
/* In those of the box: let it, and wait until it is ready.  Whenever it ends, so do we. */
void net_carrier_go(void);
void net_pipe(int *ret_read, int *ret_write);

/* net-resolver.c: answers what the policy allows; returns the port on which it listens. */
uint16_t net_resolver_open(const struct net_rules *r);

/* net-names.c: open the way to the addresses in *a, and drop those that nobody may reach.
 * False: the answer may not be given. */
struct net_question;
struct net_answer;
bool net_names_allow(const struct net_rules *r, const struct net_question *q, struct net_answer *a);
/* What is open now and still allowed, for new rules. */
void net_names_write(const struct net_rules *r, struct nft_batch *b);

/* net-control.c: what commands ask for, on LB_FD_CONTROL. */
void net_control_open(int32_t (*set_policy)(struct net_policy *p, char *ret_why, size_t size));

/* net-tap.c: give the interface its address and route. */
void net_tap_up(uint32_t network);

/* net-relay.c: an interface of ours, and a carrier that is started when the first packet comes out
 * of it.  What opens the device is in the network namespace of the box, where the interface will
 * be, and has the rights on files that its caller has. */
void net_relay_open_tap(void);
void net_relay_make_tap(void);
void net_relay_watch(const struct net_carrier *c);

#endif
