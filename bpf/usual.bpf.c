// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The classifier without what few links need. */
#define EMUD_BUILT EMUD_FEATURES_USUAL
#include "link.bpf.c"
