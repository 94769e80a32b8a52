/* SPDX-License-Identifier: MIT */
/* A server of HTTP that answers as it is told. */
#include "tests/unit/http-play.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "core/util/clock.h"

struct play_server server;
struct play_host the_host;
struct abx_http *http;

static void keep(const char *data, size_t len)
{
	if (len > sizeof(server.got) - 1 - server.n_got)
		len = sizeof(server.got) - 1 - server.n_got;
	memcpy(server.got + server.n_got, data, len);
	server.n_got += len;
	server.got[server.n_got] = '\0';
}

/* The rest of a body that is counted or in chunks; `head` may have its beginning. */
static void read_body(int fd, const char *head, size_t len)
{
	const char *end = strstr(head, "\r\n\r\n") + 4;
	const char *length = strcasestr(head, "content-length: ");
	const bool chunked = strcasestr(head, "transfer-encoding: chunked") != NULL;
	uint64_t wanted = length && length < end ? strtoull(length + 16, NULL, 10) : 0;
	uint64_t have = len - (size_t)(end - head);
	char b[65536], last[8] = "";

	if (have >= 5)
		memcpy(last, head + len - 5, 5);
	while (chunked ? strcmp(last, "0\r\n\r\n") != 0 : have < wanted) {
		ssize_t n = read(fd, b, sizeof(b));

		if (n <= 0)
			return;
		keep(b, (size_t)n);
		have += (uint64_t)n;
		for (ssize_t i = 0; i < n; i++) {
			memmove(last, last + 1, 4);
			last[4] = b[i];
		}
	}
	server.body_bytes += have;
}

/* 0: it was closed. */
static int read_request(int fd, const struct answer *a)
{
	char head[65536];
	size_t len = 0;

	while (len < sizeof(head) - 1) {
		ssize_t n = read(fd, head + len, sizeof(head) - 1 - len);

		if (n <= 0)
			return 0;
		keep(head + len, (size_t)n);
		len += (size_t)n;
		head[len] = '\0';
		if (strstr(head, "\r\n\r\n"))
			break;
	}
	if (!a->early)
		read_body(fd, head, len);
	return 1;
}

static void send_pieces(int fd, const struct answer *a)
{
	size_t len = a->len ? a->len : strlen(a->text), piece = a->piece ? a->piece : len;

	for (size_t at = 0; at < len; at += piece)
		if (send(fd, a->text + at, piece < len - at ? piece : len - at, MSG_NOSIGNAL) < 0)
			return;
}

static void echo(int fd)
{
	char b[4096];
	ssize_t n;

	while ((n = read(fd, b, sizeof(b))) > 0)
		if (send(fd, b, (size_t)n, MSG_NOSIGNAL) < 0)
			return;
	(void)send(fd, "bye", 3, MSG_NOSIGNAL);
}

static void serve(int fd)
{
	char b[4096];

	for (;;) {
		const unsigned int i = atomic_load(&server.asked);
		const struct answer *a = &server.answers[i < server.n ? i : server.n - 1];

		if (!read_request(fd, a))
			return;
		atomic_fetch_add(&server.asked, 1);
		send_pieces(fd, a);
		if (a->echoes)
			echo(fd);
		while (a->hangs && read(fd, b, sizeof(b)) > 0)
			;
		if (a->hangs || a->closes || a->echoes)
			return;
	}
}

static void *run_server(void *arg ABX_UNUSED)
{
	for (;;) {
		struct pollfd p[2] = {{.fd = server.listen_fd, .events = POLLIN},
				      {.fd = server.stop_fd, .events = POLLIN}};
		int fd;

		if (poll(p, 2, -1) < 0 || p[1].revents)
			return NULL;
		fd = accept4(server.listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		atomic_fetch_add(&server.accepted, 1);
		serve(fd);
		(void)close(fd);
	}
}

void start_server(const struct answer *answers, size_t n)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	server.answers = answers;
	server.n = n;
	server.listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	server.stop_fd = eventfd(0, EFD_CLOEXEC);
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", unit_path("socket"));
	ck_assert_int_eq(bind(server.listen_fd, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(listen(server.listen_fd, 8), 0);
	ck_assert_int_eq(pthread_create(&server.thread, NULL, run_server, NULL), 0);
}

/* The host. */

static int64_t host_now(void *ctx ABX_UNUSED)
{
	return abx_now_ms();
}

static int32_t host_cancel_fd(struct abx_call *call ABX_UNUSED)
{
	return the_host.cancel_fd;
}

static int64_t host_left(struct abx_call *call ABX_UNUSED)
{
	int64_t left = the_host.deadline_ms - abx_now_ms();

	return left > 0 ? left : 0;
}

static int32_t host_retry(struct abx_call *call ABX_UNUSED, const struct abx_failure *f,
			  uint32_t attempt)
{
	ck_assert_uint_eq(attempt, the_host.retries + 1);
	ck_assert_ptr_nonnull(f->text);
	return the_host.retries++ < the_host.may_retry;
}

static void host_trace(struct abx_call *call ABX_UNUSED, const char *method, const char *path,
		       int32_t status, int64_t us ABX_UNUSED)
{
	(void)snprintf(the_host.traced, sizeof(the_host.traced), "%s %s %d", method, path, status);
}

const struct abx_host host = {
	.now_ms = host_now,
	.cancel_fd = host_cancel_fd,
	.time_left_ms = host_left,
	.retry = host_retry,
	.trace = host_trace,
};

void play_setup(void)
{
	struct abx_http_options o = {
		.host = &host, .base_url = "http://there", .user_agent = "unit/1"};

	unit_dir_setup();
	memset(&server, 0, sizeof(server));
	memset(&the_host, 0, sizeof(the_host));
	the_host.cancel_fd = eventfd(0, EFD_CLOEXEC);
	the_host.deadline_ms = abx_now_ms() + 60000;
	o.unix_path = unit_path("socket");
	ck_assert_int_eq(abx_http_open(&o, &http), 0);
}

void play_teardown(void)
{
	const uint64_t one = 1;

	abx_http_close(http);
	if (server.answers) {
		ck_assert_int_eq(write(server.stop_fd, &one, sizeof(one)), (ssize_t)sizeof(one));
		(void)pthread_join(server.thread, NULL);
		(void)close(server.listen_fd);
		(void)close(server.stop_fd);
	}
	(void)close(the_host.cancel_fd);
	unit_dir_teardown();
}
