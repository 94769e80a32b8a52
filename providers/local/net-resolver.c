/* SPDX-License-Identifier: MIT */
/* Names for a box that may reach some names only: everything else is refused right here, and
 * an address may be reached from before its name is answered until after that has expired. */
#include "providers/local/net.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abxsdk/clock.h"
#include "providers/local/box.h"
#include "providers/local/net-dns.h"

#define QUERIES_MAX 128
#define CLIENTS_MAX 64
#define BACKLOG 32
#define PATIENCE_MS 10000
#define BIND_TRIES 16

/* A client by TCP; one question at a time. */
struct client {
	struct abx_loop_source source;
	int64_t deadline;
	size_t len;
	bool asked; /* its question is under way */
	uint8_t in[2 + NET_DNS_MAX_BYTES];
};

/* A question that was passed on. */
struct query {
	struct abx_loop_source upstream;
	struct query *next;
	struct client *client; /* NULL: it came by UDP from `peer`, or is gone */
	struct sockaddr_in peer;
	struct net_question question;
	uint16_t id;
	bool by_tcp;
	int64_t deadline;
};

static const struct net_rules *rules;
static struct abx_loop_source udp = {.fd = -1}, tcp = {.fd = -1};
static struct query *queries;
static struct client *clients[CLIENTS_MAX];
static size_t n_active; /* queries and clients */
static size_t n_queries;

static void drop_client(struct client *c)
{
	for (struct query *q = queries; q; q = q->next)
		if (q->client == c)
			q->client = NULL;
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		if (clients[i] == c)
			clients[i] = NULL;
	abx_loop_unwatch(&c->source);
	free(c);
	n_active--;
}

static void reply_tcp(struct client *c, const uint8_t *msg, size_t len)
{
	uint8_t out[2 + NET_DNS_MAX_BYTES];

	out[0] = (uint8_t)(len >> 8);
	out[1] = (uint8_t)len;
	memcpy(out + 2, msg, len);
	c->asked = false;
	c->deadline = abx_monotonic_ms() + PATIENCE_MS;
	/* So little fits into the buffer of a socket whose peer reads what it asked for. */
	if (send(c->source.fd, out, len + 2, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)len + 2)
		drop_client(c);
	else
		abx_loop_rewatch(&c->source, EPOLLIN);
}

static void reply(const struct query *q, const struct net_answer *a)
{
	uint8_t out[NET_DNS_MAX_BYTES];
	size_t n = net_dns_write_answer(&q->question, a, out, sizeof(out));

	if (!n)
		return;
	if (!q->by_tcp)
		(void)sendto(udp.fd, out, n, MSG_DONTWAIT, (const struct sockaddr *)&q->peer,
			     sizeof(q->peer));
	else if (q->client)
		reply_tcp(q->client, out, n);
}

static void drop_query(struct query *q)
{
	for (struct query **at = &queries; *at; at = &(*at)->next)
		if (*at == q) {
			*at = q->next;
			break;
		}
	abx_loop_unwatch(&q->upstream);
	free(q);
	n_queries--;
	n_active--;
}

static void fail_query(struct query *q)
{
	const struct net_answer failed = {.rcode = NET_DNS_SERVFAIL};

	reply(q, &failed);
	drop_query(q);
}

static void on_answer(struct abx_loop_source *s, uint32_t events)
{
	struct query *q = ABX_LOOP_OWNER(s, struct query, upstream);
	uint8_t in[4096];
	struct net_answer a;
	ssize_t n = recv(s->fd, in, sizeof(in), MSG_DONTWAIT);

	(void)events;
	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			fail_query(q);
		return;
	}
	if (!net_dns_read_answer(in, (size_t)n, &q->question, q->id, &a))
		return;
	if (a.rcode == NET_DNS_OK && !net_names_allow(rules, &q->question, &a)) {
		fail_query(q);
		return;
	}
	if (a.rcode != NET_DNS_OK)
		a.n = 0;
	reply(q, &a);
	drop_query(q);
}

/* A socket and a number of its own for each question, so that nobody can guess an answer. */
static bool pass_on(struct query *q)
{
	const struct sockaddr_in to = {.sin_family = AF_INET,
				       .sin_port = htons(NET_DNS_PORT),
				       .sin_addr.s_addr = htonl(rules->network + 3)};
	uint8_t out[NET_DNS_MAX_BYTES];
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	size_t n;

	if (fd < 0)
		return false;
	abx_loop_watch(&q->upstream, fd, EPOLLIN, on_answer);
	if (getrandom(&q->id, sizeof(q->id), 0) != (ssize_t)sizeof(q->id))
		return false;
	n = net_dns_write_question(&q->question, q->id, out, sizeof(out));
	return n && setsockopt(fd, SOL_SOCKET, SO_MARK, &rules->mark, sizeof(rules->mark)) == 0 &&
	       connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0 &&
	       send(fd, out, n, 0) == (ssize_t)n;
}

/* What can be said without asking anybody. */
static bool judge(const struct net_question *q, struct net_answer *ret)
{
	*ret = (struct net_answer){.rcode = NET_DNS_OK};
	if (q->class != 1 || !q->name_len ||
	    !net_policy_allows_name(rules->policy, q->name, q->name_len)) {
		ret->rcode = NET_DNS_NXDOMAIN;
		return true;
	}
	if (q->type == NET_DNS_A)
		return false;
	/* There is no IPv6, and nothing beyond addresses; but the name exists. */
	if (q->type != NET_DNS_AAAA && q->type != NET_DNS_HTTPS && q->type != NET_DNS_SVCB)
		ret->rcode = NET_DNS_REFUSED;
	return true;
}

/* False: it deserves no answer. */
static bool ask(const uint8_t *msg, size_t len, struct client *c, const struct sockaddr_in *peer)
{
	struct query now = {.client = c, .by_tcp = c != NULL}, *q;
	struct net_answer a;

	if (peer)
		now.peer = *peer;
	if (!net_dns_read_question(msg, len, &now.question))
		return false;
	if (judge(&now.question, &a)) {
		reply(&now, &a);
		return true;
	}
	q = n_queries < QUERIES_MAX ? malloc(sizeof(*q)) : NULL;
	if (!q) {
		a.rcode = NET_DNS_SERVFAIL;
		reply(&now, &a);
		return true;
	}
	*q = now;
	q->upstream.fd = -1;
	q->deadline = abx_monotonic_ms() + PATIENCE_MS;
	q->next = queries;
	queries = q;
	n_queries++;
	n_active++;
	if (c) {
		c->asked = true;
		abx_loop_rewatch(&c->source, 0);
	}
	if (!pass_on(q))
		fail_query(q);
	return true;
}

static void on_datagram(struct abx_loop_source *s, uint32_t events)
{
	uint8_t in[NET_DNS_MAX_BYTES];
	struct sockaddr_in peer;
	socklen_t peer_len = sizeof(peer);
	ssize_t n =
		recvfrom(s->fd, in, sizeof(in), MSG_DONTWAIT, (struct sockaddr *)&peer, &peer_len);

	(void)events;
	if (n > 0 && peer_len == sizeof(peer) && peer.sin_family == AF_INET)
		(void)ask(in, (size_t)n, NULL, &peer);
}

static void on_stream(struct abx_loop_source *s, uint32_t events)
{
	struct client *c = ABX_LOOP_OWNER(s, struct client, source);
	size_t want = c->len < 2 ? 2 : 2 + (size_t)(c->in[0] << 8 | c->in[1]);
	ssize_t n;

	(void)events;
	if (want > sizeof(c->in)) {
		drop_client(c);
		return;
	}
	n = recv(s->fd, c->in + c->len, want - c->len, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		drop_client(c);
		return;
	}
	c->len += (size_t)n;
	if (c->len < 2 || c->len < 2 + (size_t)(c->in[0] << 8 | c->in[1]))
		return;
	want = c->len;
	c->len = 0;
	if (!ask(c->in + 2, want - 2, c, NULL))
		drop_client(c);
}

static void on_client(struct abx_loop_source *s, uint32_t events)
{
	int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *c = NULL;

	(void)events;
	for (size_t i = 0; fd >= 0 && !c && i < CLIENTS_MAX; i++)
		if (!clients[i])
			c = clients[i] = calloc(1, sizeof(*c));
	if (!c) {
		abx_cleanup_close(&fd);
		return;
	}
	n_active++;
	c->deadline = abx_monotonic_ms() + PATIENCE_MS;
	abx_loop_watch(&c->source, fd, EPOLLIN, on_stream);
}

static void tick(int64_t now)
{
	for (struct query *q = queries, *next; q; q = next) {
		next = q->next;
		if (q->deadline < now)
			fail_query(q);
	}
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		if (clients[i] && !clients[i]->asked && clients[i]->deadline < now)
			drop_client(clients[i]);
}

/* Both kinds of sockets at one port, which nobody in the box can take from us. */
static bool bind_both(uint16_t *ret_port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int u = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int t = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (u >= 0 && t >= 0 && bind(u, (const struct sockaddr *)&a, sizeof(a)) == 0 &&
	    getsockname(u, (struct sockaddr *)&a, &len) == 0 &&
	    bind(t, (const struct sockaddr *)&a, sizeof(a)) == 0 && listen(t, BACKLOG) == 0) {
		abx_loop_watch(&udp, u, EPOLLIN, on_datagram);
		abx_loop_watch(&tcp, t, EPOLLIN, on_client);
		*ret_port = ntohs(a.sin_port);
		return true;
	}
	abx_cleanup_close(&u);
	abx_cleanup_close(&t);
	return false;
}

uint16_t net_resolver_open(const struct net_rules *r)
{
	uint16_t port = 0;

	rules = r;
	for (int i = 0; udp.fd < 0 && i < BIND_TRIES; i++)
		if (bind_both(&port))
			break;
	if (udp.fd < 0)
		box_fail_errno(errno, "network: resolver");
	abx_loop_on_tick(tick, &n_active);
	return port;
}
