/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * alter: bit errors (corrupt), resets and duplicates.
 *
 * release makes the copy at the copy's own departure time, from the packet in
 * its current state, corrupted or not.
 *
 * The meaning of a wrong bit depends on who computed the checksum. A local
 * sender may have left it to the device (CHECKSUM_PARTIAL): the field then
 * holds the sum of the pseudo-header, and the device adds whatever the packet
 * contains later. If checksums are kept, such a packet has passed the segmenter, whose
 * veth computes it (EMUD_SUMS). Where there is no segmenter, a change needs no
 * repair, and a wrong checksum requires a change of the sum in the field. A receiver
 * that trusts its NIC (UNNECESSARY, COMPLETE) must be made to verify the checksum.
 */
#ifndef EMUD_ALTER_H
#define EMUD_ALTER_H

#include <linux/udp.h>
#include "chance.h"
#include "core.h"
#include "delay.h"
#include "maps.h"
#include "rng.h"

/* <linux/icmp.h> needs all of libc. */
#define EMUD_ICMP_CHECKSUM 2

/* The bits to corrupt in a packet. Offsets are in the frame; 0: not present. */
struct emud_damage {
	__u64 draw;
	__u32 from; /* range of bytes that may change, from the start */
	__u32 to; /* of the IP header; `to` is excluded */
	__u32 bits; /* number of bits to flip */
	__u32 l3; /* start of the IP header */
	__u32 l4; /* end of the IP header and its extensions */
	__u32 l4_proto;
	__u32 is_ip;
	__u32 ip_sum;
	__u32 l4_sum;
	__u32 addresses; /* of the IP header, in the pseudo-header too */
	__u32 addresses_end;
	__u32 address_flags; /* for bpf_l4_csum_replace() of them */
	__u32 l4_flags;
	__u32 partial; /* a checksum is still to be computed */
	__u32 mend;
	__u32 summed_later; /* that of TCP or UDP would be, by the holder or the device */
};

static __always_inline __u32 emud_l4_sum(const struct emud_damage *d)
{
	if (!d->l4)
		return 0;
	switch (d->l4_proto) {
	case IPPROTO_TCP:
		return d->l4 + offsetof(struct tcphdr, check);
	case IPPROTO_UDP:
		return d->l4 + offsetof(struct udphdr, check);
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return d->l4 + EMUD_ICMP_CHECKSUM;
	}
	return 0;
}

/* Returns whether a checksum of the packet, wherever it is, is still to be computed: the
 * helper then skips what it is given, and changes any other two bytes. */
static __always_inline int emud_is_partial(struct __sk_buff *skb)
{
	__u16 before = 0, after = 0;

	if (bpf_skb_load_bytes(skb, 0, &before, sizeof(before)) ||
	    bpf_l4_csum_replace(skb, 0, 0, 1, sizeof(before)) ||
	    bpf_skb_load_bytes(skb, 0, &after, sizeof(after)))
		return 0;
	if (before == after)
		return 1;
	bpf_skb_store_bytes(skb, 0, &before, sizeof(before), 0);
	return 0;
}

/*
 * Returns whether the checksum would be computed over the damage, or never, so that no
 * receiver notices it. Only where there is no segmenter.
 *
 * That of TCP and UDP is computed later, from a sum that is changed here. Not that of SCTP
 * or in a tunnel, whose UDP header has 0 instead: the sum of a pseudo-header is not 0.
 */
static __always_inline int emud_unnoticed(struct __sk_buff *skb,
					  const struct emud_damage *d)
{
	__u16 sum = 0;

	if (d->mend || !d->partial)
		return 0;
	if (!d->summed_later || !d->l4_sum)
		return 1;
	return bpf_skb_load_bytes(skb, d->l4_sum, &sum, sizeof(sum)) || !sum;
}

static __always_inline void emud_find_sums(struct __sk_buff *skb, struct emud_damage *d,
					   int version)
{
	d->l4_sum = emud_l4_sum(d);
	d->l4_flags = sizeof(__u16);
	if (d->l4_proto == IPPROTO_UDP)
		d->l4_flags |= BPF_F_MARK_MANGLED_0;
	d->address_flags = d->l4_flags | BPF_F_PSEUDO_HDR;
	if (version == 4) {
		d->ip_sum = d->l3 + offsetof(struct iphdr, check);
		d->addresses = d->l3 + offsetof(struct iphdr, saddr);
		d->addresses_end = d->l3 + sizeof(struct iphdr);
	} else {
		d->addresses = d->l3 + offsetof(struct ipv6hdr, saddr);
		d->addresses_end = d->l3 + sizeof(struct ipv6hdr);
		/* Without an L4 checksum field, COMPLETE covers both changes. */
		if (!d->partial)
			d->address_flags = d->l4_flags;
	}
	if (d->l4_proto == IPPROTO_ICMP) /* has no pseudo-header */
		d->addresses_end = 0;
}

static __always_inline int emud_within(__u32 at, __u32 field)
{
	return field && at - field < sizeof(__u16);
}

/* Updates the checksums for the byte at `at`, which changes from `old` to
 * `new`. Both values are shifted to their half of a 16-bit unit. */
static __always_inline void emud_mend(struct __sk_buff *skb, const struct emud_damage *d,
				      __u32 at, __u16 old, __u16 new)
{
	if (d->ip_sum && at < d->l4)
		bpf_l3_csum_replace(skb, d->ip_sum, old, new, sizeof(old));
	if (!d->l4_sum)
		return;
	if (at >= d->l4)
		bpf_l4_csum_replace(skb, d->l4_sum, old, new, d->l4_flags);
	else if (at >= d->addresses && at < d->addresses_end)
		bpf_l4_csum_replace(skb, d->l4_sum, old, new, d->address_flags);
}

static __always_inline int emud_flip(struct __sk_buff *skb, const struct emud_damage *d,
				     __u32 at, __u32 bit)
{
	__u16 old, new;
	__u8 byte;

	if (bpf_skb_load_bytes(skb, at, &byte, sizeof(byte)))
		return 0;
	old = byte;
	byte ^= 1 << (bit & 7);
	new = byte;
	if (bpf_skb_store_bytes(skb, at, &byte, sizeof(byte),
				d->mend ? 0 : BPF_F_RECOMPUTE_CSUM))
		return 0;
	/* Checksums add 16-bit units from the start of the IP header. */
	if (((at - d->l3) & 1) == 0) {
		old <<= 8;
		new <<= 8;
	}
	old = bpf_htons(old);
	new = bpf_htons(new);
	if (d->mend)
		emud_mend(skb, d, at, old, new);
	else if (d->partial && at >= d->l4 && !emud_within(at, d->l4_sum))
		bpf_l4_csum_replace(skb, d->l4_sum, new, old,
				    d->l4_flags | BPF_F_PSEUDO_HDR);
	return 1;
}

/* Flips bit `i`, chosen from its own part of the range so that no two are the
 * same. A global function, like emud_corrupt(): the verifier checks it once and
 * not in each iteration of the loop. */
__noinline int emud_flip_one(struct __sk_buff *skb, struct emud_damage *d, __u32 i)
{
	__u64 first, last, bit;
	__u32 at;

	if (!d || !d->bits || !emud_uses(ALTER))
		return 0;
	first = (__u64)(d->to - d->from) * 8 * i / d->bits;
	last = (__u64)(d->to - d->from) * 8 * (i + 1) / d->bits;
	if (first == last)
		return 0;
	bit = emud_mix(d->draw + i * EMUD_GOLDEN) >> 32;
	bit = first + ((bit * (last - first)) >> 32);
	at = d->l3 + d->from + (bit >> 3);
	/* A repaired checksum field cannot itself be wrong: take a bit next to
	 * it. */
	if (d->mend && (emud_within(at, d->ip_sum) || emud_within(at, d->l4_sum))) {
		if (bit >= first + 16)
			at -= sizeof(__u16);
		else if (bit + 16 < last)
			at += sizeof(__u16);
		else
			return 0;
	}
	return emud_flip(skb, d, at, bit);
}

/* Length of the IP packet without Ethernet padding. */
static __always_inline __u32 emud_l3_len(struct __sk_buff *skb, __u32 l3, int version)
{
	__u32 most = skb->len - l3, at = l3 + offsetof(struct iphdr, tot_len), len,
	      add = 0;
	__be16 field = 0;

	if (!version)
		return most;
	if (version == 6) {
		at = l3 + offsetof(struct ipv6hdr, payload_len);
		add = sizeof(struct ipv6hdr);
	}
	if (bpf_skb_load_bytes(skb, at, &field, sizeof(field)) || !field)
		return most; /* 0: a super-packet of more than 64 KiB */
	len = bpf_ntohs(field) + add;
	return len < most ? len : most;
}

/* Returns the number of flipped bits. */
__noinline int emud_corrupt(struct __sk_buff *skb, struct emud_damage *d)
{
	int version = 0, flipped = 0;
	__u8 first = 0;
	__u32 i, len;

	if (!d || !emud_uses(ALTER))
		return 0;
	if (d->is_ip && !bpf_skb_load_bytes(skb, d->l3, &first, sizeof(first)))
		version = first >> 4;
	/* A fragment has no checksum to repair. */
	if (version && !d->l4 && d->mend)
		return 0;
	len = emud_l3_len(skb, d->l3, version);
	if (d->to > len)
		d->to = len;
	if (d->to <= d->from)
		return 0;
	d->partial = emud_is_partial(skb);
	if (version)
		emud_find_sums(skb, d, version);
	if (emud_unnoticed(skb, d))
		return 0;
	if (!d->mend)
		bpf_csum_level(skb, BPF_CSUM_LEVEL_RESET);
	for (i = 0; i < EMUD_CORRUPT_BITS; i++) {
		if (i >= d->bits)
			break;
		flipped += emud_flip_one(skb, d, i);
	}
	return flipped;
}

static __always_inline int emud_damage(struct __sk_buff *skb, struct emud_packet *p,
				       const struct emud_link *l)
{
	struct emud_damage d = {
		.draw = emud_draw(p, EMUD_FOR_BIT),
		.from = l->corrupt_from,
		.to = l->corrupt_to,
		.bits = l->corrupt_bits,
		.l3 = p->l3_off,
		.l4 = p->l4_off,
		.l4_proto = p->l4_proto,
		.is_ip = p->is_ip,
		.mend = !!(l->flags & EMUD_F_MEND),
		/* Not what is received from a sender on this host, nor over loopback:
		 * the receiver accepts it as it is. */
		.summed_later =
			l->release == EMUD_RELEASE_HOLD ||
			(p->direction == EMUD_UP && skb->ifindex != EMUD_LOOPBACK),
	};

	if (!emud_alone(skb) || !emud_corrupt(skb, &d))
		return 0;
	p->sum_due = d.partial && !d.mend;
	return 1;
}

/* The receiver accepts a reset by its sequence number (tcp_validate_incoming()), so that stays,
 * and it ignores what the packet carries. With other flags conntrack calls it invalid
 * (tcp_valid_flags). Returns whether the packet is a reset now. */
static __always_inline int emud_reset(struct __sk_buff *skb, struct emud_packet *p,
				      struct emud_counters *count)
{
	const __u32 at = p->l4_off + offsetof(union tcp_word_hdr, words[3]);
	__be32 old = 0, new;

	if (bpf_skb_load_bytes(skb, at, &old, sizeof(old)))
		return 0;
	/* It ends a connection, or there is none yet. */
	if (old & TCP_FLAG_RST || (old & (TCP_FLAG_SYN | TCP_FLAG_ACK)) == TCP_FLAG_SYN)
		return 0;
	new = old & ~(TCP_FLAG_FIN | TCP_FLAG_SYN | TCP_FLAG_PSH | TCP_FLAG_URG);
	new |= TCP_FLAG_RST;
	if (!emud_alone(skb) || bpf_skb_store_bytes(skb, at, &new, sizeof(new), 0)) {
		count->unaltered += p->segments;
		return 0;
	}
	bpf_l4_csum_replace(skb, p->l4_off + offsetof(struct tcphdr, check), old, new,
			    sizeof(new));
	return 1;
}

static __always_inline int emud_alters(const struct emud_link *l)
{
	return emud_uses(ALTER) &&
	       (l->corrupt.probability || l->duplicate.probability || l->reset);
}

__noinline int emud_alter(struct __sk_buff *skb, struct emud_packet *p)
{
	struct emud_counters *count;
	const struct emud_link *l;
	struct emud_state *s;

	if (!p || !emud_uses(ALTER))
		return 0;
	l = emud_link(p);
	s = emud_path_state(p);
	count = emud_counters(p);
	if (!l || !s || !count)
		return 0;
	if (l->reset && p->l4_off && p->l4_proto == IPPROTO_TCP &&
	    emud_draw(p, EMUD_FOR_RESET) < l->reset && emud_reset(skb, p, count)) {
		if (p->service)
			p->reset = 1; /* the holder counts */
		else
			count->reset += p->segments;
	}
	if (emud_chance(p, s, &l->corrupt, &s->corrupt_normal, EMUD_FOR_CORRUPT)) {
		if (!emud_damage(skb, p, l))
			count->unaltered += p->segments;
		else if (p->service)
			p->corrupted = 1; /* the holder counts */
		else
			count->corrupted += p->segments;
	}
	if (emud_chance(p, s, &l->duplicate, &s->duplicate_normal, EMUD_FOR_DUPLICATE)) {
		p->copied = emud_alone(skb);
		if (!p->copied)
			count->unaltered += p->segments;
	}
	return 1;
}

/* The copy is a separate packet on the link: it draws its own delay. */
static __always_inline void emud_delay_copy(struct emud_packet *p)
{
	__u64 departure = p->departure, draw = p->draw;

	p->draw = emud_draw(p, EMUD_FOR_COPY);
	emud_delay_any(p);
	p->copy_departure = p->departure;
	p->departure = departure;
	p->draw = draw;
}

#endif
