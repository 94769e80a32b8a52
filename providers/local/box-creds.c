/* SPDX-License-Identifier: MIT */
/* Who a process of a box is: ids, groups, capabilities, keyring. */
#include "providers/local/box.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PASSWD_MAX_BYTES ((size_t)1 << 20)

/* What container engines leave to root by default, without CAP_NET_RAW: packets from a packet
 * socket pass no rule of nftables, and so no rule about what a box may reach. */
#define BIT(cap) (UINT64_C(1) << (cap))
static const uint64_t kept_capabilities =
	BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FSETID) | BIT(CAP_FOWNER) |
	BIT(CAP_MKNOD) | BIT(CAP_SETGID) | BIT(CAP_SETUID) | BIT(CAP_SETFCAP) | BIT(CAP_SETPCAP) |
	BIT(CAP_NET_BIND_SERVICE) | BIT(CAP_SYS_CHROOT) | BIT(CAP_KILL) | BIT(CAP_AUDIT_WRITE);

/* Possession of the caller's session keyring would be possession of the caller's keys. */
void box_new_session_keyring(void)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS &&
	    errno != EPERM && errno != EACCES)
		box_fail_errno(errno, "new session keyring");
}

void box_become_root(bool single_id)
{
	/* With one id, setgroups is denied by the kernel and the caller's groups stay. */
	if (!single_id && setgroups(0, NULL) < 0)
		box_fail_errno(errno, "drop groups");
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		box_fail_errno(errno, "become root of the box");
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

void box_drop_capabilities(bool no_new_privs)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	for (int cap = 0; cap < 64; cap++)
		if (!(kept_capabilities & BIT(cap)) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
			if (errno == EINVAL)
				break; /* one past the last that this kernel knows */
			box_fail_errno(errno, "drop capability %d", cap);
		}
	for (int i = 0; i < 2; i++) {
		data[i].effective = data[i].permitted = (uint32_t)(kept_capabilities >> (32 * i));
		data[i].inheritable = 0;
	}
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 && errno != EINVAL)
		box_fail_errno(errno, "clear ambient capabilities");
	if (syscall(SYS_capset, &head, data) < 0)
		box_fail_errno(errno, "drop capabilities");
	if (no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		box_fail_errno(errno, "no_new_privs");
}

void box_become_user(const struct abx_user *u, bool single_id)
{
	if (!single_id && setgroups(u->n_groups, u->groups) < 0)
		box_fail_errno(errno, "user: %s: groups", u->name);
	if (setresgid(u->gid, u->gid, u->gid) < 0 || setresuid(u->uid, u->uid, u->uid) < 0)
		box_fail_errno(errno, "user: %s", u->name);
}

void box_lookup_user(const char *name, bool single_id, struct abx_user *ret)
{
	struct abx_user u = {.name = name, .home = "/root", .shell = "/bin/sh"};
	uint32_t id;
	char *text;

	if (!*name)
		name = single_id ? "root" : LB_BOX_USER;
	text = box_read_file(AT_FDCWD, "/etc/passwd", PASSWD_MAX_BYTES, NULL);
	if (!text || !abx_user_find(text, name, &u)) {
		if (abx_user_parse_id(name, &id)) {
			u.uid = id;
			u.gid = id;
			u.name = name;
			u.home = "/";
		} else if (strcmp(name, "root") == 0) {
			u.name = name;
		} else {
			box_fail(ABX_EINVAL, NULL, "user: %.64s: not in the box's /etc/passwd",
				 name);
		}
	}
	if (single_id && u.uid != 0)
		box_fail(ABX_ENOTSUP, "add a range for your user to /etc/subuid and /etc/subgid",
			 "user: %.64s: this box has no user but root", name);
	text = box_read_file(AT_FDCWD, "/etc/group", PASSWD_MAX_BYTES, NULL);
	abx_user_add_groups(text, &u);
	*ret = u;
}
