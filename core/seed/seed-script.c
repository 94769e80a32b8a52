/* SPDX-License-Identifier: MIT */
/* What runs inside a box: the scripts of core/seed/box/, as the build made them into text. */
#include "core/seed/seed-script.h"

#include "core/seed/box-scripts.h"

const char abx_script_seed[] = ABX_SH_LIB ABX_SH_SEED;
const char abx_script_clear[] = ABX_SH_LIB ABX_SH_CLEAR;
const char abx_script_changes[] = ABX_SH_LIB ABX_SH_LIMIT ABX_SH_TREE ABX_SH_CHANGES;
const char abx_script_diff[] = ABX_SH_LIB ABX_SH_LIMIT ABX_SH_TREE ABX_SH_DIFF;
const char abx_script_contents[] = ABX_SH_LIB ABX_SH_CONTENTS;
const char abx_script_fetch[] = ABX_SH_LIB ABX_SH_FETCH;
const char abx_script_sync[] = ABX_SH_LIB ABX_SH_SYNC_COMMITS ABX_SH_TREE ABX_SH_SYNC;
