#!/bin/sh
# SPDX-License-Identifier: MIT
# All that exec promises, by agentbox-ctl over a transport that can do little but stdin.
AGENTBOX_CONTRACT_SMALL=1
export AGENTBOX_CONTRACT_SMALL
exec "${0%/*}/exec.sh" mockbare
