/* SPDX-License-Identifier: MIT */
/* Tar streams: what goes in comes out, and what must not get out of a directory does not. */
#include "core/util/archive.h"

#include "abxsdk/spawn.h"
#include "core/util/beneath.h"
#include "core/util/sha1.h"
#include "core/util/term.h"
#include "core/util/walk.h"
#include "tests/unit/unit.h"

static void setup(void)
{
	unit_dir_setup();
	ck_assert_int_eq(mkdir(unit_path("in"), 0755), 0);
	ck_assert_int_eq(mkdir(unit_path("out"), 0755), 0);
}

static char *sh(const char *script)
{
	const char *const argv[] = {"/bin/sh", "-euc", script, NULL};
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT((size_t)16 << 20);
	abx_auto(abx_buf) struct abx_buf said = ABX_BUF_INIT((size_t)1 << 20);
	struct abx_spawn s = {
		.argv = argv, .cwd = unit_dir(), .fd_in = -1, .fd_out = -1, .fd_err = -1};
	int status = 0;

	ck_assert_int_eq(abx_spawn_collect(&s, NULL, &out, &said, &status), 0);
	ck_assert_msg(status == 0, "%s\n%s", script, abx_buf_str(&said));
	return abx_xstrdup(abx_buf_str(&out));
}

static void run(const char *script)
{
	free(sh(script));
}

static void same_text(const char *a, const char *b)
{
	unit_write_text("a", a);
	unit_write_text("b", b);
	run("diff a b | head -c 1000 >&2; cmp -s a b");
}

static int open_file(const char *name, int flags)
{
	const int fd = open(unit_path(name), flags | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	return fd;
}

/* in/ into the file "tar", as `as`. */
static void pack(const char *as, struct abx_tar_count *ret)
{
	abx_autofree char *path = abx_xstrdup(unit_path("in"));
	const struct abx_tar_tree tree = {.dirfd = AT_FDCWD, .path = path, .as = as};
	abx_autoclose int fd = open_file("tar", O_WRONLY | O_CREAT | O_TRUNC);
	struct abx_tar *tar = NULL;

	unit_ok(abx_tar_open(fd, -1, &tar, &unit_err));
	unit_ok(abx_tar_write_tree(tar, &tree, ret, &unit_err));
	unit_ok(abx_tar_finish(tar, &unit_err));
	abx_tar_close(tar);
}

static int unpack_with(const struct abx_tar_extract *how, struct abx_tar_result *ret)
{
	abx_autoclose int fd = open_file("tar", O_RDONLY);
	abx_autoclose int dirfd = open_file("out", O_RDONLY | O_DIRECTORY);

	return abx_tar_extract(fd, dirfd, how, ret, &unit_err);
}

static void unpack(struct abx_tar_result *ret)
{
	const struct abx_tar_extract how = {0};

	unit_ok(unpack_with(&how, ret));
}

static const char odd_tree[] =
	"cd in && mkdir -p d/empty 'sp ace' && printf '%s\\0' -rf --help '\"q\"' 'bad\377' "
	"'caf\303\251' 'back\\slash' '...' | xargs -0 -n 1 sh -c 'echo \"$1\" >\"./$1\"' sh && "
	"printf x >\"$(printf 'n\\nl')\" && printf y >d/$(printf '%0255d' 1) && "
	"l=$(printf '%0200d' 2) && mkdir -p $l/$l/$l/$l && printf z >$l/$l/$l/$l/end && "
	"ln -s \"$(printf 'bad\\377')\" link && ln -s ./d dirlink && ln -s $(printf '%0300d' 3) "
	"longlink && touch -h -d 2001-01-01 longlink dirlink link && "
	"chmod 600 ./-rf && chmod 4755 '...' && chmod 500 d/empty && "
	"touch -d '1999-12-31 23:59:59' ./--help d/empty && head -c 700000 /dev/urandom >big && "
	": >nothing";
#define LIST                                                                           \
	"find . -mindepth 1 -printf '%m %s %Ts %p %l\\0' | sort -z | tr '\\0' '\\n'; " \
	"find . -type f -print0 | sort -z | xargs -0 sha1sum"
#define LIST_IN "cd in && chmod 755 '...' && " LIST

START_TEST(tree_there_and_back)
{
	struct abx_tar_result result = {0};
	struct abx_tar_count count = {0};
	abx_autofree char *in = NULL, *out = NULL;

	run(odd_tree);
	run("mkfifo in/fifo");
	pack("", &count);
	run("rm in/fifo");
	unpack(&result);
	/* A directory that its owner could not write travels with his bits. */
	run("chmod 700 in/d/empty");
	in = sh(LIST_IN);
	out = sh("cd out && " LIST);
	same_text(in, out);
	ck_assert_uint_eq(count.skipped, 1);
	ck_assert_uint_eq(result.n_refused, 0);
	ck_assert_uint_eq(result.count.files, count.files);
	ck_assert_uint_eq(result.count.bytes, count.bytes);
	ck_assert_uint_eq(result.count.links, 3);
	abx_tar_result_release(&result);
}
END_TEST

START_TEST(gnu_tar_reads_it)
{
	abx_autofree char *in = NULL, *out = NULL, *said = NULL;

	run(odd_tree);
	pack("", NULL);
	said = sh("tar -xpf tar -C out 2>&1");
	ck_assert_str_eq(said, "");
	run("chmod 700 in/d/empty");
	in = sh(LIST_IN);
	out = sh("cd out && " LIST);
	same_text(in, out);
}
END_TEST

START_TEST(gnu_tar_writes_it)
{
	abx_autofree char *in = NULL, *out = NULL;
	struct abx_tar_result result = {0};

	run(odd_tree);
	run("ln in/big in/hard && head -c 1 /dev/zero >in/sparse && truncate -s 3M in/sparse");
	for (size_t i = 0; i < 3; i++) {
		static const char *const formats[] = {"gnu -S", "pax", "posix -S"};
		abx_autofree char *script =
			abx_xasprintf("chmod -R u+w out && rm -rf out && mkdir out && "
				      "tar -cf tar --format=%s -C in .",
				      formats[i]);

		free(in);
		free(out);
		run(script);
		unpack(&result);
		ck_assert_uint_eq(result.n_refused, 0);
		abx_tar_result_release(&result);
		in = sh(LIST_IN);
		out = sh("cd out && " LIST);
		same_text(in, out);
	}
}
END_TEST

START_TEST(named_trees_and_files)
{
	abx_autofree char *list = NULL, *path = abx_xstrdup(unit_path("in/f"));
	const struct abx_tar_tree file = {.dirfd = AT_FDCWD, .path = path, .as = "renamed"};
	abx_autoclose int fd = -1;
	struct abx_tar *tar = NULL;

	run("echo f >in/f");
	pack("new/name", NULL);
	list = sh("tar -tf tar");
	ck_assert_str_eq(list, "new/name/\nnew/name/f\n");
	fd = open_file("tar2", O_WRONLY | O_CREAT);
	unit_ok(abx_tar_open(fd, -1, &tar, &unit_err));
	unit_ok(abx_tar_write_tree(tar, &file, NULL, &unit_err));
	unit_ok(abx_tar_finish(tar, &unit_err));
	abx_tar_close(tar);
	free(list);
	list = sh("tar -tf tar2");
	ck_assert_str_eq(list, "renamed\n");
}
END_TEST

/* A file that shrinks, grows or is written while it is read. */
START_TEST(file_that_changes)
{
	abx_autoclose int out = open_file("tar", O_WRONLY | O_CREAT), fd = -1;
	struct abx_tar *tar = NULL;
	struct stat st;

	for (int i = 0; i < 3; i++) {
		run("printf 12345 >in/f && touch -d 2020-01-01 in/f");
		fd = open_file("in/f", O_RDWR);
		ck_assert_int_eq(fstat(fd, &st), 0);
		if (i == 0)
			ck_assert_int_eq(ftruncate(fd, 2), 0);
		else if (i == 1)
			ck_assert_int_eq(pwrite(fd, "67", 2, 5), 2);
		else
			ck_assert_int_eq(pwrite(fd, "x", 1, 0), 1);
		unit_ok(abx_tar_open(out, -1, &tar, &unit_err));
		ck_assert_int_eq(abx_tar_file(tar, "f", fd, &st, NULL, &unit_err), ABX_ESTATE);
		unit_has(unit_err.text, "'f': it changed while it was read");
		abx_tar_close(tar);
		(void)close(abx_steal_fd(&fd));
	}
}
END_TEST

/* A stream that was given up is not a good archive. */
START_TEST(unfinished_is_incomplete)
{
	abx_autoclose int fd = open_file("tar", O_WRONLY | O_CREAT);
	struct abx_tar_result result = {0};
	const struct abx_tar_extract how = {0};
	struct abx_tar *tar = NULL;

	unit_ok(abx_tar_open(fd, -1, &tar, &unit_err));
	unit_ok(abx_tar_bytes(tar, "f", 0644, 0, "hello", 5, &unit_err));
	abx_tar_close(tar);
	ck_assert_int_eq(unpack_with(&how, &result), ABX_EPROTO);
	abx_tar_result_release(&result);
}
END_TEST

START_TEST(stopped_while_nobody_reads)
{
	abx_autofree char *data = abx_xcalloc(1, 1 << 20);
	struct abx_tar *tar = NULL;
	int pipe_fds[2], stop[2];

	ck_assert_int_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(stop, O_CLOEXEC), 0);
	(void)close(stop[1]);
	unit_ok(abx_tar_open(pipe_fds[1], stop[0], &tar, &unit_err));
	ck_assert_int_eq(abx_tar_bytes(tar, "f", 0644, 0, data, 1 << 20, &unit_err), ABX_ECANCELED);
	abx_tar_close(tar);
}
END_TEST

/* ---- hostile archives ---- */

struct evil {
	const char *name;
	mode_t type; /* 0: a regular file of four bytes */
	const char *link;
	mode_t mode; /* 0: 0644 */
};
#define HARD_LINK 1
#define FILE_(n)            \
	{                   \
		.name = (n) \
	}
#define TYPE(n, t)                       \
	{                                \
		.name = (n), .type = (t) \
	}
#define MODE(n, t, m)                                 \
	{                                             \
		.name = (n), .type = (t), .mode = (m) \
	}
#define LINK(n, l)                                        \
	{                                                 \
		.name = (n), .type = S_IFLNK, .link = (l) \
	}
#define HARD(n, l)                                          \
	{                                                   \
		.name = (n), .type = HARD_LINK, .link = (l) \
	}
#define GOOD FILE_("good")

static void put_evil(struct archive *a, const struct evil *e)
{
	struct archive_entry *entry = archive_entry_new();

	archive_entry_set_pathname(entry, e->name);
	archive_entry_set_filetype(entry, e->type > HARD_LINK ? e->type : S_IFREG);
	archive_entry_set_perm(entry, e->mode ? e->mode : 0644);
	archive_entry_set_mtime(entry, 1000000000, 0);
	archive_entry_set_uid(entry, 0);
	archive_entry_set_uname(entry, "root");
	if (e->type == HARD_LINK)
		archive_entry_set_hardlink(entry, e->link);
	else if (e->link)
		archive_entry_set_symlink(entry, e->link);
	if (!e->type) {
		archive_entry_set_size(entry, 4);
		/* B048: what is written into headers is not for us. */
		archive_entry_xattr_add_entry(entry, "com.apple.provenance", "x", 1);
		archive_entry_xattr_add_entry(entry, "security.capability", "x", 1);
	}
	ck_assert_int_eq(archive_write_header(a, entry), ARCHIVE_OK);
	if (!e->type)
		ck_assert_int_eq(archive_write_data(a, "evil", 4), 4);
	archive_entry_free(entry);
}

static void hostile(const struct evil *entries, size_t n, struct abx_tar_result *ret)
{
	struct archive *a = archive_write_new();

	ck_assert_int_eq(archive_write_set_format_pax(a), ARCHIVE_OK);
	ck_assert_int_eq(archive_write_open_filename(a, unit_path("tar")), ARCHIVE_OK);
	for (size_t i = 0; i < n; i++)
		put_evil(a, &entries[i]);
	ck_assert_int_eq(archive_write_close(a), ARCHIVE_OK);
	(void)archive_write_free(a);
	unpack(ret);
}

#define HOSTILE(ret, ...)                                           \
	do {                                                        \
		const struct evil entries_[] = {__VA_ARGS__, GOOD}; \
		hostile(entries_, ABX_N_ELEMENTS(entries_), ret);   \
	} while (0)

static void check_refused(struct abx_tar_result *result, enum abx_tar_refusal kind,
			  const char *first)
{
	abx_autofree char *text = abx_tar_refusal_text(result, kind);

	ck_assert_uint_eq(result->refused[kind].n, 1);
	ck_assert_uint_eq(result->n_refused, 1);
	ck_assert_str_eq(result->refused[kind].first, first);
	unit_has(text, first);
	abx_tar_result_release(result);
	/* What is good is delivered, and nothing is outside. */
	run("test -f out/good && test ! -e evil && test ! -e ../evil");
}

#define REFUSES(kind, first, ...)                     \
	do {                                          \
		struct abx_tar_result result_ = {0};  \
		HOSTILE(&result_, __VA_ARGS__);       \
		check_refused(&result_, kind, first); \
	} while (0)

/* Long enough for a header of its own. */
#define LONG                                                                           \
	"0123456789012345678901234567890123456789012345678901234567890123456789012345" \
	"6789012345678901234567890123456789"

/* B038 */
START_TEST(names_that_leave)
{
	REFUSES(ABX_TAR_BAD_NAME, "../evil", FILE_("../evil"));
	REFUSES(ABX_TAR_BAD_NAME, "a/../../evil", FILE_("a/../../evil"));
	REFUSES(ABX_TAR_BAD_NAME, "/tmp/abx-evil", FILE_("/tmp/abx-evil"));
	REFUSES(ABX_TAR_BAD_NAME, "../" LONG, FILE_("../" LONG));
	REFUSES(ABX_TAR_BAD_NAME, "../", TYPE("..", S_IFDIR));
	REFUSES(ABX_TAR_BAD_NAME, ".", FILE_("."));
	REFUSES(ABX_TAR_BAD_NAME, "a//b", FILE_("a//b"));
	ck_assert_int_ne(access("/tmp/abx-evil", F_OK), 0);
}
END_TEST

START_TEST(through_links)
{
	run("mkdir outside && ln -s ../outside out/there");
	REFUSES(ABX_TAR_THROUGH_LINK, "there/evil", FILE_("there/evil"));
	REFUSES(ABX_TAR_THROUGH_LINK, "there/", TYPE("there", S_IFDIR));
	REFUSES(ABX_TAR_THROUGH_LINK, "d/l/evil", TYPE("d", S_IFDIR), LINK("d/l", ".."),
		FILE_("d/l/evil"));
	run("test -z \"$(ls outside)\" && test -L out/there");
}
END_TEST

/* The link itself is refused, so what comes after it makes a directory of that name. */
START_TEST(two_steps)
{
	struct abx_tar_result result = {0};

	run("mkdir outside");
	HOSTILE(&result, LINK("d", "../outside"), FILE_("d/evil"), LINK("e", "/etc"),
		FILE_("e/cron.d/evil"));
	ck_assert_uint_eq(result.refused[ABX_TAR_LINK_LEAVES].n, 2);
	run("test -z \"$(ls outside)\" && test -f out/d/evil && test ! -L out/d");
	ck_assert_int_ne(access("/etc/cron.d/evil", F_OK), 0);
	abx_tar_result_release(&result);
}
END_TEST

/* A file over a link replaces the link, not what it leads to. */
START_TEST(file_over_link)
{
	struct abx_tar_result result = {0};

	run("echo safe >victim && ln -s ../victim out/v");
	HOSTILE(&result, FILE_("v"));
	run("test \"$(cat victim)\" = safe && test ! -L out/v");
	abx_tar_result_release(&result);
}
END_TEST

START_TEST(hard_links)
{
	struct abx_tar_result result = {0};

	run("echo safe >victim && ln -s ../victim out/l");
	REFUSES(ABX_TAR_HARD_LINK, "h", HARD("h", "../victim"));
	REFUSES(ABX_TAR_HARD_LINK, "h", HARD("h", "/etc/passwd"));
	REFUSES(ABX_TAR_HARD_LINK, "h", HARD("h", "missing"));
	REFUSES(ABX_TAR_HARD_LINK, "h", HARD("h", "l"));
	HOSTILE(&result, FILE_("one"), HARD("two", "one"), HARD("two", "two"));
	ck_assert_uint_eq(result.n_refused, 0);
	run("test out/one -ef out/two && test -z \"$(find out -name '.agentbox-*')\"");
	abx_tar_result_release(&result);
}
END_TEST

START_TEST(special_files_and_bits)
{
	struct abx_tar_result result = {0};
	abx_autofree char *modes = NULL;

	HOSTILE(&result, TYPE("fifo", S_IFIFO), TYPE("chr", S_IFCHR), TYPE("blk", S_IFBLK),
		MODE("suid", 0, 06755), MODE("sticky", S_IFDIR, 07777));
	ck_assert_uint_eq(result.refused[ABX_TAR_SPECIAL].n, 3);
	modes = sh("cd out && stat -c %a suid sticky && ls");
	ck_assert_str_eq(modes, "755\n777\ngood\nsticky\nsuid\n");
	abx_tar_result_release(&result);
}
END_TEST

START_TEST(in_the_way)
{
	run("mkdir out/d && echo x >out/f");
	REFUSES(ABX_TAR_IN_THE_WAY, "d", FILE_("d"));
	REFUSES(ABX_TAR_IN_THE_WAY, "f/", TYPE("f", S_IFDIR));
	REFUSES(ABX_TAR_IN_THE_WAY, "f/x", FILE_("f/x"));
	run("test -z \"$(find out -name '.agentbox-*')\" && test \"$(cat out/f)\" = x");
}
END_TEST

START_TEST(bounds)
{
	struct abx_tar_extract how = {.max_entries = 3};
	struct abx_tar_result result = {0};

	run("cd in && for i in 1 2 3 4; do printf 1234567890 >$i; done");
	pack("", NULL);
	ck_assert_int_eq(unpack_with(&how, &result), ABX_EQUOTA);
	abx_tar_result_release(&result);
	how = (struct abx_tar_extract){.max_bytes = 25};
	ck_assert_int_eq(unpack_with(&how, &result), ABX_EQUOTA);
	abx_tar_result_release(&result);
	how = (struct abx_tar_extract){.max_entries = 4, .max_bytes = 40};
	unit_ok(unpack_with(&how, &result));
	abx_tar_result_release(&result);
}
END_TEST

START_TEST(not_an_archive)
{
	const struct abx_tar_extract how = {0};
	struct abx_tar_result result = {0};

	run("head -c 5000 /dev/urandom >tar");
	ck_assert_int_eq(unpack_with(&how, &result), ABX_EPROTO);
	abx_tar_result_release(&result);
	run("printf %1000s x >in/f && tar -cf t2 in && head -c 1000 t2 >tar");
	ck_assert_int_eq(unpack_with(&how, &result), ABX_EPROTO);
	abx_tar_result_release(&result);
	run("test -z \"$(find out -name '.agentbox-*')\" && test ! -e out/in/f");
}
END_TEST

START_TEST(full_disk)
{
	const struct abx_tar_extract how = {0};
	struct abx_tar_result result = {0};
	int r;

	run("head -c 1000000 /dev/zero >in/big");
	pack("", NULL);
	unit_disk_full_at(65536);
	r = unpack_with(&how, &result);
	unit_disk_free();
	/* A limit on one file's size is for that file; the system is not full. */
	ck_assert_int_eq(r, 0);
	ck_assert_uint_eq(result.refused[ABX_TAR_NOT_WRITTEN].n, 1);
	abx_tar_result_release(&result);
	run("test ! -e out/big && test -z \"$(find out -name '.agentbox-*')\"");
}
END_TEST

/* ---- what stands beside it ---- */

START_TEST(links_that_stay)
{
	static const struct {
		const char *path, *target;
		bool stays;
	} cases[] = {{"l", "x", true},		 {"l", "./x", true},
		     {"l", "a/../x", false},	 {"l", "..", false},
		     {"l", "../x", false},	 {"a/l", "..", true},
		     {"a/l", "../x", true},	 {"a/l", "../../x", false},
		     {"a/b/l", "../../x", true}, {"l", "/etc", false},
		     {"l", "", false},		 {"l", "a/../../x", false},
		     {"a/l", "b//../..", false}, {"a/l", "b//../../..", false}};

	for (size_t i = 0; i < ABX_N_ELEMENTS(cases); i++)
		ck_assert_msg(abx_link_stays_beneath(cases[i].path, cases[i].target) ==
				      cases[i].stays,
			      "%s -> %s", cases[i].path, cases[i].target);
}
END_TEST

START_TEST(opening_beneath)
{
	abx_autoclose int dirfd = -1, fd = -1;

	run("mkdir -p out/a/b && echo x >out/a/b/f && ln -s a out/l && echo y >outside && "
	    "ln -s ../outside out/a/up");
	dirfd = open_file("out", O_RDONLY | O_DIRECTORY);
	fd = abx_open_beneath(dirfd, "a/b/f", O_RDONLY, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
	ck_assert_int_eq(abx_open_beneath(dirfd, "l/b/f", O_RDONLY, 0), -ELOOP);
	ck_assert_int_eq(abx_open_beneath(dirfd, "a/up", O_RDONLY, 0), -ELOOP);
	ck_assert_int_eq(abx_open_beneath(dirfd, "../outside", O_RDONLY, 0), -EXDEV);
	ck_assert_int_eq(abx_open_beneath(dirfd, "a/../../outside", O_RDONLY, 0), -EXDEV);
	ck_assert_int_eq(abx_open_beneath(dirfd, "/etc/passwd", O_RDONLY, 0), -EXDEV);
	ck_assert_int_eq(abx_open_beneath(dirfd, "missing", O_RDONLY, 0), -ENOENT);
}
END_TEST

static int deep(void *ctx, const struct abx_walk_item *item, struct abx_err *err)
{
	(void)item;
	(void)err;
	++*(unsigned int *)ctx;
	return 0;
}

START_TEST(too_deep)
{
	abx_autoclose int dirfd = open_file("in", O_RDONLY | O_DIRECTORY);
	unsigned int n = 0;

	run("cd in && i=0 && while [ $i -lt 600 ]; do mkdir d && cd d && i=$((i+1)); done");
	ck_assert_int_eq(abx_walk(dirfd, deep, &n, &unit_err), ABX_EIO);
	unit_has(unit_err.text, "nested");
	ck_assert_uint_eq(n, ABX_WALK_MAX_DEPTH + 1);
}
END_TEST

START_TEST(blob_ids)
{
	char id[ABX_SHA1_HEX_BYTES];
	abx_auto(abx_sha1) struct abx_sha1 h = ABX_SHA1_INIT;

	ck_assert_int_eq(abx_sha1_open(NULL), 0);
	abx_blob_id_init(&h, 0);
	abx_sha1_hex(&h, id);
	ck_assert_str_eq(id, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
	abx_blob_id_init(&h, 6);
	abx_sha1_update(&h, "hel", 3);
	abx_sha1_update(&h, "lo\n", 3);
	abx_sha1_hex(&h, id);
	ck_assert_str_eq(id, "ce013625030ba8dba906f756967f9e9ca394464a");
	for (size_t n = 0; n < 300; n++) {
		abx_autofree char *text = abx_xcalloc(1, n + 1), *want = NULL;

		memset(text, 'x', n);
		abx_sha1_init(&h);
		for (size_t i = 0; i < n; i += 7)
			abx_sha1_update(&h, text, n - i < 7 ? n - i : 7);
		abx_sha1_hex(&h, id);
		if (n % 37)
			continue;
		unit_write("x", text, n);
		want = sh("sha1sum <x | cut -c1-40 | tr -d '\\n'");
		ck_assert_str_eq(id, want);
	}
}
END_TEST

static char *filtered(const char *text, size_t len, bool colors, size_t piece)
{
	abx_auto(abx_buf) struct abx_buf out = ABX_BUF_INIT(65536);
	struct abx_term_filter f = {.colors = colors};

	for (size_t at = 0; at < len; at += piece)
		abx_term_filter(&f, text + at, len - at < piece ? len - at : piece, &out);
	return abx_xstrdup(abx_buf_str(&out));
}

START_TEST(terminal_text)
{
	static const char text[] = "a\tb\n\033[1;32mgreen\033[m\033[K \033]0;title\007 \033[2J "
				   "\r\b\177 caf\303\251 \302\233x \033[31\033[mz\n";
	static const char colored[] = "a\tb\n\033[1;32mgreen\033[m\033[K ^[]0;title^G ^[[2J "
				      "^M^H^? caf\303\251 <U+009B>x ^[[31\033[mz\n";
	static const char plain[] = "a\tb\n^[[1;32mgreen^[[m^[[K ^[]0;title^G ^[[2J "
				    "^M^H^? caf\303\251 <U+009B>x ^[[31^[[mz\n";

	for (size_t piece = 1; piece < sizeof(text); piece++) {
		abx_autofree char *a = filtered(text, sizeof(text) - 1, true, piece);
		abx_autofree char *b = filtered(text, sizeof(text) - 1, false, piece);

		ck_assert_str_eq(a, colored);
		ck_assert_str_eq(b, plain);
	}
}
END_TEST

static Suite *suite(void)
{
	const TTest *const tests[] = {tree_there_and_back,
				      gnu_tar_reads_it,
				      gnu_tar_writes_it,
				      named_trees_and_files,
				      file_that_changes,
				      unfinished_is_incomplete,
				      stopped_while_nobody_reads,
				      names_that_leave,
				      through_links,
				      two_steps,
				      file_over_link,
				      hard_links,
				      special_files_and_bits,
				      in_the_way,
				      bounds,
				      not_an_archive,
				      full_disk,
				      links_that_stay,
				      opening_beneath,
				      too_deep,
				      blob_ids,
				      terminal_text};
	Suite *s = suite_create("archive");
	TCase *tc = tcase_create("tar");

	tcase_add_checked_fixture(tc, setup, unit_dir_teardown);
	tcase_set_timeout(tc, 60);
	for (size_t i = 0; i < ABX_N_ELEMENTS(tests); i++)
		tcase_add_test(tc, tests[i]);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
