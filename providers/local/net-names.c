/* SPDX-License-Identifier: MIT */
/* The addresses that allowed names have just now. */
#include "providers/local/net.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "abxsdk/clock.h"
#include "providers/local/net-dns.h"

#define NAMES_MAX 4096
/* Programs keep an address a little longer than they were told to. */
#define FLOOR_S 60
#define SLACK_S 60

struct learned {
	uint32_t addr;
	int64_t until_ms;
	char *name;
};

static struct learned *table;
static size_t n_table;

static void put_named(struct nft_batch *b, uint32_t addr, int64_t ms)
{
	nft_put_timed(b, NET_NAMED, addr, ms > 0 ? (uint64_t)ms : 1);
}

static struct learned *find(const char *name, uint32_t addr)
{
	for (size_t i = 0; i < n_table; i++)
		if (table[i].addr == addr && strcasecmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}

/* Several names may lead to one address: the last of them counts. */
static int64_t until(uint32_t addr)
{
	int64_t t = 0;

	for (size_t i = 0; i < n_table; i++)
		if (table[i].addr == addr && table[i].until_ms > t)
			t = table[i].until_ms;
	return t;
}

static void forget_expired(int64_t now)
{
	size_t kept = 0;

	for (size_t i = 0; i < n_table; i++) {
		if (table[i].until_ms > now)
			table[kept++] = table[i];
		else
			free(table[i].name);
	}
	n_table = kept;
}

static struct learned *learn(const char *name, uint32_t addr, int64_t now)
{
	if (!table)
		table = calloc(NAMES_MAX, sizeof(*table));
	if (n_table == NAMES_MAX)
		forget_expired(now);
	if (!table || n_table == NAMES_MAX)
		return NULL;
	table[n_table] = (struct learned){.addr = addr, .name = strdup(name)};
	return table[n_table].name ? &table[n_table++] : NULL;
}

/* A name that leads to the host, to the box itself or to its network is a trick. */
static bool may_be(const struct net_rules *r, uint32_t addr)
{
	return addr >> 24 != 0 && addr >> 24 != 127 && addr >> 16 != 0xa9fe && addr >> 28 < 0xe &&
	       addr >> 8 != r->network >> 8 && !net_host_owns(addr) &&
	       !net_entries_have(r->policy->deny, r->policy->n_deny, addr);
}

bool net_names_allow(const struct net_rules *r, const struct net_question *q, struct net_answer *a)
{
	struct nft_batch b = NFT_BATCH_INIT;
	int64_t now = abx_monotonic_ms(), seconds = (a->ttl_s > FLOOR_S ? a->ttl_s : FLOOR_S);
	char why[NFT_WHY_BYTES];
	const char *remedy;
	size_t kept = 0;
	bool more = false;

	nft_begin(&b);
	for (size_t i = 0; i < a->n; i++) {
		struct learned *l;

		if (!may_be(r, a->addr[i]))
			continue;
		l = find(q->name, a->addr[i]);
		if (!l)
			l = learn(q->name, a->addr[i], now);
		if (!l) {
			abx_buf_release(&b.b);
			return false;
		}
		a->addr[kept++] = a->addr[i];
		if (l->until_ms >= now + seconds * 1000)
			continue;
		l->until_ms = now + (seconds + SLACK_S) * 1000;
		put_named(&b, l->addr, until(l->addr) - now);
		more = true;
	}
	a->n = kept;
	if (!more) {
		abx_buf_release(&b.b);
		return true;
	}
	if (nft_commit(&b, why, &remedy) == 0)
		return true;
	/* Not allowed after all: the next question tries again. */
	for (size_t i = 0; i < a->n; i++)
		find(q->name, a->addr[i])->until_ms = 0;
	return false;
}

void net_names_write(const struct net_rules *r, struct nft_batch *b)
{
	int64_t now = abx_monotonic_ms();

	for (size_t i = 0; i < n_table; i++) {
		if (!net_policy_allows_name(r->policy, table[i].name, strlen(table[i].name)) ||
		    !may_be(r, table[i].addr))
			table[i].until_ms = 0;
		else if (table[i].until_ms > now)
			put_named(b, table[i].addr, until(table[i].addr) - now);
	}
	forget_expired(now);
}
