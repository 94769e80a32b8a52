# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154
# Object ids on stdin, one a line.
command -v git >/dev/null 2>&1 || exit 91
[ -d "$shadow" ] || exit 93
rgit cat-file --batch --buffer || exit 90
