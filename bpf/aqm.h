/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * aqm: congestion signals before the queue is full.
 *
 * The queue is a clock, so the sojourn time of a packet is known exactly when
 * it arrives, and every queue manager decides then. RED and PIE are specified
 * for that point. CoDel decides at the head of the queue: it gets the time at
 * which the packet will be there, arrival + sojourn, so its decisions and their
 * order are those of RFC 8289. It cannot know how many bytes will then be
 * behind the packet and uses the bytes ahead of it now instead.
 *
 * All of this runs under the lock: no helpers. The random draw is derived from
 * the packet's number.
 */
#ifndef EMUD_AQM_H
#define EMUD_AQM_H

#include "maps.h"
#include "rng.h"

#define EMUD_Q32 (1ULL << 32)

enum emud_verdict {
	EMUD_ADMIT,
	EMUD_MARK,
	EMUD_DROP, /* by a manager */
	EMUD_FULL,
	EMUD_AGAIN, /* another CPU has changed the queue in between */
};

/* What is computed for a packet before the lock, under which no function call
 * is allowed. */
struct emud_offer {
	__u64 len; /* on the wire */
	__u64 decay; /* emud_red_decay() */
	__u64 busy_limit; /* ns */
	__u32 segments; /* counted one by one */
	__u32 packets; /* limit; 0: any */
	__u32 behind; /* the packet this far before the tail must have left */
	__u64 wait_limit; /* ns */
	__u32 limited; /* there is a limit in packets */
	__u32 ring; /* first piece of its ring */
	__u32 rings; /* number of pieces */
	__u32 capable; /* ECN-capable */
};

/* x times factor / 2^32, rounded; factor is at most 2^32. */
static __always_inline __u64 emud_scale(__u64 x, __u64 factor)
{
	return (x >> 32) * factor + (((x & 0xffffffff) * factor + (1ULL << 31)) >> 32);
}

/* Returns whether the queue manager draws random numbers. */
static __always_inline int emud_aqm_draws(const struct emud_link *l)
{
	return l->queueing.aqm == EMUD_AQM_RED || l->queueing.aqm == EMUD_AQM_PIE;
}

/* RED */

#define EMUD_RED_SHIFT 16
#define EMUD_RED_WAIT_MAX ((1ULL << 46) - 1) /* shifted, still in 64 bits */

/* factor^n; both are fixed-point numbers times 2^32. */
__noinline __u64 emud_power(__u64 factor, __u32 n)
{
	__u64 power = EMUD_Q32;
	int i;

	for (i = 0; i < 32; i++) {
		if (!n)
			break;
		if (n & 1)
			power = emud_scale(power, factor);
		factor = emud_scale(factor, factor);
		n >>= 1;
	}
	return power;
}

/* The share of the average that remains after an idle time, times 2^32: the
 * idle time counts as the number of small packets that the wire could have
 * sent, each of which finds an empty queue. The next arrival ends the idle
 * time. */
static __always_inline __u64 emud_red_decay(const struct emud_link *l,
					    const struct emud_state *s, __u64 now)
{
	__u64 since = *(volatile __u64 *)&s->busy_until, packets;

	if (l->queueing.aqm != EMUD_AQM_RED || since >= now || !l->queueing.red.packet_ns)
		return EMUD_Q32;
	packets = (now - since) / l->queueing.red.packet_ns;
	return emud_power(EMUD_Q32 - l->queueing.red.weight,
			  packets < 0xffffffff ? packets : 0xffffffff);
}

static __always_inline void emud_red_average(const struct emud_red *red,
					     struct emud_aqm_state *a, __u64 wait,
					     __u64 decay)
{
	__u64 length = (wait < EMUD_RED_WAIT_MAX ? wait : EMUD_RED_WAIT_MAX)
		       << EMUD_RED_SHIFT;

	if (!wait)
		a->red_average = emud_scale(a->red_average, decay);
	else if (length > a->red_average)
		a->red_average += emud_scale(length - a->red_average, red->weight);
	else
		a->red_average -= emud_scale(a->red_average - length, red->weight);
}

/* The paper's second method: the distance between two signals is uniform and
 * not geometric. Probabilities are times 2^32. */
static __always_inline int emud_red_draw(const struct emud_packet *p,
					 const struct emud_red *red,
					 struct emud_aqm_state *a, __u64 average)
{
	__u64 range = red->max_ns - red->min_ns;
	/* average < max_ns < 2^42, so this is below 2^20 */
	__u64 share = range ? ((average - red->min_ns) << 20) / range : 0;
	__u64 probability = (red->probability * share) >> 20;
	__u64 used = ++a->red_count * probability;

	if (used >= EMUD_Q32 - probability)
		return 1;
	return emud_draw(p, EMUD_FOR_AQM) >> 32 < (probability << 32) / (EMUD_Q32 - used);
}

static __always_inline int emud_red(const struct emud_packet *p,
				    const struct emud_red *red, struct emud_aqm_state *a,
				    __u64 wait, __u64 decay)
{
	__u64 average;

	emud_red_average(red, a, wait, decay);
	average = a->red_average >> EMUD_RED_SHIFT;
	if (average < red->min_ns) {
		a->red_count = -1;
		return 0;
	}
	if (average < red->max_ns && !emud_red_draw(p, red, a, average))
		return 0;
	a->red_count = 0;
	return 1;
}

/* CoDel */

/* x / sqrt(n) for n > 0, rounded. Uses Newton steps for the inverse root, like
 * the kernel's codel, but until they converge (the kernel makes one step per
 * drop). */
static __always_inline __u64 emud_over_sqrt(__u64 x, __u32 n)
{
	__u32 half = emud_log2(n) >> 1;
	__u64 m = (__u64)n << (30 - 2 * half); /* 1 <= m < 4, times 2^30 */
	__u64 root = 0x52000000; /* 0.64, times 2^31 */
	int i;

	for (i = 0; i < 6; i++) {
		__u64 square = (root * root) >> 31;

		root = (root * ((3ULL << 31) - ((m * square) >> 30))) >> 32;
	}
	return (emud_scale(x, root << 1) + ((1ULL << half) >> 1)) >> half;
}

/* Returns whether the sojourn time has been above the target for an interval. */
static __always_inline int emud_codel_above(const struct emud_codel *c,
					    struct emud_aqm_state *a, __u64 wait,
					    __u64 now)
{
	if (wait < c->target_ns || wait <= c->packet_ns) {
		a->codel_first_above = 0;
		return 0;
	}
	if (!a->codel_first_above) {
		a->codel_first_above = now + c->interval_ns;
		return 0;
	}
	return now >= a->codel_first_above;
}

static __always_inline void emud_codel_begin(const struct emud_codel *c,
					     struct emud_aqm_state *a, __u64 now)
{
	__u32 since = a->codel_count - a->codel_last_count;
	__s64 ago = now - a->codel_drop_next;

	a->codel_count = since > 1 && ago < (__s64)(16 * c->interval_ns) ? since : 1;
	a->codel_last_count = a->codel_count;
	a->codel_drop_next = now + emud_over_sqrt(c->interval_ns, a->codel_count);
	a->codel_dropping = 1;
	a->codel_owes = 0;
}

static __always_inline void emud_codel_move_on(const struct emud_codel *c,
					       struct emud_aqm_state *a)
{
	a->codel_drop_next += emud_over_sqrt(c->interval_ns, a->codel_count);
	a->codel_owes = 0;
}

static __always_inline int emud_codel(const struct emud_codel *c,
				      struct emud_aqm_state *a, __u64 wait, __u64 now,
				      int capable)
{
	int above = emud_codel_above(c, a, wait, now);

	if (!above) {
		a->codel_dropping = 0;
		return 0;
	}
	if (!a->codel_dropping) {
		emud_codel_begin(c, a, now);
		return 1;
	}
	if (a->codel_owes)
		emud_codel_move_on(c, a);
	if (now < a->codel_drop_next)
		return 0;
	a->codel_count++;
	a->codel_owes = 1;
	if (capable)
		emud_codel_move_on(c, a);
	return 1;
}

/* PIE */

#define EMUD_PIE_ONE (1ULL << EMUD_PIE_SHIFT)
#define EMUD_PIE_PART(n) (EMUD_PIE_ONE / (n))
#define EMUD_PIE_DELAY_MAX ((1ULL << EMUD_PIE_DELAY_SHIFT) - 1)
#define EMUD_PIE_BURST_NS 150000000ULL
#define EMUD_PIE_UPDATES 1024 /* caught up in one call */

static __always_inline __u64 emud_pie_delay(__u64 delay)
{
	return delay < EMUD_PIE_DELAY_MAX ? delay : EMUD_PIE_DELAY_MAX;
}

/* Changes a small probability in small steps (RFC 8033, section 4.2). */
static __always_inline __s64 emud_pie_tuned(__s64 change, __u64 probability)
{
	if (probability < EMUD_PIE_PART(1000000))
		return change >> 11;
	if (probability < EMUD_PIE_PART(100000))
		return change >> 9;
	if (probability < EMUD_PIE_PART(10000))
		return change >> 7;
	if (probability < EMUD_PIE_PART(1000))
		return change >> 5;
	if (probability < EMUD_PIE_PART(100))
		return change >> 3;
	if (probability < EMUD_PIE_PART(10))
		return change >> 1;
	return change < (__s64)EMUD_PIE_PART(50) ? change : (__s64)EMUD_PIE_PART(50);
}

static __always_inline void emud_pie_update(const struct emud_pie *pie,
					    struct emud_aqm_state *a, __u64 busy_until)
{
	__u64 delay = busy_until > a->pie_next ? busy_until - a->pie_next : 0;
	__s64 change, probability = a->pie_probability;

	delay = emud_pie_delay(delay);
	change = (__s64)(pie->alpha * (delay - pie->target_ns) +
			 pie->beta * (delay - a->pie_delay_old)) >>
		 EMUD_PIE_GAIN_SHIFT;
	probability += emud_pie_tuned(change, probability);
	if (!delay && !a->pie_delay_old)
		probability -= probability >> 6;
	if (probability < 0)
		probability = 0;
	if (probability > (__s64)EMUD_PIE_ONE)
		probability = EMUD_PIE_ONE;
	a->pie_probability = probability;
	a->pie_delay_old = delay;
	a->pie_burst -= a->pie_burst < pie->tupdate_ns ? a->pie_burst : pie->tupdate_ns;
	a->pie_next += pie->tupdate_ns;
}

struct emud_pie_clock {
	const struct emud_link *link;
	struct emud_state *state;
	__u64 now;
};

/* Makes one update if it is due. */
static long emud_pie_step(__u32 i, struct emud_pie_clock *c)
{
	struct emud_aqm_state *a = &c->state->aqm;
	int due;

	bpf_spin_lock(&c->state->lock);
	due = a->aqm == EMUD_AQM_PIE && a->pie_next <= c->now;
	if (due)
		emud_pie_update(&c->link->queueing.pie, a, c->state->busy_until);
	bpf_spin_unlock(&c->state->lock);
	return !due;
}

/* Makes the updates that are due since the last packet. The delay at every
 * moment between two packets is known afterwards, so no timer is needed. Runs
 * before the lock: the verifier checks the body of a bpf_loop() once, but every
 * iteration of a plain loop. */
static __always_inline void emud_pie_catch_up(const struct emud_link *l,
					      struct emud_state *s, __u64 now)
{
	struct emud_pie_clock clock = {
		.link = l,
		.state = s,
		.now = now,
	};

	if (l->queueing.aqm == EMUD_AQM_PIE && *(volatile __u64 *)&s->aqm.pie_next <= now)
		bpf_loop(EMUD_PIE_UPDATES, emud_pie_step, &clock, 0);
}

/* Updates are still due: no packet arrived for a long time. */
static __always_inline void emud_pie_skip(const struct emud_pie *pie,
					  struct emud_aqm_state *a, __u64 busy_until,
					  __u64 now)
{
	if (a->pie_next > now)
		return;
	a->pie_next = now + pie->tupdate_ns;
	if (busy_until <= now)
		a->pie_probability = 0;
}

static __always_inline int emud_pie_early(const struct emud_packet *p,
					  const struct emud_pie *pie,
					  struct emud_aqm_state *a, __u64 wait)
{
	int calm = a->pie_delay_old < pie->target_ns / 2;
	__u64 probability = a->pie_probability;

	if (!probability && calm && wait < pie->target_ns / 2)
		a->pie_burst = EMUD_PIE_BURST_NS;
	if (a->pie_burst)
		return 0;
	if ((calm && probability < EMUD_PIE_PART(5)) || wait <= pie->packets_ns)
		return 0;
	if (!probability)
		a->pie_accumulated = 0;
	a->pie_accumulated += probability;
	if (a->pie_accumulated < EMUD_PIE_ONE * 17 / 20)
		return 0;
	if (a->pie_accumulated < EMUD_PIE_ONE * 17 / 2 &&
	    emud_draw(p, EMUD_FOR_AQM) >> (64 - EMUD_PIE_SHIFT) >= probability)
		return 0;
	a->pie_accumulated = 0;
	return 1;
}

/* At a high probability, marking does not help. */
static __always_inline int emud_pie_marks(const struct emud_aqm_state *a)
{
	return a->pie_probability < EMUD_PIE_PART(10);
}

static __always_inline void emud_aqm_restart(const struct emud_link *l,
					     struct emud_aqm_state *a, __u64 now)
{
	a->aqm = l->queueing.aqm;
	a->red_count = -1;
	a->red_average = 0;
	a->codel_first_above = a->codel_drop_next = 0;
	a->codel_count = a->codel_last_count = 0;
	a->codel_dropping = a->codel_owes = 0;
	a->pie_next = now + l->queueing.pie.tupdate_ns;
	a->pie_probability = a->pie_accumulated = 0;
	a->pie_delay_old = 0;
	a->pie_burst = EMUD_PIE_BURST_NS;
}

/* Decides on a packet that will wait for `wait`. RED also counts packets that a
 * full queue drops; the others see admitted packets only. */
static __always_inline enum emud_verdict
emud_aqm(const struct emud_packet *p, const struct emud_link *l, struct emud_state *s,
	 const struct emud_offer *offer, __u64 wait, int full)
{
	struct emud_aqm_state *a = &s->aqm;
	int signal = 0, capable = offer->capable;

	if (a->aqm != l->queueing.aqm)
		emud_aqm_restart(l, a, p->arrival);
	if (l->queueing.aqm == EMUD_AQM_RED) {
		signal = emud_red(p, &l->queueing.red, a, wait, offer->decay);
	} else if (l->queueing.aqm == EMUD_AQM_CODEL) {
		signal = !full && emud_codel(&l->queueing.codel, a, wait,
					     p->arrival + wait, capable);
	} else if (l->queueing.aqm == EMUD_AQM_PIE) {
		emud_pie_skip(&l->queueing.pie, a, s->busy_until, p->arrival);
		signal = !full && emud_pie_early(p, &l->queueing.pie, a, wait);
		capable = capable && emud_pie_marks(a);
	}
	if (!signal)
		return EMUD_ADMIT;
	return capable ? EMUD_MARK : EMUD_DROP;
}

#endif
