/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * release: hands the packet to the engine that holds it until its departure
 * time.
 */
#ifndef EMUD_RELEASE_H
#define EMUD_RELEASE_H

#include "release_hold.h"
#include "release_stamp.h"

static __always_inline int emud_release(struct __sk_buff *skb, struct emud_packet *p,
					const struct emud_link *l,
					struct emud_counters *count)
{
	const struct emud_exit e = {
		.skb = skb,
		.p = p,
		.link = l,
		.count = count,
	};

	if (emud_releases(HOLD) && l->release == EMUD_RELEASE_HOLD)
		return emud_release_hold(&e);
	return emud_release_stamped(&e);
}

/* The same for fq and emud's qdisc: the loader chooses the short path for no other engine. */
static __always_inline int emud_release_short(struct __sk_buff *skb,
					      struct emud_packet *p,
					      const struct emud_link *l,
					      struct emud_counters *count)
{
	const struct emud_exit e = {
		.skb = skb,
		.p = p,
		.link = l,
		.count = count,
	};

	return emud_release_stamped(&e);
}

#endif
