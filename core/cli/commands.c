/* SPDX-License-Identifier: MIT */
/* The list of commands. */
#include <string.h>

#include "core/cli/cmd.h"

extern const struct abx_cmd abx_cmd_egress, abx_cmd_image, abx_cmd_prepare, abx_cmd_volume,
	abx_cmd_checkpoint, abx_cmd_config, abx_cmd_cp, abx_cmd_create, abx_cmd_destroy,
	abx_cmd_diff, abx_cmd_doctor, abx_cmd_download, abx_cmd_exec, abx_cmd_fetch, abx_cmd_files,
	abx_cmd_forget, abx_cmd_fork, abx_cmd_help, abx_cmd_list, abx_cmd_login, abx_cmd_logout,
	abx_cmd_logs, abx_cmd_pause, abx_cmd_provider, abx_cmd_provider_probe, abx_cmd_prune,
	abx_cmd_recover, abx_cmd_resume, abx_cmd_shell, abx_cmd_start, abx_cmd_stats,
	abx_cmd_status, abx_cmd_stop, abx_cmd_sync, abx_cmd_top, abx_cmd_url, abx_cmd_version,
	abx_cmd_watch;

/* In the order in which a newcomer needs them. */
const struct abx_cmd *const abx_commands[] = {
	&abx_cmd_create,
	&abx_cmd_exec,
	&abx_cmd_shell,
	&abx_cmd_logs,
	&abx_cmd_list,
	&abx_cmd_status,
	&abx_cmd_watch,
	&abx_cmd_stats,
	&abx_cmd_top,
	&abx_cmd_diff,
	&abx_cmd_download,
	&abx_cmd_fetch,
	&abx_cmd_sync,
	&abx_cmd_cp,
	&abx_cmd_files,
	&abx_cmd_url,
	&abx_cmd_start,
	&abx_cmd_stop,
	&abx_cmd_pause,
	&abx_cmd_resume,
	&abx_cmd_checkpoint,
	&abx_cmd_fork,
	&abx_cmd_egress,
	&abx_cmd_destroy,
	&abx_cmd_prune,
	&abx_cmd_recover,
	&abx_cmd_forget,
	&abx_cmd_login,
	&abx_cmd_logout,
	&abx_cmd_prepare,
	&abx_cmd_image,
	&abx_cmd_volume,
	&abx_cmd_doctor,
	&abx_cmd_config,
	&abx_cmd_provider,
	&abx_cmd_version,
	&abx_cmd_help,
	&abx_cmd_provider_probe,
	NULL,
};

const struct abx_cmd *abx_cmd_find(const char *name)
{
	for (size_t i = 0; abx_commands[i]; i++) {
		const struct abx_cmd *cmd = abx_commands[i];

		if (strcmp(cmd->name, name) == 0 || (cmd->alias && strcmp(cmd->alias, name) == 0))
			return cmd;
	}
	return NULL;
}
