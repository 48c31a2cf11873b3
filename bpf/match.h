/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * match: chooses the link that a packet takes.
 *
 * Rules are found by tuple space search (Srinivasan, Suri, Varghese: "Packet
 * classification using tuple space search", SIGCOMM 1999): rules that match on
 * the same bits of a packet are in one hash table, so a packet costs one lookup
 * for each distinct mask, independent of the number of rules. Masks are sorted
 * by their first rule: the search ends when the rule found precedes all rules
 * of the remaining masks. The generation is part of a rule's key, so both
 * generations are in one map.
 *
 * A pair of addresses (the matrix) costs one more lookup. It has separate
 * figures in two halves, one of which is active.
 *
 * Without rules and matrix nothing here is called.
 *
 * Longer than 400 lines: rules, pairs and instances share the key of a packet.
 */
#ifndef EMUD_MATCH_H
#define EMUD_MATCH_H

#include "cgroup.h"
#include "dns.h"
#include "maps.h"
#include "parse.h"
#include "rng.h"

#ifndef BPF_F_NO_PREALLOC
#define BPF_F_NO_PREALLOC 1
#endif

#define EMUD_HASH(name_, len_, key_, value_)          \
	struct {                                      \
		__uint(type, BPF_MAP_TYPE_HASH);      \
		__uint(map_flags, BPF_F_NO_PREALLOC); \
		__uint(max_entries, len_);            \
		__type(key, key_);                    \
		__type(value, value_);                \
	} name_ SEC(".maps")

EMUD_HASH(emud_rules, 1, struct emud_key, struct emud_rule);
EMUD_MAP(emud_hits, PERCPU_ARRAY, 1, __u64);
EMUD_MAP(emud_instances, ARRAY, 1, struct emud_instances);
EMUD_HASH(emud_pair_index, 1, struct emud_pair_key, __u32);
EMUD_MAP(emud_pairs, ARRAY, 1, struct emud_pair);

#define EMUD_VLAN_ID 0xfff
#define EMUD_NO_PLACE (~0ULL)

typedef __u64 __attribute__((may_alias)) emud_word;
typedef __u32 __attribute__((may_alias)) emud_half_word;

struct emud_search {
	struct emud_key key;
	__u64 place; /* of the rule found so far */
	__u32 base; /* generation and direction of the masks */
	__u32 link;
	__u32 per;
	__u32 service;
};

static __always_inline void emud_key_l2(struct __sk_buff *skb,
					const struct emud_packet *p, struct emud_key *k)
{
	struct emud_cursor c = emud_cursor(skb, 0);
	struct ethhdr *eth = emud_at(&c, sizeof(*eth));
	struct emud_vlan *tag;

	if (!eth)
		return;
	__builtin_memcpy(k->destination_mac, eth->h_dest, sizeof(k->destination_mac));
	__builtin_memcpy(k->source_mac, eth->h_source, sizeof(k->source_mac));
	k->has |= EMUD_HAS_MAC;
	if (skb->vlan_present || p->l3_off < ETH_HLEN + sizeof(*tag))
		return;
	c.off = ETH_HLEN;
	tag = emud_at(&c, sizeof(*tag));
	if (!tag)
		return;
	k->vlan = bpf_ntohs(tag->tci) & EMUD_VLAN_ID;
	k->has |= EMUD_HAS_VLAN;
}

static __always_inline void emud_key_ip(struct __sk_buff *skb,
					const struct emud_packet *p, struct emud_key *k)
{
	struct emud_cursor c = emud_cursor_l3(skb, p);
	struct iphdr *ip = emud_at(&c, sizeof(*ip));
	struct ipv6hdr *ip6;

	if (!ip)
		return;
	k->has |= EMUD_HAS_IP;
	k->protocol = p->l4_proto;
	if (ip->version == 4) {
		k->tos = ip->tos;
		*(emud_half_word *)k->source = ip->saddr;
		*(emud_half_word *)k->destination = ip->daddr;
		return;
	}
	ip6 = emud_at(&c, sizeof(*ip6));
	if (!ip6)
		return;
	k->has |= EMUD_HAS_IP6;
	k->tos = ip6->priority << 4 | ip6->flow_lbl[0] >> 4;
	__builtin_memcpy(k->source, &ip6->saddr, sizeof(k->source));
	__builtin_memcpy(k->destination, &ip6->daddr, sizeof(k->destination));
}

/* Loaded with a helper: extension headers may be longer than the part that was
 * pulled in. */
static __always_inline void emud_key_l4(struct __sk_buff *skb,
					const struct emud_packet *p, struct emud_key *k)
{
	__be16 ports[2];

	switch (p->l4_proto) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
	case IPPROTO_SCTP:
	case IPPROTO_DCCP:
	case IPPROTO_UDPLITE:
		if (bpf_skb_load_bytes(skb, p->l4_off, ports, sizeof(ports)))
			return;
		k->source_port = ports[0];
		k->destination_port = ports[1];
		k->has |= EMUD_HAS_PORTS;
		return;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		if (!bpf_skb_load_bytes(skb, p->l4_off, &k->icmp_type,
					sizeof(k->icmp_type)))
			k->has |= EMUD_HAS_ICMP;
	}
}

/* Fills in every field that a rule can match on. */
__noinline int emud_key_of(struct __sk_buff *skb, struct emud_packet *p,
			   struct emud_key *k)
{
	const struct emud_link *l;

	if (!p || !k || !emud_uses(MATCH))
		return 0;
	l = emud_link(p);
	if (!l)
		return 0;
	__builtin_memset(k, 0, sizeof(*k));
	k->mark = skb->mark;
	if (!(l->flags & EMUD_F_L3))
		emud_key_l2(skb, p, k);
	if (skb->vlan_present) {
		k->vlan = skb->vlan_tci & EMUD_VLAN_ID;
		k->has |= EMUD_HAS_VLAN;
	}
	if (!p->is_ip)
		return 1;
	emud_key_ip(skb, p, k);
	if (p->l4_off)
		emud_key_l4(skb, p, k);
	return 1;
}

/* Searches the rules of mask `i`. Returns false if no other mask can hold a
 * rule that precedes the one found. */
__noinline int emud_search_mask(struct emud_search *s, __u32 i)
{
	const struct emud_masks *masks;
	const struct emud_rule *rule;
	const emud_word *key, *bits;
	struct emud_key masked;
	__u32 word;

	if (!s || !emud_uses(MATCH))
		return 0;
	masks = EMUD_LOOKUP(emud_masks, s->base);
	if (!masks || i >= masks->count)
		return 0;
	i = emud_bound(i, EMUD_MASKS_MAX);
	if (masks->mask[i].first > s->place)
		return 0;
	key = (const emud_word *)&s->key;
	bits = (const emud_word *)&masks->mask[i].bits;
	for (word = 0; word < EMUD_KEY_WORDS; word++)
		((emud_word *)&masked)[word] = key[word] & bits[word];
	masked.table = s->base * EMUD_MASKS_MAX + i;
	rule = bpf_map_lookup_elem(&emud_rules, &masked);
	if (rule && rule->place < s->place) {
		s->place = rule->place;
		s->link = rule->link;
		s->per = rule->per;
		s->service = rule->service;
	}
	return 1;
}

/* Returns the way of an instance in its set; plus EMUD_INSTANCE_WAYS if it is
 * new, plus twice as many if it replaced another one. A global function, like
 * emud_flow_way(). */
__noinline __u32 emud_instance_way(__u64 key, __u64 now)
{
	struct emud_instances *set;
	__u32 i, way = 0, found = EMUD_INSTANCE_WAYS;
	__u64 oldest = ~0ULL;

	if (!emud_layout.instances || !emud_uses(MATCH))
		return 0;
	set = EMUD_LOOKUP(emud_instances,
			  (key >> 32) & (emud_layout.instances / EMUD_INSTANCE_WAYS - 1));
	if (!set)
		return 0;
	bpf_spin_lock(&set->lock);
	for (i = 0; i < EMUD_INSTANCE_WAYS; i++) {
		if (set->way[i].key == key)
			found = i;
		if (set->way[i].seen < oldest) {
			oldest = set->way[i].seen;
			way = i;
		}
	}
	if (found < EMUD_INSTANCE_WAYS) {
		set->way[emud_bound(found, EMUD_INSTANCE_WAYS)].seen = now;
	} else {
		i = emud_bound(way, EMUD_INSTANCE_WAYS);
		found = way + (set->way[i].key ? 2 : 1) * EMUD_INSTANCE_WAYS;
		set->way[i].key = key;
		set->way[i].seen = now;
	}
	bpf_spin_unlock(&set->lock);
	return found;
}

/* Resets a state to what attach leaves; its previous owner is gone. Two packets
 * of a new instance that arrive on two CPUs at once may see it half reset,
 * which costs the first one its position in the order. */
static __always_inline void emud_state_clear(struct emud_state *s)
{
	bpf_spin_lock(&s->lock);
	s->ring_pos = 0;
	s->busy_until = s->busy_frac = 0;
	s->last_departure = 0;
	s->loss_id = s->loss_state = s->loss_run = 0;
	s->loss_normal = s->duplicate_normal = s->corrupt_normal = 0;
	s->timeline_id = s->tdma_id = 0;
	s->aqm.aqm = 0;
	bpf_spin_unlock(&s->lock);
}

/* The key of the instance of a link that a packet takes. */
static __always_inline __u64 emud_instance_key(const struct emud_packet *p,
					       const struct emud_search *s)
{
	__u64 key = emud_absorb(EMUD_FOR_INSTANCE,
				(__u64)s->link << 32 | s->per << 1 | p->direction);
	const struct emud_key *k = &s->key;

	if (s->per == EMUD_PER_FLOW)
		return emud_mix(emud_absorb(key, p->flow)) | 1;
	if (s->per == EMUD_PER_SOURCE || s->per == EMUD_PER_PAIR)
		key = emud_absorb(emud_absorb(key, k->source[0]), k->source[1]);
	if (s->per == EMUD_PER_DESTINATION || s->per == EMUD_PER_PAIR)
		key = emud_absorb(emud_absorb(key, k->destination[0]), k->destination[1]);
	return emud_mix(key) | 1;
}

static __always_inline void emud_to_instance(struct emud_packet *p,
					     const struct emud_search *s)
{
	__u64 key = emud_instance_key(p, s);
	__u32 way = emud_instance_way(key, bpf_ktime_get_ns());
	struct emud_counters *count;
	struct emud_state *state;

	p->path = ((key >> 32) & (emud_layout.instances / EMUD_INSTANCE_WAYS - 1)) *
			  EMUD_INSTANCE_WAYS +
		  (way & (EMUD_INSTANCE_WAYS - 1)) + emud_layout.plain;
	p->queue = p->path;
	if (likely(way < EMUD_INSTANCE_WAYS))
		return;
	state = emud_path_state(p);
	if (state)
		emud_state_clear(state);
	count = emud_counters(p);
	if (count && way >= 2 * EMUD_INSTANCE_WAYS)
		count->instances_forgotten++;
}

static __always_inline void emud_to_link(struct emud_packet *p, __u32 number)
{
	const struct emud_link *l;

	p->number = number;
	p->slot = emud_slot(p, number);
	p->path = number * EMUD_DIRECTIONS + p->direction;
	p->queue = p->path;
	l = emud_link(p);
	if (l)
		p->queue = l->bottleneck * EMUD_DIRECTIONS + p->direction;
}

/* Returns false if no rule matches the packet. */
static __always_inline int emud_match_rules(struct __sk_buff *skb, struct emud_packet *p,
					    __u32 flags)
{
	struct emud_search s = {.place = EMUD_NO_PLACE, .base = p->base};
	__u64 *hits;
	__u32 i;

	emud_key_of(skb, p, &s.key);
	if (emud_uses(CGROUPS) && flags & EMUD_F_CGROUPS)
		emud_key_cgroups(skb, p, &s.key);
	if (emud_uses(NAMES) && flags & EMUD_F_NAMES)
		emud_names(skb, p, &s.key);
	for (i = 0; i < EMUD_MASKS_MAX; i++)
		if (!emud_search_mask(&s, i))
			break;
	if (s.place == EMUD_NO_PLACE)
		return 0;
	hits = EMUD_LOOKUP(emud_hits, s.place);
	if (hits && emud_preempt_rt)
		__sync_fetch_and_add(hits, p->segments);
	else if (hits)
		*hits += p->segments;
	if (s.link == EMUD_LINK_NONE) {
		p->untouched = 1;
		return 1;
	}
	emud_to_link(p, s.link);
	p->service = s.service;
	if (s.per && emud_layout.instances)
		emud_to_instance(p, &s);
	return 1;
}

static __always_inline void emud_mapped(__u64 *to, __be32 address)
{
	to[0] = 0;
	((emud_half_word *)to)[2] = bpf_htonl(0xffff);
	((emud_half_word *)to)[3] = address;
}

static __always_inline int emud_pair_key(const struct __sk_buff *skb,
					 const struct emud_packet *p,
					 struct emud_pair_key *key)
{
	struct emud_cursor c = emud_cursor_l3(skb, p);
	struct iphdr *ip = emud_at(&c, sizeof(*ip));
	struct ipv6hdr *ip6;

	if (!p->is_ip || !ip)
		return 0;
	if (ip->version == 4) {
		emud_mapped(key->source, ip->saddr);
		emud_mapped(key->destination, ip->daddr);
		return 1;
	}
	ip6 = emud_at(&c, sizeof(*ip6));
	if (!ip6)
		return 0;
	__builtin_memcpy(key->source, &ip6->saddr, sizeof(key->source));
	__builtin_memcpy(key->destination, &ip6->daddr, sizeof(key->destination));
	return 1;
}

/* Applies the figures and the state of the pair, on top of the base link of
 * pairs. */
static __always_inline void emud_match_pair(const struct __sk_buff *skb,
					    struct emud_packet *p, __u32 base)
{
	const struct emud_pair *pair;
	const struct emud_overlay *half;
	struct emud_pair_key key;
	__u32 *number;

	if (!emud_pair_key(skb, p, &key))
		return;
	number = bpf_map_lookup_elem(&emud_pair_index, &key);
	if (!number)
		return;
	pair = EMUD_LOOKUP(emud_pairs, *number);
	if (!pair)
		return;
	half = &pair->half[p->control & EMUD_PAIRS_GENERATION ? 1 : 0];
	if (!(half->set & EMUD_SET_PAIR))
		return;
	emud_to_link(p, base);
	p->over = *half;
	p->path = p->queue = emud_layout.plain + emud_layout.instances + *number;
}

/* Computes p->number, p->slot, p->queue, p->path and p->over from what parse
 * found. */
__noinline int emud_match(struct __sk_buff *skb, struct emud_packet *p)
{
	const struct emud_link *own;
	__u32 flags, base;

	if (!p || !emud_uses(MATCH))
		return 0;
	own = emud_link(p);
	if (!own)
		return 0;
	flags = own->flags;
	base = own->matrix_link;
	if ((flags & EMUD_F_RULES) && emud_match_rules(skb, p, flags))
		return 1;
	if (flags & EMUD_F_MATRIX)
		emud_match_pair(skb, p, base);
	return 1;
}

#endif
