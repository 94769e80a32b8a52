/* SPDX-License-Identifier: MIT */
/* Provider local: images under names, and boxes over them. */
#include "agentbox/cloud_backend.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abxsdk/spawn.h"
#include "tests/unit/local-host.h"

/* A root with a shell and little else, from the programs of this machine. */
static const char make_root[] =
	"set -e; cd \"$1\"; mkdir -p root/bin root/etc root/dev; cd root\n"
	"for p in sh cat ls id stat touch mkdir; do\n"
	"	b=$(command -v $p); cp -L $b bin/\n"
	"	ldd $b | grep -o '/[^ ]*' | while read -r l; do\n"
	"		mkdir -p .${l%/*}; [ -e .$l ] || cp -L $l .$l\n"
	"	done\n"
	"done\n"
	"echo 'root:x:0:0::/root:/bin/sh' >etc/passwd; echo 'root:x:0:' >etc/group\n"
	"ln -s ../../../../../../tmp/abx-escape data; ln -s /tmp/abx-escape2 data2\n"
	"echo one >version; cd ..; tar -cf root.tar -C root .\n";

static void sh(const char *script)
{
	const char *const argv[] = {"sh", "-c", script, "sh", unit_dir(), NULL};
	struct abx_spawn sp = {.argv = argv, .fd_in = -1, .fd_out = -1, .fd_err = STDERR_FILENO};
	int status = -1;

	ck_assert_int_eq(abx_spawn_collect(&sp, NULL, NULL, NULL, &status), 0);
	ck_assert_msg(status == 0, "%s: %d", script, status);
}

static void setup(void)
{
	lh_setup();
	sh(make_root);
}

static int32_t prepare(const char *name, const char *from, uint32_t flags)
{
	const struct abx_kv labels[] = {{"made", "by-test"}};
	const struct abx_prepare p = {
		ABX_INIT(struct abx_prepare),
		.flags = flags,
		.context_fd = -1,
		.from_fd = -1,
		.name = name,
		.from = from,
		.labels = labels,
		.n_labels = 1,
	};

	lh_emitted_clear();
	return lh_backend->prepare(lh_session, lh_call, &p);
}

static int32_t provision_image(const char *id, const char *image)
{
	const struct abx_provision p = {ABX_INIT(struct abx_provision), .image = image};

	return lh_provision_with(id, &p);
}

static void images_are(const char *expected)
{
	lh_emitted_clear();
	ck_assert_int_eq(lh_backend->image_list(lh_session, lh_call, NULL), ABX_OK);
	ck_assert_str_eq(lh_emitted(), expected);
}

static size_t unpacked(void)
{
	DIR *d = opendir(unit_path("store/images"));
	struct dirent *e;
	size_t n = 0;

	ck_assert_ptr_ne(d, NULL);
	while ((e = readdir(d)))
		n += e->d_name[0] != '.' && !strstr(e->d_name, ".lock");
	(void)closedir(d);
	return n;
}

static int32_t delete (const char *ref)
{
	return lh_backend->image_delete(lh_session, lh_call, ref);
}

static int32_t prepare_from(const char *url)
{
	const struct abx_kv options[] = {{"mirror", url}};
	const struct abx_prepare p = {ABX_INIT(struct abx_prepare),
				      .context_fd = -1,
				      .from_fd = -1,
				      .name = "debian:bookworm",
				      .from = "debian:bookworm",
				      .options = options,
				      .n_options = 1};

	return lh_backend->prepare(lh_session, lh_call, &p);
}

/* Is mmdebstrap there, and are there ids for what it installs? */
static bool can_bootstrap(void)
{
	int32_t r;

	if (access("/usr/bin/mmdebstrap", X_OK) < 0)
		return false;
	r = prepare_from("http://127.0.0.1:1/debian");
	return r != ABX_EPERM;
}

START_TEST(an_image_is_prepared_under_a_name)
{
	ck_assert_int_eq(provision_image("a1", "mine"), ABX_EINVAL);
	unit_has(lh_fail_text(), "mine: not prepared");
	ck_assert_msg(prepare("mine", unit_path("root.tar"), 0) == ABX_OK, "%s", lh_fail_text());
	ck_assert_str_eq(lh_emitted(), "mine ready made=by-test\n");
	images_are("mine ready made=by-test\n");
	ck_assert_msg(provision_image("a1", "mine") == ABX_OK, "%s", lh_fail_text());
	lh_expect("a1", NULL, "cat /version; pwd", "one\n/workspace\n");
	ck_assert_uint_eq(unpacked(), 1);
	/* It does not go while a box has it, whether that runs or not. */
	ck_assert_int_eq(delete ("mine"), ABX_ESTATE);
	unit_has(lh_fail_text(), "Test Box");
	ck_assert_int_eq(lh_stop("a1"), ABX_OK);
	ck_assert_int_eq(delete ("mine"), ABX_ESTATE);
	ck_assert_int_eq(lh_destroy("a1"), ABX_OK);
	ck_assert_msg(delete ("mine") == ABX_OK, "%s", lh_fail_text());
	ck_assert_int_eq(delete ("mine"), ABX_ENOTFOUND);
	ck_assert_uint_eq(unpacked(), 0);
	images_are("");
}
END_TEST

START_TEST(what_was_prepared_is_made_once)
{
	char *kept, *now;

	ck_assert_int_eq(prepare("mine", unit_path("root"), 0), ABX_OK);
	kept = unit_read("store/prepared/mine.json");
	ck_assert_int_eq(prepare("mine", unit_path("root"), 0), ABX_OK);
	now = unit_read("store/prepared/mine.json");
	ck_assert_str_eq(now, kept);
	free(now);
	ck_assert_uint_eq(unpacked(), 1);
	/* What changed is made anew; the old one stays for who has it. */
	ck_assert_int_eq(provision_image("a1", "mine"), ABX_OK);
	unit_write_text("root/version", "second\n");
	ck_assert_int_eq(prepare("mine", unit_path("root"), 0), ABX_OK);
	ck_assert_uint_eq(unpacked(), 2);
	ck_assert_int_eq(provision_image("a2", "mine"), ABX_OK);
	lh_expect("a1", NULL, "cat /version", "one\n");
	lh_expect("a2", NULL, "cat /version", "second\n");
	ck_assert_int_eq(lh_stop("a1"), ABX_OK);
	ck_assert_int_eq(lh_start("a1", 0), ABX_OK);
	lh_expect("a1", NULL, "cat /version", "one\n");
	/* Once nobody has it, it goes when the next one is made. */
	ck_assert_int_eq(lh_destroy("a1"), ABX_OK);
	free(kept);
	kept = unit_read("store/prepared/mine.json");
	ck_assert_int_eq(prepare("mine", unit_path("root"), ABX_PREPARE_FORCE), ABX_OK);
	now = unit_read("store/prepared/mine.json");
	ck_assert_str_ne(now, kept);
	ck_assert_uint_eq(unpacked(), 2);
	lh_expect("a2", NULL, "cat /version", "second\n");
	free(now);
	free(kept);
}
END_TEST

START_TEST(a_stream_is_an_image)
{
	struct abx_prepare p = {ABX_INIT(struct abx_prepare), .context_fd = -1, .name = "x/y:z",
				.fingerprint = "1"};

	p.from_fd = open(unit_path("root.tar"), O_RDONLY | O_CLOEXEC);
	ck_assert_msg(lh_backend->prepare(lh_session, lh_call, &p) == ABX_OK, "%s", lh_fail_text());
	ck_assert_int_eq(provision_image("a1", "x/y:z"), ABX_OK);
	lh_expect("a1", NULL, "cat /version", "one\n");
	/* The same again is not read. */
	ck_assert_int_eq(lseek(p.from_fd, 0, SEEK_SET), 0);
	ck_assert_int_eq(lh_backend->prepare(lh_session, lh_call, &p), ABX_OK);
	ck_assert_int_eq(lseek(p.from_fd, 0, SEEK_CUR), 0);
	ck_assert_uint_eq(unpacked(), 1);
	(void)close(p.from_fd);
}
END_TEST

static int prepare_together(unsigned int i)
{
	(void)i;
	return prepare("mine", unit_path("root.tar"), 0) == ABX_OK ? 0 : 1;
}

START_TEST(the_same_at_once_is_made_once)
{
	ck_assert_uint_eq(unit_together(8, prepare_together), 8);
	ck_assert_uint_eq(unpacked(), 1);
	images_are("mine ready made=by-test\n");
}
END_TEST

START_TEST(what_cannot_be_prepared_is_refused_by_name)
{
	const struct {
		struct abx_prepare p;
		int32_t code;
		const char *word;
	} cases[] = {
		{{.name = "n", .from = "debian:../x"}, ABX_EINVAL, "debian:../x"},
		{{.name = "n", .from = "debian:-x"}, ABX_EINVAL, "debian:-x"},
		{{.name = "n", .from = "fedora:40"}, ABX_EINVAL, "fedora:40"},
		{{.name = "n"}, ABX_EINVAL, "prepare"},
		{{.name = "/n", .from = "debian:sid"}, ABX_EINVAL, "not a name"},
		{{.name = "a b", .from = "debian:sid"}, ABX_EINVAL, "not a name"},
		{{.name = "n", .from = "/none"}, ABX_EINVAL, "/none"},
		{{.name = "n", .from = "/dev/null"}, ABX_EINVAL, "/dev/null"},
		{{.name = "n", .dockerfile = "FROM x"}, ABX_ENOTSUP, "Dockerfile"},
		{{.name = "n", .script = "true"}, ABX_ENOTSUP, "script"},
	};

	for (size_t i = 0; i < ABX_N_ELEMENTS(cases); i++) {
		struct abx_prepare p = cases[i].p;

		p.struct_size = sizeof(p);
		p.from_fd = p.context_fd = -1;
		ck_assert_int_eq(lh_backend->prepare(lh_session, lh_call, &p), cases[i].code);
		unit_has(lh_fail_text(), cases[i].word);
	}
	unit_write_text("broken.tar", "this is no tar file at all, but some text\n");
	ck_assert_int_lt(prepare("n", unit_path("broken.tar"), 0), 0);
	ck_assert_uint_eq(unpacked(), 0);
	images_are("");
}
END_TEST

/* What was made halfway by who is dead, and names whose record is damaged. */
START_TEST(leftovers_and_damage)
{
	static const char half[] = "store/images/new-00000000000000000000000000000000";

	ck_assert_int_eq(mkdir(unit_path(half), 0755), 0);
	ck_assert_int_eq(lh_count(NULL), 0);
	ck_assert_uint_eq(unpacked(), 0);
	ck_assert_int_eq(prepare("mine", unit_path("root"), 0), ABX_OK);
	unit_write_text("store/prepared/mine.json", "{\"key\": 7}");
	ck_assert_int_eq(provision_image("a1", "mine"), ABX_EIO);
	/* It may have named any image, so none is removed meanwhile. */
	ck_assert_int_eq(prepare("other", unit_path("root.tar"), 0), ABX_OK);
	ck_assert_uint_eq(unpacked(), 2);
	ck_assert_int_eq(prepare("mine", unit_path("root"), 0), ABX_OK);
	ck_assert_int_eq(provision_image("a1", "mine"), ABX_OK);
}
END_TEST

/* Links of an image in the way of a mount lead to the box's own files. */
START_TEST(links_in_an_image_do_not_lead_outside)
{
	char source[] = "/tmp/abx-images-XXXXXX";
	const struct abx_mount m[] = {
		{ABX_INIT(struct abx_mount), .source = source, .target = "/data/a"},
		{ABX_INIT(struct abx_mount), .source = source, .target = "/data2/b"}};
	const struct abx_mount *const mounts[] = {&m[0], &m[1]};
	const struct abx_provision p = {ABX_INIT(struct abx_provision), .image = "mine",
					.mounts = mounts, .n_mounts = 2};
	struct stat st;
	int32_t r;

	ck_assert_ptr_ne(mkdtemp(source), NULL);
	ck_assert_int_eq(prepare("mine", unit_path("root"), 0), ABX_OK);
	r = lh_provision_with("a1", &p);
	(void)rmdir(source);
	/* The links lead to nothing, in the box's own root. */
	ck_assert_int_lt(r, 0);
	ck_assert_int_eq(lstat("/tmp/abx-escape", &st), -1);
	ck_assert_int_eq(lstat("/tmp/abx-escape2", &st), -1);
}
END_TEST

/* Why mmdebstrap failed is in the error; what it had made is gone. */
START_TEST(a_mirror_that_does_not_answer_is_named)
{
	ck_assert_int_lt(prepare_from("http://127.0.0.1:1/debian"), 0);
	unit_has(lh_fail_text(), "debian:bookworm: ");
	if (can_bootstrap())
		unit_has(lh_fail_text(), "127.0.0.1");
	ck_assert_uint_eq(unpacked(), 0);
	ck_assert_int_eq(provision_image("a1", "debian:bookworm"), ABX_EINVAL);
	unit_has(lh_fail_text(), "debian:bookworm: not prepared");
}
END_TEST

static bool runs(const char *word)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	bool found = false;

	ck_assert_ptr_ne(d, NULL);
	while (!found && (e = readdir(d))) {
		char path[300], text[8192];
		ssize_t n = -1;
		int fd;

		(void)snprintf(path, sizeof(path), "/proc/%s/cmdline", e->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0) {
			n = read(fd, text, sizeof(text));
			(void)close(fd);
		}
		found = n > 0 && memmem(text, (size_t)n, word, strlen(word)) != NULL;
	}
	(void)closedir(d);
	return found;
}

static void await_runs(const char *word, bool expected)
{
	for (int i = 0; i < 5000 && runs(word) != expected; i++)
		(void)poll(NULL, 0, 2);
	ck_assert_msg(runs(word) == expected, "%s", word);
}

/* A mirror that accepts and says nothing. */
static int silent_mirror(char *url, size_t size)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(listen(fd, 8), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	(void)snprintf(url, size, "http://127.0.0.1:%u/debian", ntohs(a.sin_port));
	return fd;
}

/* Whoever dies while an image is made takes everything along, and the next one sweeps. */
START_TEST(a_killed_or_cancelled_prepare_leaves_nothing)
{
	char url[64];
	int fd = silent_mirror(url, sizeof(url));
	pid_t pid;

	if (can_bootstrap()) {
		pid = fork();
		if (pid == 0) {
			(void)prepare_from(url);
			_exit(0);
		}
		await_runs(url, true);
		ck_assert_int_eq(kill(pid, SIGKILL), 0);
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
		await_runs(url, false);
		ck_assert_int_eq(lh_count(NULL), 0);
		ck_assert_uint_eq(unpacked(), 0);

		lh_cancel_in(1500);
		ck_assert_int_eq(prepare_from(url), ABX_ECANCELED);
		lh_cancel_clear();
		await_runs(url, false);
		ck_assert_int_eq(lh_count(NULL), 0);
		ck_assert_uint_eq(unpacked(), 0);
	}
	(void)close(fd);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("local-images");
	TCase *tc = tcase_create("images");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, setup, lh_teardown);
	tcase_add_test(tc, an_image_is_prepared_under_a_name);
	tcase_add_test(tc, what_was_prepared_is_made_once);
	tcase_add_test(tc, a_stream_is_an_image);
	tcase_add_test(tc, the_same_at_once_is_made_once);
	tcase_add_test(tc, what_cannot_be_prepared_is_refused_by_name);
	tcase_add_test(tc, leftovers_and_damage);
	tcase_add_test(tc, links_in_an_image_do_not_lead_outside);
	tcase_add_test(tc, a_killed_or_cancelled_prepare_leaves_nothing);
	tcase_add_test(tc, a_mirror_that_does_not_answer_is_named);
	suite_add_tcase(s, tc);
	return s;
}

LH_MAIN(suite)
