/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * PI: a proportional-integral controller of the length of the queue, sampled at
 * intervals.
 */
#ifndef EMUD_AQM_PI_H
#define EMUD_AQM_PI_H

#include "arrival.h"

#define EMUD_LENGTH_MAX ((1ULL << EMUD_LENGTH_SHIFT) - 1)

static __always_inline __s64 emud_length(__u64 ns)
{
	return ns < EMUD_LENGTH_MAX ? ns : EMUD_LENGTH_MAX;
}

/* Returns the change that two lengths make, times 2^32, rounded down. */
static __always_inline __s64 emud_gains_change(const struct emud_gains *g, __s64 first,
					       __s64 second)
{
	return (g->mult[0] * first + g->mult[1] * second) >> (g->shift & 63);
}

/* x + change, between 0 and `most`, below 2^62. */
static __always_inline __u64 emud_moved(__u64 x, __s64 change, __s64 most)
{
	if (change > most)
		change = most;
	if (change < -most)
		change = -most;
	change += x;
	if (change < 0)
		return 0;
	return change < most ? change : most;
}

/* n times x + change, change not above 0. */
static __always_inline __u64 emud_rested(__u64 x, __s64 change, __u64 n)
{
	__u64 fall = -change;

	if (!fall)
		return x;
	return n > x / fall ? 0 : x - n * fall;
}

/* Takes one sample, or all that are due if the queue was empty at the last one, too. */
static __always_inline void emud_pi_update(const struct emud_pi *pi,
					   struct emud_aqm_state *a, __u64 busy_until,
					   __u64 now)
{
	__s64 length = emud_length(busy_until > a->next ? busy_until - a->next : 0);
	__s64 before = a->pi_before;
	__s64 change = emud_gains_change(&pi->gains, length - (__s64)pi->target_ns,
					 length - before);
	__u64 n = 1;

	if (!length && !before) {
		n = (now - a->next) / pi->tupdate_ns + 1;
		a->pi_probability = emud_rested(a->pi_probability, change, n);
	} else {
		a->pi_probability = emud_moved(a->pi_probability, change, EMUD_Q32);
	}
	a->pi_before = length;
	a->next += n * pi->tupdate_ns;
}

#endif
