/* SPDX-License-Identifier: MIT */
/* YAML as dotted keys, and edits that leave the rest alone. */
#include "core/state/config-edit.h"
#include "core/state/config-yaml.h"
#include "tests/unit/unit.h"

static int read_text(const char *text, const char *root, struct abx_yaml_items *ret,
		     struct abx_err *err)
{
	memset(ret, 0, sizeof(*ret));
	return abx_yaml_read("f", text, strlen(text), root, ret, err);
}

/* "key=value;" for all, ! for null and ? for what is no text. */
static char *dump(const char *text, const char *root)
{
	struct abx_buf b = ABX_BUF_INIT(1 << 16);
	struct abx_yaml_items l;

	unit_ok(read_text(text, root, &l, &unit_err));
	for (size_t i = 0; i < l.len; i++)
		abx_buf_addf(&b, "%s%s%s;", l.items[i].key,
			     l.items[i].is_null ? "!"
			     : l.items[i].value ? "="
						: "?",
			     l.items[i].value ? l.items[i].value : "");
	abx_yaml_items_release(&l);
	return abx_buf_steal(&b);
}

START_TEST(reading)
{
	static const struct {
		const char *text, *root, *expect;
	} cases[] = {
		{"", NULL, ""},
		{"# only a comment\n", NULL, ""},
		{"---\n...\n", NULL, ""},
		{"~", NULL, ""},
		{"a: 1", NULL, "a=1;"},
		{"a:\n  b: x\n  c:\n    d: 'y z'\n", NULL, "a.b=x;a.c.d=y z;"},
		{"a: {b: x, c: {d: 1}}", NULL, "a.b=x;a.c.d=1;"},
		{"a.b: x", NULL, "a.b=x;"},
		{"a: yes\nb: 007\nc: 1e3\nd: 'null'\n", NULL, "a=yes;b=007;c=1e3;d=null;"},
		{"a:\nb: ~\nc: null\nd: ''\n", NULL, "a!;b!;c!;d=;"},
		{"a: [x, y]\nb:\n  - p\n  - q\nc: []\nd: [[1]]\ne: [{f: 1}]\n", NULL,
		 "a=x,y;b=p,q;c=;d?;e?;"},
		{"a: |\n  one\n  two\nb: >-\n  one\n  two\n", NULL, "a=one\ntwo\n;b=one two;"},
		{"\xef\xbb\xbf"
		 "a: \xc3\xa9\r\nb: 2\r\n",
		 NULL, "a=\xc3\xa9;b=2;"},
		{"defaults:\n  a: 1\nother: {b: 2}\n", "defaults", "a=1;"},
		{"other: &x {b: *x}\nlist: [*x, *x]\ndefaults: {a: 1}\n", "defaults", "a=1;"},
		{"other: 1\n", "defaults", ""},
		{"defaults:\n", "defaults", ""},
		{"a: !!str 1\n", NULL, "a=1;"},
	};

	for (size_t i = 0; i < ABX_N_ELEMENTS(cases); i++) {
		abx_autofree char *got = dump(cases[i].text, cases[i].root);

		ck_assert_msg(strcmp(got, cases[i].expect) == 0, "%s -> %s", cases[i].text, got);
	}
}
END_TEST

START_TEST(refusals_name_the_line)
{
	static const struct {
		const char *text, *root, *line;
	} cases[] = {
		{"a: 1\na: 2\n", NULL, "f: line 2: "},
		{"a: {b: 1}\na.b: 2\n", NULL, "f: line 2: "},
		{"a:\n  b: 1\nc: 1\na:\n  d: 1\n  b: 2\n", NULL, "f: line 6: "},
		{"a: 1\na.b: 2\n", NULL, "f: line 2: "},
		{"a.b: 1\na: 2\n", NULL, "f: line 2: "},
		{"a: &x 1\nb: *x\n", NULL, "f: line 2: "},
		{"a: &x {p: 1}\nb:\n  <<: *x\n", NULL, "f: line 3: "},
		{"a: [*x]\n", NULL, "f: line 1: "},
		{"a: 1\n---\nb: 2\n", NULL, "f: line 2: "},
		{"- a\n- b\n", NULL, "f: line 1: "},
		{"text", NULL, "f: line 1: "},
		{"a: 1\nb: 2\nc: \x1b\n", NULL, "f: line 3: "},
		{"a: 1\nb: \xff\n", NULL, "f: line 2: "},
		{"a: [1\n", NULL, "f: line 2: "},
		{"a: 'x\n", NULL, "f: line 2: "},
		{"a: 1\n\tb: 2\n", NULL, "f: line 2: "},
		{"? [a, b]\n: 1\n", NULL, "f: line 1: "},
		{"'': 1\n", NULL, "f: line 1: "},
		{"a: \"x\\0y\"\n", NULL, "f: line 1: "},
		{"defaults: 5\n", "defaults", "f: line 1: "},
		{"defaults: [1]\n", "defaults", "f: line 1: "},
		{"defaults: {}\ndefaults: {a: 1}\n", "defaults", "f: line 2: "},
		{"x: 1\nx: 2\n", "defaults", "f: line 2: "},
	};

	for (size_t i = 0; i < ABX_N_ELEMENTS(cases); i++) {
		struct abx_err err = ABX_ERR_INIT;
		struct abx_yaml_items l;

		ck_assert_msg(read_text(cases[i].text, cases[i].root, &l, &err) == ABX_EINVAL, "%s",
			      cases[i].text);
		ck_assert_ptr_null(l.items);
		ck_assert_msg(strncmp(err.text, cases[i].line, strlen(cases[i].line)) == 0,
			      "%s -> %s", cases[i].text, err.text);
	}
}
END_TEST

/* Nine levels of nine aliases each would be 387 million values. */
START_TEST(billion_laughs)
{
	struct abx_buf b = ABX_BUF_INIT(1 << 16);
	struct abx_err err = ABX_ERR_INIT;
	struct abx_yaml_items l;

	abx_buf_adds(&b, "a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
	for (char c = 'b'; c <= 'j'; c++) {
		abx_buf_addf(&b, "%c: &%c [", c, c);
		for (int i = 0; i < 9; i++)
			abx_buf_addf(&b, "%s*%c", i ? ", " : "", c - 1);
		abx_buf_adds(&b, "]\n");
	}
	ck_assert_int_eq(read_text(b.data, NULL, &l, &err), ABX_EINVAL);
	unit_has(err.text, "alias");
	unit_ok(read_text(b.data, "defaults", &l, &unit_err));
	ck_assert_uint_eq(l.len, 0);
	abx_yaml_items_release(&l);
	abx_buf_release(&b);
}
END_TEST

START_TEST(bounds)
{
	struct abx_buf b = ABX_BUF_INIT(4 << 20);
	struct abx_yaml_items l;

	for (int i = 0; i < 200000; i++)
		abx_buf_addc(&b, '[');
	ck_assert_int_eq(read_text(b.data, NULL, &l, NULL), ABX_EINVAL);
	ck_assert_int_eq(read_text(b.data, "defaults", &l, NULL), ABX_EINVAL);
	abx_buf_reset(&b);
	abx_buf_adds(&b, "a: ");
	for (int i = 0; i < 200000; i++)
		abx_buf_addc(&b, '[');
	ck_assert_int_eq(read_text(b.data, NULL, &l, NULL), ABX_EINVAL);
	ck_assert_int_eq(read_text(b.data, "defaults", &l, NULL), ABX_EINVAL);
	abx_buf_reset(&b);
	for (int i = 0; i < 20; i++)
		abx_buf_addf(&b, "%*sk:\n", i, "");
	abx_buf_addf(&b, "%*sk: 1\n", 20, "");
	ck_assert_int_eq(read_text(b.data, NULL, &l, NULL), ABX_EINVAL);
	abx_buf_reset(&b);
	for (int i = 0; i < 5000; i++)
		abx_buf_addf(&b, "k%d: 1\n", i);
	ck_assert_int_eq(read_text(b.data, NULL, &l, NULL), ABX_EINVAL);
	ck_assert_int_eq(read_text(b.data, "defaults", &l, NULL), ABX_EINVAL);
	abx_buf_reset(&b);
	abx_buf_adds(&b, "#");
	for (int i = 0; i < 1 << 20; i++)
		abx_buf_addc(&b, 'x');
	ck_assert_int_eq(read_text(b.data, NULL, &l, NULL), ABX_EINVAL);
	abx_buf_release(&b);
}
END_TEST

static int edit(const char *text, const char *key, const char *value, struct abx_buf *out,
		struct abx_err *err)
{
	return abx_yaml_edit("f", text, strlen(text), key, value, out, err);
}

START_TEST(editing)
{
	static const struct {
		const char *text, *key, *value, *expect;
	} cases[] = {
		{"", "box.image", "debian", "box:\n  image: debian\n"},
		{"# mine\n", "box.image", "a b", "# mine\nbox:\n  image: \"a b\"\n"},
		{"x: 1", "box.image", "d", "x: 1\nbox:\n  image: d\n"},
		{"box:\n  image: a # why\n  setup: s\n", "box.image", "b",
		 "box:\n  image: b # why\n  setup: s\n"},
		{"box:\n  image: 'a'\n", "box.image", "b", "box:\n  image: b\n"},
		{"box:\n  # first\n  image: a\n\nx: 1\n", "box.timeout", "5m",
		 "box:\n  # first\n  timeout: 5m\n  image: a\n\nx: 1\n"},
		{"box:\n    image: a\n", "box.timeout", "5m",
		 "box:\n    timeout: 5m\n    image: a\n"},
		{"box:\n", "box.image", "a", "box:\n  image: a\n"},
		{"box: # empty\nx: 1\n", "box.image", "a", "box:\n  image: a # empty\nx: 1\n"},
		{"box: {}\n", "box.image", "a", "box: {image: a, }\n"},
		{"box: {image: a, setup: s}\n", "box.image", "b", "box: {image: b, setup: s}\n"},
		{"box: {setup: s}\n", "box.image", "b", "box: {image: b, setup: s}\n"},
		{"box:\n  image:\n  setup: s\n", "box.image", "b",
		 "box:\n  image: b\n  setup: s\n"},
		{"box.image: a\n", "box.image", "b", "box.image: b\n"},
		{"box:\n  setup: |\n    one\n    two\n  image: a\n", "box.setup", "x",
		 "box:\n  setup: x\n  image: a\n"},
		{"box:\n  ports:\n  - 1\n  - 2\n# next\nx: 1\n", "box.ports", "3",
		 "box:\n  ports:\n    3\n# next\nx: 1\n"},
		{"k: \xc3\xa9\nbox:\n  image: \xe2\x82\xac\n", "box.image", "b",
		 "k: \xc3\xa9\nbox:\n  image: b\n"},
		{"\xef\xbb\xbf"
		 "box:\n  image: a\n",
		 "box.image", "b",
		 "\xef\xbb\xbf"
		 "box:\n  image: b\n"},
		/* removing */
		{"box:\n  image: a # why\n  setup: s\n", "box.image", NULL, "box:\n  setup: s\n"},
		{"box:\n  image: a\n", "box.image", NULL, "box:\n"},
		{"box:\n  image: a", "box.image", NULL, "box:\n"},
		{"box:\n  setup: |\n    one\n    two\n  image: a\n", "box.setup", NULL,
		 "box:\n  image: a\n"},
		{"box:\n  ports:\n  - 1\n  - 2\n# next\nx: 1\n", "box.ports", NULL,
		 "box:\n# next\nx: 1\n"},
		{"box: {image: a, setup: s}\n", "box.image", NULL,
		 "box: {image: null, setup: s}\n"},
		{"box:\n  image: a\n", "box.none", NULL, "box:\n  image: a\n"},
		{"", "box.none", NULL, ""},
	};

	for (size_t i = 0; i < ABX_N_ELEMENTS(cases); i++) {
		struct abx_buf out = ABX_BUF_INIT(1 << 16);
		struct abx_err err = ABX_ERR_INIT;
		int r = edit(cases[i].text, cases[i].key, cases[i].value, &out, &err);

		ck_assert_msg(r == 0, "%zu: %s", i, err.text);
		ck_assert_msg(strcmp(abx_buf_str(&out), cases[i].expect) == 0, "%zu: %s", i,
			      abx_buf_str(&out));
		abx_buf_release(&out);
	}
}
END_TEST

/* What is written is what is read, for every text that YAML can hold. */
START_TEST(values_survive)
{
	static const char *const values[] = {
		"",
		" ",
		"null",
		"~",
		"true",
		"5",
		"-x",
		"- x",
		"#x",
		"a # b",
		"a: b",
		"'",
		"\"",
		"\\n",
		"a\nb",
		"a\n",
		"\tx",
		"\x01\x1f\x7f",
		"\xc3\xa9",
		"{a}",
		"[a]",
		"*a",
		"&a",
		"!a",
		"|",
		">",
		"%a",
		"@a",
		"`a`",
		"?",
		":",
		",",
		"a,b",
		"...",
		"---",
		"<<",
		"\xf0\x9f\x90\xb3",
		"null ",
	};

	for (size_t i = 0; i < ABX_N_ELEMENTS(values); i++) {
		struct abx_buf out = ABX_BUF_INIT(1 << 16), again = ABX_BUF_INIT(1 << 16);
		abx_autofree char *expect = abx_xasprintf("x=1;box.a=%s;", values[i]), *got = NULL;
		abx_autofree char *swapped = NULL;

		unit_ok(edit("x: 1\n", "box.a", values[i], &out, &unit_err));
		got = dump(out.data, NULL);
		ck_assert_str_eq(got, expect);
		unit_ok(edit(out.data, "box.a", "plain", &again, &unit_err));
		swapped = dump(again.data, NULL);
		ck_assert_str_eq(swapped, "x=1;box.a=plain;");
		abx_buf_release(&out);
		abx_buf_release(&again);
	}
}
END_TEST

START_TEST(edits_that_cannot_be)
{
	static const struct {
		const char *text, *key, *value;
	} cases[] = {
		{"a: [", "box.a", "x"},	       {"", "box.a", "\xff"},
		{"box: 5\n", "box.a", "x"},    {"box: [1]\n", "box.a", "x"},
		{"{x: 1}\n", "box.a", "x"},    {"box: {a: {b: 1}}\n", "box.a", "x"},
		{"x: 1\n...\n", "box.a", "x"},
	};

	for (size_t i = 0; i < ABX_N_ELEMENTS(cases); i++) {
		struct abx_buf out = ABX_BUF_INIT(1 << 16);
		struct abx_err err = ABX_ERR_INIT;

		ck_assert_msg(edit(cases[i].text, cases[i].key, cases[i].value, &out, &err) ==
				      ABX_EINVAL,
			      "%zu: %s", i, abx_buf_str(&out));
		unit_has(err.text, "f: ");
		abx_buf_release(&out);
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("yaml");
	TCase *tc = tcase_create("yaml");

	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, reading);
	tcase_add_test(tc, refusals_name_the_line);
	tcase_add_test(tc, billion_laughs);
	tcase_add_test(tc, bounds);
	tcase_add_test(tc, editing);
	tcase_add_test(tc, values_survive);
	tcase_add_test(tc, edits_that_cannot_be);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
