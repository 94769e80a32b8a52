/* SPDX-License-Identifier: MIT */
/* agentbox-local-box: starts a box, and acts inside one. */
#include "providers/local/box.h"

#include <string.h>

/* Whoever lists processes in a box need not see where this program lies on the host. */
static void hide_path(char *arg)
{
	static const char name[] = "agentbox";
	size_t len = strlen(arg);

	memset(arg, 0, len);
	memcpy(arg, name, len < sizeof(name) ? len : sizeof(name));
}

int main(int argc, char **argv)
{
	struct box_req rq;

	(void)argc;
	box_harden();
	hide_path(argv[0]);
	box_req_load(&rq);
	switch (rq.h.op) {
	case LB_OP_START:
		box_start(&rq);
	case LB_OP_INIT:
		box_init(&rq);
	case LB_OP_REMOVE:
		box_remove(&rq);
	case LB_OP_BOOTSTRAP:
		box_bootstrap(&rq);
	case LB_OP_SEAL:
		box_op_seal(&rq);
	case LB_OP_SWAP:
		box_op_swap(&rq);
	case LB_OP_MERGE:
		box_op_merge(&rq);
	case LB_OP_EXEC:
		box_exec(&rq);
	case LB_OP_UPLOAD:
		box_serve(&rq, box_upload);
	case LB_OP_DOWNLOAD:
		box_serve(&rq, box_download);
	case LB_OP_PUT_TAR:
		box_serve(&rq, box_put_tar);
	case LB_OP_LIST:
		box_serve(&rq, box_list);
	case LB_OP_GATHER:
	case LB_OP_SUSPEND:
	case LB_OP_WAKE:
		box_hold(&rq);
	case LB_OP_STATS:
		box_stats(&rq);
	case LB_OP_USAGE:
		box_usage(&rq);
	default:
		box_fail(ABX_EPROTO, "install plugin and helpers of one version",
			 "helper: unknown request %u", rq.h.op);
	}
}
