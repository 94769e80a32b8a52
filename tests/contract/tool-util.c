/* SPDX-License-Identifier: MIT */
/* What the words of agentbox-contract-tool share. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/contract/tool.h"

int tool_fail(const char *what)
{
	(void)fprintf(stderr, "agentbox-contract-tool: %s: %s\n", what, strerror(errno));
	return 99;
}

int tool_write(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len) {
		const ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int tool_listen(const char *addr, const char *port)
{
	const int on = 1;
	struct sockaddr_in sa = {.sin_family = AF_INET};
	int fd;

	sa.sin_port = htons((uint16_t)strtoul(port, NULL, 10));
	if (inet_pton(AF_INET, addr, &sa.sin_addr) != 1) {
		errno = EINVAL;
		(void)tool_fail(addr);
		return -1;
	}
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, 64) < 0) {
		(void)tool_fail("listen");
		if (fd >= 0)
			(void)close(fd);
		return -1;
	}
	return fd;
}

void tool_pattern(unsigned char *buf, size_t len, uint64_t at)
{
	for (size_t i = 0; i < len; i++, at++)
		buf[i] = (unsigned char)(at * 31 + (at >> 8) * 7 + (at >> 16));
}

uint64_t tool_sum(uint64_t sum, const void *data, size_t len)
{
	const unsigned char *p = data;

	if (!sum)
		sum = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < len; i++)
		sum = (sum ^ p[i]) * UINT64_C(0x100000001b3);
	return sum;
}

int tool_exit_code(int wait_status)
{
	return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

int tool_parse_size(const char *text, uint64_t *ret)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || end == text || *end) {
		errno = EINVAL;
		return tool_fail(text);
	}
	*ret = n;
	return 0;
}
