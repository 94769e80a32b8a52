/* SPDX-License-Identifier: MIT */
/*
 * Directories of the host and volumes in a box.
 *
 * A directory of the host is opened by whoever may read it on the host: host root, or the
 * caller, never the box's own root.  What host root opens gets an id mapping: its owner is the
 * box's user, and nobody else is anybody, so that a box leaves no files of others there.
 *
 * Mount points are made in the box's own root before anything is mounted there; behind
 * that, nothing is made any more, and so never in a directory of the host.
 */
#include "providers/local/box.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "providers/local/mount-api.h"

#define NOT_GIVEN_YET ((mode_t)0)
#define NO_MAP "ids cannot be mapped on its file system"

/* Is its owner the box's user? */
enum mapped {
	MAPPED_NOT,
	MAPPED_TOP, /* not what is mounted below it */
	MAPPED_ALL,
};

struct bind {
	const char *source; /* a path of the host, or the name of a volume */
	const char *target;
	bool read_only, is_volume, is_directory;
	enum mapped mapped;
	uid_t owner;
	gid_t group;
	int tree_fd, volume_fd;
};

/* A helper serves one request and has one thread. */
static struct bind *binds;
static size_t n_binds;

static size_t depth(const char *path)
{
	size_t n = 0;

	for (; *path; path++)
		n += *path == '/';
	return n;
}

/* "ro:LENGTH:SOURCETARGET", where LENGTH is that of the source; a volume: "NAME:TARGET". */
static void parse(const char *value, bool is_volume, struct bind *b)
{
	const char *colon = strchr(value, ':');
	unsigned long len = 0;
	char *end;

	*b = (struct bind){
		.is_volume = is_volume, .is_directory = true, .tree_fd = -1, .volume_fd = -1};
	if (colon && is_volume) {
		b->source = box_printf("%.*s", (int)(colon - value), value);
		b->target = colon + 1;
		return;
	}
	b->read_only = strncmp(value, "ro:", 3) == 0;
	if (colon) {
		len = strtoul(colon + 1, &end, 10);
		if (*end == ':' && len < strlen(end + 1)) {
			b->source = box_printf("%.*s", (int)len, end + 1);
			b->target = end + 1 + len;
			return;
		}
	}
	box_fail(ABX_EPROTO, "install plugin and helpers of one version",
		 "helper: malformed mount: %.256s", value);
}

void box_binds_load(const struct box_req *rq)
{
	static const char mount_key[] = LB_PLAN_MOUNT ":", volume_key[] = LB_PLAN_VOLUME ":";

	binds = box_alloc((rq->h.n_argv + 1) * sizeof(*binds));
	for (char **s = rq->argv; *s; s++) {
		struct bind b;
		size_t at;

		if (strncmp(*s, mount_key, sizeof(mount_key) - 1) == 0)
			parse(*s + sizeof(mount_key) - 1, false, &b);
		else if (strncmp(*s, volume_key, sizeof(volume_key) - 1) == 0)
			parse(*s + sizeof(volume_key) - 1, true, &b);
		else
			continue;
		/* What is nearer to the root comes first: it would hide the other. */
		for (at = n_binds++; at > 0 && depth(binds[at - 1].target) > depth(b.target); at--)
			binds[at] = binds[at - 1];
		binds[at] = b;
	}
}

static void warn(const char *fmt, const char *source)
{
	struct lb_msg m = {.kind = LB_MSG_WARN};

	(void)snprintf(m.text, sizeof(m.text), "mount: %.512s: %s", source, fmt);
	box_send(&m);
}

/* A mount that does not let itself be copied would be left out, and what it hides seen. */
static void refuse_unbindable(const struct bind *b)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	size_t cap = 0, len = strlen(b->source);
	char *line = NULL;

	if (!f)
		box_fail_errno(errno, "/proc/self/mountinfo");
	while (getline(&line, &cap, f) > 0) {
		char *field = line, *options;

		for (int i = 0; i < 4 && field; i++)
			if ((field = strchr(field, ' ')))
				field++;
		options = field ? strstr(field, " - ") : NULL;
		if (!options)
			continue;
		*options = '\0';
		if (!strstr(field, " unbindable"))
			continue;
		field[strcspn(field, " ")] = '\0';
		box_unescape(field);
		if (strncmp(field, b->source, len) == 0 && (field[len] == '/' || !field[len]))
			box_fail(ABX_EPERM, "mount --make-private it on the host",
				 "mount: %.256s: %.256s is mounted as unbindable", b->source,
				 field);
	}
	free(line);
	(void)fclose(f);
}

static int open_source(const struct bind *b)
{
	/* A path that once was real: a link in it is the work of somebody else, maybe of a
	 * box that could write there. */
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, b->source, &how, sizeof(how));

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		box_fail(ABX_EINVAL, "put it back, or make a new box without it",
			 "mount: %.512s: it is not there any more", b->source);
	if (fd < 0 && errno == ELOOP)
		box_fail(ABX_EPERM, NULL, "mount: %.512s: there is a symbolic link in its way now",
			 b->source);
	if (fd < 0)
		box_fail_errno(errno, "mount: %.512s", b->source);
	return fd;
}

/* The copy as it will be seen in the box; 0 or errno. */
static int open_tree(int fd, bool read_only, int *ret_tree)
{
	const struct abx_mount_attr attr = {
		.attr_set = ABX_ATTR_NOSUID | ABX_ATTR_NODEV | (read_only ? ABX_ATTR_RDONLY : 0),
		.propagation = ABX_PROPAGATION_PRIVATE,
	};

	*ret_tree = abx_open_tree_fd(fd);
	return *ret_tree < 0 || abx_mount_setattr(*ret_tree, &attr) < 0 ? errno : 0;
}

void box_binds_open(void)
{
	for (struct bind *b = binds; b < binds + n_binds; b++) {
		struct statvfs vfs;
		struct stat st;
		int fd, r;

		if (b->is_volume)
			continue;
		refuse_unbindable(b);
		fd = open_source(b);
		if (fstat(fd, &st) < 0)
			box_fail_errno(errno, "mount: %.512s", b->source);
		b->is_directory = S_ISDIR(st.st_mode);
		b->owner = st.st_uid;
		b->group = st.st_gid;
		if (!b->is_directory && !S_ISREG(st.st_mode))
			box_fail(ABX_EINVAL, NULL, "mount: %.512s: neither a directory nor a file",
				 b->source);
		r = open_tree(fd, b->read_only, &b->tree_fd);
		if (r)
			box_fail_errno(r, "mount: %.512s", b->source);
		(void)close(fd);
		if (!b->read_only && fstatvfs(b->tree_fd, &vfs) == 0 && (vfs.f_flag & ST_RDONLY))
			box_fail(ABX_EPERM, "mount it read-only",
				 "mount: %.512s: its file system is read-only here", b->source);
	}
}

bool box_binds_are_mounts(void)
{
	for (const struct bind *b = binds; b < binds + n_binds; b++)
		if (!b->is_volume)
			return true;
	return false;
}

/* Who the box's user is, only the box's own files say, once they are in place. */
struct box_ids {
	uint32_t uid, gid;
};

static enum mapped map_ids(const struct box_req *rq, const struct bind *b,
			   const struct box_ids *in_box)
{
	const struct box_idmap map = {b->owner, b->group, in_box->uid, in_box->gid};
	struct abx_mount_attr attr = {.attr_set = ABX_ATTR_IDMAP};
	int ns = box_idmap_open(rq, &map);
	enum mapped mapped = MAPPED_NOT;

	attr.userns_fd = (uint64_t)ns;
	if (abx_mount_setattr(b->tree_fd, &attr) == 0)
		mapped = MAPPED_ALL;
	else if (abx_mount_setattr_top(b->tree_fd, &attr) == 0)
		mapped = MAPPED_TOP;
	(void)close(ns);
	return mapped;
}

void box_binds_map_ids(const struct box_req *rq, int fd)
{
	struct box_ids in_box;

	if (read(fd, &in_box, sizeof(in_box)) != (ssize_t)sizeof(in_box))
		return;
	if (in_box.uid >= LB_MAP_IDS || in_box.gid >= LB_MAP_IDS)
		box_fail(ABX_EINVAL, NULL, "image: /etc/passwd: user %s: no id below %u",
			 LB_BOX_USER, LB_MAP_IDS);
	for (const struct bind *b = binds; b < binds + n_binds; b++) {
		enum mapped mapped = b->is_volume ? MAPPED_NOT : map_ids(rq, b, &in_box);

		box_write_all(fd, &mapped, sizeof(mapped));
	}
}

/* Ask for that from within. */
static void ask_for_ids(int fd, const struct abx_user *u)
{
	const struct box_ids in_box = {u->uid, u->gid};

	box_write_all(fd, &in_box, sizeof(in_box));
	for (struct bind *b = binds; b < binds + n_binds; b++)
		/* Whoever is at the other end has said what went wrong. */
		if (read(fd, &b->mapped, sizeof(b->mapped)) != (ssize_t)sizeof(b->mapped))
			_exit(1);
	(void)close(fd);
}

void box_binds_open_volumes(int store_fd)
{
	for (struct bind *b = binds; b < binds + n_binds; b++) {
		char path[256];
		int dir, r;

		if (!b->is_volume)
			continue;
		(void)snprintf(path, sizeof(path), "volumes/%.128s/data", b->source);
		dir = openat(store_fd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (dir < 0)
			box_fail_errno(errno, "volume: %.128s", b->source);
		if (mkdirat(dir, "root", NOT_GIVEN_YET) < 0 && errno != EEXIST)
			box_fail_errno(errno, "volume: %.128s", b->source);
		b->volume_fd = openat(dir, "root", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		(void)close(dir);
		if (b->volume_fd < 0)
			box_fail_errno(errno, "volume: %.128s", b->source);
		r = open_tree(b->volume_fd, false, &b->tree_fd);
		if (r)
			box_fail_errno(r, "volume: %.128s", b->source);
	}
}

/* A new volume belongs to the box user. */
static void give(struct bind *b, const struct abx_user *u)
{
	struct stat st;

	if (fstat(b->volume_fd, &st) < 0 ||
	    ((st.st_mode & 07777) == NOT_GIVEN_YET &&
	     (fchown(b->volume_fd, u->uid, u->gid) < 0 || fchmod(b->volume_fd, 0755) < 0)))
		box_fail_errno(errno, "volume: %.128s", b->source);
	/* A descriptor of a directory outside would be a way out. */
	(void)close(b->volume_fd);
	b->volume_fd = -1;
}

static const char *kind(const struct bind *b)
{
	return b->is_volume ? "volume" : "mount";
}

/* In the box's own root; what is made belongs to whom the directory above it belongs. */
static void make_point(const struct bind *b)
{
	char *copy = box_strdup(b->target), *parent = box_strdup("/");

	for (char *at = copy + 1;; at++) {
		struct stat st;
		bool last = !*at;
		int fd;

		if (!last && *at != '/')
			continue;
		*at = '\0';
		if (last && !b->is_directory) {
			fd = open(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
			if (fd >= 0)
				(void)close(fd);
		} else {
			fd = mkdir(copy, 0755);
		}
		if (fd < 0 && errno != EEXIST)
			box_fail(errno == ENOTDIR || errno == ENOENT ? ABX_EINVAL : ABX_EPERM,
				 "choose another place in the box",
				 "%s: %.256s: cannot make %.256s in the box: %s", kind(b),
				 b->source, copy, strerror(errno));
		/* In a box with one id there is nobody else. */
		if (fd >= 0 && stat(parent, &st) == 0 && st.st_uid != 0)
			(void)!lchown(copy, st.st_uid, st.st_gid);
		if (last)
			break;
		free(parent);
		parent = box_strdup(copy);
		*at = '/';
	}
	free(parent);
	free(copy);
}

static void attach(struct bind *b)
{
	int fd = open(b->target, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		box_fail(ABX_EINVAL, "make it there, or choose another place in the box",
			 "%s: %.256s: no place for it at %.256s, inside another mount: %s", kind(b),
			 b->source, b->target, strerror(errno));
	if (S_ISDIR(st.st_mode) != b->is_directory)
		box_fail(ABX_EINVAL, "choose another place in the box",
			 "%s: %.256s: %.256s is %s directory in the box", kind(b), b->source,
			 b->target, S_ISDIR(st.st_mode) ? "a" : "no");
	if (abx_move_mount_fd(b->tree_fd, fd) < 0)
		box_fail_errno(errno, "%s: %.256s: at %.256s", kind(b), b->source, b->target);
	(void)close(fd);
	(void)close(b->tree_fd);
	b->tree_fd = -1;
}

struct access {
	const struct abx_user *user;
	bool single_id;
	const struct bind *refused; /* in memory of both processes */
};

/* As the box's user, who is not always whom the modes of files are about. */
static int try_access(void *arg)
{
	struct access *a = arg;

	box_become_user(a->user, a->single_id);
	for (const struct bind *b = binds; b < binds + n_binds && !a->refused; b++) {
		int mode = R_OK | (b->read_only ? 0 : W_OK) | (b->is_directory ? X_OK : 0);

		if (!b->is_volume && faccessat(AT_FDCWD, b->target, mode, AT_EACCESS) < 0)
			a->refused = b;
	}
	_exit(0);
}

/* What would help, by whose rights they are. */
static void advise(const struct box_req *rq, const struct bind *b, const struct abx_user *u,
		   char *ret_remedy, size_t size)
{
	const char *rights = b->read_only ? "rX" : "rwX";
	const char *otherwise = b->read_only ? "" : ", or mount it read-only";
	uint32_t id = rq->h.uid_base + u->uid;

	if (b->mapped || rq->h.map == LB_MAP_SINGLE)
		(void)snprintf(ret_remedy, size, "chmod u+%s it%s", rights, otherwise);
	else if (!b->is_directory)
		(void)snprintf(ret_remedy, size, "setfacl -m u:%u:%s on it%s", id, rights,
			       otherwise);
	else if (b->read_only)
		(void)snprintf(ret_remedy, size, "setfacl -R -m u:%u:%s on it", id, rights);
	else
		(void)snprintf(ret_remedy, size,
			       "setfacl -R -m u:%u:rwX,d:u:%u:rwX,d:u:%u:rwX on it%s", id, id,
			       b->owner, otherwise);
}

/* A box in which a directory is of no use would be found out too late. */
static void check_access(const struct box_req *rq, const struct abx_user *u)
{
	struct access *a = box_shared(sizeof(*a));
	const struct bind *b;
	char remedy[256], text[160];

	*a = (struct access){.user = u, .single_id = rq->h.map == LB_MAP_SINGLE};
	(void)box_run_child(try_access, a);
	b = a->refused;
	if (!b)
		return;
	advise(rq, b, u, remedy, sizeof(remedy));
	(void)snprintf(text, sizeof(text), "%s may not %s there%s",
		       rq->h.map == LB_MAP_SINGLE ? "you"
		       : b->mapped		  ? "its owner"
						  : "the box's user",
		       b->read_only ? "read" : "write",
		       rq->h.map == LB_MAP_DIRECT && !b->mapped ? ": " NO_MAP : "");
	if (rq->h.flags & LB_F_FIRST)
		box_fail(ABX_EPERM, remedy, "mount: %.400s: %s", b->source, text);
	warn(text, b->source);
}

static void say_what_is_not_mapped(void)
{
	for (const struct bind *b = binds; b < binds + n_binds; b++) {
		if (b->is_volume)
			continue;
		if (b->mapped == MAPPED_TOP)
			warn("ids cannot be mapped on a file system that is mounted below it; "
			     "files there belong to nobody in the box",
			     b->source);
		if (b->mapped == MAPPED_NOT)
			warn(NO_MAP "; its files belong to nobody in the box", b->source);
	}
}

void box_binds_attach(const struct box_req *rq, int map_fd)
{
	const bool single = rq->h.map == LB_MAP_SINGLE;
	struct abx_user u;

	if (n_binds)
		box_lookup_user("", single, &u);
	for (struct bind *b = binds; b < binds + n_binds; b++) {
		make_point(b);
		if (b->is_volume)
			give(b, &u);
	}
	if (map_fd >= 0)
		ask_for_ids(map_fd, &u);
	/* Before what is mounted below it, which is as writable as was asked for. */
	if (rq->h.flags & LB_F_READ_ONLY) {
		int r = box_bind_read_only(LB_WORKSPACE, LB_WORKSPACE);

		if (r)
			box_fail_errno(r, "read-only " LB_WORKSPACE);
	}
	for (struct bind *b = binds; b < binds + n_binds; b++)
		attach(b);
	if (box_binds_are_mounts())
		check_access(rq, &u);
	if (rq->h.map == LB_MAP_DIRECT)
		say_what_is_not_mapped();
}
