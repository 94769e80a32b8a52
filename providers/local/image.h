/* SPDX-License-Identifier: MIT */
/*
 * image.h: root file systems of boxes, images/<key>/root, and the names they were prepared
 * under, prepared/<name>.json.
 *
 * An image stays for as long as a box, a snapshot or a name has its key, or somebody holds its
 * lock; others are removed when the next one is made.
 */
#ifndef LOCAL_IMAGE_H
#define LOCAL_IMAGE_H

#include "providers/local/local.h"
#include "providers/local/print.h"

#define LOCAL_USER_MAX 160

/* A directory or a tar file of this machine; or, without a path, a tar stream. */
struct local_source {
	const char *path;
	int fd;
	bool is_dir;
};

int32_t local_source_open(struct abx_call *call, const char *path, struct local_source *ret);
/* Its fingerprint. */
void local_source_key(const struct abx_session *s, const struct local_source *src,
		      char key[LOCAL_PRINT_TEXT]);

/* Make root/ in dir_fd, and say how large it is. */
typedef int32_t local_image_fill(struct abx_session *s, struct abx_call *call, int dir_fd,
				 void *ctx, int64_t *ret_bytes);
local_image_fill local_source_unpack; /* ctx: a struct local_source */

/* The image's lock file, not yet locked; -1 and errno. */
int local_image_lock_fd(const struct abx_session *s, const char *key);
int32_t local_image_lock(struct abx_call *call, int fd, int how);
/* The image's lock is held exclusively. */
int32_t local_image_make(struct abx_session *s, struct abx_call *call, const char *key,
			 local_image_fill *fill, void *ctx, int64_t *ret_bytes);
/* The image of a source, made unless it is there; *ret_bytes 0 when it was. */
int32_t local_image_from(struct abx_session *s, struct abx_call *call,
			 const struct local_source *src, const char *key, int64_t *ret_bytes,
			 int *ret_lock);
/* Which box or snapshot has it? */
bool local_image_user(const struct abx_session *s, const char *key, char *user, size_t size);
/* Remove images but `keep` that nothing uses, and what dead makers left; only the latter
 * when `keep` is NULL. */
void local_image_collect(const struct abx_session *s, struct abx_call *call, const char *keep);

/* prepared.c: an image under a name.  Strings belong to the document. */
struct local_prepared {
	cJSON *doc;
	const char *name, *from, *fingerprint, *key, *created_at;
	const cJSON *labels;
	int64_t size_bytes;
};
#define LOCAL_PREPARED_INIT \
	{                   \
		.doc = NULL \
	}
int32_t local_prepared_check_name(struct abx_call *call, const char *name);
/* 0, -ENOENT, or -EPROTO for a damaged record. */
int local_prepared_open(const struct abx_session *s, const char *name, struct local_prepared *ret);
void local_prepared_release(struct local_prepared *p);
/* Replaces the name's record; on disk when it returns 0. */
int local_prepared_write(const struct abx_session *s, const struct local_prepared *p,
			 const struct abx_kv *labels, uint32_t n_labels);
int local_prepared_remove(const struct abx_session *s, const char *name);
bool local_prepared_uses(const struct abx_session *s, const char *key);
/* One at a time may change what a name means. */
int32_t local_prepared_lock(const struct abx_session *s, struct abx_call *call, const char *name,
			    int *ret_fd);
int32_t local_prepared_emit(const struct abx_session *s, struct abx_call *call,
			    const struct local_prepared *p);

#endif
