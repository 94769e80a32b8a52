/* SPDX-License-Identifier: MIT */
/* pasta, which carries packets as slirp4netns does, without a TCP of its own. */
#include "providers/local/net.h"

#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "providers/local/box.h"

/* What slirp4netns has at its end too.  Given, it is not that of the host's interface. */
#define MAC "52:55:0a:00:02:02"

static int links_fd = -1; /* says that interfaces have changed in the box */

/* pasta has no descriptor that would end it with us, and its parent has to be this process. */
static _Noreturn void become(const char *const *argv, pid_t parent, int error_fd, int exec_fd)
{
	const struct sigaction dflt = {.sa_handler = SIG_DFL};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int e;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent || null < 0)
		_exit(1);
	(void)sigaction(SIGPIPE, &dflt, NULL);
	(void)setsid();
	if (dup2(null, 0) == 0 && dup2(null, 1) == 1 && dup2(error_fd, 2) == 2)
		(void)execvp(argv[0], (char *const *)(uintptr_t)argv);
	e = errno;
	(void)write(exec_fd, &e, sizeof(e));
	_exit(1);
}

static int spawn(const char *const *argv, int error_fd, pid_t *ret_pid)
{
	int exec_r = -1, exec_w = -1, e = 0;
	pid_t self = getpid(), pid;
	ssize_t n;

	net_pipe(&exec_r, &exec_w);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		become(argv, self, error_fd, exec_w);
	(void)close(exec_w);
	do
		n = read(exec_r, &e, sizeof(e));
	while (n < 0 && errno == EINTR);
	(void)close(exec_r);
	*ret_pid = pid;
	return n == (ssize_t)sizeof(e) ? -e : 0;
}

static void put_address(char text[16], uint32_t addr)
{
	(void)snprintf(text, 16, "%u.%u.%u.%u", addr >> 24, addr >> 16 & 255, addr >> 8 & 255,
		       addr & 255);
}

/* Nothing of the host's: neither its addresses nor its ports, nor its loopback as a gateway.  With
 * addresses given, the interface that it would take them from need not exist. */
static int start(uint32_t network, pid_t stand_in, int error_fd, pid_t *ret_pid)
{
	char user[40], net[40], address[16], gateway[16], names[16];
	const char *argv[] = {"pasta", "--foreground", "--quiet", "--ipv4-only", "--no-map-gw",
			      "--no-dhcp", "--no-dhcpv6", "--no-ndp", "--no-ra", "--tcp-ports",
			      "none", "--udp-ports", "none", "--tcp-ns", "none", "--udp-ns", "none",
			      "--interface", "lo", "--mac-addr", MAC, "--address", address,
			      "--netmask", "24", "--gateway", gateway, "--dns-forward", names,
			      "--search", "none", "--ns-ifname", NET_TAP, "--no-netns-quit",
			      "--userns", user, "--netns", net,
			      /* As root it would become a user who can open nothing of ours. */
			      geteuid() == 0 ? "--runas" : NULL, "0:0", NULL};

	put_address(address, network + 100);
	put_address(gateway, network + 2);
	put_address(names, network + 3);
	(void)snprintf(user, sizeof(user), "/proc/%lld/ns/user", (long long)stand_in);
	(void)snprintf(net, sizeof(net), "/proc/%lld/ns/net", (long long)stand_in);
	return spawn(argv, error_fd, ret_pid);
}

static int watch(void)
{
	links_fd = net_netlink_open(RTMGRP_LINK);
	return links_fd;
}

/* It says nothing; packets wait in its interface until it reads them. */
static bool ready(void)
{
	struct ifreq ifr = {.ifr_name = NET_TAP};
	char drop[4096];

	while (recv(links_fd, drop, sizeof(drop), MSG_DONTWAIT) > 0)
		;
	return ioctl(links_fd, SIOCGIFINDEX, &ifr) == 0;
}

const struct net_carrier net_pasta = {
	.name = "pasta",
	.install = "install the package passt, or make the box anew without local.network",
	.remedy = "see pasta(1), or make the box anew without local.network",
	.tcp_names = false,
	.start = start,
	.watch = watch,
	.ready = ready,
};
