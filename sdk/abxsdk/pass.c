/* SPDX-License-Identifier: MIT */
/* Descriptors over unix sockets. */
#include "abxsdk/pass.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

int abx_pass_send(int sock, const void *data, size_t len, int fd)
{
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec v = {(void *)(uintptr_t)data, len};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	struct cmsghdr *c;

	if (fd >= 0) {
		m.msg_control = room;
		m.msg_controllen = sizeof(room);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	return sendmsg(sock, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

ssize_t abx_pass_recv(int sock, void *data, size_t size, int flags, int *ret_fd)
{
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))];
	struct iovec v = {data, size};
	struct msghdr m = {.msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = room,
			   .msg_controllen = sizeof(room)};
	struct cmsghdr *c;
	ssize_t n = recvmsg(sock, &m, flags | MSG_CMSG_CLOEXEC);
	int fd = -1;

	if (n < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(fd)))
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	*ret_fd = fd;
	return n;
}
