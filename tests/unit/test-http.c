/* SPDX-License-Identifier: MIT */
/* HTTP for providers, against a server that answers as it is told. */
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "core/util/clock.h"
#include "tests/unit/http-play.h"

#define OK_HELLO "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
#define GET(path_) ABX_HTTP_REQUEST_INIT, .method = "GET", .path = (path_)

/* What is expected of one request; the reply is released. */
static void expect(const struct abx_http_request *req, int32_t code, int32_t status,
		   const char *body)
{
	struct abx_http_reply reply;
	int32_t r = abx_http_do(http, NULL, req, &reply);

	ck_assert_msg(r == code, "%d instead of %d: %s", r, code, reply.text);
	ck_assert_int_eq(reply.status, status);
	if (body)
		ck_assert_str_eq(abx_buf_str(&reply.body), body);
	if (code)
		ck_assert_str_ne(reply.text, "");
	abx_http_reply_release(&reply);
}

START_TEST(a_reply)
{
	const struct abx_http_request req = {GET("/a?secret=1"), .want_header = "x-kept"};
	struct abx_http_reply reply;

	ANSWERS({.text = "HTTP/1.1 404 Not here\r\nContent-Type: text/x; y\r\nX-KEPT:  some thing "
			 "\r\n"
			 "Retry-After: 7\r\nX-Request-Id: r1\r\nContent-Length: 4\r\n\r\nnone",
		 .piece = 1});
	ck_assert_int_eq(abx_http_do(http, NULL, &req, &reply), ABX_OK);
	ck_assert_int_eq(reply.status, 404);
	ck_assert_str_eq(abx_buf_str(&reply.body), "none");
	ck_assert_str_eq(reply.content_type, "text/x; y");
	ck_assert_str_eq(reply.header, "some thing");
	ck_assert_str_eq(reply.request_id, "r1");
	ck_assert_int_eq(reply.retry_after_ms, 7000);
	ck_assert_str_eq(the_host.traced, "GET /a 404");
	ck_assert_ptr_nonnull(strstr(server.got, "GET /a?secret=1 HTTP/1.1\r\n"));
	ck_assert_ptr_nonnull(strstr(server.got, "User-Agent: unit/1\r\n"));
	abx_http_reply_release(&reply);
}
END_TEST

START_TEST(one_connection)
{
	const struct abx_http_request get = {GET("/a")};
	const struct abx_http_request post = {
		ABX_HTTP_REQUEST_INIT, .method = "POST",
		.path = "/b",	       .content_type = "application/json",
		.body = "{\"a\":1}",   .body_len = 7,
		.idempotent = true};

	ANSWERS({.text = OK_HELLO});
	expect(&get, ABX_OK, 200, "hello");
	expect(&post, ABX_OK, 200, "hello");
	expect(&get, ABX_OK, 200, "hello");
	ck_assert_uint_eq(atomic_load(&server.accepted), 1);
	ck_assert_uint_eq(atomic_load(&server.asked), 3);
	ck_assert_ptr_nonnull(strstr(server.got, "{\"a\":1}"));
	ck_assert_ptr_null(strcasestr(server.got, "expect:"));
	ck_assert_ptr_null(strcasestr(server.got, "urlencoded"));
}
END_TEST

/* What must not be done twice is on no connection that another request was on. */
START_TEST(own_connections)
{
	const struct abx_http_request post = {ABX_HTTP_REQUEST_INIT, .method = "POST",
					      .path = "/b"};

	ANSWERS({.text = OK_HELLO});
	expect(&post, ABX_OK, 200, "hello");
	expect(&post, ABX_OK, 200, "hello");
	ck_assert_uint_eq(atomic_load(&server.accepted), 2);
	ck_assert_uint_eq(atomic_load(&server.asked), 2);
}
END_TEST

/* Unless libcurl cannot send it again by itself: `closes` takes the second one and says nothing. */
START_TEST(once_on_a_kept_connection)
{
	const struct abx_http_request post = {ABX_HTTP_REQUEST_INIT, .method = "POST",
					      .path = "/b",	     .body = "data",
					      .body_len = 4,	     .once = true};

	ANSWERS({.text = OK_HELLO}, {.text = OK_HELLO}, {.text = "", .closes = true},
		{.text = OK_HELLO});
	expect(&post, ABX_OK, 200, "hello");
	expect(&post, ABX_OK, 200, "hello");
	ck_assert_uint_eq(atomic_load(&server.accepted), 1);
	ck_assert_ptr_nonnull(strstr(server.got, "\r\n\r\ndata"));
	expect(&post, ABX_ENETWORK, 0, NULL);
	ck_assert_uint_eq(atomic_load(&server.asked), 3);
}
END_TEST

START_TEST(nobody)
{
	const struct abx_http_request req = {GET("/a"), .idempotent = true};
	struct abx_http_reply reply;

	ck_assert_int_eq(abx_http_do(http, NULL, &req, &reply), ABX_ENETWORK);
	ck_assert_int_eq(reply.os_errno, ENOENT);
	ck_assert(!reply.sent);
	ck_assert_uint_eq(the_host.retries, 0);
	abx_http_reply_release(&reply);
}
END_TEST

START_TEST(broken)
{
	const struct abx_http_request req = {GET("/a")}, small = {GET("/a"), .max_bytes = 4};

	ANSWERS({.text = "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", .closes = true},
		{.text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
		 .closes = true},
		{.text = "", .closes = true}, {.text = "", .closes = true},
		{.text = "nonsense\r\n\r\n", .closes = true}, {.text = OK_HELLO});
	expect(&req, ABX_ENETWORK, 0, NULL);
	expect(&req, ABX_ENETWORK, 0, NULL);
	expect(&req, ABX_ENETWORK, 0, NULL);
	expect(&req, ABX_ENETWORK, 0, NULL);
	expect(&req, ABX_EPROTO, 0, NULL);
	expect(&small, ABX_EPROTO, 0, NULL);
}
END_TEST

static void *cancel_soon(void *arg ABX_UNUSED)
{
	const uint64_t one = 1;

	while (!atomic_load(&server.asked))
		(void)sched_yield();
	ck_assert_int_eq(write(the_host.cancel_fd, &one, sizeof(one)), (ssize_t)sizeof(one));
	return NULL;
}

START_TEST(given_up)
{
	const struct abx_http_request req = {GET("/a"), .idempotent = true};
	pthread_t thread;

	ANSWERS({.text = "", .hangs = true});
	ck_assert_int_eq(pthread_create(&thread, NULL, cancel_soon, NULL), 0);
	expect(&req, ABX_ECANCELED, 0, NULL);
	(void)pthread_join(thread, NULL);
	ck_assert_uint_eq(the_host.retries, 0);
}
END_TEST

/* Its own descriptor ends one request, and the call goes on. */
START_TEST(stopped)
{
	struct abx_http_request req = {GET("/a")};
	const int fd = eventfd(1, EFD_CLOEXEC);

	ANSWERS({.text = "", .hangs = true}, {.text = OK_HELLO});
	req.stop_fd = &fd;
	expect(&req, ABX_ECANCELED, 0, NULL);
	(void)close(fd);
	req.stop_fd = NULL;
	expect(&req, ABX_OK, 200, "hello");
}
END_TEST

START_TEST(too_late)
{
	const struct abx_http_request req = {GET("/a")}, quiet = {GET("/a"), .quiet_ms = 50};

	ANSWERS({.text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe", .hangs = true});
	expect(&quiet, ABX_ETIMEDOUT, 0, NULL);
	the_host.deadline_ms = abx_now_ms() + 50;
	expect(&req, ABX_ETIMEDOUT, 0, NULL);
}
END_TEST

START_TEST(again)
{
	const struct abx_http_request once = {GET("/a")}, req = {GET("/a"), .idempotent = true};

	ANSWERS({.text = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"},
		{.text = "HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n"},
		{.text = "", .closes = true}, {.text = OK_HELLO},
		{.text = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"});
	the_host.may_retry = 9;
	expect(&req, ABX_OK, 200, "hello");
	ck_assert_uint_ge(the_host.retries, 2);
	the_host.retries = the_host.may_retry = 0;
	expect(&req, ABX_OK, 503, "");
	ck_assert_uint_eq(the_host.retries, 1);
	expect(&once, ABX_OK, 503, "");
	ck_assert_uint_eq(the_host.retries, 1);
}
END_TEST

struct sunk {
	struct abx_buf b;
	int32_t code;
};

static int32_t sink(void *ctx, const void *data, size_t len)
{
	struct sunk *s = ctx;

	abx_buf_add(&s->b, data, len);
	return s->code;
}

START_TEST(down_into_a_sink)
{
	struct sunk s = {.b = ABX_BUF_INIT(100)};
	const struct abx_http_request req = {GET("/a"), .sink = sink, .sink_ctx = &s,
					     .max_bytes = 6};

	ANSWERS({.text = OK_HELLO}, {.text = OK_HELLO},
		{.text = "HTTP/1.1 500 No\r\nContent-Length: 6\r\n\r\nreason"});
	expect(&req, ABX_OK, 200, "");
	ck_assert_str_eq(s.b.data, "hello");
	s.code = ABX_EIO;
	expect(&req, ABX_EIO, 0, NULL);
	expect(&req, ABX_OK, 500, "reason");
	abx_buf_release(&s.b);
}
END_TEST

#define MUCH ((size_t)3 << 20)

static void *fill_pipe(void *arg)
{
	static char zeros[4096];
	const int fd = *(const int *)arg;

	for (size_t n = 0; n < MUCH; n += sizeof(zeros))
		if (write(fd, zeros, sizeof(zeros)) != (ssize_t)sizeof(zeros))
			break;
	(void)close(fd);
	return NULL;
}

START_TEST(up_from_a_pipe)
{
	struct abx_http_request req = {ABX_HTTP_REQUEST_INIT, .method = "PUT", .path = "/a"};
	pthread_t thread;
	int p[2];

	ANSWERS({.text = OK_HELLO});
	for (int counted = 0; counted < 2; counted++) {
		ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
		ck_assert_int_eq(pthread_create(&thread, NULL, fill_pipe, &p[1]), 0);
		req.body_fd = p[0];
		req.body_size = counted ? (int64_t)MUCH : -1;
		server.body_bytes = 0;
		expect(&req, ABX_OK, 200, "hello");
		(void)pthread_join(thread, NULL);
		(void)close(p[0]);
		ck_assert_uint_ge(server.body_bytes, MUCH);
	}
	ck_assert_ptr_nonnull(strcasestr(server.got, "transfer-encoding: chunked"));
}
END_TEST

/* Each byte twice; '!' gives up. */
static ssize_t twice(void *ctx, void *to, size_t room)
{
	const int *fd = ctx;
	char *p = to, c;

	ck_assert_uint_ge(room, 2);
	if (read(*fd, &c, 1) != 1)
		return 0;
	p[0] = p[1] = c;
	return c == '!' ? ABX_ESTATE : 2;
}

START_TEST(up_by_a_source)
{
	struct abx_http_request req = {ABX_HTTP_REQUEST_INIT, .method = "PUT", .path = "/a",
				       .source = twice};
	int p[2];

	ANSWERS({.text = OK_HELLO});
	for (int gives_up = 0; gives_up < 2; gives_up++) {
		ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
		ck_assert_int_eq(write(p[1], "ab!", gives_up ? 3 : 2), gives_up ? 3 : 2);
		(void)close(p[1]);
		req.body_fd = p[0];
		req.source_ctx = &p[0];
		expect(&req, gives_up ? ABX_ESTATE : ABX_OK, gives_up ? 0 : 200,
		       gives_up ? NULL : "hello");
		(void)close(p[0]);
	}
	ck_assert_ptr_nonnull(strstr(server.got, "\r\naa\r\n"));
	ck_assert_ptr_nonnull(strstr(server.got, "\r\nbb\r\n"));
}
END_TEST

START_TEST(a_pipe_that_is_silent)
{
	struct abx_http_request req = {ABX_HTTP_REQUEST_INIT, .method = "PUT", .path = "/a"};
	int p[2];

	ANSWERS({.text = OK_HELLO});
	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	req.body_fd = p[0];
	the_host.deadline_ms = abx_now_ms() + 50;
	expect(&req, ABX_ETIMEDOUT, 0, NULL);
	the_host.deadline_ms = abx_now_ms() + 60000;
	ck_assert_int_eq(write(p[1], "x", 1), 1);
	(void)close(p[1]);
	req.body_size = 10;
	expect(&req, ABX_EINVAL, 0, NULL);
	(void)close(p[0]);
}
END_TEST

START_TEST(refused_while_it_goes_up)
{
	struct abx_http_request req = {ABX_HTTP_REQUEST_INIT, .method = "PUT", .path = "/a"};
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	pthread_t thread;
	int p[2];

	ANSWERS({.text = "HTTP/1.1 413 No\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbig",
		 .early = true,
		 .hangs = true});
	(void)sigaction(SIGPIPE, &ignore, NULL);
	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, fill_pipe, &p[1]), 0);
	req.body_fd = p[0];
	expect(&req, ABX_OK, 413, "big");
	(void)close(p[0]);
	(void)pthread_join(thread, NULL);
}
END_TEST

static void recv_all(struct abx_http_stream *s, struct abx_buf *b)
{
	char chunk[7];

	for (;;) {
		ssize_t n = abx_http_stream_recv(s, chunk, sizeof(chunk));
		struct pollfd p = {.fd = abx_http_stream_fd(s), .events = POLLIN};

		if (n > 0)
			abx_buf_add(b, chunk, (size_t)n);
		else if (n == -EAGAIN)
			ck_assert_int_gt(poll(&p, 1, 30000), 0);
		else
			break;
	}
}

static const struct abx_http_request upgrade = {
	ABX_HTTP_REQUEST_INIT, .method = "POST", .path = "/x?y", .content_type = "application/json",
	.body = "{}",	       .body_len = 2};

START_TEST(taken_over)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(1000);
	struct abx_http_stream *s = NULL;
	struct abx_http_reply reply;

	ANSWERS({.text = "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: "
			 "tcp\r\n\r\nsurplus ",
		 .echoes = true},
		{.text = "HTTP/1.1 200 OK\r\nContent-Type: x\r\n\r\nplain",
		 .piece = 1,
		 .closes = true});
	ck_assert_int_eq(abx_http_upgrade(http, NULL, &upgrade, &reply, &s), ABX_OK);
	abx_http_reply_release(&reply);
	ck_assert_ptr_nonnull(s);
	ck_assert_int_eq(abx_http_stream_send(s, "there ", 6), 6);
	abx_http_stream_end(s);
	recv_all(s, &b);
	ck_assert_str_eq(b.data, "surplus there bye");
	abx_http_stream_close(s);
	ck_assert_str_eq(the_host.traced, "POST /x 101");
	ck_assert_ptr_nonnull(strstr(server.got, "Connection: Upgrade\r\nUpgrade: tcp\r\n"));
	ck_assert_ptr_nonnull(strstr(server.got, "\r\n\r\n{}"));

	abx_buf_reset(&b);
	ck_assert_int_eq(abx_http_upgrade(http, NULL, &upgrade, &reply, &s), ABX_OK);
	abx_http_reply_release(&reply);
	recv_all(s, &b);
	ck_assert_str_eq(b.data, "plain");
	abx_http_stream_close(s);
}
END_TEST

START_TEST(not_taken_over)
{
	struct abx_http_stream *s = (struct abx_http_stream *)&server;
	struct abx_http_reply reply;

	ANSWERS({.text = "HTTP/1.1 409 No\r\nContent-Length: 6\r\n\r\npaused", .piece = 1},
		{.text = "HTTP/1.1 500 No\r\n\r\nto the end", .closes = true},
		{.text = "HTTP/1.1", .closes = true}, {.text = "nonsense\r\n\r\n", .closes = true},
		{.text = "", .hangs = true});
	ck_assert_int_eq(abx_http_upgrade(http, NULL, &upgrade, &reply, &s), ABX_OK);
	ck_assert_ptr_null(s);
	ck_assert_int_eq(reply.status, 409);
	ck_assert_str_eq(abx_buf_str(&reply.body), "paused");
	abx_http_reply_release(&reply);
	ck_assert_int_eq(abx_http_upgrade(http, NULL, &upgrade, &reply, &s), ABX_OK);
	ck_assert_str_eq(abx_buf_str(&reply.body), "to the end");
	abx_http_reply_release(&reply);
	ck_assert_int_eq(abx_http_upgrade(http, NULL, &upgrade, &reply, &s), ABX_ENETWORK);
	abx_http_reply_release(&reply);
	ck_assert_int_eq(abx_http_upgrade(http, NULL, &upgrade, &reply, &s), ABX_EPROTO);
	abx_http_reply_release(&reply);
	the_host.deadline_ms = abx_now_ms() + 50;
	ck_assert_int_eq(abx_http_upgrade(http, NULL, &upgrade, &reply, &s), ABX_ETIMEDOUT);
	abx_http_reply_release(&reply);
}
END_TEST

/* In clear text only to this machine, whatever stands before or behind its name. */
START_TEST(where_it_goes)
{
	static const struct {
		const char *url;
		int result;
	} cases[] = {
		{"example.org", -EINVAL},
		{"ftp://localhost", -EINVAL},
		{"https://example.org", 0},
		{"HTTPS://example.org", 0},
		{"http://127.0.0.1:80", 0},
		{"http://127.9.9.9", 0},
		{"http://localhost:3000", 0},
		{"http://LOCALHOST", 0},
		{"http://49983-x.localhost:3000", 0},
		{"http://[::1]:3000", 0},
		{"http://example.org", -EPERM},
		{"HTTP://example.org", -EPERM},
		{"http://localhost.example.org", -EPERM},
		{"http://notlocalhost", -EPERM},
		{"http://.localhost", -EPERM},
		{"http://127.example.org", -EPERM},
		{"http://10.0.0.1", -EPERM},
		{"http://0.0.0.0", -EPERM},
		{"http://[::2]", -EPERM},
		{"http://[::1", -EPERM},
		{"http://[::1].example.org", -EPERM},
		{"http://localhost:1@example.org", -EPERM},
		{"http://127.0.0.1@example.org", -EPERM},
		{"http://localhost:80.example.org", -EPERM},
		{"http://example.org#@localhost", -EPERM},
		{"http://", -EPERM},
	};

	for (size_t i = 0; i < ABX_N_ELEMENTS(cases); i++) {
		struct abx_http_options o = {.host = &host, .base_url = cases[i].url};
		struct abx_http *h = NULL;
		int r = abx_http_open(&o, &h);

		ck_assert_msg(r == cases[i].result, "%s: %d", cases[i].url, r);
		abx_http_close(h);
		h = NULL;
		o.plain = true;
		r = abx_http_open(&o, &h);
		ck_assert_msg(r == (cases[i].result == -EINVAL ? -EINVAL : 0), "%s: %d plain",
			      cases[i].url, r);
		abx_http_close(h);
	}
}
END_TEST

START_TEST(escapes)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(100);

	abx_http_escape(&b, "aZ9-._~ /&=%\xc3");
	ck_assert_str_eq(b.data, "aZ9-._~%20%2F%26%3D%25%C3");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("http");
	TCase *tc = tcase_create("http");

	tcase_add_checked_fixture(tc, play_setup, play_teardown);
	tcase_add_test(tc, a_reply);
	tcase_add_test(tc, one_connection);
	tcase_add_test(tc, own_connections);
	tcase_add_test(tc, once_on_a_kept_connection);
	tcase_add_test(tc, nobody);
	tcase_add_test(tc, broken);
	tcase_add_test(tc, given_up);
	tcase_add_test(tc, stopped);
	tcase_add_test(tc, too_late);
	tcase_add_test(tc, again);
	tcase_add_test(tc, down_into_a_sink);
	tcase_add_test(tc, up_from_a_pipe);
	tcase_add_test(tc, up_by_a_source);
	tcase_add_test(tc, a_pipe_that_is_silent);
	tcase_add_test(tc, refused_while_it_goes_up);
	tcase_add_test(tc, taken_over);
	tcase_add_test(tc, not_taken_over);
	tcase_add_test(tc, where_it_goes);
	tcase_add_test(tc, escapes);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
