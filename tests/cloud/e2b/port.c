/* SPDX-License-Identifier: MIT */
/* The emulated E2B: what listens in a sandbox is reached through the proxy in front of it. */
#include <fcntl.h>
#include <microhttpd.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abxsdk/fs.h"
#include "abxsdk/json.h"
#include "core/util/mem.h"
#include "core/util/thread.h"
#include "tests/cloud/answer.h"
#include "tests/cloud/e2b/envd.h"
#include "tests/cloud/gzip.h"

#define FEED_BYTES ((size_t)2 << 20)
#define HEAD_MAX ((size_t)64 << 10)
#define PUMP_BYTES 65536
#define LEFT_MS 200

/* One connection into a sandbox, by an agent that passes bytes. */
struct port {
	struct e2b_box *box;
	char number[8];
	int refs;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int in_end, in_fd; /* what the agent reads, and its other end */
	bool said, told;   /* the agent's thread's */
	bool connected, head_whole, over;
	bool dialled, chunked, upgrade, tunnelled; /* the request's */
	struct emu_feed *feed;			   /* of the answer's body */
	struct emu_answer answer;
};

static void port_put(struct port *p)
{
	bool last;

	(void)pthread_mutex_lock(&p->lock);
	last = --p->refs == 0;
	(void)pthread_mutex_unlock(&p->lock);
	if (!last)
		return;
	abx_cleanup_close(&p->in_end);
	abx_cleanup_close(&p->in_fd);
	emu_answer_release(&p->answer);
	emu_feed_put(p->feed);
	e2b_box_put(p->box);
	(void)pthread_cond_destroy(&p->changed);
	(void)pthread_mutex_destroy(&p->lock);
	free(p);
}

static struct port *port_get(struct port *p)
{
	(void)pthread_mutex_lock(&p->lock);
	p->refs++;
	(void)pthread_mutex_unlock(&p->lock);
	return p;
}

/* Its agent ends. */
static void hang_up(struct port *p)
{
	(void)pthread_mutex_lock(&p->lock);
	abx_cleanup_close(&p->in_fd);
	p->in_fd = -1;
	(void)pthread_mutex_unlock(&p->lock);
}

static bool on_body(void *ctx, const void *data, size_t len)
{
	struct port *p = ctx;

	return emu_feed_push(p->feed, data, len);
}

/* First of all the agent says that it is connected. */
static int32_t on_output(void *ctx, const void *data, size_t len)
{
	struct port *p = ctx;
	const char *at = data;
	bool more;

	if (len && !p->said) {
		p->said = true;
		(void)pthread_mutex_lock(&p->lock);
		p->connected = *at == '+';
		(void)pthread_cond_broadcast(&p->changed);
		(void)pthread_mutex_unlock(&p->lock);
		at++;
		len--;
	}
	if (len == 0)
		return 0;
	more = emu_answer_take(&p->answer, at, len);
	/* Whoever waits for its head does not look before. */
	if (p->answer.state != ANSWER_HEAD && !p->told) {
		p->told = true;
		(void)pthread_mutex_lock(&p->lock);
		p->head_whole = p->answer.status > 0;
		(void)pthread_cond_broadcast(&p->changed);
		(void)pthread_mutex_unlock(&p->lock);
	}
	return more ? 0 : ABX_ECANCELED;
}

static void *run(void *arg)
{
	struct port *p = arg;
	struct e2b *e = p->box->e;
	const char *const args[] = {"dial", p->number, p->upgrade ? "stream" : "request", NULL};
	const struct emu_exec x = {.args = args, .in_fd = p->in_end, .output = on_output, .ctx = p};
	struct abx_err err = ABX_ERR_INIT;
	int code = 0;

	(void)emu_exec(e->engine, p->box->id, &x, &code, &err);
	/* Whoever writes to it sees that nobody reads. */
	abx_cleanup_close(&p->in_end);
	p->in_end = -1;
	emu_feed_end(p->feed, p->answer.state != ANSWER_OVER && p->answer.state != ANSWER_REST);
	(void)pthread_mutex_lock(&p->lock);
	p->over = true;
	(void)pthread_cond_broadcast(&p->changed);
	(void)pthread_mutex_unlock(&p->lock);
	port_put(p);
	e2b_thread_over(e);
	return NULL;
}

static void dial(struct port *p)
{
	int in[2];

	p->dialled = true;
	if (pipe2(in, O_CLOEXEC) == 0) {
		p->in_end = in[0];
		p->in_fd = in[1];
		(void)port_get(p);
		if (e2b_thread(p->box->e, run, p)) {
			(void)pthread_mutex_lock(&p->lock);
			while (!p->connected && !p->over)
				(void)pthread_cond_wait(&p->changed, &p->lock);
			(void)pthread_mutex_unlock(&p->lock);
			return;
		}
		port_put(p);
	}
	p->over = true;
}

static bool is_between_hops(const char *name)
{
	static const char *const names[] = {"Connection",	 "Keep-Alive", "Proxy-Connection",
					    "Transfer-Encoding", "TE",	       "Trailer",
					    "Upgrade",		 "Expect"};

	for (size_t i = 0; i < ABX_N_ELEMENTS(names); i++)
		if (strcasecmp(names[i], name) == 0)
			return true;
	return false;
}

/* What the service behind is to see as its name. */
static void add_host(struct abx_buf *to, const struct port *p, const char *host)
{
	static const char place[] = "${PORT}";
	const char *mask = NULL, *at;

	(void)pthread_mutex_lock(&p->box->e->lock);
	(void)abx_json_str(p->box->network, "maskRequestHost", 1024, &mask);
	if (!mask)
		mask = host;
	at = strstr(mask, place);
	if (at)
		abx_buf_addf(to, "Host: %.*s%s%s\r\n", (int)(at - mask), mask, p->number,
			     at + sizeof(place) - 1);
	else
		abx_buf_addf(to, "Host: %s\r\n", mask);
	(void)pthread_mutex_unlock(&p->box->e->lock);
}

struct headers {
	struct port *p;
	struct abx_buf *to;
};

static enum MHD_Result add_header(void *ctx, enum MHD_ValueKind kind, const char *name,
				  const char *value)
{
	const struct headers *h = ctx;

	(void)kind;
	if (strcasecmp(name, "Host") == 0)
		add_host(h->to, h->p, value);
	else if (!is_between_hops(name))
		abx_buf_addf(h->to, "%s: %s\r\n", name, value ? value : "");
	return MHD_YES;
}

static void write_to(struct port *p, const void *data, size_t len)
{
	if (p->connected && abx_fs_write_all(p->in_fd, data, len) < 0)
		p->connected = false;
}

static void begin_request(struct emu_request *req, struct port *p)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(HEAD_MAX);
	struct headers h = {.p = p, .to = &b};
	const char *upgrade = emu_header(req, "Upgrade");

	p->upgrade = upgrade != NULL;
	dial(p);
	abx_buf_addf(&b, "%s %s HTTP/1.1\r\n", req->method, req->uri);
	(void)MHD_get_connection_values(req->conn, MHD_HEADER_KIND, add_header, &h);
	p->chunked = emu_header(req, "Transfer-Encoding") != NULL;
	if (p->chunked)
		abx_buf_adds(&b, "Transfer-Encoding: chunked\r\n");
	if (upgrade)
		abx_buf_addf(&b, "Connection: Upgrade\r\nUpgrade: %s\r\n\r\n", upgrade);
	else
		abx_buf_adds(&b, "Connection: close\r\n\r\n");
	write_to(p, b.data, b.len);
}

static int sink(struct emu_request *req, const void *data, size_t len)
{
	struct port *p = req->data;
	char size[24];

	if (!p->dialled)
		begin_request(req, p);
	if (p->chunked)
		write_to(p, size, (size_t)snprintf(size, sizeof(size), "%zx\r\n", len));
	write_to(p, data, len);
	if (p->chunked)
		write_to(p, "\r\n", 2);
	return 0;
}

/* A connection that has become something else: bytes pass both ways until one side ends. */
struct tunnel {
	struct port *p;
	int fd;
	void (*close)(void *handle);
	void *handle;
};

/* From the client, until it has said all. */
static void *pump_in(void *arg)
{
	struct tunnel *t = arg;
	char b[PUMP_BYTES];

	for (;;) {
		struct pollfd p = {.fd = t->fd, .events = POLLIN};
		ssize_t n = poll(&p, 1, -1) < 0 ? -1 : recv(t->fd, b, sizeof(b), 0);

		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0 || abx_fs_write_all(t->p->in_fd, b, (size_t)n) < 0)
			break;
	}
	hang_up(t->p);
	return NULL;
}

static bool send_all(int fd, const char *data, size_t len)
{
	while (len) {
		struct pollfd p = {.fd = fd, .events = POLLOUT};
		ssize_t n = poll(&p, 1, -1) < 0 ? -1 : send(fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return false;
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
	}
	return true;
}

static void *run_tunnel(void *arg)
{
	struct tunnel *t = arg;
	struct e2b *e = t->p->box->e;
	char *b = abx_xcalloc(1, PUMP_BYTES);
	pthread_t in;
	bool has_in = abx_thread_start(&in, pump_in, t) == 0;
	ssize_t n;

	do
		n = has_in ? emu_feed_pull(t->p->feed, b, PUMP_BYTES, LEFT_MS) : 0;
	while (n == -EAGAIN || (n > 0 && send_all(t->fd, b, (size_t)n)));
	emu_feed_leave(t->p->feed);
	(void)shutdown(t->fd, SHUT_RDWR);
	if (has_in)
		(void)pthread_join(in, NULL);
	free(b);
	t->close(t->handle);
	port_put(t->p);
	free(t);
	e2b_thread_over(e);
	return NULL;
}

static void tunnel(void *ctx, int fd, const void *early, size_t len, void (*fn)(void *handle),
		   void *handle)
{
	struct port *p = ctx;
	struct tunnel *t = abx_xcalloc(1, sizeof(*t));

	p->tunnelled = true;
	*t = (struct tunnel){.p = port_get(p), .fd = fd, .close = fn, .handle = handle};
	if (len)
		write_to(p, early, len);
	if (e2b_thread(p->box->e, run_tunnel, t))
		return;
	fn(handle);
	port_put(p);
	free(t);
}

/* Those of the answer that are the client's; the list ends with NULL. */
static void take_headers(const struct emu_answer *a, bool upgrade, struct emu_header_pair *to,
			 const char **ret_type)
{
	*ret_type = NULL;
	for (size_t i = 0; i < a->n; i++) {
		const char *name = a->names[i];

		if (strcasecmp(name, "Content-Type") == 0)
			*ret_type = a->values[i];
		else if (strcasecmp(name, "Content-Length") != 0 && strcasecmp(name, "Date") != 0 &&
			 (!is_between_hops(name) || (upgrade && strcasecmp(name, "Upgrade") == 0)))
			*to++ = (struct emu_header_pair){name, a->values[i]};
	}
	*to = (struct emu_header_pair){NULL, NULL};
}

static void pass_answer(struct emu_request *req, struct port *p)
{
	struct emu_header_pair headers[EMU_ANSWER_HEADERS + 1];
	const struct emu_answer *a = &p->answer;
	const char *type;

	take_headers(a, a->status == 101, headers, &type);
	if (a->status == 101)
		emu_reply_upgrade(req, headers, tunnel, p);
	else if (a->status == 204 || a->status == 304)
		emu_reply(req, a->status, type, NULL, 0, headers);
	else
		emu_reply_feed(req, a->status, type, a->size, emu_feed_get(p->feed), headers);
}

static void pass(struct emu_request *req)
{
	struct port *p = req->data;
	bool whole;

	if (!p->dialled)
		begin_request(req, p);
	if (p->chunked)
		write_to(p, "0\r\n\r\n", 5);
	(void)pthread_mutex_lock(&p->lock);
	while (!p->head_whole && !p->over)
		(void)pthread_cond_wait(&p->changed, &p->lock);
	whole = p->head_whole;
	(void)pthread_mutex_unlock(&p->lock);
	if (whole)
		pass_answer(req, p);
	else if (p->connected)
		envd_proxy_error(req, 502, "The sandbox closed the connection", 0);
	else
		envd_proxy_error(req, 502, "The sandbox is running but port is not open",
				 strtoul(p->number, NULL, 10));
}

static void request_over(void *data)
{
	struct port *p = data;

	if (!p->tunnelled)
		hang_up(p);
	port_put(p);
}

void envd_port_begin(struct emu_request *req, struct e2b_box *b, uint64_t number)
{
	struct port *p = abx_xcalloc(1, sizeof(*p));

	p->box = e2b_box_get(b);
	p->refs = 1;
	p->in_end = p->in_fd = -1;
	p->feed = emu_feed_new(FEED_BYTES);
	(void)snprintf(p->number, sizeof(p->number), "%u", (unsigned int)number);
	(void)pthread_mutex_init(&p->lock, NULL);
	(void)pthread_cond_init(&p->changed, NULL);
	emu_gunzip_free(req->gunzip);
	req->gunzip = NULL;
	emu_answer_init(&p->answer, strcmp(req->method, "HEAD") == 0, on_body, p);
	req->data = p;
	req->data_free = request_over;
	req->sink = sink;
	req->handle = pass;
}
