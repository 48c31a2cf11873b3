/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * queue: serialisation at the link's rate, and a limited backlog in front of it.
 *
 * The queue is a virtual clock: busy_until is the time at which the last
 * admitted packet has left, so the backlog is busy_until - now and only the
 * clock must be stored. The clock includes fractions of a ns, so no rate
 * drifts. A limit in packets is exact too: the first of the last N admitted
 * packets must have left, which costs one lookup in a ring of their times.
 *
 * A burst is the same clock with permission to lag behind: a token bucket
 * without tokens that would need rounding.
 *
 * Longer than 400 lines: what is computed before the lock, and what under it, must agree.
 */
#ifndef EMUD_QUEUE_H
#define EMUD_QUEUE_H

#include "maps.h"
#include "aqm.h"
#include "background.h"
#include "ecn.h"
#include "ring.h"
#include "timeline.h"

#define EMUD_WIRE_MAX ((1 << 21) - 1) /* bytes; times rate_mult, still in 64 bits */

/* Of 64 CPUs that compete for one queue, all but one lose each race: with 8
 * attempts seven of eight packets would lose all of them, with 1,024 one in
 * 10^7. Such a packet is dropped, as by a full queue. The verifier follows each
 * pass of a plain loop, so without a timeline these are two loops in two functions. */
#define EMUD_QUEUE_PASSES 32
#define EMUD_QUEUE_TRIES (EMUD_QUEUE_PASSES * EMUD_QUEUE_PASSES)
_Static_assert(EMUD_QUEUE_TRIES >= 1024, "see above");

/* 1 if x is above limit, both below 2^63: no branch, which the verifier would
 * follow through all that comes after it. */
static __always_inline __u64 emud_above(__u64 x, __u64 limit)
{
	return (limit - x) >> 63;
}

static __always_inline int emud_is_pair(const struct emud_packet *p)
{
	return p->queue >= emud_layout.plain + emud_layout.instances;
}

/* The time that this many bytes take at the rate in force, in ns; ~0 if the
 * rate is 0. */
static __always_inline __u64 emud_bytes_ns(const struct emud_packet *p,
					   const struct emud_link *l, __u32 bytes)
{
	__u64 mult = emud_rate_mult(p, l), time;
	__u32 shift = emud_rate_shift(p, l);

	if (!bytes)
		return ~0ULL;
	/* mult < 2^42: in units of 2^16, below 2^59 */
	time = (bytes >> 16) * mult + (((bytes & 0xffff) * mult) >> 16);
	if (shift >= 16)
		return time >> (shift - 16);
	return time >> (47 + shift) ? ~0ULL : time << (16 - shift);
}

/* The longest backlog including the packet. */
static __always_inline __u64 emud_busy_limit(const struct emud_packet *p,
					     const struct emud_link *l)
{
	if (unlikely(emud_is_pair(p)))
		return emud_bytes_ns(p, l, l->pair_bytes);
	if (unlikely(p->over.set & EMUD_SET_RATE))
		return emud_bytes_ns(p, l, l->queue_bytes);
	return l->queue_busy_ns;
}

/* The length of one wire packet with all overhead (tc-stab(8), tc-netem(8)). */
static __always_inline __u64 emud_framed(const struct emud_link *l, __u32 bytes)
{
	const struct emud_queueing *q = &l->queueing;
	__s64 len = (__s64)bytes + l->overhead;
	__u64 cells;

	if (len < (__s64)q->mpu)
		len = q->mpu;
	if (likely(!q->cell_size))
		return len;
	cells = ((__u64)len + q->cell_size - 1) / q->cell_size;
	if (q->cell_pad)
		len = cells * q->cell_size;
	return len + (__s64)cells * q->cell_overhead;
}

/* The length of all wire packets of a packet. */
static __always_inline __u64 emud_on_wire(const struct emud_packet *p,
					  const struct emud_link *l)
{
	__u64 len = emud_framed(l, p->last_len);

	if (unlikely(p->segments > 1))
		len += (p->segments - 1) * emud_framed(l, p->full_len);
	return len < EMUD_WIRE_MAX ? len : EMUD_WIRE_MAX;
}

/* After an idle time the clock lags behind by up to the burst: whatever fits
 * into the lag is sent at once. */
static __always_inline struct emud_turn emud_turn(const struct emud_packet *p,
						  const struct emud_link *l,
						  const struct emud_state *s,
						  const struct emud_offer *offer)
{
	__u32 shift = emud_rate_shift(p, l);
	struct emud_turn t = {};
	__u64 work, start = 0;

	if (p->arrival > l->queueing.burst_ns)
		start = p->arrival - l->queueing.burst_ns;
	work = offer->len * emud_rate_mult(p, l);
	if (s->busy_until >= start) {
		start = s->busy_until;
		/* a fraction left by a different rate is less than a ns, too */
		work += s->busy_frac & ((1ULL << shift) - 1);
	}
	t.busy_until = start + (work >> shift);
	t.busy_frac = work & ((1ULL << shift) - 1);
	t.wait = start > p->arrival ? start - p->arrival : 0;
	t.sent = t.busy_until > p->arrival ? t.busy_until : p->arrival;
	t.full = emud_above(t.wait, offer->wait_limit) |
		 emud_above(t.sent - p->arrival, offer->busy_limit);
	return t;
}

/* Admits or drops a packet. Under the lock. */
static __always_inline enum emud_verdict
emud_enqueue(struct emud_packet *p, const struct emud_link *l, struct emud_state *s,
	     const struct emud_offer *offer, const struct emud_ring_view *v,
	     struct emud_turn *t, int managed)
{
	enum emud_verdict verdict = EMUD_ADMIT;
	__u32 n = offer->segments, oldest = s->ring_pos - offer->behind;
	__u64 beside = 0, first;

	if (((s->ring_pos ^ v->pos) | (oldest ^ v->oldest_pos)) >= EMUD_RING_STEP)
		return EMUD_AGAIN;
	/* Full if the packet this far back has not left yet. */
	first = *emud_ring_at(v->oldest, oldest);
	/* Also without a manager: entries may be from the time of RIO, before a change. */
	if (emud_uses(SIGNALS))
		first &= ~EMUD_RING_ASSURED;
	t->full |= offer->limited & emud_above((__u64)s->ring_pos + n, offer->packets) &
		   emud_above(first, p->arrival);
	if (managed && emud_uses(SIGNALS) && l->queueing.aqm)
		verdict = emud_aqm(p, l, s, offer, t);
	else if (emud_uses(SIGNALS))
		/* A manager that comes back starts again: its time has passed. */
		s->aqm.aqm = EMUD_AQM_NONE;
	if (verdict == EMUD_DROP)
		return verdict;
	if (t->full)
		return EMUD_FULL;
	s->busy_until = t->busy_until;
	s->busy_frac = t->busy_frac;
	if (managed && emud_uses(SIGNALS) && l->queueing.aqm == EMUD_AQM_RIO)
		beside = emud_rio_admit(p, &s->aqm, offer, t);
	emud_ring_push(s, v, n, t->sent | beside);
	p->sent = t->sent;
	return offer->capable && t->wait > l->queueing.mark_ns ? EMUD_MARK : verdict;
}

/* Makes the manager's due updates before it judges a packet. A separate function,
 * and not below emud_offer_of(): all functions of a chain together have 512 bytes of
 * stack. Once a packet, since other CPUs' packets bring nothing that is due before. */
__noinline int emud_manager_catch_up(struct emud_packet *p)
{
	const struct emud_link *l;
	struct emud_state *s;

	if (!p || !emud_uses(SIGNALS))
		return 0;
	l = emud_link(p);
	s = emud_queue_state(p);
	if (!l || !s)
		return 0;
	emud_aqm_catch_up(l, s, p->arrival);
	emud_rio_catch_up(l, s, p);
	return 1;
}

/* Computes everything that can be known about a packet before the lock. A
 * global function, so that the verifier does not follow its paths through the
 * code after the call. */
__noinline int emud_offer_of(struct __sk_buff *skb, struct emud_packet *p,
			     struct emud_offer *offer)
{
	const __u64 any = ~0ULL >> 1;
	const struct emud_link *l;
	struct emud_state *s;

	/* Without queue managers it is not used. clang would pass any value for it, which
	 * the verifier rejects: a global function gets what its type says. */
	asm volatile("" : : "r"(skb));
	if (!p || !offer || !emud_uses(QUEUE))
		return 0;
	l = emud_link(p);
	s = emud_queue_state(p);
	if (!l || !s)
		return 0;
	offer->len = emud_on_wire(p, l);
	offer->busy_limit = emud_busy_limit(p, l) & any;
	offer->wait_limit = l->queue_wait_ns & any;
	offer->segments = p->segments < EMUD_TRAIN_MAX ? p->segments : EMUD_TRAIN_MAX;
	offer->packets = emud_is_pair(p) ? l->pair_packets : l->queue_packets;
	offer->rings = emud_ring_of(p, &offer->ring);
	if (!offer->rings) {
		/* No limit in packets: nothing reads what is written there. */
		offer->packets = 0;
		offer->ring = emud_layout.spare_ring;
		offer->rings = 1;
	}
	offer->limited = !!offer->packets;
	/* A train longer than the queue is admitted only to an empty queue. */
	offer->behind = offer->packets > offer->segments
				? offer->packets - offer->segments + 1
				: 1;
	if (!emud_uses(SIGNALS))
		return 1;
	offer->capable = emud_ecn_capable(skb, p, l);
	offer->assured = l->queueing.aqm == EMUD_AQM_RIO && offer->limited &&
			 l->queueing.rio.codes >> emud_dscp(skb, p) & 1;
	return 1;
}

/* Returns what remains of RED's average after an idle time, or REM's probability. A separate
 * function: below emud_offer_of(), the chain of calls would need 544 bytes of stack. */
__noinline __u64 emud_fraction_of(struct emud_packet *p)
{
	const struct emud_link *l;
	struct emud_state *s;

	if (!p || !emud_uses(SIGNALS))
		return 0;
	l = emud_link(p);
	s = emud_queue_state(p);
	if (!l || !s)
		return 0;
	if (l->queueing.aqm == EMUD_AQM_REM)
		return emud_rem_probability(l, s);
	return emud_red_decay(l, s, p->arrival);
}

/* With PREEMPT_RT a packet may have lost its CPU since it arrived, and others have passed it:
 * judged by its arrival, it would find their departures in front of it, a full queue. */
static __always_inline void emud_join(struct emud_packet *p)
{
	if (emud_preempt_rt && !emud_test_run)
		p->arrival = bpf_ktime_get_ns();
}

/* ns after emud_join(): a packet that a full queue drops later has lost its CPU, too. */
#define EMUD_AWAY_NS 20000

static __always_inline int emud_joined(const struct emud_packet *p, int verdict)
{
	if (emud_preempt_rt && !emud_test_run && verdict == EMUD_FULL &&
	    bpf_ktime_get_ns() - p->arrival > EMUD_AWAY_NS)
		return EMUD_AGAIN;
	return verdict;
}

/* Returns an enum emud_verdict. `managed` is a constant: without managers the
 * code is short. */
static __always_inline int emud_take_turn(struct emud_packet *p,
					  const struct emud_link *l, struct emud_state *s,
					  const struct emud_offer *offer, int managed)
{
	struct emud_ring_view view;
	const struct emud_crossing *crossing = 0;
	struct emud_behind *behind = 0;
	enum emud_verdict verdict = EMUD_AGAIN;
	struct emud_turn t;

	if (!emud_ring_look(s, offer, &view))
		return EMUD_FULL;
	if (managed && emud_uses(BACKGROUND) && l->background.count) {
		behind = EMUD_LOOKUP(emud_behinds, p->queue);
		crossing = EMUD_LOOKUP(emud_crossings, p->scratch);
		if (!behind || !crossing)
			return EMUD_FULL;
	}
	emud_join(p);
	bpf_spin_lock(&s->lock);
	if (!crossing || !behind || emud_cross_commit(s, behind, crossing, l)) {
		t = emud_turn(p, l, s, offer);
		verdict = emud_enqueue(p, l, s, offer, &view, &t, managed);
	}
	bpf_spin_unlock(&s->lock);
	return emud_joined(p, verdict);
}

__noinline int emud_queue_once(struct __sk_buff *skb, struct emud_packet *p)
{
	struct emud_offer offer = {};
	const struct emud_link *l;
	struct emud_state *s;

	if (!p || !emud_uses(QUEUE) || !emud_offer_of(skb, p, &offer))
		return EMUD_FULL;
	offer.fraction = emud_fraction_of(p);
	l = emud_link(p);
	s = emud_queue_state(p);
	if (!l || !s)
		return EMUD_FULL;
	return emud_take_turn(p, l, s, &offer, 1);
}

__noinline int emud_queue_any(struct __sk_buff *skb, struct emud_packet *p)
{
	int i, verdict = EMUD_FULL;

	if (!p || !emud_uses(QUEUE))
		return EMUD_FULL;
	for (i = 0; i < EMUD_QUEUE_PASSES; i++) {
		/* Not below emud_queue_once(), because of the stack. */
		if (emud_uses(BACKGROUND) && !emud_cross(p))
			return EMUD_FULL;
		verdict = emud_queue_once(skb, p);
		if (likely(verdict != EMUD_AGAIN))
			return verdict;
	}
	return verdict;
}

/* The most common case, without a call: one packet, the link's own queue, only
 * a rate and limits. */
static __always_inline int emud_queue(struct __sk_buff *skb, struct emud_packet *p,
				      const struct emud_link *l)
{
	__s64 len = (__s64)p->last_len + l->overhead;
	struct emud_state *s = emud_queue_state(p);
	struct emud_offer offer = {
		.len = len & ~(len >> 63), /* not below 0 */
		.busy_limit = l->queue_busy_ns & ~0ULL >> 1,
		.wait_limit = l->queue_wait_ns & ~0ULL >> 1,
		.segments = 1,
		.packets = l->queue_packets,
		.behind = l->queue_packets,
		.limited = emud_nonzero(l->queue_packets),
	};
	int i, verdict = EMUD_AGAIN;

	if (s && (l->flags & EMUD_F_PLAIN_QUEUE) && p->segments == 1 && !p->over.set &&
	    p->queue < emud_layout.plain) {
		offer.rings = emud_ring_of(p, &offer.ring);
		verdict = emud_take_turn(p, l, s, &offer, 0);
	}
	if (likely(verdict != EMUD_AGAIN))
		return verdict;
	if (emud_uses(SIGNALS) && l->queueing.aqm)
		emud_manager_catch_up(p);
	for (i = 0; i < EMUD_QUEUE_PASSES && verdict == EMUD_AGAIN; i++)
		verdict = emud_queue_any(skb, p);
	return verdict == EMUD_AGAIN ? EMUD_FULL : verdict;
}

/* Does the same with a transmission time that a timeline computes. */
__noinline int emud_queue_timed(struct __sk_buff *skb, struct emud_packet *p)
{
	struct emud_offer offer = {};
	struct emud_ring_view view;
	const struct emud_link *l;
	enum emud_verdict verdict;
	struct emud_timed *w;
	struct emud_state *s;

	if (!p || !emud_uses(TIMELINE) || !emud_offer_of(skb, p, &offer))
		return EMUD_FULL;
	offer.fraction = emud_fraction_of(p);
	l = emud_link(p);
	s = emud_queue_state(p);
	w = EMUD_LOOKUP(emud_turns, p->scratch);
	if (!l || !s || !w || !emud_ring_look(s, &offer, &view))
		return EMUD_FULL;

	bpf_spin_lock(&s->lock);
	verdict = EMUD_AGAIN;
	if (!emud_stale(s, w))
		verdict = emud_enqueue(p, l, s, &offer, &view, &w->turn, 1);
	if (verdict == EMUD_ADMIT || verdict == EMUD_MARK)
		emud_timed_commit(s, w);
	bpf_spin_unlock(&s->lock);
	return emud_joined(p, verdict);
}

struct emud_tries {
	struct __sk_buff *skb;
	struct emud_packet *p;
	int verdict;
};

static long emud_timed_once(__u32 i, struct emud_tries *t)
{
	t->verdict = EMUD_FULL;
	emud_join(t->p);
	if (emud_timed_turn(t->p))
		t->verdict = emud_queue_timed(t->skb, t->p);
	return t->verdict != EMUD_AGAIN;
}

/* Repeats until no packet of a different CPU was admitted in between. With
 * bpf_loop(): there are two stages to repeat. */
__noinline int emud_timed_queue(struct __sk_buff *skb, struct emud_packet *p)
{
	struct emud_tries t = {.skb = skb, .p = p};
	const struct emud_link *l;
	struct emud_timed *w;

	if (!p || !emud_uses(TIMELINE))
		return EMUD_FULL;
	l = emud_link(p);
	w = EMUD_LOOKUP(emud_turns, p->scratch);
	if (!l || !w)
		return EMUD_FULL;
	w->len = emud_on_wire(p, l);
	if (emud_uses(SIGNALS) && l->queueing.aqm)
		emud_manager_catch_up(p);
	bpf_loop(EMUD_QUEUE_TRIES, emud_timed_once, &t, 0);
	return t.verdict == EMUD_AGAIN ? EMUD_FULL : t.verdict;
}

#endif
