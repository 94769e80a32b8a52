/* SPDX-License-Identifier: MIT */
/*
 * Frames between the interface of a box and its carrier.
 *
 * Most boxes that are made for a moment never say a word, and a carrier takes longer to start and
 * more memory than all else that is ours in a box.  So it is let go when the first packet comes out
 * of the interface, where that one and the next wait for it.
 */
#include "providers/local/net.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "providers/local/box.h"

#define FRAME_MAX_BYTES 65552
#define BURST 32 /* frames, before the others have their turn */

struct side {
	struct abx_loop_source source;
	size_t len; /* of what came from here and has not gone to the other side yet */
	char frame[FRAME_MAX_BYTES];
};

static struct side tap = {.source = {.fd = -1}}, link_ = {.source = {.fd = -1}};
static const struct net_carrier *carrier;

void net_relay_open_tap(void)
{
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		box_fail(ABX_EIO, "chmod 0666 /dev/net/tun", "network: /dev/net/tun: %s",
			 strerror(errno));
	/* The kernel needs a while to take an interface down.  When we are killed, it closes the
	 * first descriptor last: our lock and our socket are nobody's by then. */
	if (dup3(fd, STDIN_FILENO, O_CLOEXEC) < 0)
		box_fail_errno(errno, "network: /dev/net/tun");
	(void)close(fd);
	tap.source.fd = STDIN_FILENO;
}

void net_relay_make_tap(void)
{
	struct ifreq ifr = {.ifr_name = NET_TAP, .ifr_flags = IFF_TAP | IFF_NO_PI};

	if (ioctl(tap.source.fd, TUNSETIFF, &ifr) < 0)
		box_fail_errno(errno, "network: " NET_TAP);
}

/* False: the other side takes no more for now. */
static bool give(struct side *from, const struct side *to)
{
	ssize_t n;

	do
		n = write(to->source.fd, from->frame, from->len);
	while (n < 0 && errno == EINTR);
	/* Whatever it does not take for another reason is a packet lost, as on any wire. */
	if (n < 0 && errno == EAGAIN)
		return false;
	from->len = 0;
	return true;
}

static void move(struct side *from, struct side *to)
{
	for (int i = 0; i < BURST; i++) {
		ssize_t n;

		if (from->len && !give(from, to))
			return;
		n = read(from->source.fd, from->frame, sizeof(from->frame));
		if (n <= 0)
			return;
		from->len = (size_t)n;
	}
}

static uint32_t interest(const struct side *from, const struct side *to)
{
	return (from->len ? 0 : (uint32_t)EPOLLIN) | (to->len ? (uint32_t)EPOLLOUT : 0);
}

static void on_frame(struct abx_loop_source *s, uint32_t events)
{
	(void)s;
	(void)events;
	move(&tap, &link_);
	move(&link_, &tap);
	abx_loop_rewatch(&tap.source, interest(&tap, &link_));
	abx_loop_rewatch(&link_.source, interest(&link_, &tap));
}

static void on_first(struct abx_loop_source *s, uint32_t events)
{
	int fd;

	(void)events;
	net_carrier_go();
	fd = carrier->frames();
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		box_fail_errno(errno, "network: frames");
	s->ready = on_frame;
	abx_loop_watch(&link_.source, fd, EPOLLIN, on_frame);
	on_frame(s, EPOLLIN);
}

void net_relay_watch(const struct net_carrier *c)
{
	carrier = c;
	abx_loop_watch(&tap.source, tap.source.fd, EPOLLIN, on_first);
}
