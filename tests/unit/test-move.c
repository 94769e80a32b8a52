/* SPDX-License-Identifier: MIT */
/* Bytes out of a box, whose transport may lose the end of them, and trees into one. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abxsdk/clock.h"
#include "abxsdk/fs.h"
#include "abxsdk/move.h"
#include "abxsdk/spawn.h"
#include "abxsdk/tar.h"
#include "tests/unit/unit.h"

/* What the box is: a command that gives `data`, in pieces, and perhaps the mark behind it. */
struct box {
	const char *data;
	size_t piece, lost; /* so many bytes at its end never come */
	bool ends;	    /* with the mark */
	int32_t code;
};

static struct abx_failure said;
static char said_text[300];

static int32_t on_fail(struct abx_call *call, const struct abx_failure *f)
{
	(void)call;
	said = *f;
	(void)snprintf(said_text, sizeof(said_text), "%s", f->text);
	return f->code;
}

static int64_t now_ms(void *ctx)
{
	(void)ctx;
	return abx_monotonic_ms();
}

static int64_t time_left_ms(struct abx_call *call)
{
	(void)call;
	return 5000;
}

static int cancel_fd(struct abx_call *call)
{
	(void)call;
	return -1;
}

static const struct abx_host host = {
	ABX_INIT(struct abx_host),    .fail = on_fail,	      .now_ms = now_ms,
	.time_left_ms = time_left_ms, .cancel_fd = cancel_fd,
};

static int32_t run(const struct abx_move *m, const struct abx_exec *req, struct abx_exit *ret)
{
	const struct box *box = m->ctx;
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(1 << 16);

	abx_buf_adds(&b, box->data);
	if (box->ends) {
		/* The script that it is writes this. */
		ck_assert(strstr(req->argv[2], "printf '%s%03d' \"$0\" \"$?\""));
		abx_buf_addf(&b, "%s%03d", req->argv[3], box->code);
	}
	ck_assert(!b.failed);
	for (size_t at = 0, len = b.len - box->lost; at < len; at += box->piece) {
		const size_t n = box->piece < len - at ? box->piece : len - at;

		ck_assert_int_eq(req->output(req->io, ABX_STREAM_STDOUT, b.data + at, n), ABX_OK);
	}
	ret->code = box->ends ? 0 : box->code;
	return ABX_OK;
}

static int32_t fetch(struct box *box, char *ret, size_t size)
{
	const char *const argv[] = {"/bin/sh", "-c", "cat -- \"$1\"", "agentbox", "/f", NULL};
	const struct abx_transfer t = {ABX_INIT(struct abx_transfer), .path = "/f"};
	struct abx_move m = {.what = "download",
			     .argv = argv,
			     .in = -1,
			     .mark_end = true,
			     .exec = run,
			     .ctx = box};
	int p[2];
	ssize_t n;
	int32_t r;

	abx_plugin_host = &host;
	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	m.out = p[1];
	r = abx_move(&m, &t);
	(void)close(p[1]);
	n = read(p[0], ret, size - 1);
	ck_assert_int_ge(n, 0);
	ret[n] = '\0';
	(void)close(p[0]);
	return r;
}

#define LONG                                                                                  \
	"a text that is longer than the mark is, so that some of it is passed on before the " \
	"end comes"
static const char *const texts[] = {"", "short", LONG};

START_TEST(whole)
{
	char got[300];

	for (size_t i = 0; i < ABX_N_ELEMENTS(texts); i++)
		for (size_t piece = 1; piece < 200; piece++) {
			struct box box = {.data = texts[i], .piece = piece, .ends = true};

			ck_assert_int_eq(fetch(&box, got, sizeof(got)), ABX_OK);
			ck_assert_str_eq(got, texts[i]);
		}
}
END_TEST

START_TEST(end_is_lost)
{
	char got[300];

	for (size_t i = 0; i < ABX_N_ELEMENTS(texts); i++)
		for (size_t lost = 1; lost <= strlen(texts[i]) + ABX_MOVE_MARK_BYTES; lost++) {
			struct box box = {.data = texts[i], .piece = 7, .lost = lost, .ends = true};

			ck_assert_int_eq(fetch(&box, got, sizeof(got)), ABX_ENETWORK);
			ck_assert_str_eq(said_text, "download: what came from the box is not "
						    "whole: its end is missing");
		}
}
END_TEST

START_TEST(code_is_the_scripts)
{
	struct box failed = {.data = "", .piece = 100, .ends = true, .code = 44};
	struct box unmarked = {.data = "", .piece = 100, .code = 45};
	char got[300];

	ck_assert_int_eq(fetch(&failed, got, sizeof(got)), ABX_ENOTFOUND);
	ck_assert_str_eq(said_text, "/f: there is no such file");
	ck_assert_int_eq(fetch(&unmarked, got, sizeof(got)), ABX_EINVAL);
	ck_assert_str_eq(said_text, "/f: it is a directory");
}
END_TEST

/* The box is a directory; its tar is this machine's, which counts how often it reads. */
static int32_t run_here(const struct abx_move *m, const struct abx_exec *req, struct abx_exit *ret)
{
	struct abx_spawn s = {.argv = req->argv, .cwd = req->cwd, .fd_in = m->in, .fd_out = -1};
	abx_auto(abx_buf) struct abx_buf words = ABX_BUF_INIT(1 << 16);
	int status;
	pid_t pid;

	s.fd_err = open(unit_path("words"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_ge(s.fd_err, 0);
	ck_assert_int_eq(abx_spawn_start(&s, &pid), 0);
	ck_assert_int_eq(abx_spawn_wait(pid, &status), 0);
	(void)close(s.fd_err);
	ck_assert(WIFEXITED(status));
	ret->code = WEXITSTATUS(status);
	ck_assert_int_eq(abx_fs_read(AT_FDCWD, unit_path("words"), &words), 0);
	ck_assert_int_eq(req->output(req->io, ABX_STREAM_STDERR, abx_buf_str(&words), words.len),
			 ABX_OK);
	return ABX_OK;
}

#define TREE_BYTES ((size_t)5 << 20)

/* `cut`: so many bytes at its end never come. */
static int32_t send_file(size_t cut)
{
	const struct abx_tar_head head = {
		.type = ABX_TAR_FILE, .name = "file", .mode = 0640, .size = TREE_BYTES};
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(2 * TREE_BYTES);
	struct abx_transfer t = {ABX_INIT(struct abx_transfer), .flags = ABX_XFER_CREATE_PARENTS,
				 .size_bytes = -1};
	struct abx_move m = {.exec = run_here};
	char *to;
	int32_t r;

	abx_plugin_host = &host;
	abx_tar_head_add(&b, &head);
	to = abx_buf_reserve(&b, TREE_BYTES + 2 * ABX_TAR_BLOCK);
	ck_assert_ptr_nonnull(to);
	memset(to, 'x', TREE_BYTES);
	memset(to + TREE_BYTES, 0, 2 * ABX_TAR_BLOCK);
	unit_write("tree.tar", b.data, b.len + TREE_BYTES + 2 * ABX_TAR_BLOCK - cut);
	t.path = unit_path("in/box");
	m.in = t.fd = open(unit_path("tree.tar"), O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(t.fd, 0);
	r = abx_move_put_tar(&m, &t);
	(void)close(t.fd);
	return r;
}

/* Each costs system calls, here and where the pipe is filled. */
START_TEST(tree_by_large_pieces)
{
	abx_autofree char *file = NULL, *words = NULL;
	char path[4096];
	size_t n = 0;

	unit_write_text("tar", "#!/bin/sh\nPATH=${PATH#*:}\nexec tar --checkpoint=1 \"$@\"\n");
	ck_assert_int_eq(chmod(unit_path("tar"), 0755), 0);
	(void)snprintf(path, sizeof(path), "%s:%s", unit_dir(), getenv("PATH"));
	ck_assert_int_eq(setenv("PATH", path, 1), 0);
	ck_assert_int_eq(send_file(0), ABX_OK);
	words = unit_read("words");
	for (const char *at = words; (at = strchr(at, '\n')); at++)
		n++;
	ck_assert_msg(n > 0 && n < 10, "%zu reads: %.300s", n, words);
	file = unit_read("in/box/file");
	ck_assert_uint_eq(strlen(file), TREE_BYTES);
}
END_TEST

START_TEST(tree_is_cut_off)
{
	ck_assert_int_eq(send_file(0), ABX_OK);
	for (size_t cut = 2 * ABX_TAR_BLOCK + 1; cut < TREE_BYTES; cut *= 7) {
		ck_assert_int_eq(send_file(cut), ABX_EIO);
		unit_has(said_text, "put_tar: ");
		unit_has(said_text, "nexpected EOF");
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("move");
	TCase *tc = tcase_create("mark");

	tcase_add_test(tc, whole);
	tcase_add_test(tc, end_is_lost);
	tcase_add_test(tc, code_is_the_scripts);
	suite_add_tcase(s, tc);
	tc = tcase_create("tree");
	tcase_add_checked_fixture(tc, unit_dir_setup, unit_dir_teardown);
	tcase_add_test(tc, tree_by_large_pieces);
	tcase_add_test(tc, tree_is_cut_off);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
