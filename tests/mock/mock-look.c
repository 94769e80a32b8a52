/* SPDX-License-Identifier: MIT */
/* The mock provider: looking at sandboxes. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"
#include "mock.h"

#define LOOK_EVERY_MS 10
#define MAX_WATCHED 256

/* How each sandbox was when it was last told. */
struct watched {
	char id[64];
	uint32_t state;
	int seen;
};

static int32_t tell(struct abx_session *s, struct abx_call *call, struct watched *all, size_t *n,
		    const struct mock_box *b)
{
	size_t i = 0;

	while (i < *n && strcmp(all[i].id, b->id) != 0)
		i++;
	if (i == MAX_WATCHED)
		return ABX_OK;
	all[i].seen = 1;
	if (i < *n && all[i].state == b->state)
		return ABX_OK;
	(void)snprintf(all[i].id, sizeof(all[i].id), "%s", b->id);
	all[i].state = b->state;
	*n += i == *n;
	return mock_box_emit(s, call, b);
}

static int32_t look(struct abx_session *s, struct abx_call *call, const struct abx_list_req *req,
		    struct watched *all, size_t *n)
{
	abx_autofree char *path = mock_path(s, "sandboxes");
	DIR *dir = opendir(path);
	struct dirent *e;
	int32_t r = ABX_OK;

	while (dir && r == ABX_OK && (e = readdir(dir))) {
		char *suffix = strrchr(e->d_name, '.');
		struct mock_box b;

		if (!suffix || strcmp(suffix, ".json") != 0)
			continue;
		*suffix = '\0';
		if (mock_box_load(s, call, e->d_name, &b) != ABX_OK)
			continue;
		if (mock_labels_match(b.labels, b.n_labels, req))
			r = tell(s, call, all, n, &b);
		mock_box_release(&b);
	}
	if (dir)
		(void)closedir(dir);
	return r;
}

int32_t mock_watch(struct abx_session *s, struct abx_call *call, const struct abx_list_req *req)
{
	struct watched *all = calloc(MAX_WATCHED + 1, sizeof(*all));
	int32_t r = mock_fault_before(s, call, "watch");
	size_t n = 0;

	while (all && r == ABX_OK) {
		r = look(s, call, req, all, &n);
		if (r == ABX_OK)
			r = mock_host->wait_ms(call, LOOK_EVERY_MS);
	}
	free(all);
	return r;
}

static int32_t begin(struct abx_session *s, struct abx_call *call, const char *op,
		     const struct abx_sandbox *sb, struct mock_box *b)
{
	int32_t r = mock_fault_before(s, call, op);

	mock_host->trace(call, "GET", op, 200, 10);
	return r == ABX_OK ? mock_box_load(s, call, sb->id, b) : r;
}

int32_t mock_stats(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb)
{
	char pids[24];
	const struct abx_kv cells[] = {{"cpu_ms", "1500"},
				       {"memory_bytes", "1048576"},
				       {"memory_limit_bytes", "0"},
				       {"disk_bytes", "4096"},
				       {"pids", pids}};
	struct mock_box b;
	int32_t r = begin(s, call, "stats", sb, &b);

	if (r != ABX_OK)
		return r;
	(void)snprintf(pids, sizeof(pids), "%d", mock_signal_all(s, b.id, 0));
	mock_box_release(&b);
	return mock_host->emit_row(call, cells, ABX_N_ELEMENTS(cells));
}

void mock_note(const struct abx_session *s, const char *id, const char *text)
{
	abx_autofree char *path = mock_path(s, "sandboxes/%s.log", id);
	abx_autoclose int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	char line[128];

	(void)snprintf(line, sizeof(line), "%s\n", text);
	if (fd >= 0)
		(void)abx_fs_write_all(fd, line, strlen(line));
}

/* Where the last `tail` lines begin. */
static size_t tail_at(const struct abx_buf *b, int64_t tail)
{
	int64_t lines = 0;

	for (size_t at = b->len; at > 0; at--)
		if (at < b->len && b->data[at - 1] == '\n' && ++lines == tail)
			return at;
	return 0;
}

int32_t mock_logs(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		  const struct abx_logs_req *req)
{
	abx_autofree char *path = mock_path(s, "sandboxes/%s.log", sb->id);
	struct mock_box b;
	size_t at = 0;
	int first = 1;
	int32_t r = begin(s, call, "logs", sb, &b);

	if (r == ABX_OK)
		mock_box_release(&b);
	while (r == ABX_OK) {
		abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(1 << 20);

		(void)abx_fs_read(AT_FDCWD, path, &text);
		if (first && req->tail > 0)
			at = tail_at(&text, req->tail);
		first = 0;
		if (text.len > at)
			r = mock_host->emit_log(call, ABX_STREAM_STDOUT, text.data + at,
						text.len - at);
		at = text.len;
		if (r != ABX_OK || !(req->flags & ABX_LOGS_FOLLOW))
			break;
		r = mock_host->wait_ms(call, LOOK_EVERY_MS);
	}
	return r;
}

int32_t mock_rates(struct abx_session *s, struct abx_call *call,
		   const struct abx_sandbox *sb ABX_UNUSED)
{
	static const uint32_t states[] = {ABX_STATE_RUNNING, ABX_STATE_PAUSED};
	int32_t r = mock_fault_before(s, call, "rates");

	for (size_t i = 0; i < ABX_N_ELEMENTS(states) && r == ABX_OK; i++) {
		const struct abx_rate rate = {ABX_INIT(struct abx_rate),
					      .state = states[i],
					      .nano_per_s = 1000 / (int64_t)(i + 1),
					      .quantum_s = 1,
					      .currency = "USD",
					      .as_of = "2026-01-01"};

		r = mock_host->emit_rate(call, &rate);
	}
	return r;
}

int32_t mock_usage(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb)
{
	const struct abx_usage usage = {ABX_INIT(struct abx_usage), .flags = ABX_USAGE_EXACT,
					.started_ms = 1000,	    .ended_ms = 3000,
					.billed_ms = 2000,	    .cpu_ms = 1500};
	struct mock_box b;
	int32_t r = begin(s, call, "usage", sb, &b);

	if (r != ABX_OK)
		return r;
	mock_box_release(&b);
	return mock_host->emit_usage(call, &usage);
}

int32_t mock_url(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
		 const struct abx_url_req *req)
{
	const int is_signed = (req->flags & ABX_URLREQ_SIGNED) != 0;
	char text[160];
	const struct abx_url url = {ABX_INIT(struct abx_url),
				    .flags = is_signed ? ABX_URL_SIGNED : ABX_URL_PUBLIC,
				    .url = text, .header = is_signed ? "x-mock-token" : NULL,
				    .token = is_signed ? "mock-url-token" : NULL};
	struct mock_box b;
	int32_t r = begin(s, call, "url", sb, &b);

	if (r != ABX_OK)
		return r;
	mock_box_release(&b);
	if (mock_fault_is(s, "url", "garbage"))
		(void)snprintf(text, sizeof(text), "file:///etc/passwd");
	else
		(void)snprintf(text, sizeof(text), "https://%u-%s.mock.example", req->port, sb->id);
	return mock_host->emit_url(call, &url);
}

int32_t mock_list_files(struct abx_session *s, struct abx_call *call, const struct abx_sandbox *sb,
			const char *dir)
{
	abx_autofree char *path = mock_map_path(s, sb->id, dir);
	struct dirent *e;
	struct mock_box b;
	int32_t r = begin(s, call, "list_files", sb, &b);
	DIR *d;

	if (r != ABX_OK)
		return r;
	mock_box_release(&b);
	d = opendir(path);
	if (!d)
		return mock_fail_errno(call, errno, "open the directory");
	while (r == ABX_OK && (e = readdir(d))) {
		struct abx_file f = {ABX_INIT(struct abx_file), .name = e->d_name};
		struct stat st;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		f.mode = st.st_mode;
		f.size_bytes = (uint64_t)st.st_size;
		f.mtime_s = st.st_mtime;
		r = mock_host->emit_file(call, &f);
	}
	(void)closedir(d);
	if (r == ABX_OK && mock_fault_is(s, "list_files", "garbage")) {
		const struct abx_file f = {ABX_INIT(struct abx_file), .name = "../up"};

		r = mock_host->emit_file(call, &f);
	}
	return r;
}

int32_t mock_choices(struct abx_session *s, struct abx_call *call, const char *option)
{
	const struct abx_kv cells[] = {{"value", "5m"}, {"label", "five minutes"}, {"note", ""}};
	int32_t r = mock_fault_before(s, call, "choices");

	if (r == ABX_OK && strcmp(option, "idle") != 0)
		return mock_fail(call, ABX_EINVAL, "no such option: %s", option);
	return r == ABX_OK ? mock_host->emit_row(call, cells, ABX_N_ELEMENTS(cells)) : r;
}
