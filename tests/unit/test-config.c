/* SPDX-License-Identifier: MIT */
/* Settings: layers, refusals, secrets, storing. */
#include "core/state/config.h"

#include "core/state/envfile.h"
#include "core/util/redact.h"
#include "tests/unit/unit.h"

static struct abx_config *config;

static const struct abx_option region = {.struct_size = sizeof(region),
					 .type = ABX_OPT_STRING,
					 .flags = ABX_OPT_WORKSPACE_OK,
					 .name = "region",
					 .env = "MOCK_REGION",
					 .dflt = "eu",
					 .help = "where"};
static const struct abx_option url = {
	.struct_size = sizeof(url), .type = ABX_OPT_STRING, .name = "api_url", .help = "endpoint"};
static const struct abx_option key_option = {.struct_size = sizeof(key_option),
					     .type = ABX_OPT_STRING,
					     .flags = ABX_OPT_SECRET | ABX_OPT_WORKSPACE_OK,
					     .name = "api_key",
					     .env = "MOCK_API_KEY",
					     .help = "key"};
static const struct abx_option bare_secret = {.struct_size = sizeof(bare_secret),
					      .type = ABX_OPT_STRING,
					      .flags = ABX_OPT_SECRET,
					      .name = "other-token",
					      .help = "token"};
static const struct abx_option cpus = {.struct_size = sizeof(cpus),
				       .type = ABX_OPT_INT,
				       .flags = ABX_OPT_WORKSPACE_OK,
				       .name = "cpus",
				       .dflt = "2",
				       .help = "processors"};
static const struct abx_option size_option = {
	.struct_size = sizeof(size_option), .type = ABX_OPT_SIZE, .name = "memory", .help = "m"};
static const struct abx_option flag_option = {
	.struct_size = sizeof(flag_option), .type = ABX_OPT_BOOL, .name = "fast", .help = "f"};
static const struct abx_option *const options[] = {
	&region, &url, &key_option, &bare_secret, &cpus, &size_option, &flag_option, NULL};

static void clear_env(void)
{
	static const char *const names[] = {
		"AGENTBOX_PROVIDER", "AGENTBOX_IMAGE",	  "AGENTBOX_SETUP",
		"AGENTBOX_TIMEOUT",  "AGENTBOX_ENV_FILE", "AGENTBOX_CA_FILE",
		"MOCK_REGION",	     "MOCK_API_KEY",	  "AGENTBOX_MOCK_OTHER_TOKEN"};

	for (size_t i = 0; i < ABX_N_ELEMENTS(names); i++)
		ck_assert_int_eq(unsetenv(names[i]), 0);
}

static void setup(void)
{
	unit_home_setup();
	clear_env();
	config = NULL;
	ck_assert_int_eq(mkdir(unit_path("ws"), 0700), 0);
	ck_assert_int_eq(mkdir(unit_path("projects"), 0700), 0);
	ck_assert_int_eq(mkdir(unit_path("projects/k"), 0700), 0);
}

static void teardown(void)
{
	abx_config_close(config);
	unit_dir_teardown();
}

static int try_open(struct abx_err *err)
{
	abx_config_close(config);
	config = NULL;
	return abx_config_open(unit_home(), "k", unit_path("ws"), &config, err);
}

static void must_open(void)
{
	unit_ok(try_open(&unit_err));
}

static void expect(const char *key, const char *value, const char *source)
{
	const char *from = "none", *got = abx_config_get(config, key, &from);

	if (!value) {
		ck_assert_msg(!got, "%s is %s from %s", key, got, from);
		return;
	}
	ck_assert_msg(got != NULL, "%s has no value", key);
	ck_assert_str_eq(got, value);
	ck_assert_str_eq(from, source);
}

START_TEST(nothing_set)
{
	must_open();
	expect("box.provider", "local", "default");
	expect("box.image", NULL, NULL);
	expect("no.such", NULL, NULL);
	ck_assert_str_eq(abx_config_path(config, "global"), unit_path("config.yaml"));
	ck_assert_str_eq(abx_config_path(config, "project"), unit_path("projects/k/config.yaml"));
	ck_assert_str_eq(abx_config_path(config, "repository"), unit_path("ws/agentbox.yaml"));
	ck_assert_ptr_null(abx_config_path(config, "flag"));
	ck_assert_ptr_null(abx_config_path(config, "nonsense"));
}
END_TEST

START_TEST(layers_in_order)
{
	unit_write_text("config.yaml", "box:\n  timeout: 1m\n");
	must_open();
	expect("box.timeout", "1m", "global");
	unit_write_text("ws/agentbox.yaml",
			"services: {x: 1}\ndefaults:\n  box:\n    timeout: 2m\n");
	must_open();
	expect("box.timeout", "2m", "repository");
	unit_write_text("projects/k/config.yaml", "box: {timeout: 3m}\n");
	must_open();
	expect("box.timeout", "3m", "project");
	ck_assert_int_eq(setenv("AGENTBOX_TIMEOUT", "4m", 1), 0);
	must_open();
	expect("box.timeout", "4m", "env");
	unit_ok(abx_config_set_flag(config, "box.timeout", "5m", &unit_err));
	expect("box.timeout", "5m", "flag");
	ck_assert_int_eq(setenv("AGENTBOX_TIMEOUT", "", 1), 0);
	must_open();
	expect("box.timeout", "3m", "project");
}
END_TEST

START_TEST(global_only)
{
	unit_write_text("config.yaml", "box:\n  timeout: 1m\n");
	unit_ok(abx_config_open(unit_home(), NULL, NULL, &config, &unit_err));
	expect("box.timeout", "1m", "global");
	ck_assert_ptr_null(abx_config_path(config, "project"));
	ck_assert_ptr_null(abx_config_path(config, "repository"));
	ck_assert_int_eq(abx_config_store(config, false, "box.timeout", "2m", NULL), ABX_EUSAGE);
}
END_TEST

START_TEST(repository_is_refused)
{
	static const char *const keys[] = {"image", "env_file", "ca_file"};

	for (size_t i = 0; i < ABX_N_ELEMENTS(keys); i++) {
		abx_autofree char *text =
			abx_xasprintf("defaults:\n  box:\n    setup: s\n    %s: x\n", keys[i]);
		abx_autofree char *key = NULL;
		struct abx_err err = ABX_ERR_INIT;

		unit_write_text("ws/agentbox.yaml", text);
		ck_assert_int_eq(try_open(&err), ABX_EPOLICY);
		ck_assert_ptr_null(config);
		unit_has(err.text, unit_path("ws/agentbox.yaml"));
		unit_has(err.text, "line 4");
		unit_has(err.text, keys[i]);
		/* For mending it opens, and gives nothing out all the same. */
		unit_ok(abx_config_open_edit(unit_home(), "k", unit_path("ws"), &config,
					     &unit_err));
		key = abx_xasprintf("box.%s", keys[i]);
		expect(key, NULL, NULL);
		ck_assert_int_eq(abx_config_problem(config, &err), ABX_EPOLICY);
	}
}
END_TEST

START_TEST(repository_may)
{
	unit_write_text("ws/agentbox.yaml",
			"defaults: {box: {provider: mock, setup: make, timeout: 1h}}\n");
	must_open();
	expect("box.provider", "mock", "repository");
	expect("box.setup", "make", "repository");
	expect("box.timeout", "1h", "repository");
}
END_TEST

/* A plugin by path is for the command line only. */
START_TEST(provider_by_path)
{
	struct abx_err err = ABX_ERR_INIT;

	unit_write_text("ws/agentbox.yaml", "defaults: {box: {provider: /tmp/evil.so}}\n");
	ck_assert_int_lt(try_open(&err), 0);
	unit_has(err.text, "agentbox.yaml");
	unit_write_text("ws/agentbox.yaml", "");
	unit_write_text("config.yaml", "box: {provider: ../evil}\n");
	ck_assert_int_eq(try_open(NULL), ABX_EINVAL);
	unit_write_text("config.yaml", "");
	ck_assert_int_eq(setenv("AGENTBOX_PROVIDER", "/tmp/evil.so", 1), 0);
	ck_assert_int_eq(try_open(&err), ABX_EINVAL);
	unit_has(err.text, "AGENTBOX_PROVIDER");
	clear_env();
	must_open();
	ck_assert_int_eq(abx_config_set_flag(config, "box.provider", "a b", NULL), ABX_EINVAL);
	unit_ok(abx_config_set_flag(config, "box.provider", "/tmp/mine.so", &unit_err));
	expect("box.provider", "/tmp/mine.so", "flag");
}
END_TEST

START_TEST(providers_options)
{
	unit_write_text("config.yaml", "mock: {region: us, api_url: 'https://x'}\n");
	unit_write_text("ws/agentbox.yaml", "defaults: {mock: {cpus: 4}}\n");
	must_open();
	expect("mock.region", NULL, NULL);
	abx_config_declare_provider(config, "mock", options);
	abx_config_declare_provider(config, "mock", options);
	unit_ok(abx_config_problem(config, &unit_err));
	expect("mock.region", "us", "global");
	expect("mock.api_url", "https://x", "global");
	expect("mock.cpus", "4", "repository");
	expect("mock.memory", NULL, NULL);
	ck_assert_int_eq(setenv("MOCK_REGION", "ap", 1), 0);
	must_open();
	abx_config_declare_provider(config, "mock", options);
	expect("mock.region", "ap", "env");
	abx_config_declare_provider(config, "none", NULL);
}
END_TEST

START_TEST(repository_and_providers_options)
{
	static const char *const forbidden[] = {"api_url: 'https://evil'", "api_key: stolen",
						"other-token: t", "memory: 1G"};

	for (size_t i = 0; i < ABX_N_ELEMENTS(forbidden); i++) {
		abx_autofree char *text = abx_xasprintf("defaults: {mock: {%s}}\n", forbidden[i]);
		abx_autofree char *key =
			abx_xasprintf("mock.%.*s", (int)strcspn(forbidden[i], ":"), forbidden[i]);
		struct abx_err err = ABX_ERR_INIT;

		unit_write_text("ws/agentbox.yaml", text);
		must_open();
		abx_config_declare_provider(config, "mock", options);
		ck_assert_int_eq(abx_config_problem(config, &err), ABX_EPOLICY);
		unit_has(err.text, key);
		expect(key, NULL, NULL);
	}
}
END_TEST

START_TEST(wrong_types)
{
	static const struct {
		const char *file, *text, *in_error;
	} cases[] = {
		{"config.yaml", "box:\n  timeout: soon\n", "config.yaml: line 2: box.timeout"},
		{"projects/k/config.yaml", "box: {timeout: -1}", "k/config.yaml: line 1: box"},
		{"ws/agentbox.yaml", "defaults:\n  box: {timeout: [1]}", "agentbox.yaml: line 2:"},
		{"config.yaml", "box: {timeout: {a: 1}}", NULL},
	};

	for (size_t i = 0; i < ABX_N_ELEMENTS(cases); i++) {
		struct abx_err err = ABX_ERR_INIT;

		unit_write_text(cases[i].file, cases[i].text);
		if (cases[i].in_error) {
			ck_assert_int_eq(try_open(&err), ABX_EINVAL);
			unit_has(err.text, cases[i].in_error);
		} else {
			must_open();
		}
		unit_write_text(cases[i].file, "");
	}
	unit_write_text("config.yaml", "mock: {cpus: many}\n");
	must_open();
	abx_config_declare_provider(config, "mock", options);
	ck_assert_int_eq(abx_config_problem(config, NULL), ABX_EINVAL);
	expect("mock.cpus", "2", "default");
	/* A wrong file is not a damaged one. */
	ck_assert_uint_eq(unit_count("config.yaml.damaged-", ""), 0);
}
END_TEST

START_TEST(checking_values)
{
	static const struct {
		const char *key, *value;
		int code;
	} cases[] = {
		{"mock.cpus", "5", 0},
		{"mock.cpus", "-5", 0},
		{"mock.cpus", "", ABX_EINVAL},
		{"mock.cpus", "5x", ABX_EINVAL},
		{"mock.cpus", "9223372036854775808", ABX_EINVAL},
		{"mock.memory", "2G", 0},
		{"mock.memory", "2X", ABX_EINVAL},
		{"mock.fast", "yes", 0},
		{"mock.fast", "maybe", ABX_EINVAL},
		{"mock.region", "", 0},
		{"box.timeout", "90", 0},
		{"box.timeout", "1y", ABX_EINVAL},
		{"box.none", "x", ABX_EUSAGE},
		{"none", "x", ABX_EUSAGE},
	};

	must_open();
	abx_config_declare_provider(config, "mock", options);
	for (size_t i = 0; i < ABX_N_ELEMENTS(cases); i++)
		ck_assert_int_eq(abx_config_check(config, cases[i].key, cases[i].value, NULL),
				 cases[i].code);
}
END_TEST

START_TEST(unknown_keys_warn_once)
{
	abx_autofree char *said = NULL;
	const char *value = NULL, *source = NULL;

	unit_write_text("config.yaml", "future_key: 1\nbox: {new: 2}\nmock: {odd: 3}\n");
	unit_write_text("projects/k/config.yaml", "future_key: 1\n");
	unit_stderr_begin();
	must_open();
	abx_config_declare_provider(config, "mock", options);
	said = unit_stderr_end();
	unit_has(said, "future_key");
	ck_assert_ptr_null(strstr(strstr(said, "future_key") + 1, "future_key"));
	unit_has(said, "box.new");
	unit_has(said, "mock.odd");
	unit_has(said, "config.yaml");
	ck_assert_str_eq(abx_config_undeclared(config, 0, &value, &source), "future_key");
	ck_assert_str_eq(source, "project");
	ck_assert_str_eq(abx_config_undeclared(config, 3, &value, &source), "mock.odd");
	ck_assert_str_eq(value, "3");
	ck_assert_ptr_null(abx_config_undeclared(config, 4, &value, &source));
	unit_ok(abx_config_store(config, true, "box.timeout", "5m", &unit_err));
	free(said);
	said = unit_read("config.yaml");
	unit_has(said, "future_key: 1");
	unit_has(said, "new: 2");
	unit_has(said, "odd: 3");
}
END_TEST

START_TEST(own_damaged_file_is_set_aside)
{
	static const char *const files[] = {"config.yaml", "projects/k/config.yaml", "secrets.env"};
	abx_autofree char *said = NULL;

	unit_write_text("config.yaml", "box: [\n");
	unit_write_text("projects/k/config.yaml", "\x01\x02");
	unit_write_text("secrets.env", "not an assignment\n");
	unit_stderr_begin();
	must_open();
	said = unit_stderr_end();
	for (size_t i = 0; i < ABX_N_ELEMENTS(files); i++) {
		unit_has(said, unit_path(files[i]));
		ck_assert_int_ne(access(unit_path(files[i]), F_OK), 0);
	}
	unit_has(said, "line 2");
	ck_assert_uint_eq(unit_count("config.yaml.damaged-", "Z"), 1);
	ck_assert_uint_eq(unit_count("secrets.env.damaged-", "Z"), 1);
	unit_ok(abx_config_store(config, true, "box.timeout", "5m", &unit_err));
	expect("box.timeout", "5m", "global");
}
END_TEST

START_TEST(repositorys_damaged_file_is_an_error)
{
	struct abx_err err = ABX_ERR_INIT;

	unit_write_text("ws/agentbox.yaml", "defaults: [\n");
	ck_assert_int_eq(try_open(&err), ABX_EINVAL);
	unit_has(err.text, unit_path("ws/agentbox.yaml"));
	ck_assert_int_eq(access(unit_path("ws/agentbox.yaml"), F_OK), 0);
	(void)unlink(unit_path("ws/agentbox.yaml"));
	ck_assert_int_eq(mkdir(unit_path("ws/agentbox.yaml"), 0700), 0);
	ck_assert_int_lt(try_open(&err), 0);
	unit_has(err.text, unit_path("ws/agentbox.yaml"));
	(void)rmdir(unit_path("ws/agentbox.yaml"));
	ck_assert_int_eq(mkfifo(unit_path("ws/agentbox.yaml"), 0600), 0);
	ck_assert_int_lt(try_open(&err), 0);
	unit_has(err.text, unit_path("ws/agentbox.yaml"));
}
END_TEST

START_TEST(storing)
{
	abx_autofree char *text = NULL;
	const char *before;
	struct stat st;

	(void)rmdir(unit_path("projects/k"));
	(void)rmdir(unit_path("projects"));
	unit_write_text("config.yaml", "# mine\nbox:\n  timeout: 1m # short\n");
	must_open();
	before = abx_config_get(config, "box.timeout", NULL);
	unit_ok(abx_config_store(config, true, "box.timeout", "2m", &unit_err));
	ck_assert_str_eq(before, "1m");
	expect("box.timeout", "2m", "global");
	text = unit_read("config.yaml");
	ck_assert_str_eq(text, "# mine\nbox:\n  timeout: 2m # short\n");
	unit_ok(abx_config_store(config, false, "box.setup", "make && make check", &unit_err));
	expect("box.setup", "make && make check", "project");
	ck_assert_int_eq(stat(unit_path("projects/k/config.yaml"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	must_open();
	expect("box.setup", "make && make check", "project");
	unit_ok(abx_config_store(config, false, "box.setup", NULL, &unit_err));
	unit_ok(abx_config_store(config, false, "box.setup", NULL, &unit_err));
	expect("box.setup", NULL, NULL);
	ck_assert_int_eq(abx_config_store(config, true, "box.timeout", "soon", NULL), ABX_EINVAL);
	ck_assert_int_eq(abx_config_store(config, true, "box.none", "x", NULL), ABX_EUSAGE);
	expect("box.timeout", "2m", "global");
}
END_TEST

START_TEST(secrets)
{
	abx_autofree char *text = NULL;
	char line[64] = "x=k3y-of-mock-1;";
	struct stat st;

	must_open();
	abx_config_declare_provider(config, "mock", options);
	unit_ok(abx_config_store(config, true, "mock.api_key", "k3y-of-mock-1", &unit_err));
	unit_ok(abx_config_store(config, false, "mock.other-token", "it's $6", &unit_err));
	expect("mock.api_key", "k3y-of-mock-1", "secrets");
	abx_redact(line);
	ck_assert_str_eq(line, "x=***;");
	ck_assert_int_eq(stat(unit_path("secrets.env"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	text = unit_read("secrets.env");
	unit_has(text, "MOCK_API_KEY='k3y-of-mock-1'\n");
	unit_has(text, "AGENTBOX_MOCK_OTHER_TOKEN=");
	ck_assert_int_ne(access(unit_path("config.yaml"), F_OK), 0);
	abx_redact_forget_all();
	must_open();
	(void)snprintf(line, sizeof(line), "x=k3y-of-mock-1;");
	abx_redact(line);
	ck_assert_str_eq(line, "x=***;");
	ck_assert_int_eq(setenv("MOCK_API_KEY", "from-the-environment", 1), 0);
	must_open();
	abx_config_declare_provider(config, "mock", options);
	expect("mock.api_key", "from-the-environment", "env");
	expect("mock.other-token", "it's $6", "secrets");
	(void)snprintf(line, sizeof(line), "from-the-environment");
	abx_redact(line);
	ck_assert_str_eq(line, "***");
	unit_ok(abx_config_store(config, true, "mock.other-token", NULL, &unit_err));
	expect("mock.other-token", NULL, NULL);
	free(text);
	text = unit_read("secrets.env");
	ck_assert_ptr_null(strstr(text, "OTHER_TOKEN"));
	unit_has(text, "MOCK_API_KEY");
}
END_TEST

START_TEST(secrets_in_yaml_are_not_read)
{
	abx_autofree char *said = NULL;
	char line[32] = "written-by-hand";

	unit_write_text("config.yaml", "mock: {api_key: written-by-hand}\n");
	must_open();
	unit_stderr_begin();
	abx_config_declare_provider(config, "mock", options);
	said = unit_stderr_end();
	unit_has(said, "mock.api_key");
	expect("mock.api_key", NULL, NULL);
	abx_redact(line);
	ck_assert_str_eq(line, "***");
}
END_TEST

START_TEST(secrets_become_private)
{
	abx_autofree char *said = NULL;
	struct stat st;

	unit_write_text("secrets.env", "MOCK_API_KEY=abcdefgh\n");
	ck_assert_int_eq(chmod(unit_path("secrets.env"), 0644), 0);
	unit_stderr_begin();
	must_open();
	said = unit_stderr_end();
	unit_has(said, unit_path("secrets.env"));
	ck_assert_int_eq(stat(unit_path("secrets.env"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_ptr_null(strstr(said, "abcdefgh"));
}
END_TEST

/* On a full disk the old file stays whole, and nothing is left beside it. */
START_TEST(full_disk)
{
	struct abx_err err = ABX_ERR_INIT;
	abx_autofree char *text = NULL;

	unit_write_text("config.yaml", "box:\n  timeout: 1m\n");
	must_open();
	unit_disk_full_at(4);
	ck_assert_int_eq(abx_config_store(config, true, "box.timeout", "2m", &err), ABX_EIO);
	unit_disk_free();
	unit_has(err.text, unit_path("config.yaml"));
	text = unit_read("config.yaml");
	ck_assert_str_eq(text, "box:\n  timeout: 1m\n");
	ck_assert_uint_eq(unit_count("config.yaml", ""), 1);
	expect("box.timeout", "1m", "global");
}
END_TEST

#define MANY 30

static int store_one(unsigned int i)
{
	abx_autofree char *name = abx_xasprintf("o%u", i), *key = abx_xasprintf("mock.o%u", i);
	abx_autofree char *value = abx_xasprintf("v%u", i);
	const struct abx_option o = {.struct_size = sizeof(o),
				     .type = ABX_OPT_STRING,
				     .flags = i % 2 ? ABX_OPT_SECRET : 0,
				     .name = name,
				     .help = ""};
	const struct abx_option *const list[] = {&o, NULL};
	struct abx_config *c = NULL;

	if (abx_config_open(unit_home(), NULL, NULL, &c, NULL) < 0)
		return 1;
	abx_config_declare_provider(c, "mock", list);
	return abx_config_store(c, true, key, value, NULL);
}

START_TEST(many_store_at_once)
{
	abx_autofree char *yaml = NULL, *env = NULL, *said = NULL;

	unit_stderr_begin();
	ck_assert_uint_eq(unit_together(MANY, store_one), MANY);
	said = unit_stderr_end();
	yaml = unit_read("config.yaml");
	env = unit_read("secrets.env");
	for (unsigned int i = 0; i < MANY; i++) {
		abx_autofree char *line = i % 2 ? abx_xasprintf("AGENTBOX_MOCK_O%u='v%u'\n", i, i)
						: abx_xasprintf("o%u: v%u\n", i, i);

		unit_has(i % 2 ? env : yaml, line);
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("config");
	TCase *tc = tcase_create("config");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, nothing_set);
	tcase_add_test(tc, layers_in_order);
	tcase_add_test(tc, global_only);
	tcase_add_test(tc, repository_is_refused);
	tcase_add_test(tc, repository_may);
	tcase_add_test(tc, provider_by_path);
	tcase_add_test(tc, providers_options);
	tcase_add_test(tc, repository_and_providers_options);
	tcase_add_test(tc, wrong_types);
	tcase_add_test(tc, checking_values);
	tcase_add_test(tc, unknown_keys_warn_once);
	tcase_add_test(tc, own_damaged_file_is_set_aside);
	tcase_add_test(tc, repositorys_damaged_file_is_an_error);
	tcase_add_test(tc, storing);
	tcase_add_test(tc, secrets);
	tcase_add_test(tc, secrets_in_yaml_are_not_read);
	tcase_add_test(tc, secrets_become_private);
	tcase_add_test(tc, full_disk);
	tcase_add_test(tc, many_store_at_once);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
