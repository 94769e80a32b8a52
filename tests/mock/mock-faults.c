/* SPDX-License-Identifier: MIT */
/* The mock provider: misbehaviour on demand. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#include "abxsdk/fs.h"
#include "abxsdk/number.h"
#include "mock.h"

static const struct {
	const char *name;
	int32_t code;
} codes[] = {
	{"EINTERNAL", ABX_EINTERNAL},
	{"ENOTSUP", ABX_ENOTSUP},
	{"EINVAL", ABX_EINVAL},
	{"ENOTFOUND", ABX_ENOTFOUND},
	{"EEXIST", ABX_EEXIST},
	{"ESTATE", ABX_ESTATE},
	{"EAUTH", ABX_EAUTH},
	{"EPERM", ABX_EPERM},
	{"EQUOTA", ABX_EQUOTA},
	{"ERATE", ABX_ERATE},
	{"ETIMEDOUT", ABX_ETIMEDOUT},
	{"ECANCELED", ABX_ECANCELED},
	{"ENETWORK", ABX_ENETWORK},
	{"EREMOTE", ABX_EREMOTE},
	{"EIO", ABX_EIO},
	{"ENOMEM", ABX_ENOMEM},
	{"EPROTO", ABX_EPROTO},
	{"UNKNOWN", -999},
	{"POSITIVE", 7},
};

struct rule {
	char op[32], what[32], value[64], text[128];
	long retry_after, times, after;
	char source[256]; /* for its counter */
};

static long number(const char *text)
{
	uint64_t n = 0;

	(void)abx_parse_digits(&text, 100000000, &n);
	return (long)n;
}

static void copy(char *to, size_t size, const char *from, size_t len)
{
	(void)snprintf(to, size, "%.*s", (int)(len < size ? len : size - 1), from);
}

static void parse_parameter(struct rule *r, const char *text, size_t len)
{
	const char *eq = memchr(text, '=', len);
	size_t key = eq ? (size_t)(eq - text) : len;
	char value[128] = "";

	if (eq)
		copy(value, sizeof(value), eq + 1, len - key - 1);
	if (key == 5 && memcmp(text, "times", 5) == 0)
		r->times = number(value);
	else if (key == 5 && memcmp(text, "after", 5) == 0)
		r->after = number(value);
	else if (key == 11 && memcmp(text, "retry_after", 11) == 0)
		r->retry_after = number(value);
	else if (key == 4 && memcmp(text, "text", 4) == 0)
		copy(r->text, sizeof(r->text), value, strlen(value));
	else if (!r->what[0]) {
		copy(r->what, sizeof(r->what), text, key);
		copy(r->value, sizeof(r->value), value, strlen(value));
	}
}

/* One rule, up to `;`.  Returns what follows, NULL at the end. */
static const char *parse_rule(const char *at, struct rule *r)
{
	size_t len = strcspn(at, ";"), colon = strcspn(at, ":;,=");
	const char *end = at + len, *next = *end ? end + 1 : NULL;

	memset(r, 0, sizeof(*r));
	r->retry_after = -1;
	r->times = -1;
	copy(r->source, sizeof(r->source), at, len);
	if (at[colon] == ':') {
		copy(r->op, sizeof(r->op), at, colon);
		at += colon + 1;
	}
	while (at < end) {
		size_t n = strcspn(at, ",;");

		parse_parameter(r, at, n);
		at += n + (at[n] == ',');
	}
	return next;
}

/* Count one use of a rule with `times`; false when it is used up. */
static int use(const struct abx_session *s, const struct rule *r)
{
	abx_autofree char *dir = mock_path(s, "faults"), *path = NULL;
	abx_autoclose int fd = -1;
	char name[256], text[24] = "";
	long used;

	if (r->times < 0)
		return 1;
	copy(name, sizeof(name), r->source, strlen(r->source));
	for (char *c = name; *c; c++)
		if (*c == '/')
			*c = '_';
	(void)abx_fs_mkdir_p(AT_FDCWD, dir, 0700);
	path = mock_path(s, "faults/%s", name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return 0;
	(void)!pread(fd, text, sizeof(text) - 1, 0);
	used = number(text);
	if (used >= r->times)
		return 0;
	(void)snprintf(text, sizeof(text), "%ld", used + 1);
	return pwrite(fd, text, strlen(text), 0) == (ssize_t)strlen(text);
}

static int32_t code_of(const char *name)
{
	for (size_t i = 0; i < ABX_N_ELEMENTS(codes); i++)
		if (strcmp(codes[i].name, name) == 0)
			return codes[i].code;
	return ABX_EINTERNAL;
}

/* One request that is sent until the host has enough. */
static int32_t again(const struct rule *r, struct abx_call *call)
{
	const struct abx_failure f = {ABX_INIT(struct abx_failure), .code = code_of(r->value),
				      .retry_after_ms = r->retry_after, .text = "not now"};

	for (uint32_t attempt = 1;; attempt++) {
		mock_host->trace(call, "GET", "/again", 429, 10);
		if (!mock_host->retry(call, &f, attempt))
			return mock_host->fail(call, &f);
	}
}

static int32_t learn(struct abx_call *call)
{
	static const char secret[] = "learned-secret-1";

	mock_host->add_secret(call, secret);
	return mock_host->store_secret(call, "token", secret);
}

static int32_t apply(struct abx_session *s, const struct rule *r, struct abx_call *call,
		     const char *op)
{
	char text[256];
	struct abx_failure f = {ABX_INIT(struct abx_failure), .retry_after_ms = r->retry_after,
				.text = text, .request_id = "mock-request-1",
				.remedy = "change mock.faults"};

	(void)snprintf(text, sizeof(text), "%s", r->text[0] ? r->text : "as mock.faults demands");
	if (strcmp(r->what, "fail") == 0) {
		f.code = code_of(r->value);
		if (f.code > 0 || f.code < ABX_EPROTO)
			return f.code;
		return mock_host->fail(call, &f);
	}
	if (strcmp(r->what, "print") == 0)
		(void)!write(STDOUT_FILENO, "hello\n", 6);
	if (strcmp(r->what, "leak") == 0)
		(void)!dup(STDIN_FILENO);
	if (strcmp(r->what, "tell") == 0)
		return mock_fail(call, ABX_EAUTH, "the token is %s", s->token ? s->token : "-");
	if (strcmp(r->what, "again") == 0)
		return again(r, call);
	if (strcmp(r->what, "learn") == 0)
		return learn(call);
	if (strcmp(r->what, "lose") == 0) {
		f.code = ABX_ENETWORK;
		f.flags = ABX_FAIL_OUTCOME_UNKNOWN;
		(void)snprintf(text, sizeof(text), "the answer to %s was lost", op);
		return mock_host->fail(call, &f);
	}
	if (strcmp(r->what, "delay") == 0)
		return mock_host->wait_ms(call, number(r->value));
	if (strcmp(r->what, "wait") == 0)
		return mock_host->wait_ms(call, INT64_MAX);
	if (strcmp(r->what, "deaf") == 0) {
		const long ms = number(r->value);
		const struct timespec pause_for = {ms / 1000, ms % 1000 * 1000000};

		(void)nanosleep(&pause_for, NULL);
	}
	if (strcmp(r->what, "hang") == 0)
		for (;;)
			(void)pause();
	if (strcmp(r->what, "kill") == 0)
		(void)raise(SIGKILL);
	return ABX_OK;
}

static int32_t run_rules(struct abx_session *s, struct abx_call *call, const char *op, long after)
{
	const char *at = s->faults;
	struct rule r;

	while (at && *at) {
		int32_t code;

		at = parse_rule(at, &r);
		/* Those are asked for by mock_fault_is(), where they matter. */
		if (strcmp(r.op, op) != 0 || strcmp(r.what, "garbage") == 0 ||
		    strcmp(r.what, "resource") == 0)
			continue;
		if ((strcmp(r.what, "lose") == 0 || r.after) != after || !use(s, &r))
			continue;
		code = apply(s, &r, call, op);
		if (code != ABX_OK)
			return code;
	}
	return ABX_OK;
}

int32_t mock_fault_before(struct abx_session *s, struct abx_call *call, const char *op)
{
	return run_rules(s, call, op, 0);
}

int32_t mock_fault_after(struct abx_session *s, struct abx_call *call, const char *op)
{
	return run_rules(s, call, op, 1);
}

int mock_fault_is(struct abx_session *s, const char *op, const char *what)
{
	const char *at = s->faults;
	struct rule r;

	while (at && *at) {
		at = parse_rule(at, &r);
		if ((!r.op[0] || strcmp(r.op, op) == 0) && strcmp(r.what, what) == 0 && use(s, &r))
			return 1;
	}
	return 0;
}
