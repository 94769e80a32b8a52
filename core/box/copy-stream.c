/* SPDX-License-Identifier: MIT */
/* A file or a tree of a box as a stream, both ways. */
#include <string.h>

#include "core/box/copy-io.h"
#include "core/box/copy.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

int abx_copy_stream_in(struct abx_app *app, struct abx_box *box, int fd, const char *target,
		       struct abx_err *err)
{
	abx_autofree char *path = abx_copy_box_path(target);
	struct abx_transfer req = {ABX_INIT(struct abx_transfer)};
	struct abx_copier c = {0};
	char kind = '-', shown[256];
	uint64_t size = 0;
	mode_t mode = 0;
	int r = abx_copier_open(app, box, &c, err);

	if (r == 0)
		r = abx_copy_kind(&c, path, &kind, &mode, &size, err);
	if (r == 0)
		r = abx_copy_check_slash(path, kind == 'd', err);
	if (r < 0)
		return r;
	abx_quote_text(path, shown, sizeof(shown));
	if (kind == 'o')
		return abx_err_set(err, ABX_EEXIST,
				   "'%s' in the box is neither a file nor a directory", shown);
	req.fd = fd;
	req.size_bytes = -1;
	req.path = path;
	if (kind == 'd')
		return abx_cloud_put_tar(c.cloud, &c.opts, &c.sandbox, &req, err);
	req.flags = ABX_XFER_CREATE_PARENTS;
	req.mode = kind == 'f' ? mode : 0644;
	return abx_cloud_upload(c.cloud, &c.opts, &c.sandbox, &req, err);
}

int abx_copy_stream_out(struct abx_app *app, struct abx_box *box, const char *source, int fd,
			struct abx_err *err)
{
	abx_autofree char *path = abx_copy_box_path(source);
	struct abx_transfer req = {ABX_INIT(struct abx_transfer)};
	struct abx_copier c = {0};
	char kind = '-', shown[256];
	uint64_t size = 0;
	mode_t mode = 0;
	int r = abx_copier_open(app, box, &c, err);

	if (r == 0)
		r = abx_copy_kind(&c, path, &kind, &mode, &size, err);
	if (r < 0)
		return r;
	abx_quote_text(path, shown, sizeof(shown));
	if (kind == '-')
		return abx_err_set(err, ABX_ENOTFOUND, "'%s' is not in the box '%s'", shown,
				   box->name);
	if (kind == 'o')
		return abx_err_set(err, ABX_EINVAL,
				   "'%s' in the box '%s' is neither a file nor a directory", shown,
				   box->name);
	if (kind == 'd' && isatty(fd))
		return abx_err_set(err, ABX_EUSAGE,
				   "'%s' is a directory: its tar stream is not for a terminal",
				   shown);
	req.fd = fd;
	req.size_bytes = -1;
	req.path = path;
	return kind == 'd' ? abx_cloud_get_tar(c.cloud, &c.opts, &c.sandbox, &req, err)
			   : abx_cloud_download(c.cloud, &c.opts, &c.sandbox, &req, err);
}
