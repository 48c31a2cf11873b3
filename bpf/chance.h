/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * chance: whether an event of one probability happens to this packet.
 *
 * netem's correlation changes the rate of an event: its filter mixes uniform
 * values, and the mixture is not uniform. Here normal values are mixed,
 * 	z' = r z + sqrt(1 - r^2) e
 * which is standard normal if z and e are. The event happens if z' is below the
 * quantile of its probability.
 */
#ifndef EMUD_CHANCE_H
#define EMUD_CHANCE_H

#include "maps.h"
#include "rng.h"

/* Makes 0 stand for a process that has not begun; far beyond any normal value. */
#define EMUD_NORMAL_BIAS (1LL << 40)

/* The process belongs to the link and covers all flows; `normal` is its state. */
static __always_inline int emud_chance(const struct emud_packet *p, struct emud_state *s,
				       const struct emud_chance *c, __s64 *normal,
				       __u64 purpose)
{
	__u64 draw;
	__s64 z;

	if (!c->probability)
		return 0;
	draw = emud_draw(p, purpose);
	if (likely(!c->correlation))
		return draw < c->probability;
	z = emud_normal(draw);
	bpf_spin_lock(&s->lock);
	/* |z| < 2^28, the factors are at most 2^30 */
	if (*normal)
		z = ((*normal - EMUD_NORMAL_BIAS) * c->correlation + z * c->innovation) >>
		    EMUD_CORRELATION_SHIFT;
	*normal = z + EMUD_NORMAL_BIAS;
	bpf_spin_unlock(&s->lock);
	return z < c->below;
}

#endif
