/* SPDX-License-Identifier: MIT */
/* Certificates of authorities that are to be trusted beside a system's own. */
#include "core/base/ca.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "abxsdk/fs.h"
#include "core/util/mem.h"
#include "core/util/parse.h"

/* Where administrators of Debian's and of Red Hat's put what they add. */
static const char *const host_dirs[] = {"/usr/local/share/ca-certificates",
					"/etc/pki/ca-trust/source/anchors"};

static int add_file(const char *path, const char *what, struct abx_buf *ret, struct abx_err *err)
{
	abx_auto(abx_buf) struct abx_buf text = ABX_BUF_INIT(ABX_CA_MAX_BYTES);
	char shown[256];
	int r = abx_fs_read(AT_FDCWD, path, &text);

	abx_quote_text(path, shown, sizeof(shown));
	if (r < 0)
		return abx_err_errno(err, r, "%s '%s'", what, shown);
	if (strstr(abx_buf_str(&text), "PRIVATE KEY-----"))
		return abx_err_set(err, ABX_EINVAL,
				   "%s '%s': there is a private key in it, which would go into "
				   "every box",
				   what, shown);
	if (!strstr(abx_buf_str(&text), "-----BEGIN CERTIFICATE-----") ||
	    strlen(abx_buf_str(&text)) != text.len)
		return abx_err_set(err, ABX_EINVAL, "%s '%s': no certificate in PEM format", what,
				   shown);
	abx_buf_add(ret, text.data, text.len);
	if (text.data[text.len - 1] != '\n')
		abx_buf_addc(ret, '\n');
	return ret->failed ? abx_err_set(err, ABX_EINVAL, "%s '%s': more than %zu bytes in all",
					 what, shown, ABX_CA_MAX_BYTES)
			   : 0;
}

static int is_certificate(const struct dirent *e)
{
	const char *dot = strrchr(e->d_name, '.');

	return e->d_name[0] != '.' && dot && (strcmp(dot, ".crt") == 0 || strcmp(dot, ".pem") == 0);
}

static int add_host(struct abx_buf *ret, struct abx_err *err)
{
	int r = 0;

	for (size_t i = 0; i < ABX_N_ELEMENTS(host_dirs) && r == 0; i++) {
		struct dirent **names = NULL;
		int n = scandir(host_dirs[i], &names, is_certificate, alphasort);

		for (int k = 0; k < n; k++) {
			abx_autofree char *path =
				abx_xasprintf("%s/%s", host_dirs[i], names[k]->d_name);

			if (r == 0)
				r = add_file(path, "box.host_ca", ret, err);
			free(names[k]);
		}
		free(names);
	}
	return r;
}

int abx_ca_load(const struct abx_config *config, struct abx_buf *ret, struct abx_err *err)
{
	const char *file = config ? abx_config_get(config, "box.ca_file", NULL) : NULL;
	const char *host = config ? abx_config_get(config, "box.host_ca", NULL) : NULL;
	bool wanted = false;
	int r = file && *file ? add_file(file, "box.ca_file", ret, err) : 0;

	if (r == 0 && host && *host)
		r = abx_parse_bool(host, &wanted, err);
	return r == 0 && wanted ? add_host(ret, err) : r;
}
