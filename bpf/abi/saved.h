/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What detach reads.
 */
#ifndef EMUD_ABI_SAVED_H
#define EMUD_ABI_SAVED_H

#include <linux/types.h>

/* The state that detach must restore, and the profile: opaque bytes, written by
 * attach, in pieces: memory by their length. A profile carries its tables of measured
 * delays in its text. */
#define EMUD_PIECES 511 /* of each half of emud_saved: one is in force, one is written */
#define EMUD_PIECE_LEN 2036
struct emud_piece {
	/* Of key 0 only, which says which pieces are in force: keys `first`, `first` + 1, ... */
	__u32 first; /* 1 or 1 + EMUD_PIECES */
	__u32 len; /* bytes in all of them */
	__u32 writes; /* so far: a reader starts again if it has changed meanwhile */
	__u8 bytes[EMUD_PIECE_LEN];
};

#endif
