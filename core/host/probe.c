/* SPDX-License-Identifier: MIT */
/* Loading a plugin where it cannot hurt: the parent's side. */
#include "core/host/probe.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "abxsdk/fs.h"
#include "abxsdk/spawn.h"
#include "config.h"
#include "core/host/elfcheck.h"
#include "core/util/clock.h"
#include "core/util/mem.h"

/* Set in a probe's environment, so that none starts another. */
#define ABX_PROBE_GUARD "AGENTBOX_PROBING"
#define PROBE_LIMIT_MS 5000
#define PROBE_MAX_OUTPUT_BYTES (1 << 20)
#define PROBE_FD 3

static const char *probe_program = "/proc/self/exe";

void abx_probe_set_program(const char *path)
{
	probe_program = path;
}

/* What the dynamic linker and the sanitizers read; no secret of ours among it. */
static void probe_environment(struct abx_strv *env)
{
	static const char *const kept[] = {
		"PATH",		"HOME",		"TMPDIR",	 "LD_LIBRARY_PATH", "LD_PRELOAD",
		"ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS",
	};

	for (size_t i = 0; i < ABX_N_ELEMENTS(kept); i++) {
		const char *value = secure_getenv(kept[i]);

		if (value)
			abx_strv_take(env, abx_xasprintf("%s=%s", kept[i], value));
	}
	abx_strv_add(env, ABX_PROBE_GUARD "=1");
}

/* Collect its output until it ends or the time is over.  1 when the time was over. */
static int collect(int fd, struct abx_buf *out)
{
	const int64_t end = abx_now_ms() + PROBE_LIMIT_MS;

	for (;;) {
		int64_t left = end - abx_now_ms();
		struct pollfd p = {fd, POLLIN, 0};
		char chunk[4096];
		ssize_t n;

		if (left <= 0)
			return 1;
		if (poll(&p, 1, (int)left) <= 0)
			continue;
		n = read(fd, chunk, sizeof(chunk));
		if (n == 0 || (n < 0 && errno != EINTR))
			return 0;
		if (n > 0)
			abx_buf_add(out, chunk, (size_t)n);
		if (out->failed)
			return 0;
	}
}

/* It closed its output; that it also ends is not certain. */
static int wait_briefly(pid_t pid, int *ret_status)
{
	const int64_t end = abx_now_ms() + 1000;

	for (;;) {
		const struct timespec pause = {0, 1000000};
		pid_t got = waitpid(pid, ret_status, WNOHANG);

		if (got == pid)
			return 0;
		if (got < 0 && errno != EINTR)
			return -errno;
		if (abx_now_ms() >= end)
			return -ETIMEDOUT;
		(void)nanosleep(&pause, NULL);
	}
}

static int spawn_probe(int fd, const char *path, struct abx_buf *out, bool *ret_hung,
		       int *ret_status)
{
	const char *const argv[] = {probe_program, ABX_PROBE_COMMAND, path, "3", NULL};
	abx_auto(abx_strv) struct abx_strv env = {0};
	abx_autoclose int read_end = -1, write_end = -1;
	struct abx_spawn s = {.argv = argv, .fd_in = -1, .fd_err = -1, .n_extra = 1};
	int pair[2], r;
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	read_end = pair[0];
	write_end = pair[1];
	probe_environment(&env);
	s.envp = (const char *const *)env.items;
	s.fd_out = write_end;
	s.extra[0].from = fd;
	s.extra[0].to = PROBE_FD;
	r = abx_spawn_start(&s, &pid);
	if (r < 0)
		return r;
	(void)close(abx_steal_fd(&write_end));
	*ret_hung = collect(read_end, out) || wait_briefly(pid, ret_status) < 0;
	if (!*ret_hung)
		return 0;
	(void)kill(pid, SIGKILL);
	return abx_spawn_wait(pid, ret_status);
}

static int no_good(struct abx_err *err, const char *path, const char *name, const char *fmt, ...)
	ABX_PRINTF(4, 5);

static int no_good(struct abx_err *err, const char *path, const char *name, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)abx_err_set(err, ABX_EPROVIDER, "%s: provider '%s' %s", path, name, text);
	return abx_err_remedy(err, "reinstall it");
}

/* What the child found out: its table, or {"error", "remedy"}. */
static int judge(const char *path, const char *name, int status, const struct abx_buf *out,
		 cJSON **ret_info, struct abx_err *err)
{
	cJSON *doc = out->len && !out->failed ? cJSON_ParseWithLength(out->data, out->len) : NULL;
	const char *error = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(doc, "error"));
	const char *remedy = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(doc, "remedy"));
	int r = 0;

	if (WIFSIGNALED(status)) {
		r = no_good(err, path, name, "crashed when it was loaded (signal %d)",
			    WTERMSIG(status));
	} else if (error) {
		r = abx_err_set(err, ABX_EPROVIDER, "%s", error);
		if (remedy)
			(void)abx_err_remedy(err, "%s", remedy);
	} else if (!cJSON_IsObject(doc) || WEXITSTATUS(status) != 0) {
		r = no_good(err, path, name, "ended the program when it was loaded (exit code %d)",
			    WEXITSTATUS(status));
	}
	if (r == 0 && ret_info) {
		*ret_info = doc;
		doc = NULL;
	}
	cJSON_Delete(doc);
	return r;
}

int abx_probe_run(int fd, const char *path, const char *name, cJSON **ret_info, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(PROBE_MAX_OUTPUT_BYTES);
	bool hung = false;
	int status = 0, r;

	/* A program that does not know the command would run itself again and again. */
	if (secure_getenv(ABX_PROBE_GUARD))
		return abx_err_set(err, ABX_EINTERNAL,
				   "this program does not answer to " ABX_PROBE_COMMAND);
	r = abx_elfcheck(fd, path, err);
	if (r < 0)
		return r;
	r = spawn_probe(fd, path, &out, &hung, &status);
	if (r < 0)
		return abx_err_errno(err, r, "%s: start '%s' to try it", path, probe_program);
	if (hung)
		return no_good(err, path, name, "did not finish loading within %d s",
			       PROBE_LIMIT_MS / 1000);
	return judge(path, name, status, &out, ret_info, err);
}

/* Changes with every change of the file, and of us. */
static void memory_key(struct abx_buf *b, const char *path, const struct stat *st)
{
	abx_buf_addf(b, "%s\n%s\n%llu %llu %lld %lld.%09ld %lld.%09ld\n", PACKAGE_VERSION, path,
		     (unsigned long long)st->st_dev, (unsigned long long)st->st_ino,
		     (long long)st->st_size, (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
		     (long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
}

static bool is_remembered(const struct abx_home *home, const char *file, const struct abx_buf *key)
{
	abx_auto(abx_buf) struct abx_buf known = ABX_BUF_INIT(16384);

	return abx_fs_read(home->fd, file, &known) == 0 && known.len == key->len &&
	       memcmp(known.data, key->data, key->len) == 0;
}

/* Only a shortcut: when it cannot be written the next start probes again. */
static void remember(const struct abx_home *home, const char *file, const struct abx_buf *key)
{
	if (abx_fs_mkdir_p(home->fd, "cache/providers", 0700) == 0)
		(void)abx_fs_write_atomic(home->fd, file, key->data, key->len, 0600,
					  /* durable= */ false);
}

int abx_probe_ensure(int fd, const char *path, const char *name, const struct abx_home *home,
		     struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf key = ABX_BUF_INIT(16384);
	abx_autofree char *file = NULL;
	struct stat st;
	int r;

	if (!home || home->fd < 0)
		return abx_probe_run(fd, path, name, NULL, err);
	if (fstat(fd, &st) < 0)
		return abx_err_errno(err, errno, "%s: stat", path);
	memory_key(&key, path, &st);
	if (key.failed)
		return abx_err_set(err, ABX_EPROVIDER, "%s: path is too long", path);
	file = abx_xasprintf("cache/providers/%s", name);
	if (is_remembered(home, file, &key))
		return 0;
	r = abx_probe_run(fd, path, name, NULL, err);
	if (r == 0)
		remember(home, file, &key);
	return r;
}
