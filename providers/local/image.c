/* SPDX-License-Identifier: MIT */
/* Root file systems of boxes: unpacked once, shared by all boxes that use them. */
#include "providers/local/local.h"

#include <fcntl.h>

int local_image_dir(const struct abx_session *s, const char *key)
{
	(void)s; (void)key;
	return -ENOENT;
}
int32_t local_image_open(struct abx_session *s, struct abx_call *call, const char *image,
			 char ret_key[LOCAL_ID_MAX])
{
	(void)s; (void)ret_key;
	return local_fail(call, ABX_ENOTSUP, NULL, "image %s: not supported", image);
}
