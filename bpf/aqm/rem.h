/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * REM: a price that rises with the length of the queue and with arrivals above the
 * capacity, changed at intervals, and a probability that is exponential in it.
 */
#ifndef EMUD_AQM_REM_H
#define EMUD_AQM_REM_H

#include "arrival.h"
#include "pi.h"

#define EMUD_NAT_STEP 4294901761ULL /* exp(-2^-16), times 2^32 */
#define EMUD_NATS_MAX (32LL << 32) /* 1 - exp(-x) is 1 there */

/* Makes one change, or all that are due if no packet came and the queue was empty. */
static __always_inline void emud_rem_update(const struct emud_rem *rem,
					    struct emud_aqm_state *a, __u64 busy_until,
					    __u64 now)
{
	__s64 length = emud_length(busy_until > a->next ? busy_until - a->next : 0);
	__s64 more = emud_length(a->rem_arrived) - emud_length(rem->tupdate_ns);
	__s64 change =
		emud_gains_change(&rem->gains, length - (__s64)rem->target_ns, more);
	__u64 n = 1;

	if (!length && !a->rem_arrived) {
		n = (now - a->next) / rem->tupdate_ns + 1;
		a->rem_price = emud_rested(a->rem_price, change, n);
	} else {
		a->rem_price = emud_moved(a->rem_price, change, EMUD_NATS_MAX);
	}
	a->rem_arrived = 0;
	a->next += n * rem->tupdate_ns;
}

/* Returns the probability of a drop, times 2^32. A call, so before the lock. */
static __always_inline __u64 emud_rem_probability(const struct emud_link *l,
						  const struct emud_state *s)
{
	__u64 price = *(volatile __u64 *)&s->aqm.rem_price;

	if (l->queueing.aqm != EMUD_AQM_REM || s->aqm.aqm != EMUD_AQM_REM)
		return 0;
	return EMUD_Q32 - emud_power(EMUD_NAT_STEP, price >> 16);
}

#endif
