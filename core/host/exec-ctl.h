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
 * agentbox-ctl travels with the project: it is a file of the seed stream, and the first command
 * behind that puts it in its place.  A box that was made otherwise gets it when it is first
 * needed: it is run, and when nothing of ours answers it is uploaded, its checksum compared, and
 * run again.  It lies at /usr/local/lib/agentbox/agentbox-ctl-SUM, owned by root, so that the
 * box user cannot change it without being root; where that may not be written, at
 * ~/.agentbox/lib/agentbox-ctl-SUM of the user who runs the command.  Both are looked at in the
 * same call.
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
	char path[ABX_CTL_PATH_MAX]; /* where it was put last */
	char file[ABX_CTL_PATH_MAX]; /* on this machine */
};
/* The directories that it may be in, as a shell reads them, the first one first. */
#define ABX_CTL_DIR "/usr/local/lib/agentbox"
#define ABX_CTL_HOME_DIR "/.agentbox/lib" /* below the user's home */

int abx_ctl_place_init(struct abx_cloud *c, const struct abx_sandbox *s, struct abx_ctl_place *ret,
		       struct abx_err *err);
/* Run it from where it is: $0 its name, $1... its arguments; ends with 127 where it is not. */
extern const char abx_ctl_find_script[];
/* Put it there; `place` is where it is afterwards. */
int abx_ctl_install(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		    const char *user, struct abx_ctl_place *place, struct abx_err *err);
/* Is it to travel with the project, for the commands that follow would need it?  Whoever puts
 * ret->file into a stream names the file in the box to the next command
 * (abx_call_opts.ctl_came_as). */
bool abx_ctl_travels(struct abx_cloud *c, const struct abx_sandbox *s, struct abx_ctl_place *ret);
/* A request that nobody took must not lie around. */
void abx_ctl_forget(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		    const char *base);

/* exec-ctl-forward.c: see to it that somebody in the box listens at `box_port`, and passes on to
 * `port`, also of a server that listens on the box's loopback addresses only. */
int abx_ctl_forward(struct abx_cloud *c, const struct abx_call_opts *o, const struct abx_sandbox *s,
		    uint32_t box_port, uint32_t port, struct abx_err *err);

#endif
