/* SPDX-License-Identifier: MIT */
/*
 * core/util/egress.h: where a box may connect to, as a user writes it and as a provider gets it.
 *
 *	all             everywhere
 *	none            nowhere
 *	host            the host's own network (a local box only)
 *	10.0.0.0/8,2001:db8::/32,192.0.2.7,api.example.com,*.debian.org
 *
 * A list allows what is in it and nothing else.  Addresses are in their canonical form, a
 * prefix has no bits behind it; names are lower case, ASCII, with a dot; `*.` stands for any
 * number of labels in front, but not for none.  What is written twice is there once.
 */
#ifndef ABX_EGRESS_H
#define ABX_EGRESS_H

#include <stdbool.h>

#include "core/util/err.h"
#include "core/util/mem.h"

#define ABX_EGRESS_MAX_ENTRIES 256

struct abx_egress {
	bool all;
	struct abx_strv allow; /* unless `all`; empty = nothing; "host" stands alone */
};

/* ABX_EUSAGE with a text that says which entry and why. */
int abx_egress_parse(const char *text, struct abx_egress *ret, struct abx_err *err);
void abx_egress_release(struct abx_egress *e);
/* The same again as text; free it. */
char *abx_egress_text(const struct abx_egress *e);
/* For abx_provision.egress_allow and abx_policy.allow: NULL for everything. */
const char *const *abx_egress_list(const struct abx_egress *e);

#endif
