#!/bin/sh
# SPDX-License-Identifier: MIT
# agentbox-provider(3) names every operation, every function of the host and every number.
. "${0%/*}/../cli/functions.sh"

pod=$SRC/docs/agentbox-provider.pod
ok 'the manual is well-formed' podchecker "$pod"
: >"$T/missing"
names=$(sed -n -e 's/^C(\(.*\))$/\1/p' \
	-e 's/^F(abx_host, \([a-z_]*\))$/\1/p' \
	-e 's/^F(abx_cloud_backend, \([a-z_]*\))$/\1/p' "$SRC/tests/abi/fields.h")
for name in $names; do
	case $name in
	# Members that are no function.
	struct_size | abi_* | reserved* | caps | version | ctx | magic | name | summary) continue ;;
	homepage | host_caps_required | thread_model | web_port | options | commands) continue ;;
	esac
	grep -q "B<$name>" "$pod" || printf '%s\n' "$name" >>"$T/missing"
done
like "$names" '^emit_row$' 'there are names to look for'
is "$(cat "$T/missing")" '' 'every one of them is in the manual'
done_testing
