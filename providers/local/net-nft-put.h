/* SPDX-License-Identifier: MIT */
/* net-nft-put.h: attributes of a message, for the two files that write them. */
#ifndef LOCAL_NET_NFT_PUT_H
#define LOCAL_NET_NFT_PUT_H

#include "providers/local/net-nft.h"

#define NFT_KERNEL_REMEDY                                                             \
	"the kernel needs nf_tables: modprobe -a nf_tables nft_ct nft_nat nft_redir " \
	"nft_reject_inet"

void nft_put(struct nft_batch *b, uint16_t type, const void *data, size_t len);
void nft_put_str(struct nft_batch *b, uint16_t type, const char *s);
void nft_put_be32(struct nft_batch *b, uint16_t type, uint32_t v);
/* All that follows is within, until it is closed or the next message begins. */
void nft_open_nest(struct nft_batch *b, uint16_t type);
void nft_close_nest(struct nft_batch *b);

#endif
