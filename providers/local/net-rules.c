/* SPDX-License-Identifier: MIT */
/* The rules of a box as nft reads them: everything that leaves, and nothing that comes in. */
#include "providers/local/net.h"

#define IP_FMT "%u.%u.%u.%u"
#define IP_ARGS(a) (a) >> 24, (a) >> 16 & 255, (a) >> 8 & 255, (a)&255

static const struct net_range link_local = {UINT32_C(0xa9fe0000), UINT32_C(0xa9feffff)};

static void add_range(struct abx_buf *b, const struct net_range *r, bool *first)
{
	abx_buf_adds(b, *first ? " " : ", ");
	*first = false;
	if (r->first == r->last)
		abx_buf_addf(b, IP_FMT, IP_ARGS(r->first));
	else
		abx_buf_addf(b, IP_FMT "-" IP_FMT, IP_ARGS(r->first), IP_ARGS(r->last));
}

static bool within(const struct net_range *r, const struct net_range *outer)
{
	return r->first >= outer->first && r->last <= outer->last;
}

/* The ranges among these entries: all, or those that name link-local addresses. */
static void print_entries(struct abx_buf *b, const char *name, const struct net_entry *e, size_t n,
			  bool link_local_only)
{
	bool first = true;

	abx_buf_addf(b, "\tset %s {\n\t\ttype ipv4_addr\n\t\tflags interval\n\t\tauto-merge\n",
		     name);
	for (size_t i = 0; i < n; i++) {
		if (e[i].name || (link_local_only && !within(&e[i].range, &link_local)))
			continue;
		if (first)
			abx_buf_adds(b, "\t\telements = {");
		add_range(b, &e[i].range, &first);
	}
	abx_buf_adds(b, first ? "\t}\n" : " }\n\t}\n");
}

static void add_host_ranges(const struct net_rules *r, struct abx_buf *b)
{
	bool first = true;

	for (size_t i = 0; i < r->host->n_own; i++)
		add_range(b, &r->host->own[i], &first);
}

/* Never somewhere else: this network, loopback, link-local, multicast and what is reserved. */
static void print_never(const struct net_rules *r, struct abx_buf *b)
{
	const struct net_range never[] = {
		{0, UINT32_C(0x00ffffff)},
		{r->network, r->network + 255},
		{UINT32_C(0x7f000000), UINT32_C(0x7fffffff)},
		link_local,
		{UINT32_C(0xe0000000), UINT32_MAX},
	};
	bool first = true;

	abx_buf_adds(b, "\tset never {\n\t\ttype ipv4_addr\n\t\tflags interval\n\t\tauto-merge\n"
			"\t\telements = {");
	for (size_t i = 0; i < ABX_N_ELEMENTS(never); i++)
		add_range(b, &never[i], &first);
	abx_buf_adds(b, " }\n\t}\n");
}

static void print_sets(const struct net_rules *r, struct abx_buf *b)
{
	const struct net_policy *p = r->policy;

	abx_buf_adds(b, "\tset host {\n\t\ttype ipv4_addr\n\t\tflags interval\n\t\tauto-merge\n"
			"\t\telements = {");
	add_host_ranges(r, b);
	abx_buf_adds(b, " }\n\t}\n");
	print_never(r, b);
	print_entries(b, "link_allowed", p->allow, p->n_allow, true);
	print_entries(b, "allowed", p->allow, p->n_allow, false);
	print_entries(b, "denied", p->deny, p->n_deny, false);
	abx_buf_adds(b, "\tset named {\n\t\ttype ipv4_addr\n\t\tflags timeout\n\t\tsize 65535\n"
			"\t}\n");
}

static void print_name_service(const struct net_rules *r, struct abx_buf *b)
{
	uint32_t dns = r->network + 3;

	if (r->policy->mode == NET_ALL)
		abx_buf_addf(b,
			     "\t\tip daddr " IP_FMT " meta l4proto { tcp, udp } th dport 53 "
			     "goto ok\n",
			     IP_ARGS(dns));
	else
		abx_buf_adds(b, "\t\tmeta l4proto { tcp, udp } th dport 53 goto no\n");
}

/* A connection goes on only under the rules that allowed it: narrower ones end it. */
static void print_output(const struct net_rules *r, struct abx_buf *b)
{
	abx_buf_adds(b, "\tchain output {\n"
			"\t\ttype filter hook output priority filter; policy drop;\n"
			"\t\toifname \"lo\" accept\n");
	if (r->dns_port) {
		/* What was redirected still names the interface that it would have left by. */
		abx_buf_addf(
			b, "\t\tip daddr 127.0.0.1 meta l4proto { tcp, udp } th dport %u accept\n",
			r->dns_port);
		abx_buf_addf(b,
			     "\t\tmeta mark %#x ip daddr " IP_FMT
			     " meta l4proto { tcp, udp } th dport 53 accept\n",
			     r->mark, IP_ARGS(r->network + 3));
	}
	abx_buf_addf(b, "\t\tct state established,related ct mark %#x accept\n", r->generation);
	abx_buf_adds(b, "\t\tmeta nfproto ipv6 goto no\n"
			"\t\toifname != \"" NET_TAP "\" drop\n");
	if (r->policy->mode != NET_NONE) {
		print_name_service(r, b);
		abx_buf_adds(b, "\t\tip daddr @host goto no\n"
				"\t\tip daddr @link_allowed goto ok\n"
				"\t\tip daddr @never goto no\n"
				"\t\tip daddr @denied goto no\n");
	}
	if (r->policy->mode == NET_ALL)
		abx_buf_adds(b, "\t\tgoto ok\n");
	else if (r->policy->mode == NET_LIST)
		abx_buf_adds(b, "\t\tip daddr @allowed goto ok\n"
				"\t\tip daddr @named goto ok\n");
	abx_buf_adds(b, "\t\tgoto no\n\t}\n");
}

static void print_redirects(const struct net_rules *r, struct abx_buf *b)
{
	uint32_t dns = r->network + 3;

	abx_buf_adds(b, "\tchain names {\n\t\ttype nat hook output priority -100;\n"
			"\t\toifname \"lo\" return\n");
	if (r->dns_port) {
		abx_buf_addf(b, "\t\tmeta mark %#x return\n", r->mark);
		abx_buf_addf(b, "\t\tmeta nfproto ipv4 udp dport 53 redirect to :%u\n",
			     r->dns_port);
		abx_buf_addf(b, "\t\tmeta nfproto ipv4 tcp dport 53 redirect to :%u\n",
			     r->dns_port);
	} else if (r->policy->mode == NET_ALL && dns != NET_RESOLVER) {
		abx_buf_addf(b,
			     "\t\tip daddr " IP_FMT " udp dport 53 dnat ip to " IP_FMT "\n"
			     "\t\tip daddr " IP_FMT " tcp dport 53 dnat ip to " IP_FMT "\n",
			     IP_ARGS(NET_RESOLVER), IP_ARGS(dns), IP_ARGS(NET_RESOLVER),
			     IP_ARGS(dns));
	}
	abx_buf_adds(b, "\t}\n");
}

void net_rules_print(const struct net_rules *r, struct abx_buf *b)
{
	abx_buf_adds(b, "add table " NET_TABLE "\ndelete table " NET_TABLE "\n"
			"table " NET_TABLE " {\n");
	print_sets(r, b);
	/* Fast failure: nobody waits for a time-out to learn of a rule. */
	abx_buf_addf(b,
		     "\tchain ok {\n\t\tct mark set %#x\n\t\taccept\n\t}\n"
		     "\tchain no {\n"
		     "\t\tmeta l4proto tcp ct state established reject with tcp reset\n"
		     "\t\treject with icmpx type admin-prohibited\n\t}\n",
		     r->generation);
	print_output(r, b);
	print_redirects(r, b);
	abx_buf_adds(b, "\tchain input {\n"
			"\t\ttype filter hook input priority filter; policy drop;\n"
			"\t\tiifname \"lo\" accept\n"
			"\t\tmeta nfproto ipv4 ct state established,related accept\n\t}\n"
			"\tchain forward {\n"
			"\t\ttype filter hook forward priority filter; policy drop;\n\t}\n"
			"}\n");
}

void net_rules_print_host(const struct net_rules *r, struct abx_buf *b)
{
	abx_buf_adds(b, "flush set " NET_TABLE " host\nadd element " NET_TABLE " host {");
	add_host_ranges(r, b);
	abx_buf_adds(b, " }\n");
}
