/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * loss: on the wire, after the queue, so that a lost packet costs bandwidth.
 */
#ifndef EMUD_LOSS_H
#define EMUD_LOSS_H

#include "maps.h"
#include "rng.h"

/* Each packet on its own (Bernoulli). */
static __always_inline int emud_lost(const struct emud_packet *p)
{
	return p->link->loss && emud_draw(p, EMUD_FOR_LOSS) < p->link->loss;
}

#endif
