/* SPDX-License-Identifier: MIT */
/*
 * core/base/settings.h: what the settings of a provider say of base images: <provider>.packages,
 * and, where it can start an engine in boxes, .start_dockerd, .compose and .buildx.
 *
 *	struct abx_base_settings set = ABX_BASE_SETTINGS_INIT;
 *
 *	r = abx_base_settings_load(config, "docker", &set, err);
 *	... set.how ...
 *	abx_base_settings_release(&set);
 */
#ifndef ABX_BASE_SETTINGS_H
#define ABX_BASE_SETTINGS_H

#include "core/base/context.h"
#include "core/state/config.h"

#define ABX_BASE_FILES_MAX 2

struct abx_base_settings {
	struct abx_base_how how; /* points to what is here, and has no ca */
	char *packages;
	struct abx_base_file files[ABX_BASE_FILES_MAX];
	char *texts[ABX_BASE_FILES_MAX];
};
#define ABX_BASE_SETTINGS_INIT   \
	{                        \
		.packages = NULL \
	}

/* `config` may be NULL.  ABX_EINVAL names the setting that makes no sense. */
int abx_base_settings_load(const struct abx_config *config, const char *provider,
			   struct abx_base_settings *ret, struct abx_err *err);
void abx_base_settings_release(struct abx_base_settings *s);

#endif
