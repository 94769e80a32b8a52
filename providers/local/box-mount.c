/* SPDX-License-Identifier: MIT */
/*
 * The root file system of a box.
 *
 * All of it is made with the credentials of box root, inside its own user namespace: what
 * that user may not read on the host it cannot mount, merge or copy either.  The
 * store lies in a directory that only the client may enter; it is reached through the
 * current directory.
 */
#include "providers/local/box.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "providers/local/mount-api.h"

static const char *const top_directories[] = {
	"usr", "opt", "bin", "sbin", "lib", "lib32", "lib64", "libx32",
};
static const char *const package_databases[] = {
	"var/lib/dpkg",
	"var/lib/rpm",
	"var/lib/pacman",
};

static _Noreturn void fail_overlay(int err)
{
	if (err == ENODEV)
		box_fail(ABX_ENOTSUP, "modprobe overlay", "overlay: this kernel has none");
	if (err == EPERM)
		box_fail(ABX_EPERM,
			 "needs Linux 5.11; in a container: --security-opt seccomp=unconfined "
			 "--security-opt apparmor=unconfined",
			 "overlay: refused in a user namespace");
	if (err == EINVAL || err == EOPNOTSUPP)
		box_fail(ABX_EIO, "put AGENTBOX_HOME on ext4, xfs, btrfs or tmpfs",
			 "overlay: the file system of the state directory cannot hold layers");
	box_fail_errno(err, "overlay over the root of the box");
}

int box_bind_read_only(const char *source, const char *target)
{
	const struct abx_mount_attr attr = {
		.attr_set = ABX_ATTR_RDONLY | ABX_ATTR_NOSUID | ABX_ATTR_NODEV,
	};
	int fd = abx_open_tree(AT_FDCWD, source);
	int r = 0;

	if (fd < 0)
		return errno;
	if (abx_mount_setattr(fd, &attr) < 0 || abx_move_mount(fd, target) < 0)
		r = errno;
	(void)close(fd);
	return r;
}

/* One directory of the host's root: writable layers over it, or else read-only. */
static void mount_host_directory(const struct box_store *st, const char *name, const char *skeleton)
{
	char source[32], extra[64], lowest[192];
	struct stat sb;
	int r;

	(void)snprintf(source, sizeof(source), "/%s", name);
	if (lstat(source, &sb) < 0 || !S_ISDIR(sb.st_mode))
		return;
	/* Directories of the skeleton belong to box root, so that it can add files there. */
	(void)snprintf(extra, sizeof(extra), "cache/%.32s/top/%s", skeleton, name);
	if (faccessat(st->fd, extra, F_OK, 0) == 0)
		(void)snprintf(lowest, sizeof(lowest), "/proc/self/fd/%d/%s:%s", st->fd, extra,
			       source);
	else
		(void)snprintf(lowest, sizeof(lowest), "%s", source);
	r = box_layer_mount(st, name, name, lowest);
	/* Something mounted below it may hide a secret: the kernel merges no such tree. */
	if (r)
		r = box_bind_read_only(source, name);
	if (r)
		box_fail_errno(r, "mount %s", source);
}

/* Where something is mounted, an image may have anything: make it a directory. */
static void make_mount_point(const char *name, mode_t mode)
{
	struct stat st;

	if (fstatat(AT_FDCWD, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (S_ISDIR(st.st_mode))
			return;
		if (unlink(name) < 0)
			box_fail_errno(errno, "image: /%s is no directory", name);
	}
	if (mkdir(name, mode) < 0 || chmod(name, mode) < 0)
		box_fail_errno(errno, "image: make /%s", name);
}

static void mount_root_overlay(const struct box_store *st, const char *lower)
{
	char path[256];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", st->fd, lower);
	if (fchdir(st->layers_fd) < 0)
		box_fail_errno(errno, "state directory");
	if (mkdir("mnt", 0755) < 0 && errno != EEXIST)
		box_fail_errno(errno, "state directory: mount point");
	r = box_layer_mount(st, "mnt", "root", path);
	if (r)
		fail_overlay(r);
	if (chdir("mnt") < 0)
		box_fail_errno(errno, "root of the box");
}

bool box_is_host_part(const char *path)
{
	for (size_t i = 0; i < sizeof(top_directories) / sizeof(top_directories[0]); i++)
		if (strcmp(path + 1, top_directories[i]) == 0)
			return true;
	for (size_t i = 0; i < sizeof(package_databases) / sizeof(package_databases[0]); i++)
		if (strcmp(path + 1, package_databases[i]) == 0)
			return true;
	return false;
}

static void mount_host_root(const struct box_store *st, const char *skeleton)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "cache/%.32s/root", skeleton);
	mount_root_overlay(st, path);
	for (size_t i = 0; i < sizeof(top_directories) / sizeof(top_directories[0]); i++)
		mount_host_directory(st, top_directories[i], skeleton);
	for (size_t i = 0; i < sizeof(package_databases) / sizeof(package_databases[0]); i++) {
		(void)snprintf(path, sizeof(path), "/%s", package_databases[i]);
		/* Absent, or not for others to read: then the box has none. */
		(void)box_bind_read_only(path, package_databases[i]);
	}
}

void box_mount_layers(const struct box_store *st, const char *skeleton)
{
	if (st->plan->image)
		mount_root_overlay(st, st->plan->image);
	else
		mount_host_root(st, skeleton);
}

static void make_mount_points(void)
{
	static const char *const points[] = {"dev", "proc", "sys", "run"};

	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++)
		make_mount_point(points[i], 0755);
	make_mount_point("tmp", 01777);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (fd < 0)
		return;
	box_write_all(fd, text, strlen(text));
	(void)close(fd);
}

/* The box's own names; what the box has made of them later is left alone. */
static void write_names(const char *hostname, bool first)
{
	char text[512];

	if (mkdir("/etc/agentbox", 0755) < 0 && errno != EEXIST)
		box_fail_errno(errno, "/etc/agentbox");
	if (first) {
		(void)unlink("/etc/hostname");
		(void)unlink("/etc/hosts");
	}
	(void)snprintf(text, sizeof(text), "%s\n", hostname);
	write_file("/etc/hostname", text);
	(void)snprintf(text, sizeof(text),
		       "127.0.0.1\tlocalhost\n127.0.1.1\t%s\n"
		       "::1\tlocalhost ip6-localhost ip6-loopback\n",
		       hostname);
	write_file("/etc/hosts", text);
}

/* The first line is how a later start knows that the file is still ours. */
#define RESOLVER_MARK "# written by agentbox at each start; without this line it stays as it is\n"

/* The host's own, or the one address at which every box finds names, if its egress lets it. */
static char *make_resolver(bool host_net)
{
	char *host = host_net ? box_read_file(AT_FDCWD, "/etc/resolv.conf", 65536, NULL) : NULL;
	char *text = box_printf(RESOLVER_MARK "%s", host ? host : "nameserver " LB_RESOLVER "\n");

	free(host);
	return text;
}

static void write_resolver(const char *text, bool first)
{
	static const char path[] = "/etc/resolv.conf";
	char *old = box_read_file(AT_FDCWD, path, 65536, NULL);
	bool ours = !old || strncmp(old, RESOLVER_MARK, strlen(RESOLVER_MARK)) == 0;

	if (old && strcmp(old, text) != 0 && (first || ours))
		(void)unlink(path);
	/* An image may name there a file that does not exist. */
	if (!old && first)
		(void)unlink(path);
	free(old);
	write_file(path, text);
}

/* Without new privileges they are of no use: ping goes without. */
void box_ignore_file_capabilities(int tree_fd)
{
	const struct abx_mount_attr attr = {.attr_set = ABX_ATTR_NOSUID};

	(void)abx_mount_setattr(tree_fd, &attr);
}

static void ignore_file_capabilities(void)
{
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0) {
		box_ignore_file_capabilities(fd);
		(void)close(fd);
	}
}

static void ensure_skeleton(const struct box_store *st, int64_t since_ns, char ret_name[33])
{
	int cache_fd = openat(st->fd, "cache", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (cache_fd < 0)
		box_fail_errno(errno, "state directory: cache");
	box_skel_ensure(cache_fd, since_ns, ret_name);
	(void)close(cache_fd);
}

static void enter_root(void)
{
	/* Stacks the old root on the new one, so that no directory is needed to put it. */
	long r = syscall(SYS_pivot_root, ".", ".");

	if (r < 0 && errno == EPERM)
		box_fail_refused(errno, "pivot_root");
	if (r < 0)
		box_fail(ABX_EPERM, "enter the root with pivot_root (unshare -m, or bwrap)",
			 "pivot_root: %s: this process runs in a chroot or on the initial ramfs",
			 strerror(errno));
	if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		box_fail_errno(errno, "leave the host's root");
}

void box_mount_root(const struct box_req *rq, int map_fd)
{
	bool single = rq->h.map == LB_MAP_SINGLE;
	char *resolver = make_resolver(rq->h.flags & LB_F_HOST_NET);
	char skeleton[33] = "";
	struct box_plan plan;
	struct box_store st;

	(void)umask(0);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		box_fail_refused(errno, "mount");
	box_plan_parse(rq, &plan);
	if (plan.seal)
		box_seal(rq->path, plan.seal);
	box_store_open(&st, rq->path, &plan);
	if (!plan.image)
		ensure_skeleton(&st, rq->h.asked_at_ns, skeleton);
	box_mount_layers(&st, skeleton);
	if (plan.image)
		make_mount_points();
	box_mount_dev(single);
	box_mount_kernel(rq);
	box_binds_open_volumes(st.fd);
	enter_root();
	/* A descriptor of a directory outside would be a way out. */
	box_store_close(&st);
	(void)umask(022);
	if (plan.image)
		box_image_user(single);
	else
		ignore_file_capabilities();
	write_names(rq->name, rq->h.flags & LB_F_FIRST);
	write_resolver(resolver, rq->h.flags & LB_F_FIRST);
	free(resolver);
	box_binds_attach(rq, map_fd);
}
