/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * delay: propagation, from the moment the last bit is on the wire.
 *
 * Every distribution is one table of delays over the standard normal value, so
 * one path serves all of them. They differ in the source of the normal value:
 *
 * per packet: one draw each; packets overtake. The draws of a flow may be
 * correlated: z' = r z + sqrt(1 - r^2) e is standard normal if z and e are, so
 * correlation keeps the distribution (tc-netem filters the uniform value, which
 * changes it).
 *
 * in order: a process in time. Independent normal values stand at knots one
 * coherence time apart; between two knots a and b, at fraction w,
 * 	z = ((1-w) a + w b) / sqrt((1-w)^2 + w^2)
 * is standard normal at every instant, so the delay has the same distribution
 * at every packet rate. Independent draws that are clamped into order do not
 * have it: at 10,000 packets/s the mean creeps to the maximum. The clamp
 * remains for the instants at which the delay falls faster than time passes (1
 * to 3 % of the time with the default coherence time, 0.001 to 0.003 in
 * Kolmogorov-Smirnov distance) and for a delay that is reduced while packets
 * are in flight.
 *
 * Some packets may have no delay: all but a share of them, or those that are to
 * be reordered. They overtake even if the other packets stay in order.
 */
#ifndef EMUD_DELAY_H
#define EMUD_DELAY_H

#include "maps.h"
#include "rng.h"

#define EMUD_CLAMP_TRIES 4

static __always_inline __u64 emud_now(const struct __sk_buff *skb)
{
	return emud_test_run ? skb->hwtstamp : bpf_ktime_get_ns();
}

/* TCP pacing and SO_TXTIME put a departure time into the stamp: the packet must
 * not be on the wire before. It delays that packet only. If it counted as the
 * time of arrival, the queue's clock and the order of packets would advance to
 * it, and every other flow would wait until then: one packet of any user, 10 s
 * ahead, would stop the link. The stamp of a received packet is when it came, by
 * another clock. */
static __always_inline __u64 emud_earliest(const struct __sk_buff *skb, __u32 direction,
					   __u64 now)
{
	__u64 stamp = skb->tstamp;

	return direction == EMUD_UP && stamp >= now && stamp - now < EMUD_HORIZON_NS
		       ? stamp
		       : 0;
}

/* After all stages with a state. */
static __always_inline void emud_hold_back(struct emud_packet *p)
{
	if (p->earliest <= p->sent)
		return;
	p->held = p->earliest - p->sent;
	p->departure += p->held;
	p->copy_departure += p->held;
}

/* The delay stage draws for each packet, which requires packet numbers. */
#define EMUD_F_DRAWN (EMUD_F_PER_PACKET | EMUD_F_SHARE | EMUD_F_REORDER)

/* 1/sqrt(w^2 + (1-w)^2), Q2.30, filled by the loader. */
const volatile __u32 emud_blend[EMUD_BLEND_LEN];

static __always_inline __s64 emud_knot(const struct emud_link *l, __u64 knot)
{
	return emud_normal(emud_mix((l->seed ^ EMUD_FOR_KNOT) + knot * EMUD_GOLDEN));
}

static __always_inline __s64 emud_process(const struct emud_link *l, __u64 now)
{
	__u64 t = now > l->epoch_ns ? now - l->epoch_ns : 0;
	__u64 knot = l->coherence_ns ? t / l->coherence_ns : 0;
	__u64 rest = t - knot * l->coherence_ns;
	/* coherence_ns is below 2^42, so this is at most 2^20 - 1 */
	__s64 w = l->coherence_ns ? (rest << 20) / l->coherence_ns : 0;
	__s64 a = emud_knot(l, knot), b = emud_knot(l, knot + 1);
	__s64 z = a + (((b - a) * w) >> 20);
	__u32 i = emud_bound(w >> 10, EMUD_BLEND_STEPS);
	__s64 from = emud_blend[i], to = emud_blend[i + 1];

	/* |z| < 2^27, a blend < 2^31: 2^58 */
	return (z * (from + (((to - from) * (w & 1023)) >> 10))) >> 30;
}

static __always_inline __u64 emud_table_at(const struct emud_table *t, __s64 z)
{
	__u64 pos = z + EMUD_TABLE_ORIGIN; /* |z| <= 8, where the table ends */
	__u32 i = emud_bound(pos >> EMUD_TABLE_SHIFT, EMUD_TABLE_STEPS);
	__s64 a = t->delay_ns[i], b = t->delay_ns[i + 1];

	return a + (((b - a) * (__s64)(pos & ((1 << EMUD_TABLE_SHIFT) - 1))) >>
		    EMUD_TABLE_SHIFT);
}

/* Returns the normal value of one packet. */
static __always_inline __s64 emud_own_normal(const struct emud_packet *p,
					     const struct emud_link *l)
{
	__s64 z = emud_normal(emud_draw(p, EMUD_FOR_DELAY)), before;
	struct emud_flow *f;

	if (!emud_uses(DELAYS) || !(l->flags & EMUD_F_CORRELATED) || !p->numbered)
		return z;
	f = emud_flow(p);
	if (!f)
		return z;
	before = f->normal;
	/* |z| <= 2^27, r < 2^30 */
	if (before)
		z = (before * l->correlation + z * l->innovation) >> 30;
	/* A draw ends at 6.4; a sum of draws does not. */
	if (z >= EMUD_TABLE_ORIGIN)
		z = EMUD_TABLE_ORIGIN - 1;
	if (z < -EMUD_TABLE_ORIGIN)
		z = -EMUD_TABLE_ORIGIN;
	f->normal = z ? z : 1;
	return z;
}

/* The delay by the link's own figures. */
static __always_inline __u64 emud_own_delay(const struct emud_packet *p,
					    const struct emud_link *l)
{
	const struct emud_table *t;

	if (!emud_uses(JITTER) || !(l->flags & EMUD_F_JITTER))
		return l->delay_ns;
	t = EMUD_LOOKUP(emud_tables, p->slot);
	if (!t)
		return l->delay_ns;
	if (l->flags & EMUD_F_PER_PACKET)
		return emud_table_at(t, emud_own_normal(p, l));
	return emud_table_at(t, emud_process(l, p->sent));
}

/* The delay with the overlay's mean and deviation; delays are at most 2^42 ns. */
static __always_inline __u64 emud_delay_ns(const struct emud_packet *p,
					   const struct emud_link *l)
{
	__u64 mean = l->delay_ns, own = emud_own_delay(p, l);
	__s64 off = own - mean;

	if (likely(!(p->over.set & (EMUD_SET_DELAY | EMUD_SET_JITTER))))
		return own;
	if (p->over.set & EMUD_SET_JITTER)
		off = (off * p->over.jitter) >> EMUD_JITTER_SHIFT;
	if (p->over.set & EMUD_SET_DELAY)
		mean = p->over.delay_ns;
	off += mean;
	return off > 0 ? off : 0;
}

/* Compare and exchange instead of the lock: a link without a rate takes no lock
 * at all. Two packets that meet here on two CPUs have no order yet, so the
 * older value may remain after a few lost races. */
static __always_inline void emud_order(struct emud_packet *p, struct emud_state *s,
				       struct emud_counters *count, int may_overtake)
{
	int i;

	for (i = 0; i < EMUD_CLAMP_TRIES; i++) {
		__u64 last = *(volatile __u64 *)&s->last_departure;

		if (p->departure < last) {
			if (may_overtake) {
				count->reordered += p->segments;
			} else {
				p->departure = last;
				count->clamped += p->segments;
			}
			return;
		}
		if (__sync_val_compare_and_swap(&s->last_departure, last, p->departure) ==
		    last)
			return;
	}
}

/* tc-netem's reorder: after gap - 1 delayed packets, each packet is sent
 * without delay with this probability, until one is. Repeating the last
 * decision with probability c correlates them by c and keeps their share. */
static __always_inline int emud_reordered(const struct emud_packet *p,
					  const struct emud_link *l)
{
	struct emud_flow *f = emud_flow(p);

	if (!f || !(l->flags & EMUD_F_REORDER) || !p->numbered)
		return 0;
	if ((__u64)f->delayed + 1 < l->reorder_gap) {
		f->delayed++;
		return 0;
	}
	if (!l->reorder_repeat || !f->reordered ||
	    emud_draw(p, EMUD_FOR_REORDER_REPEAT) >= l->reorder_repeat)
		f->reordered = emud_draw(p, EMUD_FOR_REORDER) < l->reorder ? 2 : 1;
	if (f->reordered != 2)
		return 0;
	f->delayed = 0;
	return 1;
}

static __always_inline int emud_without_delay(const struct emud_packet *p,
					      const struct emud_link *l)
{
	if (!(l->flags & (EMUD_F_SHARE | EMUD_F_REORDER)))
		return 0;
	return emud_reordered(p, l) ||
	       ((l->flags & EMUD_F_SHARE) && emud_draw(p, EMUD_FOR_SHARE) >= l->share);
}

/* Computes p->departure from p->sent and p->draw. */
__noinline int emud_delay_any(struct emud_packet *p)
{
	struct emud_counters *count;
	const struct emud_link *l;
	struct emud_state *s;
	int at_once;

	if (!p || !emud_uses_any(EMUD_FEATURE_DELAYS | EMUD_FEATURE_ALTER))
		return 0;
	l = emud_link(p);
	s = emud_path_state(p);
	count = emud_counters(p);
	if (!l || !s || !count)
		return 0;
	at_once = emud_without_delay(p, l);
	if (at_once)
		count->undelayed += p->segments;
	p->departure = p->sent + (at_once ? 0 : emud_delay_ns(p, l));
	emud_order(p, s, count, at_once || (l->flags & EMUD_F_PER_PACKET));
	return 1;
}

/* Delays that are constant, or random per packet, the most common ones, need no
 * call. */
static __always_inline void emud_delay(struct emud_packet *p, const struct emud_link *l,
				       struct emud_counters *count)
{
	struct emud_state *s;

	if (emud_uses(DELAYS) &&
	    (l->flags & (EMUD_F_SHARE | EMUD_F_REORDER | EMUD_F_CORRELATED) ||
	     p->over.set)) {
		emud_delay_any(p);
		return;
	}
	s = emud_path_state(p);
	if (!s)
		return;
	p->departure = p->sent + emud_own_delay(p, l);
	emud_order(p, s, count, l->flags & EMUD_F_PER_PACKET);
}

/* Returns the histogram class of a delay: one for each unit up to 32 units, and
 * EMUD_HIST_STEPS for each octave beyond. */
static __always_inline __u32 emud_delay_class(__u64 ns)
{
	__u64 units = ns >> EMUD_HIST_UNIT;
	__u32 octave = emud_log2(units | EMUD_HIST_STEPS) - EMUD_HIST_STEPS_LOG;

	__u64 class = octave * EMUD_HIST_STEPS + (units >> octave);

	/* The last one has all longer delays, from 9.8 hours on. */
	return emud_bound(class < EMUD_HIST_LEN ? class : EMUD_HIST_LEN - 1,
			  EMUD_HIST_LEN);
}

static __always_inline void emud_count_delay(const struct emud_packet *p,
					     struct emud_counters *count)
{
	/* The time for which the sender holds a packet back is not a delay of
	 * the link. */
	__u64 delay =
		p->departure - (p->earliest > p->arrival ? p->earliest : p->arrival);

	count->delay_hist[emud_delay_class(delay)] += p->segments;
	count->delay_ns += delay * p->segments;
}

/* The same for a constant delay, whose class the loader has computed (35 instructions). */
static __always_inline void emud_count_constant(const struct emud_packet *p,
						const struct emud_link *l,
						struct emud_counters *count)
{
	if (unlikely(p->departure - p->arrival != l->delay_ns || p->held)) {
		emud_count_delay(p, count);
		return;
	}
	count->delay_hist[emud_bound(l->delay_class, EMUD_HIST_LEN)] += p->segments;
	count->delay_ns += l->delay_ns * p->segments;
}

#endif
