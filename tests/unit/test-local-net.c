/* SPDX-License-Identifier: MIT */
/* Provider local: what a box may reach, in the words of a policy, and questions about names. */
#include "tests/unit/unit.h"

#include <stdlib.h>

#include "providers/local/net-dns.h"
#include "providers/local/net-policy.h"

START_TEST(entries_are_read_exactly)
{
	static const struct {
		const char *text;
		uint32_t first, last;
	} ranges[] = {
		{"1.2.3.4", 0x01020304, 0x01020304},
		{"10.0.0.0/8", 0x0a000000, 0x0affffff},
		{"10.1.2.3/8", 0x0a000000, 0x0affffff},
		{"0.0.0.0/0", 0, UINT32_MAX},
		{"255.255.255.255/32", UINT32_MAX, UINT32_MAX},
	};
	static const char *const bad[] = {
		"",	    "1.2.3",	"1.2.3.4.5", "1.2.3.256",  "1.2.3.4/33", "1.2.3.4/",
		"01.2.3.4", "1.2.3.04", "-a.b c",    "a..b",	   ".a",	 "*",
		"*.",	    "a.*.b",	"**.a",	     "http://a.b", "a b",	 "a/24",
		"{ }",	    "a;b",	"a\"b",	     "\n",
	};
	struct net_entry e;

	for (size_t i = 0; i < ABX_N_ELEMENTS(ranges); i++) {
		ck_assert_int_eq(net_entry_parse(ranges[i].text, &e), 0);
		ck_assert_ptr_null(e.name);
		ck_assert_uint_eq(e.range.first, ranges[i].first);
		ck_assert_uint_eq(e.range.last, ranges[i].last);
	}
	for (size_t i = 0; i < ABX_N_ELEMENTS(bad); i++)
		ck_assert_msg(net_entry_parse(bad[i], &e) < 0, "%s", bad[i]);
	ck_assert_int_eq(net_entry_parse("fd00::1/64", &e), -EAFNOSUPPORT);
	ck_assert_int_eq(net_entry_parse("*.example.org.", &e), 0);
	ck_assert_uint_eq(e.name_len, strlen("example.org"));
	ck_assert(e.below);
}
END_TEST

START_TEST(names_match_whole_labels)
{
	static const char *const text[] = {"list", "allow:example.org", "allow:*.Debian.ORG",
					   "allow:10.0.0.0/8"};
	static const struct {
		const char *name;
		bool allowed;
	} cases[] = {
		{"example.org", true},	   {"EXAMPLE.org", true},	{"www.example.org", false},
		{"badexample.org", false}, {"example.org.evil", false}, {"deb.debian.org", true},
		{"a.b.debian.org", true},  {"debian.org", false},	{"xdebian.org", false},
		{".debian.org", false},	   {"10.0.0.1", false},		{"", false},
	};
	struct net_policy p;

	ck_assert_int_eq(net_policy_parse(text, ABX_N_ELEMENTS(text), &p), 0);
	ck_assert(p.names && p.mode == NET_LIST);
	for (size_t i = 0; i < ABX_N_ELEMENTS(cases); i++)
		ck_assert_msg(net_policy_allows_name(&p, cases[i].name, strlen(cases[i].name)) ==
				      cases[i].allowed,
			      "%s", cases[i].name);
	ck_assert(net_entries_have(p.allow, p.n_allow, 0x0a010203));
	ck_assert(!net_entries_have(p.allow, p.n_allow, 0x0b010203));
	net_policy_release(&p);
}
END_TEST

START_TEST(a_policy_that_makes_no_sense_is_none)
{
	static const char *const unknown[] = {"some"}, *const no_prefix[] = {"list", "1.2.3.4"},
				 *const denied_name[] = {"all", "deny:example.org"};
	struct net_policy p;

	ck_assert_int_eq(net_policy_parse(unknown, 0, &p), -EINVAL);
	ck_assert_int_eq(net_policy_parse(unknown, 1, &p), -EINVAL);
	ck_assert_int_eq(net_policy_parse(no_prefix, 2, &p), -EINVAL);
	ck_assert_int_eq(net_policy_parse(denied_name, 2, &p), -EINVAL);
}
END_TEST

static size_t question(const char *name, uint16_t type, uint8_t *msg)
{
	struct net_question q = {.id = 7};
	size_t n;

	(void)snprintf(q.name, sizeof(q.name), "%s", name);
	n = net_dns_write_question(&q, 7, msg, NET_DNS_MAX_BYTES);
	msg[11] = 0;
	n -= 11; /* the OPT record */
	msg[n - 3] = (uint8_t)type;
	return n;
}

START_TEST(questions_are_read_and_nothing_else)
{
	uint8_t msg[NET_DNS_MAX_BYTES], copy[NET_DNS_MAX_BYTES];
	size_t n = question("www.Example.org", NET_DNS_AAAA, msg);
	struct net_question q;

	ck_assert(net_dns_read_question(msg, n, &q));
	ck_assert_str_eq(q.name, "www.Example.org");
	ck_assert_uint_eq(q.name_len, strlen(q.name));
	ck_assert_uint_eq(q.type, NET_DNS_AAAA);
	ck_assert_uint_eq(q.id, 7);
	/* Cut anywhere, and read from memory that ends there. */
	for (size_t i = 0; i < n; i++) {
		uint8_t *exact = malloc(i ? i : 1);

		ck_assert_ptr_ne(exact, NULL);
		memcpy(exact, msg, i);
		ck_assert(!net_dns_read_question(exact, i, &q));
		free(exact);
	}
	/* A dot within a label, a pointer to itself, a response, two questions. */
	memcpy(copy, msg, n);
	copy[14] = '.';
	ck_assert(!net_dns_read_question(copy, n, &q));
	memcpy(copy, msg, n);
	copy[12] = 0xc0;
	copy[13] = 12;
	ck_assert(!net_dns_read_question(copy, n, &q));
	memcpy(copy, msg, n);
	copy[2] |= 0x80;
	ck_assert(!net_dns_read_question(copy, n, &q));
	memcpy(copy, msg, n);
	copy[5] = 2;
	ck_assert(!net_dns_read_question(copy, n, &q));
}
END_TEST

/* An answer about www.a.b: it is another name of x.b, which has two addresses. */
static const uint8_t answer[] = {
	0,    7,   0x81, 0x80, 0, 1,   0, 4,   0, 0,  0, 0,	/* header */
	3,    'w', 'w',	 'w',  1, 'a', 1, 'b', 0, 0,  1, 0,  1, /* question, at 12; b at 18 */
	1,    'x', 0xc0, 18,   0, 1,   0, 1,   0, 0,  0, 90, 0, 4,   1,	   2,  3, 4, /* out of order
										      */
	0xc0, 12,  0,	 5,    0, 1,   0, 0,   0, 30, 0, 4,  1, 'x', 0xc0, 18, 1, 'y', 0xc0,
	18,   0,   1,	 0,    1, 0,   0, 0,   1, 0,  4, 9,  9, 9,   9, /* somebody else's */
	1,    'X', 0xc0, 18,   0, 1,   0, 1,   0, 0,  0, 90, 0, 4,   1,	   2,  3, 5,
};

START_TEST(answers_are_followed_and_bounded)
{
	struct net_question q = {.name = "www.a.b", .name_len = 7}, other = {.name = "www.a.c"};
	uint8_t out[NET_DNS_MAX_BYTES], copy[sizeof(answer)];
	struct net_answer a;

	ck_assert(net_dns_read_answer(answer, sizeof(answer), &q, 7, &a));
	ck_assert_int_eq(a.rcode, NET_DNS_OK);
	ck_assert_uint_eq(a.n, 2);
	ck_assert_uint_eq(a.addr[0], 0x01020304);
	ck_assert_uint_eq(a.addr[1], 0x01020305);
	ck_assert_uint_eq(a.ttl_s, 30);
	ck_assert(!net_dns_read_answer(answer, sizeof(answer), &q, 8, &a));
	ck_assert(!net_dns_read_answer(answer, sizeof(answer), &other, 7, &a));
	for (size_t i = 0; i < sizeof(answer); i++) {
		uint8_t *exact = malloc(i ? i : 1);

		ck_assert_ptr_ne(exact, NULL);
		memcpy(exact, answer, i);
		if (net_dns_read_answer(exact, i, &q, 7, &a))
			ck_assert_uint_le(a.n, 2);
		free(exact);
	}
	/* Any byte may be anything. */
	for (size_t i = 0; i < sizeof(answer); i++)
		for (int v = 0; v < 256; v++) {
			memcpy(copy, answer, sizeof(answer));
			copy[i] = (uint8_t)v;
			if (net_dns_read_answer(copy, sizeof(copy), &q, 7, &a))
				ck_assert_uint_le(a.n, 3);
		}
	a = (struct net_answer){.n = NET_DNS_ADDRESSES_MAX};
	ck_assert_uint_gt(net_dns_write_answer(&q, &a, out, sizeof(out)), 0);
	ck_assert_uint_eq(net_dns_write_answer(&q, &a, out, 100), 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("local-net");
	TCase *tc = tcase_create("policy");

	tcase_add_test(tc, entries_are_read_exactly);
	tcase_add_test(tc, names_match_whole_labels);
	tcase_add_test(tc, a_policy_that_makes_no_sense_is_none);
	tcase_add_test(tc, questions_are_read_and_nothing_else);
	tcase_add_test(tc, answers_are_followed_and_bounded);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
