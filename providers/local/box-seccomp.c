/* SPDX-License-Identifier: MIT */
/* Which system calls exist in a box.  The filter itself is made by seccomp-gen.c. */
#include "providers/local/box.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "providers/local/seccomp-filter.h"

static long install(const struct sock_filter *filter, size_t n, unsigned long flags)
{
	const struct {
		unsigned short len;
		const struct sock_filter *filter;
	} program = {(unsigned short)n, filter};

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

static void add(const struct sock_filter *filter, size_t n)
{
	/* The flag: no slower memory than outside, as in other containers. */
	if (install(filter, n, SECCOMP_FILTER_FLAG_SPEC_ALLOW) == 0 ||
	    (errno == EINVAL && install(filter, n, 0) == 0))
		return;
	box_fail(ABX_EPERM, "use a kernel with CONFIG_SECCOMP_FILTER",
		 "seccomp: this kernel, or the container around it, takes no filter");
}

void box_filter_calls(void)
{
	add(box_filter, sizeof(box_filter) / sizeof(box_filter[0]));
}

void box_filter_set_id(void)
{
	add(box_no_set_id, sizeof(box_no_set_id) / sizeof(box_no_set_id[0]));
}
