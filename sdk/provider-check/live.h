/* SPDX-License-Identifier: MIT */
/*
 * sdk/provider-check/live.h: agentbox-provider-check --live NAME [SUITE...].
 *
 * Runs the shell suites of tests/contract, as installed or as AGENTBOX_CONTRACT_DIR says, one
 * after the other, reads their TAP and prints one table.  The suites know the program alone:
 * nothing of the plugin is loaded here.
 */
#ifndef ABX_CHECK_LIVE_H
#define ABX_CHECK_LIVE_H

/* The arguments behind --live; returns the exit code. */
int check_live(int argc, char **argv);

#endif
