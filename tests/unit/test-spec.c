/* SPDX-License-Identifier: MIT */
/* What a box is given beyond its project. */
#include "core/box/spec.h"

#include "tests/unit/unit.h"

static struct abx_strv one_mount, one_volume, ports;

static void setup(void)
{
	unit_home_setup();
	memset(&one_mount, 0, sizeof(one_mount));
	memset(&one_volume, 0, sizeof(one_volume));
	memset(&ports, 0, sizeof(ports));
}

static void teardown(void)
{
	abx_strv_release(&one_mount);
	abx_strv_release(&one_volume);
	abx_strv_release(&ports);
	unit_dir_teardown();
}

static int make(const struct abx_spec_args *args, struct abx_box_spec *ret)
{
	return abx_box_spec_make(args, NULL, NULL, unit_home(), ret, &unit_err);
}

START_TEST(all_of_it_survives_the_record)
{
	struct abx_spec_args args = {.egress = "none",
				     .cpu = "1.5",
				     .memory = "512M",
				     .disk = "1G",
				     .pids = "100",
				     .size = "big",
				     .location = "moon",
				     .mounts = &one_mount,
				     .volumes = &one_volume,
				     .ports = &ports,
				     .read_only = true,
				     .private_urls = true};
	abx_autofree char *text = NULL, *again = NULL;
	struct abx_box_spec s, t;

	abx_strv_add(&one_mount, "/usr/../usr:/mnt//host/./x:rw");
	abx_strv_add(&one_mount, "/etc:/mnt/etc");
	abx_strv_add(&one_volume, "cache:/var/cache");
	abx_strv_add(&ports, "80");
	abx_strv_add(&ports, "8080");
	abx_strv_add(&ports, "80");
	unit_ok(make(&args, &s));
	ck_assert_uint_eq(s.cpu_milli, 1500);
	ck_assert_uint_eq(s.mem_bytes, UINT64_C(512) << 20);
	ck_assert_uint_eq(s.n_ports, 2);
	ck_assert_str_eq(s.mounts.items[0].source, "/usr");
	ck_assert_str_eq(s.mounts.items[0].target, "/mnt/host/x");
	ck_assert(!s.mounts.items[0].read_only);
	ck_assert(s.mounts.items[1].read_only);
	text = abx_box_spec_json(&s);
	unit_ok(abx_box_spec_parse(text, &t, &unit_err));
	again = abx_box_spec_json(&t);
	ck_assert_str_eq(again, text);
	ck_assert(t.read_only && t.private_urls && t.has_egress && !t.egress.all);
	abx_box_spec_release(&s);
	abx_box_spec_release(&t);
	/* A copy of that box, and what it is given instead. */
	args = (struct abx_spec_args){.egress = "all", .memory = "1G"};
	unit_ok(abx_box_spec_make(&args, text, NULL, unit_home(), &s, &unit_err));
	ck_assert_uint_eq(s.cpu_milli, 1500);
	ck_assert_uint_eq(s.mem_bytes, UINT64_C(1) << 30);
	ck_assert(s.egress.all && s.read_only);
	abx_box_spec_release(&s);
}
END_TEST

START_TEST(nothing_is_nothing)
{
	struct abx_box_spec s;

	unit_ok(abx_box_spec_make(NULL, NULL, NULL, unit_home(), &s, &unit_err));
	ck_assert_ptr_null(abx_box_spec_json(&s));
	unit_ok(abx_box_spec_parse(NULL, &s, &unit_err));
	ck_assert(!s.has_egress);
}
END_TEST

static void refused(const struct abx_spec_args *args, int code, const char *text)
{
	struct abx_box_spec s;

	ck_assert_int_eq(make(args, &s), code);
	unit_has(unit_err.text, text);
}

START_TEST(nonsense_is_refused)
{
	static const char *const mounts[] = {
		"/nope:/x",	 "/usr",	  "/usr:",
		":/x",		 "/usr:x",	  "/usr:/x:rx",
		"/usr:/x:ro:ro", "/usr:/",	  "/usr:/workspace",
		"/usr:/proc/x",	 "/usr:/a/../b",  "/usr:/workspace/",
		"/usr:/sys",	 "/usr:/dev/shm", "/usr:/run/agentbox"};
	static const char *const volumes[] = {"v",	 "v:",	  ":/x",    "V:/x",  "v:x",
					      "v:/x:ro", "-v:/x", "v/w:/x", "..:/x", "v:/proc"};
	struct abx_spec_args args = {.mounts = &one_mount};

	refused(&(struct abx_spec_args){.cpu = "0"}, ABX_EUSAGE, "--cpu: '0'");
	refused(&(struct abx_spec_args){.cpu = "1.2345"}, ABX_EUSAGE, "--cpu");
	refused(&(struct abx_spec_args){.cpu = "0.001"}, ABX_EUSAGE, "--cpu");
	refused(&(struct abx_spec_args){.memory = "1"}, ABX_EUSAGE, "too little");
	refused(&(struct abx_spec_args){.disk = "x"}, ABX_EUSAGE, "--disk");
	refused(&(struct abx_spec_args){.pids = "0"}, ABX_EUSAGE, "--pids");
	refused(&(struct abx_spec_args){.pids = "-1"}, ABX_EUSAGE, "--pids");
	refused(&(struct abx_spec_args){.egress = "a"}, ABX_EUSAGE, "--egress: 'a'");
	abx_strv_add(&one_mount, "");
	for (size_t i = 0; i < ABX_N_ELEMENTS(mounts); i++) {
		abx_xreplace(&one_mount.items[0], mounts[i]);
		refused(&args, ABX_EUSAGE, "--mount: ");
	}
	args = (struct abx_spec_args){.volumes = &one_volume};
	abx_strv_add(&one_volume, "");
	for (size_t i = 0; i < ABX_N_ELEMENTS(volumes); i++) {
		abx_xreplace(&one_volume.items[0], volumes[i]);
		refused(&args, ABX_EUSAGE, "--volume: ");
	}
	abx_xreplace(&one_volume.items[0], "v:/x");
	abx_xreplace(&one_mount.items[0], "/usr:/x");
	args.mounts = &one_mount;
	refused(&args, ABX_EUSAGE, "mounted twice");
}
END_TEST

START_TEST(our_own_files_stay_here)
{
	const struct abx_spec_args args = {.mounts = &one_mount};
	abx_autofree char *self = abx_xasprintf("%s:/x", unit_dir());

	abx_strv_add(&one_mount, self);
	refused(&args, ABX_EPOLICY, "agentbox's own files");
	abx_xreplace(&one_mount.items[0], "/:/x");
	refused(&args, ABX_EPOLICY, "agentbox's own files");
}
END_TEST

START_TEST(a_record_that_cannot_be_read)
{
	struct abx_box box = {.spec = NULL};
	struct abx_box_spec s;
	char broken[] = "{\"ports\": 7}", fine[] = "{\"cpu_milli\": 100}";

	ck_assert_int_eq(abx_box_spec_parse(broken, &s, &unit_err), ABX_ECORRUPT);
	ck_assert_uint_eq(abx_box_start_req(&box).flags, 0);
	box.spec = fine;
	ck_assert_uint_eq(abx_box_start_req(&box).flags, 0);
	/* It must not open what was closed. */
	box.spec = broken;
	ck_assert_uint_eq(abx_box_start_req(&box).flags, ABX_START_READ_ONLY);
}
END_TEST

/* Options, then the box that is copied, then settings; without what was mounted there. */
START_TEST(a_copy_is_given_what_the_first_was)
{
	struct abx_spec_args first = {.egress = "none",
				      .memory = "512M",
				      .mounts = &one_mount,
				      .volumes = &one_volume,
				      .read_only = true};
	struct abx_spec_args args = {.memory = "64M"};
	struct abx_config *config;
	struct abx_box_spec s;
	abx_autofree char *text = NULL;

	abx_strv_add(&one_mount, "/usr:/mnt/usr");
	abx_strv_add(&one_volume, "cache:/var/cache");
	unit_ok(make(&first, &s));
	text = abx_box_spec_json(&s);
	abx_box_spec_release(&s);
	unit_ok(abx_box_spec_drop_mounts(&text, &unit_err));
	unit_ok(abx_config_open(unit_home(), NULL, NULL, &config, &unit_err));
	unit_ok(abx_config_set_flag(config, "box.egress", "all", &unit_err));
	unit_ok(abx_config_set_flag(config, "box.pids", "77", &unit_err));
	unit_ok(abx_box_spec_make(&args, text, config, unit_home(), &s, &unit_err));
	ck_assert(s.has_egress && !s.egress.all);
	ck_assert_uint_eq(s.mem_bytes, UINT64_C(64) << 20);
	ck_assert_uint_eq(s.max_pids, 77);
	ck_assert(s.read_only);
	ck_assert_uint_eq(s.mounts.len, 0);
	ck_assert_uint_eq(s.volumes.len, 0);
	abx_box_spec_release(&s);
	abx_config_close(config);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("spec");
	TCase *tc = tcase_create("spec");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, all_of_it_survives_the_record);
	tcase_add_test(tc, nothing_is_nothing);
	tcase_add_test(tc, nonsense_is_refused);
	tcase_add_test(tc, our_own_files_stay_here);
	tcase_add_test(tc, a_record_that_cannot_be_read);
	tcase_add_test(tc, a_copy_is_given_what_the_first_was);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
