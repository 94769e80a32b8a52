/* SPDX-License-Identifier: MIT */
/* Provider local: whoever watches hears of every change. */
#include "agentbox/cloud_backend.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/unit/local-host.h"

static const struct abx_sandbox box = {ABX_INIT(struct abx_sandbox), .id = "a1"};

/* The changes are made by a process of its own: the session here is the watcher's. */
static void others_do(void (*work)(void))
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		work();
		_exit(0);
	}
	while (waitpid(pid, &status, WNOHANG) == 0)
		(void)poll(NULL, 0, 5);
	ck_assert_int_eq(status, 0);
}

static atomic_int watch_result;

static void *watch(void *arg)
{
	(void)arg;
	atomic_store(&watch_result, lh_backend->watch(lh_session, lh_call, NULL));
	return NULL;
}

/* States in between may have been too short to be seen. */
static void await_told(uint32_t state)
{
	for (int i = 0; i < 6000 && lh_told() != state; i++)
		(void)poll(NULL, 0, 5);
	ck_assert_int_eq(lh_told(), state);
}

static void make_one(void)
{
	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
}

static void pause_it(void)
{
	ck_assert_int_eq(lh_backend->pause(lh_session, lh_call, &box, NULL), ABX_OK);
}

static void resume_it(void)
{
	ck_assert_int_eq(lh_backend->resume(lh_session, lh_call, &box, NULL), ABX_OK);
}

/* By itself: nobody of ours asks for it. */
static void end_it(void)
{
	struct lh_result res = LH_RESULT_INIT;

	lh_sh("a1", "root", "kill -TERM 1", &res);
}

static void start_it(void)
{
	const struct abx_start_req req = {ABX_INIT(struct abx_start_req)};

	ck_assert_int_eq(lh_backend->start(lh_session, lh_call, &box, &req), ABX_OK);
}

static void destroy_it(void)
{
	ck_assert_int_eq(lh_destroy("a1"), ABX_OK);
}

START_TEST(every_change_is_told)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, watch, NULL), 0);
	others_do(make_one);
	await_told(ABX_STATE_RUNNING);
	others_do(pause_it);
	await_told(ABX_STATE_PAUSED);
	others_do(resume_it);
	await_told(ABX_STATE_RUNNING);
	others_do(end_it);
	await_told(ABX_STATE_STOPPED);
	others_do(start_it);
	await_told(ABX_STATE_RUNNING);
	/* Gone is no state. */
	others_do(destroy_it);
	await_told(ABX_STATE_UNKNOWN);
	lh_cancel_in(1);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(atomic_load(&watch_result), ABX_ECANCELED);
	lh_cancel_clear();
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("local watch");
	TCase *tc = tcase_create("watch");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, lh_setup, lh_teardown);
	tcase_add_test(tc, every_change_is_told);
	suite_add_tcase(s, tc);
	return s;
}

LH_MAIN(suite)
