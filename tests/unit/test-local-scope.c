/* SPDX-License-Identifier: MIT */
/* Provider local: what is asked of the user's systemd, and what its answers mean. */
#include "providers/local/box.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define HEADER 16
#define ASKED_PID 0x01020304

enum { RETURN = 2, ERROR = 3, SIGNAL = 4 };

static void read_exactly(int fd, void *data, size_t n)
{
	ck_assert_int_eq(recv(fd, data, n, MSG_WAITALL), (ssize_t)n);
}

static uint32_t number_at(const unsigned char *b, size_t at)
{
	uint32_t n;

	memcpy(&n, b + at, sizeof(n));
	return n;
}

static size_t aligned(size_t n)
{
	return (n + 7) / 8 * 8;
}

static void reply(int fd, unsigned char type, const unsigned char *like)
{
	unsigned char b[HEADER + 8 + 4] = {like[0], type, 0, 1};
	const uint32_t body = 4, fields = 5;

	memcpy(b + 4, &body, sizeof(body));
	memcpy(b + 12, &fields, sizeof(fields));
	ck_assert_int_eq(send(fd, b, sizeof(b), MSG_NOSIGNAL), (ssize_t)sizeof(b));
}

static void check_message(const unsigned char *b, size_t len)
{
	static const char member[] = "StartTransientUnit", types[] = "ssa(sv)a(sa(sv))";
	static const char pids[] = "PIDs\0\2au", mode[] = "CollectMode\0\1s";
	size_t body = HEADER + aligned(number_at(b, 12)), at;
	const unsigned char *p;

	ck_assert_ptr_nonnull(memmem(b, body, member, sizeof(member)));
	ck_assert_ptr_nonnull(memmem(b, body, types, sizeof(types)));
	ck_assert_str_eq((const char *)b + body + 4, "agentbox-16909060.scope");
	at = body + 4 + number_at(b, body) + 1;
	at = (at + 3) / 4 * 4;
	ck_assert_str_eq((const char *)b + at + 4, "fail");
	at = aligned(at + 4 + 5);
	/* Two properties, and nothing after them but the empty last list. */
	ck_assert_uint_eq(aligned(aligned(at + 4) + number_at(b, at) + 4), len);
	p = memmem(b + body, len - body, pids, sizeof(pids));
	ck_assert_ptr_nonnull(p);
	at = ((size_t)(p - b) + sizeof(pids) + 3) / 4 * 4;
	ck_assert_uint_eq(number_at(b, at), 4);
	ck_assert_uint_eq(number_at(b, at + 4), ASKED_PID);
	p = memmem(b + at, len - at, mode, sizeof(mode));
	ck_assert_ptr_nonnull(p);
	ck_assert_uint_eq((size_t)(p - 4 - b) % 8, 0);
}

/* One client, answered with these types; 0 ends it. */
static void serve(int listener, const unsigned char *answers)
{
	char expected[64], hex[32] = "", line[64];
	unsigned char b[2048];
	int fd = accept(listener, NULL, NULL);
	size_t len;

	ck_assert_int_ge(fd, 0);
	(void)snprintf(line, sizeof(line), "%u", (unsigned int)geteuid());
	for (size_t i = 0; line[i]; i++)
		(void)snprintf(hex + 2 * i, sizeof(hex) - 2 * i, "%02x", (unsigned char)line[i]);
	len = (size_t)snprintf(expected, sizeof(expected), "%cAUTH EXTERNAL %s\r\n", 0, hex);
	read_exactly(fd, line, len);
	ck_assert_mem_eq(line, expected, len);
	if (!answers[0]) {
		ck_assert_int_eq(send(fd, "REJECTED\r\n", 10, 0), 10);
		(void)close(fd);
		return;
	}
	ck_assert_int_eq(send(fd, "OK 0123456789abcdef\r\n", 21, 0), 21);
	read_exactly(fd, line, 7);
	ck_assert_mem_eq(line, "BEGIN\r\n", 7);
	read_exactly(fd, b, HEADER);
	len = HEADER + aligned(number_at(b, 12)) + number_at(b, 4);
	ck_assert_uint_lt(len, sizeof(b));
	read_exactly(fd, b + HEADER, len - HEADER);
	check_message(b, len);
	for (; *answers; answers++)
		reply(fd, *answers, b);
	(void)close(fd);
}

static int ask(const unsigned char *answers)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r, status;
	pid_t pid;

	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", unit_path("private"));
	(void)unlink(sa.sun_path);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&sa, sizeof(sa)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		serve(listener, answers);
		_exit(0);
	}
	(void)close(listener);
	r = box_scope_ask(sa.sun_path, ASKED_PID);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	return r;
}

START_TEST(a_scope_is_asked_for)
{
	ck_assert_int_eq(ask((const unsigned char[]){RETURN, 0}), 0);
	ck_assert_int_eq(ask((const unsigned char[]){SIGNAL, SIGNAL, RETURN, 0}), 0);
}
END_TEST

START_TEST(who_is_refused_learns_it)
{
	ck_assert_int_eq(ask((const unsigned char[]){ERROR, 0}), -EACCES);
	ck_assert_int_eq(ask((const unsigned char[]){0}), -EACCES);
	/* It ends before it has answered. */
	ck_assert_int_eq(ask((const unsigned char[]){SIGNAL, 0}), -EPIPE);
}
END_TEST

START_TEST(without_a_systemd_there_is_none)
{
	ck_assert_int_eq(box_scope_ask(unit_path("nothing"), ASKED_PID), -ENOENT);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("local-scope");
	TCase *tc = tcase_create("scope");

	tcase_add_checked_fixture(tc, unit_dir_setup, unit_dir_teardown);
	tcase_add_test(tc, a_scope_is_asked_for);
	tcase_add_test(tc, who_is_refused_learns_it);
	tcase_add_test(tc, without_a_systemd_there_is_none);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
