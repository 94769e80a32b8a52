/* SPDX-License-Identifier: MIT */
/* What the unit tests share. */
#include "tests/unit/unit.h"

#include <dirent.h>

struct abx_err unit_err = ABX_ERR_INIT;
static char unit_dir_path[256];
static struct abx_home unit_home_opened = ABX_HOME_INIT;

void unit_dir_setup(void)
{
	const char *tmp = secure_getenv("TMPDIR");

	(void)snprintf(unit_dir_path, sizeof(unit_dir_path), "%s/abx-unit-XXXXXX",
		       tmp && *tmp ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(unit_dir_path));
}

void unit_dir_teardown(void)
{
	abx_home_release(&unit_home_opened);
	if (unit_dir_path[0])
		(void)abx_fs_remove_tree(AT_FDCWD, unit_dir_path);
	unit_dir_path[0] = '\0';
}

void unit_home_setup(void)
{
	unit_dir_setup();
	ck_assert_int_eq(setenv("AGENTBOX_HOME", unit_dir_path, 1), 0);
	unit_ok(abx_home_open(&unit_home_opened, &unit_err));
}

const char *unit_dir(void)
{
	return unit_dir_path;
}

struct abx_home *unit_home(void)
{
	return &unit_home_opened;
}

const char *unit_path(const char *name)
{
	static char paths[8][512];
	static unsigned int next;
	char *path = paths[next++ % 8];

	(void)snprintf(path, sizeof(paths[0]), "%s/%s", unit_dir_path, name);
	return path;
}

void unit_write(const char *name, const void *data, size_t len)
{
	abx_autoclose int fd =
		open(unit_path(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(abx_fs_write_all(fd, data, len), 0);
}

void unit_write_text(const char *name, const char *text)
{
	unit_write(name, text, strlen(text));
}

char *unit_read(const char *name)
{
	struct abx_buf b = ABX_BUF_INIT(1 << 24);

	ck_assert_int_eq(abx_fs_read(AT_FDCWD, unit_path(name), &b), 0);
	return abx_buf_steal(&b);
}

static int unit_stderr_saved = -1;

void unit_stderr_begin(void)
{
	abx_autoclose int fd = open(unit_path("stderr"),
				    O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	(void)fflush(stderr);
	unit_stderr_saved = fcntl(2, F_DUPFD_CLOEXEC, 10);
	ck_assert_int_eq(dup2(fd, 2), 2);
}

char *unit_stderr_end(void)
{
	char *text;

	(void)fflush(stderr);
	ck_assert_int_eq(dup2(unit_stderr_saved, 2), 2);
	(void)close(unit_stderr_saved);
	text = unit_read("stderr");
	(void)unlink(unit_path("stderr"));
	return text;
}

void unit_signal(int signo, void (*handler)(int))
{
	const struct sigaction sa = {.sa_handler = handler};

	ck_assert_int_eq(sigaction(signo, &sa, NULL), 0);
}

void unit_disk_full_at(rlim_t bytes)
{
	struct rlimit limit;

	unit_signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

void unit_disk_free(void)
{
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

size_t unit_count(const char *prefix, const char *suffix)
{
	DIR *dir = opendir(unit_dir_path);
	struct dirent *e;
	size_t n = 0;

	ck_assert_ptr_nonnull(dir);
	while ((e = readdir(dir))) {
		size_t len = strlen(e->d_name), tail = strlen(suffix);

		n += strncmp(e->d_name, prefix, strlen(prefix)) == 0 && len >= tail &&
		     strcmp(e->d_name + len - tail, suffix) == 0;
	}
	(void)closedir(dir);
	return n;
}

unsigned int unit_together(unsigned int n, int (*work)(unsigned int i))
{
	abx_autofree pid_t *pids = abx_xcalloc(n, sizeof(*pids));
	unsigned int good = 0;
	int gate[2], status;
	char c;

	ck_assert_int_eq(pipe(gate), 0);
	(void)fflush(NULL);
	for (unsigned int i = 0; i < n; i++) {
		pids[i] = fork();
		ck_assert_int_ge(pids[i], 0);
		if (pids[i])
			continue;
		(void)close(gate[1]);
		/* The end of the pipe is the starting signal. */
		(void)!read(gate[0], &c, 1);
		_exit(work(i) == 0 ? 0 : 1);
	}
	(void)close(gate[0]);
	(void)close(gate[1]);
	for (unsigned int i = 0; i < n; i++)
		good += waitpid(pids[i], &status, 0) == pids[i] && status == 0;
	return good;
}
