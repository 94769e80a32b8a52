# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034
# Behind DIR and TREE: files of more bytes than this stay in the box.
max=$3
