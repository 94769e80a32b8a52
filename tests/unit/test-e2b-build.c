/* SPDX-License-Identifier: MIT */
/* What the provider `e2b` makes of labels, of a Dockerfile, and of the context of a build. */
#include <fcntl.h>
#include <sys/wait.h>

#include "abxsdk/spawn.h"
#include "abxsdk/tar.h"
#include "providers/e2b/names.h"
#include "providers/e2b/pick.h"
#include "providers/e2b/plan.h"
#include "tests/unit/unit.h"

#define INSTALL "19371e29-b427-47e4-b34c-84c46630f480"
#define HEX "19371e29b42747e4b34c84c46630f480"
#define ATTEMPT "52877ea00117653a"

static const struct abx_kv labels[] = {{"agentbox", "true"},
				       {"agentbox.install", INSTALL},
				       {"agentbox.box", "fc285b8c931e0f23"},
				       {"agentbox.name", "half-way"},
				       {"agentbox.attempt", ATTEMPT}};

START_TEST(names_there_and_back)
{
	const struct abx_list_req all = {ABX_INIT(struct abx_list_req), 5, labels};
	const struct abx_kv other[] = {{"agentbox.attempt", "52877ea00117653b"}};
	const struct abx_list_req wrong = {ABX_INIT(struct abx_list_req), 1, other};
	struct e2b_name n;
	char text[132], spaced[140];

	ck_assert(e2b_name_make(E2B_SNAPSHOT, labels, 5, text));
	ck_assert_str_eq(text, "agentbox-s-" HEX "-" ATTEMPT ":fc285b8c931e0f23.half-way");
	(void)snprintf(spaced, sizeof(spaced), "team/%s", text);
	ck_assert(e2b_name_parse(E2B_SNAPSHOT, spaced, &n));
	ck_assert(e2b_name_has(&n, &all));
	ck_assert(e2b_name_has(&n, NULL));
	ck_assert(!e2b_name_has(&n, &wrong));
	ck_assert(!e2b_name_parse(E2B_TEMPLATE, spaced, &n));
}
END_TEST

START_TEST(names_of_images)
{
	static const char *const images[] = {"default", "debian:bookworm", "a_b:c__d", "x.y-z"};

	for (size_t i = 0; i < ABX_N_ELEMENTS(images); i++) {
		const struct abx_kv kv[] = {{"agentbox.install", INSTALL},
					    {"agentbox.name", images[i]},
					    {"agentbox.attempt", ATTEMPT}};
		struct e2b_name n;
		char text[132];

		ck_assert(e2b_name_make(E2B_TEMPLATE, kv, 3, text));
		ck_assert_ptr_null(strchr(strchr(text, ':') + 1, ':'));
		ck_assert(e2b_name_parse(E2B_TEMPLATE, text, &n));
		ck_assert_str_eq(n.name, images[i]);
		ck_assert_str_eq(n.attempt, ATTEMPT);
		ck_assert_str_eq(n.install, INSTALL);
	}
}
END_TEST

START_TEST(names_of_others)
{
	static const char *const others[] = {
		"",
		"base",
		"team/agentbox-s-",
		"agentbox-s-1234-5678:x",
		"agentbox-s-" HEX "-:x",
		"agentbox-s-" HEX "-" ATTEMPT "g:x",
		"agentbox-s-" HEX HEX HEX "-" ATTEMPT ":x",
	};
	struct e2b_name n;
	char text[132];
	const struct abx_kv bad[] = {{"agentbox.install", "not one"},
				     {"agentbox.name", "x"},
				     {"agentbox.attempt", ATTEMPT}};
	const struct abx_kv long_one[] = {
		{"agentbox.install", INSTALL},
		{"agentbox.name", "a-name-that-is-far-too-long-for-a-tag-of-at-most-sixty-three-b"
				  "ytes"},
		{"agentbox.attempt", ATTEMPT}};

	for (size_t i = 0; i < ABX_N_ELEMENTS(others); i++)
		ck_assert_msg(!e2b_name_parse(E2B_SNAPSHOT, others[i], &n), "%s", others[i]);
	ck_assert(!e2b_name_make(E2B_SNAPSHOT, bad, 3, text));
	ck_assert(!e2b_name_make(E2B_SNAPSHOT, long_one, 3, text));
}
END_TEST

static const char *arg(const struct e2b_plan *p, int step, int i)
{
	const cJSON *s = cJSON_GetArrayItem(p->steps, step);

	return cJSON_GetStringValue(
		cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(s, "args"), i));
}

START_TEST(a_plan)
{
	static const char file[] = "# a comment\n"
				   "ARG BASE=debian\n"
				   "FROM ${BASE}\n"
				   "USER root\n"
				   "ARG PACKAGES\n"
				   "ARG NEVER\n"
				   "LABEL a=b\n"
				   "COPY dir/ /to/dir/\n"
				   "COPY one two /to/\n"
				   "RUN [\"/bin/sh\", \"it's\"]\n"
				   "RUN a && \\\n"
				   "  b\n"
				   "ENV A=1 B=\n"
				   "WORKDIR /w\n"
				   "CMD [\"x\"]";
	const struct abx_kv args[] = {{"PACKAGES", "a,b'c"}};
	struct e2b_plan p;

	ck_assert_int_eq(e2b_plan_make(&p, file, args, 1), 0);
	ck_assert_int_eq(p.n, 8);
	ck_assert_str_eq(arg(&p, 0, 0), "root");
	ck_assert_str_eq(arg(&p, 1, 0), "dir");
	ck_assert_str_eq(p.sources[1], "dir");
	ck_assert_str_eq(p.sources[2], "one");
	ck_assert_str_eq(p.sources[3], "two");
	ck_assert_str_eq(arg(&p, 3, 1), "/to/");
	ck_assert_str_eq(arg(&p, 4, 0), "export BASE='debian'; export PACKAGES='a,b'\\''c'; "
					"'/bin/sh' 'it'\\''s' ");
	ck_assert_str_eq(arg(&p, 5, 0),
			 "export BASE='debian'; export PACKAGES='a,b'\\''c'; a &&    b");
	ck_assert_str_eq(arg(&p, 6, 2), "B");
	ck_assert_str_eq(arg(&p, 6, 3), "");
	ck_assert_str_eq(arg(&p, 7, 0), "/w");
	e2b_plan_release(&p);
}
END_TEST

START_TEST(no_plan)
{
	static const char *const bad[] = {"HEALTHCHECK x",     "COPY ../up /to", "COPY /etc /to",
					  "COPY --from=x a b", "COPY one",	 "ENV A 1"};

	for (size_t i = 0; i < ABX_N_ELEMENTS(bad); i++) {
		struct e2b_plan p;

		ck_assert_int_eq(e2b_plan_make(&p, bad[i], NULL, 0), -EINVAL);
		ck_assert_str_ne(p.what, "");
	}
}
END_TEST

static int context(void)
{
	static const struct {
		const char *name, *content;
	} files[] = {{"dir", NULL}, {"dir/a", "aaa"}, {"dirt", "no"}, {"one", "1"}};
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(1 << 20);
	static const char zeros[2 * ABX_TAR_BLOCK];
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	for (size_t i = 0; i < ABX_N_ELEMENTS(files); i++) {
		const size_t size = files[i].content ? strlen(files[i].content) : 0;
		const struct abx_tar_head h = {.type = files[i].content ? ABX_TAR_FILE
									: ABX_TAR_DIR,
					       .name = files[i].name,
					       .mode = files[i].content ? 0644 : 0755,
					       .size = size};

		abx_tar_head_add(&b, &h);
		abx_buf_add(&b, files[i].content ? files[i].content : "", size);
		abx_buf_add(&b, zeros, abx_tar_padding(size));
	}
	abx_buf_add(&b, zeros, sizeof(zeros));
	ck_assert(!b.failed && fd >= 0);
	ck_assert_int_eq(write(fd, b.data, b.len), (ssize_t)b.len);
	return fd;
}

/* What tar(1) reads of it. */
static void picks(const char *path, const char *wanted)
{
	static const char *const argv[] = {"tar", "-tzf", "-", NULL};
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(1000);
	abx_autoclose int tar = context(), gz = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	abx_autoclose int list = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	const struct abx_spawn sp = {.argv = argv, .fd_in = gz, .fd_out = list, .fd_err = 2};
	int status = -1;
	pid_t pid;

	ck_assert_int_eq(e2b_pick(tar, path, gz), 0);
	ck_assert_int_eq(lseek(gz, 0, SEEK_SET), 0);
	ck_assert_int_eq(abx_spawn_start(&sp, &pid), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(lseek(list, 0, SEEK_SET), 0);
	ck_assert_int_eq(abx_buf_read_fd(&out, list), 0);
	ck_assert_str_eq(abx_buf_str(&out), wanted);
}

START_TEST(picked)
{
	abx_autoclose int tar = context(), gz = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	picks("dir", "dir/\ndir/a\n");
	picks("one", "one\n");
	ck_assert_int_eq(e2b_pick(tar, "none", gz), -ENOENT);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("e2b-build");
	TCase *tc = tcase_create("e2b-build");

	tcase_add_test(tc, names_there_and_back);
	tcase_add_test(tc, names_of_images);
	tcase_add_test(tc, names_of_others);
	tcase_add_test(tc, a_plan);
	tcase_add_test(tc, no_plan);
	tcase_add_test(tc, picked);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
