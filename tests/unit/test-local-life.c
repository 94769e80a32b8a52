/* SPDX-License-Identifier: MIT */
/* Provider local: what is on disk and what runs always agree, whoever dies in between. */
#include "agentbox/cloud_backend.h"

#include <dirent.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>

#include "tests/unit/local-host.h"

static int32_t stop(const char *id, int64_t grace_ms)
{
	const struct abx_sandbox sb = {ABX_INIT(struct abx_sandbox), .id = id};
	const struct abx_stop_req req = {ABX_INIT(struct abx_stop_req), .grace_ms = grace_ms};

	return lh_backend->stop(lh_session, lh_call, &sb, &req);
}

static int32_t start(const char *id, uint32_t flags, int64_t timeout_ms)
{
	const struct abx_sandbox sb = {ABX_INIT(struct abx_sandbox), .id = id};
	const struct abx_start_req req = {ABX_INIT(struct abx_start_req), .flags = flags,
					  .timeout_ms = timeout_ms};

	return lh_backend->start(lh_session, lh_call, &sb, &req);
}

static void entries_are(const char *dir, size_t expected)
{
	char path[4096];
	struct dirent *e;
	size_t n = 0;
	DIR *d;

	(void)snprintf(path, sizeof(path), "%s/store/%s", unit_dir(), dir);
	d = opendir(path);
	ck_assert_ptr_ne(d, NULL);
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	(void)closedir(d);
	ck_assert_msg(n == expected, "%s has %zu entries", dir, n);
}

/* Wait, for seconds at most, until `get` says so. */
static void await_state(const char *id, int32_t state)
{
	for (int i = 0; i < 2000 && lh_state(id) != state; i++)
		(void)poll(NULL, 0, 2);
	ck_assert_int_eq(lh_state(id), state);
}

START_TEST(files_outlive_a_stop)
{
	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	ck_assert_int_eq(lh_state("a1"), ABX_STATE_RUNNING);
	lh_expect("a1", NULL, "echo kept >/workspace/f; echo kept >~/g; pwd", "/workspace\n");
	ck_assert_int_eq(stop("a1", 0), ABX_OK);
	ck_assert_int_eq(lh_state("a1"), ABX_STATE_STOPPED);
	ck_assert_int_eq(stop("a1", 0), ABX_OK);
	ck_assert_int_eq(start("a1", 0, 0), ABX_OK);
	ck_assert_int_eq(start("a1", 0, 0), ABX_OK);
	lh_expect("a1", NULL, "cat f /home/vscode/g; hostname", "kept\nkept\ntestbox\n");
	ck_assert_int_eq(lh_destroy("a1"), ABX_OK);
	ck_assert_int_eq(lh_destroy("a1"), ABX_OK);
	ck_assert_int_eq(lh_state("a1"), ABX_ENOTFOUND);
	entries_are("boxes", 0);
	entries_are("tmp", 0);
}
END_TEST

START_TEST(the_same_attempt_twice_is_one_box)
{
	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	lh_expect("a1", NULL, "echo first >f", "");
	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	lh_expect("a1", NULL, "cat f", "first\n");
	ck_assert_int_eq(lh_provision("b2"), ABX_OK);
	ck_assert_int_eq(lh_count(NULL), 2);
	ck_assert_int_eq(lh_count("a1"), 1);
	ck_assert_int_eq(lh_count("zz"), 0);
}
END_TEST

START_TEST(ids_lead_nowhere_else)
{
	static const char *const bad[] = {"", "..", "a/b", "../a1", "A", "-a", "a b"};

	for (size_t i = 0; i < ABX_N_ELEMENTS(bad); i++) {
		ck_assert_int_eq(lh_state(bad[i]), ABX_ENOTFOUND);
		ck_assert_int_eq(lh_destroy(bad[i]), ABX_OK);
		ck_assert_int_eq(lh_provision(bad[i]), ABX_EINVAL);
	}
	entries_are("boxes", 0);
}
END_TEST

START_TEST(what_is_not_there_is_refused_by_name)
{
	const char *const six[] = {"fd00::/8", NULL}, *const name[] = {"example.org", NULL};
	const char *const none[] = {NULL};
	const struct {
		struct abx_provision p;
		const char *word;
	} cases[] = {
		{{ABX_INIT(struct abx_provision), .egress_allow = six}, "IPv6"},
		{{ABX_INIT(struct abx_provision), .egress_deny = name}, "names"},
		{{ABX_INIT(struct abx_provision), .flags = 1u << 30}, "flags"},
	};
	struct abx_provision p = {ABX_INIT(struct abx_provision), .egress_allow = none};

	for (size_t i = 0; i < ABX_N_ELEMENTS(cases); i++) {
		ck_assert_int_eq(lh_backend->provision(lh_session, lh_call, &cases[i].p),
				 ABX_ENOTSUP);
		unit_has(lh_fail_text(), cases[i].word);
	}
	entries_are("boxes", 0);
	ck_assert_int_eq(lh_backend->provision(lh_session, lh_call, &p), ABX_OK);
}
END_TEST

/* A host built with an older header gives shorter structs. */
START_TEST(older_hosts_give_shorter_structs)
{
	const char *const none[] = {NULL};
	struct abx_provision p = {ABX_INIT(struct abx_provision), .idempotency_key = "a1",
				  .egress_allow = none};

	memset(&p.cpu_milli, 0xff, sizeof(p) - offsetof(struct abx_provision, cpu_milli));
	p.struct_size = offsetof(struct abx_provision, cpu_milli);
	ck_assert_int_eq(lh_backend->provision(lh_session, lh_call, &p), ABX_OK);
	ck_assert_int_eq(lh_state("a1"), ABX_STATE_RUNNING);
}
END_TEST

static void damage_run(const char *from, const char *to)
{
	char *text = unit_read("store/boxes/a1/run.json"), *at = strstr(text, from);

	ck_assert_ptr_ne(at, NULL);
	memcpy(at, to, strlen(to));
	unit_write_text("store/boxes/a1/run.json", text);
	free(text);
}

/* Another process with our pid is not the box, and the box is found without its record. */
START_TEST(a_reused_pid_is_not_the_box)
{
	char *kept, ours[512];

	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	kept = unit_read("store/boxes/a1/run.json");
	/* Another first digit than it has. */
	if (strstr(kept, "\"start_time\": 9"))
		damage_run("\"start_time\": ", "\"start_time\": 8");
	else
		damage_run("\"start_time\": ", "\"start_time\": 9");
	lh_expect("a1", NULL, "echo there", "there\n");
	damage_run("\"boot_id\": \"", "\"boot_id\": \"~");
	ck_assert_int_eq(lh_state("a1"), ABX_STATE_RUNNING);
	unit_write_text("store/boxes/a1/run.json", "{");
	ck_assert_int_eq(lh_state("a1"), ABX_STATE_RUNNING);
	ck_assert_int_eq(unlink(unit_path("store/boxes/a1/run.json")), 0);
	lh_expect("a1", NULL, "echo there", "there\n");
	ck_assert_int_eq(lh_stop("a1"), ABX_OK);
	ck_assert_int_eq(lh_state("a1"), ABX_STATE_STOPPED);
	/* The record of one that has ended, and of one that was never there. */
	unit_write_text("store/boxes/a1/run.json", kept);
	ck_assert_int_eq(lh_state("a1"), ABX_STATE_STOPPED);
	(void)snprintf(ours, sizeof(ours),
		       "{\"pid\": %d, \"start_time\": 1, \"expires_at_ms\": 0, %s", getpid(),
		       strstr(kept, "\"boot_id\""));
	unit_write_text("store/boxes/a1/run.json", ours);
	ck_assert_int_eq(lh_state("a1"), ABX_STATE_STOPPED);
	free(kept);
	ck_assert_int_eq(lh_start("a1", 0), ABX_OK);
	ck_assert_int_eq(lh_state("a1"), ABX_STATE_RUNNING);
}
END_TEST

START_TEST(a_damaged_record_can_be_found_and_removed)
{
	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	unit_write_text("store/boxes/a1/box.json", "{\"id\": 7}");
	ck_assert_int_eq(lh_state("a1"), ABX_EPROTO);
	ck_assert_int_eq(lh_count(NULL), 1);
	ck_assert_int_eq(lh_count("a1"), 0);
	ck_assert_int_eq(lh_destroy("a1"), ABX_OK);
	ck_assert_int_eq(lh_count(NULL), 0);
	entries_are("tmp", 0);
}
END_TEST

START_TEST(leftovers_of_the_dead_are_swept)
{
	int fd;

	ck_assert_int_eq(mkdir(unit_path("store/tmp/new-dead"), 0711), 0);
	unit_write_text("store/tmp/new-dead/box.json", "{}");
	ck_assert_int_eq(mkdir(unit_path("store/tmp/new-alive"), 0711), 0);
	fd = open(unit_path("store/tmp/new-alive"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(flock(fd, LOCK_EX), 0);
	ck_assert_int_eq(lh_count(NULL), 0);
	entries_are("tmp", 1);
	(void)close(fd);
	ck_assert_int_eq(lh_count(NULL), 0);
	entries_are("tmp", 0);
}
END_TEST

static int provision_together(unsigned int i)
{
	char id[16];

	(void)snprintf(id, sizeof(id), "same%u", i / 2);
	return lh_provision(id) == ABX_OK ? 0 : 1;
}

static int destroy_together(unsigned int i)
{
	char id[16];

	(void)snprintf(id, sizeof(id), "same%u", i / 2);
	return lh_destroy(id) == ABX_OK ? 0 : 1;
}

/* Each box is made by two at once, and destroyed by two at once. */
START_TEST(many_at_once)
{
	ck_assert_uint_eq(unit_together(40, provision_together), 40);
	ck_assert_int_eq(lh_count(NULL), 20);
	ck_assert_int_eq(lh_state("same19"), ABX_STATE_RUNNING);
	ck_assert_uint_eq(unit_together(40, destroy_together), 40);
	ck_assert_int_eq(lh_count(NULL), 0);
	entries_are("tmp", 0);
}
END_TEST

/* The client dies at all moments; the box is whole or not there, and can be destroyed. */
START_TEST(clients_die_while_they_provision)
{
	for (unsigned int us = 0; us < 12000; us += 300) {
		const struct timespec pause = {.tv_nsec = (long)us * 1000};
		pid_t pid = fork();

		if (pid == 0) {
			(void)lh_provision("a1");
			_exit(0);
		}
		(void)ppoll(NULL, 0, &pause, NULL);
		ck_assert_int_eq(kill(pid, SIGKILL), 0);
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
		if (us % 600 == 0) {
			ck_assert_msg(lh_provision("a1") == ABX_OK, "%u: %s", us, lh_fail_text());
			lh_expect("a1", NULL, "id -un", "vscode\n");
		}
		ck_assert_msg(lh_destroy("a1") == ABX_OK, "%u: %s", us, lh_fail_text());
		ck_assert_int_eq(lh_count(NULL), 0);
	}
	entries_are("boxes", 0);
	entries_are("tmp", 0);
}
END_TEST

START_TEST(a_box_ends_at_its_expiry)
{
	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	ck_assert_int_eq(stop("a1", 0), ABX_OK);
	ck_assert_int_eq(start("a1", 0, 100), ABX_OK);
	await_state("a1", ABX_STATE_STOPPED);
	ck_assert_int_eq(start("a1", 0, 0), ABX_OK);
	ck_assert_int_eq(lh_state("a1"), ABX_STATE_RUNNING);
}
END_TEST

START_TEST(a_workspace_can_be_read_only)
{
	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	ck_assert_int_eq(stop("a1", 0), ABX_OK);
	ck_assert_int_eq(start("a1", ABX_START_READ_ONLY, 0), ABX_OK);
	lh_expect("a1", NULL, "touch f 2>/dev/null || echo no; touch ~/f && echo yes", "no\nyes\n");
	ck_assert_int_eq(start("a1", 1u << 20, 0), ABX_ENOTSUP);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("local-life");
	TCase *tc = tcase_create("life");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, lh_setup, lh_teardown);
	tcase_add_test(tc, files_outlive_a_stop);
	tcase_add_test(tc, the_same_attempt_twice_is_one_box);
	tcase_add_test(tc, ids_lead_nowhere_else);
	tcase_add_test(tc, what_is_not_there_is_refused_by_name);
	tcase_add_test(tc, older_hosts_give_shorter_structs);
	tcase_add_test(tc, a_reused_pid_is_not_the_box);
	tcase_add_test(tc, a_damaged_record_can_be_found_and_removed);
	tcase_add_test(tc, leftovers_of_the_dead_are_swept);
	tcase_add_test(tc, many_at_once);
	tcase_add_test(tc, clients_die_while_they_provision);
	tcase_add_test(tc, a_box_ends_at_its_expiry);
	tcase_add_test(tc, a_workspace_can_be_read_only);
	suite_add_tcase(s, tc);
	return s;
}

LH_MAIN(suite)
