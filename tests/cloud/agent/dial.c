/* SPDX-License-Identifier: MIT */
/* A connection to what listens here, its bytes on the standard streams. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abxsdk/fs.h"
#include "abxsdk/number.h"
#include "tests/cloud/agent/agent.h"

#define BLOCK_BYTES ((size_t)64 << 10)

static int connect_to(uint16_t port)
{
	const struct sockaddr_in four = {.sin_family = AF_INET,
					 .sin_port = htons(port),
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct sockaddr_in6 six = {.sin6_family = AF_INET6,
					 .sin6_port = htons(port),
					 .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (const struct sockaddr *)&four, sizeof(four)) == 0)
		return fd;
	abx_cleanup_close(&fd);
	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&six, sizeof(six)) == 0)
		return fd;
	abx_cleanup_close(&fd);
	return -1;
}

/* False at the end. */
static bool pass(int from, int to, char *b)
{
	ssize_t n = read(from, b, BLOCK_BYTES);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	return n > 0 && abx_fs_write_all(to, b, (size_t)n) == 0;
}

int agent_dial(const char *port, bool stream)
{
	char *b = agent_alloc(1, BLOCK_BYTES);
	uint64_t number = 0;
	int fd;

	if (!abx_parse_u64(port, UINT16_MAX, &number))
		return 2;
	fd = connect_to((uint16_t)number);
	if (abx_fs_write_all(STDOUT_FILENO, fd < 0 ? "-" : "+", 1) < 0 || fd < 0)
		return 1;
	for (int in = STDIN_FILENO;;) {
		struct pollfd p[] = {{.fd = in, .events = POLLIN}, {.fd = fd, .events = POLLIN}};

		if (poll(p, 2, -1) < 0)
			continue;
		if (p[1].revents && !pass(fd, STDOUT_FILENO, b))
			return 0;
		if (!p[0].revents || pass(in, fd, b))
			continue;
		/* Nobody is there any more. */
		if (!stream)
			return 0;
		(void)shutdown(fd, SHUT_WR);
		in = -1;
	}
}
