/* SPDX-License-Identifier: MIT */
/* Structs from providers: what is refused, and that copies stand alone. */
#include "core/host/record.h"
#include "core/host/text.h"
#include "tests/unit/unit.h"

static struct abx_sandbox copy;
static void *memory;

static int take(const struct abx_sandbox *s)
{
	free(memory);
	memory = NULL;
	return abx_record_copy(&abx_record_sandbox, s, &copy, &memory, &unit_err);
}

static void drop(void)
{
	free(memory);
	memory = NULL;
}

static void no_setup(void)
{
}

START_TEST(a_copy_stands_alone)
{
	char id[] = "sb-1", key[] = "k", value[] = "v";
	struct abx_kv labels[] = {{key, value}};
	const struct abx_sandbox s = {ABX_INIT(struct abx_sandbox), .id = id, .labels = labels,
				      .n_labels = 1, .mem_bytes = 7};

	unit_ok(take(&s));
	memset(id, 'x', sizeof(id) - 1);
	memset(key, 'x', 1);
	memset(value, 'x', 1);
	memset(labels, 0, sizeof(labels));
	ck_assert_str_eq(copy.id, "sb-1");
	ck_assert_str_eq(copy.labels[0].key, "k");
	ck_assert_str_eq(copy.labels[0].value, "v");
	ck_assert_uint_eq(copy.mem_bytes, 7);
	ck_assert_ptr_null(copy.name);
}
END_TEST

START_TEST(sizes)
{
	struct {
		struct abx_sandbox s;
		char later[64];
	} newer = {{.id = "x"}, "not ours"};

	newer.s.struct_size = (uint32_t)sizeof(newer);
	unit_ok(take(&newer.s));
	ck_assert_uint_eq(copy.struct_size, sizeof(struct abx_sandbox));
	newer.s.struct_size = (uint32_t)sizeof(struct abx_sandbox) - 1;
	ck_assert_int_eq(take(&newer.s), ABX_EPROTO);
	unit_has(unit_err.text, "sandbox: struct_size");
	newer.s.struct_size = 0;
	ck_assert_int_eq(take(&newer.s), ABX_EPROTO);
	newer.s.struct_size = ABX_STRUCT_MAX_BYTES + 1;
	ck_assert_int_eq(take(&newer.s), ABX_EPROTO);
	ck_assert_int_eq(take(NULL), ABX_EPROTO);
}
END_TEST

START_TEST(an_older_struct_reads_as_zero)
{
	/* A type with one member more than its 1.0 had, as a later minor will have. */
	struct grown {
		uint32_t struct_size, a;
		const char *later;
	} old = {8, 5, "never read"}, grown = {0, 0, "x"};
	static const struct abx_field fields[] = {
		{"later", offsetof(struct grown, later), 0, 16, ABX_FIELD_STR, 0}};
	const struct abx_record_type type = {"grown", 8, sizeof(struct grown), fields, 1};
	void *mem = NULL;

	unit_ok(abx_record_copy(&type, &old, &grown, &mem, &unit_err));
	ck_assert_uint_eq(grown.a, 5);
	ck_assert_ptr_null(grown.later);
	free(mem);
}
END_TEST

START_TEST(ids)
{
	struct abx_sandbox s = {ABX_INIT(struct abx_sandbox)};
	char huge[600];

	ck_assert_int_eq(take(&s), ABX_EPROTO);
	unit_has(unit_err.text, "sandbox: member 'id' is missing");
	s.id = "";
	ck_assert_int_eq(take(&s), ABX_EPROTO);
	s.id = "a\nb";
	ck_assert_int_eq(take(&s), ABX_EPROTO);
	unit_has(unit_err.text, "characters that are not allowed");
	s.id = "a\xff";
	ck_assert_int_eq(take(&s), ABX_EPROTO);
	s.id = "\xc3\xa9 is fine";
	unit_ok(take(&s));
	memset(huge, 'x', sizeof(huge));
	s.id = huge;
	ck_assert_int_eq(take(&s), ABX_EPROTO);
	unit_has(unit_err.text, "is too long");
}
END_TEST

START_TEST(provider_data)
{
	char data[ABX_PROVIDER_DATA_MAX_BYTES + 2];
	struct abx_sandbox s = {ABX_INIT(struct abx_sandbox), .id = "x", .provider_data = data};

	memset(data, 'd', sizeof(data));
	data[ABX_PROVIDER_DATA_MAX_BYTES] = '\0';
	unit_ok(take(&s));
	ck_assert_uint_eq(strlen(copy.provider_data), ABX_PROVIDER_DATA_MAX_BYTES);
	data[ABX_PROVIDER_DATA_MAX_BYTES] = 'd';
	ck_assert_int_eq(take(&s), ABX_EPROTO);
}
END_TEST

START_TEST(labels)
{
	static const struct abx_kv no_key[] = {{NULL, "v"}}, no_value[] = {{"k", NULL}};
	struct abx_sandbox s = {ABX_INIT(struct abx_sandbox), .id = "x", .n_labels = 1};

	ck_assert_int_eq(take(&s), ABX_EPROTO);
	s.labels = no_key;
	ck_assert_int_eq(take(&s), ABX_EPROTO);
	s.labels = no_value;
	ck_assert_int_eq(take(&s), ABX_EPROTO);
	s.n_labels = UINT32_MAX;
	ck_assert_int_eq(take(&s), ABX_EPROTO);
	unit_has(unit_err.text, "too many pairs");
}
END_TEST

START_TEST(requests_are_copied_deep)
{
	const char *argv[] = {"a", "", "b c", NULL};
	const struct abx_exec req = {ABX_INIT(struct abx_exec), .argv = argv, .stdin_fd = 5};
	const uint16_t ports[] = {80, 443};
	const struct abx_mount mount = {ABX_INIT(struct abx_mount), ABX_MOUNT_READ_ONLY, "/s",
					"/t"};
	const struct abx_mount *const mounts[] = {&mount};
	const struct abx_provision p = {ABX_INIT(struct abx_provision), .ports = ports,
					.n_ports = 2, .mounts = mounts, .n_mounts = 1};
	struct abx_provision p2;
	struct abx_exec e;
	void *mem = NULL;

	unit_ok(abx_record_copy(&abx_record_exec, &req, &e, &mem, &unit_err));
	argv[0] = argv[1] = argv[2] = NULL;
	ck_assert_str_eq(e.argv[0], "a");
	ck_assert_str_eq(e.argv[1], "");
	ck_assert_str_eq(e.argv[2], "b c");
	ck_assert_ptr_null(e.argv[3]);
	ck_assert_int_eq(e.stdin_fd, 5);
	free(mem);
	unit_ok(abx_record_copy(&abx_record_provision, &p, &p2, &mem, &unit_err));
	ck_assert_uint_eq(p2.ports[1], 443);
	ck_assert_str_eq(p2.mounts[0]->target, "/t");
	ck_assert_uint_eq(p2.mounts[0]->flags, ABX_MOUNT_READ_ONLY);
	ck_assert_ptr_ne(p2.mounts[0], &mount);
	free(mem);
}
END_TEST

START_TEST(lines)
{
	char text[32];

	abx_text_line("  it's \"so\"\n\tand\x01 so\r\n", 100, text, sizeof(text));
	ck_assert_str_eq(text, "it's \"so\" and\\x01 so");
	abx_text_line("\xc3\xa9\xff\xe2\x80\xae", 100, text, sizeof(text));
	ck_assert_str_eq(text, "\xc3\xa9\\xff\\xe2\\x80\\xae");
	abx_text_line("0123456789012345678901234567890123456789", 100, text, sizeof(text));
	ck_assert_uint_lt(strlen(text), sizeof(text));
	unit_has(text, "...");
	abx_text_line("cut here", 3, text, sizeof(text));
	ck_assert_str_eq(text, "cut");
	ck_assert(abx_text_is_line("it's \"fine\" \\ \xc3\xa9"));
	ck_assert(!abx_text_is_line("two\nlines"));
	ck_assert(!abx_text_is_line("\x1b[31m"));
	ck_assert(!abx_text_is_line("\xe2\x80\xae"));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("record");
	TCase *tc = tcase_create("copy");

	tcase_add_checked_fixture(tc, no_setup, drop);
	tcase_add_test(tc, a_copy_stands_alone);
	tcase_add_test(tc, sizes);
	tcase_add_test(tc, an_older_struct_reads_as_zero);
	tcase_add_test(tc, ids);
	tcase_add_test(tc, provider_data);
	tcase_add_test(tc, labels);
	tcase_add_test(tc, requests_are_copied_deep);
	tcase_add_test(tc, lines);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
