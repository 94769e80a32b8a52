/* SPDX-License-Identifier: MIT */
/* Files and trees, in and out. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"
#include "core/util/mem.h"
#include "sdk/provider-check/check.h"

static int scratch(const struct check *c, const char *name)
{
	return openat(c->home.fd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

/* Bytes that no text mode survives. */
static void fill(struct abx_buf *b, size_t len)
{
	uint32_t x = 12345;

	for (size_t i = 0; i < len; i++) {
		x = x * 1664525 + 1013904223;
		abx_buf_addc(b, (char)(x >> 24));
	}
}

static void round_trip(struct check *c, size_t len)
{
	abx_auto(abx_buf) struct abx_buf bytes = ABX_BUF_INIT(16 << 20),
					 back = ABX_BUF_INIT(16 << 20);
	abx_autoclose int in = scratch(c, "in"), out = scratch(c, "out");
	const struct abx_call_opts o = check_opts(c);
	struct abx_transfer t = {ABX_INIT(struct abx_transfer),
				 .fd = in,
				 .mode = 0750,
				 .size_bytes = (int64_t)len,
				 .flags = ABX_XFER_CREATE_PARENTS,
				 .path = "/workspace/deep er/file"};
	struct ran ran = RAN_INIT;

	fill(&bytes, len);
	if (in < 0 || out < 0 || abx_fs_write_all(in, abx_buf_str(&bytes), len) < 0 ||
	    lseek(in, 0, SEEK_SET) != 0) {
		(void)tap_ok(c, false, "scratch files");
		return;
	}
	(void)tap_r(c, abx_cloud_upload(c->cloud, &o, &c->box.s, &t, &c->err),
		    "upload of %zu bytes", len);
	(void)run_script(c, "stat -c %a 'deep er/file'", &ran);
	(void)tap_ok(c, strcmp(abx_buf_str(&ran.out), "750\n") == 0, "with its mode (%.4s)",
		     abx_buf_str(&ran.out));
	t.fd = out;
	(void)tap_r(c, abx_cloud_download(c->cloud, &o, &c->box.s, &t, &c->err),
		    "download of %zu bytes", len);
	(void)lseek(out, 0, SEEK_SET);
	(void)abx_buf_read_fd(&back, out);
	(void)tap_ok(c,
		     back.len == len && memcmp(abx_buf_str(&back), abx_buf_str(&bytes), len) == 0,
		     "they are the same");
	ran_release(&ran);
}

static void check_missing_file(struct check *c)
{
	abx_autoclose int out = scratch(c, "out");
	const struct abx_call_opts o = check_opts(c);
	const struct abx_transfer t = {ABX_INIT(struct abx_transfer), .fd = out, .size_bytes = -1,
				       .path = "/workspace/there is none"};

	(void)tap_code(c, abx_cloud_download(c->cloud, &o, &c->box.s, &t, &c->err), ABX_ENOTFOUND,
		       "download of a missing file is not found");
}

static void check_trees(struct check *c)
{
	static const char make[] = "rm -rf tree && mkdir -p 'tree/s p' && echo a >'tree/s p/a' && "
				   "chmod 700 'tree/s p/a' && ln -s a 'tree/s p/link' && "
				   "mkdir tree/empty";
	static const char look[] = "cd again && find . | LC_ALL=C sort && cat 's p/link' && "
				   "stat -c %a 's p/a' && readlink 's p/link'";
	static const char wanted[] = ".\n./empty\n./s p\n./s p/a\n./s p/link\na\n700\na\n";
	abx_autoclose int fd = scratch(c, "tree.tar");
	const struct abx_call_opts o = check_opts(c);
	struct abx_transfer t = {ABX_INIT(struct abx_transfer), .fd = fd, .size_bytes = -1,
				 .path = "/workspace/tree"};
	struct ran ran = RAN_INIT;
	const bool own = abx_cloud_table(c->cloud)->put_tar && abx_cloud_table(c->cloud)->get_tar;
	int r;

	(void)tap_r(c, run_script(c, make, &ran), "a tree is made");
	r = abx_cloud_get_tar(c->cloud, &o, &c->box.s, &t, &c->err);
	if (r == ABX_ENOTSUP && !own) {
		tap_note(c, "trees travel neither by its own means nor over exec");
		ran_release(&ran);
		return;
	}
	(void)tap_r(c, r, "it comes out as a tar stream");
	(void)lseek(fd, 0, SEEK_SET);
	t.path = "/workspace/again";
	t.flags = ABX_XFER_CREATE_PARENTS;
	(void)tap_r(c, abx_cloud_put_tar(c->cloud, &o, &c->box.s, &t, &c->err),
		    "it goes in at another place");
	(void)tap_r(c, run_script(c, look, &ran), "it can be looked at");
	(void)tap_ok(c, strcmp(abx_buf_str(&ran.out), wanted) == 0,
		     "names, contents, modes and links are the same");
	ran_release(&ran);
}

void check_transfer(struct check *c)
{
	round_trip(c, 0);
	round_trip(c, 1000003);
	check_missing_file(c);
	check_trees(c);
}
