/* SPDX-License-Identifier: MIT */
/* What a rule of nf_tables says: conditions, and what happens. */
#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "providers/local/net-nft-put.h"

/* Where in its header: the destination of IPv4, and of everything that has ports. */
#define IP_DADDR_AT 16
#define DPORT_AT 2

/* Everything goes through one register. */
#define REG NFT_REG_1

static void begin(struct nft_batch *b, const char *expr)
{
	nft_open_nest(b, NFTA_LIST_ELEM);
	nft_put_str(b, NFTA_EXPR_NAME, expr);
	nft_open_nest(b, NFTA_EXPR_DATA);
}

static void end(struct nft_batch *b)
{
	nft_close_nest(b);
	nft_close_nest(b);
}

static void compare(struct nft_batch *b, uint32_t op, const void *data, size_t len)
{
	begin(b, "cmp");
	nft_put_be32(b, NFTA_CMP_SREG, REG);
	nft_put_be32(b, NFTA_CMP_OP, op);
	nft_open_nest(b, NFTA_CMP_DATA);
	nft_put(b, NFTA_DATA_VALUE, data, len);
	nft_close_nest(b);
	end(b);
}

static void immediate(struct nft_batch *b, const void *data, size_t len)
{
	begin(b, "immediate");
	nft_put_be32(b, NFTA_IMMEDIATE_DREG, REG);
	nft_open_nest(b, NFTA_IMMEDIATE_DATA);
	nft_put(b, NFTA_DATA_VALUE, data, len);
	nft_close_nest(b);
	end(b);
}

static void meta(struct nft_batch *b, uint32_t key, uint32_t op, const void *data, size_t len)
{
	begin(b, "meta");
	nft_put_be32(b, NFTA_META_KEY, key);
	nft_put_be32(b, NFTA_META_DREG, REG);
	end(b);
	compare(b, op, data, len);
}

static void interface(struct nft_batch *b, uint32_t key, uint32_t op, const char *name)
{
	char padded[IFNAMSIZ] = "";

	(void)snprintf(padded, sizeof(padded), "%s", name);
	meta(b, key, op, padded, sizeof(padded));
}

void nft_if_oif(struct nft_batch *b, const char *name)
{
	interface(b, NFT_META_OIFNAME, NFT_CMP_EQ, name);
}

void nft_if_not_oif(struct nft_batch *b, const char *name)
{
	interface(b, NFT_META_OIFNAME, NFT_CMP_NEQ, name);
}

void nft_if_iif(struct nft_batch *b, const char *name)
{
	interface(b, NFT_META_IIFNAME, NFT_CMP_EQ, name);
}

void nft_if_family(struct nft_batch *b, uint8_t nfproto)
{
	meta(b, NFT_META_NFPROTO, NFT_CMP_EQ, &nfproto, sizeof(nfproto));
}

void nft_if_protocol(struct nft_batch *b, uint8_t ipproto)
{
	meta(b, NFT_META_L4PROTO, NFT_CMP_EQ, &ipproto, sizeof(ipproto));
}

void nft_if_mark(struct nft_batch *b, uint32_t mark)
{
	meta(b, NFT_META_MARK, NFT_CMP_EQ, &mark, sizeof(mark));
}

static void payload(struct nft_batch *b, uint32_t base, uint32_t offset, uint32_t len)
{
	begin(b, "payload");
	nft_put_be32(b, NFTA_PAYLOAD_DREG, REG);
	nft_put_be32(b, NFTA_PAYLOAD_BASE, base);
	nft_put_be32(b, NFTA_PAYLOAD_OFFSET, offset);
	nft_put_be32(b, NFTA_PAYLOAD_LEN, len);
	end(b);
}

static void load_daddr(struct nft_batch *b)
{
	nft_if_family(b, NFPROTO_IPV4);
	payload(b, NFT_PAYLOAD_NETWORK_HEADER, IP_DADDR_AT, sizeof(uint32_t));
}

void nft_if_daddr(struct nft_batch *b, uint32_t addr)
{
	load_daddr(b);
	addr = htonl(addr);
	compare(b, NFT_CMP_EQ, &addr, sizeof(addr));
}

void nft_if_daddr_in(struct nft_batch *b, const char *set)
{
	load_daddr(b);
	begin(b, "lookup");
	nft_put_str(b, NFTA_LOOKUP_SET, set);
	nft_put_be32(b, NFTA_LOOKUP_SREG, REG);
	end(b);
}

void nft_if_dport(struct nft_batch *b, uint16_t port)
{
	payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, DPORT_AT, sizeof(port));
	port = htons(port);
	compare(b, NFT_CMP_EQ, &port, sizeof(port));
}

static void load_ct(struct nft_batch *b, uint32_t key)
{
	begin(b, "ct");
	nft_put_be32(b, NFTA_CT_KEY, key);
	nft_put_be32(b, NFTA_CT_DREG, REG);
	end(b);
}

void nft_if_ct_state(struct nft_batch *b, uint32_t bits)
{
	const uint32_t none = 0;

	load_ct(b, NFT_CT_STATE);
	begin(b, "bitwise");
	nft_put_be32(b, NFTA_BITWISE_SREG, REG);
	nft_put_be32(b, NFTA_BITWISE_DREG, REG);
	nft_put_be32(b, NFTA_BITWISE_LEN, sizeof(bits));
	nft_open_nest(b, NFTA_BITWISE_MASK);
	nft_put(b, NFTA_DATA_VALUE, &bits, sizeof(bits));
	nft_close_nest(b);
	nft_open_nest(b, NFTA_BITWISE_XOR);
	nft_put(b, NFTA_DATA_VALUE, &none, sizeof(none));
	nft_close_nest(b);
	end(b);
	compare(b, NFT_CMP_NEQ, &none, sizeof(none));
}

void nft_if_ct_mark(struct nft_batch *b, uint32_t mark)
{
	load_ct(b, NFT_CT_MARK);
	compare(b, NFT_CMP_EQ, &mark, sizeof(mark));
}

void nft_set_ct_mark(struct nft_batch *b, uint32_t mark)
{
	immediate(b, &mark, sizeof(mark));
	begin(b, "ct");
	nft_put_be32(b, NFTA_CT_KEY, NFT_CT_MARK);
	nft_put_be32(b, NFTA_CT_SREG, REG);
	end(b);
}

static void verdict(struct nft_batch *b, int32_t code, const char *chain)
{
	begin(b, "immediate");
	nft_put_be32(b, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	nft_open_nest(b, NFTA_IMMEDIATE_DATA);
	nft_open_nest(b, NFTA_DATA_VERDICT);
	nft_put_be32(b, NFTA_VERDICT_CODE, (uint32_t)code);
	if (chain)
		nft_put_str(b, NFTA_VERDICT_CHAIN, chain);
	nft_close_nest(b);
	nft_close_nest(b);
	end(b);
}

void nft_accept(struct nft_batch *b)
{
	verdict(b, NF_ACCEPT, NULL);
}

void nft_drop(struct nft_batch *b)
{
	verdict(b, NF_DROP, NULL);
}

void nft_return(struct nft_batch *b)
{
	verdict(b, NFT_RETURN, NULL);
}

void nft_goto(struct nft_batch *b, const char *chain)
{
	verdict(b, NFT_GOTO, chain);
}

static void reject(struct nft_batch *b, uint32_t type, uint8_t code)
{
	begin(b, "reject");
	nft_put_be32(b, NFTA_REJECT_TYPE, type);
	nft_put(b, NFTA_REJECT_ICMP_CODE, &code, sizeof(code));
	end(b);
}

void nft_reject_reset(struct nft_batch *b)
{
	reject(b, NFT_REJECT_TCP_RST, 0);
}

void nft_reject_prohibited(struct nft_batch *b)
{
	reject(b, NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
}

void nft_redirect(struct nft_batch *b, uint16_t port)
{
	port = htons(port);
	immediate(b, &port, sizeof(port));
	begin(b, "redir");
	nft_put_be32(b, NFTA_REDIR_REG_PROTO_MIN, REG);
	end(b);
}

void nft_dnat(struct nft_batch *b, uint32_t addr)
{
	addr = htonl(addr);
	immediate(b, &addr, sizeof(addr));
	begin(b, "nat");
	nft_put_be32(b, NFTA_NAT_TYPE, NFT_NAT_DNAT);
	nft_put_be32(b, NFTA_NAT_FAMILY, NFPROTO_IPV4);
	nft_put_be32(b, NFTA_NAT_REG_ADDR_MIN, REG);
	end(b);
}
