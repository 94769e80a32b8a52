/* SPDX-License-Identifier: MIT */
/* A cloud to test with. */
#include "tests/unit/clouds.h"

#include <sys/eventfd.h>

#include "core/util/redact.h"

struct abx_host_ctx ctx;
struct abx_cloud *cloud;
const struct abx_call_opts no_opts = {0};
const struct abx_stop_req stop_req = {ABX_INIT(struct abx_stop_req)};
const struct abx_start_req start_req = {ABX_INIT(struct abx_start_req)};

void clouds_setup(void)
{
	plugins_setup();
	plugin_install("mock");
	plugin_install("mockbare");
	memset(&ctx, 0, sizeof(ctx));
	ctx.home = unit_home();
	unit_ok(abx_db_open(unit_home(), &ctx.db, &unit_err));
	ctx.cancel_fd = eventfd(0, EFD_CLOEXEC);
	cloud = NULL;
}

void clouds_teardown(void)
{
	abx_cloud_close(cloud);
	abx_db_close(ctx.db);
	(void)close(ctx.cancel_fd);
	abx_redact_forget_all();
	unit_dir_teardown();
}

void open_cloud(const char *name, const char *faults)
{
	ck_assert_int_eq(setenv("AGENTBOX_MOCK_FAULTS", faults, 1), 0);
	unit_ok(abx_cloud_open(name, &ctx, NULL, &cloud, &unit_err));
}
