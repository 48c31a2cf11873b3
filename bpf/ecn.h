/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ecn: signals congestion by a mark instead of a drop (RFC 3168).
 *
 * bpf_skb_ecn_set_ce() uses the kernel's network header offset, which is wrong
 * for a VLAN tag inside the data and for a frame from a packet socket. The
 * parser's offset is used instead.
 */
#ifndef EMUD_ECN_H
#define EMUD_ECN_H

#include "maps.h"

#define EMUD_ECN_CE 3

#define EMUD_IP4_CHECKSUM 10 /* offset in the header */

/* The first two bytes of an IP header: version, and the DS field with the ECN
 * bits in the low bits of the second byte (IPv4) or in its middle (IPv6). */
struct emud_ds {
	__u8 byte[2];
};

static __always_inline int emud_ds_of_ip4(const struct emud_ds *ds)
{
	return ds->byte[0] >> 4 == 4;
}

/* Returns whether the sender supports ECN: ECT(0), ECT(1), or CE already. */
static __always_inline int emud_ecn_understands(struct __sk_buff *skb,
						const struct emud_packet *p)
{
	struct emud_ds ds = {};

	if (!p->is_ip || bpf_skb_load_bytes(skb, p->l3_off, &ds, sizeof(ds)))
		return 0;
	return (ds.byte[1] >> (emud_ds_of_ip4(&ds) ? 0 : 4)) & EMUD_ECN_CE;
}

/* 0 without an IP header. */
static __always_inline __u32 emud_dscp(struct __sk_buff *skb, const struct emud_packet *p)
{
	struct emud_ds ds = {};

	if (!p->is_ip || bpf_skb_load_bytes(skb, p->l3_off, &ds, sizeof(ds)))
		return 0;
	if (emud_ds_of_ip4(&ds))
		return ds.byte[1] >> 2;
	return (ds.byte[0] & 0xf) << 2 | ds.byte[1] >> 6;
}

static __always_inline int emud_ecn_capable(struct __sk_buff *skb,
					    const struct emud_packet *p,
					    const struct emud_link *l)
{
	return l->queueing.ecn && emud_ecn_understands(skb, p);
}

/* IPv4: the header checksum changes by the same amount as the header, which
 * keeps a sum over the whole packet (CHECKSUM_COMPLETE) right. */
static __always_inline int
emud_ecn_mark_ip4(struct __sk_buff *skb, const struct emud_packet *p, struct emud_ds ds)
{
	__be16 old = bpf_htons(ds.byte[0] << 8 | ds.byte[1]);
	__be16 new = old | bpf_htons(EMUD_ECN_CE);

	if (old == new)
		return 1;
	ds.byte[1] |= EMUD_ECN_CE;
	return !bpf_l3_csum_replace(skb, p->l3_off + EMUD_IP4_CHECKSUM, old, new,
				    sizeof(new)) &&
	       !bpf_skb_store_bytes(skb, p->l3_off, &ds, sizeof(ds), 0);
}

/* Sets CE. Returns false if the kernel has no memory to make the packet
 * writable. */
__noinline int emud_ecn_mark(struct __sk_buff *skb, struct emud_packet *p)
{
	struct emud_ds ds = {};

	if (!p || !emud_uses(SIGNALS) ||
	    bpf_skb_load_bytes(skb, p->l3_off, &ds, sizeof(ds)))
		return 0;
	if (emud_ds_of_ip4(&ds))
		return emud_ecn_mark_ip4(skb, p, ds);
	ds.byte[1] |= EMUD_ECN_CE << 4;
	return !bpf_skb_store_bytes(skb, p->l3_off, &ds, sizeof(ds),
				    BPF_F_RECOMPUTE_CSUM);
}

/* Marks the packet instead of dropping it. Returns false if it cannot be marked. */
__noinline int emud_ecn_instead(struct __sk_buff *skb, struct emud_packet *p)
{
	return p && emud_ecn_understands(skb, p) && emud_ecn_mark(skb, p);
}

#endif
