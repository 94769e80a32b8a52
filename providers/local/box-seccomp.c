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

void box_filter_calls(void)
{
	size_t n = sizeof(box_filter) / sizeof(box_filter[0]);

	/* The flag: no slower memory than outside, as in other containers. */
	if (install(box_filter, n, SECCOMP_FILTER_FLAG_SPEC_ALLOW) == 0 ||
	    (errno == EINVAL && install(box_filter, n, 0) == 0))
		return;
	box_fail(ABX_EPERM, "use a kernel with CONFIG_SECCOMP_FILTER",
		 "seccomp: this kernel, or the container around it, takes no filter");
}
