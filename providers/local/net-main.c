/* SPDX-License-Identifier: MIT */
/* agentbox-local-net: the network of one box, for as long as the box runs. */
#include "providers/local/net.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "providers/local/box.h"

#define FILES_MAX 4096

static struct net_policy policy;
static struct net_rules rules = {.policy = &policy};
static uint16_t resolver_port; /* once it is open */
static struct abx_loop_source box = {.fd = -1};

/* The command that started us does not wait, and its end is not ours. */
static void leave_client(void)
{
	pid_t pid = fork();

	if (pid < 0)
		box_fail_errno(errno, "network helper: new process");
	if (pid > 0)
		_exit(0);
	/* From here on the state file is where failures are said. */
	if (dup2(LB_FD_LIVE, LB_FD_STATUS) < 0)
		_exit(1);
	(void)fcntl(LB_FD_STATUS, F_SETFD, FD_CLOEXEC);
	(void)close(LB_FD_LIFELINE);
	/* Whatever directory the command was started in is not ours to keep busy. */
	(void)chdir("/");
}

/* Two for each connection that is forwarded, and some. */
static void raise_file_limit(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return;
	l.rlim_cur = l.rlim_max < FILES_MAX ? l.rlim_max : FILES_MAX;
	(void)setrlimit(RLIMIT_NOFILE, &l);
}

static void undo_state(void)
{
	(void)lseek(LB_FD_STATUS, 0, SEEK_SET);
}

static uint32_t random_number(void)
{
	uint32_t n;

	if (getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n))
		box_fail_errno(errno, "random number");
	return n ? n : 1;
}

static int load_rules(char ret_why[NFT_WHY_BYTES], const char **ret_remedy)
{
	struct nft_batch b = NFT_BATCH_INIT;

	/* What an earlier helper or policy allowed is judged anew. */
	rules.generation = random_number();
	nft_begin(&b);
	net_rules_write(&rules, &b);
	net_names_write(&rules, &b);
	return nft_commit(&b, ret_why, ret_remedy);
}

static void host_changed(void)
{
	struct nft_batch b = NFT_BATCH_INIT;
	char why[NFT_WHY_BYTES];
	const char *remedy;

	nft_begin(&b);
	net_rules_write_host(&rules, &b);
	/* Better no network than one that leads to the host. */
	if (nft_commit(&b, why, &remedy) < 0)
		box_fail(ABX_EIO, remedy, "network: rules: %s", why);
}

static void box_ended(struct abx_loop_source *s, uint32_t events)
{
	(void)s;
	(void)events;
	_exit(0);
}

void net_join_box(void)
{
	if (setns(LB_FD_BOX, CLONE_NEWUSER | CLONE_NEWNET) == 0)
		return;
	if (errno == ESRCH)
		_exit(0);
	box_fail_errno(errno, "network: enter the box");
}

static void become_root_of_box(bool single_id, bool with_tap)
{
	net_join_box();
	if (with_tap)
		net_relay_open_tap();
	/* With the ids of its root, what we run keeps the capabilities. */
	box_become_root(single_id);
}

/* New rules for a network that is up; the old ones stay when these cannot be had. */
static int32_t set_policy(struct net_policy *p, char *ret_why, size_t size)
{
	struct net_policy old = policy;
	uint16_t old_port = rules.dns_port;
	char why[NFT_WHY_BYTES];
	const char *remedy = NULL;

	/* Started for ports only. */
	if (!rules.generation)
		return p->mode == NET_NONE ? ABX_OK : ABX_ENOTSUP;
	policy = *p;
	if (policy.names && !resolver_port)
		resolver_port = net_resolver_open(&rules);
	rules.dns_port = policy.names ? resolver_port : 0;
	if (load_rules(why, &remedy) == 0) {
		net_policy_release(&old);
		return ABX_OK;
	}
	(void)snprintf(ret_why, size, remedy ? "%s (%s)" : "%s", why, remedy);
	policy = old;
	rules.dns_port = old_port;
	return ABX_EIO;
}

static _Noreturn void broken(int err)
{
	box_fail_errno(err, "network helper: epoll");
}

static void bring_up(const struct box_req *rq)
{
	const struct net_carrier *carrier = rq->h.flags & LB_F_PASTA ? &net_pasta : &net_slirp;
	char why[NFT_WHY_BYTES];
	const char *remedy = NULL;

	net_host_open();
	(void)net_host_load();
	rules.host = net_host();
	rules.network = net_choose_network(rules.host);
	rules.mark = random_number();
	rules.tcp_names = carrier->tcp_names;
	if (policy.mode != NET_NONE)
		net_carrier_fork(carrier, rules.network);
	become_root_of_box(rq->h.flags & LB_F_SINGLE_ID,
			   carrier->frames && policy.mode != NET_NONE);
	abx_loop_watch(&box, LB_FD_BOX, EPOLLIN, box_ended);
	/* The carrier gives it .100. */
	abx_forward_init(policy.mode == NET_NONE ? 0 : rules.network + 100);
	net_control_open(set_policy);
	if (policy.mode == NET_NONE)
		return;
	nft_open();
	if (policy.names)
		rules.dns_port = resolver_port = net_resolver_open(&rules);
	if (load_rules(why, &remedy) < 0)
		box_fail(ABX_EIO, remedy, "network: rules: %s", why);
	net_carrier_watch();
	if (carrier->frames)
		net_relay_make_tap();
	else
		net_carrier_go();
	net_tap_up(rules.network);
	if (carrier->frames)
		net_relay_watch(carrier);
	net_host_watch(host_changed);
}

int main(int argc, char **argv)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct box_req rq;
	int r;

	(void)argc;
	(void)argv;
	box_harden();
	box_req_load(&rq);
	r = net_policy_parse((const char *const *)rq.argv, rq.h.n_argv, &policy);
	if (rq.h.op != LB_OP_NET || r < 0)
		box_fail(ABX_EPROTO, "install plugin and helpers of one version",
			 "network helper: malformed request");
	leave_client();
	box_at_fail = undo_state;
	(void)prctl(PR_SET_NAME, "agentbox-net", 0, 0, 0);
	(void)setenv("PATH", LB_PATH, 1);
	raise_file_limit();
	(void)sigaction(SIGPIPE, &ignore, NULL);
	abx_loop_init(broken);
	bring_up(&rq);
	undo_state();
	box_send_kind(LB_MSG_READY, 0);
	box_forget_pages();
	abx_loop_run();
}
