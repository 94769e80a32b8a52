#!/bin/sh
# SPDX-License-Identifier: MIT
# All of seeding, by a provider that can do next to nothing.
AGENTBOX_CONTRACT_SMALL=1
export AGENTBOX_CONTRACT_SMALL
exec "${0%/*}/seed.sh" mockpoor
