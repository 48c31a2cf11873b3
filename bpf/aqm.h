/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * aqm: congestion signals before the queue is full.
 *
 * The queue is a clock, so a packet's sojourn time is known exactly when it
 * arrives, and every manager judges there. That is where all of them but CoDel
 * belong. CoDel judges at the head of the queue: it is given the time at which the
 * packet will be there, arrival + sojourn, so its decisions and their order are
 * those of RFC 8289. It cannot know how many bytes will then be behind the packet:
 * those ahead of it now stand for them.
 *
 * All of this runs under the lock: no helpers. The random draw is derived from
 * the packet's number.
 */
#ifndef EMUD_AQM_H
#define EMUD_AQM_H

#include "aqm/ared.h"
#include "aqm/codel.h"
#include "aqm/pi.h"
#include "aqm/pie.h"
#include "aqm/red.h"
#include "aqm/rem.h"
#include "aqm/rio.h"

#define EMUD_AQM_UPDATES 1024 /* caught up at once */

/* Returns whether the queue manager draws random numbers. */
static __always_inline int emud_aqm_draws(const struct emud_link *l)
{
	return l->queueing.aqm != EMUD_AQM_NONE && l->queueing.aqm != EMUD_AQM_CODEL;
}

/* Returns the time between two updates in ns; 0: there are none. */
static __always_inline __u64 emud_aqm_interval(const struct emud_queueing *q)
{
	if (q->aqm == EMUD_AQM_PIE)
		return q->pie.tupdate_ns;
	if (q->aqm == EMUD_AQM_PI)
		return q->pi.tupdate_ns;
	if (q->aqm == EMUD_AQM_REM)
		return q->rem.tupdate_ns;
	return 0;
}

struct emud_aqm_clock {
	const struct emud_link *link;
	struct emud_state *state;
	__u64 now;
};

/* Makes one update, if it is due. */
static long emud_aqm_step(__u32 i, struct emud_aqm_clock *c)
{
	const struct emud_queueing *q = &c->link->queueing;
	struct emud_state *s = c->state;
	struct emud_aqm_state *a = &s->aqm;
	int due;

	bpf_spin_lock(&s->lock);
	due = a->aqm == q->aqm && a->next <= c->now;
	if (due && q->aqm == EMUD_AQM_PIE)
		emud_pie_update(&q->pie, a, s->busy_until);
	else if (due && q->aqm == EMUD_AQM_PI)
		emud_pi_update(&q->pi, a, s->busy_until, c->now);
	else if (due)
		emud_rem_update(&q->rem, a, s->busy_until, c->now);
	bpf_spin_unlock(&s->lock);
	return !due;
}

/* Makes the updates due since the last packet: between packets the length at every moment
 * is known afterwards, so there is no need for a timer. Before the lock, since the
 * verifier checks the body of a bpf_loop() once, but every iteration of a plain
 * loop. */
static __always_inline void emud_aqm_catch_up(const struct emud_link *l,
					      struct emud_state *s, __u64 now)
{
	struct emud_aqm_clock clock = {
		.link = l,
		.state = s,
		.now = now,
	};

	if (emud_aqm_interval(&l->queueing) && *(volatile __u64 *)&s->aqm.next <= now)
		bpf_loop(EMUD_AQM_UPDATES, emud_aqm_step, &clock, 0);
}

/* Skips the other updates: no packet for a long time, or updates are very frequent. */
static __always_inline void emud_aqm_skip(const struct emud_queueing *q,
					  struct emud_aqm_state *a, __u64 busy_until,
					  __u64 now)
{
	__u64 interval = emud_aqm_interval(q);

	if (!interval || a->next > now)
		return;
	a->next = now + interval;
	if (busy_until <= now)
		a->pie_probability = 0;
}

static __always_inline void emud_aqm_restart(const struct emud_queueing *q,
					     struct emud_aqm_state *a, __u64 now)
{
	a->aqm = q->aqm;
	a->red_count = a->rio_count = -1;
	a->red_average = a->rio_average = 0;
	a->codel_first_above = a->codel_drop_next = 0;
	a->codel_count = a->codel_last_count = 0;
	a->codel_dropping = a->codel_owes = 0;
	a->next = now + emud_aqm_interval(q);
	a->pie_probability = a->pie_accumulated = 0;
	a->pie_delay_old = 0;
	a->pie_burst = EMUD_PIE_BURST_NS;
	a->ared_probability = q->red.probability;
	a->ared_moved = now;
	a->pi_probability = a->pi_before = 0;
	a->rem_price = a->rem_arrived = 0;
	a->rio_queued = 0;
}

/* Draws with one probability, times 2^32. */
static __always_inline int emud_aqm_draw(const struct emud_packet *p, __u64 probability)
{
	return emud_draw(p, EMUD_FOR_AQM) >> 32 < probability;
}

/* Judges a packet with this transmission. REDs count what a full queue drops, too; the
 * others judge what it admits. */
static __always_inline enum emud_verdict
emud_aqm(const struct emud_packet *p, const struct emud_link *l, struct emud_state *s,
	 const struct emud_offer *offer, const struct emud_turn *t)
{
	const struct emud_queueing *q = &l->queueing;
	struct emud_aqm_state *a = &s->aqm;
	int signal = 0, capable = offer->capable;

	if (a->aqm != q->aqm)
		emud_aqm_restart(q, a, p->arrival);
	emud_aqm_skip(q, a, s->busy_until, p->arrival);
	if (q->aqm == EMUD_AQM_RED) {
		signal = emud_red(p, &q->red, a, t->wait, offer->fraction);
	} else if (q->aqm == EMUD_AQM_ARED) {
		signal = emud_ared(p, q, a, t->wait, offer->fraction);
	} else if (q->aqm == EMUD_AQM_RIO) {
		signal = emud_rio(p, q, a, offer, t->wait);
	} else if (q->aqm == EMUD_AQM_CODEL) {
		signal = !t->full &&
			 emud_codel(&q->codel, a, t->wait, p->arrival + t->wait, capable);
	} else if (q->aqm == EMUD_AQM_PIE) {
		signal = !t->full && emud_pie_early(p, &q->pie, a, t->wait);
		capable = capable && emud_pie_marks(a);
	} else if (q->aqm == EMUD_AQM_PI) {
		signal = !t->full && emud_aqm_draw(p, a->pi_probability);
	} else {
		a->rem_arrived += t->sent - p->arrival - t->wait;
		signal = !t->full && emud_aqm_draw(p, offer->fraction);
	}
	if (!signal)
		return EMUD_ADMIT;
	return capable ? EMUD_MARK : EMUD_DROP;
}

#endif
