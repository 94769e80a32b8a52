/* SPDX-License-Identifier: MIT */
/* Loading plugins: each way of being refused, and what is known of good ones. */
#include "core/util/clock.h"
#include "tests/unit/plugins.h"

/* Refused with this in the text, and no code of it ran in this process. */
static void refused(const char *name, const char *text)
{
	struct abx_plugin *plugin = NULL;

	ck_assert_int_eq(plugin_load(name, &plugin), ABX_EPROVIDER);
	unit_has(unit_err.text, text);
	ck_assert_str_ne(unit_err.remedy, "");
	ck_assert_int_eq(abx_err_exit_code(unit_err.code), 5);
}

static bool fixture_ran(void)
{
	return access(unit_path("fixture-ran"), F_OK) == 0;
}

static void fixture_refused(const char *misbehaviour, const char *text)
{
	plugin_install_fixture(misbehaviour);
	refused("fixture", text);
}

START_TEST(a_good_one_is_loaded_once)
{
	struct abx_plugin *plugin, *again;

	plugin_install_fixture("");
	unit_ok(plugin_load("fixture", &plugin));
	ck_assert_str_eq(plugin->table.name, "fixture");
	ck_assert_uint_eq(plugin->their_size, sizeof(struct abx_cloud_backend));
	unit_ok(plugin_load("fixture", &again));
	ck_assert_ptr_eq(plugin, again);
}
END_TEST

START_TEST(two_plugins_side_by_side)
{
	struct abx_plugin *a, *b;

	plugin_install_fixture("");
	plugin_install("mock");
	unit_ok(plugin_load("fixture", &a));
	unit_ok(plugin_load("mock", &b));
	ck_assert_str_eq(a->table.name, "fixture");
	ck_assert_str_eq(b->table.name, "mock");
	ck_assert_ptr_ne(a->theirs, b->theirs);
}
END_TEST

START_TEST(a_longer_table_is_cut)
{
	struct abx_plugin *plugin;

	plugin_install_fixture("sizelonger");
	unit_ok(plugin_load("fixture", &plugin));
	ck_assert_uint_eq(plugin->table.struct_size, sizeof(struct abx_cloud_backend));
	ck_assert_uint_eq(plugin->their_size, sizeof(struct abx_cloud_backend) + 64);
}
END_TEST

START_TEST(it_is_tried_in_a_child_once)
{
	struct abx_plugin *plugin;
	abx_autofree char *known = NULL;
	int status;
	pid_t pid;

	plugin_install_fixture("");
	unit_ok(plugin_load("fixture", &plugin));
	known = unit_read("cache/providers/fixture");
	unit_has(known, "agentbox-fixture.so");
	/* Another process needs no probe any more: this one could not start it. */
	pid = fork();
	if (pid == 0) {
		abx_probe_set_program("/nonexistent");
		_exit(plugin_load("fixture", &plugin) == 0 ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	/* The same file with another time is another file. */
	ck_assert_int_eq(utimensat(AT_FDCWD, unit_path(FIXTURE), NULL, 0), 0);
	pid = fork();
	if (pid == 0) {
		int fd = open(unit_path(FIXTURE), O_RDONLY | O_CLOEXEC);

		abx_probe_set_program("/nonexistent");
		_exit(abx_probe_ensure(fd, unit_path(FIXTURE), "fixture", unit_home(), NULL) == 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(a_crash_while_loading)
{
	fixture_refused("crash", "provider 'fixture' crashed when it was loaded (signal 11)");
	ck_assert_str_eq(unit_err.remedy, "reinstall it");
	fixture_refused("abort", "crashed when it was loaded (signal 6)");
	fixture_refused("initcrash", "crashed when it was loaded (signal 7)");
	ck_assert_int_ne(access(unit_path("cache/providers/fixture"), F_OK), 0);
}
END_TEST

START_TEST(an_exit_while_loading)
{
	fixture_refused("exit", "ended the program when it was loaded (exit code 0)");
	fixture_refused("close", "ended the program when it was loaded (exit code 1)");
}
END_TEST

START_TEST(a_hang_while_loading)
{
	int64_t begun = abx_now_ms();

	fixture_refused("hang", "did not finish loading within 5 s");
	ck_assert_int_lt(abx_now_ms() - begun, 7000);
}
END_TEST

START_TEST(noise_while_loading_is_not_believed)
{
	abx_autoclose int fd = -1;
	cJSON *info = NULL;

	plugin_install_fixture("noise");
	fd = open(unit_path(FIXTURE), O_RDONLY | O_CLOEXEC);
	unit_ok(abx_probe_run(fd, unit_path(FIXTURE), "fixture", &info, &unit_err));
	ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(info, "name")), "fixture");
	ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(info, "has_destroy")));
	ck_assert(cJSON_IsFalse(cJSON_GetObjectItem(info, "has_pause")));
	cJSON_Delete(info);
}
END_TEST

START_TEST(no_table)
{
	fixture_refused("null", "returned no table");
}
END_TEST

START_TEST(a_table_nowhere)
{
	fixture_refused("wild", "crashed when it was loaded");
}
END_TEST

START_TEST(a_wrong_magic_number)
{
	fixture_refused("magic", "wrong magic number");
}
END_TEST

START_TEST(an_impossible_size)
{
	fixture_refused("size0", "returned a table of 0 bytes");
	fixture_refused("size8", "returned a table of 8 bytes");
	fixture_refused("sizehuge", "returned a table of 4294967295 bytes");
}
END_TEST

START_TEST(note_and_table_disagree)
{
	fixture_refused("othername", "another name in its table");
	fixture_refused("otherversion", "another version in its table");
	fixture_refused("otherminor", "built for ABI 1.9 but its note says 1.0");
}
END_TEST

START_TEST(a_missing_required_operation)
{
	fixture_refused("noop", "lacks the required operation 'destroy'");
}
END_TEST

START_TEST(an_unknown_thread_model)
{
	fixture_refused("threads", "unknown thread model");
}
END_TEST

START_TEST(broken_texts_and_options)
{
	fixture_refused("nosummary", "no proper summary");
	fixture_refused("option", "option 'odd' of an unknown type");
}
END_TEST

START_TEST(capabilities_that_we_lack)
{
	fixture_refused("hostcaps", "needs capabilities (0x10000000000)");
	ck_assert_str_eq(unit_err.remedy, "upgrade agentbox");
}
END_TEST

START_TEST(an_init_that_fails)
{
	struct abx_plugin *plugin;

	plugin_install_fixture("initfail");
	ck_assert_int_eq(plugin_load("fixture", &plugin), ABX_EPROVIDER);
	unit_has(unit_err.text, "could not be initialised: this machine failed");
}
END_TEST

START_TEST(a_missing_library)
{
	plugin_install("mock");
	plugin_patch(MOCK, "libcjson.so.1", "libcjsox.so.1");
	refused("mock", "agentbox-mock.so: cannot load: libcjsox.so.1: cannot open shared");
	ck_assert_str_eq(unit_err.remedy, "check its dependencies with ldd(1)");
}
END_TEST

static void major_2(struct abx_note *note)
{
	note->abi_major = 2;
}

static void major_0(struct abx_note *note)
{
	note->abi_major = 0;
}

static void minor_9(struct abx_note *note)
{
	note->abi_minor = note->abi_minor_min = 9;
}

static void minor_9_min_0(struct abx_note *note)
{
	note->abi_minor = 9;
}

static void min_above(struct abx_note *note)
{
	note->abi_minor_min = 3;
}

static void no_owner(struct abx_note *note)
{
	note->owner[0] = 'X';
}

static void other_name(struct abx_note *note)
{
	(void)snprintf(note->name, sizeof(note->name), "%s", "another");
}

static void endless_name(struct abx_note *note)
{
	memset(note->name, 'x', sizeof(note->name));
}

/* Refused by what the file says, before any of its code could run. */
static void unread(void (*change)(struct abx_note *), const char *text)
{
	struct abx_plugin *plugin = NULL;

	plugin_install_fixture("");
	plugin_patch_note(FIXTURE, change);
	ck_assert_int_eq(plugin_load("fixture", &plugin), ABX_EPROVIDER);
	unit_has(unit_err.text, text);
	ck_assert_msg(!fixture_ran(), "its constructor ran all the same");
}

START_TEST(another_major)
{
	unread(major_2, "provider 'fixture' was built for ABI 2.0; this agentbox speaks 1.0");
	ck_assert_str_eq(unit_err.remedy,
			 "install an older agentbox-provider-fixture or a newer agentbox");
	unread(major_0, "was built for ABI 0.0; this agentbox speaks 1.0");
	ck_assert_str_eq(unit_err.remedy, "install a newer agentbox-provider-fixture");
}
END_TEST

START_TEST(a_newer_minor)
{
	unread(minor_9, "provider 'fixture' needs ABI 1.9 or newer; this agentbox has 1.0");
	ck_assert_str_eq(unit_err.remedy, "upgrade agentbox");
}
END_TEST

START_TEST(a_newer_minor_that_says_it_can)
{
	plugin_install_fixture("otherminor");
	plugin_patch_note(FIXTURE, minor_9_min_0);
	{
		struct abx_plugin *plugin;

		unit_ok(plugin_load("fixture", &plugin));
	}
}
END_TEST

START_TEST(no_note)
{
	unread(no_owner, "not an agentbox provider (no agentbox note)");
}
END_TEST

START_TEST(a_damaged_note)
{
	unread(min_above, "damaged agentbox note");
	unread(endless_name, "damaged agentbox note");
}
END_TEST

START_TEST(another_name)
{
	unread(other_name, "provider 'fixture' calls itself 'another'");
}
END_TEST

START_TEST(a_truncated_file)
{
	struct abx_plugin *plugin;

	plugin_install_fixture("");
	ck_assert_int_eq(truncate(unit_path(FIXTURE), 4096), 0);
	ck_assert_int_eq(plugin_load("fixture", &plugin), ABX_EPROVIDER);
	unit_has(unit_err.text, "agentbox-fixture.so: not an agentbox provider (truncated)");
	ck_assert(!fixture_ran());
}
END_TEST

START_TEST(a_text_file)
{
	struct abx_plugin *plugin;

	unit_write_text(FIXTURE, "#!/bin/sh\nexit 0\n");
	ck_assert_int_eq(plugin_load("fixture", &plugin), ABX_EPROVIDER);
	unit_has(unit_err.text, "not an agentbox provider (not an ELF file)");
}
END_TEST

START_TEST(writable_by_others)
{
	plugin_install_fixture("");
	ck_assert_int_eq(chmod(unit_path(FIXTURE), 0666), 0);
	refused("fixture", "agentbox-fixture.so: refused: writable by group or others");
	ck_assert(!fixture_ran());
}
END_TEST

START_TEST(a_broken_one_hinders_nobody)
{
	struct abx_plugin *plugin;

	plugin_install("mock");
	fixture_refused("crash", "crashed");
	unit_ok(plugin_load("mock", &plugin));
}
END_TEST

START_TEST(what_was_checked_is_what_is_loaded)
{
	struct abx_plugin *plugin;
	struct abx_provider_file file;

	/* The file is exchanged between being found and being loaded: checked again. */
	plugin_install_fixture("");
	unit_ok(abx_registry_find("fixture", &file, &unit_err));
	ck_assert_int_eq(unlink(unit_path(FIXTURE)), 0);
	unit_write_text(FIXTURE, "something else");
	ck_assert_int_eq(abx_plugin_get(&file, unit_home(), &plugin, &unit_err), ABX_EPROVIDER);
	abx_provider_file_release(&file);
}
END_TEST

static Suite *suite(void)
{
	const TTest *const tests[] = {
		a_good_one_is_loaded_once,
		two_plugins_side_by_side,
		a_longer_table_is_cut,
		it_is_tried_in_a_child_once,
		a_crash_while_loading,
		an_exit_while_loading,
		a_hang_while_loading,
		noise_while_loading_is_not_believed,
		no_table,
		a_table_nowhere,
		a_wrong_magic_number,
		an_impossible_size,
		note_and_table_disagree,
		a_missing_required_operation,
		an_unknown_thread_model,
		broken_texts_and_options,
		capabilities_that_we_lack,
		an_init_that_fails,
		a_missing_library,
		another_major,
		a_newer_minor,
		a_newer_minor_that_says_it_can,
		no_note,
		a_damaged_note,
		another_name,
		a_truncated_file,
		a_text_file,
		writable_by_others,
		a_broken_one_hinders_nobody,
		what_was_checked_is_what_is_loaded,
	};
	Suite *s = suite_create("loader");
	TCase *tc = tcase_create("load");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, plugins_setup, unit_dir_teardown);
	for (size_t i = 0; i < ABX_N_ELEMENTS(tests); i++)
		tcase_add_test(tc, tests[i]);
	suite_add_tcase(s, tc);
	return s;
}

PLUGINS_MAIN(suite)
