/* SPDX-License-Identifier: MIT */
/* Operations of the provider `local` for which there is no command: on the boxes of a state
 * directory, by hand or from a shell test. */
#include "tests/unit/local-host.h"

#include <stdlib.h>

#define ENTRIES_MAX 64

static const char usage[] = "usage: local-drive STATE-DIR url SANDBOX PORT\n"
			    "       local-drive STATE-DIR egress SANDBOX all|none|host|ENTRY...\n"
			    "       local-drive STATE-DIR start|stop|get SANDBOX\n";

static int32_t egress(const struct abx_sandbox *sb, char **words, int n)
{
	const char *allow[ENTRIES_MAX + 1] = {NULL};
	struct abx_policy p = {ABX_INIT(struct abx_policy), .allow = allow};

	if (n > ENTRIES_MAX)
		return ABX_EINVAL;
	if (n == 1 && strcmp(words[0], "all") == 0)
		p.allow = NULL;
	else if (n != 1 || strcmp(words[0], "none") != 0)
		memcpy(allow, words, (size_t)n * sizeof(*allow));
	return lh_backend->set_egress(lh_session, lh_call, sb, &p);
}

static int32_t run(int argc, char **argv)
{
	const struct abx_sandbox sb = {ABX_INIT(struct abx_sandbox), .id = argv[3]};
	const struct abx_start_req start = {ABX_INIT(struct abx_start_req)};
	const struct abx_stop_req stop = {ABX_INIT(struct abx_stop_req)};
	struct abx_url_req url = {ABX_INIT(struct abx_url_req)};

	if (strcmp(argv[2], "url") == 0 && argc == 5) {
		url.port = (uint32_t)strtoul(argv[4], NULL, 10);
		return lh_backend->url(lh_session, lh_call, &sb, &url);
	}
	if (strcmp(argv[2], "egress") == 0 && argc > 4)
		return egress(&sb, argv + 4, argc - 4);
	if (strcmp(argv[2], "start") == 0)
		return lh_backend->start(lh_session, lh_call, &sb, &start);
	if (strcmp(argv[2], "stop") == 0)
		return lh_backend->stop(lh_session, lh_call, &sb, &stop);
	if (strcmp(argv[2], "get") == 0)
		return lh_backend->get(lh_session, lh_call, &sb);
	(void)fputs(usage, stderr);
	return ABX_EINVAL;
}

int main(int argc, char **argv)
{
	const char *why;
	int32_t r;

	if (argc < 4) {
		(void)fputs(usage, stderr);
		return 2;
	}
	why = lh_open(argv[1]);
	if (why) {
		(void)fprintf(stderr, "local-drive: %s\n", why);
		return 1;
	}
	r = run(argc, argv);
	if (r != ABX_OK)
		(void)fprintf(stderr, "local-drive: %s\n", lh_fail_text());
	else if (*lh_url())
		(void)puts(lh_url());
	return r == ABX_OK ? 0 : 1;
}
