/* SPDX-License-Identifier: MIT */
/* /dev, /proc, /sys and /run of a box, below the current directory. */
#include "providers/local/box.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUN_OPTIONS "mode=755"

static void mount_or_fail(const char *type, const char *target, unsigned long flags,
			  const char *options)
{
	if (mount(type, target, type, flags, options) < 0)
		box_fail_errno(errno, "mount %s at /%s", type, target);
}

static void bind_device(const char *name)
{
	char *source = box_printf("/dev/%s", name), *target = box_printf("dev/%s", name);
	int fd = open(target, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	if (fd >= 0)
		(void)close(fd);
	if (fd < 0 || mount(source, target, NULL, MS_BIND, NULL) < 0)
		box_fail_errno(errno, "bind %s", source);
}

void box_mount_dev(bool single_id)
{
	static const char *const devices[] = {"null", "zero", "full", "random", "urandom", "tty"};
	static const char *const links[][2] = {
		{"/proc/self/fd", "dev/fd"},	   {"/proc/self/fd/0", "dev/stdin"},
		{"/proc/self/fd/1", "dev/stdout"}, {"/proc/self/fd/2", "dev/stderr"},
		{"pts/ptmx", "dev/ptmx"},
	};

	mount_or_fail("tmpfs", "dev", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k");
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		bind_device(devices[i]);
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		if (symlink(links[i][0], links[i][1]) < 0)
			box_fail_errno(errno, "/%s", links[i][1]);
	if (mkdir("dev/pts", 0755) < 0 || mkdir("dev/shm", 01777) < 0 ||
	    mkdir("dev/mqueue", 01777) < 0)
		box_fail_errno(errno, "/dev");
	mount_or_fail("devpts", "dev/pts", MS_NOSUID | MS_NOEXEC,
		      single_id ? "newinstance,ptmxmode=0666,mode=620"
				: "newinstance,ptmxmode=0666,mode=620,gid=5");
	mount_or_fail("tmpfs", "dev/shm", MS_NOSUID | MS_NODEV, "mode=1777");
	(void)mount("mqueue", "dev/mqueue", "mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	mount_or_fail("tmpfs", "run", MS_NOSUID | MS_NODEV, RUN_OPTIONS);
	if (mkdir("run/lock", 01777) < 0 || mkdir("run/agentbox", 0755) < 0 ||
	    (!single_id && chown("run/agentbox", LB_BOX_UID, LB_BOX_UID) < 0))
		box_fail_errno(errno, "/run");
}

/* Where a mask cannot be laid because the thing is not there, nothing needs hiding. */
static void mask_failed(const char *path)
{
	if (errno != ENOENT && errno != ENOTDIR)
		box_fail_errno(errno, "mask /%s", path);
}

static void make_read_only(const char *path)
{
	if (mount(path, path, NULL, MS_BIND | MS_REC, NULL) < 0)
		mask_failed(path);
	else if (mount(NULL, path, NULL,
		       MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
		       NULL) < 0)
		box_fail_errno(errno, "read-only /%s", path);
}

static void hide(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return;
	if (S_ISDIR(st.st_mode)) {
		if (mount("tmpfs", path, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
			  "mode=755,size=0,nr_inodes=2") < 0)
			mask_failed(path);
	} else if (mount("dev/null", path, NULL, MS_BIND, NULL) < 0) {
		mask_failed(path);
	}
}

static void raise_loopback(void)
{
	struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
		box_fail_refused(errno, "loopback interface");
	(void)close(fd);
}

/* Nobody in the box may open raw sockets or has a privilege over ports; that is no reason to
 * do without ping, or a server at port 80.  The interface that comes later has no IPv6.  A
 * kernel that lacks one of these is no reason to do without the box. */
static void set_network_defaults(bool single_id)
{
	static const char *const files[] = {"proc/sys/net/ipv4/ip_unprivileged_port_start",
					    "proc/sys/net/ipv4/ping_group_range",
					    "proc/sys/net/ipv6/conf/default/disable_ipv6"};
	const char *const values[] = {"0\n", single_id ? "0 0\n" : "0 65535\n", "1\n"};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int fd = open(files[i], O_WRONLY | O_CLOEXEC);

		if (fd < 0)
			continue;
		(void)!write(fd, values[i], strlen(values[i]));
		(void)close(fd);
	}
}

/* The lists are those of the common container engines. */
void box_mount_kernel(const struct box_req *rq)
{
	static const char *const read_only[] = {
		"proc/bus", "proc/fs", "proc/irq", "proc/sys", "proc/sysrq-trigger",
	};
	static const char *const hidden[] = {
		"proc/acpi",	    "proc/asound",	  "proc/kcore",
		"proc/keys",	    "proc/latency_stats", "proc/timer_list",
		"proc/timer_stats", "proc/sched_debug",	  "proc/scsi",
		"proc/interrupts",  "sys/firmware",	  "sys/devices/virtual/powercap",
	};

	bool own_net = !(rq->h.flags & LB_F_HOST_NET);

	if (own_net)
		raise_loopback();
	if (mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) {
		if (errno == EPERM)
			box_fail(
				ABX_EPERM,
				"start the outer container with --security-opt "
				"systempaths=unconfined",
				"mount /proc: refused, the outer container hides parts of its own");
		box_fail_errno(errno, "mount /proc");
	}
	if (own_net)
		set_network_defaults(rq->h.map == LB_MAP_SINGLE);
	/* Refused where the outer container hides parts of its own; a box can do without. */
	(void)mount("sysfs", "sys", "sysfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	for (size_t i = 0; i < sizeof(read_only) / sizeof(read_only[0]); i++)
		make_read_only(read_only[i]);
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		hide(hidden[i]);
}
