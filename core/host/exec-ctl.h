/* SPDX-License-Identifier: MIT */
/*
 * core/host/exec-ctl.h: commands by agentbox-ctl, where a provider's own exec cannot do all
 * that exec promises.
 *
 * The provider runs agentbox-ctl in the box and carries its bytes; core/ctl/wire.h is what
 * they mean.  What the transport lacks decides how:
 *
 *	no ABX_CAP_EXEC_BINARY or _SPLIT   text lines
 *	no ABX_CAP_EXEC_STDIN              input as uploaded files; needs a provider that takes
 *	                                   operations in parallel
 *
 * agentbox-ctl gets into a box when it is first needed, not before: it is run, and when nothing
 * of ours answers it is uploaded, its checksum compared, and run again.  It lies at
 * /usr/local/lib/agentbox/agentbox-ctl-SUM, owned by root, so that the box user cannot change
 * it without being root; where the provider may not write there, at
 * ~/.agentbox/lib/agentbox-ctl-SUM of the user who runs the command.
 */
#ifndef ABX_EXEC_CTL_H
#define ABX_EXEC_CTL_H

#include "core/host/cloud.h"

/* Can the provider's own exec not do all that this request needs? */
bool abx_exec_needs_ctl(const struct abx_cloud *c, const struct abx_exec *req);
/* As abx_cloud_exec(). */
int abx_exec_ctl(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		 const struct abx_exec *req, struct abx_exit *ret, struct abx_err *err);

/* exec-ctl-install.c: where agentbox-ctl is in a box. */
#define ABX_CTL_PATH_MAX 512
struct abx_ctl_place {
	char name[64];		     /* agentbox-ctl-SUM */
	char path[ABX_CTL_PATH_MAX]; /* "" = not known: it is looked for in the user's home */
	char file[ABX_CTL_PATH_MAX]; /* on this machine */
};
/* The first place to look at. */
int abx_ctl_place_init(struct abx_cloud *c, const struct abx_sandbox *s, struct abx_ctl_place *ret,
		       struct abx_err *err);
/* Put it there; `place` is where it is afterwards. */
int abx_ctl_install(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		    const char *user, struct abx_ctl_place *place, struct abx_err *err);
/* A request that nobody took must not lie around. */
void abx_ctl_forget(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		    const char *base);

#endif
