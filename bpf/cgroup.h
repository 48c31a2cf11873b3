/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cgroup: which control groups of the rules a packet belongs to (match.cgroup).
 *
 * On egress the packet's socket says it (bpf_skb_under_cgroup()). The classifier at
 * clsact is the first to see a packet, so the socket is there with every engine; a
 * packet that returns from a clone, an ifb or a TAP is not matched again. On ingress
 * no socket is known yet: a packet takes the groups of its flow, which is the
 * reversed 5-tuple of what was sent.
 *
 * Without a socket: forwarded packets, since ip_rcv() drops it, and time-wait sockets.
 * The sockets of the kernel itself (resets, ICMP errors) have the group of the
 * process that created the network namespace, which says nothing. All these take the
 * groups of their flow, and are counted if it is unknown.
 */
#ifndef EMUD_CGROUP_H
#define EMUD_CGROUP_H

#include "core.h"
#include "parse.h"
#include "rng.h"

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, EMUD_CGROUPS_MAX *EMUD_GENERATIONS);
	__type(key, __u32);
	__type(value, __u32);
} emud_cgroups SEC(".maps");
EMUD_MAP(emud_masks, ARRAY, EMUD_DIRECTIONS *EMUD_GENERATIONS, struct emud_masks);
EMUD_MAP(emud_learned, ARRAY, 1, struct emud_learned);

#define EMUD_ICMP_ECHO_ID 4 /* its offset; the same in ICMPv6 */

/* A flow whose groups are not known. */
#define EMUD_UNKNOWN (1U << 31)
/* Another flow was forgotten for this one. */
#define EMUD_FORGOT (1U << 30)
/* Not of a flow whose answers can be recognised. */
#define EMUD_NO_FLOW (1U << 29)

/* Returns the groups of the packet's socket, or EMUD_UNKNOWN. */
__noinline __u32 emud_sender(struct __sk_buff *skb, __u32 base, __u32 scratch)
{
	const struct emud_masks *masks;
	struct bpf_sock *sk = skb->sk;
	__u32 i, first, all = 0;
	long is;

	if (!emud_uses(CGROUPS) || !sk)
		return EMUD_UNKNOWN;
	/* A request (SYN-ACK) is no full socket; the helper takes its listener's. */
	sk = bpf_sk_fullsock(sk);
	if (sk && !emud_test_run && emud_of_kernel(sk, scratch))
		return EMUD_UNKNOWN;
	masks = EMUD_LOOKUP(emud_masks, base);
	if (!masks)
		return EMUD_UNKNOWN;
	first = (base & (EMUD_GENERATIONS - 1)) * EMUD_CGROUPS_MAX;
	for (i = 0; i < EMUD_CGROUPS_MAX; i++) {
		if (!masks->cgroup[i])
			break;
		is = bpf_skb_under_cgroup(skb, &emud_cgroups, first + i);
		if (is < 0)
			return EMUD_UNKNOWN;
		all |= (is & 1) << i;
	}
	return all;
}

/*
 * Learns the groups of a flow that was sent, or returns those that were learned if
 * `sent` is EMUD_UNKNOWN. Only flows of groups are in the table. A full set forgets
 * the flow that was unused longest. `list` identifies the list of groups: numbers
 * learned by another list mean other groups.
 */
__noinline __u32 emud_learn(__u64 key, __u32 sent, __u32 list, __u64 now)
{
	struct emud_learned *set;
	__u32 i, way = 0, found = EMUD_LEARNED_WAYS, out = sent;
	__u64 oldest = ~0ULL;

	if (!emud_layout.learned || !emud_uses(CGROUPS))
		return sent;
	set = EMUD_LOOKUP(emud_learned,
			  (key >> 32) & (emud_layout.learned / EMUD_LEARNED_WAYS - 1));
	if (!set)
		return sent;
	bpf_spin_lock(&set->lock);
	for (i = 0; i < EMUD_LEARNED_WAYS; i++) {
		if (set->way[i].key == key)
			found = i;
		if (set->way[i].seen < oldest) {
			oldest = set->way[i].seen;
			way = i;
		}
	}
	if (found < EMUD_LEARNED_WAYS) {
		i = emud_bound(found, EMUD_LEARNED_WAYS);
		if (sent != EMUD_UNKNOWN) {
			set->way[i].cgroups = sent;
			set->way[i].list = list;
		} else if (set->way[i].list == list) {
			out = set->way[i].cgroups;
		}
		set->way[i].seen = now;
		/* Its ports belong to another program now. */
		if (!sent)
			set->way[i].key = set->way[i].seen = 0;
	} else if (sent && sent != EMUD_UNKNOWN) {
		i = emud_bound(way, EMUD_LEARNED_WAYS);
		if (set->way[i].key)
			out |= EMUD_FORGOT;
		set->way[i].key = key;
		set->way[i].cgroups = sent;
		set->way[i].list = list;
		set->way[i].seen = now;
	}
	bpf_spin_unlock(&set->lock);
	return out;
}

static __always_inline int emud_is_echo(const struct emud_packet *p,
					const struct emud_key *k)
{
	if (p->l4_proto == IPPROTO_ICMP)
		return k->icmp_type == 0 || k->icmp_type == 8;
	return p->l4_proto == IPPROTO_ICMPV6 &&
	       (k->icmp_type == 128 || k->icmp_type == 129);
}

/* Returns the ports of this host and of the other one; the identifier stands for both in
 * an echo. ~0: the packet has none. */
static __always_inline __u64 emud_ports_of_flow(struct __sk_buff *skb,
						const struct emud_packet *p,
						const struct emud_key *k)
{
	__u16 near = k->source_port, far = k->destination_port;

	if (k->has & EMUD_HAS_PORTS) {
		if (p->direction == EMUD_DOWN) {
			near = k->destination_port;
			far = k->source_port;
		}
		return (__u32)near << 16 | far;
	}
	if (!(k->has & EMUD_HAS_ICMP) || !emud_is_echo(p, k) ||
	    bpf_skb_load_bytes(skb, p->l4_off + EMUD_ICMP_ECHO_ID, &near, sizeof(near)))
		return ~0ULL;
	return near;
}

/* Returns the same for a packet and the answer to it. Never 0, which is a free way. */
static __always_inline __u64 emud_learned_key(const struct emud_packet *p,
					      const struct emud_key *k, __u64 ports)
{
	const __u64 *near = k->source, *far = k->destination;
	__u64 key = emud_absorb(EMUD_FOR_CGROUP, ports << 8 | p->l4_proto);

	if (p->direction == EMUD_DOWN) {
		near = k->destination;
		far = k->source;
	}
	key = emud_absorb(emud_absorb(key, near[0]), near[1]);
	return emud_mix(emud_absorb(emud_absorb(key, far[0]), far[1])) | 1;
}

/* Returns the groups of a packet, with the flags above. A global function. */
__noinline __u32 emud_cgroups_of(struct __sk_buff *skb, struct emud_packet *p,
				 struct emud_key *k)
{
	const struct emud_masks *masks;
	__u32 groups = EMUD_UNKNOWN;
	__u64 ports;

	if (!p || !k || !emud_uses(CGROUPS))
		return EMUD_UNKNOWN;
	masks = EMUD_LOOKUP(emud_masks, p->base);
	if (!masks)
		return EMUD_UNKNOWN;
	if (p->direction == EMUD_UP)
		groups = emud_sender(skb, p->base, p->scratch);
	ports = emud_ports_of_flow(skb, p, k);
	if (ports == ~0ULL)
		return groups | EMUD_NO_FLOW;
	return emud_learn(emud_learned_key(p, k, ports), groups, masks->list,
			  bpf_ktime_get_ns());
}

/* Fills in the groups of a packet. Counts at the profile's own link, whatever link the
 * packet will take. */
static __always_inline void emud_key_cgroups(struct __sk_buff *skb, struct emud_packet *p,
					     struct emud_key *k)
{
	struct emud_counters *count = EMUD_LOOKUP(emud_counts, p->scratch);
	__u32 groups = emud_cgroups_of(skb, p, k);

	k->cgroups = groups;
	if (!count)
		return;
	if (groups & EMUD_FORGOT)
		count->learned_forgotten++;
	/* A flow that this host has not begun has no group. */
	if (groups & EMUD_UNKNOWN && p->is_ip && !p->is_neighbour &&
	    (p->direction == EMUD_UP || groups & EMUD_NO_FLOW))
		count->unattributed += p->segments;
}

#endif
