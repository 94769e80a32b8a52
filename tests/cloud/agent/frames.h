/* SPDX-License-Identifier: MIT */
/*
 * tests/cloud/agent/frames.h: what an emulator and its agent in a sandbox say to each other.
 *
 * Each side sends frames on a pipe: one byte of kind, four of length (big endian), the bytes.
 * `agentbox-cloud-agent run` takes what to run, AGENT_GO last, and then input; it answers with
 * AGENT_PID or AGENT_FAIL first, and ends with AGENT_EXIT.
 */
#ifndef CLOUD_AGENT_FRAMES_H
#define CLOUD_AGENT_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#define AGENT_HEAD_BYTES 5
#define AGENT_FRAME_MAX ((size_t)4 << 20)

/* To the agent. */
#define AGENT_USER 'u'
#define AGENT_CWD 'd' /* beginning with / or ~, or from the user's home */
#define AGENT_ENV 'e' /* K=V */
#define AGENT_ARG 'a'
#define AGENT_PTY 'p'	   /* rows, columns: two uint16, big endian */
#define AGENT_NO_STDIN 'n' /* its input is /dev/null */
#define AGENT_GO 'g'
#define AGENT_INPUT 'i'
#define AGENT_END_INPUT 'c'
#define AGENT_RESIZE 'z' /* as AGENT_PTY */

/* From the agent. */
#define AGENT_PID 'P'  /* decimal */
#define AGENT_FAIL 'F' /* KIND NUL TEXT; kind is a word of the Connect protocol */
#define AGENT_STDOUT 'o'
#define AGENT_STDERR 'r'
#define AGENT_SCREEN 't'
#define AGENT_EXIT 'X'	/* CODE SIGNAL CORE, decimal */
#define AGENT_EVENT 'w' /* KIND NUL NAME NUL and an entry, of `watch` */
#define AGENT_WATCHING 'W'

static inline void agent_head(unsigned char head[AGENT_HEAD_BYTES], char kind, size_t len)
{
	head[0] = (unsigned char)kind;
	head[1] = (unsigned char)(len >> 24);
	head[2] = (unsigned char)(len >> 16);
	head[3] = (unsigned char)(len >> 8);
	head[4] = (unsigned char)len;
}

static inline size_t agent_head_len(const unsigned char head[AGENT_HEAD_BYTES])
{
	return (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
}

#endif
