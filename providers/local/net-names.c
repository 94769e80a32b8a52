/* SPDX-License-Identifier: MIT */
/* The addresses that allowed names have just now. */
#include "providers/local/net.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "providers/local/net-dns.h"

#define NAMES_MAX 4096
/* Programs keep an address a little longer than they were told to. */
#define FLOOR_S 60
#define SLACK_S 60
#define ADD_MAX_BYTES 65536

struct learned {
	uint32_t addr;
	int64_t until_ms;
	char *name;
};

static struct learned *table;
static size_t n_table;

static void add_element(struct abx_buf *b, uint32_t addr, int64_t seconds)
{
	char text[48];

	(void)snprintf(text, sizeof(text), "%u.%u.%u.%u", addr >> 24, addr >> 16 & 255,
		       addr >> 8 & 255, addr & 255);
	/* A time-out is changed by adding the element anew, and only what is there can be
	 * deleted: all of it in one step. */
	abx_buf_addf(b,
		     "add element " NET_TABLE " named { %s }\n"
		     "delete element " NET_TABLE " named { %s }\n"
		     "add element " NET_TABLE " named { %s timeout %llds }\n",
		     text, text, text, (long long)seconds);
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
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(ADD_MAX_BYTES);
	int64_t now = net_now_ms(), seconds = (a->ttl_s > FLOOR_S ? a->ttl_s : FLOOR_S);
	size_t kept = 0;
	char why[256];

	for (size_t i = 0; i < a->n; i++) {
		struct learned *l;

		if (!may_be(r, a->addr[i]))
			continue;
		l = find(q->name, a->addr[i]);
		if (!l)
			l = learn(q->name, a->addr[i], now);
		if (!l)
			return false;
		a->addr[kept++] = a->addr[i];
		if (l->until_ms >= now + seconds * 1000)
			continue;
		l->until_ms = now + (seconds + SLACK_S) * 1000;
		add_element(&b, l->addr, (until(l->addr) - now) / 1000 + 1);
	}
	a->n = kept;
	if (!b.len && !b.failed)
		return true;
	if (net_nft(&b, why, sizeof(why)))
		return true;
	/* Not allowed after all: the next question tries again. */
	for (size_t i = 0; i < a->n; i++)
		find(q->name, a->addr[i])->until_ms = 0;
	return false;
}

void net_names_print(const struct net_rules *r, struct abx_buf *b)
{
	int64_t now = net_now_ms();

	for (size_t i = 0; i < n_table; i++) {
		if (!net_policy_allows_name(r->policy, table[i].name, strlen(table[i].name)) ||
		    !may_be(r, table[i].addr))
			table[i].until_ms = 0;
		else if (table[i].until_ms > now)
			add_element(b, table[i].addr, (until(table[i].addr) - now) / 1000 + 1);
	}
	forget_expired(now);
}
