/* SPDX-License-Identifier: MIT */
/*
 * tests/contract/tool.h: agentbox-contract-tool, what the contract suites need and no shell has.
 *
 * One program of libc alone, run on this machine and, copied there, in boxes.  Each word of its
 * command line is one function here; each returns the exit code.  It prints errors itself.
 */
#ifndef ABX_CONTRACT_TOOL_H
#define ABX_CONTRACT_TOOL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* tool-pty.c: a command on a terminal, driven by a script. */
int tool_pty(int argc, char **argv);

/* tool-run.c: commands and bytes. */
int tool_rss(int argc, char **argv);
int tool_sigdfl(int argc, char **argv);
int tool_slow(int argc, char **argv);
int tool_count(int argc, char **argv);
int tool_bytes(int argc, char **argv);
int tool_sum_input(int argc, char **argv);

/* tool-serve.c: a small web server; each connection in a process of its own. */
int tool_serve(int argc, char **argv);

/* tool-client.c: the other end, and probes of a network. */
int tool_get(int argc, char **argv);
int tool_post(int argc, char **argv);
int tool_upgrade(int argc, char **argv);
int tool_connect(int argc, char **argv);
int tool_dns(int argc, char **argv);

/* tool-util.c */
int tool_fail(const char *what);
/* All of it; -1 on error. */
int tool_write(int fd, const void *data, size_t len);
/* A listening socket on ADDR:PORT; -1 with a message. */
int tool_listen(const char *addr, const char *port);
/* What bytes are made of: position by position the same everywhere. */
void tool_pattern(unsigned char *buf, size_t len, uint64_t at);
/* A running sum over bytes (FNV-1a), begun with 0. */
uint64_t tool_sum(uint64_t sum, const void *data, size_t len);
int tool_exit_code(int wait_status);
int tool_parse_size(const char *text, uint64_t *ret);

#endif
