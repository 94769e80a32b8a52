/* SPDX-License-Identifier: MIT */
/* What the settings of a provider say of base images. */
#include "core/base/settings.h"

#include <ctype.h>
#include <string.h>

#include "abxsdk/suite.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

/* An engine in a box, and a storage for it where the usual one does not do. */
#define DOCKERD_PACKAGES "docker.io,iptables,fuse-overlayfs"
#define HASH "@sha256:"
#define HASH_DIGITS 64

static const struct {
	const char *option, *plugin;
} files[ABX_BASE_FILES_MAX] = {
	{"compose", "docker-compose"},
	{"buildx", "docker-buildx"},
};

/* NULL: not given. */
static const char *get(const struct abx_config *config, const char *provider, const char *option)
{
	abx_autofree char *key = abx_xasprintf("%s.%s", provider, option);
	const char *value = config ? abx_config_get(config, key, NULL) : NULL;

	return value && *value ? value : NULL;
}

static int load_packages(const struct abx_config *config, const char *provider,
			 struct abx_base_settings *s, struct abx_err *err)
{
	const char *given = get(config, provider, "packages"),
		   *dockerd = get(config, provider, "start_dockerd");
	bool wanted = false;
	int r = dockerd ? abx_parse_bool(dockerd, &wanted, err) : 0;

	if (r < 0)
		return r;
	s->packages = abx_xasprintf("%s%s", given ? given : abx_suite_packages,
				    wanted ? "," DOCKERD_PACKAGES : "");
	s->how.packages = s->packages;
	return abx_suite_packages_ok(s->packages)
		       ? 0
		       : abx_err_set(err, ABX_EINVAL,
				     "%s.packages: not names of packages, separated by commas",
				     provider);
}

/* PATH@sha256:HASH */
static int load_file(const struct abx_config *config, const char *provider, size_t which,
		     struct abx_base_settings *s, struct abx_err *err)
{
	const char *given = get(config, provider, files[which].option);
	char *text = given ? abx_xstrdup(given) : NULL, *hash = text ? strrchr(text, '@') : NULL;

	if (!text)
		return 0;
	s->texts[which] = text;
	if (hash && strncmp(hash, HASH, sizeof(HASH) - 1) == 0) {
		*hash = '\0';
		hash += sizeof(HASH) - 1;
		for (char *at = hash; *at; at++)
			*at = (char)tolower((unsigned char)*at);
		if (*text == '/' && strlen(hash) == HASH_DIGITS &&
		    strspn(hash, "0123456789abcdef") == HASH_DIGITS) {
			s->files[s->how.n_files++] =
				(struct abx_base_file){files[which].plugin, text, hash};
			return 0;
		}
	}
	(void)abx_err_set(err, ABX_EINVAL, "%s.%s: not /PATH" HASH "HASH", provider,
			  files[which].option);
	return abx_err_remedy(err, "sha256sum FILE says the hash; compare it with the publisher's");
}

int abx_base_settings_load(const struct abx_config *config, const char *provider,
			   struct abx_base_settings *ret, struct abx_err *err)
{
	int r;

	*ret = (struct abx_base_settings)ABX_BASE_SETTINGS_INIT;
	r = load_packages(config, provider, ret, err);
	for (size_t i = 0; i < ABX_BASE_FILES_MAX && r == 0; i++)
		r = load_file(config, provider, i, ret, err);
	ret->how.files = ret->files;
	if (r < 0)
		abx_base_settings_release(ret);
	return r;
}

void abx_base_settings_release(struct abx_base_settings *s)
{
	free(s->packages);
	for (size_t i = 0; i < ABX_BASE_FILES_MAX; i++)
		free(s->texts[i]);
	*s = (struct abx_base_settings)ABX_BASE_SETTINGS_INIT;
}
