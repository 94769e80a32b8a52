/* SPDX-License-Identifier: MIT */
/*
 * Out of a session's cgroup into one of the user's own systemd.
 *
 * Version 2 lets a process be moved by whoever may write to the common parent of where it is and
 * where it goes, and an ordinary user may not write above user@UID.service, which is beside the
 * sessions.  The user's systemd has this done by the system's: its private socket is asked for a
 * transient scope around this process, in the few messages of D-Bus that this takes.
 */
#include "providers/local/box.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWER_SECONDS 20
#define MOVE_WAIT_MS 5
#define MESSAGE_MAX 1024
#define HEADER_BYTES 16
#define MESSAGES_MAX 1000
#define ANSWER_MAX (1 << 20)
#define ENDIAN_LITTLE 'l'
#define ENDIAN_BIG 'B'

enum { METHOD_CALL = 1, METHOD_RETURN = 2, METHOD_ERROR = 3 };
enum {
	FIELD_PATH = 1,
	FIELD_INTERFACE = 2,
	FIELD_MEMBER = 3,
	FIELD_DESTINATION = 6,
	FIELD_SIGNATURE = 8
};

/* Values are aligned to their size from the start of the message, structures to 8. */
struct message {
	unsigned char b[MESSAGE_MAX];
	size_t len;
	bool failed; /* it did not fit */
};

static void put(struct message *m, const void *data, size_t n)
{
	m->failed = m->failed || n > sizeof(m->b) - m->len;
	if (m->failed)
		return;
	memcpy(m->b + m->len, data, n);
	m->len += n;
}

static void align(struct message *m, size_t to)
{
	while (m->len % to && !m->failed)
		put(m, "", 1);
}

static size_t put_u32(struct message *m, uint32_t v)
{
	align(m, 4);
	put(m, &v, sizeof(v));
	return m->len - sizeof(v);
}

static void put_string(struct message *m, const char *s)
{
	(void)put_u32(m, (uint32_t)strlen(s));
	put(m, s, strlen(s) + 1);
}

static void put_signature(struct message *m, const char *s)
{
	unsigned char n = (unsigned char)strlen(s);

	put(m, &n, 1);
	put(m, s, (size_t)n + 1);
}

static void put_field(struct message *m, unsigned char code, const char *type, const char *value)
{
	align(m, 8);
	put(m, &code, 1);
	put_signature(m, type);
	if (type[0] == 'g')
		put_signature(m, value);
	else
		put_string(m, value);
}

/* The length of what follows `at` and its padding. */
static void set_length(struct message *m, size_t at, size_t start)
{
	uint32_t n = (uint32_t)(m->len - start);

	if (!m->failed)
		memcpy(m->b + at, &n, sizeof(n));
}

static unsigned char own_endian(void)
{
	const uint16_t one = 1;

	return *(const unsigned char *)&one ? ENDIAN_LITTLE : ENDIAN_BIG;
}

/* Its processes, and that nothing is kept of it should one fail. */
static void put_properties(struct message *m, pid_t pid)
{
	size_t at = put_u32(m, 0), start, list;

	align(m, 8);
	start = m->len;
	put_string(m, "PIDs");
	put_signature(m, "au");
	list = put_u32(m, 0);
	(void)put_u32(m, (uint32_t)pid);
	set_length(m, list, list + sizeof(uint32_t));
	align(m, 8);
	put_string(m, "CollectMode");
	put_signature(m, "s");
	put_string(m, "inactive-or-failed");
	set_length(m, at, start);
}

/* StartTransientUnit(name, "fail", [("PIDs", [pid]), ("CollectMode",
 * "inactive-or-failed")], []) */
static void write_call(struct message *m, pid_t pid)
{
	const unsigned char start[] = {own_endian(), METHOD_CALL, 0, 1};
	size_t body_at, at, body;
	char name[64];

	put(m, start, sizeof(start));
	body_at = put_u32(m, 0);
	(void)put_u32(m, 1); /* serial number */
	at = put_u32(m, 0);
	put_field(m, FIELD_PATH, "o", "/org/freedesktop/systemd1");
	put_field(m, FIELD_INTERFACE, "s", "org.freedesktop.systemd1.Manager");
	put_field(m, FIELD_MEMBER, "s", "StartTransientUnit");
	put_field(m, FIELD_DESTINATION, "s", "org.freedesktop.systemd1");
	put_field(m, FIELD_SIGNATURE, "g", "ssa(sv)a(sa(sv))");
	set_length(m, at, HEADER_BYTES);
	align(m, 8);
	body = m->len;

	(void)snprintf(name, sizeof(name), "agentbox-%ld.scope", (long)pid);
	put_string(m, name);
	put_string(m, "fail");
	put_properties(m, pid);
	(void)put_u32(m, 0);
	align(m, 8);
	set_length(m, body_at, body);
}

static int connect_to(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	const struct timeval patience = {.tv_sec = ANSWER_SECONDS};
	int fd;

	if ((size_t)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path) >= sizeof(sa.sun_path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0 ||
	    connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		int e = errno;

		(void)close(fd);
		return -e;
	}
	return fd;
}

static int send_all(int fd, const void *data, size_t n)
{
	const char *p = data;

	while (n) {
		ssize_t k = send(fd, p, n, MSG_NOSIGNAL);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return k < 0 ? -errno : -EPIPE;
		p += k;
		n -= (size_t)k;
	}
	return 0;
}

static int receive(int fd, void *data, size_t n)
{
	char *p = data;

	while (n) {
		ssize_t k = recv(fd, p, n, 0);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return k < 0 ? -errno : -EPIPE;
		p += k;
		n -= (size_t)k;
	}
	return 0;
}

/* Who we are is what the kernel says of the socket; "OK" and an id are the answer. */
static int authenticate(int fd)
{
	char line[256], uid[16];
	size_t len = 0;
	int r;

	(void)snprintf(uid, sizeof(uid), "%u", (unsigned int)geteuid());
	memcpy(line, "\0AUTH EXTERNAL ", 15);
	for (len = 15, r = 0; uid[r]; r++)
		len += (size_t)snprintf(line + len, sizeof(line) - len, "%02x",
					(unsigned char)uid[r]);
	memcpy(line + len, "\r\n", 2);
	r = send_all(fd, line, len + 2);
	for (len = 0; r == 0 && (len < 2 || memcmp(line + len - 2, "\r\n", 2) != 0); len++)
		r = len == sizeof(line) ? -EPROTO : receive(fd, line + len, 1);
	if (r == 0 && (len < 3 || memcmp(line, "OK ", 3) != 0))
		r = -EACCES;
	return r < 0 ? r : send_all(fd, "BEGIN\r\n", 7);
}

/* Signals may come before the answer; only what it is matters, not what it says. */
static int await_answer(int fd)
{
	for (int i = 0; i < MESSAGES_MAX; i++) {
		unsigned char head[HEADER_BYTES], rest[256];
		uint32_t body, fields;
		uint64_t left;
		int r = receive(fd, head, sizeof(head));

		if (r < 0)
			return r;
		if (head[0] != own_endian() || head[3] != 1)
			return -EPROTO;
		memcpy(&body, head + 4, sizeof(body));
		memcpy(&fields, head + 12, sizeof(fields));
		left = ((uint64_t)fields + 7) / 8 * 8 + body;
		if (left > ANSWER_MAX)
			return -EPROTO;
		while (left && r == 0) {
			size_t n = left < sizeof(rest) ? (size_t)left : sizeof(rest);

			r = receive(fd, rest, n);
			left -= n;
		}
		if (r < 0 || head[1] == METHOD_RETURN)
			return r;
		if (head[1] == METHOD_ERROR)
			return -EACCES;
	}
	return -EPROTO;
}

int box_scope_ask(const char *path, pid_t pid)
{
	struct message m = {.len = 0};
	int fd, r;

	write_call(&m, pid);
	if (m.failed)
		return -EMSGSIZE;
	fd = connect_to(path);
	if (fd < 0)
		return fd;
	r = authenticate(fd);
	if (r == 0)
		r = send_all(fd, m.b, m.len);
	if (r == 0)
		r = await_answer(fd);
	(void)close(fd);
	return r;
}

int box_scope_join(int procs_fd)
{
	char path[64];
	int r;

	(void)snprintf(path, sizeof(path), "/run/user/%u/systemd/private", (unsigned int)geteuid());
	r = box_scope_ask(path, getpid());
	/* The answer is that there is a job; once that is done, the way is free. */
	for (int ms = 0; r == 0 && ms < ANSWER_SECONDS * 1000; ms += MOVE_WAIT_MS) {
		if (write(procs_fd, "0", 1) == 1)
			return 0;
		if (errno != EACCES)
			return -errno;
		(void)poll(NULL, 0, MOVE_WAIT_MS);
	}
	return r < 0 ? r : -EACCES;
}
