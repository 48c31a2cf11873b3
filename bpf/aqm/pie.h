/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * PIE: drops with a probability that follows the delay, sampled at intervals.
 */
#ifndef EMUD_AQM_PIE_H
#define EMUD_AQM_PIE_H

#include "arrival.h"
#include "../rng.h"

#define EMUD_PIE_ONE (1ULL << EMUD_PIE_SHIFT)
#define EMUD_PIE_PART(n) (EMUD_PIE_ONE / (n))
#define EMUD_PIE_DELAY_MAX ((1ULL << EMUD_PIE_DELAY_SHIFT) - 1)
#define EMUD_PIE_BURST_NS 150000000ULL

static __always_inline __u64 emud_pie_delay(__u64 delay)
{
	return delay < EMUD_PIE_DELAY_MAX ? delay : EMUD_PIE_DELAY_MAX;
}

/* Small probabilities change in small steps. */
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
	__u64 delay = busy_until > a->next ? busy_until - a->next : 0;
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
	a->next += pie->tupdate_ns;
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

/* A high probability means that marking does not help. */
static __always_inline int emud_pie_marks(const struct emud_aqm_state *a)
{
	return a->pie_probability < EMUD_PIE_PART(10);
}

#endif
