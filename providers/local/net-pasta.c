/* SPDX-License-Identifier: MIT */
/* pasta, which carries packets as slirp4netns does, without a TCP of its own. */
#include "providers/local/net.h"

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

static void put_address(char text[16], uint32_t addr)
{
	(void)snprintf(text, 16, "%u.%u.%u.%u", addr >> 24, addr >> 16 & 255, addr >> 8 & 255,
		       addr & 255);
}

/* Nothing of the host's: neither its addresses nor its ports, nor its loopback as a gateway.  With
 * addresses given, the interface that it would take them from need not exist. */
static void become(uint32_t network, pid_t of)
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

	/* It has no descriptor that would end it with us. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != of)
		_exit(1);
	put_address(address, network + 100);
	put_address(gateway, network + 2);
	put_address(names, network + 3);
	(void)snprintf(user, sizeof(user), "/proc/%lld/ns/user", (long long)of);
	(void)snprintf(net, sizeof(net), "/proc/%lld/ns/net", (long long)of);
	(void)execvp(argv[0], (char *const *)(uintptr_t)argv);
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
	.become = become,
	.watch = watch,
	.ready = ready,
};
