/* SPDX-License-Identifier: MIT */
/* Where a box may connect to. */
#include "core/util/egress.h"

#include <arpa/inet.h>
#include <string.h>

#include "abxsdk/buf.h"
#include "core/util/parse.h"

#define ENTRY_MAX_BYTES 300
#define NAME_MAX_BYTES 253
#define LABEL_MAX_BYTES 63

void abx_egress_release(struct abx_egress *e)
{
	abx_strv_release(&e->allow);
	e->all = false;
}

const char *const *abx_egress_list(const struct abx_egress *e)
{
	static const char *const nothing[] = {NULL};

	if (e->all)
		return NULL;
	return e->allow.len ? (const char *const *)e->allow.items : nothing;
}

char *abx_egress_text(const struct abx_egress *e)
{
	struct abx_buf b = ABX_BUF_INIT((size_t)ABX_EGRESS_MAX_ENTRIES * ENTRY_MAX_BYTES);

	if (e->all || !e->allow.len)
		return abx_xstrdup(e->all ? "all" : "none");
	for (size_t i = 0; i < e->allow.len; i++)
		abx_buf_addf(&b, "%s%s", i ? "," : "", e->allow.items[i]);
	return abx_buf_steal(&b);
}

static int refuse(const char *entry, struct abx_err *err, const char *why)
{
	char shown[80];

	abx_quote_text(entry, shown, sizeof(shown));
	(void)abx_err_set(err, ABX_EUSAGE, "'%s': %s", shown, why);
	return abx_err_remedy(
		err, "use all, none, host (local only), or a list of addresses, networks and "
		     "domains: 10.0.0.0/8,api.example.com,*.debian.org");
}

/* Clear what is behind the prefix; false when something was there. */
static bool mask(unsigned char *address, size_t bytes, uint64_t bits)
{
	bool clean = true;

	for (size_t i = 0; i < bytes; i++) {
		unsigned int keep = bits >= 8 ? 8 : (unsigned int)bits;
		unsigned char kept = (unsigned char)(address[i] & (0xff00u >> keep));

		clean = clean && kept == address[i];
		address[i] = kept;
		bits -= keep;
	}
	return clean;
}

static bool is_mapped(const unsigned char *address)
{
	static const unsigned char prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

	return memcmp(address, prefix, sizeof(prefix)) == 0;
}

/* 1: an address or network, in `text`; 0: none. */
static int parse_address(const char *entry, char *text, size_t size, struct abx_err *err)
{
	unsigned char address[16];
	char number[INET6_ADDRSTRLEN] = "";
	size_t len = strcspn(entry, "/"), bytes = 4;
	uint64_t bits;
	int family = AF_INET;

	if (len >= sizeof(number))
		return 0;
	memcpy(number, entry, len);
	if (inet_pton(AF_INET, number, address) != 1) {
		family = AF_INET6;
		bytes = 16;
		if (inet_pton(AF_INET6, number, address) != 1)
			return 0;
	}
	bits = bytes * 8;
	if (entry[len] && !abx_parse_u64(entry + len + 1, bits, &bits))
		return refuse(entry, err, "no such prefix length");
	if (family == AF_INET6 && is_mapped(address))
		return refuse(entry, err, "write the IPv4 address itself");
	if (!mask(address, bytes, bits)) {
		char shown[96];

		(void)inet_ntop(family, address, number, sizeof(number));
		(void)snprintf(shown, sizeof(shown),
			       "there are bits behind the prefix (is %s/%u meant?)", number,
			       (unsigned int)bits);
		return refuse(entry, err, shown);
	}
	(void)inet_ntop(family, address, number, sizeof(number));
	if (bits == bytes * 8)
		(void)snprintf(text, size, "%s", number);
	else
		(void)snprintf(text, size, "%s/%u", number, (unsigned int)bits);
	return 1;
}

static bool is_label(const char *label, size_t len)
{
	if (!len || len > LABEL_MAX_BYTES || label[0] == '-' || label[len - 1] == '-')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!((label[i] >= 'a' && label[i] <= 'z') ||
		      (label[i] >= '0' && label[i] <= '9') || label[i] == '-' || label[i] == '_'))
			return false;
	return true;
}

static const char *why_no_domain(const char *name)
{
	const char *last = name, *at = name;
	size_t n = 0;

	if (strlen(name) > NAME_MAX_BYTES)
		return "too long for a domain";
	for (;; n++) {
		size_t len = strcspn(at, ".");

		if (!is_label(at, len))
			return "neither an address nor a domain";
		last = at;
		if (!at[len])
			break;
		at += len + 1;
	}
	if (last[strspn(last, "0123456789")] == '\0')
		return "neither an address nor a domain";
	return n ? NULL : "not a domain (it has no dot), and neither all nor none";
}

static int parse_domain(const char *entry, char *text, size_t size, struct abx_err *err)
{
	const bool wild = strncmp(entry, "*.", 2) == 0;
	size_t len;
	const char *why;

	if (strcmp(entry, "*") == 0)
		return refuse(entry, err, "everything is called 'all'");
	for (const char *at = entry; *at; at++)
		if (*at & 0x80)
			return refuse(entry, err, "write the name in ASCII (xn--...)");
	if (strstr(entry, "://") || strpbrk(entry, ":/@"))
		return refuse(entry, err, "a domain without scheme, port or path is needed");
	if (strlen(entry) >= size)
		return refuse(entry, err, "too long for a domain");
	(void)snprintf(text, size, "%s", entry);
	len = strlen(text);
	if (len > 1 && text[len - 1] == '.')
		text[len - 1] = '\0';
	for (char *at = text; *at; at++)
		if (*at >= 'A' && *at <= 'Z')
			*at = (char)(*at - 'A' + 'a');
	why = strcmp(text, "*.") == 0 ? "neither an address nor a domain"
				      : why_no_domain(text + (wild ? 2 : 0));
	/* `*.internal` is a whole zone of somebody's own. */
	if (why && wild && is_label(text + 2, strlen(text + 2)) &&
	    text[2 + strspn(text + 2, "0123456789")])
		why = NULL;
	return why ? refuse(entry, err, why) : 0;
}

static bool is_word(const char *entry)
{
	return strcmp(entry, "all") == 0 || strcmp(entry, "none") == 0 ||
	       strcmp(entry, "host") == 0;
}

static bool is_there(const struct abx_egress *e, const char *text)
{
	for (size_t i = 0; i < e->allow.len; i++)
		if (strcmp(e->allow.items[i], text) == 0)
			return true;
	return false;
}

static int add_entry(struct abx_egress *e, const char *entry, struct abx_err *err)
{
	char text[ENTRY_MAX_BYTES];
	int r;

	if (!*entry)
		return refuse(entry, err, "an empty entry");
	if (is_word(entry))
		return refuse(entry, err, "stands alone, not in a list");
	r = parse_address(entry, text, sizeof(text), err);
	if (r == 0)
		r = parse_domain(entry, text, sizeof(text), err);
	if (r < 0)
		return r;
	if (is_there(e, text))
		return 0;
	if (e->allow.len == ABX_EGRESS_MAX_ENTRIES)
		return refuse(entry, err, "too many entries (256 at most)");
	abx_strv_add(&e->allow, text);
	return 0;
}

int abx_egress_parse(const char *text, struct abx_egress *ret, struct abx_err *err)
{
	struct abx_egress e = {0};
	int r = 0;

	if (!*text)
		return refuse(text, err, "is empty; nowhere is called 'none'");
	if (is_word(text)) {
		e.all = strcmp(text, "all") == 0;
		if (strcmp(text, "host") == 0)
			abx_strv_add(&e.allow, text);
		*ret = e;
		return 0;
	}
	for (const char *at = text; at && r == 0;) {
		size_t len = strcspn(at, ",");
		abx_autofree char *entry = abx_xstrndup(at, len);

		r = add_entry(&e, entry, err);
		at = at[len] ? at + len + 1 : NULL;
	}
	if (r < 0) {
		abx_egress_release(&e);
		return r;
	}
	*ret = e;
	return 0;
}
