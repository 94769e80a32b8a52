/* SPDX-License-Identifier: MIT */
/* Env files: a golden file, errors with their lines, and the way back through a shell. */
#include "core/state/envfile.h"

#include "abxsdk/spawn.h"
#include "core/util/rand.h"
#include "tests/unit/unit.h"

static int parse(struct abx_env *e, const char *text, struct abx_err *err)
{
	memset(e, 0, sizeof(*e));
	return abx_env_parse(e, "f", text, strlen(text), err);
}

static char *data_file(const char *name)
{
	const char *dir = secure_getenv("AGENTBOX_TEST_SRCDIR");
	abx_autofree char *path = abx_xasprintf("%s/tests/unit/data/%s", dir ? dir : ".", name);
	struct abx_buf b = ABX_BUF_INIT(1 << 20);

	ck_assert_msg(abx_fs_read(AT_FDCWD, path, &b) == 0, "%s", path);
	return abx_buf_steal(&b);
}

static void add_escaped(struct abx_buf *b, const char *value)
{
	for (; *value; value++) {
		unsigned char c = (unsigned char)*value;

		if (c == '\n')
			abx_buf_adds(b, "\\n");
		else if (c == '\r')
			abx_buf_adds(b, "\\r");
		else if (c == '\t')
			abx_buf_adds(b, "\\t");
		else if (c == '\\')
			abx_buf_adds(b, "\\\\");
		else if (c < 32 || c > 126)
			abx_buf_addf(b, "\\x%02x", c);
		else
			abx_buf_addc(b, *value);
	}
}

static char *dump(const struct abx_env *e)
{
	struct abx_buf b = ABX_BUF_INIT(1 << 20);

	for (size_t i = 0; i < e->len; i++) {
		abx_buf_addf(&b, "%s=", e->items[i].key);
		add_escaped(&b, e->items[i].value);
		abx_buf_addc(&b, '\n');
	}
	return abx_buf_steal(&b);
}

/* Every line ended by CR LF and a byte order mark in front. */
static char *as_dos(const char *text)
{
	struct abx_buf b = ABX_BUF_INIT(1 << 20);

	abx_buf_adds(&b, "\xef\xbb\xbf");
	for (; *text; text++) {
		if (*text == '\n')
			abx_buf_addc(&b, '\r');
		abx_buf_addc(&b, *text);
	}
	abx_buf_adds(&b, "\r\n");
	return abx_buf_steal(&b);
}

START_TEST(golden)
{
	abx_autofree char *text = data_file("golden.env"), *expect = data_file("golden.expect");
	abx_autofree char *dos = as_dos(text), *got = NULL;
	struct abx_env e;

	unit_ok(parse(&e, _i ? dos : text, &unit_err));
	got = dump(&e);
	ck_assert_str_eq(got, expect);
	abx_env_release(&e);
}
END_TEST

START_TEST(errors_name_the_line)
{
	static const struct {
		const char *text, *line;
	} cases[] = {
		{"F", "f: line 1:"},
		{"A=1\nF\n", "f: line 2:"},
		{"=x", "f: line 1:"},
		{"1A=x", "f: line 1:"},
		{"A.B=x", "f: line 1:"},
		{"A-B=x", "f: line 1:"},
		{"A B=x", "f: line 1:"},
		{"export A", "f: line 1:"},
		{"export", "f: line 1:"},
		{"A: 1", "f: line 1:"},
		{"\xc3\xa9=1", "f: line 1:"},
		{"\n\nA=\"x\ny", "f: line 3:"},
		{"A='x", "f: line 1:"},
		{"A=\"x\\\"", "f: line 1:"},
		{"A='x'y", "f: line 1:"},
		{"A=\"x\"#y", "f: line 1:"},
		{"A=\"x\ny\" z", "f: line 2:"},
		{"A=\"x\ny\"\nB", "f: line 3:"},
		{"export A=1; B=2 # fine\nrm -rf x\n", "f: line 2:"},
	};

	for (size_t i = 0; i < ABX_N_ELEMENTS(cases); i++) {
		struct abx_err err = ABX_ERR_INIT;
		struct abx_env e;
		int r = parse(&e, cases[i].text, &err);

		ck_assert_msg(r == ABX_EINVAL, "%s", cases[i].text);
		ck_assert_msg(strncmp(err.text, cases[i].line, strlen(cases[i].line)) == 0,
			      "%s: %s", cases[i].text, err.text);
		abx_env_release(&e);
	}
}
END_TEST

START_TEST(nul_is_an_error)
{
	static const char text[] = "A=1\nB=x\0y\n";
	struct abx_err err = ABX_ERR_INIT;
	struct abx_env e = {0};

	ck_assert_int_eq(abx_env_parse(&e, "f", text, sizeof(text) - 1, &err), ABX_EINVAL);
	unit_has(err.text, "line 2");
	abx_env_release(&e);
}
END_TEST

/* An error text never shows what may be a secret. */
START_TEST(errors_do_not_show_values)
{
	struct abx_err err = ABX_ERR_INIT;
	struct abx_env e;

	ck_assert_int_lt(parse(&e, "TOKEN='s3cret-value'x", &err), 0);
	ck_assert_ptr_null(strstr(err.text, "s3cret"));
	abx_env_release(&e);
	ck_assert_int_lt(parse(&e, "s3cret-value", &err), 0);
	ck_assert_ptr_null(strstr(err.text, "s3cret"));
	abx_env_release(&e);
}
END_TEST

START_TEST(a_long_value)
{
	abx_autofree char *text = abx_xcalloc(1, (1 << 20) + 8);
	struct abx_env e = {0};

	memset(text, 'x', (1 << 20) + 6);
	memcpy(text, "A=\"", 3);
	text[(1 << 20) + 3] = '"';
	text[(1 << 20) + 4] = '\n';
	unit_ok(abx_env_parse(&e, "f", text, (1 << 20) + 5, &unit_err));
	ck_assert_uint_eq(strlen(abx_env_get(&e, "A")), 1 << 20);
	abx_env_release(&e);
}
END_TEST

START_TEST(too_many_or_too_large)
{
	abx_autofree char *text = abx_xcalloc(1, ABX_ENV_FILE_MAX_BYTES + 10);
	struct abx_buf many = ABX_BUF_INIT(1 << 20);
	struct abx_err err = ABX_ERR_INIT;
	struct abx_env e = {0};

	for (unsigned int i = 0; i <= ABX_ENV_MAX_VARIABLES + 1; i++)
		abx_buf_addf(&many, "A%u=\n", i);
	ck_assert_int_eq(abx_env_parse(&e, "f", many.data, many.len, &err), ABX_EINVAL);
	unit_has(err.text, "too many");
	abx_env_release(&e);
	abx_buf_release(&many);
	memset(text, '#', ABX_ENV_FILE_MAX_BYTES + 9);
	unit_write_text("big.env", text);
	ck_assert_int_lt(abx_env_load(&e, unit_path("big.env"), &err), 0);
	unit_has(err.text, unit_path("big.env"));
}
END_TEST

START_TEST(load_says_which_file)
{
	struct abx_err err = ABX_ERR_INIT;
	struct abx_env e = {0};

	ck_assert_int_eq(abx_env_load(&e, unit_path("none"), &err), ABX_ENOTFOUND);
	unit_has(err.text, unit_path("none"));
	ck_assert_int_lt(abx_env_load(&e, unit_dir(), &err), 0);
	ck_assert_int_eq(mkfifo(unit_path("fifo"), 0600), 0);
	ck_assert_int_lt(abx_env_load(&e, unit_path("fifo"), &err), 0);
	unit_write_text("bad.env", "A=1\nB\n");
	ck_assert_int_eq(abx_env_load(&e, unit_path("bad.env"), &err), ABX_EINVAL);
	unit_has(err.text, unit_path("bad.env"));
	unit_has(err.text, "line 2");
	abx_env_release(&e);
}
END_TEST

START_TEST(arguments)
{
	struct abx_err err = ABX_ERR_INIT;
	struct abx_env e = {0};

	ck_assert_int_eq(setenv("UNIT_FROM_HERE", "a=b c", 1), 0);
	ck_assert_int_eq(unsetenv("UNIT_NOT_HERE"), 0);
	unit_ok(abx_env_add_arg(&e, "A=x=y", &unit_err));
	unit_ok(abx_env_add_arg(&e, "E=", &unit_err));
	unit_ok(abx_env_add_arg(&e, "UNIT_FROM_HERE", &unit_err));
	ck_assert_str_eq(abx_env_get(&e, "A"), "x=y");
	ck_assert_str_eq(abx_env_get(&e, "E"), "");
	ck_assert_str_eq(abx_env_get(&e, "UNIT_FROM_HERE"), "a=b c");
	ck_assert_int_eq(abx_env_add_arg(&e, "UNIT_NOT_HERE", &err), ABX_EUSAGE);
	unit_has(err.text, "UNIT_NOT_HERE");
	ck_assert_int_eq(abx_env_add_arg(&e, "=x", NULL), ABX_EUSAGE);
	ck_assert_int_eq(abx_env_add_arg(&e, "1=x", NULL), ABX_EUSAGE);
	ck_assert_int_eq(abx_env_add_arg(&e, "", NULL), ABX_EUSAGE);
	ck_assert_uint_eq(e.len, 3);
	abx_env_release(&e);
}
END_TEST

START_TEST(set_get_unset)
{
	struct abx_env e = {0};
	abx_autofree struct abx_kv *kv = NULL;

	abx_env_set(&e, "A", "1");
	abx_env_set(&e, "B", "2");
	abx_env_set(&e, "C", "3");
	abx_env_set(&e, "A", "4");
	abx_env_unset(&e, "B");
	abx_env_unset(&e, "none");
	ck_assert_uint_eq(e.len, 2);
	ck_assert_ptr_null(abx_env_get(&e, "B"));
	kv = abx_env_kv(&e);
	ck_assert_str_eq(kv[0].key, "A");
	ck_assert_str_eq(kv[0].value, "4");
	ck_assert_str_eq(kv[1].key, "C");
	abx_env_release(&e);
	ck_assert_uint_eq(e.len, 0);
}
END_TEST

START_TEST(edit_keeps_what_it_does_not_know)
{
	static const struct {
		const char *before, *value, *after;
	} cases[] = {
		{"", "1", "K='1'\n"},
		{"# a\n\nA=1", "2", "# a\n\nA=1\nK='2'\n"},
		{"K=1\nA = x # y\nexport K=\"2\n3\" # k\nB='m\nn'\r\n", "4",
		 "A = x # y\nB='m\nn'\r\nK='4'\n"},
		{"\xef\xbb\xbfK=1\r\nA=1\r\n", "5",
		 "\xef\xbb\xbf"
		 "A=1\r\nK='5'\n"},
		{"KK=1\n K = 1\n#K=1\n", NULL, "KK=1\n#K=1\n"},
		{"A=1", NULL, "A=1"},
		{"A='\nK=1\n'\n", "it's", "A='\nK=1\n'\nK=\"it's\"\n"},
	};

	for (size_t i = 0; i < ABX_N_ELEMENTS(cases); i++) {
		abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(1000);
		struct abx_env e = {0};

		unit_ok(abx_env_edit("f", cases[i].before, strlen(cases[i].before), "K",
				     cases[i].value, &b, &unit_err));
		ck_assert_str_eq(abx_buf_str(&b), cases[i].after);
		unit_ok(abx_env_parse(&e, "f", abx_buf_str(&b), b.len, &unit_err));
		ck_assert_pstr_eq(abx_env_get(&e, "K"), cases[i].value);
		abx_env_release(&e);
	}
}
END_TEST

/* One of: any byte; the bytes that quoting is about. */
static void random_value(char *value, size_t size)
{
	static const char tricky[] = "'\"\\$`\n\r\t #=!;&|<>(){}[]*?~ax\xff\x81\x88\x7f";
	size_t len = abx_rand_below((uint32_t)size);
	bool only_tricky = abx_rand_below(2);

	for (size_t i = 0; i < len; i++)
		value[i] = only_tricky ? tricky[abx_rand_below(sizeof(tricky) - 1)]
				       : (char)(1 + abx_rand_below(255));
	value[len] = '\0';
}

#define ROUNDS 400

/* Sourced by sh, every value comes back as it went in. */
START_TEST(round_trip)
{
	static const char script[] =
		". \"$1\" || exit 1; i=0; while [ $i -lt \"$2\" ]; do eval \"v=\\$V$i\";"
		" printf '%s|' \"$v\"; i=$((i+1)); done";
	char count[16];
	const char *const argv[] = {"sh", "-c", script, "sh", unit_path("v.env"), count, NULL};
	struct abx_spawn s = {.argv = argv, .fd_in = -1, .fd_out = -1, .fd_err = 2};
	struct abx_buf out = ABX_BUF_INIT(1 << 20), expect = ABX_BUF_INIT(1 << 20);
	struct abx_env e = {0}, again = {0};
	abx_autofree char *text = NULL;
	int status = -1;

	(void)snprintf(count, sizeof(count), "%d", ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		char key[16], value[48];

		(void)snprintf(key, sizeof(key), "V%d", i);
		random_value(value, sizeof(value));
		abx_env_set(&e, key, value);
		abx_buf_addf(&expect, "%s|", value);
	}
	text = abx_env_format(&e);
	unit_write_text("v.env", text);
	unit_ok(abx_env_load(&again, unit_path("v.env"), &unit_err));
	ck_assert_uint_eq(again.len, ROUNDS);
	for (size_t i = 0; i < e.len; i++)
		ck_assert_str_eq(again.items[i].value, e.items[i].value);
	ck_assert_int_eq(abx_spawn_collect(&s, NULL, &out, NULL, &status), 0);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(out.len, expect.len);
	ck_assert_mem_eq(out.data, expect.data, out.len);
	abx_env_release(&e);
	abx_env_release(&again);
	abx_buf_release(&out);
	abx_buf_release(&expect);
}
END_TEST

START_TEST(random_text_is_no_crash)
{
	for (int i = 0; i < 2000; i++) {
		char text[256];
		struct abx_env e;

		random_value(text, sizeof(text) - 2);
		memcpy(text, "A=", strlen(text) > 2 ? 2 : 0);
		(void)parse(&e, text, NULL);
		abx_env_release(&e);
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("envfile");
	TCase *tc = tcase_create("envfile");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, unit_dir_setup, unit_dir_teardown);
	tcase_add_loop_test(tc, golden, 0, 2);
	tcase_add_test(tc, errors_name_the_line);
	tcase_add_test(tc, nul_is_an_error);
	tcase_add_test(tc, errors_do_not_show_values);
	tcase_add_test(tc, a_long_value);
	tcase_add_test(tc, too_many_or_too_large);
	tcase_add_test(tc, load_says_which_file);
	tcase_add_test(tc, arguments);
	tcase_add_test(tc, set_get_unset);
	tcase_add_test(tc, edit_keeps_what_it_does_not_know);
	tcase_add_test(tc, round_trip);
	tcase_add_test(tc, random_text_is_no_crash);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
