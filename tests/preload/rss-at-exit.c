/* SPDX-License-Identifier: MIT */
/*
 * LD_PRELOAD: each program of ours says at its end, in a line of the file RSS_FILE, what its
 * largest resident size was, in KiB, and its name.  Git and others, which have it too, say nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((destructor)) static void tell(void)
{
	const char *path = secure_getenv("RSS_FILE");
	unsigned long kib = 0;
	char line[256];
	FILE *status;
	int fd, len;

	if (!path || strncmp(program_invocation_short_name, "agentbox", 8) != 0)
		return;
	status = fopen("/proc/self/status", "re");
	while (status && fgets(line, sizeof(line), status))
		if (strncmp(line, "VmHWM:", 6) == 0)
			kib = strtoul(line + 6, NULL, 10);
	if (status)
		(void)fclose(status);
	len = snprintf(line, sizeof(line), "%lu %.100s\n", kib, program_invocation_short_name);
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	/* A line that is not there fails the test. */
	if (write(fd, line, (size_t)len) != len)
		(void)unlink(path);
	(void)close(fd);
}
