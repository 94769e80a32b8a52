/* SPDX-License-Identifier: MIT */
/* Where control groups can be made, and the directories of boxes. */
#include "providers/local/cgroup.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"

#define PROC_MAX_BYTES ((size_t)4 << 20)
#define RECORD "cgroups"
#define RECORD_MAX_BYTES ((size_t)64 << 10)
#define NAME_PREFIX "agentbox-"
/* A process that is being reaped keeps its cgroup for a moment. */
#define REMOVE_TRIES 200
#define REMOVE_WAIT_MS 5

static int read_whole(const char *path, struct abx_buf *b)
{
	abx_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : abx_buf_read_fd(b, fd);
}

/* Is `word` in a list with this separator? */
static bool listed(const char *list, size_t len, const char *word, char separator)
{
	const char *end = list + len;

	while (list < end) {
		const char *stop = memchr(list, separator, (size_t)(end - list));
		size_t n = stop ? (size_t)(stop - list) : (size_t)(end - list);

		if (n == strlen(word) && memcmp(list, word, n) == 0)
			return true;
		list += n + 1;
	}
	return false;
}

/* The caller's cgroup in one hierarchy, from /proc/self/cgroup: "4:memory:/path", "0::/path".
 * NULL controller: version 2. */
static int own_path(const char *controller, char *ret, size_t size)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(PROC_MAX_BYTES);
	int r = read_whole("/proc/self/cgroup", &b);
	const char *line;

	if (r < 0)
		return r;
	for (line = abx_buf_str(&b); *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *names = line + strcspn(line, ":\n"), *path;
		size_t n;

		if (*names != ':')
			continue;
		names++;
		n = strcspn(names, ":\n");
		if (names[n] != ':')
			continue;
		path = names + n + 1;
		if (controller ? !listed(names, n, controller, ',') : n != 0)
			continue;
		n = strcspn(path, "\n");
		if (n >= size || path[0] != '/')
			return -EPROTO;
		memcpy(ret, path, n);
		ret[n] = '\0';
		return 0;
	}
	return -ENOENT;
}

struct mount_line {
	char root[512], point[512];
	char type[32], options[512];
};

/* One line of mountinfo: fields 4 and 5, and what follows " - ". */
static bool parse_mount(const char *line, size_t len, struct mount_line *m)
{
	char text[2048], *at = text, *save = NULL, *rest, *f[5];

	if (len >= sizeof(text))
		return false;
	memcpy(text, line, len);
	text[len] = '\0';
	rest = strstr(text, " - ");
	/* Escaped characters are for paths that nobody uses for this. */
	if (!rest || strchr(text, '\\'))
		return false;
	*rest = '\0';
	for (int i = 0; i < 5; i++, at = NULL)
		if (!(f[i] = strtok_r(at, " ", &save)))
			return false;
	if ((size_t)snprintf(m->root, sizeof(m->root), "%s", f[3]) >= sizeof(m->root) ||
	    (size_t)snprintf(m->point, sizeof(m->point), "%s", f[4]) >= sizeof(m->point))
		return false;
	for (int i = 0; i < 3; i++)
		if (!(f[i] = strtok_r(i == 0 ? rest + 3 : NULL, " ", &save)))
			return false;
	return (size_t)snprintf(m->type, sizeof(m->type), "%s", f[0]) < sizeof(m->type) &&
	       (size_t)snprintf(m->options, sizeof(m->options), "%s", f[2]) < sizeof(m->options);
}

/* The mount of a hierarchy; NULL controller: version 2. */
static int find_mount(const char *controller, struct mount_line *ret)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(PROC_MAX_BYTES);
	int r = read_whole("/proc/self/mountinfo", &b);
	const char *line;

	if (r < 0)
		return r;
	for (line = abx_buf_str(&b); *line; line += strcspn(line, "\n"), line += *line == '\n') {
		struct mount_line m;

		if (!parse_mount(line, strcspn(line, "\n"), &m))
			continue;
		if (controller ? strcmp(m.type, "cgroup") == 0 &&
					 listed(m.options, strlen(m.options), controller, ',')
			       : strcmp(m.type, "cgroup2") == 0) {
			*ret = m;
			return 0;
		}
	}
	return -ENOENT;
}

static bool may_make(const char *dir)
{
	char procs[LOCAL_CGROUP_PATH_MAX + 16];

	(void)snprintf(procs, sizeof(procs), "%s/cgroup.procs", dir);
	return faccessat(AT_FDCWD, dir, W_OK, AT_EACCESS) == 0 &&
	       faccessat(AT_FDCWD, procs, W_OK, AT_EACCESS) == 0;
}

/* The topmost directory from the mount down to our own cgroup where we may make others. */
static int find_place(const char *controller, char *ret, size_t size)
{
	struct mount_line m;
	char own[512] = "";
	const char *below = own;
	int r = find_mount(controller, &m);

	if (r == 0)
		r = own_path(controller, own, sizeof(own));
	if (r < 0)
		return r;
	if (strcmp(m.root, "/") != 0) {
		size_t n = strlen(m.root);

		/* Our cgroup is not below what is mounted: all we can try is the mount. */
		below = strncmp(own, m.root, n) == 0 && (!own[n] || own[n] == '/') ? own + n : "";
	}
	if (strstr(below, "/.."))
		below = "";
	for (size_t n = 0;;) {
		if ((size_t)snprintf(ret, size, "%s%.*s", m.point, (int)n, below) >= size)
			return -ENAMETOOLONG;
		if (may_make(ret))
			return 0;
		if (!below[n] || !below[n + 1])
			return -EACCES;
		n += 1 + strcspn(below + n + 1, "/");
	}
}

/* For an ordinary user in a session, whose cgroup is root's: what systemd has delegated to the
 * user's own manager, beside the sessions.  Who joins a group there asks that manager first
 * (box-scope.c), so it has to be there. */
static int find_beside(char *ret, size_t size)
{
	unsigned int uid = (unsigned int)geteuid();
	char socket[64];
	struct mount_line m;
	int r = find_mount(NULL, &m);

	if (r < 0)
		return r;
	(void)snprintf(socket, sizeof(socket), "/run/user/%u/systemd/private", uid);
	if (uid == 0 || access(socket, W_OK) < 0)
		return -EACCES;
	if ((size_t)snprintf(ret, size, "%s/user.slice/user-%u.slice/user@%u.service", m.point, uid,
			     uid) >= size)
		return -ENAMETOOLONG;
	return may_make(ret) ? 0 : -EACCES;
}

/* A controller has to be handed down before a directory below can use it. */
static int hand_down(const char *dir, const char *controller)
{
	char text[512], word[32];
	int r = local_cgroup_read(dir, "cgroup.subtree_control", text, sizeof(text));

	if (r < 0)
		return r;
	if (listed(text, strcspn(text, "\n"), controller, ' '))
		return 0;
	(void)snprintf(word, sizeof(word), "+%s", controller);
	return local_cgroup_write(dir, "cgroup.subtree_control", word);
}

int local_cgroup_find(const char *controller, struct local_place *ret)
{
	bool freezer = strcmp(controller, "freezer") == 0;
	struct local_place p = {.v2 = true};
	char text[512] = "";
	int v1, r = find_place(NULL, p.dir, sizeof(p.dir));

	if (r == -EACCES && !freezer)
		r = find_beside(p.dir, sizeof(p.dir));
	/* Freezing is part of version 2 itself.  Its frozen processes can still be killed. */
	if (r == 0 && !freezer) {
		r = local_cgroup_read(p.dir, "cgroup.controllers", text, sizeof(text));
		if (r == 0 && !listed(text, strcspn(text, "\n"), controller, ' '))
			r = -ENOENT;
		if (r == 0)
			r = hand_down(p.dir, controller);
	}
	if (r < 0) {
		p.v2 = false;
		v1 = find_place(controller, p.dir, sizeof(p.dir));
		/* Which of the two refusals is of interest: that of the one which exists. */
		if (v1 < 0)
			return v1 == -ENOENT ? r : v1;
	}
	*ret = p;
	return 0;
}

int local_cgroup_write(const char *dir, const char *file, const char *text)
{
	char path[LOCAL_CGROUP_PATH_MAX + 64];
	abx_autoclose int fd = -1;
	size_t len = strlen(text);

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, file) >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return write(fd, text, len) == (ssize_t)len ? 0 : -errno;
}

int local_cgroup_read(const char *dir, const char *file, char *text, size_t size)
{
	char path[LOCAL_CGROUP_PATH_MAX + 64];
	abx_autoclose int fd = -1;
	ssize_t n;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, file) >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, size - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return 0;
}

int local_cgroup_each(const struct local_box *b, int (*visit)(void *ctx, const char *dir),
		      void *ctx)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(RECORD_MAX_BYTES);
	int r = abx_fs_read(b->dir_fd, RECORD, &text);
	char *line, *save = NULL;

	if (r < 0 || !text.len)
		return r == -ENOENT ? 0 : r;
	for (line = strtok_r(text.data, "\n", &save); line && r == 0;
	     line = strtok_r(NULL, "\n", &save))
		r = visit(ctx, line);
	return r;
}

/* Not flushed to disk: after a power loss there is no cgroup either. */
static int put_on_record(const struct local_box *b, const char *dir)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(RECORD_MAX_BYTES);
	int r = abx_fs_read(b->dir_fd, RECORD, &text);

	if (r < 0 && r != -ENOENT)
		return r;
	if (listed(abx_buf_str(&text), text.len, dir, '\n'))
		return 0;
	abx_buf_addf(&text, "%s\n", dir);
	if (text.failed)
		return -ENOMEM;
	return abx_fs_write_atomic(b->dir_fd, RECORD, text.data, text.len, 0600, false);
}

int local_cgroup_make(const struct abx_session *s, const struct local_box *b,
		      const struct local_place *p, char ret_dir[LOCAL_CGROUP_PATH_MAX])
{
	struct stat st;
	int r;

	if (fstat(s->store_fd, &st) < 0)
		return -errno;
	if ((size_t)snprintf(ret_dir, LOCAL_CGROUP_PATH_MAX, "%s/" NAME_PREFIX "%llx-%llx-%s",
			     p->dir, (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
			     b->id) >= LOCAL_CGROUP_PATH_MAX)
		return -ENAMETOOLONG;
	r = put_on_record(b, ret_dir);
	if (r == 0 && mkdir(ret_dir, 0755) < 0 && errno != EEXIST)
		r = -errno;
	return r;
}

struct removal {
	struct abx_call *call;
	bool left;
};

static int remove_one(void *ctx, const char *dir)
{
	struct removal *rm = ctx;
	const char *name = strrchr(dir, '/');
	char inner[LOCAL_CGROUP_PATH_MAX + 16];

	/* Nothing else is ours to remove, whatever the record says. */
	if (!name || strncmp(name + 1, NAME_PREFIX, strlen(NAME_PREFIX)) != 0)
		return 0;
	(void)snprintf(inner, sizeof(inner), "%s/" LOCAL_CGROUP_INNER, dir);
	for (int i = 0; i < REMOVE_TRIES; i++) {
		if ((rmdir(inner) == 0 || errno == ENOENT) && (rmdir(dir) == 0 || errno == ENOENT))
			return 0;
		if (errno != EBUSY || abx_plugin_host->wait_ms(rm->call, REMOVE_WAIT_MS) != ABX_OK)
			break;
	}
	rm->left = true;
	return 0;
}

void local_cgroup_remove(struct abx_call *call, const struct local_box *b)
{
	struct removal rm = {.call = call};

	if (faccessat(b->dir_fd, RECORD, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (local_cgroup_each(b, remove_one, &rm) == 0 && !rm.left)
		(void)unlinkat(b->dir_fd, RECORD, 0);
}
