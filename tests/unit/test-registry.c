/* SPDX-License-Identifier: MIT */
/* Finding providers: where, in which order, and what is refused. */
#include "tests/unit/plugins.h"

static struct abx_provider_file file;

static void refused(const char *name, const char *why)
{
	ck_assert_int_eq(abx_registry_find(name, &file, &unit_err), ABX_EPROVIDER);
	unit_has(unit_err.text, why);
}

START_TEST(by_name)
{
	plugin_install("mock");
	unit_ok(abx_registry_find("mock", &file, &unit_err));
	ck_assert_str_eq(file.name, "mock");
	ck_assert_str_eq(file.path, unit_path(MOCK));
	ck_assert_str_eq(file.version, "1.0.0");
	ck_assert_uint_eq(file.abi_major, ABX_ABI_MAJOR);
	abx_provider_file_release(&file);
}
END_TEST

START_TEST(by_absolute_path)
{
	plugin_install("mock");
	ck_assert_int_eq(setenv("AGENTBOX_PROVIDER_PATH", "", 1), 0);
	unit_ok(abx_registry_find(unit_path(MOCK), &file, &unit_err));
	ck_assert_str_eq(file.name, "mock");
	abx_provider_file_release(&file);
	refused("plugins/agentbox-mock.so", "not an absolute path");
	refused(unit_path("plugins/other.so"), "not the file name of a provider");
}
END_TEST

START_TEST(not_there)
{
	refused("nothere", "provider 'nothere' not found in: ");
	unit_has(unit_err.text, unit_path("plugins"));
	ck_assert_str_eq(unit_err.remedy, "package agentbox-provider-nothere?");
}
END_TEST

START_TEST(names_that_are_none)
{
	static const char *const names[] = {
		"",   "..", "Mock", "mo ck",
		"-x", "1x", "x\ny", "abcdefghijklmnopqrstuvwxyzabcdefghijk"};

	for (size_t i = 0; i < ABX_N_ELEMENTS(names); i++)
		ck_assert_int_eq(abx_registry_find(names[i], &file, &unit_err), ABX_EPROVIDER);
}
END_TEST

START_TEST(the_first_directory_wins)
{
	struct abx_provider_files files;
	char path[1200];
	size_t seen = 0;

	plugin_install("mock");
	ck_assert_int_eq(mkdir(unit_path("second"), 0700), 0);
	ck_assert_int_eq(link(unit_path(MOCK), unit_path("second/agentbox-mock.so")), 0);
	(void)snprintf(path, sizeof(path), "%s:%s", unit_path("second"), unit_path("plugins"));
	ck_assert_int_eq(setenv("AGENTBOX_PROVIDER_PATH", path, 1), 0);
	unit_ok(abx_registry_find("mock", &file, &unit_err));
	ck_assert_str_eq(file.path, unit_path("second/agentbox-mock.so"));
	abx_provider_file_release(&file);
	unit_ok(abx_registry_scan(&files, &unit_err));
	for (size_t i = 0; i < files.len; i++) {
		if (strcmp(files.items[i].name, "mock") != 0)
			continue;
		ck_assert_int_eq(files.items[i].shadowed, seen > 0);
		seen++;
	}
	ck_assert_uint_ge(seen, 2);
	abx_provider_files_release(&files);
}
END_TEST

START_TEST(a_broken_one_is_not_passed_over)
{
	char path[1200];

	/* Nobody should get another provider than the one that comes first. */
	plugin_install("mock");
	ck_assert_int_eq(mkdir(unit_path("first"), 0700), 0);
	unit_write_text("first/agentbox-mock.so", "text");
	(void)snprintf(path, sizeof(path), "%s:%s", unit_path("first"), unit_path("plugins"));
	ck_assert_int_eq(setenv("AGENTBOX_PROVIDER_PATH", path, 1), 0);
	refused("mock", "first/agentbox-mock.so: not an agentbox provider");
}
END_TEST

START_TEST(relative_directories_are_ignored)
{
	/* Each has one that none before it has: a warning is said once. */
	static const char *const paths[] = {".", "plugins", ":", "a::b", "c:"};

	plugin_install("mock");
	ck_assert_int_eq(chdir(unit_dir()), 0);
	for (size_t i = 0; i < ABX_N_ELEMENTS(paths); i++) {
		abx_autofree char *one = NULL;

		ck_assert_int_eq(setenv("AGENTBOX_PROVIDER_PATH", paths[i], 1), 0);
		unit_stderr_begin();
		ck_assert_int_eq(abx_registry_find("mock", &file, &unit_err), ABX_EPROVIDER);
		one = unit_stderr_end();
		unit_has(one, "agentbox: warning: AGENTBOX_PROVIDER_PATH: '");
	}
	ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

START_TEST(a_scan_shows_what_is_wrong)
{
	struct abx_provider_files files;
	bool seen = false;

	plugin_install("mock");
	unit_write_text("plugins/agentbox-bad.so", "text");
	unit_write_text("plugins/README", "no provider");
	unit_write_text("plugins/agentbox-UPPER.so", "no provider");
	unit_ok(abx_registry_scan(&files, &unit_err));
	for (size_t i = 0; i < files.len; i++) {
		ck_assert_str_ne(files.items[i].name, "UPPER");
		if (strcmp(files.items[i].name, "mock") == 0)
			ck_assert_int_eq(files.items[i].problem.code, 0);
		if (strcmp(files.items[i].name, "bad") != 0)
			continue;
		seen = true;
		ck_assert_int_eq(files.items[i].problem.code, ABX_EPROVIDER);
		unit_has(files.items[i].problem.text, "not an ELF file");
	}
	ck_assert(seen);
	abx_provider_files_release(&files);
}
END_TEST

START_TEST(modes)
{
	static const mode_t bad[] = {0622, 0620, 0602, 0777};

	plugin_install("mock");
	for (size_t i = 0; i < ABX_N_ELEMENTS(bad); i++) {
		ck_assert_int_eq(chmod(unit_path(MOCK), bad[i]), 0);
		refused("mock", "refused: writable by group or others");
		unit_has(unit_err.remedy, "chmod go-w");
	}
	ck_assert_int_eq(chmod(unit_path(MOCK), 0755), 0);
	unit_ok(abx_registry_find("mock", &file, &unit_err));
	abx_provider_file_release(&file);
}
END_TEST

START_TEST(modes_of_the_directory)
{
	static const mode_t bad[] = {0777, 01777, 0770};

	plugin_install("mock");
	for (size_t i = 0; i < ABX_N_ELEMENTS(bad); i++) {
		ck_assert_int_eq(chmod(unit_path("plugins"), bad[i]), 0);
		refused("mock", "refused: its directory is writable by group or others");
	}
}
END_TEST

START_TEST(owners)
{
	if (geteuid() != 0)
		return;
	plugin_install("mock");
	ck_assert_int_eq(chown(unit_path(MOCK), 12345, 0), 0);
	refused("mock", "refused: belongs to uid 12345, neither root nor you");
	ck_assert_int_eq(chown(unit_path(MOCK), 0, 0), 0);
	ck_assert_int_eq(chown(unit_path("plugins"), 12345, 0), 0);
	refused("mock", "refused: its directory belongs to uid 12345");
}
END_TEST

START_TEST(links_are_followed_and_judged)
{
	plugin_install("mock");
	ck_assert_int_eq(mkdir(unit_path("elsewhere"), 0700), 0);
	ck_assert_int_eq(rename(unit_path(MOCK), unit_path("elsewhere/agentbox-mock.so")), 0);
	ck_assert_int_eq(symlink(unit_path("elsewhere/agentbox-mock.so"), unit_path(MOCK)), 0);
	unit_ok(abx_registry_find("mock", &file, &unit_err));
	abx_provider_file_release(&file);
	ck_assert_int_eq(chmod(unit_path("elsewhere"), 01777), 0);
	refused("mock", "refused: its directory is writable");
	ck_assert_int_eq(chmod(unit_path("elsewhere"), 0700), 0);
	ck_assert_int_eq(unlink(unit_path("elsewhere/agentbox-mock.so")), 0);
	refused("mock", "cannot open: No such file");
	ck_assert_int_eq(unlink(unit_path(MOCK)), 0);
	ck_assert_int_eq(symlink("agentbox-mock.so", unit_path(MOCK)), 0);
	refused("mock", "cannot open: Too many levels of symbolic links");
}
END_TEST

START_TEST(things_that_are_no_files)
{
	ck_assert_int_eq(mkdir(unit_path(MOCK), 0700), 0);
	refused("mock", "refused: not a regular file");
	ck_assert_int_eq(rmdir(unit_path(MOCK)), 0);
	ck_assert_int_eq(mkfifo(unit_path(MOCK), 0600), 0);
	refused("mock", "refused: not a regular file");
}
END_TEST

START_TEST(a_file_under_another_name)
{
	plugin_install("mock");
	ck_assert_int_eq(rename(unit_path(MOCK), unit_path("plugins/agentbox-alias.so")), 0);
	refused("alias", "provider 'alias' calls itself 'mock' in its note");
}
END_TEST

static Suite *suite(void)
{
	const TTest *const tests[] = {
		by_name,
		by_absolute_path,
		not_there,
		names_that_are_none,
		the_first_directory_wins,
		a_broken_one_is_not_passed_over,
		relative_directories_are_ignored,
		a_scan_shows_what_is_wrong,
		modes,
		modes_of_the_directory,
		owners,
		links_are_followed_and_judged,
		things_that_are_no_files,
		a_file_under_another_name,
	};
	Suite *s = suite_create("registry");
	TCase *tc = tcase_create("find");

	tcase_add_checked_fixture(tc, plugins_setup, unit_dir_teardown);
	for (size_t i = 0; i < ABX_N_ELEMENTS(tests); i++)
		tcase_add_test(tc, tests[i]);
	suite_add_tcase(s, tc);
	return s;
}

PLUGINS_MAIN(suite)
