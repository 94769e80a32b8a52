/* SPDX-License-Identifier: MIT */
/*
 * The other end of the word "serve", and probes of a network.
 *	get URL			the body; 1 when the answer is not 200
 *	post URL FILE		the same, with FILE as body
 *	upgrade URL		stdin there, what comes back to stdout, each end by itself
 *	connect ADDR PORT [S]	0 when it connects within S seconds; prints what a web server says
 *	dns NAME [SERVER]	0 when a name server answers with an address
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/contract/tool.h"

static int dial(const char *addr, const char *port, int timeout_ms)
{
	const unsigned long number = strtoul(port, NULL, 10);
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)number)};
	struct sockaddr_in6 sa6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)number)};
	const int v6 = inet_pton(AF_INET6, addr, &sa6.sin6_addr) == 1;
	struct pollfd pfd = {.events = POLLOUT};
	int r, error = 0;
	socklen_t len = sizeof(error);

	if (!v6 && inet_pton(AF_INET, addr, &sa.sin_addr) != 1) {
		errno = EINVAL;
		return -1;
	}
	pfd.fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (pfd.fd < 0)
		return -1;
	r = v6 ? connect(pfd.fd, (const struct sockaddr *)&sa6, sizeof(sa6))
	       : connect(pfd.fd, (const struct sockaddr *)&sa, sizeof(sa));
	if (r < 0 && errno == EINPROGRESS) {
		r = poll(&pfd, 1, timeout_ms) == 1 ? 0 : -1;
		if (r < 0)
			errno = ETIMEDOUT;
		else if (getsockopt(pfd.fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error) {
			errno = error;
			r = -1;
		}
	}
	if (r < 0) {
		(void)close(pfd.fd);
		return -1;
	}
	(void)fcntl(pfd.fd, F_SETFL, 0);
	return pfd.fd;
}

/* Every name below localhost is this machine (RFC 6761), which not every resolver knows. */
static int is_localhost(const char *name)
{
	const char *last = strrchr(name, '.');

	return strcmp(last ? last + 1 : name, "localhost") == 0;
}

/* http://ADDR:PORT/PATH; returns a connection, and the path in `argv`'s text. */
static int dial_url(const char *url, const char **ret_path, const char **ret_host)
{
	static char host[256];
	const char *addr = host;
	char *port;
	int fd;

	if (strncmp(url, "http://", 7) != 0) {
		errno = EPROTONOSUPPORT;
		(void)tool_fail(url);
		return -1;
	}
	url += 7;
	*ret_path = strchr(url, '/');
	(void)snprintf(host, sizeof(host), "%.*s", (int)strcspn(url, "/"), url);
	if (!*ret_path)
		*ret_path = "/";
	*ret_host = url;
	port = strrchr(host, ':');
	if (port)
		*port++ = '\0';
	if (is_localhost(addr))
		addr = "127.0.0.1";
	fd = dial(addr, port ? port : "80", 10000);
	if (fd < 0)
		(void)tool_fail(host);
	return fd;
}

/* The head of the answer, byte by byte, so that nothing behind it is lost; its status. */
static int read_status(int fd)
{
	static char head[16384];
	size_t len = 0;

	while (len < sizeof(head) - 1 && read(fd, head + len, 1) == 1) {
		head[++len] = '\0';
		if (len >= 4 && memcmp(head + len - 4, "\r\n\r\n", 4) == 0)
			return strncmp(head, "HTTP/1.", 7) == 0 ? (int)strtol(head + 9, NULL, 10)
								: -1;
	}
	return -1;
}

static int copy(int from, int to)
{
	static char buf[65536];
	ssize_t n;

	while ((n = read(from, buf, sizeof(buf))) > 0)
		if (tool_write(to, buf, (size_t)n) < 0)
			return tool_fail("write");
	return n < 0 ? tool_fail("read") : 0;
}

static int request(const char *url, const char *method, const char *more, const char *file)
{
	const char *path, *host;
	const int fd = dial_url(url, &path, &host);
	const int in = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
	struct stat st = {0};
	char head[1024];
	int n;

	if (fd < 0)
		return -1;
	if (file && (in < 0 || fstat(in, &st) < 0)) {
		(void)tool_fail(file);
		return -1;
	}
	n = snprintf(head, sizeof(head),
		     "%s %s HTTP/1.1\r\nHost: %.*s\r\nContent-Length: %lld\r\n%s\r\n", method, path,
		     (int)strcspn(host, "/"), host, (long long)st.st_size, more);
	if (tool_write(fd, head, (size_t)n) < 0 || (in >= 0 && copy(in, fd) != 0)) {
		(void)tool_fail("send");
		return -1;
	}
	return fd;
}

static int show(int fd)
{
	int status;

	if (fd < 0)
		return 1;
	status = read_status(fd);
	if (copy(fd, STDOUT_FILENO) != 0)
		return 1;
	if (status != 200)
		(void)fprintf(stderr, "agentbox-contract-tool: the status is %d\n", status);
	return status == 200 ? 0 : 1;
}

int tool_get(int argc, char **argv)
{
	return argc == 1 ? show(request(argv[0], "GET", "Connection: close\r\n", NULL)) : 2;
}

int tool_post(int argc, char **argv)
{
	return argc == 2 ? show(request(argv[0], "POST", "Connection: close\r\n", argv[1])) : 2;
}

int tool_upgrade(int argc, char **argv)
{
	static char buf[65536];
	int fd, more = 1;
	ssize_t n;

	if (argc != 1)
		return 2;
	fd = request(argv[0], "GET", "Connection: Upgrade\r\nUpgrade: echo\r\n", NULL);
	if (fd < 0)
		return 1;
	n = read_status(fd);
	if (n != 101) {
		(void)fprintf(stderr, "agentbox-contract-tool: the status is %zd\n", n);
		return 1;
	}
	for (;;) {
		struct pollfd pfd[2] = {{.fd = fd, .events = POLLIN},
					{.fd = more ? STDIN_FILENO : -1, .events = POLLIN}};

		if (poll(pfd, 2, 30000) <= 0)
			return tool_fail("nothing more came");
		if (pfd[0].revents) {
			n = read(fd, buf, sizeof(buf));
			if (n <= 0)
				return n < 0 ? tool_fail("read") : more;
			if (tool_write(STDOUT_FILENO, buf, (size_t)n) < 0)
				return tool_fail("write");
		} else if (pfd[1].revents) {
			/* Less than what the two ends hold, so that neither waits for the other. */
			n = read(STDIN_FILENO, buf, 4096);
			if (n <= 0) {
				more = 0;
				(void)shutdown(fd, SHUT_WR);
			} else if (tool_write(fd, buf, (size_t)n) < 0) {
				return tool_fail("send");
			}
		}
	}
}

int tool_connect(int argc, char **argv)
{
	static const char ask[] = "GET /hello HTTP/1.0\r\n\r\n";
	const int seconds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 5;
	char buf[4096];
	ssize_t n = 0;
	int fd;

	if (argc < 2)
		return 2;
	fd = dial(argv[0], argv[1], seconds * 1000);
	if (fd < 0) {
		(void)tool_fail(argv[0]);
		return 1;
	}
	if (tool_write(fd, ask, sizeof(ask) - 1) == 0) {
		struct pollfd pfd = {.fd = fd, .events = POLLIN};

		while (poll(&pfd, 1, seconds * 1000) > 0 && (n = read(fd, buf, sizeof(buf))) > 0)
			(void)tool_write(STDOUT_FILENO, buf, (size_t)n);
	}
	/* A relay takes what it then cannot pass on: only an answer is a connection. */
	return n < 0 ? 1 : 0;
}

static size_t question(unsigned char *buf, const char *name)
{
	static const unsigned char head[12] = {0x12, 0x34, 1, 0, 0, 1};
	size_t len = sizeof(head);

	(void)memcpy(buf, head, sizeof(head));
	while (*name && len < 300) {
		const size_t n = strcspn(name, ".");

		buf[len++] = (unsigned char)n;
		(void)memcpy(buf + len, name, n);
		len += n;
		name += n + (name[n] == '.');
	}
	(void)memcpy(buf + len, "\0\0\1\0\1", 5);
	return len + 5;
}

static int server_of_box(char *ret, size_t size)
{
	FILE *file = fopen("/etc/resolv.conf", "re");
	char line[256];
	int found = 0;

	while (!found && file && fgets(line, sizeof(line), file))
		if (strncmp(line, "nameserver", 10) == 0) {
			const char *at = line + 10 + strspn(line + 10, " \t");

			(void)snprintf(ret, size, "%.*s", (int)strcspn(at, " \t\r\n"), at);
			found = 1;
		}
	if (file)
		(void)fclose(file);
	return found;
}

int tool_dns(int argc, char **argv)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(53)};
	struct pollfd pfd = {.events = POLLIN};
	unsigned char buf[1024];
	char server[64] = "";
	size_t len;
	ssize_t n;

	if (argc < 1 || strlen(argv[0]) > 200)
		return 2;
	if (argc > 1)
		(void)snprintf(server, sizeof(server), "%s", argv[1]);
	else if (!server_of_box(server, sizeof(server)))
		return 1;
	pfd.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (pfd.fd < 0 || inet_pton(AF_INET, server, &sa.sin_addr) != 1)
		return 1;
	len = question(buf, argv[0]);
	if (sendto(pfd.fd, buf, len, 0, (const struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    poll(&pfd, 1, 3000) != 1)
		return 1;
	n = recv(pfd.fd, buf, sizeof(buf), 0);
	/* No error, and at least one answer. */
	return n >= 12 && (buf[3] & 15) == 0 && (buf[6] || buf[7]) ? 0 : 1;
}
