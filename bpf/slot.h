/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slot: departures in slots, as on a link with time division (TDMA).
 *
 * The distances between slots are uniform between two bounds and derived from
 * the seed and the slot's number. A packet leaves at the beginning of the first
 * slot with room for it that is neither before the packet's departure time nor
 * before the last slot used. A packet larger than a slot gets a slot for
 * itself. A packet that would wait longer than the queue allows is dropped.
 *
 * After a pause the slots in between are counted one by one up to
 * EMUD_TDMA_STEPS of them. A longer pause is skipped at the mean distance: the
 * slots after it are at the right time, but not where the single draws would
 * have led.
 */
#ifndef EMUD_SLOT_H
#define EMUD_SLOT_H

#include "maps.h"
#include "rng.h"
#include "wide.h"

#define EMUD_TDMA_STEPS 16
/* Slots that are still counted one by one after a jump. */
#define EMUD_TDMA_REST 8

static __always_inline void emud_next_slot(const struct emud_link *l,
					   struct emud_state *s)
{
	__u64 draw = emud_mix((l->seed ^ EMUD_FOR_SLOT) + s->tdma_number * EMUD_GOLDEN);

	s->tdma_at += l->tdma.min_ns + emud_mul_high(draw, l->tdma.span_ns);
	s->tdma_number++;
	s->tdma_packets = 0;
	s->tdma_bytes = 0;
}

/* Moves to the first slot that is not before a time. */
static __always_inline void emud_slots_until(const struct emud_link *l,
					     struct emud_state *s, __u64 time)
{
	__u64 mean = l->tdma.min_ns + (l->tdma.span_ns >> 1), passed;
	int i;

	if (time <= s->tdma_at)
		return;
	passed = mean ? (time - s->tdma_at) / mean : 0;
	if (passed > EMUD_TDMA_STEPS) {
		passed -= EMUD_TDMA_REST;
		s->tdma_at += passed * mean;
		s->tdma_number += passed;
	}
	for (i = 0; i < 2 * EMUD_TDMA_STEPS; i++) {
		if (s->tdma_at >= time)
			return;
		emud_next_slot(l, s);
	}
	/* The limit of steps is reached: many short distances in a row. */
	s->tdma_at = time;
}

static __always_inline int emud_slot_is_full(const struct emud_packet *p,
					     const struct emud_link *l,
					     const struct emud_state *s)
{
	if (!s->tdma_packets)
		return 0;
	return (l->tdma.packets && s->tdma_packets + p->segments > l->tdma.packets) ||
	       (l->tdma.bytes && s->tdma_bytes + p->wire_len > l->tdma.bytes);
}

/* Restarts the process with a new id: its first used slot is not before the
 * last used slot of the old one. Returns the time of that slot. */
static __always_inline __u64 emud_slots_anew(const struct emud_link *l,
					     struct emud_state *s)
{
	__u64 last = s->tdma_id ? s->tdma_at : 0;

	s->tdma_id = l->tdma.id;
	s->tdma_number = 0;
	s->tdma_at = l->epoch_ns;
	s->tdma_packets = 0;
	s->tdma_bytes = 0;
	return last;
}

/* Returns the departure time in its slot; 0 if its slot is too far away. */
__noinline __u64 emud_slotted(struct emud_packet *p, __u64 departure)
{
	const struct emud_link *l;
	struct emud_state *s;
	__u64 last = 0, at = 0;

	if (!p || !emud_uses(SLOT))
		return departure;
	l = emud_link(p);
	s = emud_path_state(p);
	if (!l || !s)
		return departure;
	bpf_spin_lock(&s->lock);
	if (s->tdma_id != l->tdma.id)
		last = emud_slots_anew(l, s);
	emud_slots_until(l, s, departure > last ? departure : last);
	if (emud_slot_is_full(p, l, s))
		emud_next_slot(l, s);
	if (s->tdma_at <= departure || s->tdma_at - departure <= l->tdma.wait_ns) {
		s->tdma_packets += p->segments;
		s->tdma_bytes += p->wire_len;
		at = s->tdma_at;
	}
	bpf_spin_unlock(&s->lock);
	return at;
}

#endif
