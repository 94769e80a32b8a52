/* SPDX-License-Identifier: MIT */
/* How much of a project goes into a box. */
#include "core/box/amount.h"

#include "core/util/mem.h"
#include "core/util/parse.h"

#define MAX_SEED_BYTES ((uint64_t)1 << 30) /* for a provider that is not on this machine */

int abx_create_too_large(const struct abx_seed_info *info, const char *largest, struct abx_err *err)
{
	(void)abx_err_set(err, ABX_EPOLICY,
			  "workspace: %.1f MiB in %llu files are more than box.max_seed: %s",
			  (double)info->bytes / (1 << 20), (unsigned long long)info->files,
			  largest);
	return abx_err_remedy(err, "add -y, list what the box does not need in .agentboxignore, or "
				   "set box.max_seed");
}

/* Nobody wants to learn after an hour that node_modules was among it. */
int abx_amount_check(const struct abx_create *req, const struct abx_seed *seed, bool local,
		     const char *max, struct abx_err *err)
{
	const struct abx_seed_info *info = abx_seed_info(seed);
	uint64_t bytes = local ? UINT64_MAX : MAX_SEED_BYTES;
	abx_autofree char *largest = NULL;
	int r = max && *max ? abx_parse_size_bytes(max, &bytes, err) : 0;

	if (r < 0)
		return r;
	if (info->bytes > bytes)
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
