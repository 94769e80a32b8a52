/* SPDX-License-Identifier: MIT */
/*
 * net-nft.h: rules of nf_tables, written as the kernel's own messages.
 *
 * A batch is one transaction on one table, NET_TABLE of family inet: all of it, or nothing.
 *
 *	struct nft_batch b = NFT_BATCH_INIT;
 *
 *	nft_begin(&b);
 *	nft_rule(&b, "output");
 *	nft_if_oif(&b, "lo");
 *	nft_accept(&b);
 *	r = nft_commit(&b, &why, &remedy);
 *
 * What follows nft_rule() belongs to it, in this order: conditions, which must all hold, then
 * what happens.  Chains and sets are made before what names them.  Memory that is lacking shows
 * at the end.  Numbers, addresses and ports are in host byte order.
 */
#ifndef LOCAL_NET_NFT_H
#define LOCAL_NET_NFT_H

#include <stddef.h>
#include <stdint.h>

#include "abxsdk/buf.h"
#include "providers/local/net-policy.h"

#define NET_TABLE "agentbox"

#define NFT_NESTED_MAX 6
#define NFT_BATCH_MAX_BYTES ((size_t)16 << 20)
#define NFT_WHY_BYTES 200

struct nft_batch {
	struct abx_buf b;
	uint32_t first_seq, seq;     /* of the messages in it */
	size_t msg;		     /* where the last one begins */
	size_t nest[NFT_NESTED_MAX]; /* and attributes in it that are not finished */
	size_t depth;
};

#define NFT_BATCH_INIT                                 \
	{                                              \
		.b = ABX_BUF_INIT(NFT_BATCH_MAX_BYTES) \
	}

/* In the network namespace that the rules are for, once. */
void nft_open(void);
void nft_begin(struct nft_batch *b);
/* Do it, and release the batch: 0 or -errno, *ret_why in one line, *ret_remedy or NULL. */
int nft_commit(struct nft_batch *b, char ret_why[NFT_WHY_BYTES], const char **ret_remedy);

/* An empty table, whatever there was. */
void nft_new_table(struct nft_batch *b);

/* A set of ranges, and all of what is in it; they may overlap. */
void nft_range_set(struct nft_batch *b, const char *set);
void nft_add_ranges(struct nft_batch *b, const char *set, const struct net_range *r, size_t n);
void nft_flush_set(struct nft_batch *b, const char *set);
/* A set of addresses, each of which ends by itself. */
void nft_timed_set(struct nft_batch *b, const char *set);
/* From now on for so long, whether it was there or not. */
void nft_put_timed(struct nft_batch *b, const char *set, uint32_t addr, uint64_t ms);

void nft_chain(struct nft_batch *b, const char *chain);
/* `type`, `hook` (NF_INET_*), `policy` (NF_*) as in the kernel's headers. */
void nft_base_chain(struct nft_batch *b, const char *chain, const char *type, uint32_t hook,
		    int32_t priority, uint32_t policy);

void nft_rule(struct nft_batch *b, const char *chain);
void nft_if_oif(struct nft_batch *b, const char *name);
void nft_if_not_oif(struct nft_batch *b, const char *name);
void nft_if_iif(struct nft_batch *b, const char *name);
void nft_if_family(struct nft_batch *b, uint8_t nfproto);
void nft_if_protocol(struct nft_batch *b, uint8_t ipproto);
void nft_if_mark(struct nft_batch *b, uint32_t mark);
void nft_if_daddr(struct nft_batch *b, uint32_t addr);
void nft_if_daddr_in(struct nft_batch *b, const char *set);
void nft_if_dport(struct nft_batch *b, uint16_t port);	  /* after nft_if_protocol() */
void nft_if_ct_state(struct nft_batch *b, uint32_t bits); /* any of NF_CT_STATE_BIT() */
void nft_if_ct_mark(struct nft_batch *b, uint32_t mark);
void nft_set_ct_mark(struct nft_batch *b, uint32_t mark);
void nft_accept(struct nft_batch *b);
void nft_drop(struct nft_batch *b);
void nft_return(struct nft_batch *b);
void nft_goto(struct nft_batch *b, const char *chain);
void nft_reject_reset(struct nft_batch *b);
void nft_reject_prohibited(struct nft_batch *b);
void nft_redirect(struct nft_batch *b, uint16_t port);
void nft_dnat(struct nft_batch *b, uint32_t addr);

#endif
