/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The short path: a plain packet on a link that has a delay, with or without
 * jitter, and independent losses or none (EMUD_SHORT, decided by the loader for
 * each change of the link).
 *
 * The same stages as for every other packet, but only those that have an effect
 * here, on a packet whose figures stay in registers: no reset of struct
 * emud_packet, no link of a rule. A packet that is not plain takes the other
 * path, so the results are equal packet by packet
 * (tests/kernel/classifier/short.rs).
 */
#ifndef EMUD_SHORT_H
#define EMUD_SHORT_H

#include <linux/if_packet.h>
#include "delay.h"
#include "maps.h"
#include "parse.h"
#include "release.h"

/* Not a verdict: the packet needs the other path. */
#define EMUD_NOT_PLAIN 0x100

#define EMUD_IP4_PLAIN 0x45 /* version 4, no options */

/* What emud_parse() finds in a single TCP or UDP packet over IPv4 that nothing sets
 * apart. Returns whether it is one. */
static __always_inline int emud_parse_plain(const struct __sk_buff *skb,
					    struct emud_packet *p)
{
	const void *data = (void *)(long)skb->data;
	const __be16 *proto = data + offsetof(struct ethhdr, h_proto);
	const struct iphdr *ip = data + ETH_HLEN;
	const __u32 *ports = (const void *)(ip + 1);

	if ((void *)(ports + 1) > (void *)(long)skb->data_end || skb->gso_size ||
	    skb->vlan_present || *proto != bpf_htons(ETH_P_IP) ||
	    *(const __u8 *)ip != EMUD_IP4_PLAIN || ip->frag_off & bpf_htons(0x3fff))
		return 0;
	p->l4_proto = ip->protocol;
	if (p->l4_proto != IPPROTO_TCP &&
	    (p->l4_proto != IPPROTO_UDP || *ports >> 16 == bpf_htons(EMUD_PTP_EVENT)))
		return 0;
	p->segments = 1;
	p->wire_len = skb->len;
	/* Draws and fq distinguish flows. */
	if (emud_by_fq() || emud_uses_any(EMUD_FEATURE_JITTER | EMUD_FEATURE_LOSS))
		emud_is_flow(p, emud_absorb(4, ((__u64)ip->saddr << 32) | ip->daddr),
			     p->l4_proto, *ports);
	return 1;
}

/* Returns whether the link needs packet numbers for its draws. */
static __always_inline int emud_short_draws(const struct emud_link *l)
{
	return (emud_uses(LOSS) && l->loss_model) ||
	       (emud_uses(JITTER) && l->flags & EMUD_F_PER_PACKET);
}

static __always_inline int emud_short_stages(struct __sk_buff *skb, struct emud_packet *p,
					     const struct emud_link *l, __u64 now)
{
	struct emud_counters *count = emud_counters(p);
	struct emud_state *s = emud_path_state(p);
	int verdict;

	if (!s || !count)
		return TC_ACT_UNSPEC;
	count->packets++;
	count->bytes += p->wire_len;
	p->arrival = p->sent = now;
	p->earliest = emud_earliest(skb, p->direction, now);
	if (emud_short_draws(l))
		emud_number(p, l, count);
	if (emud_uses(LOSS) && l->loss_model &&
	    emud_draw(p, EMUD_FOR_LOSS) < l->loss.probability) {
		count->lost++;
		return TC_ACT_STOLEN;
	}
	p->departure = p->sent + emud_own_delay(p, l);
	emud_order(p, s, count, l->flags & EMUD_F_PER_PACKET);
	emud_hold_back(p);
	verdict = emud_release_short(skb, p, l, count);
	if (likely(!p->passed)) {
		emud_count_constant(p, l, count);
		count->sent_bytes += p->wire_len;
	}
	return verdict;
}

/* Returns a verdict, or EMUD_NOT_PLAIN. */
static __always_inline int emud_short(struct __sk_buff *skb, __u32 direction,
				      __u32 scratch, __u32 slot)
{
	struct emud_packet p = {.direction = direction,
				.scratch = scratch,
				.path = direction,
				.slot = slot};
	const struct emud_link *l = emud_link(&p);

	if (!emud_uses(SHORT) || !l || skb->protocol != bpf_htons(ETH_P_IP) ||
	    skb->pkt_type == PACKET_LOOPBACK || !emud_parse_plain(skb, &p))
		return EMUD_NOT_PLAIN;
	return emud_short_stages(skb, &p, l, emud_now(skb));
}

/* Global, so that the verifier checks it once and its stack is none of that of the
 * other path: with all features the two have 544 bytes together, and 512 are permitted. */
__noinline int emud_short_apart(struct __sk_buff *skb, __u32 scratch, __u32 slot)
{
	if (EMUD_ONLY_QDISC)
		return EMUD_NOT_PLAIN;
	return emud_short(skb, scratch % EMUD_DIRECTIONS, scratch, slot);
}

#endif
