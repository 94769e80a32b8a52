/* SPDX-License-Identifier: MIT */
/* Names of images: their records, and what is asked about them. */
#include "providers/local/image.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "abxsdk/fs.h"
#include "abxsdk/json.h"

#define RECORD_MAX_BYTES ((size_t)1 << 20)
#define TEXT_MAX 4096
#define NAME_MAX_BYTES 80
#define FILE_MAX_BYTES (3 * NAME_MAX_BYTES + 8)

/* "debian:bookworm" is "debian%3Abookworm" on disk. */
static void file_name(const char *name, const char *end, char out[FILE_MAX_BYTES])
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	size_t n = 0;

	for (; *name && n < 3 * NAME_MAX_BYTES; name++) {
		if (strchr(plain, *name) || (*name == '.' && n))
			out[n++] = *name;
		else
			n += (size_t)snprintf(out + n, 4, "%%%02X", (unsigned char)*name);
	}
	(void)snprintf(out + n, FILE_MAX_BYTES - n, "%s", end);
}

int32_t local_prepared_check_name(struct abx_call *call, const char *name)
{
	bool good = name && *name && strlen(name) <= NAME_MAX_BYTES;

	for (const char *p = name; good && *p; p++)
		good = (unsigned char)*p > ' ' && *p != 0x7f;
	if (good && name[0] != '/')
		return ABX_OK;
	return abx_fail(call, ABX_EINVAL, NULL,
			"image: %.100s: not a name (1 to %d bytes, no space, no slash first)",
			name ? name : "", NAME_MAX_BYTES);
}

void local_prepared_release(struct local_prepared *p)
{
	cJSON_Delete(p->doc);
	*p = (struct local_prepared)LOCAL_PREPARED_INIT;
}

static int read_record(const struct abx_session *s, const char *file, struct local_prepared *ret)
{
	struct local_prepared p = LOCAL_PREPARED_INIT;
	int r = local_read_json(s->prepared_fd, file, &p.doc);

	if (r == 0)
		r = abx_json_str(p.doc, "name", TEXT_MAX, &p.name);
	if (r == 0)
		r = abx_json_str(p.doc, "from", TEXT_MAX, &p.from);
	if (r == 0)
		r = abx_json_str(p.doc, "fingerprint", TEXT_MAX, &p.fingerprint);
	if (r == 0)
		r = abx_json_str(p.doc, "key", LOCAL_ID_MAX - 1, &p.key);
	if (r == 0)
		r = abx_json_str(p.doc, "created_at", 64, &p.created_at);
	if (r == 0)
		r = abx_json_obj(p.doc, "labels", &p.labels);
	if (r == 0)
		r = abx_json_i64(p.doc, "size_bytes", &p.size_bytes);
	if (r == 0 && (!p.name || !p.from || !p.fingerprint || !p.key || !p.created_at ||
		       strspn(p.key, "0123456789abcdef") != LOCAL_PRINT_TEXT - 1 ||
		       strlen(p.key) != LOCAL_PRINT_TEXT - 1))
		r = -EPROTO;
	if (r == 0)
		*ret = p;
	else
		local_prepared_release(&p);
	return r == 0 || faccessat(s->prepared_fd, file, F_OK, 0) < 0 ? r : -EPROTO;
}

int local_prepared_open(const struct abx_session *s, const char *name, struct local_prepared *ret)
{
	char file[FILE_MAX_BYTES];

	if (strlen(name) > NAME_MAX_BYTES)
		return -ENOENT;
	file_name(name, ".json", file);
	return read_record(s, file, ret);
}

int local_prepared_write(const struct abx_session *s, const struct local_prepared *p,
			 const struct abx_kv *labels, uint32_t n_labels)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(RECORD_MAX_BYTES);
	cJSON *doc = cJSON_CreateObject();
	char file[FILE_MAX_BYTES];
	int r = doc ? local_labels_put(doc, labels, n_labels) : -ENOMEM;

	if (r == 0)
		r = abx_json_add_i64(doc, "format", 1);
	if (r == 0)
		r = abx_json_add_str(doc, "name", p->name);
	if (r == 0)
		r = abx_json_add_str(doc, "from", p->from);
	if (r == 0)
		r = abx_json_add_str(doc, "fingerprint", p->fingerprint);
	if (r == 0)
		r = abx_json_add_str(doc, "key", p->key);
	if (r == 0)
		r = abx_json_add_str(doc, "created_at", p->created_at);
	if (r == 0)
		r = abx_json_add_i64(doc, "size_bytes", p->size_bytes);
	if (r == 0)
		r = abx_json_print(doc, &b);
	cJSON_Delete(doc);
	file_name(p->name, ".json", file);
	return r == 0 ? abx_fs_write_atomic(s->prepared_fd, file, b.data, b.len, 0600, true) : r;
}

int local_prepared_remove(const struct abx_session *s, const char *name)
{
	char file[FILE_MAX_BYTES];

	file_name(name, ".json", file);
	return unlinkat(s->prepared_fd, file, 0) < 0 || fsync(s->prepared_fd) < 0 ? -errno : 0;
}

/* Visit every record; `p` is NULL for a damaged one.  Stops at the first result but 0. */
static int each(const struct abx_session *s,
		int (*visit)(void *ctx, const struct local_prepared *p), void *ctx)
{
	DIR *d = abx_fs_opendir(s->prepared_fd, ".");
	struct dirent *e;
	int r = 0;

	if (!d)
		return visit(ctx, NULL);
	while (r == 0 && (e = readdir(d))) {
		struct local_prepared p = LOCAL_PREPARED_INIT;
		const char *end = strrchr(e->d_name, '.');
		int got;

		if (e->d_name[0] == '.' || !end || strcmp(end, ".json") != 0)
			continue;
		got = read_record(s, e->d_name, &p);
		if (got != -ENOENT)
			r = visit(ctx, got == 0 ? &p : NULL);
		local_prepared_release(&p);
	}
	(void)closedir(d);
	return r;
}

static int has_key(void *ctx, const struct local_prepared *p)
{
	/* A record that cannot be read may name any image. */
	return !p || strcmp(p->key, ctx) == 0;
}

bool local_prepared_uses(const struct abx_session *s, const char *key)
{
	return each(s, has_key, (void *)(uintptr_t)key) != 0;
}

int32_t local_prepared_lock(const struct abx_session *s, struct abx_call *call, const char *name,
			    int *ret_fd)
{
	char file[FILE_MAX_BYTES];
	int32_t r;
	int fd;

	file_name(name, ".lock", file);
	fd = openat(s->prepared_fd, file, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return abx_fail_errno(call, errno, "image: lock");
	r = local_image_lock(call, fd, LOCK_EX);
	if (r == ABX_OK)
		*ret_fd = fd;
	else
		(void)close(fd);
	return r;
}

int32_t local_prepared_emit(const struct abx_session *s, struct abx_call *call,
			    const struct local_prepared *p)
{
	struct local_labels labels;
	struct abx_snapshot sn = {
		ABX_INIT(struct abx_snapshot),
		.ref = p->name,
		.name = p->name,
		.state = "ready",
		.created_at = p->created_at,
		.account = s->account,
		.size_bytes = (uint64_t)p->size_bytes,
	};

	local_labels_get(p->labels, &labels);
	sn.labels = labels.kv;
	sn.n_labels = labels.n;
	return abx_plugin_host->emit_snapshot(call, &sn);
}

struct listing {
	struct abx_session *s;
	struct abx_call *call;
	const struct abx_list_req *req;
};

static int list_one(void *ctx, const struct local_prepared *p)
{
	struct listing *l = ctx;

	if (!p || !local_labels_match(p->labels, l->req))
		return 0;
	return local_prepared_emit(l->s, l->call, p);
}

int32_t local_image_list(struct abx_session *s, struct abx_call *call,
			 const struct abx_list_req *req)
{
	struct listing l = {s, call, req};

	return each(s, list_one, &l);
}

int32_t local_image_delete(struct abx_session *s, struct abx_call *call, const char *ref)
{
	abx_autoclose int name_lock = -1, lock = -1;
	struct local_prepared p = LOCAL_PREPARED_INIT;
	char user[LOCAL_USER_MAX], key[LOCAL_PRINT_TEXT] = "";
	int32_t r = local_prepared_check_name(call, ref);
	int e = 0;

	if (r == ABX_OK)
		r = local_prepared_lock(s, call, ref, &name_lock);
	if (r != ABX_OK)
		return r;
	e = local_prepared_open(s, ref, &p);
	if (e == -ENOENT)
		return abx_fail(call, ABX_ENOTFOUND, NULL, "image: %s: there is no such image",
				ref);
	/* A damaged record can only be removed. */
	if (e == 0)
		(void)snprintf(key, sizeof(key), "%s", p.key);
	local_prepared_release(&p);
	if (*key) {
		lock = local_image_lock_fd(s, key);
		if (lock < 0)
			return abx_fail_errno(call, errno, "image: lock");
		if (flock(lock, LOCK_EX | LOCK_NB) < 0)
			return abx_fail(call, ABX_ESTATE, "try again",
					"image: %s: a box is being made of it", ref);
		if (local_image_user(s, key, user, sizeof(user)))
			return abx_fail(call, ABX_ESTATE, "destroy that first",
					"image: %s: %s has it", ref, user);
	}
	e = local_prepared_remove(s, ref);
	if (e < 0)
		return abx_fail_errno(call, -e, "image: %s: remove", ref);
	if (*key && !local_prepared_uses(s, key))
		r = local_remove_tree(s, call, s->images_fd, key, ".");
	return r;
}
