# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034
# Behind DIR and TREE, BYTES:FILES: files of more bytes stay in the box, and of more new files those
# of the directories that have most of them.
max=${3%:*} most=${3#*:}
