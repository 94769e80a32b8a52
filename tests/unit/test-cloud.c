/* SPDX-License-Identifier: MIT */
/* Clouds: operations on the mock, their failures, deadlines and cancels. */
#include <poll.h>
#include <pthread.h>

#include "core/host/run.h"
#include "core/state/journal.h"
#include "core/util/clock.h"
#include "core/util/redact.h"
#include "tests/unit/clouds.h"

static int provision(const struct abx_call_opts *o, struct abx_sandbox_copy *ret)
{
	static const struct abx_kv labels[] = {{"agentbox", "true"}, {"agentbox.box", "b1"}};
	const struct abx_provision req = {ABX_INIT(struct abx_provision), .name = "one",
					  .idempotency_key = "0123456789abcdef", .labels = labels,
					  .n_labels = 2};

	return abx_cloud_provision(cloud, o, &req, ret, &unit_err);
}

struct collected {
	char out[4096], err[1024];
	size_t out_len, err_len;
	int32_t answer;
	bool give_up; /* as soon as there is output */
};

static void give_up(void)
{
	const uint64_t one = 1;

	ck_assert_int_eq(write(ctx.cancel_fd, &one, sizeof(one)), (ssize_t)sizeof(one));
}

static int32_t on_output(void *io, int32_t stream, const void *data, size_t len)
{
	struct collected *c = io;
	char *to = stream == ABX_STREAM_STDOUT ? c->out : c->err;
	size_t *at = stream == ABX_STREAM_STDOUT ? &c->out_len : &c->err_len;
	size_t size = stream == ABX_STREAM_STDOUT ? sizeof(c->out) : sizeof(c->err);

	ck_assert_uint_lt(*at + len, size);
	memcpy(to + *at, data, len);
	*at += len;
	if (c->give_up)
		give_up();
	return c->answer;
}

static int exec_script(const struct abx_call_opts *o, const struct abx_sandbox *s,
		       const char *script, int stdin_fd, struct collected *c, struct abx_exit *ret)
{
	const char *const argv[] = {"sh", "-c", script, "sh", NULL};
	const struct abx_exec req = {ABX_INIT(struct abx_exec), .argv = argv, .stdin_fd = stdin_fd,
				     .control_fd = -1,		.io = c,      .output = on_output};

	memset(c->out, 0, sizeof(c->out));
	memset(c->err, 0, sizeof(c->err));
	c->out_len = c->err_len = 0;
	return abx_cloud_exec(cloud, o, s, &req, ret, &unit_err);
}

START_TEST(life_of_a_sandbox)
{
	static const struct abx_kv wanted[] = {{"agentbox.box", "b1"}};
	static const struct abx_kv other[] = {{"agentbox.box", "b2"}};
	struct collected c = {.answer = 0};
	struct abx_sandbox_copy s, again;
	struct abx_sandbox_list list;
	char *account = NULL;
	struct abx_exit e;

	open_cloud("mock", "");
	unit_ok(abx_cloud_verify(cloud, &no_opts, &account, &unit_err));
	ck_assert_str_eq(account, "mock-account");
	free(account);
	unit_ok(provision(&no_opts, &s));
	ck_assert_str_eq(abx_sandbox_label(&s.s, "agentbox.box"), "b1");
	unit_ok(abx_cloud_list(cloud, &no_opts, wanted, 1, &list, &unit_err));
	ck_assert_uint_eq(list.len, 1);
	ck_assert_str_eq(list.items[0].s.id, s.s.id);
	abx_sandbox_list_release(&list);
	unit_ok(abx_cloud_list(cloud, &no_opts, other, 1, &list, &unit_err));
	ck_assert_uint_eq(list.len, 0);
	abx_sandbox_list_release(&list);
	unit_ok(exec_script(&no_opts, &s.s, "echo out; echo err >&2; exit 7", -1, &c, &e));
	ck_assert_int_eq(e.code, 7);
	ck_assert_str_eq(c.out, "out\n");
	ck_assert_str_eq(c.err, "err\n");
	unit_ok(abx_cloud_stop(cloud, &no_opts, &s.s, &stop_req, &unit_err));
	unit_ok(abx_cloud_get(cloud, &no_opts, &s.s, &again, &unit_err));
	ck_assert_uint_eq(again.s.state, ABX_STATE_STOPPED);
	abx_sandbox_copy_release(&again);
	ck_assert_int_eq(exec_script(&no_opts, &s.s, "true", -1, &c, &e), ABX_ESTATE);
	unit_has(unit_err.text, "provider 'mock': exec: the sandbox is stopped");
	unit_ok(abx_cloud_start(cloud, &no_opts, &s.s, &start_req, &unit_err));
	unit_ok(abx_cloud_destroy(cloud, &no_opts, &s.s, &stop_req, &unit_err));
	unit_ok(abx_cloud_destroy(cloud, &no_opts, &s.s, &stop_req, &unit_err));
	ck_assert_int_eq(abx_cloud_get(cloud, &no_opts, &s.s, &again, &unit_err), ABX_ENOTFOUND);
	ck_assert_uint_gt(abx_cloud_round_trips(cloud), 5);
	abx_sandbox_copy_release(&s);
}
END_TEST

START_TEST(exec_passes_bytes_and_signals)
{
	struct collected c = {.answer = 0};
	struct abx_sandbox_copy s;
	struct abx_exit e;
	int pair[2];

	open_cloud("mock", "");
	unit_ok(provision(&no_opts, &s));
	ck_assert_int_eq(pipe2(pair, O_CLOEXEC), 0);
	ck_assert_int_eq(write(pair[1], "a\0b\n", 4), 4);
	(void)close(pair[1]);
	unit_ok(exec_script(&no_opts, &s.s, "cat", pair[0], &c, &e));
	(void)close(pair[0]);
	ck_assert_uint_eq(c.out_len, 4);
	ck_assert_int_eq(memcmp(c.out, "a\0b\n", 4), 0);
	unit_ok(exec_script(&no_opts, &s.s, "kill -TERM $$", -1, &c, &e));
	ck_assert_int_eq(e.signo, SIGTERM);
	/* Its descriptors are ours no more. */
	unit_ok(exec_script(&no_opts, &s.s,
			    "ls -l /proc/$$/fd | grep -e agentbox.db -e eventfd -e '[.]so'", -1, &c,
			    &e));
	ck_assert_str_eq(c.out, "");
	abx_sandbox_copy_release(&s);
}
END_TEST

static void tar_round_trip(const char *name)
{
	struct collected c = {.answer = 0};
	struct abx_sandbox_copy s;
	struct abx_transfer t = {ABX_INIT(struct abx_transfer), .size_bytes = -1,
				 .flags = ABX_XFER_CREATE_PARENTS, .path = "/workspace/deep/er"};
	struct abx_exit e;
	struct stat st;

	open_cloud(name, "");
	unit_ok(provision(&no_opts, &s));
	unit_ok(exec_script(&no_opts, &s.s,
			    "mkdir a && echo hi >a/f && chmod 750 a/f && ln -s f a/l", -1, &c, &e));
	ck_assert_int_eq(e.code, 0);
	t.fd = open(unit_path("x.tar"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	t.path = "/workspace/a";
	unit_ok(abx_cloud_get_tar(cloud, &no_opts, &s.s, &t, &unit_err));
	ck_assert_int_eq(fstat(t.fd, &st), 0);
	ck_assert_int_gt(st.st_size, 1024);
	ck_assert_int_eq(lseek(t.fd, 0, SEEK_SET), 0);
	t.path = "/workspace/deep/er";
	unit_ok(abx_cloud_put_tar(cloud, &no_opts, &s.s, &t, &unit_err));
	(void)close(t.fd);
	unit_ok(exec_script(&no_opts, &s.s, "cd deep/er && cat l && stat -c %a f", -1, &c, &e));
	ck_assert_str_eq(c.out, "hi\n750\n");
	t.path = "/workspace/not/there";
	t.fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	ck_assert_int_lt(abx_cloud_get_tar(cloud, &no_opts, &s.s, &t, &unit_err), 0);
	(void)close(t.fd);
	unit_ok(abx_cloud_destroy(cloud, &no_opts, &s.s, &stop_req, &unit_err));
	abx_sandbox_copy_release(&s);
}

START_TEST(trees_travel_by_the_providers_own_means)
{
	tar_round_trip("mock");
}
END_TEST

START_TEST(trees_travel_over_exec_without_them)
{
	tar_round_trip("mockbare");
	ck_assert_ptr_null(abx_cloud_table(cloud)->put_tar);
}
END_TEST

START_TEST(a_failure_is_told_whole)
{
	struct abx_sandbox_copy s;

	open_cloud("mock", "provision:fail=EQUOTA,text=no more\tboxes\nfor 'you'");
	ck_assert_int_eq(provision(&no_opts, &s), ABX_EQUOTA);
	ck_assert_str_eq(unit_err.text, "provider 'mock': provision: no more boxes for 'you' "
					"[request mock-request-1]");
	ck_assert_str_eq(unit_err.remedy, "change mock.faults");
	ck_assert_str_eq(unit_err.request_id, "mock-request-1");
	ck_assert(!unit_err.outcome_unknown);
}
END_TEST

START_TEST(strange_codes_are_brought_into_line)
{
	struct abx_sandbox_copy s;

	open_cloud("mock", "provision:fail=UNKNOWN,times=1;provision:fail=POSITIVE");
	ck_assert_int_eq(provision(&no_opts, &s), ABX_EINTERNAL);
	unit_has(unit_err.text, "it failed without saying why");
	ck_assert_int_eq(provision(&no_opts, &s), ABX_EPROTO);
}
END_TEST

START_TEST(what_may_pass_is_tried_again)
{
	struct abx_sandbox_list list;

	open_cloud("mock",
		   "list:fail=ERATE,retry_after=50,times=2;provision:fail=ENETWORK,times=1");
	unit_ok(abx_cloud_list(cloud, &no_opts, NULL, 0, &list, &unit_err));
	abx_sandbox_list_release(&list);
	/* Making one is not repeated: it might have happened. */
	{
		struct abx_sandbox_copy s;

		ck_assert_int_eq(provision(&no_opts, &s), ABX_ENETWORK);
		unit_ok(provision(&no_opts, &s));
		abx_sandbox_copy_release(&s);
	}
}
END_TEST

START_TEST(retries_end_with_the_deadline)
{
	const struct abx_call_opts brief = {.timeout_ms = 300};
	struct abx_sandbox_list list;
	int64_t begun = abx_now_ms();

	open_cloud("mock", "list:fail=ERATE,retry_after=30000");
	ck_assert_int_eq(abx_cloud_list(cloud, &brief, NULL, 0, &list, &unit_err), ABX_ERATE);
	ck_assert_int_lt(abx_now_ms() - begun, 2000);
	ck_assert_int_eq(unit_err.retry_after_ms, 30000);
}
END_TEST

START_TEST(a_request_that_is_repeated_is_not_repeated_twice)
{
	const struct abx_call_opts brief = {.timeout_ms = 1000};
	struct abx_sandbox_list list;
	int64_t begun = abx_now_ms();

	/* Four requests at most fit into the deadline, and list counts itself. */
	open_cloud("mock", "list:again=ERATE");
	ck_assert_int_eq(abx_cloud_list(cloud, &brief, NULL, 0, &list, &unit_err), ABX_ERATE);
	ck_assert_uint_ge(abx_cloud_round_trips(cloud), 3);
	ck_assert_uint_le(abx_cloud_round_trips(cloud), 5);
	ck_assert_int_le(abx_now_ms() - begun, 1100);
}
END_TEST

START_TEST(a_secret_that_is_learned_is_kept_and_hidden)
{
	abx_autofree char *kept = NULL;
	char *account = NULL;
	char text[] = "it is learned-secret-1, is it";

	open_cloud("mock", "verify:learn");
	unit_ok(abx_cloud_verify(cloud, &no_opts, &account, &unit_err));
	free(account);
	abx_redact(text);
	ck_assert_str_eq(text, "it is ***, is it");
	kept = unit_read("secrets.env");
	unit_has(kept, "learned-secret-1");
}
END_TEST

START_TEST(a_lost_answer_says_so)
{
	static const struct abx_kv wanted[] = {{"agentbox.box", "b1"}};
	struct abx_sandbox_copy s;
	struct abx_sandbox_list list;

	open_cloud("mock", "provision:lose");
	ck_assert_int_eq(provision(&no_opts, &s), ABX_ENETWORK);
	ck_assert(unit_err.outcome_unknown);
	unit_ok(abx_cloud_list(cloud, &no_opts, wanted, 1, &list, &unit_err));
	ck_assert_uint_eq(list.len, 1);
	unit_ok(abx_cloud_destroy(cloud, &no_opts, &list.items[0].s, &stop_req, &unit_err));
	abx_sandbox_list_release(&list);
}
END_TEST

START_TEST(a_broken_result_is_refused)
{
	struct abx_sandbox_copy s, again;

	open_cloud("mock", "get:garbage,times=2");
	ck_assert_int_eq(provision(&no_opts, &s), ABX_EPROTO);
	unit_has(unit_err.text, "provision: broken result: sandbox: struct_size 8 is impossible");
	ck_assert_int_eq(provision(&no_opts, &s), ABX_EPROTO);
	unit_ok(provision(&no_opts, &s));
	unit_ok(abx_cloud_get(cloud, &no_opts, &s.s, &again, &unit_err));
	abx_sandbox_copy_release(&again);
	abx_sandbox_copy_release(&s);
}
END_TEST

START_TEST(a_cancel_ends_a_command_and_its_tree)
{
	struct collected c = {.give_up = true};
	struct abx_sandbox_copy s;
	uint64_t round_trips;
	struct abx_exit e;
	int64_t begun;

	open_cloud("mock", "");
	unit_ok(provision(&no_opts, &s));
	begun = abx_now_ms();
	ck_assert_int_eq(
		exec_script(&no_opts, &s.s, "echo go; sleep 1000 & sleep 1000", -1, &c, &e),
		ABX_ECANCELED);
	ck_assert_int_lt(abx_now_ms() - begun, 900);
	/* Nothing more is begun. */
	round_trips = abx_cloud_round_trips(cloud);
	ck_assert_int_eq(exec_script(&no_opts, &s.s, "true", -1, &c, &e), ABX_ECANCELED);
	ck_assert_uint_eq(abx_cloud_round_trips(cloud), round_trips);
	/* Undoing is not cancelled. */
	{
		const struct abx_call_opts undo = {.cleanup = true};

		unit_ok(abx_cloud_destroy(cloud, &undo, &s.s, &stop_req, &unit_err));
	}
	abx_sandbox_copy_release(&s);
}
END_TEST

START_TEST(a_deadline_ends_a_command)
{
	const struct abx_call_opts brief = {.timeout_ms = 100};
	struct collected c = {.answer = 0};
	struct abx_sandbox_copy s;
	struct abx_exit e;

	open_cloud("mock", "");
	unit_ok(provision(&no_opts, &s));
	ck_assert_int_eq(exec_script(&brief, &s.s, "sleep 1000", -1, &c, &e), ABX_ETIMEDOUT);
	unit_ok(exec_script(&no_opts, &s.s, "echo still there", -1, &c, &e));
	ck_assert_str_eq(c.out, "still there\n");
	abx_sandbox_copy_release(&s);
}
END_TEST

START_TEST(output_that_nobody_wants_ends_a_command)
{
	struct collected c = {.answer = 1};
	struct abx_sandbox_copy s;
	struct abx_exit e;

	open_cloud("mock", "");
	unit_ok(provision(&no_opts, &s));
	ck_assert_int_eq(exec_script(&no_opts, &s.s, "echo one; sleep 1000", -1, &c, &e),
			 ABX_ECANCELED);
	ck_assert_str_eq(c.out, "one\n");
	abx_sandbox_copy_release(&s);
}
END_TEST

START_TEST(a_provider_that_hangs_is_given_up)
{
	const struct abx_call_opts brief = {.timeout_ms = 100};
	struct collected c = {.answer = 0};
	struct abx_sandbox_copy s;
	struct abx_sandbox_list list;
	int64_t begun;
	struct abx_exit e;

	open_cloud("mock", "exec:hang");
	unit_ok(provision(&no_opts, &s));
	begun = abx_now_ms();
	ck_assert_int_eq(exec_script(&brief, &s.s, "true", -1, &c, &e), ABX_ETIMEDOUT);
	ck_assert_int_ge(abx_now_ms() - begun, 1000);
	ck_assert_int_lt(abx_now_ms() - begun, 3000);
	unit_has(unit_err.text, "provider 'mock': exec: no answer in time");
	ck_assert(unit_err.outcome_unknown);
	/* That cloud is of no use any more; a new one is. */
	ck_assert_int_eq(abx_cloud_list(cloud, &no_opts, NULL, 0, &list, &unit_err), ABX_ESTATE);
	abx_cloud_close(cloud);
	open_cloud("mock", "");
	unit_ok(abx_cloud_destroy(cloud, &no_opts, &s.s, &stop_req, &unit_err));
	abx_sandbox_copy_release(&s);
}
END_TEST

START_TEST(a_late_provider_touches_nothing)
{
	const struct abx_call_opts brief = {.timeout_ms = 50};
	struct abx_sandbox_copy s;

	/* Two delays: the first one is ended by the deadline, the second one is deaf. */
	open_cloud("mock", "list:deaf=1500");
	unit_ok(provision(&no_opts, &s));
	{
		struct abx_sandbox_list list;
		struct abx_kv *label = abx_xcalloc(1, sizeof(*label));
		char *key = abx_xstrdup("agentbox.box"), *value = abx_xstrdup("b1");

		label->key = key;
		label->value = value;
		ck_assert_int_eq(abx_cloud_list(cloud, &brief, label, 1, &list, &unit_err),
				 ABX_ETIMEDOUT);
		/* It goes on reading its request and emits what it finds. */
		memset(key, 'x', strlen(key));
		free(key);
		free(value);
		free(label);
	}
	abx_cloud_close(cloud);
	cloud = NULL;
	(void)poll(NULL, 0, 1000);
	abx_sandbox_copy_release(&s);
}
END_TEST

START_TEST(a_serial_provider_that_hangs_is_lost_for_all)
{
	const struct abx_call_opts brief = {.timeout_ms = 50};
	struct abx_sandbox_list list;
	struct abx_cloud *other = NULL;

	open_cloud("mockbare", "list:hang");
	ck_assert_int_eq(abx_cloud_list(cloud, &brief, NULL, 0, &list, &unit_err), ABX_ETIMEDOUT);
	ck_assert_int_eq(abx_cloud_open("mockbare", &ctx, NULL, &other, &unit_err), ABX_ESTATE);
}
END_TEST

struct parallel {
	const struct abx_call_opts *opts;
	int r;
	int64_t took_ms;
};

static void *list_once(void *arg)
{
	struct parallel *p = arg;
	struct abx_sandbox_list list = {NULL, 0};
	struct abx_err err = ABX_ERR_INIT;
	int64_t begun = abx_now_ms();

	p->r = abx_cloud_list(cloud, p->opts, NULL, 0, &list, &err);
	p->took_ms = abx_now_ms() - begun;
	abx_sandbox_list_release(&list);
	return NULL;
}

/* The longest of four that each take 100 ms. */
static int64_t four_at_once(const char *name)
{
	struct parallel p[4];
	pthread_t threads[4];
	int64_t longest = 0;

	open_cloud(name, "list:delay=100");
	for (size_t i = 0; i < 4; i++) {
		p[i].opts = &no_opts;
		ck_assert_int_eq(pthread_create(&threads[i], NULL, list_once, &p[i]), 0);
	}
	for (size_t i = 0; i < 4; i++) {
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
		ck_assert_int_eq(p[i].r, 0);
		longest = p[i].took_ms > longest ? p[i].took_ms : longest;
	}
	return longest;
}

START_TEST(a_parallel_provider_works_in_parallel)
{
	ck_assert_int_lt(four_at_once("mock"), 350);
}
END_TEST

START_TEST(a_serial_provider_works_one_at_a_time)
{
	/* The clock of the first one may have been read a little late. */
	ck_assert_int_ge(four_at_once("mockbare"), 350);
}
END_TEST

static void reserve(struct abx_box *box)
{
	const struct abx_reserve in = {.name = "one",
				       .project_path = unit_dir(),
				       .workspace = unit_dir(),
				       .provider = "mock"};

	unit_ok(abx_boxes_reserve(ctx.db, &in, box, &unit_err));
}

START_TEST(what_is_emitted_is_on_record)
{
	struct abx_resource_rows rows;
	struct abx_sandbox_copy s;
	struct abx_box box, stored;
	struct abx_call_opts o = {0};

	open_cloud("mock", "resource;provision:fail=EREMOTE,after=1,times=1");
	reserve(&box);
	o.box_id = box.id;
	/* It failed after the disk was made and before the sandbox was named. */
	ck_assert_int_eq(provision(&o, &s), ABX_EREMOTE);
	unit_ok(abx_resources_list(ctx.db, "mock", box.id, &rows, &unit_err));
	ck_assert_uint_eq(rows.len, 1);
	ck_assert_str_eq(rows.items[0].kind, "disk");
	ck_assert_str_eq(rows.items[0].id, "disk-0123456789abcdef");
	ck_assert_uint_eq(rows.items[0].phase, ABX_PHASE_EXISTS);
	{
		const struct abx_resource res = {ABX_INIT(struct abx_resource),
						 .kind = rows.items[0].kind,
						 .id = rows.items[0].id};

		unit_ok(abx_cloud_resource_delete(cloud, &o, &res, &unit_err));
		unit_ok(abx_cloud_resource_delete(cloud, &o, &res, &unit_err));
	}
	abx_resource_rows_release(&rows);
	unit_ok(provision(&o, &s));
	unit_ok(abx_boxes_load(ctx.db, box.id, &stored, &unit_err));
	ck_assert_str_eq(stored.sandbox_id, s.s.id);
	ck_assert_str_eq(stored.account, "mock-account");
	ck_assert_str_eq(stored.provider_data, "{\"mock\":true}");
	abx_box_release(&stored);
	unit_ok(abx_cloud_destroy(cloud, &o, &s.s, &stop_req, &unit_err));
	unit_ok(abx_resources_list(ctx.db, "mock", box.id, &rows, &unit_err));
	ck_assert_uint_eq(rows.len, 0);
	abx_resource_rows_release(&rows);
	abx_sandbox_copy_release(&s);
	abx_box_release(&box);
}
END_TEST

START_TEST(secrets_are_in_no_text)
{
	char *account = NULL;

	ck_assert_int_eq(setenv("AGENTBOX_MOCK_TOKEN", "wrong-token", 1), 0);
	open_cloud("mock", "");
	ck_assert_int_eq(abx_cloud_verify(cloud, &no_opts, &account, &unit_err), ABX_EAUTH);
	ck_assert_str_eq(unit_err.text, "provider 'mock': verify: the token *** was refused");
	ck_assert_int_eq(unsetenv("AGENTBOX_MOCK_TOKEN"), 0);
}
END_TEST

START_TEST(options_for_boxes_are_in_the_form_of_sessions)
{
	const struct abx_kv *kv;
	uint32_t n;

	open_cloud("mock", "");
	kv = abx_cloud_box_options(cloud, &n);
	ck_assert_uint_eq(n, 1);
	ck_assert_str_eq(kv[0].key, "idle");
	ck_assert_str_eq(kv[0].value, "300000");
}
END_TEST

START_TEST(requests_that_make_no_sense_do_not_reach_the_provider)
{
	const char *const empty[] = {NULL};
	const struct abx_exec req = {ABX_INIT(struct abx_exec), .argv = empty, .stdin_fd = -1,
				     .control_fd = -1};
	const struct abx_sandbox s = {ABX_INIT(struct abx_sandbox), .id = "mock-1"};
	struct abx_exit e;

	open_cloud("mock", "");
	ck_assert_int_eq(abx_cloud_exec(cloud, &no_opts, &s, &req, &e, &unit_err), ABX_EINVAL);
	unit_has(unit_err.text, "member 'argv' is empty");
}
END_TEST

START_TEST(no_descriptor_is_left)
{
	struct collected c = {.answer = 0};
	struct abx_sandbox_copy s;
	struct abx_exit e;
	int before, after;

	open_cloud("mock", "");
	unit_ok(provision(&no_opts, &s));
	unit_ok(exec_script(&no_opts, &s.s, "true", -1, &c, &e));
	before = dup(0);
	(void)close(before);
	for (int i = 0; i < 20; i++)
		unit_ok(exec_script(&no_opts, &s.s, "true", -1, &c, &e));
	after = dup(0);
	(void)close(after);
	ck_assert_int_eq(before, after);
	abx_sandbox_copy_release(&s);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("cloud");
	TCase *tc = tcase_create("mock");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, clouds_setup, clouds_teardown);
	tcase_add_test(tc, life_of_a_sandbox);
	tcase_add_test(tc, exec_passes_bytes_and_signals);
	tcase_add_test(tc, trees_travel_by_the_providers_own_means);
	tcase_add_test(tc, trees_travel_over_exec_without_them);
	tcase_add_test(tc, a_failure_is_told_whole);
	tcase_add_test(tc, strange_codes_are_brought_into_line);
	tcase_add_test(tc, what_may_pass_is_tried_again);
	tcase_add_test(tc, retries_end_with_the_deadline);
	tcase_add_test(tc, a_request_that_is_repeated_is_not_repeated_twice);
	tcase_add_test(tc, a_secret_that_is_learned_is_kept_and_hidden);
	tcase_add_test(tc, a_lost_answer_says_so);
	tcase_add_test(tc, a_broken_result_is_refused);
	tcase_add_test(tc, a_cancel_ends_a_command_and_its_tree);
	tcase_add_test(tc, a_deadline_ends_a_command);
	tcase_add_test(tc, output_that_nobody_wants_ends_a_command);
	tcase_add_test(tc, a_provider_that_hangs_is_given_up);
	tcase_add_test(tc, a_late_provider_touches_nothing);
	tcase_add_test(tc, a_serial_provider_that_hangs_is_lost_for_all);
	tcase_add_test(tc, a_parallel_provider_works_in_parallel);
	tcase_add_test(tc, a_serial_provider_works_one_at_a_time);
	tcase_add_test(tc, what_is_emitted_is_on_record);
	tcase_add_test(tc, secrets_are_in_no_text);
	tcase_add_test(tc, options_for_boxes_are_in_the_form_of_sessions);
	tcase_add_test(tc, requests_that_make_no_sense_do_not_reach_the_provider);
	tcase_add_test(tc, no_descriptor_is_left);
	suite_add_tcase(s, tc);
	return s;
}

PLUGINS_MAIN(suite)
