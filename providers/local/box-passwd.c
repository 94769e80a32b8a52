/* SPDX-License-Identifier: MIT */
/* The accounts of a box: passwd, group and shadow, and the box user of an image. */
#include "providers/local/box.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abxsdk/number.h"

#define FILE_MAX_BYTES ((size_t)1 << 20)
#define FIRST_USER_ID 1000u
#define LAST_USER_ID 59999u
#define NOBODY_ID 65534u

/* A growing text; box_alloc'ed, so it never fails. */
struct text {
	char *s;
	size_t len;
};

static void text_add(struct text *t, const char *s, size_t len)
{
	char *bigger = box_alloc(t->len + len + 1);

	if (t->s)
		memcpy(bigger, t->s, t->len);
	memcpy(bigger + t->len, s, len);
	free(t->s);
	t->s = bigger;
	t->len += len;
}

static void text_adds(struct text *t, const char *s)
{
	text_add(t, s, strlen(s));
}

/* Field `n` of the line at `line`, as a slice. */
static const char *field(const char *line, const char *end, unsigned int n, size_t *ret_len)
{
	const char *p = line, *colon;

	while (n--) {
		p = memchr(p, ':', (size_t)(end - p));
		if (!p)
			return NULL;
		p++;
	}
	colon = memchr(p, ':', (size_t)(end - p));
	*ret_len = (size_t)((colon ? colon : end) - p);
	return p;
}

static bool id_field(const char *line, const char *end, unsigned int n, uint32_t *ret)
{
	size_t len;
	const char *p = field(line, end, n, &len), *at = p;
	uint64_t v;

	if (!p || !len || !abx_parse_digits(&at, UINT32_MAX - 1, &v) || at != p + len)
		return false;
	*ret = (uint32_t)v;
	return true;
}

static bool name_is(const char *line, const char *end, const char *name)
{
	size_t len;
	const char *p = field(line, end, 0, &len);

	return p && len == strlen(name) && memcmp(p, name, len) == 0;
}

static const char *line_end(const char *line)
{
	const char *end = strchr(line, '\n');

	return end ? end : line + strlen(line);
}

/* Accounts of the host's people are not the box's business; those of its packages are. */
static bool is_system(const char *line, const char *end, uint32_t id)
{
	return id != 0 && (id < FIRST_USER_ID || id == NOBODY_ID) &&
	       !name_is(line, end, LB_BOX_USER) && !name_is(line, end, "root");
}

char *box_make_passwd(const char *host, const char *shell)
{
	struct text t = {NULL, 0};
	char *own = box_printf("root:x:0:0:root:/root:%s\n" LB_BOX_USER ":x:%u:%u::" LB_BOX_HOME
			       ":%s\n",
			       shell, LB_BOX_UID, LB_BOX_UID, shell);

	text_adds(&t, own);
	free(own);
	while (*host) {
		const char *end = line_end(host);
		uint32_t uid, gid;

		if (id_field(host, end, 2, &uid) && id_field(host, end, 3, &gid) &&
		    is_system(host, end, uid)) {
			text_add(&t, host, (size_t)(end - host));
			text_adds(&t, "\n");
		}
		host = *end ? end + 1 : end;
	}
	return t.s;
}

char *box_make_group(const char *host)
{
	struct text t = {NULL, 0};
	char *own = box_printf("root:x:0:\n" LB_BOX_USER ":x:%u:\n", LB_BOX_UID);

	text_adds(&t, own);
	free(own);
	while (*host) {
		const char *end = line_end(host);
		size_t len;
		const char *name = field(host, end, 0, &len);
		uint32_t gid;

		if (name && id_field(host, end, 2, &gid) && is_system(host, end, gid)) {
			char *line = box_printf("%.*s:x:%u:\n", (int)len, name, gid);

			text_adds(&t, line);
			free(line);
		}
		host = *end ? end + 1 : end;
	}
	return t.s;
}

char *box_make_shadow(const char *passwd)
{
	struct text t = {NULL, 0};

	while (*passwd) {
		const char *end = line_end(passwd);
		size_t len;
		const char *name = field(passwd, end, 0, &len);

		text_add(&t, name, len);
		text_adds(&t, ":*:19000:0:99999:7:::\n");
		passwd = *end ? end + 1 : end;
	}
	return t.s;
}

static bool id_taken(const char *text, uint32_t id)
{
	while (*text) {
		const char *end = line_end(text);
		uint32_t v;

		if (id_field(text, end, 2, &v) && v == id)
			return true;
		text = *end ? end + 1 : end;
	}
	return false;
}

static const char *find_name(const char *text, const char *name)
{
	while (*text) {
		const char *end = line_end(text);

		if (name_is(text, end, name))
			return text;
		text = *end ? end + 1 : end;
	}
	return NULL;
}

/* Replace `path` by its old text and one more line, keeping owner and mode. */
static void append_line(const char *path, const char *old, const char *line, mode_t mode)
{
	char *tmp = box_printf("%s.agentbox", path);
	size_t len = strlen(old);
	struct stat st;
	int fd;

	(void)unlink(tmp);
	fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		box_fail_errno(errno, "image: %s", path);
	box_write_all(fd, old, len);
	if (len && old[len - 1] != '\n')
		box_write_all(fd, "\n", 1);
	box_write_all(fd, line, strlen(line));
	if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	    (fchown(fd, st.st_uid, st.st_gid) < 0 || fchmod(fd, st.st_mode & 0777) < 0))
		box_fail_errno(errno, "image: %s", path);
	if (close(fd) < 0 || rename(tmp, path) < 0)
		box_fail_errno(errno, "image: %s", path);
	free(tmp);
}

static char *read_or_empty(const char *path)
{
	char *text = box_read_file(AT_FDCWD, path, FILE_MAX_BYTES, NULL);

	if (!text && errno != ENOENT)
		box_fail_errno(errno, "image: %s", path);
	return text ? text : box_strdup("");
}

/* The group of the box user, made when it is missing. */
static uint32_t ensure_group(uint32_t uid)
{
	char *text = read_or_empty("/etc/group");
	const char *line = find_name(text, LB_BOX_USER);
	uint32_t gid = uid;
	char *added;

	if (!line || !id_field(line, line_end(line), 2, &gid)) {
		while (gid < LAST_USER_ID && id_taken(text, gid))
			gid++;
		added = box_printf(LB_BOX_USER ":x:%u:\n", gid);
		append_line("/etc/group", text, added, 0644);
		free(added);
	}
	free(text);
	return gid;
}

static void ensure_user(uint32_t *uid, uint32_t *gid)
{
	char *text = read_or_empty("/etc/passwd"), *shadow, *added;
	const char *line = find_name(text, LB_BOX_USER);

	if (line && id_field(line, line_end(line), 2, uid) &&
	    id_field(line, line_end(line), 3, gid)) {
		free(text);
		return;
	}
	*uid = LB_BOX_UID;
	while (*uid < LAST_USER_ID && id_taken(text, *uid))
		(*uid)++;
	*gid = ensure_group(*uid);
	added = box_printf(LB_BOX_USER ":x:%u:%u::" LB_BOX_HOME ":%s\n", *uid, *gid,
			   access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh");
	append_line("/etc/passwd", text, added, 0644);
	free(added);
	free(text);
	shadow = read_or_empty("/etc/shadow");
	if (*shadow && !find_name(shadow, LB_BOX_USER))
		append_line("/etc/shadow", shadow, LB_BOX_USER ":*:19000:0:99999:7:::\n", 0640);
	free(shadow);
}

/* `uid` 0: the box has no other. */
static void own_directory(const char *path, uint32_t uid, uint32_t gid)
{
	struct stat st;

	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		box_fail_errno(errno, "image: %s", path);
	if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid != uid &&
	    lchown(path, uid, gid) < 0)
		box_fail_errno(errno, "image: %s", path);
}

void box_image_user(bool single_id)
{
	static const char *const parents[] = {"/etc", "/home", "/root", "/var", "/var/log"};
	static const char rule[] = LB_BOX_USER " ALL=(ALL:ALL) NOPASSWD:ALL\n";
	uint32_t uid = 0, gid = 0;
	int fd;

	for (size_t i = 0; i < sizeof(parents) / sizeof(parents[0]); i++)
		if (mkdir(parents[i], 0755) < 0 && errno != EEXIST)
			box_fail_errno(errno, "image: %s", parents[i]);
	if (!single_id)
		ensure_user(&uid, &gid);
	own_directory(LB_BOX_HOME, uid, gid);
	own_directory(LB_WORKSPACE, uid, gid);
	own_directory("/var/log/agentbox", uid, gid);
	own_directory("/run/agentbox", uid, gid);
	fd = open("/etc/sudoers.d/agentbox", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		  0440);
	if (fd >= 0) {
		box_write_all(fd, rule, sizeof(rule) - 1);
		(void)close(fd);
	}
}
