/* SPDX-License-Identifier: MIT */
/* What the provider `e2b` makes of the streams of envd, whole and broken. */
#include <fcntl.h>
#include <sys/eventfd.h>

#include "abxsdk/clock.h"
#include "providers/e2b/envd.h"
#include "tests/unit/http-play.h"

/* Frames. */

struct taken {
	struct abx_buf b; /* "one|two|" */
	int32_t code;
};

static int32_t take(void *ctx, const void *data, size_t len)
{
	struct taken *t = ctx;

	abx_buf_add(&t->b, data, len);
	abx_buf_addc(&t->b, '|');
	return t->code;
}

#define FRAME(len_) "\0\0\0\0" len_
#define END(len_) "\2\0\0\0" len_
static const char two[] = FRAME("\3") "one" FRAME("\0") FRAME("\5") "three" END("\2") "{}";

START_TEST(frames_in_pieces)
{
	for (size_t piece = 1; piece < sizeof(two); piece++) {
		struct taken t = {.b = ABX_BUF_INIT(100)};
		struct e2b_frames f = E2B_FRAMES_INIT(take, &t);
		const size_t len = sizeof(two) - 1;

		for (size_t at = 0; at < len; at += piece)
			ck_assert_int_eq(
				e2b_frames_feed(&f, two + at, piece < len - at ? piece : len - at),
				ABX_OK);
		ck_assert_str_eq(t.b.data, "one||three|");
		ck_assert(f.ended);
		ck_assert_str_eq(f.code, "");
		abx_buf_release(&t.b);
		e2b_frames_release(&f);
	}
}
END_TEST

START_TEST(frames_cut_short)
{
	for (size_t len = 1; len < sizeof(two) - 1; len++) {
		struct taken t = {.b = ABX_BUF_INIT(100)};
		struct e2b_frames f = E2B_FRAMES_INIT(take, &t);

		ck_assert_int_eq(e2b_frames_feed(&f, two, len), ABX_OK);
		ck_assert(!f.ended);
		abx_buf_release(&t.b);
		e2b_frames_release(&f);
	}
}
END_TEST

START_TEST(no_frames)
{
	static const struct {
		const char *text;
		size_t len;
	} bad[] = {
		{"HTTP/1.1 200", 12},
		{"\1\0\0\0\0", 5},		      /* compressed */
		{"\0\x7f\0\0\0", 5},		      /* too long */
		{END("\1") "x", 6},		      /* no JSON */
		{END("\2") "{}" FRAME("\1") "x", 13}, /* behind the end */
	};

	for (size_t i = 0; i < ABX_N_ELEMENTS(bad); i++) {
		struct taken t = {.b = ABX_BUF_INIT(100)};
		struct e2b_frames f = E2B_FRAMES_INIT(take, &t);

		ck_assert_msg(e2b_frames_feed(&f, bad[i].text, bad[i].len) == ABX_EPROTO, "%zu", i);
		abx_buf_release(&t.b);
		e2b_frames_release(&f);
	}
}
END_TEST

START_TEST(frames_with_an_error)
{
	static const char text[] =
		END("\x37") "{\"error\":{\"code\":\"not_found\",\"message\":\"pid 4\\nor so\"}}";
	struct taken t = {.b = ABX_BUF_INIT(100)};
	struct e2b_frames f = E2B_FRAMES_INIT(take, &t);

	ck_assert_int_eq(e2b_frames_feed(&f, text, sizeof(text) - 1), ABX_OK);
	ck_assert(f.ended);
	ck_assert_str_eq(f.code, "not_found");
	ck_assert_str_eq(f.text, "pid 4");
	e2b_frames_release(&f);
}
END_TEST

/* Messages. */

START_TEST(messages)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(1000);
	struct e2b_pb m;
	struct e2b_pb_field f;
	char text[4];

	e2b_pb_put_uint(&b, 1, UINT64_MAX);
	e2b_pb_put_str(&b, 2000, "some text");
	e2b_pb_put_uint(&b, 3, 0);
	abx_buf_add(&b, "\x25\1\0\0\0\x29\2\0\0\0\0\0\0\0", 14);
	m = (struct e2b_pb){(const unsigned char *)b.data, b.len};
	ck_assert_int_eq(e2b_pb_next(&m, &f), 1);
	ck_assert(f.number == 1 && f.value == UINT64_MAX && !f.data);
	ck_assert_int_eq(e2b_pb_next(&m, &f), 1);
	ck_assert(f.number == 2000 && f.len == 9 && memcmp(f.data, "some text", 9) == 0);
	e2b_pb_text(&f, text, sizeof(text));
	ck_assert_str_eq(text, "som");
	ck_assert_int_eq(e2b_pb_next(&m, &f), 1);
	ck_assert(f.number == 3 && f.value == 0 && !f.data);
	ck_assert_int_eq(e2b_pb_next(&m, &f), 1);
	ck_assert(f.number == 4 && f.value == 1);
	ck_assert_int_eq(e2b_pb_next(&m, &f), 1);
	ck_assert(f.number == 5 && f.value == 2);
	ck_assert_int_eq(e2b_pb_next(&m, &f), 0);
	for (size_t len = 0; len < b.len; len++) {
		int r = 1;

		m = (struct e2b_pb){(const unsigned char *)b.data, len};
		while (r > 0)
			r = e2b_pb_next(&m, &f);
	}
	ck_assert_int_eq(e2b_pb_sint32(1), -1);
	ck_assert_int_eq(e2b_pb_sint32(6), 3);
	ck_assert_int_eq(e2b_pb_sint32(UINT32_MAX), INT32_MIN);
}
END_TEST

START_TEST(no_messages)
{
	static const char *const bad[] = {"\x08", "\x08\xff", "\x0a\x05x", "\x0b\x01",
					  "\x01", "\x0f",     "\x0d\1\2"};
	struct e2b_pb_field f;

	for (size_t i = 0; i < ABX_N_ELEMENTS(bad); i++) {
		struct e2b_pb m = {(const unsigned char *)bad[i], strlen(bad[i])};

		ck_assert_msg(e2b_pb_next(&m, &f) == -EPROTO, "%zu", i);
	}
}
END_TEST

/* Commands.  What stands around the files under test: */

static struct {
	char failed[1024], gone[200];
	int32_t code;
	unsigned int kept, gaps, waits, traced;
	int32_t no_gaps; /* what gap() returns */
	struct abx_buf out, err;
	char id[64];
} seen;

void e2b_keep(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb)
{
	(void)s;
	(void)call;
	(void)sb;
	seen.kept++;
}

int32_t e2b_envd_of(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		    struct e2b_envd *ret)
{
	(void)s;
	(void)call;
	(void)sb;
	*ret = (struct e2b_envd){.http = http, .headers = {"X-Access-Token: token"}};
	return ABX_OK;
}

void e2b_envd_release(struct e2b_envd *d)
{
	(void)d;
}

int32_t e2b_envd_gone(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		      const char *said)
{
	(void)s;
	(void)call;
	(void)sb;
	(void)snprintf(seen.gone, sizeof(seen.gone), "%s", said);
	return ABX_ESTATE;
}

static int32_t on_fail(struct abx_call *call, const struct abx_failure *f)
{
	(void)call;
	(void)snprintf(seen.failed, sizeof(seen.failed), "%s", f->text);
	seen.code = f->code;
	return f->code;
}

static int32_t on_wait(struct abx_call *call, int64_t ms)
{
	(void)call;
	(void)ms;
	seen.waits++;
	return abx_monotonic_ms() < the_host.deadline_ms ? ABX_OK : ABX_ETIMEDOUT;
}

static int32_t on_output(void *io, int32_t stream, const void *data, size_t len)
{
	(void)io;
	abx_buf_add(stream == ABX_STREAM_STDERR ? &seen.err : &seen.out, data, len);
	return 0;
}

static int32_t on_started(void *io, const char *id)
{
	(void)io;
	(void)snprintf(seen.id, sizeof(seen.id), "%s", id);
	return 0;
}

static int32_t on_gap(void *io, int32_t stream, uint64_t lost)
{
	(void)io;
	(void)stream;
	(void)lost;
	seen.gaps++;
	return seen.no_gaps;
}

static struct abx_host the_plugin_host;

static void setup(void)
{
	play_setup();
	memset(&seen, 0, sizeof(seen));
	seen.out.max = seen.err.max = 1 << 20;
	the_plugin_host = host;
	the_plugin_host.fail = on_fail;
	the_plugin_host.wait_ms = on_wait;
	abx_plugin_host = &the_plugin_host;
}

static void teardown(void)
{
	abx_buf_release(&seen.out);
	abx_buf_release(&seen.err);
	play_teardown();
}

/* Bodies are no strings. */
static bool was_sent(const char *text)
{
	return memmem(server.got, server.n_got, text, strlen(text)) != NULL;
}

static int32_t run(struct abx_exit *ret)
{
	static const char *const argv[] = {"cmd", "a b", NULL};
	struct abx_session s = {.cwd = NULL};
	const struct abx_exec req = {
		ABX_INIT(struct abx_exec), .argv = argv,	.stdin_fd = -1, .control_fd = -1,
		.started = on_started,	   .output = on_output, .gap = on_gap};

	*ret = (struct abx_exit){ABX_INIT(struct abx_exit)};
	return e2b_exec(&s, NULL, NULL, &req, ret);
}

#define HEAD "HTTP/1.1 200 OK\r\nContent-Type: application/connect+proto\r\n"
#define LENGTH(n) HEAD "Content-Length: " #n "\r\n\r\n"
/* {event: {start: {pid: 42}}}, {event: {data: {stdout: "hi\n"}}}, and of stderr "no" */
#define START FRAME("\6") "\x0a\4\x0a\2\x08\x2a"
#define OUT FRAME("\x09") "\x0a\7\x12\5\x0a\3hi\n"
#define ERR FRAME("\x08") "\x0a\6\x12\4\x12\2no"
#define KEEPALIVE FRAME("\4") "\x0a\2\x22\0"
/* {event: {end: {exited: true, status: "exit status 0"}}} and with exit code 3 */
#define EXIT_0                           \
	FRAME("\x15")                    \
	"\x0a\x13\x1a\x11\x10\1\x1a\x0d" \
	"exit status 0"
#define EXIT_3 FRAME("\x08") "\x0a\6\x1a\4\x08\6\x10\1"
#define KILLED FRAME("\x16") "\x0a\x14\x1a\x12\x08\1\x1a\x0esignal: killed"
#define FINE END("\2") "{}"
#define RAW(t) .text = (t), .len = sizeof(t) - 1

START_TEST(a_command)
{
	struct abx_exit e;

	ANSWERS({RAW(LENGTH(80) START OUT KEEPALIVE ERR EXIT_0 FINE), .piece = 1},
		{RAW(HEAD "Connection: close\r\n\r\n" START EXIT_3 FINE), .closes = true},
		{RAW(HEAD "Connection: close\r\n\r\n" START KILLED FINE), .closes = true});
	ck_assert_int_eq(run(&e), ABX_OK);
	ck_assert(e.code == 0 && e.signo == 0 && e.flags == 0);
	ck_assert_str_eq(abx_buf_str(&seen.out), "hi\n");
	ck_assert_str_eq(abx_buf_str(&seen.err), "no");
	ck_assert_int_eq(strncmp(seen.id, "42.abx-", 7), 0);
	ck_assert(was_sent("POST /process.Process/Start HTTP/1.1"));
	ck_assert(was_sent("X-Access-Token: token"));
	ck_assert(was_sent("Keepalive-Ping-Interval: 20"));
	ck_assert(!was_sent("Connect-Timeout-Ms"));
	ck_assert_int_eq(run(&e), ABX_OK);
	ck_assert(e.code == 3 && e.signo == 0);
	ck_assert_int_eq(run(&e), ABX_OK);
	ck_assert(e.signo == 9);
	ck_assert_uint_eq(atomic_load(&server.asked), 3);
}
END_TEST

/* It is attached to again, and goes on where it is. */
START_TEST(a_stream_that_breaks)
{
	struct abx_exit e;

	ANSWERS({RAW(LENGTH(500) START OUT), .closes = true}, /* a reset in the middle */
		{RAW("HTTP/1.1 503 Not now\r\nContent-Length: 0\r\n\r\n")},
		{RAW(HEAD "Connection: close\r\n\r\n" START ERR EXIT_3 FINE), .closes = true});
	ck_assert_int_eq(run(&e), ABX_OK);
	ck_assert_int_eq(e.code, 3);
	ck_assert_str_eq(abx_buf_str(&seen.out), "hi\n");
	ck_assert_str_eq(abx_buf_str(&seen.err), "no");
	ck_assert_uint_eq(seen.gaps, 1);
	ck_assert_uint_eq(seen.waits, 2);
	ck_assert(was_sent("POST /process.Process/Connect"));
	ck_assert_uint_eq(atomic_load(&server.asked), 3);
}
END_TEST

START_TEST(a_gap_that_is_not_accepted)
{
	struct abx_exit e;

	ANSWERS({RAW(LENGTH(500) START OUT), .closes = true},
		{RAW("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")});
	seen.no_gaps = ABX_ENETWORK;
	ck_assert_int_eq(run(&e), ABX_ENETWORK);
	ck_assert_ptr_nonnull(strstr(seen.failed, "broke off"));
	/* What nobody waits for any more is ended. */
	ck_assert(was_sent("POST /process.Process/SendSignal"));
}
END_TEST

START_TEST(a_command_that_is_gone)
{
	struct abx_exit e;

	ANSWERS({RAW(LENGTH(500) START OUT), .closes = true},
		{RAW(HEAD "Connection: close\r\n\r\n" END(
			 "\x2b") "{\"error\":{\"code\":\"not_found\",\"message\":\"\"}}"),
		 .closes = true});
	ck_assert_msg(run(&e) == ABX_OK, "%s", seen.failed);
	ck_assert_uint_eq(e.flags, ABX_EXIT_LOST);
}
END_TEST

/* The end of the command is no end of the stream. */
START_TEST(no_end_of_the_stream)
{
	struct abx_exit e;

	ANSWERS({RAW(HEAD "Connection: close\r\n\r\n" START OUT EXIT_0), .closes = true},
		{RAW(HEAD "Connection: close\r\n\r\n" START OUT FINE), .closes = true});
	ck_assert_int_eq(run(&e), ABX_ENETWORK);
	ck_assert_ptr_nonnull(strstr(seen.failed, "ends in the middle"));
	ck_assert_int_eq(run(&e), ABX_EPROTO);
	ck_assert_ptr_nonnull(strstr(seen.failed, "without the command's end"));
}
END_TEST

START_TEST(what_is_no_stream)
{
	struct abx_exit e;

	ANSWERS({RAW("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: "
		     "6\r\n\r\n<html>"),
		 .closes = true},
		{RAW(LENGTH(10) FRAME("\5") "\xff\xff\xff\xff\xff"), .closes = true},
		{RAW(LENGTH(6) "\1\0\0\0\0x"), .closes = true});
	ck_assert_int_eq(run(&e), ABX_EPROTO);
	ck_assert_int_eq(run(&e), ABX_EPROTO);
	ck_assert_int_eq(run(&e), ABX_EPROTO);
}
END_TEST

static char long_error[(1 << 20) + 200];

START_TEST(refusals)
{
	static struct answer answers[] = {
		{.text = "HTTP/1.1 502 Bad\r\nContent-Length: 69\r\n\r\n{\"sandboxId\":\"i\","
			 "\"message\":\"The sandbox was not found\",\"code\":502}  \n"},
		{.text = "HTTP/1.1 401 No\r\nContent-Length: 39\r\n\r\n"
			 "{\"code\":401,\"message\":\"unauthorized\"}  "},
		{.text = "HTTP/1.1 503 No\r\nContent-Length: 47\r\n\r\n"
			 "{\"code\":\"unavailable\",\"message\":\"come again\"}   "},
		{.text = long_error},
	};
	struct abx_exit e;
	int n = snprintf(long_error, sizeof(long_error),
			 "HTTP/1.1 500 Oh\r\nContent-Length: %d\r\n\r\n", 1 << 20);

	memset(long_error + n, 'x', 1 << 20);
	start_server(answers, ABX_N_ELEMENTS(answers));
	ck_assert_int_eq(run(&e), ABX_ESTATE);
	ck_assert_str_eq(seen.gone, "The sandbox was not found");
	ck_assert_int_eq(run(&e), ABX_EAUTH);
	ck_assert_ptr_nonnull(strstr(seen.failed, "unauthorized"));
	ck_assert_int_eq(run(&e), ABX_EREMOTE);
	ck_assert_ptr_nonnull(strstr(seen.failed, "come again"));
	ck_assert_int_eq(run(&e), ABX_EREMOTE);
	ck_assert_uint_lt(strlen(seen.failed), 700);
}
END_TEST

START_TEST(a_command_that_hangs)
{
	struct abx_exit e;

	ANSWERS({RAW(LENGTH(500) START OUT), .hangs = true});
	the_host.deadline_ms = abx_monotonic_ms() + 50;
	ck_assert_int_eq(run(&e), ABX_ETIMEDOUT);
	ck_assert_str_eq(abx_buf_str(&seen.out), "hi\n");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("e2b-envd");
	TCase *tc = tcase_create("envd");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, frames_in_pieces);
	tcase_add_test(tc, frames_cut_short);
	tcase_add_test(tc, no_frames);
	tcase_add_test(tc, frames_with_an_error);
	tcase_add_test(tc, messages);
	tcase_add_test(tc, no_messages);
	tcase_add_test(tc, a_command);
	tcase_add_test(tc, a_stream_that_breaks);
	tcase_add_test(tc, a_gap_that_is_not_accepted);
	tcase_add_test(tc, a_command_that_is_gone);
	tcase_add_test(tc, no_end_of_the_stream);
	tcase_add_test(tc, what_is_no_stream);
	tcase_add_test(tc, refusals);
	tcase_add_test(tc, a_command_that_hangs);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
