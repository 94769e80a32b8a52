#!/bin/sh
# SPDX-License-Identifier: MIT
# A command on a terminal, by agentbox-ctl over a transport that can do little but stdin.
AGENTBOX_CONTRACT_SMALL=1
export AGENTBOX_CONTRACT_SMALL
exec "${0%/*}/tty.sh" mockbare
