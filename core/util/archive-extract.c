/* SPDX-License-Identifier: MIT */
/* An untrusted tar stream into a directory of this machine. */
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/util/archive.h"
#include "core/util/beneath.h"
#include "core/util/landing.h"
#include "core/util/mem.h"
#include "core/util/parse.h"
#include "core/util/room.h"

#define DEFAULT_MAX_ENTRIES 10000000
#define READ_BLOCK 65536
/* Positive results of one entry: refused for that reason. */
#define REFUSE(kind) (1 + (int)(kind))

/* A directory whose mode and time are set when nothing more is written into it. */
struct late_dir {
	char *path;
	mode_t mode;
	struct timespec mtime;
};

struct extract {
	const struct abx_archive_api *la;
	struct archive *a;
	struct archive_entry *e;
	int dirfd;
	const struct abx_tar_extract *how;
	struct abx_tar_result *res;
	struct abx_landing landing;
	struct late_dir *dirs;
	size_t n_dirs, cap_dirs;
};

void abx_tar_result_release(struct abx_tar_result *r)
{
	for (size_t i = 0; i < ABX_TAR_REFUSALS; i++)
		free(r->refused[i].first);
	memset(r, 0, sizeof(*r));
}

char *abx_tar_refusal_text(const struct abx_tar_result *r, enum abx_tar_refusal kind)
{
	static const char *const what[ABX_TAR_REFUSALS] = {
		[ABX_TAR_BAD_NAME] = "with a name that leaves the directory",
		[ABX_TAR_THROUGH_LINK] = "that would be written through a symbolic link",
		[ABX_TAR_LINK_LEAVES] = "that are symbolic links to outside of the directory",
		[ABX_TAR_HARD_LINK] = "that are hard links to no file of the directory",
		[ABX_TAR_SPECIAL] = "that are devices, FIFOs or sockets",
		[ABX_TAR_IN_THE_WAY] = "where a file or directory is in the way",
		[ABX_TAR_NOT_WRITTEN] = "that this system does not write",
	};
	const uint64_t n = r->refused[kind].n;

	if (!n)
		return NULL;
	return abx_xasprintf("%llu %s %s: left out, first '%s'", (unsigned long long)n,
			     n == 1 ? "entry" : "entries", what[kind], r->refused[kind].first);
}

static void refuse(struct extract *x, enum abx_tar_refusal kind, const char *name)
{
	char shown[256];

	x->res->n_refused++;
	if (x->res->refused[kind].n++)
		return;
	/* Who packs a directory itself begins each name with it. */
	if (strncmp(name, "./", 2) == 0 && name[2])
		name += 2;
	abx_quote_text(name, shown, sizeof(shown));
	x->res->refused[kind].first = abx_xstrdup(shown);
}

/* What an errno of making one entry means: refused, or the end of all. */
static int entry_errno(int errnum, struct abx_err *err)
{
	switch (errnum) {
	case ELOOP:
	case EXDEV:
		return REFUSE(ABX_TAR_THROUGH_LINK);
	case ENOTDIR:
	case EISDIR:
	case ENOTEMPTY:
	case EEXIST:
		return REFUSE(ABX_TAR_IN_THE_WAY);
	case ENOSPC:
	case EDQUOT:
	case EIO:
	case ENOMEM:
	case EMFILE:
	case ENFILE:
	case EROFS:
		return abx_err_errno(err, errnum, "unpack");
	default:
		return REFUSE(ABX_TAR_NOT_WRITTEN);
	}
}

static int bad_stream(struct extract *x, struct abx_err *err)
{
	const char *why = x->la->error_string(x->a);
	char shown[256];

	abx_quote_text(why ? why : "damaged", shown, sizeof(shown));
	return abx_err_set(err, ABX_EPROTO, "unpack: the archive cannot be read: %s", shown);
}

/* Where an entry goes: "./a/b/" becomes "a/b"; "" is the directory itself; NULL refused. */
static char *clean_name(const char *name)
{
	abx_autofree char *copy = NULL;
	size_t len;

	while (name[0] == '.' && name[1] == '/')
		for (name += 2; *name == '/'; name++)
			;
	if (strcmp(name, ".") == 0)
		name++;
	copy = abx_xstrdup(name);
	len = strlen(copy);
	while (len > 1 && copy[len - 1] == '/')
		copy[--len] = '\0';
	if (len && !abx_is_clean_path(copy))
		return NULL;
	return abx_steal_ptr(&copy);
}

static struct timespec entry_mtime(struct extract *x)
{
	const struct timespec t = {x->la->entry_mtime(x->e), x->la->entry_mtime_nsec(x->e)};

	return t;
}

static int make_dir(struct extract *x, const char *path, struct abx_err *err)
{
	abx_autoclose int parent = -1;
	const char *name;
	struct stat st;
	int r;

	if (*path) {
		r = abx_open_parent_beneath(x->dirfd, path, 0755, &parent, &name);
		if (r < 0)
			return entry_errno(-r, err);
		if (mkdirat(parent, name, 0700) < 0) {
			if (errno != EEXIST)
				return entry_errno(errno, err);
			if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
				return entry_errno(errno, err);
			if (S_ISLNK(st.st_mode))
				return REFUSE(ABX_TAR_THROUGH_LINK);
			if (!S_ISDIR(st.st_mode))
				return REFUSE(ABX_TAR_IN_THE_WAY);
		}
		if (x->n_dirs == x->cap_dirs) {
			x->cap_dirs = x->cap_dirs ? x->cap_dirs * 2 : 64;
			x->dirs = abx_xreallocarray(x->dirs, x->cap_dirs, sizeof(*x->dirs));
		}
		x->dirs[x->n_dirs++] = (struct late_dir){
			abx_xstrdup(path), x->la->entry_perm(x->e) & 0777, entry_mtime(x)};
	}
	x->res->count.dirs++;
	return 0;
}

static int write_at(int fd, const void *data, size_t len, la_int64_t offset)
{
	const char *at = data;

	while (len) {
		const ssize_t n = pwrite(fd, at, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		offset += n;
		len -= (size_t)n;
	}
	return 0;
}

static int copy_data(struct extract *x, int fd, struct abx_err *err)
{
	const uint64_t before = x->res->count.bytes;
	const void *data;
	la_int64_t offset, end = 0;
	size_t len;
	int r;

	for (;;) {
		r = x->la->read_data_block(x->a, &data, &len, &offset);
		if (r == ARCHIVE_EOF)
			break;
		if (r != ARCHIVE_OK)
			return bad_stream(x, err);
		if (offset < end)
			return abx_err_set(err, ABX_EPROTO, "unpack: a file's parts overlap");
		r = write_at(fd, data, len, offset);
		if (r < 0)
			return entry_errno(-r, err);
		end = offset + (la_int64_t)len;
		x->res->count.bytes = before + (uint64_t)end;
		if (x->how->max_bytes && x->res->count.bytes > x->how->max_bytes)
			return abx_err_set(err, ABX_EQUOTA,
					   "unpack: the archive holds more than %llu bytes",
					   (unsigned long long)x->how->max_bytes);
		if (x->how->progress && x->how->progress(x->how->progress_ctx, &x->res->count) != 0)
			return abx_err_set(err, ABX_ECANCELED, "unpack: given up");
	}
	/* A sparse file may end in a hole. */
	if (ftruncate(fd, (off_t)x->la->entry_size(x->e)) < 0)
		return entry_errno(errno, err);
	return 0;
}

static int fill_file(struct extract *x, struct abx_err *err)
{
	const struct timespec times[2] = {{0, UTIME_OMIT}, entry_mtime(x)};
	const int fd = x->landing.fd, r = copy_data(x, fd, err);

	if (r != 0)
		return r;
	if (fchmod(fd, x->la->entry_perm(x->e) & 0777) < 0 || futimens(fd, times) < 0)
		return entry_errno(errno, err);
	return 0;
}

static int make_file(struct extract *x, const char *path, struct abx_err *err)
{
	abx_autoclose int parent = -1;
	const char *name;
	int r = abx_open_parent_beneath(x->dirfd, path, 0755, &parent, &name);

	if (r < 0)
		return entry_errno(-r, err);
	/* How much of a sparse file takes room is not said. */
	if (!x->la->entry_sparse_count(x->e))
		r = abx_room_check(parent, (uint64_t)x->la->entry_size(x->e), path, err);
	if (r < 0)
		return abx_err_wrap(err, "unpack");
	r = abx_landing_begin(&x->landing, parent, 0600);
	if (r < 0)
		return entry_errno(-r, err);
	r = fill_file(x, err);
	if (r == 0) {
		r = abx_landing_land(&x->landing, name);
		r = r < 0 ? entry_errno(-r, err) : 0;
	}
	abx_landing_drop(&x->landing);
	if (r == 0)
		x->res->count.files++;
	return r;
}

static int make_symlink(struct extract *x, const char *path, struct abx_err *err)
{
	const char *target = x->la->entry_symlink(x->e), *name;
	const struct timespec times[2] = {{0, UTIME_OMIT}, entry_mtime(x)};
	abx_autoclose int parent = -1;
	int r;

	if (!target || !abx_link_stays_beneath(path, target))
		return REFUSE(ABX_TAR_LINK_LEAVES);
	r = abx_open_parent_beneath(x->dirfd, path, 0755, &parent, &name);
	if (r == 0)
		r = abx_landing_symlink(&x->landing, target, parent, name);
	if (r < 0)
		return entry_errno(-r, err);
	(void)utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW);
	x->res->count.links++;
	return 0;
}

static int make_hard_link(struct extract *x, const char *path, struct abx_err *err)
{
	abx_autoclose int parent = -1, from = -1;
	abx_autofree char *target = clean_name(x->la->entry_hardlink(x->e));
	const char *name, *from_name;
	struct stat st;
	int r;

	if (!target || !*target)
		return REFUSE(ABX_TAR_HARD_LINK);
	r = abx_open_parent_beneath(x->dirfd, target, 0, &from, &from_name);
	if (r < 0 || fstatat(from, from_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return REFUSE(ABX_TAR_HARD_LINK);
	r = abx_open_parent_beneath(x->dirfd, path, 0755, &parent, &name);
	if (r < 0)
		return entry_errno(-r, err);
	r = abx_landing_link(&x->landing, from, from_name, parent, name);
	if (r < 0)
		return entry_errno(-r, err);
	x->res->count.files++;
	return 0;
}

static int extract_entry(struct extract *x, struct abx_err *err)
{
	const char *raw = x->la->entry_pathname(x->e);
	abx_autofree char *path = raw ? clean_name(raw) : NULL;
	const mode_t type = x->la->entry_filetype(x->e);
	int r;

	if (!path || (!*path && type != AE_IFDIR))
		r = REFUSE(ABX_TAR_BAD_NAME);
	else if (x->la->entry_hardlink(x->e))
		r = make_hard_link(x, path, err);
	else if (type == AE_IFREG)
		r = make_file(x, path, err);
	else if (type == AE_IFDIR)
		r = make_dir(x, path, err);
	else if (type == AE_IFLNK)
		r = make_symlink(x, path, err);
	else
		r = REFUSE(ABX_TAR_SPECIAL);
	if (r > 0)
		refuse(x, (enum abx_tar_refusal)(r - 1), raw ? raw : "");
	return r < 0 ? r : 0;
}

static int extract_all(struct extract *x, struct abx_err *err)
{
	const uint64_t max = x->how->max_entries ? x->how->max_entries : DEFAULT_MAX_ENTRIES;
	uint64_t n = 0;
	int r;

	for (;;) {
		r = x->la->read_next_header(x->a, &x->e);
		if (r == ARCHIVE_EOF)
			return 0;
		/* A warning is about a character set; names are bytes here. */
		if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
			return bad_stream(x, err);
		if (++n > max)
			return abx_err_set(err, ABX_EQUOTA,
					   "unpack: the archive holds more than %llu entries",
					   (unsigned long long)max);
		r = extract_entry(x, err);
		if (r < 0)
			return r;
		if (x->how->progress && x->how->progress(x->how->progress_ctx, &x->res->count) != 0)
			return abx_err_set(err, ABX_ECANCELED, "unpack: given up");
	}
}

/* Deepest last in, first out: a directory may lose its write bit only after its children. */
static void finish_dirs(struct extract *x)
{
	while (x->n_dirs) {
		struct late_dir *d = &x->dirs[--x->n_dirs];
		const struct timespec times[2] = {{0, UTIME_OMIT}, d->mtime};
		abx_autoclose int fd =
			abx_open_beneath(x->dirfd, d->path, O_RDONLY | O_DIRECTORY, 0);

		if (fd >= 0) {
			(void)fchmod(fd, d->mode);
			(void)futimens(fd, times);
		}
		free(d->path);
	}
	free(x->dirs);
}

/* What a tar puts after its end, so that whoever writes the stream is not cut off. */
static void drain(int fd)
{
	char rest[READ_BLOCK];
	ssize_t n;

	do
		n = read(fd, rest, sizeof(rest));
	while (n > 0 || (n < 0 && errno == EINTR));
}

int abx_tar_extract(int fd, int dirfd, const struct abx_tar_extract *how,
		    struct abx_tar_result *ret, struct abx_err *err)
{
	struct extract x = {.dirfd = dirfd, .how = how, .res = ret, .landing = ABX_LANDING_INIT};
	int r;

	memset(ret, 0, sizeof(*ret));
	x.la = abx_archive_api(err);
	if (!x.la)
		return ABX_EIO;
	x.landing.notes = how->notes;
	x.a = x.la->read_new();
	if (!x.a || x.la->read_support_format_tar(x.a) != ARCHIVE_OK)
		r = abx_err_set(err, ABX_ENOMEM, "unpack: libarchive does not start");
	else if (x.la->read_open_fd(x.a, fd, READ_BLOCK) != ARCHIVE_OK)
		r = bad_stream(&x, err);
	else
		r = extract_all(&x, err);
	if (r == 0)
		drain(fd);
	finish_dirs(&x);
	abx_landing_close(&x.landing);
	if (x.a)
		(void)x.la->read_free(x.a);
	return r;
}
