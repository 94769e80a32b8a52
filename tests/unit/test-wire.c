/* SPDX-License-Identifier: MIT */
/* Frames between the host and agentbox-ctl: there and back, in pieces, and what is no frame. */
#include "core/ctl/wire.h"

#include "tests/unit/unit.h"

/* The request may point into what was decoded; what is encoded is only read. */
#define WORDS(v) ((char **)(uintptr_t)(v))

struct seen {
	struct abx_buf text; /* "KIND:PAYLOAD;" of each frame */
	struct abx_buf noise;
};

static int on_frame(void *ctx, enum abx_wire_kind kind, const unsigned char *data, size_t len)
{
	struct seen *s = ctx;

	abx_buf_addf(&s->text, "%u:", (unsigned int)kind);
	abx_buf_add(&s->text, data, len);
	abx_buf_addc(&s->text, ';');
	return kind == ABX_WIRE_FAIL ? -EIO : 0;
}

static void on_noise(void *ctx, const void *data, size_t len)
{
	struct seen *s = ctx;

	abx_buf_add(&s->noise, data, len);
	abx_buf_addc(&s->noise, '|');
}

static struct seen seen;
static struct abx_wire_in *in;

static void setup(void)
{
	const struct abx_buf empty = ABX_BUF_INIT(8 << 20);

	seen.text = seen.noise = empty;
	in = abx_xcalloc(1, sizeof(*in));
	in->frame = on_frame;
	in->noise = on_noise;
	in->ctx = &seen;
}

static void teardown(void)
{
	abx_buf_release(&seen.text);
	abx_buf_release(&seen.noise);
	free(in);
}

/* Fed in pieces of `piece` bytes; the first result that is not 0. */
static int feed(const struct abx_buf *b, size_t piece)
{
	for (size_t at = 0; at < b->len; at += piece) {
		int r = abx_wire_feed(in, b->data + at, b->len - at < piece ? b->len - at : piece);

		if (r)
			return r;
	}
	return 0;
}

static void there_and_back(bool text, size_t piece)
{
	static const char bytes[] = "a\0\xff\n=\r\n";
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(8 << 20), want = ABX_BUF_INIT(8 << 20);
	struct abx_wire_out out = {.text = text};

	setup();
	in->text = text;
	abx_wire_put(&out, &b, ABX_WIRE_DATA, bytes, sizeof(bytes) - 1);
	abx_wire_put(&out, &b, ABX_WIRE_END, NULL, 0);
	abx_wire_put(&out, &b, ABX_WIRE_DATA, "xy", 2);
	ck_assert_int_eq(feed(&b, piece), 0);
	abx_buf_adds(&want, "3:");
	abx_buf_add(&want, bytes, sizeof(bytes) - 1);
	abx_buf_adds(&want, ";4:;3:xy;");
	ck_assert_uint_eq(seen.text.len, want.len);
	ck_assert_mem_eq(seen.text.data, want.data, want.len);
	ck_assert_uint_eq(seen.noise.len, 0);
	teardown();
}

START_TEST(frames_in_pieces_of_any_size)
{
	static const size_t pieces[] = {1, 2, 3, 7, 8, 9, 4096};

	for (size_t i = 0; i < ABX_N_ELEMENTS(pieces); i++) {
		there_and_back(false, pieces[i]);
		there_and_back(true, pieces[i]);
	}
}
END_TEST

START_TEST(much_becomes_several_frames)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(8 << 20);
	struct abx_wire_out out = {.text = _i, .short_lines = true};
	abx_autofree char *much = abx_xcalloc(1, 200000);
	const char *line;

	setup();
	in->text = _i;
	memset(much, 'm', 200000);
	abx_wire_put(&out, &b, ABX_WIRE_DATA, much, 200000);
	ck_assert_int_eq(feed(&b, 5000), 0);
	ck_assert_uint_gt(seen.text.len, 200000);
	ck_assert_uint_lt(seen.text.len, 201000);
	/* No line is longer than what a terminal takes. */
	for (line = b.data; _i && line < b.data + b.len; line = strchr(line, '\n') + 1)
		ck_assert_int_lt(strchr(line, '\n') - line, 4000);
	teardown();
}
END_TEST

START_TEST(lines_of_others_are_skipped)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(8 << 20);
	struct abx_wire_out out = {.text = true};

	setup();
	in->text = true;
	abx_buf_adds(&b, "Welcome!\r\n\n");
	abx_wire_put(&out, &b, ABX_WIRE_BEAT, NULL, 0);
	b.data[b.len - 1] = '\r';
	abx_buf_adds(&b, "\n");
	for (int i = 0; i < 100000; i++)
		abx_buf_addc(&b, 'z');
	abx_buf_adds(&b, "\n");
	abx_wire_put(&out, &b, ABX_WIRE_END, NULL, 0);
	ck_assert_int_eq(feed(&b, 1000), 0);
	ck_assert_str_eq(abx_buf_str(&seen.text), "5:;4:;");
	ck_assert(strncmp(abx_buf_str(&seen.noise), "Welcome!|", 9) == 0);
	teardown();
}
END_TEST

static int feed_bytes(bool text, const char *bytes, size_t len)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(1 << 20);
	int r;

	setup();
	in->text = text;
	abx_buf_add(&b, bytes, len);
	r = feed(&b, 3);
	teardown();
	return r;
}

START_TEST(what_is_no_frame_ends_it)
{
	ck_assert_int_eq(feed_bytes(false, "sh: not found", 13), -EPROTO);
	/* Too long, out of order. */
	ck_assert_int_eq(feed_bytes(false, "\xab\3\0\0\1\0\1\0", 8), -EPROTO);
	ck_assert_int_eq(feed_bytes(false, "\xab\3\1\0\0\0\0\0", 8), -EPROTO);
	ck_assert_int_eq(feed_bytes(false, "\xab\3\0\0\0\0\0\0\xab\3\0\0\0\0\0\0", 16), -EPROTO);
	ck_assert_int_eq(feed_bytes(false, "\xab\3\0\0\0\0\0\0\xab\3\1\0\0\0\0\0", 16), 0);
	ck_assert_int_eq(feed_bytes(true, "=!!!!\n", 6), -EPROTO);
	ck_assert_int_eq(feed_bytes(true, "=qwM\n", 5), -EPROTO);
	ck_assert_int_eq(feed_bytes(true, "=\n", 2), -EPROTO);
	/* A frame whose length is not that of its line. */
	ck_assert_int_eq(feed_bytes(true, "=qwMAAAEAAAA=\n", 14), -EPROTO);
	/* What frame() says is handed on. */
	ck_assert_int_eq(feed_bytes(false, "\xab\x0f\0\0\0\0\0\0", 8), -EIO);
}
END_TEST

START_TEST(a_request_there_and_back)
{
	static const char *argv[] = {"prog", "", "a b\n\xff", NULL};
	static const char *env[] = {"K=", "SECRET=x=y", NULL};
	const struct abx_wire_request r = {.flags = ABX_WIRE_REQ_PTY,
					   .rows = 24,
					   .cols = 65535,
					   .timeout_ms = 4294967295u,
					   .id = "0123",
					   .cwd = "/work space",
					   .argv = WORDS(argv),
					   .n_argv = 3,
					   .env = WORDS(env),
					   .n_env = 2};
	struct abx_buf b = ABX_BUF_INIT(1 << 20);
	struct abx_wire_request got;

	ck_assert_int_eq(abx_wire_encode_request(&r, &b), 0);
	for (size_t cut = 0; cut < b.len; cut++) {
		abx_autofree char *part = abx_xcalloc(1, cut + 1);

		memcpy(part, b.data, cut);
		if (abx_wire_decode_request(part, cut, &got) == 0) {
			ck_assert_uint_lt(got.n_env, 2);
		}
		free(got.argv);
		free(got.env);
	}
	ck_assert_int_eq(abx_wire_decode_request(b.data, b.len, &got), 0);
	ck_assert_uint_eq(got.flags, r.flags);
	ck_assert_uint_eq(got.cols, 65535);
	ck_assert_uint_eq(got.timeout_ms, 4294967295u);
	ck_assert_str_eq(got.id, "0123");
	ck_assert_str_eq(got.cwd, "/work space");
	ck_assert_ptr_eq(got.user, NULL);
	ck_assert_uint_eq(got.n_argv, 3);
	ck_assert_str_eq(got.argv[1], "");
	ck_assert_str_eq(got.argv[2], "a b\n\xff");
	ck_assert_ptr_eq(got.argv[3], NULL);
	ck_assert_str_eq(got.env[1], "SECRET=x=y");
	free(got.argv);
	free(got.env);
	abx_buf_release(&b);
}
END_TEST

START_TEST(requests_that_make_no_sense)
{
	static const char *argv[] = {"prog", NULL};
	static const char *bad_env[] = {"=x", NULL};
	const struct abx_wire_request bad[] = {
		{.id = "../x", .argv = WORDS(argv), .n_argv = 1},
		{.id = ".", .argv = WORDS(argv), .n_argv = 1},
		{.argv = WORDS(argv), .n_argv = 1},
		{.id = "x"},
		{.id = "x", .argv = WORDS(argv), .n_argv = 1, .env = WORDS(bad_env), .n_env = 1},
	};

	for (size_t i = 0; i < ABX_N_ELEMENTS(bad); i++) {
		struct abx_buf b = ABX_BUF_INIT(1 << 20);
		struct abx_wire_request got;

		ck_assert_int_eq(abx_wire_encode_request(&bad[i], &b), 0);
		ck_assert_int_eq(abx_wire_decode_request(b.data, b.len, &got), -EPROTO);
		free(got.argv);
		free(got.env);
		abx_buf_release(&b);
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("wire");
	TCase *tc = tcase_create("wire");

	tcase_add_test(tc, frames_in_pieces_of_any_size);
	tcase_add_loop_test(tc, much_becomes_several_frames, 0, 2);
	tcase_add_test(tc, lines_of_others_are_skipped);
	tcase_add_test(tc, what_is_no_frame_ends_it);
	tcase_add_test(tc, a_request_there_and_back);
	tcase_add_test(tc, requests_that_make_no_sense);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
