/* SPDX-License-Identifier: MIT */
/*
 * core/ctl/wire.h: what the host and agentbox-ctl say to each other.
 *
 * Both directions are a sequence of frames, integers in little endian:
 *
 *	u8  0xab
 *	u8  kind
 *	u16 number      of the frame in its direction, from 0, wrapping
 *	u32 length      of the payload, at most ABX_WIRE_PAYLOAD_MAX
 *	    payload
 *
 * A wrong first byte, number or length is the end of the connection: the host reports it, ctl
 * ends the command and all that it started.
 *
 * Text mode, for transports that are not byte-exact: each frame is a line of '=', the frame in
 * base64 and a line feed (a carriage return before it is no harm).  Lines that begin with
 * anything else belong to somebody else and are skipped.
 *
 * Three ways into ctl, chosen by its arguments, which hold no value of the request:
 *	agentbox-ctl exec                 frames on standard input
 *	agentbox-ctl exec --text          lines, in both directions
 *	agentbox-ctl exec --spool BASE    nothing can be sent while it runs: BASE.0, BASE.1, ...
 *	                                  are files that the host uploads, each a u32 length and
 *	                                  so many bytes of frames.  BASE.0 is there before ctl
 *	                                  starts; ctl makes the directory BASE.d, 0700, and takes
 *	                                  BASE.d/1, BASE.d/2, ... from there.  Each is removed
 *	                                  when it was read.
 *
 * The first frames need not be sent: where they are short they are given, as lines of text mode
 * whatever the mode is, in a variable of ctl's environment, so that a command without much input
 * costs nothing but its start.  Then there is no BASE.0, and the files begin with BASE.d/1.
 *
 * The host begins: REQUEST frames, whose payloads together are the request, then GO.  ctl
 * answers HELLO at once, even before the request is complete, and STARTED when the command runs.
 *
 * Input is bounded by credit: the host may send ABX_WIRE_WINDOW bytes of DATA, and as many more
 * as ctl returns in CREDIT frames.  So ctl never has to stop reading, and signals and beats are
 * never stuck behind data that the command does not take.  Output is bounded by the transport:
 * ctl stops reading the command's output when nobody takes its own.
 *
 * Both sides send BEAT when they have nothing else to say.  When ctl hears nothing for the
 * request's silence_ms, or its input ends, the client is gone: TERM for the tree, the grace,
 * KILL.  Time during which the box was paused does not count.
 *
 * The connection ends with one EXIT or FAIL frame of ctl.  What the command left running lives
 * on after an EXIT that nobody asked for.
 */
#ifndef ABX_CTL_WIRE_H
#define ABX_CTL_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "abxsdk/buf.h"

#define ABX_WIRE_VERSION 1
#define ABX_WIRE_MAGIC 0xab
#define ABX_WIRE_HEADER_BYTES 8
#define ABX_WIRE_PAYLOAD_MAX ((size_t)65536)
/* Lines into a box stay below what a terminal takes for one. */
#define ABX_WIRE_TEXT_PAYLOAD_IN ((size_t)2048)
#define ABX_WIRE_TEXT_PAYLOAD_MAX ((size_t)16384)
#define ABX_WIRE_WINDOW ((size_t)262144)
/* One variable may have 128 KiB. */
#define ABX_WIRE_GIVEN "AGENTBOX_CTL_FRAMES"
#define ABX_WIRE_GIVEN_MAX ((size_t)96 << 10)
#define ABX_WIRE_REQUEST_MAX ((size_t)16 << 20)

enum abx_wire_kind {
	/* To ctl. */
	ABX_WIRE_REQUEST = 1,
	ABX_WIRE_GO,
	ABX_WIRE_DATA,	 /* for the command's standard input */
	ABX_WIRE_END,	 /* of its standard input */
	ABX_WIRE_BEAT,	 /* both ways */
	ABX_WIRE_SIGNAL, /* u16 number, for the command's process group */
	ABX_WIRE_RESIZE, /* u16 rows, u16 columns */
	ABX_WIRE_CANCEL, /* end the tree */
	/* From ctl. */
	ABX_WIRE_HELLO,	  /* u32 version */
	ABX_WIRE_STARTED, /* the request's id */
	ABX_WIRE_STDOUT,
	ABX_WIRE_STDERR,
	ABX_WIRE_CREDIT, /* u32 bytes of DATA that were taken */
	ABX_WIRE_EXIT,	 /* i32 code, i32 signal, u32 flags, text */
	ABX_WIRE_FAIL,	 /* i32 ABX_E*, text */
};

/* Flags of EXIT. */
#define ABX_WIRE_EXIT_TIMED_OUT UINT32_C(1)
#define ABX_WIRE_EXIT_NOT_STARTED UINT32_C(2) /* code 126 or 127, the text says why */
#define ABX_WIRE_EXIT_DETACHED UINT32_C(4)

/* Encoding: frames of any payload; a longer one becomes several of the same kind. */
struct abx_wire_out {
	bool text;
	bool short_lines; /* ABX_WIRE_TEXT_PAYLOAD_IN */
	uint16_t number;
};
void abx_wire_put(struct abx_wire_out *o, struct abx_buf *to, enum abx_wire_kind kind,
		  const void *data, size_t len);
void abx_wire_put_u16s(struct abx_wire_out *o, struct abx_buf *to, enum abx_wire_kind kind,
		       uint16_t a, uint16_t b);
void abx_wire_put_u32(struct abx_wire_out *o, struct abx_buf *to, enum abx_wire_kind kind,
		      uint32_t v);
/* EXIT and FAIL: three numbers (FAIL: one) and a text. */
void abx_wire_put_exit(struct abx_wire_out *o, struct abx_buf *to, int32_t code, int32_t signo,
		       uint32_t flags, const char *text);
void abx_wire_put_fail(struct abx_wire_out *o, struct abx_buf *to, int32_t code, const char *text);

/* Decoding, fed in pieces of any size.  Zero but for `text`, `frame` and `ctx`. */
struct abx_wire_in {
	bool text;
	/* One whole frame.  Non-zero ends abx_wire_feed() with that. */
	int (*frame)(void *ctx, enum abx_wire_kind kind, const unsigned char *data, size_t len);
	/* What is no frame: a skipped line, or the bytes that made the stream unreadable; may be
	 * NULL. */
	void (*noise)(void *ctx, const void *data, size_t len);
	void *ctx;
	uint16_t number;
	bool skipping; /* the rest of a line that is not ours */
	size_t len;
	unsigned char data[ABX_WIRE_HEADER_BYTES + ABX_WIRE_PAYLOAD_MAX];
};
/* 0, -EPROTO, or what frame() returned. */
int abx_wire_feed(struct abx_wire_in *in, const void *data, size_t len);

uint16_t abx_wire_u16(const unsigned char *p);
uint32_t abx_wire_u32(const unsigned char *p);

/* The request.  Strings are bytes without NUL; NULL = not given. */
#define ABX_WIRE_REQ_PTY UINT32_C(1)
#define ABX_WIRE_REQ_DETACHED UINT32_C(2)
#define ABX_WIRE_REQ_LEAVE_RUNNING UINT32_C(4) /* input that ends is no reason to end the tree */

struct abx_wire_request {
	uint32_t flags, rows, cols;
	uint32_t timeout_ms, grace_ms; /* 0 = none */
	uint32_t beat_ms, silence_ms;  /* 0 = none */
	const char *id, *cwd, *user;
	char **argv, **env; /* NULL-terminated; env as K=V */
	size_t n_argv, n_env;
};
int abx_wire_encode_request(const struct abx_wire_request *r, struct abx_buf *to);
/* Points into `data`, which it owns from now on and which must end with a NUL behind `len`.
 * 0, -EPROTO, -ENOMEM. */
int abx_wire_decode_request(char *data, size_t len, struct abx_wire_request *ret);

#endif
