/* SPDX-License-Identifier: MIT */
/* What the provider `docker` makes of the engine's bytes, and what it makes for it. */
#include "abxsdk/spawn.h"
#include "abxsdk/words.h"
#include "agentbox/cloud_backend.h"
#include "providers/docker/frames.h"
#include "tests/unit/unit.h"

struct taken {
	struct abx_buf b; /* "1:text2:text" */
	int32_t last, code;
};

static int32_t take(void *ctx, int32_t stream, const void *data, size_t len)
{
	struct taken *t = ctx;

	if (stream != t->last)
		abx_buf_addf(&t->b, "%d:", (int)stream);
	t->last = stream;
	abx_buf_add(&t->b, data, len);
	return t->code;
}

static const char two[] =
	"\1\0\0\0\0\0\0\3out\2\0\0\0\0\0\0\0\2\0\0\0\0\0\0\4err\n\1\0\0\0\0\0\0\1.";

START_TEST(frames_in_pieces)
{
	for (size_t piece = 1; piece < sizeof(two); piece++) {
		struct taken t = {.b = ABX_BUF_INIT(100)};
		struct docker_frames f = {.output = take, .ctx = &t};
		const size_t len = sizeof(two) - 1;

		for (size_t at = 0; at < len; at += piece)
			ck_assert_int_eq(docker_frames_feed(&f, two + at,
							    piece < len - at ? piece : len - at),
					 ABX_OK);
		ck_assert(docker_frames_whole(&f));
		ck_assert_str_eq(t.b.data, "1:out2:err\n1:.");
		abx_buf_release(&t.b);
	}
}
END_TEST

START_TEST(frames_cut_short)
{
	for (size_t len = 1; len < 11; len++) {
		struct taken t = {.b = ABX_BUF_INIT(100)};
		struct docker_frames f = {.output = take, .ctx = &t};

		ck_assert_int_eq(docker_frames_feed(&f, two, len), ABX_OK);
		ck_assert(!docker_frames_whole(&f));
		abx_buf_release(&t.b);
	}
}
END_TEST

START_TEST(no_frames)
{
	static const char *const bad[] = {"\4\0\0\0\0\0\0\1x", "\1\0\1\0\0\0\0\1x",
					  "hello there\r\n"};

	for (size_t i = 0; i < ABX_N_ELEMENTS(bad); i++) {
		struct taken t = {.b = ABX_BUF_INIT(100)};
		struct docker_frames f = {.output = take, .ctx = &t};

		ck_assert_int_eq(docker_frames_feed(&f, bad[i], 9), ABX_EPROTO);
		abx_buf_release(&t.b);
	}
}
END_TEST

START_TEST(frames_nobody_wants)
{
	struct taken t = {.b = ABX_BUF_INIT(100), .code = ABX_ECANCELED};
	struct docker_frames f = {.output = take, .ctx = &t};

	ck_assert_int_eq(docker_frames_feed(&f, two, sizeof(two) - 1), ABX_ECANCELED);
	ck_assert_str_eq(t.b.data, "1:out");
	abx_buf_release(&t.b);
}
END_TEST

START_TEST(utf8)
{
	static const char *const good[] = {
		"", "plain", "\xc3\xa9", "\xe6\x97\xa5", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"};
	static const char *const bad[] = {"\xff",
					  "a\xe9",
					  "\xc3",
					  "\xc3(",
					  "\xc0\x80",
					  "\xe0\x80\x80",
					  "\xed\xa0\x80",
					  "\xf0\x80\x80\x80",
					  "\xf4\x90\x80\x80",
					  "\xf5\x80\x80\x80",
					  "\x80"};

	for (size_t i = 0; i < ABX_N_ELEMENTS(good); i++)
		ck_assert_msg(abx_is_utf8(good[i]), "good %zu", i);
	for (size_t i = 0; i < ABX_N_ELEMENTS(bad); i++)
		ck_assert_msg(!abx_is_utf8(bad[i]), "bad %zu", i);
}
END_TEST

/* What a command gets of the words, run here. */
static void words_come_back(const char *const *argv, const char *wanted)
{
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(1000);
	abx_auto(abx_buf) struct abx_buf script = ABX_BUF_INIT(ABX_WORDS_SCRIPT_MAX);
	const char *by_shell[] = {"/bin/sh", "-c", NULL, NULL};
	const char *const *run = argv;
	struct abx_spawn sp = {.fd_in = -1, .fd_out = -1, .fd_err = 2};
	int status = -1;

	if (!abx_words_are_utf8(argv)) {
		abx_words_script(argv, &script);
		ck_assert(abx_is_utf8(abx_buf_str(&script)));
		by_shell[2] = abx_buf_str(&script);
		run = by_shell;
	}
	sp.argv = run;
	ck_assert_int_eq(abx_spawn_collect(&sp, NULL, &out, NULL, &status), 0);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(out.len, strlen(wanted));
	ck_assert_int_eq(memcmp(out.data, wanted, out.len), 0);
}

START_TEST(words)
{
	const char *const plain[] = {"printf", "%s.", "a b", "", "$x`y`'\"\\", NULL};
	const char *const odd[] = {"printf",	     "%s.",  "lat\xe9 n\n", "",
				   "%b\\n'\"$x`y`*", "\n\n", "-n",	    NULL};

	words_come_back(plain, "a b..$x`y`'\"\\.");
	words_come_back(odd, "lat\xe9 n\n..%b\\n'\"$x`y`*.\n\n.-n.");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("docker");
	TCase *tc = tcase_create("docker");

	tcase_add_test(tc, frames_in_pieces);
	tcase_add_test(tc, frames_cut_short);
	tcase_add_test(tc, no_frames);
	tcase_add_test(tc, frames_nobody_wants);
	tcase_add_test(tc, utf8);
	tcase_add_test(tc, words);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
