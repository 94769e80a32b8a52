/* SPDX-License-Identifier: MIT */
/* Provider local: directories of the host and volumes in boxes, and read-only workspaces. */
#include "agentbox/cloud_backend.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "abxsdk/spawn.h"
#include "tests/unit/local-host.h"

#define MAX_MOUNTS 4

/* Beside the state directory, which cannot be mounted. */
static char host_dir[64];

static void setup(void)
{
	lh_setup();
	(void)snprintf(host_dir, sizeof(host_dir), "/tmp/abx-mounts-XXXXXX");
	ck_assert_ptr_ne(mkdtemp(host_dir), NULL);
	ck_assert_int_eq(chmod(host_dir, 0755), 0);
}

static void teardown(void)
{
	lh_teardown();
	ck_assert_int_eq(abx_fs_remove_tree(AT_FDCWD, host_dir), 0);
}

static const char *host_path(const char *name)
{
	static char path[64][128];
	static unsigned int next;
	char *p = path[next++ % 64];

	(void)snprintf(p, sizeof(path[0]), "%s/%s", host_dir, name);
	return p;
}

static void host_mkdir(const char *name)
{
	ck_assert_int_eq(mkdir(host_path(name), 0755), 0);
}

static void host_write(const char *name, const char *text)
{
	ck_assert_int_eq(
		abx_fs_write_atomic(AT_FDCWD, host_path(name), text, strlen(text), 0644, false), 0);
}

static size_t host_entries(const char *name)
{
	DIR *d = opendir(host_path(name));
	struct dirent *e;
	size_t n = 0;

	ck_assert_ptr_ne(d, NULL);
	while ((e = readdir(d)))
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	(void)closedir(d);
	return n;
}

/* SOURCE, TARGET, "ro" or "rw"; three strings each. */
static int32_t provision(const char *id, const char *const *words)
{
	struct abx_mount mount[MAX_MOUNTS];
	const struct abx_mount *mounts[MAX_MOUNTS];
	struct abx_provision p = {ABX_INIT(struct abx_provision), .mounts = mounts};

	for (; words[3 * p.n_mounts]; p.n_mounts++) {
		const char *const *w = words + 3 * p.n_mounts;

		mount[p.n_mounts] = (struct abx_mount){
			ABX_INIT(struct abx_mount), .source = w[0], .target = w[1],
			.flags = strcmp(w[2], "ro") == 0 ? ABX_MOUNT_READ_ONLY : 0};
		mounts[p.n_mounts] = &mount[p.n_mounts];
	}
	return lh_provision_with(id, &p);
}

static bool is_root(void)
{
	return geteuid() == 0;
}

/* File systems that refuse to map ids: then files belong to nobody, which is said. */
static bool ids_are_mapped(void)
{
	return is_root() && !strstr(lh_log_text(), "cannot be mapped");
}

START_TEST(a_directory_of_the_host_is_in_the_box)
{
	const char *const words[] = {host_path("src"), "/mnt/deep/src", "rw", NULL};
	struct stat st;

	host_mkdir("src");
	host_write("src/f", "from the host\n");
	ck_assert_int_eq(chmod(host_path("src"), 0777), 0);
	ck_assert_msg(provision("a1", words) == ABX_OK, "%s", lh_fail_text());
	lh_expect("a1", NULL,
		  "cat /mnt/deep/src/f; echo box >/mnt/deep/src/g && rm /mnt/deep/src/f",
		  "from the host\n");
	ck_assert_uint_eq(host_entries("src"), 1);
	ck_assert_int_eq(stat(host_path("src/g"), &st), 0);
	if (ids_are_mapped()) {
		/* The box user is whoever has the directory; the box's root is nobody there. */
		ck_assert_uint_eq(st.st_uid, 0);
		lh_expect("a1", "root",
			  "stat -c %U:%G /mnt/deep/src; touch /mnt/deep/src/r || echo no",
			  "vscode:vscode\nno\n");
		ck_assert_uint_eq(host_entries("src"), 1);
	}
	/* It is there again after a restart. */
	ck_assert_int_eq(lh_stop("a1"), ABX_OK);
	ck_assert_msg(lh_start("a1", 0) == ABX_OK, "%s", lh_fail_text());
	lh_expect("a1", NULL, "cat /mnt/deep/src/g", "box\n");
	ck_assert_int_eq(lh_destroy("a1"), ABX_OK);
	ck_assert_int_eq(stat(host_path("src/g"), &st), 0);
}
END_TEST

static const char try_to_write[] =
	"e() { \"$@\" 2>/dev/null && echo \"$*\"; }\n"
	"d=$1; cd $d || exit 1\n"
	"e touch $d/new; e rm -f $d/f; e chmod 777 $d/f; e mv $d/f $d/h; e mkdir $d/d\n"
	"e sh -c 'echo x >>f'; e touch /proc/self/root$d/new; e touch /proc/1/root$d/new\n"
	"e touch /proc/self/cwd/new; e touch ../../$d/new; e touch /proc/self/cwd/../${d##*/}/new\n"
	"e ln f /tmp/link; e ln /bin/sh $d/sh; e cp f new; e truncate -s 0 f\n"
	"e mount -o remount,rw $d; e mount -o remount,bind,rw $d; e umount $d; e umount -l $d\n"
	"mkdir -p /tmp/m; e mount --bind $d /tmp/m; e mount --bind / /tmp/m\n"
	"e unshare -m mount -o remount,bind,rw $d; e unshare -Ur touch $d/new\n"
	"e unshare -Urm mount -o remount,bind,rw $d; e unshare -Urm umount $d\n"
	"e unshare -Urm sh -c \"mount --rbind / /tmp/m && touch /tmp/m$d/new\"\n"
	"e unshare -Urm sh -c \"mount -t tmpfs t /tmp/m && mount --bind / /tmp/m\"\n"
	"exec 9<f; e sh -c 'echo x >/proc/self/fd/9'; e sh -c 'echo x >/dev/fd/9'\n"
	"e setfattr -n user.x -v y f; e chown 0:0 f; e touch -d 2001-01-01 f\n"
	"true\n";

static void try_all(const char *id, const char *dir, const char *user, struct lh_result *res)
{
	const char *const argv[] = {"sh", "-c", try_to_write, "sh", dir, NULL};
	struct abx_exec x = {.argv = argv, .user = user, .stdin_fd = -1, .control_fd = -1};

	lh_exec(id, &x, res);
	ck_assert_msg(res->r == ABX_OK && res->exit.code == 0, "%s: %d", lh_fail_text(),
		      res->exit.code);
}

static void expect_unwritable(const char *id, const char *dir)
{
	static const char *const users[] = {NULL, "root"};

	for (size_t i = 0; i < ABX_N_ELEMENTS(users); i++) {
		struct lh_result res = LH_RESULT_INIT;

		try_all(id, dir, users[i], &res);
		ck_assert_msg(!res.out.len, "%s could: %s", users[i] ? users[i] : "the box user",
			      res.out.data);
		lh_result_release(&res);
	}
}

static int32_t upload(const char *id, const char *path, const char *owner)
{
	const struct abx_sandbox sb = {ABX_INIT(struct abx_sandbox), .id = id};
	struct abx_transfer t = {ABX_INIT(struct abx_transfer), .mode = 0644, .size_bytes = 0,
				 .path = path, .owner = owner};
	int32_t r;

	t.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	r = lh_backend->upload(lh_session, lh_call, &sb, &t);
	(void)close(t.fd);
	return r;
}

static int32_t put_tar(const char *id, const char *path)
{
	const struct abx_sandbox sb = {ABX_INIT(struct abx_sandbox), .id = id};
	struct abx_transfer t = {ABX_INIT(struct abx_transfer), .size_bytes = -1, .path = path};
	const char *const argv[] = {"tar",    "-cf", host_path("t.tar"), "-C", host_dir,
				    "tarred", NULL};
	struct abx_spawn sp = {.argv = argv, .fd_in = -1, .fd_out = -1, .fd_err = -1};
	int status = -1;
	int32_t r;

	host_write("tarred", "x");
	ck_assert_int_eq(abx_spawn_collect(&sp, NULL, NULL, NULL, &status), 0);
	ck_assert_int_eq(status, 0);
	t.fd = open(host_path("t.tar"), O_RDONLY | O_CLOEXEC);
	r = lh_backend->put_tar(lh_session, lh_call, &sb, &t);
	(void)close(t.fd);
	return r;
}

START_TEST(read_only_means_it)
{
	const char *const words[] = {host_path("src"), "/src", "ro", NULL};

	host_mkdir("src");
	host_write("src/f", "kept\n");
	ck_assert_int_eq(chmod(host_path("src"), 0777), 0);
	ck_assert_int_eq(chmod(host_path("src/f"), 0666), 0);
	ck_assert_msg(provision("a1", words) == ABX_OK, "%s", lh_fail_text());
	expect_unwritable("a1", "/src");
	ck_assert_int_eq(upload("a1", "/src/new", NULL), ABX_EPERM);
	ck_assert_int_eq(put_tar("a1", "/src"), ABX_EPERM);
	lh_expect("a1", NULL, "cat /src/f", "kept\n");
	ck_assert_uint_eq(host_entries("src"), 1);
}
END_TEST

START_TEST(a_read_only_workspace_is_so_on_every_path)
{
	const char *const words[] = {host_path("src"), "/workspace/in/src", "rw", NULL};
	struct lh_result res = LH_RESULT_INIT;

	host_mkdir("src");
	ck_assert_int_eq(chmod(host_path("src"), 0777), 0);
	ck_assert_msg(provision("a1", words) == ABX_OK, "%s", lh_fail_text());
	/* The same attempts do something where they may. */
	try_all("a1", "/workspace", NULL, &res);
	unit_has(abx_buf_str(&res.out), "touch /proc/self/root/workspace/new\n");
	lh_result_release(&res);
	lh_expect("a1", NULL, "rm -rf d h sh; echo kept >f", "");
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(lh_stop("a1"), ABX_OK);
		ck_assert_int_eq(lh_start("a1", ABX_START_READ_ONLY), ABX_OK);
		expect_unwritable("a1", "/workspace");
		ck_assert_int_eq(upload("a1", "/workspace/new", NULL), ABX_EPERM);
		ck_assert_int_eq(upload("a1", "/workspace/new", "root"), ABX_EPERM);
		ck_assert_int_eq(put_tar("a1", "/workspace"), ABX_EPERM);
		lh_expect("a1", NULL, "cat f; touch ~/f in/src/f && echo yes", "kept\nyes\n");
	}
	ck_assert_int_eq(lh_stop("a1"), ABX_OK);
	ck_assert_int_eq(lh_start("a1", 0), ABX_OK);
	lh_expect("a1", NULL, "echo more >>f; cat f", "kept\nmore\n");
}
END_TEST

START_TEST(the_deeper_mount_is_inside_the_other_in_any_order)
{
	const char *const orders[][7] = {
		{host_path("a"), "/x", "ro", host_path("b"), "/x/b", "rw", NULL},
		{host_path("b"), "/x/b", "rw", host_path("a"), "/x", "ro", NULL}};
	const char *const none[] = {host_path("b"), "/x/none", "rw", host_path("a"),
				    "/x",	    "rw",      NULL};

	host_mkdir("a");
	host_mkdir("a/b");
	host_mkdir("b");
	ck_assert_int_eq(chmod(host_path("b"), 0777), 0);
	host_write("a/f", "a\n");
	for (size_t i = 0; i < ABX_N_ELEMENTS(orders); i++) {
		ck_assert_msg(provision("a1", orders[i]) == ABX_OK, "%s", lh_fail_text());
		lh_expect("a1", NULL, "cat /x/f; touch /x/b/g && echo yes", "a\nyes\n");
		ck_assert_int_eq(lh_destroy("a1"), ABX_OK);
	}
	/* Nothing is made in the user's own tree, not even a place to mount something. */
	ck_assert_int_eq(provision("a1", none), ABX_EINVAL);
	unit_has(lh_fail_text(), "/x/none");
	ck_assert_uint_eq(host_entries("a"), 2);
	ck_assert_uint_eq(host_entries("a/b"), 0);
}
END_TEST

START_TEST(a_file_can_be_mounted)
{
	const char *const words[] = {host_path("f"), "/etc/some/f", "ro", NULL};
	const char *const wrong[] = {host_path("f"), "/home", "ro", NULL};

	host_write("f", "file\n");
	ck_assert_msg(provision("a1", words) == ABX_OK, "%s", lh_fail_text());
	lh_expect("a1", NULL, "cat /etc/some/f; echo x >/etc/some/f || echo no", "file\nno\n");
	ck_assert_int_eq(provision("a2", wrong), ABX_EINVAL);
	unit_has(lh_fail_text(), "/home");
}
END_TEST

START_TEST(what_cannot_be_mounted_is_refused_by_name)
{
	const char *const bad[][4] = {
		{host_path("none"), "/x", "ro", NULL}, {"relative", "/x", "ro", NULL},
		{"/dev/null", "/x", "ro", NULL},       {unit_path("store"), "/x", "ro", NULL},
		{unit_dir(), "/x", "ro", NULL},	       {"/", "/x", "ro", NULL},
		{host_dir, "/", "ro", NULL},	       {host_dir, "/workspace/", "ro", NULL},
		{host_dir, "/proc/x", "ro", NULL},     {host_dir, "//sys", "ro", NULL},
		{host_dir, "/dev/x", "ro", NULL},      {host_dir, "/a/../..", "ro", NULL},
		{host_dir, "x", "ro", NULL},	       {host_dir, "", "ro", NULL},
	};
	const char *const twice[] = {host_dir, "/x", "ro", host_dir, "/./x/", "ro", NULL};

	for (size_t i = 0; i < ABX_N_ELEMENTS(bad); i++) {
		int32_t r = provision("a1", bad[i]);

		ck_assert_msg(r == ABX_EINVAL || r == ABX_EPERM, "%s at %s: %d", bad[i][0],
			      bad[i][1], r);
		unit_has(lh_fail_text(), "mount: ");
	}
	ck_assert_int_eq(provision("a1", twice), ABX_EINVAL);
	ck_assert_int_eq(lh_count(NULL), 0);
}
END_TEST

/* What the box can write to may be something else at the next start. */
START_TEST(sources_that_vanished_or_became_links_stop_a_start)
{
	const char *const words[] = {host_path("src"), "/src", "rw", NULL};

	host_mkdir("src");
	ck_assert_int_eq(chmod(host_path("src"), 0777), 0);
	ck_assert_msg(provision("a1", words) == ABX_OK, "%s", lh_fail_text());
	ck_assert_int_eq(lh_stop("a1"), ABX_OK);
	ck_assert_int_eq(rename(host_path("src"), host_path("moved")), 0);
	ck_assert_int_eq(lh_start("a1", 0), ABX_EINVAL);
	unit_has(lh_fail_text(), host_path("src"));
	ck_assert_int_eq(symlink("/", host_path("src")), 0);
	ck_assert_int_eq(lh_start("a1", 0), ABX_EPERM);
	unit_has(lh_fail_text(), host_path("src"));
	ck_assert_int_eq(lh_state("a1"), ABX_STATE_STOPPED);
	ck_assert_int_eq(unlink(host_path("src")), 0);
	ck_assert_int_eq(rename(host_path("moved"), host_path("src")), 0);
	ck_assert_int_eq(lh_start("a1", 0), ABX_OK);
}
END_TEST

START_TEST(what_is_mounted_below_comes_along)
{
	const char *const words[] = {host_path("src"), "/src", "ro", NULL};
	struct lh_result res = LH_RESULT_INIT;

	if (!is_root())
		return;
	host_mkdir("src");
	host_mkdir("src/sub");
	host_write("src/sub/hidden", "hidden\n");
	ck_assert_int_eq(mount("t", host_path("src/sub"), "tmpfs", 0, "mode=0755"), 0);
	host_write("src/sub/seen", "seen\n");
	ck_assert_msg(provision("a1", words) == ABX_OK, "%s", lh_fail_text());
	lh_expect("a1", NULL, "ls /src/sub; touch /src/sub/new || echo no", "seen\nno\n");
	lh_sh("a1", "root", "umount /src/sub; unshare -Urm umount /src/sub; ls /src/sub", &res);
	ck_assert_str_eq(abx_buf_str(&res.out), "seen\n");
	lh_result_release(&res);
	ck_assert_int_eq(lh_stop("a1"), ABX_OK);
	/* A mount that cannot be copied would be left out, and what it hides uncovered. */
	ck_assert_int_eq(mount(NULL, host_path("src/sub"), NULL, MS_UNBINDABLE, NULL), 0);
	ck_assert_int_eq(lh_start("a1", 0), ABX_EPERM);
	unit_has(lh_fail_text(), host_path("src/sub"));
	ck_assert_int_eq(umount(host_path("src/sub")), 0);
}
END_TEST

static int32_t volume_ensure(const char *name, const char *label)
{
	const struct abx_kv labels[] = {{"team", label}};
	const struct abx_volume_req req = {ABX_INIT(struct abx_volume_req), .name = name,
					   .labels = labels, .n_labels = 1};

	return lh_backend->volume_ensure(lh_session, lh_call, &req);
}

static void volumes_are(const char *label, const char *expected)
{
	const struct abx_kv want = {"team", label};
	const struct abx_list_req req = {ABX_INIT(struct abx_list_req), .labels = &want,
					 .n_labels = label ? 1 : 0};

	lh_emitted_clear();
	ck_assert_int_eq(lh_backend->volume_list(lh_session, lh_call, &req), ABX_OK);
	ck_assert_str_eq(lh_emitted(), expected);
}

static int32_t provision_volume(const char *id, const char *name, const char *target)
{
	const struct abx_kv volume = {name, target};
	const struct abx_provision p = {ABX_INIT(struct abx_provision), .volumes = &volume,
					.n_volumes = 1};

	return lh_provision_with(id, &p);
}

START_TEST(a_volume_outlives_its_boxes)
{
	ck_assert_int_eq(provision_volume("a1", "data", "/data"), ABX_EINVAL);
	unit_has(lh_fail_text(), "data");
	lh_emitted_clear();
	ck_assert_msg(volume_ensure("data", "red") == ABX_OK, "%s", lh_fail_text());
	ck_assert_str_eq(lh_emitted(), "data intent team=red\ndata exists team=red\n");
	/* The labels of the first time are kept. */
	lh_emitted_clear();
	ck_assert_int_eq(volume_ensure("data", "blue"), ABX_OK);
	ck_assert_str_eq(lh_emitted(), "data exists team=red\n");
	volumes_are(NULL, "data exists team=red\n");
	volumes_are("red", "data exists team=red\n");
	volumes_are("blue", "");

	ck_assert_msg(provision_volume("a1", "data", "/data") == ABX_OK, "%s", lh_fail_text());
	lh_expect("a1", NULL, "echo one >/data/f", "");
	/* In two boxes at once, each at a place of its own. */
	ck_assert_msg(provision_volume("a2", "data", "/workspace/d") == ABX_OK, "%s",
		      lh_fail_text());
	lh_expect("a2", NULL, "cat d/f; echo two >>d/f", "one\n");
	lh_expect("a1", NULL, "cat /data/f", "one\ntwo\n");
	ck_assert_int_eq(lh_backend->volume_delete(lh_session, lh_call, "data"), ABX_ESTATE);
	unit_has(lh_fail_text(), "data");
	ck_assert_int_eq(lh_stop("a1"), ABX_OK);
	ck_assert_int_eq(lh_start("a1", 0), ABX_OK);
	lh_expect("a1", NULL, "cat /data/f", "one\ntwo\n");
	ck_assert_int_eq(lh_destroy("a1"), ABX_OK);
	ck_assert_int_eq(lh_backend->volume_delete(lh_session, lh_call, "data"), ABX_ESTATE);
	ck_assert_int_eq(lh_destroy("a2"), ABX_OK);
	ck_assert_int_eq(provision_volume("a3", "data", "/data"), ABX_OK);
	lh_expect("a3", NULL, "cat /data/f", "one\ntwo\n");
	ck_assert_int_eq(lh_destroy("a3"), ABX_OK);
	ck_assert_msg(lh_backend->volume_delete(lh_session, lh_call, "data") == ABX_OK, "%s",
		      lh_fail_text());
	ck_assert_int_eq(lh_backend->volume_delete(lh_session, lh_call, "data"), ABX_ENOTFOUND);
	volumes_are(NULL, "");
	ck_assert_uint_eq(unit_count("store/volumes", ""), 0);
}
END_TEST

START_TEST(names_of_volumes_lead_nowhere)
{
	static const char *const bad[] = {"", ".", "..", "../boxes", "a/b", "-a", "a b"};

	for (size_t i = 0; i < ABX_N_ELEMENTS(bad); i++) {
		ck_assert_int_eq(volume_ensure(bad[i], "x"), ABX_EINVAL);
		ck_assert_int_eq(lh_backend->volume_delete(lh_session, lh_call, bad[i]),
				 ABX_EINVAL);
		ck_assert_int_eq(provision_volume("a1", bad[i], "/x"), ABX_EINVAL);
	}
	ck_assert_int_eq(volume_ensure("good", "x"), ABX_OK);
	ck_assert_int_eq(provision_volume("a1", "good", "/proc"), ABX_EINVAL);
	ck_assert_int_eq(lh_backend->volume_delete(lh_session, lh_call, "good"), ABX_OK);
}
END_TEST

static int ensure_together(unsigned int i)
{
	(void)i;
	return volume_ensure("same", "x") == ABX_OK ? 0 : 1;
}

static int delete_together(unsigned int i)
{
	int32_t r = lh_backend->volume_delete(lh_session, lh_call, "same");

	(void)i;
	return r == ABX_OK || r == ABX_ENOTFOUND ? 0 : 1;
}

START_TEST(volumes_at_once)
{
	ck_assert_uint_eq(unit_together(20, ensure_together), 20);
	volumes_are(NULL, "same exists team=x\n");
	ck_assert_uint_eq(unit_together(20, delete_together), 20);
	volumes_are(NULL, "");
}
END_TEST

/* Every mount of the box, with its options. */
#define LIST_MOUNTS "cut -d' ' -f5,6 /proc/self/mountinfo | LC_ALL=C sort"

/* A snapshot of a box without commands gives its first process a new root: all that is mounted
 * there comes along, and what is in memory. */
START_TEST(mounts_outlive_a_snapshot)
{
	const char *const words[] = {host_path("d"),
				     "/workspace/a b\\c",
				     "rw",
				     host_path("f"),
				     "/usr/local/f",
				     "ro",
				     NULL};
	char *before, *after, ref[64];

	host_mkdir("d");
	host_write("d/f", "mounted\n");
	host_write("f", "file\n");
	ck_assert_msg(provision("a1", words) == ABX_OK, "%s", lh_fail_text());
	lh_expect("a1", NULL, "echo memory >/dev/shm/m; " LIST_MOUNTS " >/dev/shm/was", "");
	before = unit_read("store/boxes/a1/run.json");
	for (int i = 0; i < 2; i++)
		ck_assert_msg(lh_snapshot("a1", 0, ref) == ABX_OK, "%s", lh_fail_text());
	after = unit_read("store/boxes/a1/run.json");
	ck_assert_str_eq(after, before);
	lh_expect("a1", NULL,
		  "cat '/workspace/a b\\c/f' /usr/local/f /dev/shm/m;" LIST_MOUNTS
		  " | diff /dev/shm/was -",
		  "mounted\nfile\nmemory\n");
	free(before);
	free(after);
}
END_TEST

/* Its own mount shows what is about to be replaced. */
START_TEST(a_read_only_workspace_stays_so)
{
	char ref[64];

	ck_assert_int_eq(lh_provision("a1"), ABX_OK);
	lh_expect("a1", NULL, "echo kept >f", "");
	ck_assert_int_eq(lh_stop("a1"), ABX_OK);
	ck_assert_int_eq(lh_start("a1", ABX_START_READ_ONLY), ABX_OK);
	ck_assert_msg(lh_snapshot("a1", 0, ref) == ABX_OK, "%s", lh_fail_text());
	lh_expect("a1", NULL, "cat f; touch f 2>/dev/null || echo no", "kept\nno\n");
	ck_assert_int_eq(lh_provision_from("b1", ref), ABX_OK);
	lh_expect("b1", NULL, "cat f; touch f", "kept\n");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("local-mounts");
	TCase *tc = tcase_create("mounts");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_directory_of_the_host_is_in_the_box);
	tcase_add_test(tc, read_only_means_it);
	tcase_add_test(tc, a_read_only_workspace_is_so_on_every_path);
	tcase_add_test(tc, the_deeper_mount_is_inside_the_other_in_any_order);
	tcase_add_test(tc, a_file_can_be_mounted);
	tcase_add_test(tc, what_cannot_be_mounted_is_refused_by_name);
	tcase_add_test(tc, sources_that_vanished_or_became_links_stop_a_start);
	tcase_add_test(tc, what_is_mounted_below_comes_along);
	tcase_add_test(tc, a_volume_outlives_its_boxes);
	tcase_add_test(tc, names_of_volumes_lead_nowhere);
	tcase_add_test(tc, volumes_at_once);
	tcase_add_test(tc, mounts_outlive_a_snapshot);
	tcase_add_test(tc, a_read_only_workspace_stays_so);
	suite_add_tcase(s, tc);
	return s;
}

LH_MAIN(suite)
