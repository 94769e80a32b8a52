/* SPDX-License-Identifier: MIT */
/* The settings that agentbox itself has, and what a value may be. */
#include "core/state/config-keys.h"

#include <string.h>

#include "core/util/egress.h"
#include "core/util/parse.h"

const struct abx_config_key abx_config_builtin[] = {
	{"box.provider", "AGENTBOX_PROVIDER", "local", "where new boxes live", ABX_OPT_STRING,
	 ABX_OPT_WORKSPACE_OK},
	{"box.image", "AGENTBOX_IMAGE", NULL, "what new boxes boot from", ABX_OPT_STRING, 0},
	{"box.setup", "AGENTBOX_SETUP", NULL, "shell script run in a new box", ABX_OPT_STRING,
	 ABX_OPT_WORKSPACE_OK},
	{"box.timeout", "AGENTBOX_TIMEOUT", NULL, "how long a new box lives", ABX_OPT_DURATION,
	 ABX_OPT_WORKSPACE_OK},
	{"box.env_file", "AGENTBOX_ENV_FILE", NULL, "file of variables for new boxes",
	 ABX_OPT_STRING, 0},
	{"box.egress", "AGENTBOX_EGRESS", NULL,
	 "where new boxes may connect to: all, none, or a list", ABX_OPT_STRING, 0},
	{"box.cpu", "AGENTBOX_CPU", NULL, "processors of a new box", ABX_OPT_STRING,
	 ABX_OPT_WORKSPACE_OK},
	{"box.memory", "AGENTBOX_MEMORY", NULL, "memory of a new box", ABX_OPT_SIZE,
	 ABX_OPT_WORKSPACE_OK},
	{"box.disk", "AGENTBOX_DISK", NULL, "disk of a new box", ABX_OPT_SIZE,
	 ABX_OPT_WORKSPACE_OK},
	{"box.pids", "AGENTBOX_PIDS", NULL, "processes in a new box, at most", ABX_OPT_INT,
	 ABX_OPT_WORKSPACE_OK},
	{"box.size", "AGENTBOX_SIZE", NULL, "a size of new boxes that the provider names",
	 ABX_OPT_STRING, ABX_OPT_WORKSPACE_OK},
	{"box.location", "AGENTBOX_LOCATION", NULL, "where the provider makes new boxes",
	 ABX_OPT_STRING, 0},
	{"box.volumes", "AGENTBOX_VOLUMES", NULL, "volumes of a new box, NAME:DST", ABX_OPT_LIST,
	 0},
	{"box.ports", "AGENTBOX_PORTS", NULL, "ports of a new box to be reached", ABX_OPT_LIST, 0},
	{"box.depth", "AGENTBOX_DEPTH", NULL,
	 "commits of history that a new box gets: a number, or full", ABX_OPT_STRING,
	 ABX_OPT_WORKSPACE_OK},
	{"box.include_ignored", "AGENTBOX_INCLUDE_IGNORED", NULL,
	 "ignored files that new boxes get all the same", ABX_OPT_LIST, 0},
	{"box.max_seed", "AGENTBOX_MAX_SEED", NULL, "above it create asks before it sends",
	 ABX_OPT_SIZE, 0},
	{"box.readonly", "AGENTBOX_READONLY", NULL, "may new boxes not change their project",
	 ABX_OPT_BOOL, 0},
	{"box.ca_file", "AGENTBOX_CA_FILE", NULL,
	 "certificates to trust beside the system's, for services, builds and in boxes",
	 ABX_OPT_STRING, 0},
	{"box.host_ca", "AGENTBOX_HOST_CA", NULL,
	 "do builds and boxes trust what was added to this machine's certificates too",
	 ABX_OPT_BOOL, 0},
};
const size_t abx_config_n_builtin = ABX_N_ELEMENTS(abx_config_builtin);

static int check_int(const char *value, struct abx_err *err)
{
	uint64_t n;

	if (abx_parse_u64(*value == '-' ? value + 1 : value, INT64_MAX, &n))
		return 0;
	return abx_err_set(err, ABX_EINVAL, "'%.40s' is not a whole number", value);
}

/* A plugin of a repository's choice would be code of a repository's choice. */
static int check_provider(const char *value, struct abx_err *err)
{
	char shown[64];

	if (abx_is_provider_name(value))
		return 0;
	abx_quote_text(value, shown, sizeof(shown));
	(void)abx_err_set(err, ABX_EINVAL, "'%s' is not the name of a provider", shown);
	(void)abx_err_remedy(err, "a file can only be named on the command line");
	return ABX_EINVAL;
}

/* Those whose type is a grammar of its own. */
static int check_special(const char *name, const char *value, struct abx_err *err)
{
	struct abx_egress egress = {0};
	uint32_t milli;
	int64_t depth;
	int r;

	if (strcmp(name, "box.provider") == 0)
		return check_provider(value, err);
	if (strcmp(name, "box.cpu") == 0)
		return abx_parse_cpu_milli(value, &milli, err);
	if (strcmp(name, "box.depth") == 0)
		return abx_parse_depth(value, &depth, err);
	if (strcmp(name, "box.egress") == 0) {
		r = abx_egress_parse(value, &egress, err);
		abx_egress_release(&egress);
		return r;
	}
	return 0;
}

int abx_config_check_type(const struct abx_config_key *key, const char *value, struct abx_err *err)
{
	uint64_t size;
	int64_t ms;
	bool flag;

	switch (key->type) {
	case ABX_OPT_INT:
		return check_int(value, err);
	case ABX_OPT_BOOL:
		return abx_parse_bool(value, &flag, err);
	case ABX_OPT_DURATION:
		return abx_parse_duration_ms(value, &ms, err);
	case ABX_OPT_SIZE:
		return abx_parse_size_bytes(value, &size, err);
	default:
		return check_special(key->name, value, err);
	}
}
