/* SPDX-License-Identifier: MIT */
/*
 * core/state/config-keys.h: the settings that agentbox itself has, and what a value may be.
 *
 * The flags follow one rule: a repository may say what its box needs, and nothing that
 * chooses files of the host, endpoints, credentials, trust, or that opens the box wider.
 */
#ifndef ABX_CONFIG_KEYS_H
#define ABX_CONFIG_KEYS_H

#include "core/state/config.h"

extern const struct abx_config_key abx_config_builtin[];
extern const size_t abx_config_n_builtin;

/* Is `value` of the key's type?  ABX_EINVAL with a text that names neither key nor file; a
 * secret value is not in it. */
int abx_config_check_type(const struct abx_config_key *key, const char *value, struct abx_err *err);

#endif
