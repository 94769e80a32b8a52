/* SPDX-License-Identifier: MIT */
/* Where a box may connect to, as text. */
#include "core/util/egress.h"

#include "tests/unit/unit.h"

START_TEST(what_is_understood)
{
	static const struct {
		const char *text, *canonical;
	} good[] = {
		{"all", "all"},
		{"none", "none"},
		{"host", "host"},
		{"10.0.0.0/8", "10.0.0.0/8"},
		{"192.0.2.7", "192.0.2.7"},
		{"192.0.2.7/32", "192.0.2.7"},
		{"0.0.0.0/0", "0.0.0.0/0"},
		{"2001:DB8:0:0::/32", "2001:db8::/32"},
		{"::1", "::1"},
		{"::/0", "::/0"},
		{"2001:db8::1/128", "2001:db8::1"},
		{"API.Example.com", "api.example.com"},
		{"example.com.", "example.com"},
		{"*.Debian.org", "*.debian.org"},
		{"*.internal", "*.internal"},
		{"xn--bcher-kva.example", "xn--bcher-kva.example"},
		{"a_b.example.com", "a_b.example.com"},
		{"10.0.0.0/8,example.com,10.0.0.0/8,EXAMPLE.com", "10.0.0.0/8,example.com"},
	};

	for (size_t i = 0; i < ABX_N_ELEMENTS(good); i++) {
		struct abx_egress e = {0};
		abx_autofree char *text = NULL;

		ck_assert_msg(abx_egress_parse(good[i].text, &e, &unit_err) == 0, "%s: %s",
			      good[i].text, unit_err.text);
		text = abx_egress_text(&e);
		ck_assert_str_eq(text, good[i].canonical);
		abx_egress_release(&e);
	}
}
END_TEST

START_TEST(what_is_refused)
{
	static const char *const bad[] = {"",
					  ",",
					  "all,",
					  ",none",
					  "all,example.com",
					  "none,all",
					  "example.com,host",
					  "ALL",
					  "al",
					  "localhost",
					  "*",
					  "*.",
					  "*.*.com",
					  "a.*.com",
					  "*example.com",
					  "10.0.0.1/8",
					  "10.0.0.0/33",
					  "10.0.0.0/",
					  "10.0.0.0/-1",
					  "10.0.0.0/08x",
					  "10.0.0.300",
					  "1.2.3",
					  "10.0.0",
					  "2001:db8::1/32",
					  "2001:db8::/129",
					  "::ffff:10.0.0.1",
					  "fe80::1%eth0",
					  "[::1]",
					  "https://example.com",
					  "example.com:443",
					  "example.com/path",
					  "user@example.com",
					  "b\303\274cher.de",
					  "-a.com",
					  "a-.com",
					  "a..com",
					  ".com",
					  "example.com ..",
					  " example.com",
					  "exa mple.com",
					  "example.com\n",
					  "*.7"};
	char name[300], many[257 * 20] = "";

	for (size_t i = 0; i < ABX_N_ELEMENTS(bad); i++) {
		struct abx_egress e = {.all = true};

		ck_assert_msg(abx_egress_parse(bad[i], &e, &unit_err) == ABX_EUSAGE, "%s", bad[i]);
		ck_assert(e.all);
	}
	memset(name, 'a', sizeof(name) - 5);
	memcpy(name + sizeof(name) - 5, ".com", 5);
	ck_assert_int_eq(abx_egress_parse(name, &(struct abx_egress){0}, &unit_err), ABX_EUSAGE);
	for (int i = 0; i < 257; i++)
		(void)snprintf(many + strlen(many), 20, "%s10.0.%d.%d", i ? "," : "", i / 250,
			       i % 250);
	ck_assert_int_eq(abx_egress_parse(many, &(struct abx_egress){0}, &unit_err), ABX_EUSAGE);
	unit_has(unit_err.text, "too many");
	ck_assert_int_eq(abx_egress_parse("10.0.0.1/8", &(struct abx_egress){0}, &unit_err),
			 ABX_EUSAGE);
	unit_has(unit_err.text, "10.0.0.0/8 meant");
}
END_TEST

START_TEST(as_a_provider_gets_it)
{
	struct abx_egress e = {0};

	unit_ok(abx_egress_parse("all", &e, &unit_err));
	ck_assert_ptr_null(abx_egress_list(&e));
	unit_ok(abx_egress_parse("none", &e, &unit_err));
	ck_assert_ptr_nonnull(abx_egress_list(&e));
	ck_assert_ptr_null(abx_egress_list(&e)[0]);
	unit_ok(abx_egress_parse("a.b,::1", &e, &unit_err));
	ck_assert_str_eq(abx_egress_list(&e)[1], "::1");
	ck_assert_ptr_null(abx_egress_list(&e)[2]);
	abx_egress_release(&e);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("egress");
	TCase *tc = tcase_create("text");

	tcase_add_test(tc, what_is_understood);
	tcase_add_test(tc, what_is_refused);
	tcase_add_test(tc, as_a_provider_gets_it);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
