/* SPDX-License-Identifier: MIT */
/* What a box may reach: reading entries, and matching names and addresses with them. */
#include "providers/local/net-policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "abxsdk/base.h"
#include "abxsdk/number.h"

#define NAME_MAX_BYTES 253
#define LABEL_MAX_BYTES 63

/* Decimal, at most `max`; leading zeros, which some read as octal, are refused. */
static bool read_number(const char **at, uint32_t max, uint32_t *ret)
{
	const char *from = *at;
	uint64_t v;

	if (!abx_parse_digits(at, max, &v) || (*at - from > 1 && *from == '0'))
		return false;
	*ret = (uint32_t)v;
	return true;
}

static bool parse_range(const char *at, struct net_range *ret)
{
	uint32_t addr = 0, bits = 32, mask;

	for (int i = 0; i < 4; i++) {
		uint32_t byte;

		if ((i && *at++ != '.') || !read_number(&at, 255, &byte))
			return false;
		addr = addr << 8 | byte;
	}
	if (*at == '/') {
		at++;
		if (!read_number(&at, 32, &bits))
			return false;
	}
	if (*at)
		return false;
	mask = bits ? UINT32_MAX << (32 - bits) : 0;
	ret->first = addr & mask;
	ret->last = addr | ~mask;
	return true;
}

static bool is_label_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

static bool is_name(const char *s, size_t len)
{
	size_t label = 0;
	bool alpha = false;

	if (!len || len > NAME_MAX_BYTES)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (s[i] == '.') {
			if (!label)
				return false;
			label = 0;
			continue;
		}
		if (!is_label_byte(s[i]) || ++label > LABEL_MAX_BYTES)
			return false;
		alpha = alpha || s[i] < '0' || s[i] > '9';
	}
	/* Nothing but digits and dots is a mistyped address. */
	return label > 0 && alpha;
}

int net_entry_parse(const char *text, struct net_entry *ret)
{
	struct net_entry e = {.name = NULL};
	size_t len = strlen(text);

	if (parse_range(text, &e.range)) {
		*ret = e;
		return 0;
	}
	if (strchr(text, ':'))
		return -EAFNOSUPPORT;
	e.name = text;
	if (strncmp(text, "*.", 2) == 0) {
		e.below = true;
		e.name += 2;
		len -= 2;
	}
	if (len && e.name[len - 1] == '.')
		len--;
	if (!is_name(e.name, len))
		return -EINVAL;
	e.name_len = len;
	*ret = e;
	return 0;
}

static bool matches(const struct net_entry *e, const char *name, size_t len)
{
	if (!e->name)
		return false;
	if (!e->below)
		return len == e->name_len && strncasecmp(name, e->name, len) == 0;
	return len > e->name_len + 1 && name[len - e->name_len - 1] == '.' &&
	       strncasecmp(name + len - e->name_len, e->name, e->name_len) == 0;
}

bool net_policy_allows_name(const struct net_policy *p, const char *name, size_t len)
{
	for (size_t i = 0; i < p->n_allow; i++)
		if (matches(&p->allow[i], name, len))
			return true;
	return false;
}

bool net_entries_have(const struct net_entry *e, size_t n, uint32_t addr)
{
	for (size_t i = 0; i < n; i++)
		if (!e[i].name && addr >= e[i].range.first && addr <= e[i].range.last)
			return true;
	return false;
}

static int add_entry(struct net_policy *p, const char *text)
{
	static const char allow[] = "allow:", deny[] = "deny:";
	int r;

	if (strncmp(text, allow, sizeof(allow) - 1) == 0) {
		r = net_entry_parse(text + sizeof(allow) - 1, &p->allow[p->n_allow]);
		if (r == 0 && p->allow[p->n_allow++].name)
			p->names = true;
		return r;
	}
	if (strncmp(text, deny, sizeof(deny) - 1) != 0)
		return -EINVAL;
	r = net_entry_parse(text + sizeof(deny) - 1, &p->deny[p->n_deny]);
	if (r == 0 && p->deny[p->n_deny++].name)
		r = -EINVAL;
	return r;
}

int net_policy_parse(const char *const *text, size_t n, struct net_policy *ret)
{
	struct net_policy p = {.mode = NET_NONE};
	int r = 0;

	if (!n)
		return -EINVAL;
	if (strcmp(text[0], "all") == 0)
		p.mode = NET_ALL;
	else if (strcmp(text[0], "list") == 0)
		p.mode = NET_LIST;
	else if (strcmp(text[0], "none") != 0)
		return -EINVAL;
	p.allow = calloc(n, sizeof(*p.allow));
	p.deny = calloc(n, sizeof(*p.deny));
	if (!p.allow || !p.deny)
		r = -ENOMEM;
	for (size_t i = 1; i < n && r == 0; i++)
		r = add_entry(&p, text[i]);
	if (r < 0)
		net_policy_release(&p);
	else
		*ret = p;
	return r;
}

void net_policy_release(struct net_policy *p)
{
	free(p->allow);
	free(p->deny);
	*p = (struct net_policy){.mode = NET_NONE};
}
