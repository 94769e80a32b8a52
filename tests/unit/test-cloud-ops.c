/* SPDX-License-Identifier: MIT */
/* Clouds: the operations that a provider need not have. */
#include <pthread.h>
#include <signal.h>

#include "core/state/attempt.h"
#include "core/state/lock.h"
#include "core/util/clock.h"
#include "core/util/redact.h"
#include "tests/unit/clouds.h"

static struct abx_sandbox_copy box;
static const struct abx_kv labels[] = {{"agentbox", "true"}, {"agentbox.attempt", "a1"}};

static void setup(void)
{
	clouds_setup();
	memset(&box, 0, sizeof(box));
}

static void teardown(void)
{
	const struct abx_call_opts undo = {.cleanup = true};

	if (box.s.id)
		(void)abx_cloud_destroy(cloud, &undo, &box.s, &stop_req, NULL);
	abx_sandbox_copy_release(&box);
	clouds_teardown();
}

static void open_with_box(const char *name, const char *faults)
{
	const struct abx_provision req = {ABX_INIT(struct abx_provision), .name = "one",
					  .idempotency_key = "0123456789abcdef", .labels = labels,
					  .n_labels = 1};

	open_cloud(name, faults);
	unit_ok(abx_cloud_provision(cloud, &no_opts, &req, &box, &unit_err));
}

static uint32_t state_now(void)
{
	struct abx_sandbox_copy now;
	uint32_t state;

	unit_ok(abx_cloud_get(cloud, &no_opts, &box.s, &now, &unit_err));
	state = now.s.state;
	abx_sandbox_copy_release(&now);
	return state;
}

START_TEST(pause_and_resume)
{
	open_with_box("mock",
		      "pause:fail=ENETWORK,times=1;resume:fail=ERATE,retry_after=20,times=1");
	unit_ok(abx_cloud_pause(cloud, &no_opts, &box.s, &stop_req, &unit_err));
	ck_assert_uint_eq(state_now(), ABX_STATE_PAUSED);
	unit_ok(abx_cloud_resume(cloud, &no_opts, &box.s, &start_req, &unit_err));
	ck_assert_uint_eq(state_now(), ABX_STATE_RUNNING);
}
END_TEST

static void cannot(int r, const char *what)
{
	char text[160];

	(void)snprintf(text, sizeof(text), "provider 'mockbare': cannot %s", what);
	ck_assert_int_eq(r, ABX_ENOTSUP);
	ck_assert_str_eq(unit_err.text, text);
}

START_TEST(absence_is_said)
{
	const struct abx_policy policy = {ABX_INIT(struct abx_policy)};
	const struct abx_url_req url_req = {ABX_INIT(struct abx_url_req), .port = 80};
	const struct abx_snapshot_req snap_req = {ABX_INIT(struct abx_snapshot_req)};
	const struct abx_volume_req vol_req = {ABX_INIT(struct abx_volume_req), .name = "v"};
	const struct abx_prepare prep = {ABX_INIT(struct abx_prepare), .name = "x", .from_fd = -1};
	const char *const argv[] = {"echo", NULL};
	struct abx_snapshot_list snaps;
	struct abx_resource_list res;
	struct abx_row_list rows;
	struct abx_usage usage;
	bool exists;

	open_with_box("mockbare", "");
	cannot(abx_cloud_pause(cloud, NULL, &box.s, &stop_req, &unit_err), "pause boxes");
	cannot(abx_cloud_resume(cloud, NULL, &box.s, &start_req, &unit_err), "resume boxes");
	cannot(abx_cloud_renew(cloud, NULL, &box.s, 1, 0, &unit_err), "extend the life of boxes");
	cannot(abx_cloud_set_egress(cloud, NULL, &box.s, &policy, &unit_err),
	       "change the egress of a box that exists");
	cannot(abx_cloud_exec_signal(cloud, NULL, &box.s, "1", SIGTERM, &unit_err),
	       "send signals to commands");
	cannot(abx_cloud_command(cloud, NULL, NULL, argv, NULL, &rows, &unit_err),
	       "run subcommands of its own");
	cannot(abx_cloud_stats(cloud, NULL, &box.s, &rows, &unit_err), "say what a box uses");
	cannot(abx_cloud_usage(cloud, NULL, &box.s, &usage, &unit_err), "say what a box has used");
	cannot(abx_cloud_url(cloud, NULL, &box.s, &url_req, NULL, &unit_err),
	       "make the ports of a box reachable");
	cannot(abx_cloud_snapshot_create(cloud, NULL, &box.s, &snap_req, NULL, &unit_err),
	       "make snapshots");
	cannot(abx_cloud_snapshot_list(cloud, NULL, NULL, 0, &snaps, &unit_err), "list snapshots");
	cannot(abx_cloud_snapshot_exists(cloud, NULL, "x", &exists, &unit_err), "list snapshots");
	cannot(abx_cloud_snapshot_delete(cloud, NULL, "x", &unit_err), "delete snapshots");
	cannot(abx_cloud_prepare(cloud, NULL, &prep, NULL, NULL, &unit_err), "prepare images");
	cannot(abx_cloud_image_list(cloud, NULL, NULL, 0, &snaps, &unit_err), "list images");
	cannot(abx_cloud_volume_ensure(cloud, NULL, &vol_req, NULL, &unit_err), "keep volumes");
	cannot(abx_cloud_volume_list(cloud, NULL, NULL, 0, &res, &unit_err), "list volumes");
	cannot(abx_cloud_volume_delete(cloud, NULL, "v", &unit_err), "delete volumes");
}
END_TEST

struct seen {
	char text[512];
	size_t enough;
	pthread_t stopper;
	bool stopping;
};

static void *stop_it(void *arg ABX_UNUSED)
{
	(void)abx_cloud_stop(cloud, &no_opts, &box.s, &stop_req, NULL);
	return NULL;
}

static int on_change(void *arg, const struct abx_sandbox *s)
{
	struct seen *seen = arg;
	size_t len = strlen(seen->text);

	(void)snprintf(seen->text + len, sizeof(seen->text) - len, "%u ", s->state);
	if (!seen->stopping) {
		seen->stopping = true;
		ck_assert_int_eq(pthread_create(&seen->stopper, NULL, stop_it, NULL), 0);
	}
	return --seen->enough == 0;
}

START_TEST(watching_shows_changes)
{
	struct seen seen = {.enough = 2};
	const struct abx_watcher to = {on_change, &seen};
	const struct abx_kv other[] = {{"agentbox", "no"}};
	const struct abx_call_opts brief = {.timeout_ms = 100};

	open_with_box("mock", "");
	ck_assert_int_eq(abx_cloud_watch(cloud, &brief, other, 1, &to, &unit_err), ABX_ETIMEDOUT);
	ck_assert_str_eq(seen.text, "");
	ck_assert_int_eq(abx_cloud_watch(cloud, &no_opts, labels, 1, &to, &unit_err),
			 ABX_ECANCELED);
	ck_assert_int_eq(pthread_join(seen.stopper, NULL), 0);
	ck_assert_str_eq(seen.text, "2 6 ");
}
END_TEST

static int on_log(void *arg, int stream, const void *data, size_t len)
{
	struct seen *seen = arg;
	size_t at = strlen(seen->text);

	(void)snprintf(seen->text + at, sizeof(seen->text) - at, "%d:%.*s", stream, (int)len,
		       (const char *)data);
	return seen->enough && --seen->enough == 0;
}

START_TEST(logs_come_as_they_are)
{
	struct seen seen = {.enough = 0};
	const struct abx_log_sink to = {on_log, &seen};
	struct abx_logs_req req = {ABX_INIT(struct abx_logs_req), .tail = 1};

	open_with_box("mock", "logs:fail=EREMOTE,times=1");
	unit_ok(abx_cloud_stop(cloud, &no_opts, &box.s, &stop_req, &unit_err));
	unit_ok(abx_cloud_start(cloud, &no_opts, &box.s, &start_req, &unit_err));
	unit_ok(abx_cloud_logs(cloud, &no_opts, &box.s, &req, &to, &unit_err));
	ck_assert_str_eq(seen.text, "1:started\n");
	req.flags = ABX_LOGS_FOLLOW;
	req.tail = 0;
	seen.enough = 1;
	ck_assert_int_eq(abx_cloud_logs(cloud, &no_opts, &box.s, &req, &to, &unit_err),
			 ABX_ECANCELED);
	ck_assert_str_eq(seen.text, "1:started\n1:stopped\nstarted\n");
}
END_TEST

START_TEST(looking_at_a_box)
{
	struct abx_url_req req = {ABX_INIT(struct abx_url_req), .port = 8080};
	char token[] = "mock-url-token";
	struct abx_rate_list rates;
	struct abx_file_list files;
	struct abx_row_list rows;
	struct abx_url_copy url;
	struct abx_usage usage;

	open_with_box("mock", "url:garbage,times=1;list_files:garbage,times=1;"
			      "stats:fail=ENETWORK,times=1");
	unit_ok(abx_cloud_stats(cloud, &no_opts, &box.s, &rows, &unit_err));
	ck_assert_uint_eq(rows.len, 1);
	ck_assert_str_eq(abx_row_get(&rows.items[0], "memory_bytes"), "1048576");
	abx_row_list_release(&rows);
	unit_ok(abx_cloud_choices(cloud, &no_opts, "idle", &rows, &unit_err));
	ck_assert_str_eq(abx_row_get(&rows.items[0], "value"), "5m");
	abx_row_list_release(&rows);
	unit_ok(abx_cloud_rates(cloud, &no_opts, NULL, &rates, &unit_err));
	ck_assert_uint_eq(rates.len, 2);
	ck_assert_str_eq(rates.items[1].r.currency, "USD");
	abx_rate_list_release(&rates);
	unit_ok(abx_cloud_usage(cloud, &no_opts, &box.s, &usage, &unit_err));
	ck_assert_int_eq(usage.billed_ms, 2000);
	ck_assert_int_eq(abx_cloud_url(cloud, &no_opts, &box.s, &req, &url, &unit_err), ABX_EPROTO);
	unit_has(unit_err.text, "url: the answer is no web address");
	req.flags = ABX_URLREQ_SIGNED;
	unit_ok(abx_cloud_url(cloud, &no_opts, &box.s, &req, &url, &unit_err));
	unit_has(url.u.url, "https://8080-");
	abx_url_copy_release(&url);
	abx_redact(token);
	ck_assert_str_eq(token, "***");
	ck_assert_int_eq(abx_cloud_list_files(cloud, &no_opts, &box.s, "/", &files, &unit_err),
			 ABX_EPROTO);
	unit_ok(abx_cloud_list_files(cloud, &no_opts, &box.s, "/", &files, &unit_err));
	ck_assert_uint_eq(files.len, 3);
	abx_file_list_release(&files);
	ck_assert_int_eq(abx_cloud_list_files(cloud, &no_opts, &box.s, "/no", &files, &unit_err),
			 ABX_ENOTFOUND);
}
END_TEST

START_TEST(changing_a_box)
{
	const char *const allow[] = {"example.com", "10.0.0.0/8", NULL};
	const struct abx_policy policy = {ABX_INIT(struct abx_policy), .allow = allow};
	const char *const argv[] = {"echo", "a", "b", NULL};
	abx_autofree char *record = NULL, *path = NULL;
	struct abx_sandbox_copy now;
	struct abx_row_list rows;

	open_with_box("mock", "set_egress:fail=EREMOTE,times=2");
	unit_ok(abx_cloud_set_egress(cloud, &no_opts, &box.s, &policy, &unit_err));
	path = abx_xasprintf("providers/mock/sandboxes/%s.json", box.s.id);
	record = unit_read(path);
	unit_has(record, "\"example.com,10.0.0.0/8\"");
	unit_ok(abx_cloud_renew(cloud, &no_opts, &box.s, 4711, 0, &unit_err));
	unit_ok(abx_cloud_get(cloud, &no_opts, &box.s, &now, &unit_err));
	ck_assert_int_eq(now.s.expires_at_ms, 4711);
	abx_sandbox_copy_release(&now);
	unit_ok(abx_cloud_command(cloud, &no_opts, NULL, argv, NULL, &rows, &unit_err));
	ck_assert_uint_eq(rows.len, 2);
	ck_assert_str_eq(abx_row_get(&rows.items[1], "word"), "b");
	abx_row_list_release(&rows);
	ck_assert_int_eq(
		abx_cloud_exec_signal(cloud, &no_opts, &box.s, "999999", SIGTERM, &unit_err),
		ABX_ENOTFOUND);
}
END_TEST

static int snapshot(const struct abx_call_opts *o, struct abx_snapshot_copy *ret)
{
	const struct abx_snapshot_req req = {ABX_INIT(struct abx_snapshot_req), .n_labels = 2,
					     .name = "s1", .labels = labels};

	return abx_cloud_snapshot_create(cloud, o, &box.s, &req, ret, &unit_err);
}

START_TEST(snapshots)
{
	struct abx_snapshot_copy s;
	struct abx_snapshot_list list;
	bool exists = false;

	open_with_box("mock", "");
	unit_ok(snapshot(&no_opts, &s));
	ck_assert_str_eq(s.s.name, "s1");
	unit_ok(abx_cloud_snapshot_list(cloud, &no_opts, labels, 2, &list, &unit_err));
	ck_assert_uint_eq(list.len, 1);
	ck_assert_str_eq(list.items[0].s.ref, s.s.ref);
	abx_snapshot_list_release(&list);
	unit_ok(abx_cloud_snapshot_exists(cloud, &no_opts, s.s.ref, &exists, &unit_err));
	ck_assert(exists);
	unit_ok(abx_cloud_snapshot_delete(cloud, &no_opts, s.s.ref, &unit_err));
	unit_ok(abx_cloud_snapshot_delete(cloud, &no_opts, s.s.ref, &unit_err));
	unit_ok(abx_cloud_snapshot_exists(cloud, &no_opts, s.s.ref, &exists, &unit_err));
	ck_assert(!exists);
	abx_snapshot_copy_release(&s);
}
END_TEST

START_TEST(a_lost_answer_is_found_by_label)
{
	struct abx_snapshot_copy s;
	struct abx_snapshot_list list;

	open_with_box("mock", "snapshot_create:lose,times=1");
	unit_ok(snapshot(&no_opts, &s));
	unit_ok(abx_cloud_snapshot_list(cloud, &no_opts, NULL, 0, &list, &unit_err));
	ck_assert_uint_eq(list.len, 1);
	ck_assert_str_eq(list.items[0].s.ref, s.s.ref);
	abx_snapshot_list_release(&list);
	abx_snapshot_copy_release(&s);
}
END_TEST

START_TEST(making_a_snapshot_is_not_repeated)
{
	struct abx_snapshot_copy s;

	open_with_box("mock", "snapshot_create:fail=ENETWORK,times=1");
	ck_assert_int_eq(snapshot(&no_opts, &s), ABX_ENETWORK);
	unit_ok(snapshot(&no_opts, &s));
	abx_snapshot_copy_release(&s);
}
END_TEST

START_TEST(what_is_made_is_on_record_from_the_first)
{
	const struct abx_attempt_of what = {"mock", "snapshot", "s1", "points/s1.json"};
	struct abx_attempt a = ABX_ATTEMPT_INIT;
	abx_autofree char *quoted = NULL;
	struct abx_call_opts o = {0};
	struct abx_resource_rows rows;
	struct abx_snapshot_copy s;
	int fd;

	open_with_box("mock", "");
	unit_ok(abx_attempt_begin(unit_home(), ctx.db, &what, &a, &unit_err));
	ck_assert_int_eq(abx_lock_box(unit_home(), a.id, 0, &fd, NULL), ABX_ESTATE);
	unit_ok(abx_resources_list(ctx.db, "mock", NULL, &rows, &unit_err));
	ck_assert_uint_eq(rows.len, 1);
	ck_assert_uint_eq(rows.items[0].phase, ABX_PHASE_INTENT);
	ck_assert_ptr_null(rows.items[0].id);
	abx_resource_rows_release(&rows);
	o.attempt = a.id;
	unit_ok(snapshot(&o, &s));
	unit_ok(abx_resources_list(ctx.db, "mock", NULL, &rows, &unit_err));
	ck_assert_uint_eq(rows.len, 1);
	ck_assert_uint_eq(rows.items[0].phase, ABX_PHASE_EXISTS);
	ck_assert_str_eq(rows.items[0].id, s.s.ref);
	ck_assert(!abx_attempt_is_kept(unit_home(), &rows.items[0]));
	ck_assert_int_eq(mkdir(unit_path("points"), 0700), 0);
	unit_write_text("points/s1.json", "{}");
	ck_assert(!abx_attempt_is_kept(unit_home(), &rows.items[0]));
	unit_write_text("points/s1.json", s.s.ref);
	ck_assert(!abx_attempt_is_kept(unit_home(), &rows.items[0]));
	quoted = abx_xasprintf("{\"ref\": \"%s\"}", s.s.ref);
	unit_write_text("points/s1.json", quoted);
	ck_assert(abx_attempt_is_kept(unit_home(), &rows.items[0]));
	abx_resource_rows_release(&rows);
	unit_ok(abx_attempt_keep(ctx.db, &a, &unit_err));
	abx_attempt_end(unit_home(), ctx.db, &a, false);
	unit_ok(abx_resources_list(ctx.db, "mock", NULL, &rows, &unit_err));
	ck_assert_uint_eq(rows.len, 0);
	abx_resource_rows_release(&rows);
	abx_snapshot_copy_release(&s);
}
END_TEST

START_TEST(images)
{
	struct seen seen = {.enough = 0};
	const struct abx_log_sink log = {on_log, &seen};
	struct abx_prepare req = {ABX_INIT(struct abx_prepare), .name = "base", .from = "debian",
				  .labels = labels, .n_labels = 2};
	struct abx_snapshot_copy s;
	struct abx_snapshot_list list;

	open_cloud("mock", "prepare:lose,times=1;prepare-build:fail=EIO,after=0,times=1");
	req.context_fd = -1;
	req.from_fd = open(unit_path("root.tar"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_eq(ftruncate(req.from_fd, 1024), 0);
	ck_assert_int_eq(abx_cloud_prepare(cloud, &no_opts, &req, &log, &s, &unit_err), ABX_EIO);
	unit_has(seen.text, "2:the build broke off\n");
	unit_ok(abx_cloud_prepare(cloud, &no_opts, &req, &log, &s, &unit_err));
	(void)close(req.from_fd);
	unit_has(seen.text, "1:step 2: a file of at least 512 bytes\n");
	unit_ok(abx_cloud_image_list(cloud, &no_opts, labels, 2, &list, &unit_err));
	ck_assert_uint_eq(list.len, 1);
	ck_assert_str_eq(list.items[0].s.ref, s.s.ref);
	abx_snapshot_list_release(&list);
	unit_ok(abx_cloud_image_delete(cloud, &no_opts, s.s.ref, &unit_err));
	abx_snapshot_copy_release(&s);
}
END_TEST

START_TEST(volumes)
{
	const struct abx_volume_req req = {ABX_INIT(struct abx_volume_req), .n_labels = 1,
					   .name = "cache", .labels = labels};
	struct abx_resource_list list;
	struct abx_resource_copy v;

	open_cloud("mock", "volume_ensure:lose,times=1");
	unit_ok(abx_cloud_volume_ensure(cloud, &no_opts, &req, &v, &unit_err));
	ck_assert_str_eq(v.r.id, "vol-cache");
	abx_resource_copy_release(&v);
	unit_ok(abx_cloud_volume_ensure(cloud, &no_opts, &req, &v, &unit_err));
	abx_resource_copy_release(&v);
	unit_ok(abx_cloud_volume_list(cloud, &no_opts, labels, 1, &list, &unit_err));
	ck_assert_uint_eq(list.len, 1);
	ck_assert_str_eq(list.items[0].r.name, "cache");
	abx_resource_list_release(&list);
	unit_ok(abx_cloud_volume_delete(cloud, &no_opts, "vol-cache", &unit_err));
	unit_ok(abx_cloud_volume_delete(cloud, &no_opts, "vol-cache", &unit_err));
	unit_ok(abx_cloud_volume_list(cloud, &no_opts, NULL, 0, &list, &unit_err));
	ck_assert_uint_eq(list.len, 0);
	abx_resource_list_release(&list);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("cloud-ops");
	TCase *tc = tcase_create("mock");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, pause_and_resume);
	tcase_add_test(tc, absence_is_said);
	tcase_add_test(tc, watching_shows_changes);
	tcase_add_test(tc, logs_come_as_they_are);
	tcase_add_test(tc, looking_at_a_box);
	tcase_add_test(tc, changing_a_box);
	tcase_add_test(tc, snapshots);
	tcase_add_test(tc, a_lost_answer_is_found_by_label);
	tcase_add_test(tc, making_a_snapshot_is_not_repeated);
	tcase_add_test(tc, what_is_made_is_on_record_from_the_first);
	tcase_add_test(tc, images);
	tcase_add_test(tc, volumes);
	suite_add_tcase(s, tc);
	return s;
}

PLUGINS_MAIN(suite)
