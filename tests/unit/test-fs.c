/* SPDX-License-Identifier: MIT */
/* Files, the careful way. */
#include "tests/unit/unit.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>

#include "core/util/landing.h"

static int dir_fd = -1;

static void setup(void)
{
	unit_dir_setup();
	dir_fd = abx_fs_open_dir(AT_FDCWD, unit_dir());
	ck_assert_int_ge(dir_fd, 0);
}

static void teardown(void)
{
	(void)close(dir_fd);
	unit_dir_teardown();
}

START_TEST(read_only_regular_files)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(100), small = ABX_BUF_INIT(2);

	unit_write_text("f", "abc");
	ck_assert_int_eq(abx_fs_read(dir_fd, "f", &b), 0);
	ck_assert_str_eq(b.data, "abc");
	ck_assert_int_eq(abx_fs_read(dir_fd, "f", &small), -EFBIG);
	ck_assert_int_eq(abx_fs_read(dir_fd, "none", &b), -ENOENT);
	ck_assert_int_eq(abx_fs_read(dir_fd, ".", &b), -EISDIR);
	/* A FIFO without a writer must not be waited for, a device not be read. */
	ck_assert_int_eq(mkfifo(unit_path("fifo"), 0600), 0);
	ck_assert_int_eq(abx_fs_read(dir_fd, "fifo", &b), -EINVAL);
	ck_assert_int_eq(abx_fs_read(AT_FDCWD, "/dev/zero", &b), -EINVAL);
	/* No size is known of files in /proc. */
	abx_buf_reset(&b);
	ck_assert_int_eq(abx_fs_read(AT_FDCWD, "/proc/self/comm", &b), 0);
	ck_assert_uint_gt(b.len, 0);
	ck_assert_int_eq(abx_fs_read(AT_FDCWD, "/proc/self/maps", &small), -EFBIG);
}
END_TEST

START_TEST(write_replaces)
{
	abx_autofree char *text = NULL;
	struct stat st;

	(void)umask(0077);
	ck_assert_int_eq(abx_fs_write_atomic(dir_fd, "f", "one", 3, 0644, true), 0);
	ck_assert_int_eq(abx_fs_write_atomic(dir_fd, "f", "second", 6, 0640, false), 0);
	text = unit_read("f");
	ck_assert_str_eq(text, "second");
	ck_assert_int_eq(stat(unit_path("f"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0640);
	ck_assert_int_eq(abx_fs_write_atomic(AT_FDCWD, unit_path("g"), "", 0, 0600, true), 0);
	ck_assert_int_eq(stat(unit_path("g"), &st), 0);
	ck_assert_int_eq(st.st_size, 0);
	ck_assert_uint_eq(unit_count("", ""), 4);
}
END_TEST

/* A link at the name is replaced, and what it points to stays as it is. */
START_TEST(write_does_not_follow)
{
	abx_autofree char *text = NULL;
	struct stat st;

	unit_write_text("target", "kept");
	ck_assert_int_eq(symlink("target", unit_path("f")), 0);
	ck_assert_int_eq(abx_fs_write_atomic(dir_fd, "f", "new", 3, 0600, true), 0);
	ck_assert_int_eq(lstat(unit_path("f"), &st), 0);
	ck_assert(S_ISREG(st.st_mode));
	text = unit_read("target");
	ck_assert_str_eq(text, "kept");
}
END_TEST

START_TEST(failed_write_leaves_nothing)
{
	abx_autofree char *text = NULL, *big = abx_xcalloc(1, 10000);

	unit_write_text("f", "old");
	ck_assert_int_eq(mkdir(unit_path("d"), 0700), 0);
	unit_write_text("d/inside", "x");
	unit_disk_full_at(5000);
	ck_assert_int_eq(abx_fs_write_atomic(dir_fd, "f", big, 10000, 0600, true), -EFBIG);
	unit_disk_free();
	text = unit_read("f");
	ck_assert_str_eq(text, "old");
	ck_assert_int_lt(abx_fs_write_atomic(dir_fd, "d", "x", 1, 0600, true), 0);
	ck_assert_int_eq(abx_fs_write_atomic(dir_fd, "none/f", "x", 1, 0600, true), -ENOENT);
	ck_assert_uint_eq(unit_count("", ""), 4);
	ck_assert_uint_eq(unit_count("f.tmp-", ""), 0);
}
END_TEST

/* Whoever reads while it is replaced a thousand times sees one of the two, never a part. */
START_TEST(readers_see_all_or_nothing)
{
	abx_autofree char *a = abx_xcalloc(1, 20000), *b = abx_xcalloc(1, 30000);
	int status;
	pid_t pid;

	memset(a, 'a', 20000);
	memset(b, 'b', 30000);
	ck_assert_int_eq(abx_fs_write_atomic(dir_fd, "f", a, 20000, 0600, false), 0);
	pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 500; i++)
			if (abx_fs_write_atomic(dir_fd, "f", b, 30000, 0600, false) < 0 ||
			    abx_fs_write_atomic(dir_fd, "f", a, 20000, 0600, false) < 0)
				_exit(1);
		_exit(0);
	}
	while (waitpid(pid, &status, WNOHANG) == 0) {
		abx_auto(abx_buf) struct abx_buf got = ABX_BUF_INIT(1 << 20);

		ck_assert_int_eq(abx_fs_read(dir_fd, "f", &got), 0);
		ck_assert(got.len == 20000 || got.len == 30000);
		ck_assert_int_eq(got.data[0], got.data[got.len - 1]);
	}
	ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(directories)
{
	struct stat st;

	(void)umask(0);
	ck_assert_int_eq(abx_fs_mkdir_p(dir_fd, "a/b/c", 0700), 0);
	ck_assert_int_eq(abx_fs_mkdir_p(dir_fd, "a/b/c", 0700), 0);
	ck_assert_int_eq(abx_fs_mkdir_p(dir_fd, "a//b///d/", 0700), 0);
	ck_assert_int_eq(stat(unit_path("a/b/d"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
	ck_assert_int_eq(abx_fs_mkdir_p(AT_FDCWD, unit_path("x/y"), 0700), 0);
	ck_assert_int_eq(abx_fs_mkdir_p(AT_FDCWD, "/", 0700), 0);
	unit_write_text("file", "x");
	ck_assert_int_eq(abx_fs_mkdir_p(dir_fd, "file", 0700), -ENOTDIR);
	ck_assert_int_eq(abx_fs_mkdir_p(dir_fd, "file/x", 0700), -ENOTDIR);
	ck_assert_int_eq(abx_fs_open_dir(dir_fd, "file"), -ENOTDIR);
	ck_assert_int_eq(abx_fs_open_dir(dir_fd, "none"), -ENOENT);
}
END_TEST

START_TEST(removes_what_is_there)
{
	ck_assert_int_eq(abx_fs_remove_tree(dir_fd, "none"), 0);
	unit_write_text("f", "x");
	ck_assert_int_eq(abx_fs_remove_tree(dir_fd, "f"), 0);
	ck_assert_int_eq(mkdir(unit_path("empty"), 0700), 0);
	ck_assert_int_eq(abx_fs_remove_tree(dir_fd, "empty"), 0);
	ck_assert_int_eq(abx_fs_mkdir_p(dir_fd, "t/a/b", 0700), 0);
	ck_assert_int_eq(abx_fs_mkdir_p(dir_fd, "t/c", 0700), 0);
	unit_write_text("t/a/b/f", "x");
	unit_write_text("t/a/\xff\n '", "x");
	ck_assert_int_eq(mkfifo(unit_path("t/fifo"), 0600), 0);
	ck_assert_int_eq(abx_fs_remove_tree(dir_fd, "t"), 0);
	ck_assert_uint_eq(unit_count("", ""), 2);
	ck_assert_int_eq(abx_fs_remove_tree(dir_fd, "none/x"), 0);
}
END_TEST

START_TEST(removal_follows_no_link)
{
	abx_autofree char *text = NULL;

	ck_assert_int_eq(mkdir(unit_path("outside"), 0700), 0);
	unit_write_text("outside/kept", "kept");
	ck_assert_int_eq(mkdir(unit_path("t"), 0700), 0);
	ck_assert_int_eq(symlink("../outside", unit_path("t/link")), 0);
	ck_assert_int_eq(symlink(unit_path("outside/kept"), unit_path("t/file")), 0);
	ck_assert_int_eq(symlink("/none", unit_path("t/dangling")), 0);
	ck_assert_int_eq(symlink(".", unit_path("t/self")), 0);
	ck_assert_int_eq(abx_fs_remove_tree(dir_fd, "t"), 0);
	ck_assert_int_eq(symlink("outside", unit_path("top")), 0);
	ck_assert_int_eq(abx_fs_remove_tree(dir_fd, "top"), 0);
	ck_assert_int_ne(access(unit_path("top"), F_OK), 0);
	text = unit_read("outside/kept");
	ck_assert_str_eq(text, "kept");
}
END_TEST

/* Deeper than a path can be long, than descriptors may be open, and than a C stack lasts. */
START_TEST(removes_deep_trees)
{
	const int depth = _i ? 8000 : 100;
	struct rlimit files = {64, 64};
	int at = fcntl(dir_fd, F_DUPFD_CLOEXEC, 3), next;

	for (int i = 0; i < depth; i++) {
		ck_assert_int_eq(mkdirat(at, i % 2 ? "d" : "a-longer-name", 0700), 0);
		next = abx_fs_open_dir(at, i % 2 ? "d" : "a-longer-name");
		ck_assert_int_ge(next, 0);
		if (i % 500 == 0)
			ck_assert_int_eq(
				close(openat(next, "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
		(void)close(at);
		at = next;
	}
	(void)close(at);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
	ck_assert_int_eq(abx_fs_remove_tree(dir_fd, "a-longer-name"), 0);
	ck_assert_int_ne(faccessat(dir_fd, "a-longer-name", F_OK, 0), 0);
}
END_TEST

START_TEST(removes_wide_trees)
{
	ck_assert_int_eq(mkdir(unit_path("t"), 0700), 0);
	for (int i = 0; i < 3000; i++) {
		abx_autofree char *name = abx_xasprintf("t/%d", i);

		if (i % 3 == 0)
			ck_assert_int_eq(mkdir(unit_path(name), 0700), 0);
		else
			unit_write_text(name, "");
		if (i % 3 == 0) {
			abx_autofree char *inner = abx_xasprintf("t/%d/x", i);

			unit_write_text(inner, "");
		}
	}
	ck_assert_int_eq(abx_fs_remove_tree(dir_fd, "t"), 0);
	ck_assert_int_ne(access(unit_path("t"), F_OK), 0);
}
END_TEST

/* What its owner made unwritable or unreadable goes too, also without being root. */
START_TEST(removes_what_is_locked)
{
	bool root = geteuid() == 0;

	if (root) {
		ck_assert_int_eq(chown(unit_dir(), 65534, 65534), 0);
		ck_assert_int_eq(seteuid(65534), 0);
	}
	ck_assert_int_eq(abx_fs_mkdir_p(dir_fd, "t/a/b", 0700), 0);
	unit_write_text("t/a/b/f", "x");
	unit_write_text("t/a/g", "x");
	ck_assert_int_eq(chmod(unit_path("t/a/b"), 0), 0);
	ck_assert_int_eq(chmod(unit_path("t/a"), 0500), 0);
	ck_assert_int_eq(abx_fs_remove_tree(dir_fd, "t"), 0);
	ck_assert_int_ne(access(unit_path("t"), F_OK), 0);
	if (root)
		ck_assert_int_eq(seteuid(0), 0);
}
END_TEST

START_TEST(no_descriptor_is_left)
{
	DIR *dir;
	size_t before = 0, after = 0;

	for (int round = 0; round < 2; round++) {
		size_t *n = round ? &after : &before;

		dir = opendir("/proc/self/fd");
		while (readdir(dir))
			(*n)++;
		(void)closedir(dir);
		if (round)
			break;
		ck_assert_int_eq(abx_fs_mkdir_p(dir_fd, "t/a/b/c", 0700), 0);
		ck_assert_int_eq(abx_fs_write_atomic(dir_fd, "t/a/f", "x", 1, 0600, true), 0);
		ck_assert_int_lt(abx_fs_write_atomic(dir_fd, "t", "x", 1, 0600, true), 0);
		ck_assert_int_eq(abx_fs_remove_tree(dir_fd, "t"), 0);
	}
	ck_assert_uint_eq(before, after);
}
END_TEST

/* ---- files that appear whole or not at all ---- */

static void land_text(struct abx_landing *l, const char *name, const char *text)
{
	ck_assert_int_eq(abx_landing_begin(l, dir_fd, 0644), 0);
	ck_assert_int_eq(abx_fs_write_all(l->fd, text, strlen(text)), 0);
	ck_assert_int_eq(abx_landing_land(l, name), 0);
}

static void has_text(const char *name, const char *want)
{
	abx_autofree char *text = unit_read(name);

	ck_assert_str_eq(text, want);
}

START_TEST(landing)
{
	struct abx_landing l = ABX_LANDING_INIT;
	const char *name;

	land_text(&l, "f", "one");
	has_text("f", "one");
	land_text(&l, "f", "two");
	has_text("f", "two");
	/* A link is replaced, what it names is not. */
	ck_assert_int_eq(abx_landing_symlink(&l, "f", dir_fd, "link"), 0);
	land_text(&l, "link", "three");
	has_text("f", "two");
	ck_assert_int_eq(abx_landing_symlink(&l, "f", dir_fd, "link"), 0);
	has_text("link", "two");
	/* A file onto its own other name. */
	ck_assert_int_eq(abx_landing_link(&l, dir_fd, "f", dir_fd, "g"), 0);
	ck_assert_int_eq(abx_landing_link(&l, dir_fd, "f", dir_fd, "g"), 0);
	ck_assert_int_eq(mkdirat(dir_fd, "d", 0700), 0);
	ck_assert_int_eq(abx_landing_begin_at(&l, unit_path("d/h"), 0600, &name), 0);
	ck_assert_int_eq(abx_landing_land(&l, name), 0);
	has_text("d/h", "");
	/* A directory is no file's to replace. */
	ck_assert_int_eq(abx_landing_begin(&l, dir_fd, 0644), 0);
	ck_assert_int_eq(abx_landing_land(&l, "d"), -EISDIR);
	ck_assert_int_eq(l.fd, -1);
	ck_assert_int_eq(abx_landing_begin(&l, dir_fd, 0644), 0);
	abx_landing_close(&l);
	ck_assert_uint_eq(unit_count("", ""), 6);
}
END_TEST

static size_t notes_in(const char *notes)
{
	DIR *dir = abx_fs_opendir(AT_FDCWD, notes);
	const struct dirent *e;
	size_t n = 0;

	while (dir && (e = readdir(dir)))
		n += !abx_fs_is_dot(e->d_name);
	if (dir)
		(void)closedir(dir);
	return n;
}

/* Dead with a second name in use, or with a file that is no good by itself. */
static void die(const char *notes)
{
	struct abx_landing l = ABX_LANDING_INIT, alone = ABX_LANDING_INIT;
	const pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		l.notes = alone.notes = notes;
		(void)abx_landing_unless(&l, dir_fd, ".agentbox-1.tmp", NULL);
		(void)abx_landing_unless(&alone, dir_fd, "pack", "idx");
		(void)raise(SIGKILL);
	}
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

START_TEST(landing_swept)
{
	abx_autofree char *notes = abx_xstrdup(unit_path("notes"));
	struct abx_landing l = ABX_LANDING_INIT;

	abx_landing_sweep(notes);
	unit_write_text(".agentbox-1.tmp", "half");
	unit_write_text("pack", "p");
	die(notes);
	ck_assert_uint_eq(notes_in(notes), 2);
	abx_landing_sweep(notes);
	ck_assert_uint_eq(notes_in(notes), 0);
	ck_assert_int_eq(unlink(unit_path("pack")), -1);
	ck_assert_int_eq(unlink(unit_path(".agentbox-1.tmp")), -1);
	/* With its proof it stays; and so does what a living process has noted. */
	unit_write_text("pack", "p");
	unit_write_text("idx", "i");
	die(notes);
	l.notes = notes;
	unit_write_text(".agentbox-2.tmp", "half");
	ck_assert_int_eq(abx_landing_unless(&l, dir_fd, ".agentbox-2.tmp", NULL), 0);
	abx_landing_sweep(notes);
	ck_assert_uint_eq(notes_in(notes), 1);
	has_text("pack", "p");
	has_text(".agentbox-2.tmp", "half");
	abx_landing_close(&l);
	ck_assert_uint_eq(notes_in(notes), 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("fs");
	TCase *tc = tcase_create("fs");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, read_only_regular_files);
	tcase_add_test(tc, write_replaces);
	tcase_add_test(tc, write_does_not_follow);
	tcase_add_test(tc, failed_write_leaves_nothing);
	tcase_add_test(tc, readers_see_all_or_nothing);
	tcase_add_test(tc, directories);
	tcase_add_test(tc, removes_what_is_there);
	tcase_add_test(tc, removal_follows_no_link);
	tcase_add_loop_test(tc, removes_deep_trees, 0, 2);
	tcase_add_test(tc, removes_wide_trees);
	tcase_add_test(tc, removes_what_is_locked);
	tcase_add_test(tc, no_descriptor_is_left);
	tcase_add_test(tc, landing);
	tcase_add_test(tc, landing_swept);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
