/* SPDX-License-Identifier: MIT */
/* Is there room for what is about to come? */
#include "core/util/room.h"

#include "abxsdk/fs.h"
#include "core/util/parse.h"

int abx_room_check(int fd, uint64_t bytes, const char *what, struct abx_err *err)
{
	const uint64_t room = abx_fs_room(fd);
	char shown[300];

	if (bytes <= room)
		return 0;
	abx_quote_text(what, shown, sizeof(shown));
	(void)abx_err_set(err, ABX_EIO,
			  "'%s': No space left on device: %.1f MiB are coming, %.1f MiB are free",
			  shown, (double)bytes / (1 << 20), (double)room / (1 << 20));
	return abx_err_remedy(err, "free some space there");
}
