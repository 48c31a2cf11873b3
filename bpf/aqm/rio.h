/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RIO: RED with In and Out. Assured packets are judged by the average length of what
 * is assured, the others by that of the whole queue.
 *
 * How much of the backlog is assured only the ring knows: it says when each packet
 * leaves and whether it is assured, and is followed from packet to packet. The wire
 * time of a packet is its distance from the one before.
 */
#ifndef EMUD_AQM_RIO_H
#define EMUD_AQM_RIO_H

#include "red.h"
#include "../ring.h"

struct emud_rio_walk {
	struct emud_state *state;
	__u64 now;
	__u32 ring;
	__u32 rings;
};

/* Counts the packet at `pos` out, if it has left; false: it is still there. */
static __always_inline int emud_rio_leave(struct emud_state *s, struct emud_ring *ring,
					  __u32 pos, __u64 now)
{
	struct emud_aqm_state *a = &s->aqm;
	__u64 sent = *emud_ring_at(ring, pos), at = sent & ~EMUD_RING_ASSURED;

	/* Another CPU has counted it out. */
	if (!a->rio_queued || s->ring_pos - a->rio_queued != pos)
		return 1;
	if (at > now)
		return 0;
	if (sent & EMUD_RING_ASSURED)
		a->rio_backlog -= at - a->rio_left;
	a->rio_left = at;
	a->rio_queued--;
	return 1;
}

static long emud_rio_step(__u32 i, struct emud_rio_walk *w)
{
	struct emud_state *s = w->state;
	__u32 queued = *(volatile __u32 *)&s->aqm.rio_queued, pos;
	struct emud_ring *ring;
	int left;

	pos = *(volatile __u32 *)&s->ring_pos - queued;
	if (!queued)
		return 1;
	ring = EMUD_LOOKUP(emud_rings,
			   w->ring + ((pos / EMUD_RING_STEP) & (w->rings - 1)));
	if (!ring)
		return 1;
	bpf_spin_lock(&s->lock);
	left = emud_rio_leave(s, ring, pos, w->now);
	bpf_spin_unlock(&s->lock);
	return !left;
}

/* Takes out of the assured backlog what has left by now. */
static __always_inline void emud_rio_catch_up(const struct emud_link *l,
					      struct emud_state *s,
					      const struct emud_packet *p)
{
	struct emud_rio_walk walk = {
		.state = s,
		.now = p->arrival,
	};

	if (l->queueing.aqm != EMUD_AQM_RIO || s->aqm.aqm != EMUD_AQM_RIO)
		return;
	walk.rings = emud_ring_of(p, &walk.ring);
	if (walk.rings)
		bpf_loop(EMUD_RING_LEN, emud_rio_step, &walk, 0);
}

/* Admits a packet. Returns the flag that the ring holds beside its time. */
static __always_inline __u64 emud_rio_admit(const struct emud_packet *p,
					    struct emud_aqm_state *a,
					    const struct emud_offer *offer,
					    const struct emud_turn *t)
{
	if (!a->rio_queued || !t->wait) {
		a->rio_queued = 0;
		a->rio_backlog = 0;
		a->rio_left = a->rio_last = p->arrival + t->wait;
	}
	a->rio_queued += offer->segments;
	if (offer->assured)
		a->rio_backlog += t->sent - a->rio_last;
	a->rio_last = t->sent;
	return offer->assured ? EMUD_RING_ASSURED : 0;
}

static __always_inline int emud_rio(const struct emud_packet *p,
				    const struct emud_queueing *q,
				    struct emud_aqm_state *a,
				    const struct emud_offer *offer, __u64 wait)
{
	emud_red_count(p, &q->red, a, wait, offer->fraction);
	if (!wait)
		a->rio_average = emud_scale(a->rio_average, offer->fraction);
	else if (offer->assured)
		a->rio_average =
			emud_red_average(&q->red, a->rio_average, a->rio_backlog);
	if (offer->assured)
		return emud_red_judge(p, &q->rio.assured, &a->rio_count, a->rio_average);
	return emud_red_judge(p, &q->red, &a->red_count, a->red_average);
}

#endif
