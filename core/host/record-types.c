/* SPDX-License-Identifier: MIT */
/* The tables of core/host/record.h: which members point somewhere, and their bounds. */
#include "core/host/record.h"

#define SHORT 512
#define TEXT 4096
#define REQUEST (4U << 20) /* an argument or a value of ours, which may be large */

#define STR(type, member, max_, flags_)                                                    \
	{                                                                                  \
#member, offsetof(struct type, member), 0, (max_), ABX_FIELD_STR, (flags_) \
	}
#define KV(type, member, n, max_)                                                         \
	{                                                                                 \
#member, offsetof(struct type, member), offsetof(struct type, n), (max_), \
			ABX_FIELD_KV, 0                                                   \
	}
#define STRV(type, member, flags_)                                                           \
	{                                                                                    \
#member, offsetof(struct type, member), 0, REQUEST, ABX_FIELD_STRV, (flags_) \
	}
#define LIST(type, member, n, kind_)                                                       \
	{                                                                                  \
#member, offsetof(struct type, member), offsetof(struct type, n), REQUEST, \
			(kind_), 0                                                         \
	}

/* The 1.0 size ends with the last member of 1.0, whatever was appended since. */
#define TYPE(var, shown, type, last, fields_)                                          \
	const struct abx_record_type var = {                                           \
		shown, offsetof(struct type, last) + sizeof(((struct type *)0)->last), \
		sizeof(struct type), fields_, ABX_N_ELEMENTS(fields_)}
#define PLAIN_TYPE(var, shown, type, last)                                             \
	const struct abx_record_type var = {                                           \
		shown, offsetof(struct type, last) + sizeof(((struct type *)0)->last), \
		sizeof(struct type), NULL, 0}

#define NEEDED (ABX_FIELD_REQUIRED | ABX_FIELD_LINE)

static const struct abx_field sandbox_fields[] = {
	STR(abx_sandbox, id, SHORT, NEEDED),
	STR(abx_sandbox, name, SHORT, ABX_FIELD_LINE),
	STR(abx_sandbox, provider_data, ABX_PROVIDER_DATA_MAX_BYTES, 0),
	STR(abx_sandbox, account, SHORT, ABX_FIELD_LINE),
	STR(abx_sandbox, region, SHORT, ABX_FIELD_LINE),
	STR(abx_sandbox, class_name, SHORT, ABX_FIELD_LINE),
	STR(abx_sandbox, arch, SHORT, ABX_FIELD_LINE),
	STR(abx_sandbox, error, TEXT, ABX_FIELD_CUT),
	STR(abx_sandbox, created_at, SHORT, ABX_FIELD_LINE),
	KV(abx_sandbox, labels, n_labels, TEXT),
};
TYPE(abx_record_sandbox, "sandbox", abx_sandbox, expires_at_ms, sandbox_fields);

/* What we stored ourselves, which was checked when it came. */
static const struct abx_field sandbox_ref_fields[] = {
	STR(abx_sandbox, id, SHORT, ABX_FIELD_REQUIRED),
	STR(abx_sandbox, name, SHORT, 0),
	STR(abx_sandbox, provider_data, ABX_PROVIDER_DATA_MAX_BYTES, 0),
	STR(abx_sandbox, account, SHORT, 0),
	STR(abx_sandbox, region, SHORT, 0),
	STR(abx_sandbox, class_name, SHORT, 0),
	STR(abx_sandbox, arch, SHORT, 0),
	STR(abx_sandbox, error, TEXT, ABX_FIELD_CUT),
	STR(abx_sandbox, created_at, SHORT, 0),
	KV(abx_sandbox, labels, n_labels, TEXT),
};
TYPE(abx_record_sandbox_ref, "sandbox", abx_sandbox, expires_at_ms, sandbox_ref_fields);

static const struct abx_field resource_fields[] = {
	STR(abx_resource, kind, SHORT, NEEDED),
	STR(abx_resource, id, SHORT, ABX_FIELD_LINE),
	STR(abx_resource, name, SHORT, ABX_FIELD_LINE),
	STR(abx_resource, sandbox_id, SHORT, ABX_FIELD_LINE),
	KV(abx_resource, labels, n_labels, TEXT),
};
TYPE(abx_record_resource, "resource", abx_resource, labels, resource_fields);

static const struct abx_field snapshot_fields[] = {
	STR(abx_snapshot, ref, SHORT, NEEDED),
	STR(abx_snapshot, name, SHORT, ABX_FIELD_LINE),
	STR(abx_snapshot, state, SHORT, ABX_FIELD_LINE),
	STR(abx_snapshot, created_at, SHORT, ABX_FIELD_LINE),
	STR(abx_snapshot, sandbox_id, SHORT, ABX_FIELD_LINE),
	STR(abx_snapshot, account, SHORT, ABX_FIELD_LINE),
	KV(abx_snapshot, labels, n_labels, TEXT),
};
TYPE(abx_record_snapshot, "snapshot", abx_snapshot, reserved0, snapshot_fields);

static const struct abx_field url_fields[] = {
	STR(abx_url, url, TEXT, NEEDED),
	STR(abx_url, header, TEXT, ABX_FIELD_LINE),
	STR(abx_url, token, TEXT, ABX_FIELD_LINE),
};
TYPE(abx_record_url, "url", abx_url, expires_at_ms, url_fields);

static const struct abx_field ssh_fields[] = {
	STR(abx_ssh, host, SHORT, NEEDED),
	STR(abx_ssh, user, SHORT, ABX_FIELD_LINE),
	STR(abx_ssh, identity_file, TEXT, ABX_FIELD_LINE),
	STR(abx_ssh, known_hosts, 65536, 0),
	STR(abx_ssh, proxy_command, TEXT, ABX_FIELD_LINE),
};
TYPE(abx_record_ssh, "ssh", abx_ssh, expires_at_ms, ssh_fields);

static const struct abx_field file_fields[] = {
	STR(abx_file, name, TEXT, ABX_FIELD_REQUIRED), /* bytes, not text */
};
TYPE(abx_record_file, "file", abx_file, mtime_s, file_fields);

static const struct abx_field rate_fields[] = {
	STR(abx_rate, currency, SHORT, NEEDED),
	STR(abx_rate, as_of, SHORT, ABX_FIELD_LINE),
};
TYPE(abx_record_rate, "rate", abx_rate, as_of, rate_fields);

PLAIN_TYPE(abx_record_usage, "usage", abx_usage, cpu_ms);

static const struct abx_field failure_fields[] = {
	STR(abx_failure, text, TEXT, ABX_FIELD_CUT),
	STR(abx_failure, remedy, TEXT, ABX_FIELD_CUT),
	STR(abx_failure, request_id, SHORT, ABX_FIELD_CUT),
};
TYPE(abx_record_failure, "failure", abx_failure, request_id, failure_fields);

static const struct abx_field row_fields[] = {
	KV(abx_row_record, cells, n_cells, 65536),
};
TYPE(abx_record_row, "row", abx_row_record, cells, row_fields);

static const struct abx_field list_req_fields[] = {
	KV(abx_list_req, labels, n_labels, TEXT),
};
TYPE(abx_record_list_req, "list request", abx_list_req, labels, list_req_fields);

static const struct abx_field provision_fields[] = {
	STR(abx_provision, name, SHORT, 0),
	STR(abx_provision, image, TEXT, 0),
	STR(abx_provision, snapshot, TEXT, 0),
	STR(abx_provision, size, SHORT, 0),
	STR(abx_provision, location, SHORT, 0),
	STR(abx_provision, idempotency_key, SHORT, 0),
	STRV(abx_provision, egress_allow, 0),
	STRV(abx_provision, egress_deny, 0),
	STR(abx_provision, inbound, TEXT, 0),
	LIST(abx_provision, mounts, n_mounts, ABX_FIELD_MOUNTS),
	KV(abx_provision, env, n_env, REQUEST),
	KV(abx_provision, labels, n_labels, TEXT),
	KV(abx_provision, volumes, n_volumes, TEXT),
	KV(abx_provision, options, n_options, REQUEST),
	LIST(abx_provision, ports, n_ports, ABX_FIELD_U16),
};
TYPE(abx_record_provision, "provision request", abx_provision, timeout_ms, provision_fields);

PLAIN_TYPE(abx_record_start_req, "start request", abx_start_req, timeout_ms);
PLAIN_TYPE(abx_record_stop_req, "stop request", abx_stop_req, grace_ms);

static const struct abx_field exec_fields[] = {
	STRV(abx_exec, argv, ABX_FIELD_REQUIRED),
	STR(abx_exec, cwd, TEXT, 0),
	STR(abx_exec, user, SHORT, 0),
	KV(abx_exec, env, n_env, REQUEST),
};
TYPE(abx_record_exec, "exec request", abx_exec, gap, exec_fields);

static const struct abx_field transfer_fields[] = {
	STR(abx_transfer, path, REQUEST, ABX_FIELD_REQUIRED),
	STR(abx_transfer, owner, SHORT, 0),
};
TYPE(abx_record_transfer, "transfer request", abx_transfer, owner, transfer_fields);

static const struct abx_field prepare_fields[] = {
	STR(abx_prepare, name, SHORT, ABX_FIELD_REQUIRED),
	STR(abx_prepare, from, TEXT, 0),
	STR(abx_prepare, dockerfile, REQUEST, 0),
	STR(abx_prepare, script, REQUEST, 0),
	STR(abx_prepare, fingerprint, SHORT, 0),
	STR(abx_prepare, size, SHORT, 0),
	STR(abx_prepare, location, SHORT, 0),
	LIST(abx_prepare, steps, n_steps, ABX_FIELD_STEPS),
	KV(abx_prepare, args, n_args, REQUEST),
	KV(abx_prepare, labels, n_labels, TEXT),
	KV(abx_prepare, options, n_options, REQUEST),
};
TYPE(abx_record_prepare, "prepare request", abx_prepare, reserved0, prepare_fields);

PLAIN_TYPE(abx_record_url_req, "url request", abx_url_req, ttl_ms);

static const struct abx_field snapshot_req_fields[] = {
	STR(abx_snapshot_req, name, SHORT, 0),
	KV(abx_snapshot_req, labels, n_labels, TEXT),
};
TYPE(abx_record_snapshot_req, "snapshot request", abx_snapshot_req, labels, snapshot_req_fields);

PLAIN_TYPE(abx_record_logs_req, "logs request", abx_logs_req, tail);

static const struct abx_field volume_req_fields[] = {
	STR(abx_volume_req, name, SHORT, ABX_FIELD_REQUIRED),
	STR(abx_volume_req, size, SHORT, 0),
	KV(abx_volume_req, labels, n_labels, TEXT),
};
TYPE(abx_record_volume_req, "volume request", abx_volume_req, labels, volume_req_fields);

static const struct abx_field policy_fields[] = {
	STRV(abx_policy, allow, 0),
	STRV(abx_policy, deny, 0),
};
TYPE(abx_record_policy, "policy", abx_policy, deny, policy_fields);

static const struct abx_field plain_fields[] = {
	STR(abx_plain_args, text, REQUEST, 0),
	STRV(abx_plain_args, argv, 0),
};
TYPE(abx_record_plain, "request", abx_plain_args, b, plain_fields);

_Static_assert(sizeof(struct abx_provision) <= 512, "record.c's RECORD_MAX_BYTES");
_Static_assert(sizeof(struct abx_prepare) <= 512, "record.c's RECORD_MAX_BYTES");
_Static_assert(offsetof(struct abx_provision, n_env) != 0, "a count is never first");
