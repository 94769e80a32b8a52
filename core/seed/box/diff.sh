# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154
# Behind DIR: the TREE that the workspace began with, diff or stat, always or never.
stat=
[ "$3" != stat ] || stat=--stat
rgit diff --no-ext-diff --no-textconv --color="$4" $stat "$2" "$tree" || exit 90
