/* SPDX-License-Identifier: MIT */
/* How much of a project goes into a box. */
#include "core/box/amount.h"

#include "core/util/mem.h"
#include "core/util/parse.h"

#define MAX_SEED_BYTES ((uint64_t)1 << 30) /* for a provider that is not on this machine */

char *abx_amount_text(const struct abx_seed_info *info)
{
	const double mib = 1 << 20;
	abx_autofree char *files =
		abx_xasprintf("%llu file%s, %.1f MiB", (unsigned long long)info->files,
			      info->files == 1 ? "" : "s", (double)info->bytes / mib);

	if (!info->pack_bytes)
		return abx_steal_ptr(&files);
	return abx_xasprintf("%s, and %.1f MiB of history", files, (double)info->pack_bytes / mib);
}

int abx_create_too_large(const struct abx_seed_info *info, const char *largest, struct abx_err *err)
{
	abx_autofree char *text = abx_amount_text(info);

	(void)abx_err_set(err, ABX_EPOLICY, "workspace: %s: more than box.max_seed: %s", text,
			  largest);
	return abx_err_remedy(err,
			      "add -y, list what the box does not need in .agentboxignore, "
			      "%sor set box.max_seed",
			      info->pack_bytes > info->bytes ? "cut the history with --depth, "
							     : "");
}

/* Nobody wants to learn after an hour that node_modules was among it.  Where a link is on the way
 * the history counts as well, and waiting for git to pack it is the smaller part. */
int abx_amount_check(const struct abx_create *req, struct abx_seed *seed, bool local, int stop_fd,
		     const char *max, struct abx_err *err)
{
	const struct abx_seed_info *info = abx_seed_info(seed);
	uint64_t bytes = local ? UINT64_MAX : MAX_SEED_BYTES;
	abx_autofree char *largest = NULL;
	int r = max && *max ? abx_parse_size_bytes(max, &bytes, err) : 0;

	if (r == 0 && !local)
		r = abx_seed_weigh(seed, stop_fd, err);
	if (r < 0)
		return r;
	if (info->bytes + info->pack_bytes > bytes)
		largest = abx_seed_largest(seed);
	if (req->amount && (largest || !local))
		return req->amount(req->amount_ctx, info, largest, err);
	return largest ? abx_create_too_large(info, largest, err) : 0;
}

void abx_amount_fill(const struct abx_seed_info *info, struct abx_created *ret)
{
	ret->files = info->files;
	ret->bytes = info->bytes;
	ret->commits = info->commits;
	ret->ignored = info->n_ignored;
	ret->skipped = info->skipped;
	if (info->n_ignored)
		(void)snprintf(ret->ignored_names, sizeof(ret->ignored_names), "%s",
			       info->ignored_names);
	if (info->skipped)
		abx_quote_text(info->skipped_first, ret->skipped_name, sizeof(ret->skipped_name));
	for (size_t i = 0; i < info->notes->len; i++)
		abx_strv_add(&ret->notes, info->notes->items[i]);
}
