/* SPDX-License-Identifier: MIT */
/* The entries of a spec's lists, from text. */
#include "core/box/spec-parse.h"

#include <limits.h>
#include <string.h>

#include "core/util/mem.h"
#include "core/util/parse.h"

#define MAX_ENTRIES 64

int abx_spec_add_port(struct abx_box_spec *s, const char *text, struct abx_err *err)
{
	uint64_t n;

	if (!abx_parse_u64(text, 65535, &n) || !n)
		return abx_err_set(err, ABX_EINVAL, "'%.40s' is not a port (1 to 65535)", text);
	for (uint32_t i = 0; i < s->n_ports; i++)
		if (s->ports[i] == n)
			return 0;
	if (s->n_ports == MAX_ENTRIES)
		return abx_err_set(err, ABX_EINVAL, "more than %d ports", MAX_ENTRIES);
	s->ports = abx_xreallocarray(s->ports, s->n_ports + 1, sizeof(*s->ports));
	s->ports[s->n_ports++] = (uint16_t)n;
	return 0;
}

bool abx_spec_is_name(const char *name)
{
	static const char rest[] = "abcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t len = strlen(name);

	return len >= 1 && len <= 63 && strspn(name, rest) == len && !strchr("._-", name[0]);
}

/* Absolute, without doubled slashes, ".", ".." and a slash at the end; NULL: not possible. */
static char *normal_path(const char *path)
{
	char *text = abx_xstrdup(path), *to = text;

	if (path[0] != '/' || strlen(path) >= PATH_MAX) {
		free(text);
		return NULL;
	}
	for (const char *at = path; *at;) {
		size_t len;

		at += strspn(at, "/");
		len = strcspn(at, "/");
		if (len == 2 && strncmp(at, "..", 2) == 0) {
			free(text);
			return NULL;
		}
		if (len && !(len == 1 && *at == '.')) {
			*to++ = '/';
			memmove(to, at, len);
			to += len;
		}
		at += len;
	}
	if (to == text)
		*to++ = '/';
	*to = '\0';
	return text;
}

static bool is_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	return strncmp(path, dir, len) == 0 && (!path[len] || path[len] == '/');
}

static int check_target(const char *target, struct abx_err *err)
{
	static const char *const taken[] = {"/proc", "/sys", "/dev", "/run/agentbox"};
	bool good = strcmp(target, "/") != 0 && strcmp(target, "/workspace") != 0;
	char shown[128];

	for (size_t i = 0; i < ABX_N_ELEMENTS(taken); i++)
		good = good && !is_below(target, taken[i]);
	if (good)
		return 0;
	abx_quote_text(target, shown, sizeof(shown));
	return abx_err_set(err, ABX_EINVAL, "'%s' is the box's own", shown);
}

static int add(struct abx_spec_mounts *list, const char *source, const char *given_target,
	       bool read_only, struct abx_err *err)
{
	abx_autofree char *target = normal_path(given_target);
	struct abx_spec_mount *one;
	char shown[128];
	int r;

	abx_quote_text(given_target, shown, sizeof(shown));
	if (!target)
		return abx_err_set(err, ABX_EINVAL, "'%s' is not an absolute path in the box",
				   shown);
	r = check_target(target, err);
	if (r < 0)
		return r;
	if (list->len == MAX_ENTRIES)
		return abx_err_set(err, ABX_EINVAL, "more than %d of them", MAX_ENTRIES);
	list->items = abx_xreallocarray(list->items, list->len + 1, sizeof(*list->items));
	one = &list->items[list->len++];
	one->source = abx_xstrdup(source);
	one->target = abx_steal_ptr(&target);
	one->read_only = read_only;
	return 0;
}

/* What is in the home decides about all boxes; no box may read or write it. */
static int check_source(const char *source, const struct abx_home *home, struct abx_err *err)
{
	char shown[128];

	if (!home || !home->path ||
	    (!is_below(source, home->path) && !is_below(home->path, source) &&
	     strcmp(source, "/") != 0))
		return 0;
	abx_quote_text(source, shown, sizeof(shown));
	(void)abx_err_set(err, ABX_EPOLICY, "'%s' has agentbox's own files in it ('%s')", shown,
			  home->path);
	return abx_err_remedy(err, "mount what the box needs, not all around it");
}

int abx_spec_add_mount(struct abx_box_spec *s, const char *text, const struct abx_home *home,
		       struct abx_err *err)
{
	size_t len = strcspn(text, ":");
	abx_autofree char *source = abx_xstrndup(text, len), *real = NULL, *target = NULL;
	const char *rest = text[len] ? text + len + 1 : "", *mode = strchr(rest, ':');
	bool read_only = true;
	char shown[160];
	int r;

	abx_quote_text(text, shown, sizeof(shown));
	target = abx_xstrndup(rest, mode ? (size_t)(mode - rest) : strlen(rest));
	if (mode && strcmp(mode, ":rw") == 0)
		read_only = false;
	else if (mode && strcmp(mode, ":ro") != 0)
		target[0] = '\0';
	if (!*source || !*target)
		return abx_err_set(err, ABX_EINVAL,
				   "'%s' is not SRC:DST, SRC:DST:ro or SRC:DST:rw (paths without a "
				   "colon)",
				   shown);
	real = realpath(source, NULL);
	if (!real) {
		r = errno;
		abx_quote_text(source, shown, sizeof(shown));
		(void)abx_err_errno(err, r, "'%s'", shown);
		if (err)
			err->code = ABX_EINVAL;
		return ABX_EINVAL;
	}
	r = check_source(real, home, err);
	return r < 0 ? r : add(&s->mounts, real, target, read_only, err);
}

int abx_spec_add_volume(struct abx_box_spec *s, const char *text, struct abx_err *err)
{
	size_t len = strcspn(text, ":");
	abx_autofree char *name = abx_xstrndup(text, len);
	char shown[160];

	abx_quote_text(text, shown, sizeof(shown));
	if (!text[len] || strchr(text + len + 1, ':'))
		return abx_err_set(err, ABX_EINVAL, "'%s' is not NAME:DST", shown);
	if (!abx_spec_is_name(name))
		return abx_err_set(
			err, ABX_EINVAL,
			"'%s': a volume's name is 1 to 63 of a-z, 0-9, '.', '_' and '-', "
			"beginning with a letter or digit",
			shown);
	for (size_t i = 0; i < s->volumes.len; i++)
		if (strcmp(s->volumes.items[i].source, name) == 0)
			return abx_err_set(err, ABX_EINVAL, "volume '%s' is there twice", name);
	return add(&s->volumes, name, text + len + 1, /* read_only= */ false, err);
}

/* Without these no box runs. */
static bool is_of_system(const char *target)
{
	static const char *const dirs[] = {"/bin", "/etc",     "/lib",	   "/lib64",   "/sbin",
					   "/usr", "/usr/bin", "/usr/lib", "/usr/sbin"};

	for (size_t i = 0; i < ABX_N_ELEMENTS(dirs); i++)
		if (strcmp(target, dirs[i]) == 0)
			return true;
	return false;
}

int abx_spec_check_targets(const struct abx_box_spec *s, struct abx_err *err)
{
	const size_t n = s->mounts.len + s->volumes.len;

	for (size_t i = 0; i < n; i++) {
		const struct abx_spec_mount *a = i < s->mounts.len
							 ? &s->mounts.items[i]
							 : &s->volumes.items[i - s->mounts.len];

		if (is_of_system(a->target)) {
			(void)abx_err_set(err, ABX_EUSAGE,
					  "'%s' in the box: no box runs without its own",
					  a->target);
			return abx_err_remedy(err, "mount it at a directory of its own");
		}
		for (size_t j = 0; j < i; j++) {
			const struct abx_spec_mount *b =
				j < s->mounts.len ? &s->mounts.items[j]
						  : &s->volumes.items[j - s->mounts.len];
			char shown[128];

			if (strcmp(a->target, b->target) != 0)
				continue;
			abx_quote_text(a->target, shown, sizeof(shown));
			return abx_err_set(err, ABX_EUSAGE, "'%s' in the box is mounted twice",
					   shown);
		}
	}
	return 0;
}
