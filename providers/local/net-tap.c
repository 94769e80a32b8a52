/* SPDX-License-Identifier: MIT */
/* The interface of a box: address, default route, up. */
#include "providers/local/net.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "providers/local/box.h"

#define TAP_MTU 65520

static void put_address(struct sockaddr *to, uint32_t addr)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(addr)};

	memcpy(to, &in, sizeof(in));
}

static void tap_ioctl(int fd, unsigned long request, void *arg, const char *what)
{
	if (ioctl(fd, request, arg) < 0)
		box_fail_errno(errno, "network: " NET_TAP ": %s", what);
}

void net_tap_up(uint32_t network)
{
	char name[] = NET_TAP;
	struct ifreq ifr = {.ifr_name = NET_TAP};
	struct rtentry route = {.rt_flags = RTF_UP | RTF_GATEWAY, .rt_dev = name};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		box_fail_errno(errno, "network: socket");
	ifr.ifr_mtu = TAP_MTU;
	tap_ioctl(fd, SIOCSIFMTU, &ifr, "mtu");
	put_address(&ifr.ifr_addr, network + 100);
	tap_ioctl(fd, SIOCSIFADDR, &ifr, "address");
	put_address(&ifr.ifr_netmask, UINT32_C(0xffffff00));
	tap_ioctl(fd, SIOCSIFNETMASK, &ifr, "netmask");
	ifr.ifr_flags = IFF_UP | IFF_RUNNING;
	tap_ioctl(fd, SIOCSIFFLAGS, &ifr, "up");
	put_address(&route.rt_dst, 0);
	put_address(&route.rt_genmask, 0);
	put_address(&route.rt_gateway, network + 2);
	tap_ioctl(fd, SIOCADDRT, &route, "default route");
	(void)close(fd);
}
