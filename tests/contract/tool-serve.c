/* SPDX-License-Identifier: MIT */
/*
 * serve [-o FILE] ADDR PORT [TEXT]: a web server.  PORT 0 takes a free one; FILE gets its number.
 *	GET /hello	TEXT
 *	GET /bytes/N	N bytes as the word "bytes" makes them
 *	POST /sum	size and sum of the body
 *	Upgrade: echo	101, then each byte back; after the other side's end "bye" and the end
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/contract/tool.h"

#define HEAD_MAX 16384

/* Up to the empty line; what came behind it follows in `buf`. */
static char *read_head(int fd, char *buf, size_t *ret_len)
{
	size_t len = 0;
	char *end;

	for (;;) {
		const ssize_t n = read(fd, buf + len, HEAD_MAX - 1 - len);

		if (n <= 0)
			return NULL;
		len += (size_t)n;
		buf[len] = '\0';
		end = memmem(buf, len, "\r\n\r\n", 4);
		if (end) {
			*end = '\0';
			*ret_len = len - (size_t)(end + 4 - buf);
			return end + 4;
		}
		if (len == HEAD_MAX - 1)
			return NULL;
	}
}

static void reply(int fd, const char *status, uint64_t len)
{
	char head[256];
	const int n = snprintf(head, sizeof(head),
			       "HTTP/1.1 %s\r\nContent-Length: %llu\r\nConnection: close\r\n\r\n",
			       status, (unsigned long long)len);

	(void)tool_write(fd, head, (size_t)n);
}

static void send_bytes(int fd, uint64_t total)
{
	static unsigned char buf[65536];

	reply(fd, "200 OK", total);
	for (uint64_t at = 0; at < total;) {
		const size_t n = total - at < sizeof(buf) ? (size_t)(total - at) : sizeof(buf);

		tool_pattern(buf, n, at);
		if (tool_write(fd, buf, n) < 0)
			return;
		at += n;
	}
}

static void sum_body(int fd, const char *head, const char *body, size_t len)
{
	static char buf[65536];
	const char *field = strcasestr(head, "\r\ncontent-length:");
	uint64_t left = field ? strtoull(field + 17, NULL, 10) : 0, total = 0, sum = 0;
	char text[64];

	while (len || left) {
		if (!len) {
			const ssize_t n = read(fd, buf, sizeof(buf));

			if (n <= 0)
				return;
			body = buf;
			len = (size_t)n;
		}
		sum = tool_sum(sum, body, len);
		total += len;
		left -= len < left ? len : left;
		len = 0;
	}
	reply(fd, "200 OK",
	      (uint64_t)snprintf(text, sizeof(text), "%llu %016llx\n", (unsigned long long)total,
				 (unsigned long long)sum));
	(void)tool_write(fd, text, strlen(text));
}

static void echo(int fd, const char *rest, size_t len)
{
	static const char head[] =
		"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
	static char buf[65536];
	ssize_t n;

	(void)tool_write(fd, head, sizeof(head) - 1);
	(void)tool_write(fd, rest, len);
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		if (tool_write(fd, buf, (size_t)n) < 0)
			return;
	(void)tool_write(fd, "bye\n", 4);
}

static void answer(int fd, const char *text)
{
	static char head[HEAD_MAX];
	size_t len;
	const char *rest = read_head(fd, head, &len);

	if (!rest)
		return;
	if (strcasestr(head, "\r\nupgrade: echo"))
		echo(fd, rest, len);
	else if (strncmp(head, "GET /hello ", 11) == 0) {
		reply(fd, "200 OK", strlen(text));
		(void)tool_write(fd, text, strlen(text));
	} else if (strncmp(head, "GET /bytes/", 11) == 0)
		send_bytes(fd, strtoull(head + 11, NULL, 10));
	else if (strncmp(head, "POST /sum ", 10) == 0)
		sum_body(fd, head, rest, len);
	else
		reply(fd, "404 Not Found", 0);
	/* What is still unread would make the end a reset. */
	(void)shutdown(fd, SHUT_WR);
	while (read(fd, head, sizeof(head)) > 0)
		;
}

static int tell_port(const char *path, int fd)
{
	struct sockaddr_in sa;
	socklen_t len = sizeof(sa);
	FILE *file = fopen(path, "we");

	if (!file || getsockname(fd, (struct sockaddr *)&sa, &len) < 0 ||
	    fprintf(file, "%u\n", ntohs(sa.sin_port)) < 0 || fclose(file) != 0)
		return tool_fail(path);
	return 0;
}

int tool_serve(int argc, char **argv)
{
	const struct sigaction reap = {.sa_handler = SIG_IGN, .sa_flags = SA_NOCLDWAIT};
	const char *file = NULL;
	int opt, fd;

	optind = 0;
	while ((opt = getopt(argc, argv, "+o:")) > 0) {
		if (opt != 'o')
			return 2;
		file = optarg;
	}
	if (argc - optind < 2)
		return 2;
	fd = tool_listen(argv[optind], argv[optind + 1]);
	if (fd < 0 || (file && tell_port(file, fd) != 0))
		return 99;
	(void)sigaction(SIGCHLD, &reap, NULL);
	for (;;) {
		const int conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		if (conn < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (conn < 0)
			return tool_fail("accept");
		if (fork() == 0) {
			(void)close(fd);
			answer(conn, argc - optind > 2 ? argv[optind + 2] : "hello\n");
			_exit(0);
		}
		(void)close(conn);
	}
}
