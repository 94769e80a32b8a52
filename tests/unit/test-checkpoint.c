/* SPDX-License-Identifier: MIT */
/* Checkpoints as documents and as files. */
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/store.h"
#include "tests/unit/unit.h"

#define PROVIDER "mock"
#define PROJECT "p-0123456789abcdef"

/* The strings are the test's. */
static struct abx_checkpoint example(const char *name, const char *created_at)
{
	struct abx_checkpoint c = {.name = abx_xstrdup(name),
				   .provider = abx_xstrdup(PROVIDER),
				   .account = abx_xstrdup("me"),
				   .ref = abx_xstrdup("snap-1"),
				   .attempt = abx_xstrdup("00112233445566ff"),
				   .created_at = abx_xstrdup(created_at),
				   .box_id = abx_xstrdup("fedcba9876543210"),
				   .box_name = abx_xstrdup("box"),
				   .project = abx_xstrdup(PROJECT),
				   .workspace = abx_xstrdup("/p \"q\"\n"),
				   .branch = abx_xstrdup("agentbox/box"),
				   .spec = abx_xstrdup("{\"egress\":[]}"),
				   .size_bytes = 4096,
				   .memory = true};

	return c;
}

static int parse(const char *text, struct abx_checkpoint *ret)
{
	return abx_checkpoint_parse(text, strlen(text), ret, &unit_err);
}

START_TEST(what_is_written_is_read)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(ABX_CHECKPOINT_BYTES_MAX);
	struct abx_checkpoint c = example("one", "2026-01-01T00:00:00Z"), back = {0};

	unit_ok(abx_checkpoint_print(&c, &text, &unit_err));
	unit_has(abx_buf_str(&text), "\"version\"");
	unit_ok(parse(abx_buf_str(&text), &back));
	ck_assert_str_eq(back.name, c.name);
	ck_assert_str_eq(back.ref, c.ref);
	ck_assert_str_eq(back.attempt, c.attempt);
	ck_assert_str_eq(back.workspace, c.workspace);
	ck_assert_str_eq(back.spec, c.spec);
	ck_assert_ptr_null(back.base_commit);
	ck_assert_uint_eq(back.size_bytes, 4096);
	ck_assert(back.memory);
	abx_checkpoint_release(&c);
	abx_checkpoint_release(&back);
}
END_TEST

START_TEST(what_makes_no_sense_is_refused)
{
#define HEAD                                                                                    \
	"{\"version\":1,\"name\":\"a\",\"provider\":\"mock\",\"project\":\"p\",\"created_at\":" \
	"\"t\","
	static const char *const damaged[] = {
		"",
		"{",
		"[]",
		"{\"version\":1}",
		"{\"version\":0}",
		HEAD "\"snapshot\":\"s\"}",
		HEAD "\"snapshot\":\"\",\"attempt\":\"0011223344556677\"}",
		HEAD "\"snapshot\":\"s\",\"attempt\":\"../../../etc/x\"}",
		HEAD "\"snapshot\":7,\"attempt\":\"0011223344556677\"}",
		HEAD "\"snapshot\":\"s\",\"attempt\":\"0011223344556677\",\"spec\":[]}",
	};
	struct abx_checkpoint c = {0};

	for (size_t i = 0; i < ABX_N_ELEMENTS(damaged); i++)
		ck_assert_msg(parse(damaged[i], &c) == ABX_ECORRUPT, "%s", damaged[i]);
	ck_assert_int_eq(parse("{\"version\":2,\"name\":{}}", &c), ABX_ENOTSUP);
	unit_has(unit_err.text, "newer agentbox");
	ck_assert_ptr_null(c.name);
	unit_ok(parse(HEAD "\"snapshot\":\"s\",\"attempt\":\"0011223344556677\",\"new\":1}", &c));
	abx_checkpoint_release(&c);
}
END_TEST

static void save(const char *name, const char *created_at, const char *seed)
{
	struct abx_checkpoint c = example(name, created_at);

	unit_ok(abx_checkpoint_save(unit_home(), &c, seed, /* durable= */ false, &unit_err));
	abx_checkpoint_release(&c);
}

START_TEST(saved_listed_removed)
{
	struct abx_checkpoint_list list = {0};
	struct abx_checkpoint c = {0};
	abx_autofree char *seed = NULL, *other = NULL;

	unit_write_text("manifest", "sent");
	save("young", "2026-02-01T00:00:00Z", NULL);
	save("old", "2026-01-01T00:00:00Z", unit_path("manifest"));
	abx_checkpoints_list(unit_home(), PROVIDER, PROJECT, &list);
	ck_assert_uint_eq(list.len, 2);
	ck_assert_str_eq(list.items[0].name, "old");
	abx_checkpoint_list_release(&list);
	abx_checkpoints_list(unit_home(), "other", NULL, &list);
	ck_assert_uint_eq(list.len, 0);
	abx_checkpoint_list_release(&list);

	unit_ok(abx_checkpoint_load(unit_home(), PROVIDER, PROJECT, "old", &c, &unit_err));
	seed = abx_checkpoint_seed_path(unit_home(), &c);
	ck_assert_int_eq(access(seed, F_OK), 0);
	/* Whoever replaces the one file leaves the other as it is. */
	unit_ok(abx_fs_write_atomic(AT_FDCWD, unit_path("manifest"), "new", 3, 0600, false));
	unit_ok(abx_checkpoint_share_file(seed, unit_path("copy"), &unit_err));
	unit_ok(abx_checkpoint_share_file(seed, unit_path("copy"), &unit_err));
	other = unit_read("copy");
	ck_assert_str_eq(other, "sent");
	abx_checkpoint_release(&c);

	unit_ok(abx_checkpoint_remove_files(unit_home(), PROVIDER, PROJECT, "old", &unit_err));
	unit_ok(abx_checkpoint_remove_files(unit_home(), PROVIDER, PROJECT, "old", &unit_err));
	ck_assert_int_eq(abx_checkpoint_load(unit_home(), PROVIDER, PROJECT, "old", &c, &unit_err),
			 ABX_ENOBOX);
	unit_has(unit_err.text, "no checkpoint 'old'");
}
END_TEST

static void damage(const char *name, const char *text)
{
	abx_autofree char *record = abx_checkpoint_record(PROVIDER, PROJECT, name);

	unit_ok(abx_fs_write_atomic(unit_home()->fd, record, text, strlen(text), 0600, false));
}

START_TEST(a_damaged_one_keeps_its_name)
{
	struct abx_checkpoint c = {0};
	abx_autofree char *said = NULL;

	save("bad", "2026-01-01T00:00:00Z", NULL);
	damage("bad", "{\"version\":1");
	unit_stderr_begin();
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(
			abx_checkpoint_load(unit_home(), PROVIDER, PROJECT, "bad", &c, &unit_err),
			ABX_ECORRUPT);
	said = unit_stderr_end();
	unit_has(said, "kept as 'manifest.json.damaged-");
	unit_has(unit_err.text, "its manifest was damaged");
	unit_has(unit_err.remedy, "checkpoint rm bad");
	unit_ok(abx_checkpoint_remove_files(unit_home(), PROVIDER, PROJECT, "bad", &unit_err));
	ck_assert_int_eq(abx_checkpoint_load(unit_home(), PROVIDER, PROJECT, "bad", &c, &unit_err),
			 ABX_ENOBOX);
}
END_TEST

START_TEST(one_that_was_moved_is_none)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(ABX_CHECKPOINT_BYTES_MAX);
	struct abx_checkpoint c = example("one", "2026-01-01T00:00:00Z");

	save("two", "2026-01-01T00:00:00Z", NULL);
	unit_ok(abx_checkpoint_print(&c, &text, &unit_err));
	damage("two", abx_buf_str(&text));
	abx_checkpoint_release(&c);
	ck_assert_int_eq(abx_checkpoint_load(unit_home(), PROVIDER, PROJECT, "two", &c, &unit_err),
			 ABX_ENOTSUP);
	unit_has(unit_err.text, "belongs to another one");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("checkpoint");
	TCase *tc = tcase_create("checkpoint");

	tcase_add_checked_fixture(tc, unit_home_setup, unit_dir_teardown);
	tcase_add_test(tc, what_is_written_is_read);
	tcase_add_test(tc, what_makes_no_sense_is_refused);
	tcase_add_test(tc, saved_listed_removed);
	tcase_add_test(tc, a_damaged_one_keeps_its_name);
	tcase_add_test(tc, one_that_was_moved_is_none);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
