/* SPDX-License-Identifier: MIT */
/* The headers of a GNU tar stream. */
#include "abxsdk/tar.h"

#include <string.h>

/* The format: numbers are octal with a NUL behind them, or, where they do not fit, big-endian
 * with the highest bit of the field set. */
struct header {
	char name[ABX_TAR_NAME_BYTES], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type,
		target[ABX_TAR_NAME_BYTES], magic[8], rest[247];
};
_Static_assert(sizeof(struct header) == ABX_TAR_BLOCK, "a header is one block");

static const char magic[8] = "ustar  ";
static const char long_name[] = "././@LongLink";
static const char zeros[ABX_TAR_BLOCK];

static void put_number(char *field, size_t size, int64_t n)
{
	const int64_t limit = INT64_C(1) << (3 * (size - 1));
	uint64_t u = (uint64_t)n;

	if (n >= 0 && n < limit) {
		field[size - 1] = '\0';
		for (size_t i = size - 1; i-- > 0; u >>= 3)
			field[i] = (char)('0' + (u & 7));
		return;
	}
	for (size_t i = size; i-- > 0; u >>= 8)
		field[i] = i + 8 >= size ? (char)(u & 0xff) : (char)(n < 0 ? 0xff : 0);
	field[0] = (char)(n < 0 ? 0xff : 0x80);
}

static unsigned int sum_of(const struct header *h)
{
	const unsigned char *at = (const unsigned char *)h;
	const size_t field = offsetof(struct header, sum);
	unsigned int sum = 0;

	for (size_t i = 0; i < sizeof(*h); i++)
		sum += i >= field && i < field + sizeof(h->sum) ? ' ' : at[i];
	return sum;
}

static void add_block(struct abx_buf *b, const struct abx_tar_head *head, const char *name,
		      const char *target)
{
	struct header h;
	const size_t n = strlen(name), t = target ? strlen(target) : 0;

	memset(&h, 0, sizeof(h));
	memcpy(h.name, name, n < sizeof(h.name) ? n : sizeof(h.name));
	if (t)
		memcpy(h.target, target, t < sizeof(h.target) ? t : sizeof(h.target));
	put_number(h.mode, sizeof(h.mode), head->mode);
	put_number(h.uid, sizeof(h.uid), 0);
	put_number(h.gid, sizeof(h.gid), 0);
	put_number(h.size, sizeof(h.size), (int64_t)head->size);
	put_number(h.mtime, sizeof(h.mtime), head->mtime_s);
	h.type = (char)head->type;
	memcpy(h.magic, magic, sizeof(h.magic));
	put_number(h.sum, sizeof(h.sum) - 1, sum_of(&h));
	h.sum[7] = ' ';
	abx_buf_add(b, &h, sizeof(h));
}

size_t abx_tar_padding(uint64_t size)
{
	return (size_t)((ABX_TAR_BLOCK - size % ABX_TAR_BLOCK) % ABX_TAR_BLOCK);
}

/* As GNU tar does it: the text with its NUL is the content of an entry of its own. */
static void add_long(struct abx_buf *b, enum abx_tar_type type, const char *text, const char *end)
{
	const size_t len = strlen(text) + strlen(end) + 1;
	const struct abx_tar_head head = {.type = type, .size = len};

	add_block(b, &head, long_name, NULL);
	abx_buf_adds(b, text);
	abx_buf_add(b, end, strlen(end) + 1);
	abx_buf_add(b, zeros, abx_tar_padding(len));
}

void abx_tar_head_add(struct abx_buf *b, const struct abx_tar_head *head)
{
	const char *end = head->type == ABX_TAR_DIR ? "/" : "";
	const size_t n = strlen(head->name);
	char name[ABX_TAR_NAME_BYTES + 1];

	if (head->target && strlen(head->target) > ABX_TAR_NAME_BYTES)
		add_long(b, ABX_TAR_LONG_TARGET, head->target, "");
	if (n + strlen(end) > ABX_TAR_NAME_BYTES) {
		add_long(b, ABX_TAR_LONG_NAME, head->name, end);
		add_block(b, head, head->name, head->target);
		return;
	}
	memcpy(name, head->name, n);
	memcpy(name + n, end, strlen(end) + 1);
	add_block(b, head, name, head->target);
}

/* 0, or -EBADMSG: neither form, or out of range. */
static int get_number(const char *field, size_t size, int64_t *ret)
{
	const unsigned char *at = (const unsigned char *)field;
	const unsigned char fill = at[0] == 0xff ? 0xff : 0;
	uint64_t n = 0;
	size_t i = 0;

	if (at[0] & 0x80) {
		if (at[0] != 0x80 && at[0] != 0xff)
			return -EBADMSG;
		for (i = 1; i + 8 < size; i++)
			if (at[i] != fill)
				return -EBADMSG;
		for (; i < size; i++)
			n = n << 8 | at[i];
		*ret = (int64_t)n;
		return (*ret < 0) == (fill != 0) ? 0 : -EBADMSG;
	}
	while (i < size && at[i] == ' ')
		i++;
	for (; i < size && at[i] >= '0' && at[i] <= '7'; i++)
		n = n << 3 | (uint64_t)(at[i] - '0');
	for (; i < size; i++)
		if (at[i] != ' ' && at[i] != '\0')
			return -EBADMSG;
	*ret = (int64_t)n;
	return 0;
}

static const char *get_text(const char *field, char room[ABX_TAR_NAME_BYTES + 1])
{
	memcpy(room, field, ABX_TAR_NAME_BYTES);
	room[ABX_TAR_NAME_BYTES] = '\0';
	return room;
}

int abx_tar_head_parse(const char block[ABX_TAR_BLOCK], struct abx_tar_room *room,
		       struct abx_tar_head *ret)
{
	struct abx_tar_head head = {.type = ABX_TAR_END};
	int64_t sum, size, mode;
	struct header h;

	memcpy(&h, block, sizeof(h));
	if (memcmp(&h, zeros, sizeof(h)) == 0) {
		*ret = head;
		return 0;
	}
	if (get_number(h.sum, sizeof(h.sum), &sum) < 0 || sum != (int64_t)sum_of(&h) ||
	    get_number(h.size, sizeof(h.size), &size) < 0 || size < 0 ||
	    get_number(h.mode, sizeof(h.mode), &mode) < 0 || mode < 0 || mode > 07777 ||
	    get_number(h.mtime, sizeof(h.mtime), &head.mtime_s) < 0)
		return -EBADMSG;
	if (memcmp(h.magic, magic, sizeof(magic)) != 0 || !h.type || !strchr("0125KL", h.type))
		return -ENOTSUP;
	head.type = (enum abx_tar_type)h.type;
	head.name = get_text(h.name, room->name);
	head.target = get_text(h.target, room->target);
	head.mode = (uint32_t)mode;
	head.size = (uint64_t)size;
	*ret = head;
	return 0;
}
