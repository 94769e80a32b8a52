/* SPDX-License-Identifier: MIT */
/* The messages of process.proto and filesystem.proto that envd takes and gives. */
#include "tests/cloud/e2b/proto.h"

#define MESSAGE(n, key, of)                                         \
	{                                                           \
		(n), (key), PROTO_MESSAGE, false, &proto_##of, NULL \
	}
#define MESSAGES(n, key, of)                                       \
	{                                                          \
		(n), (key), PROTO_MESSAGE, true, &proto_##of, NULL \
	}
#define VALUE(n, key, kind)                                 \
	{                                                   \
		(n), (key), PROTO_##kind, false, NULL, NULL \
	}
#define VALUES(n, key, kind)                               \
	{                                                  \
		(n), (key), PROTO_##kind, true, NULL, NULL \
	}
#define NAMED(n, key, names)                                 \
	{                                                    \
		(n), (key), PROTO_ENUM, false, NULL, (names) \
	}

static const char *const signals[] = {
	"SIGNAL_UNSPECIFIED", "",  "", "", "", "", "", "", "", "SIGNAL_SIGKILL", "", "", "", "", "",
	"SIGNAL_SIGTERM",     NULL};
static const char *const file_types[] = {"FILE_TYPE_UNSPECIFIED", "FILE_TYPE_FILE",
					 "FILE_TYPE_DIRECTORY", "FILE_TYPE_SYMLINK", NULL};
static const char *const event_types[] = {"EVENT_TYPE_UNSPECIFIED",
					  "EVENT_TYPE_CREATE",
					  "EVENT_TYPE_WRITE",
					  "EVENT_TYPE_REMOVE",
					  "EVENT_TYPE_RENAME",
					  "EVENT_TYPE_CHMOD",
					  NULL};

const struct proto_message proto_empty = {"Empty", {{0}}};

/* process.proto */
static const struct proto_message proto_config = {"ProcessConfig",
						  {VALUE(1, "cmd", STRING),
						   VALUES(2, "args", STRING), VALUE(3, "envs", MAP),
						   VALUE(4, "cwd", STRING)}};
static const struct proto_message proto_size = {
	"PTY.Size", {VALUE(1, "cols", UINT32), VALUE(2, "rows", UINT32)}};
static const struct proto_message proto_pty = {"PTY", {MESSAGE(1, "size", size)}};
static const struct proto_message proto_selector = {
	"ProcessSelector", {VALUE(1, "pid", UINT32), VALUE(2, "tag", STRING)}};
static const struct proto_message proto_info = {
	"ProcessInfo",
	{MESSAGE(1, "config", config), VALUE(2, "pid", UINT32), VALUE(3, "tag", STRING)}};
const struct proto_message proto_list_processes = {"ListResponse",
						   {MESSAGES(1, "processes", info)}};
const struct proto_message proto_start = {"StartRequest",
					  {MESSAGE(1, "process", config), MESSAGE(2, "pty", pty),
					   VALUE(3, "tag", STRING), VALUE(4, "stdin", BOOL)}};
static const struct proto_message proto_started = {"StartEvent", {VALUE(1, "pid", UINT32)}};
static const struct proto_message proto_output = {
	"DataEvent",
	{VALUE(1, "stdout", BYTES), VALUE(2, "stderr", BYTES), VALUE(3, "pty", BYTES)}};
static const struct proto_message proto_end = {
	"EndEvent",
	{VALUE(1, "exitCode", SINT32), VALUE(2, "exited", BOOL), VALUE(3, "status", STRING),
	 VALUE(4, "error", STRING)}};
static const struct proto_message proto_process_event = {
	"ProcessEvent",
	{MESSAGE(1, "start", started), MESSAGE(2, "data", output), MESSAGE(3, "end", end),
	 MESSAGE(4, "keepalive", empty)}};
const struct proto_message proto_event = {"StartResponse", {MESSAGE(1, "event", process_event)}};
const struct proto_message proto_connect = {"ConnectRequest", {MESSAGE(1, "process", selector)}};
const struct proto_message proto_close_stdin = {"CloseStdinRequest",
						{MESSAGE(1, "process", selector)}};
static const struct proto_message proto_input = {
	"ProcessInput", {VALUE(1, "stdin", BYTES), VALUE(2, "pty", BYTES)}};
const struct proto_message proto_send_input = {
	"SendInputRequest", {MESSAGE(1, "process", selector), MESSAGE(2, "input", input)}};
static const struct proto_message proto_input_data = {"DataEvent", {MESSAGE(2, "input", input)}};
const struct proto_message proto_stream_input = {"StreamInputRequest",
						 {MESSAGE(1, "start", connect),
						  MESSAGE(2, "data", input_data),
						  MESSAGE(3, "keepalive", empty)}};
const struct proto_message proto_send_signal = {
	"SendSignalRequest", {MESSAGE(1, "process", selector), NAMED(2, "signal", signals)}};
const struct proto_message proto_update = {
	"UpdateRequest", {MESSAGE(1, "process", selector), MESSAGE(2, "pty", pty)}};

/* filesystem.proto */
static const struct proto_message proto_entry = {
	"EntryInfo",
	{VALUE(1, "name", STRING), NAMED(2, "type", file_types), VALUE(3, "path", STRING),
	 VALUE(4, "size", INT64), VALUE(5, "mode", UINT32), VALUE(6, "permissions", STRING),
	 VALUE(7, "owner", STRING), VALUE(8, "group", STRING), VALUE(9, "modifiedTime", TIME),
	 VALUE(10, "symlinkTarget", STRING), VALUE(11, "metadata", MAP)}};
const struct proto_message proto_stat = {"StatRequest", {VALUE(1, "path", STRING)}};
const struct proto_message proto_entry_reply = {"StatResponse", {MESSAGE(1, "entry", entry)}};
const struct proto_message proto_move = {
	"MoveRequest", {VALUE(1, "source", STRING), VALUE(2, "destination", STRING)}};
const struct proto_message proto_list_dir = {"ListDirRequest",
					     {VALUE(1, "path", STRING), VALUE(2, "depth", UINT32)}};
const struct proto_message proto_entries = {"ListDirResponse", {MESSAGES(1, "entries", entry)}};
const struct proto_message proto_watch = {"WatchDirRequest",
					  {VALUE(1, "path", STRING), VALUE(2, "recursive", BOOL),
					   VALUE(3, "includeEntry", BOOL),
					   VALUE(4, "allowNetworkMounts", BOOL)}};
static const struct proto_message proto_fs_event = {
	"FilesystemEvent",
	{VALUE(1, "name", STRING), NAMED(2, "type", event_types), MESSAGE(3, "entry", entry)}};
const struct proto_message proto_watch_event = {"WatchDirResponse",
						{MESSAGE(1, "start", empty),
						 MESSAGE(2, "filesystem", fs_event),
						 MESSAGE(3, "keepalive", empty)}};
const struct proto_message proto_watcher_id = {"CreateWatcherResponse",
					       {VALUE(1, "watcherId", STRING)}};
const struct proto_message proto_watcher_events = {"GetWatcherEventsResponse",
						   {MESSAGES(1, "events", fs_event)}};
