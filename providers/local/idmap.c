/* SPDX-License-Identifier: MIT */
/*
 * Which ids of this machine the ids of boxes become.
 *
 * What boxes write belongs to those ids, so a state directory goes on with the ones that it was
 * begun with, store/ids, for as long as they may be used, whatever is in /etc/subuid.
 */
#include "providers/local/local.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "abxsdk/fs.h"
#include "abxsdk/json.h"
#include "abxsdk/number.h"

#define SUBUID "/etc/subuid"
#define SUBGID "/etc/subgid"
#define IDS "ids"

#define SUBID_MAX_BYTES ((size_t)4 << 20)
/* For root where nobody has set a range aside: high, away from the usual ones, and the
 * same for every installation, so that state directories can move. */
#define DEFAULT_BASE UINT32_C(1900544000)

/* Up to one of `ends`. */
static bool parse_u32(const char *s, const char *ends, uint32_t *ret)
{
	uint64_t v;

	/* strchr() finds the end of the text too. */
	if (!abx_parse_digits(&s, UINT32_MAX - 1, &v) || !strchr(ends, *s))
		return false;
	*ret = (uint32_t)v;
	return true;
}

/* Whose lines of subuid(5) are ours. */
struct who {
	uid_t uid;
	char name[256], number[16];
};

struct range {
	bool ours;
	uint32_t first, count;
};

/* "name-or-uid:first:count" */
static bool parse_line(const char *line, const struct who *w, struct range *ret)
{
	size_t n = strcspn(line, ":\n");
	const char *first = line + n + 1, *count;
	struct range r = {.ours = (n == strlen(w->name) && memcmp(line, w->name, n) == 0) ||
				  (n == strlen(w->number) && memcmp(line, w->number, n) == 0)};

	if (line[n] != ':')
		return false;
	n = strcspn(first, ":\n");
	count = first + n + 1;
	if (first[n] != ':' || !parse_u32(first, ":", &r.first) ||
	    !parse_u32(count, "\n", &r.count))
		return false;
	*ret = r;
	return true;
}

/* Ends with the first visit that is true. */
static bool any_range(const char *path, const struct who *w,
		      bool (*visit)(const struct range *r, uint32_t *base), uint32_t *base)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(SUBID_MAX_BYTES);
	struct range r;

	if (abx_fs_read(AT_FDCWD, path, &b) < 0 || !b.len)
		return false;
	for (const char *line = b.data; *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (parse_line(line, w, &r) && visit(&r, base))
			return true;
	return false;
}

/* The first one of ours with enough ids. */
static bool is_enough(const struct range *r, uint32_t *base)
{
	bool yes = r->ours && r->count >= LB_MAP_IDS && r->first > 0 &&
		   r->first <= UINT32_MAX - LB_MAP_IDS;

	if (yes)
		*base = r->first;
	return yes;
}

static bool has_ours(const struct range *r, uint32_t *base)
{
	return r->ours && r->first <= *base &&
	       (uint64_t)r->first + r->count >= (uint64_t)*base + LB_MAP_IDS;
}

static bool is_of_others(const struct range *r, uint32_t *base)
{
	return !r->ours && r->first < (uint64_t)*base + LB_MAP_IDS &&
	       (uint64_t)r->first + r->count > *base;
}

static bool user_name(uid_t uid, char *name, size_t size)
{
	char b[4096];
	struct passwd pw, *found = NULL;

	if (getpwuid_r(uid, &pw, b, sizeof(b), &found) != 0 || !found)
		return false;
	return (size_t)snprintf(name, size, "%s", pw.pw_name) < size;
}

bool local_in_path(const char *program)
{
	static const char dirs[] = LB_PATH;
	char path[128];

	for (const char *d = dirs; *d; d += strcspn(d, ":"), d += *d == ':') {
		(void)snprintf(path, sizeof(path), "%.*s/%s", (int)strcspn(d, ":"), d, program);
		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

/* Are all ids of the range real here?  Inside a user namespace, many are not. */
static bool is_mapped(const char *map_file, uint32_t base)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(65536);
	abx_autoclose int fd = open(map_file, O_RDONLY | O_CLOEXEC);
	const char *line;

	if (fd < 0 || abx_buf_read_fd(&b, fd) < 0 || !b.len)
		return true;
	for (line = b.data; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		uint32_t v[3] = {0, 0, 0};
		const char *at = line;

		for (size_t i = 0; i < ABX_N_ELEMENTS(v); i++) {
			at += strspn(at, " ");
			if (!parse_u32(at, " \n", &v[i]))
				v[i] = i == 2 ? UINT32_MAX : 0;
			at += strcspn(at, " \n");
		}
		if (base >= v[0] && (uint64_t)base + LB_MAP_IDS <= (uint64_t)v[0] + v[2])
			return true;
	}
	return false;
}

static void who_is(struct who *w)
{
	*w = (struct who){.uid = geteuid(), .name = "root"};
	(void)snprintf(w->number, sizeof(w->number), "%u", w->uid);
	if (w->uid != 0 && !user_name(w->uid, w->name, sizeof(w->name)))
		memcpy(w->name, w->number, sizeof(w->number));
}

static bool are_mapped(const struct local_ids *ids)
{
	return is_mapped("/proc/self/uid_map", ids->uid_base) &&
	       is_mapped("/proc/self/gid_map", ids->gid_base);
}

static bool can_map_subids(void)
{
	return local_in_path("newuidmap") && local_in_path("newgidmap");
}

/* What a new state directory gets. */
static void choose(const struct who *w, struct local_ids *ret)
{
	bool found = any_range(SUBUID, w, is_enough, &ret->uid_base) &&
		     any_range(SUBGID, w, is_enough, &ret->gid_base);

	if (w->uid == 0) {
		ret->map = LB_MAP_DIRECT;
		if (!found)
			ret->uid_base = ret->gid_base = DEFAULT_BASE;
		if (!are_mapped(ret))
			ret->map = LB_MAP_NONE;
	} else if (found && can_map_subids()) {
		ret->map = LB_MAP_SUBID;
	} else {
		ret->map = LB_MAP_SINGLE;
		ret->uid_base = w->uid;
		ret->gid_base = getegid();
	}
}

/* NULL, or why these can be used no more. */
static const char *refuse(const struct who *w, const struct local_ids *ids)
{
	uint32_t uid = ids->uid_base, gid = ids->gid_base;

	if (ids->map == LB_MAP_SINGLE)
		return w->uid == uid ? NULL : "another user's";
	if ((ids->map == LB_MAP_DIRECT) != (w->uid == 0))
		return "those that another user has made them with";
	if (ids->map == LB_MAP_SUBID && !can_map_subids())
		return "to be had by newuidmap and newgidmap only, which are missing";
	if (ids->map == LB_MAP_SUBID)
		return any_range(SUBUID, w, has_ours, &uid) && any_range(SUBGID, w, has_ours, &gid)
			       ? NULL
			       : "not yours any more in " SUBUID " and " SUBGID;
	/* Root may use any, and leaves alone what has been given to somebody else. */
	if (any_range(SUBUID, w, is_of_others, &uid) || any_range(SUBGID, w, is_of_others, &gid))
		return "somebody else's now in " SUBUID " or " SUBGID;
	return are_mapped(ids) ? NULL : "not there (inside a user namespace)";
}

/* The record, store/ids. */
static const char *const map_names[] = {
	[LB_MAP_DIRECT] = "direct", [LB_MAP_SUBID] = "subid", [LB_MAP_SINGLE] = "single"};

static int read_ids(const struct abx_session *s, struct local_ids *ret)
{
	struct local_ids ids = {.map = LB_MAP_NONE};
	const char *map = NULL;
	int64_t uid = 0, gid = 0;
	cJSON *doc = NULL;
	int r = local_read_json(s->store_fd, IDS, &doc);

	if (r == 0)
		r = abx_json_str(doc, "map", 16, &map);
	if (r == 0)
		r = abx_json_i64(doc, "uid", &uid);
	if (r == 0)
		r = abx_json_i64(doc, "gid", &gid);
	for (int i = LB_MAP_DIRECT; r == 0 && map && i <= LB_MAP_SINGLE; i++)
		if (strcmp(map, map_names[i]) == 0)
			ids.map = (enum lb_map)i;
	cJSON_Delete(doc);
	if (r == 0 && (ids.map == LB_MAP_NONE || uid <= 0 || gid < 0 ||
		       uid > UINT32_MAX - LB_MAP_IDS || gid > UINT32_MAX - LB_MAP_IDS))
		r = -EPROTO;
	if (r < 0)
		return r;
	ids.uid_base = (uint32_t)uid;
	ids.gid_base = (uint32_t)gid;
	*ret = ids;
	return 0;
}

static int write_ids(const struct abx_session *s)
{
	abx_auto(abx_buf) struct abx_buf b = ABX_BUF_INIT(256);

	if (s->ids.map == LB_MAP_NONE)
		return 0;
	abx_buf_addf(&b, "{\"map\": \"%s\", \"uid\": %u, \"gid\": %u}\n", map_names[s->ids.map],
		     s->ids.uid_base, s->ids.gid_base);
	return abx_fs_write_atomic(s->store_fd, IDS, b.data, b.len, 0600, true);
}

/* Is there anything but the cache that belongs to ids of boxes? */
static bool is_used(const struct abx_session *s)
{
	static const char *const dirs[] = {"boxes", "tmp", "images", "layers", "volumes"};
	bool used = false;

	for (size_t i = 0; i < ABX_N_ELEMENTS(dirs) && !used; i++) {
		DIR *d = abx_fs_opendir(s->store_fd, dirs[i]);
		struct dirent *e;

		while (d && !used && (e = readdir(d)))
			used = !abx_fs_is_dot(e->d_name) && !strstr(e->d_name, ".lock");
		if (d)
			(void)closedir(d);
	}
	return used;
}

/* Only those whom it belongs to can use or remove it. */
static int set_cache_aside(const struct abx_session *s, const struct local_ids *of)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(256);
	char name[32];

	if (abx_fs_remove_tree(s->store_fd, "cache") == 0)
		return 0;
	(void)snprintf(name, sizeof(name), "cache-of-%u", of->uid_base);
	abx_buf_addf(&text, "store/%s: files of ids that are yours no more; root may remove it",
		     name);
	if (renameat(s->store_fd, "cache", s->store_fd, name) < 0 && errno != ENOENT)
		return -errno;
	abx_plugin_host->log(abx_plugin_host->ctx, ABX_LOG_WARN, "local", abx_buf_str(&text));
	return 0;
}

int local_ids_settle(struct abx_session *s)
{
	struct local_ids kept;
	struct who w;
	int r = read_ids(s, &kept);

	who_is(&w);
	choose(&w, &s->ids);
	if (r == -EPROTO)
		abx_plugin_host->log(abx_plugin_host->ctx, ABX_LOG_WARN, "local",
				     "store/" IDS ": damaged, written anew by what is in " SUBUID);
	if (r < 0)
		return r == -ENOENT || r == -EPROTO ? write_ids(s) : r;
	if (memcmp(&kept, &s->ids, sizeof(kept)) == 0)
		return 0;
	s->ids_lost = refuse(&w, &kept);
	/* Who has been given more ids since then gets them where there is no box to lose. */
	if ((s->ids_lost || kept.map == LB_MAP_SINGLE) && !is_used(s)) {
		s->ids_lost = NULL;
		r = set_cache_aside(s, &kept);
		return r < 0 ? r : write_ids(s);
	}
	s->ids_could_be_more = kept.map == LB_MAP_SINGLE && s->ids.map == LB_MAP_SUBID;
	s->ids = kept;
	if (s->ids_lost)
		s->ids.map = LB_MAP_NONE;
	return 0;
}

void local_ids_lack(const struct abx_session *s, struct local_lack *ret)
{
	uint32_t uid = s->ids.uid_base;
	struct who w;

	ret->code = ABX_EPERM;
	if (!s->ids_lost) {
		(void)snprintf(ret->text, sizeof(ret->text),
			       "the ids of boxes do not exist here (inside a user namespace)");
		(void)snprintf(ret->remedy, sizeof(ret->remedy),
			       "give root %u ids that exist here in " SUBUID " and " SUBGID
			       ", or run outside",
			       LB_MAP_IDS);
		return;
	}
	who_is(&w);
	(void)snprintf(ret->text, sizeof(ret->text),
		       "its files belong to the ids %u to %u, which are %s", uid,
		       uid + LB_MAP_IDS - 1, s->ids_lost);
	(void)snprintf(ret->remedy, sizeof(ret->remedy),
		       "have %.64s:%u:%u in " SUBUID " and the like of %u in " SUBGID
		       " again, or use another AGENTBOX_HOME",
		       w.name, uid, LB_MAP_IDS, s->ids.gid_base);
}

int32_t local_ids_check(const struct abx_session *s, struct abx_call *call, const char *fmt, ...)
{
	struct local_lack lack;
	char what[160];
	va_list ap;

	if (s->ids.map != LB_MAP_NONE)
		return ABX_OK;
	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	local_ids_lack(s, &lack);
	return abx_fail(call, lack.code, lack.remedy, "%s: %s", what, lack.text);
}
