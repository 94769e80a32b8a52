/* SPDX-License-Identifier: MIT */
/* The rules of a box: everything that leaves, and nothing that comes in. */
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter_ipv4.h>
#include <stdlib.h>

#include "providers/local/box.h"
#include "providers/local/net.h"

#define DNS_PORT 53
#define LOOPBACK UINT32_C(0x7f000001)

#define ESTABLISHED NF_CT_STATE_BIT(IP_CT_ESTABLISHED)
#define RELATED NF_CT_STATE_BIT(IP_CT_RELATED)

static const struct net_range link_local = {UINT32_C(0xa9fe0000), UINT32_C(0xa9feffff)};

/* What questions about names travel by. */
static const uint8_t carriers[] = {IPPROTO_UDP, IPPROTO_TCP};

static bool within(const struct net_range *r, const struct net_range *outer)
{
	return r->first >= outer->first && r->last <= outer->last;
}

static void write_set(struct nft_batch *b, const char *set, const struct net_range *r, size_t n)
{
	nft_range_set(b, set);
	nft_add_ranges(b, set, r, n);
}

/* The ranges among these entries: all, or those that name link-local addresses. */
static void write_entries(struct nft_batch *b, const char *set, const struct net_entry *e, size_t n,
			  bool link_local_only)
{
	struct net_range *r = box_alloc(n * sizeof(*r));
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (!e[i].name && (!link_local_only || within(&e[i].range, &link_local)))
			r[kept++] = e[i].range;
	write_set(b, set, r, kept);
	free(r);
}

static void write_sets(const struct net_rules *r, struct nft_batch *b)
{
	const struct net_policy *p = r->policy;
	/* Never somewhere else: this network, loopback, link-local, multicast and what is
	 * reserved. */
	const struct net_range never[] = {
		{0, UINT32_C(0x00ffffff)},
		{r->network, r->network + 255},
		{UINT32_C(0x7f000000), UINT32_C(0x7fffffff)},
		link_local,
		{UINT32_C(0xe0000000), UINT32_MAX},
	};

	write_set(b, "host", r->host->own, r->host->n_own);
	write_set(b, "never", never, ABX_N_ELEMENTS(never));
	write_entries(b, "link_allowed", p->allow, p->n_allow, true);
	write_entries(b, "allowed", p->allow, p->n_allow, false);
	write_entries(b, "denied", p->deny, p->n_deny, false);
	nft_timed_set(b, NET_NAMED);
}

/* Fast failure: nobody waits for a time-out to learn of a rule. */
static void write_verdicts(const struct net_rules *r, struct nft_batch *b)
{
	nft_chain(b, "ok");
	nft_rule(b, "ok");
	nft_set_ct_mark(b, r->generation);
	nft_accept(b);

	nft_chain(b, "no");
	nft_rule(b, "no");
	nft_if_protocol(b, IPPROTO_TCP);
	nft_if_ct_state(b, ESTABLISHED);
	nft_reject_reset(b);
	nft_rule(b, "no");
	nft_reject_prohibited(b);
}

/* Does the carrier pass on questions that travel by this? */
static bool carries(const struct net_rules *r, uint8_t carrier)
{
	return carrier == IPPROTO_UDP || r->tcp_names;
}

/* Our own resolver is reached, and it alone reaches that of the carrier. */
static void write_resolver(const struct net_rules *r, struct nft_batch *b, uint8_t carrier)
{
	/* What was redirected still names the interface that it would have left by. */
	nft_rule(b, "output");
	nft_if_daddr(b, LOOPBACK);
	nft_if_protocol(b, carrier);
	nft_if_dport(b, r->dns_port);
	nft_accept(b);

	if (!carries(r, carrier))
		return;
	nft_rule(b, "output");
	nft_if_mark(b, r->mark);
	nft_if_daddr(b, r->network + 3);
	nft_if_protocol(b, carrier);
	nft_if_dport(b, DNS_PORT);
	nft_accept(b);
}

static void write_name_service(const struct net_rules *r, struct nft_batch *b, uint8_t carrier)
{
	bool all = r->policy->mode == NET_ALL;

	if (all && !carries(r, carrier))
		return;
	nft_rule(b, "output");
	if (all)
		nft_if_daddr(b, r->network + 3);
	nft_if_protocol(b, carrier);
	nft_if_dport(b, DNS_PORT);
	nft_goto(b, all ? "ok" : "no");
}

static void daddr_in_goto(struct nft_batch *b, const char *set, const char *chain)
{
	nft_rule(b, "output");
	nft_if_daddr_in(b, set);
	nft_goto(b, chain);
}

static void write_new_connections(const struct net_rules *r, struct nft_batch *b)
{
	if (r->policy->mode != NET_NONE) {
		for (size_t i = 0; i < ABX_N_ELEMENTS(carriers); i++)
			write_name_service(r, b, carriers[i]);
		daddr_in_goto(b, "link_allowed", "ok");
		daddr_in_goto(b, "never", "no");
		daddr_in_goto(b, "denied", "no");
	}
	if (r->policy->mode == NET_LIST) {
		daddr_in_goto(b, "allowed", "ok");
		daddr_in_goto(b, NET_NAMED, "ok");
	}
	nft_rule(b, "output");
	nft_goto(b, r->policy->mode == NET_ALL ? "ok" : "no");
}

static void write_output(const struct net_rules *r, struct nft_batch *b)
{
	nft_base_chain(b, "output", "filter", NF_INET_LOCAL_OUT, NF_IP_PRI_FILTER, NF_DROP);
	nft_rule(b, "output");
	nft_if_oif(b, "lo");
	nft_accept(b);

	for (size_t i = 0; r->dns_port && i < ABX_N_ELEMENTS(carriers); i++)
		write_resolver(r, b, carriers[i]);

	/* Also what goes on already: the host may have the address only now. */
	daddr_in_goto(b, "host", "no");

	/* A connection goes on only under the rules that allowed it: narrower ones end it. */
	nft_rule(b, "output");
	nft_if_ct_state(b, ESTABLISHED | RELATED);
	nft_if_ct_mark(b, r->generation);
	nft_accept(b);

	nft_rule(b, "output");
	nft_if_family(b, NFPROTO_IPV6);
	nft_goto(b, "no");

	nft_rule(b, "output");
	nft_if_not_oif(b, NET_TAP);
	nft_drop(b);

	write_new_connections(r, b);
}

/* Questions about names go to our resolver, where there is one; else those to the resolver that
 * every box has go to where it is in this network. */
static void write_redirects(const struct net_rules *r, struct nft_batch *b)
{
	bool elsewhere = r->policy->mode == NET_ALL && r->network + 3 != NET_RESOLVER;

	nft_base_chain(b, "names", "nat", NF_INET_LOCAL_OUT, NF_IP_PRI_NAT_DST, NF_ACCEPT);
	nft_rule(b, "names");
	nft_if_oif(b, "lo");
	nft_return(b);
	if (r->dns_port) {
		nft_rule(b, "names");
		nft_if_mark(b, r->mark);
		nft_return(b);
	}
	for (size_t i = 0; (r->dns_port || elsewhere) && i < ABX_N_ELEMENTS(carriers); i++) {
		if (!r->dns_port && !carries(r, carriers[i]))
			continue;
		nft_rule(b, "names");
		if (r->dns_port)
			nft_if_family(b, NFPROTO_IPV4);
		else
			nft_if_daddr(b, NET_RESOLVER);
		nft_if_protocol(b, carriers[i]);
		nft_if_dport(b, DNS_PORT);
		if (r->dns_port)
			nft_redirect(b, r->dns_port);
		else
			nft_dnat(b, r->network + 3);
	}
}

static void write_input(struct nft_batch *b)
{
	nft_base_chain(b, "input", "filter", NF_INET_LOCAL_IN, NF_IP_PRI_FILTER, NF_DROP);
	nft_rule(b, "input");
	nft_if_iif(b, "lo");
	nft_accept(b);
	nft_rule(b, "input");
	nft_if_family(b, NFPROTO_IPV4);
	nft_if_ct_state(b, ESTABLISHED | RELATED);
	nft_accept(b);
	nft_base_chain(b, "forward", "filter", NF_INET_FORWARD, NF_IP_PRI_FILTER, NF_DROP);
}

void net_rules_write(const struct net_rules *r, struct nft_batch *b)
{
	nft_new_table(b);
	write_sets(r, b);
	write_verdicts(r, b);
	write_output(r, b);
	write_redirects(r, b);
	write_input(b);
}

void net_rules_write_host(const struct net_rules *r, struct nft_batch *b)
{
	nft_flush_set(b, "host");
	nft_add_ranges(b, "host", r->host->own, r->host->n_own);
}
