#!/bin/sh
# SPDX-License-Identifier: MIT
# A command on a terminal, by agentbox-ctl over a transport that can do next to nothing.
AGENTBOX_CONTRACT_SMALL=1
export AGENTBOX_CONTRACT_SMALL
exec "${0%/*}/tty.sh" mockpoor
