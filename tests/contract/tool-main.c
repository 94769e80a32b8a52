/* SPDX-License-Identifier: MIT */
/* agentbox-contract-tool: which word. */
#include <signal.h>
#include <string.h>

#include "tests/contract/tool.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	int getopt; /* wants its own name as argv[0] */
} words[] = {
	{"bytes", tool_bytes, 0},     {"connect", tool_connect, 0}, {"count", tool_count, 0},
	{"dns", tool_dns, 0},	      {"get", tool_get, 0},	    {"post", tool_post, 0},
	{"pty", tool_pty, 1},	      {"rss", tool_rss, 0},	    {"serve", tool_serve, 1},
	{"sigdfl", tool_sigdfl, 0},   {"slow", tool_slow, 0},	    {"sum", tool_sum_input, 0},
	{"upgrade", tool_upgrade, 0},
};

int main(int argc, char **argv)
{
	int r = 2;

	for (size_t i = 0; argc > 1 && i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(argv[1], words[i].name) == 0) {
			const int skip = words[i].getopt ? 1 : 2;

			r = words[i].run(argc - skip, argv + skip);
		}
	if (r == 2)
		(void)fputs("agentbox-contract-tool: a word of the contract suites "
			    "(tests/contract/tool.h) and its arguments\n",
			    stderr);
	return r;
}
