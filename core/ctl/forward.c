/* SPDX-License-Identifier: MIT */
/* agentbox-ctl forward: a port that is reached from outside leads to one that is not. */
#include "abxsdk/forward.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "abxsdk/loop.h"
#include "abxsdk/number.h"
#include "core/ctl/ctl.h"

#define BACKLOG 128

static _Noreturn void broken(int err)
{
	(void)err;
	_exit(1);
}

/* A server may listen on nothing but the address that others reach the box at. */
static uint32_t own_address(void)
{
	struct ifaddrs *all = NULL;
	uint32_t found = 0;

	if (getifaddrs(&all) < 0)
		return 0;
	for (const struct ifaddrs *a = all; a && !found; a = a->ifa_next)
		if (a->ifa_addr && a->ifa_addr->sa_family == AF_INET &&
		    !(a->ifa_flags & IFF_LOOPBACK))
			found = ntohl(((const struct sockaddr_in *)(const void *)a->ifa_addr)
					      ->sin_addr.s_addr);
	freeifaddrs(all);
	return found;
}

static int listen_at(uint16_t port)
{
	const struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
	const int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
	    bind(fd, (const struct sockaddr *)&a, sizeof(a)) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	abx_cleanup_close(&fd);
	return -errno;
}

int ctl_forward(int argc, char **argv)
{
	uint64_t from = 0, to = 0;
	pid_t pid;
	int fd;

	if (argc != 2 || !abx_parse_u64(argv[0], UINT16_MAX, &from) || !from ||
	    !abx_parse_u64(argv[1], UINT16_MAX, &to) || !to)
		return 2;
	fd = listen_at((uint16_t)from);
	/* One of us listens there already. */
	if (fd == -EADDRINUSE)
		return 0;
	if (fd < 0)
		return 1;
	/* A copy of this small process, which never returns to what it was. */
	pid = (pid_t)syscall(SYS_clone, (unsigned long)SIGCHLD, 0L, 0L, 0L, 0L);
	if (pid != 0)
		return pid < 0;
	(void)setsid();
	(void)prctl(PR_SET_NAME, "agentbox-port", 0, 0, 0);
	ctl_let_go();
	abx_loop_init(broken);
	abx_forward_init(own_address());
	abx_forward_add(fd, (uint16_t)to, (uint16_t)from);
	abx_loop_run();
}
