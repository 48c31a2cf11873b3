/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * release: hand the packet to where it waits for its departure time.
 *
 * stamp: fq on this device honours skb->tstamp. A packet with a socket is
 * counted as "in the local queue" until it is freed, and TCP Small Queues stop
 * a sender at about 1 ms worth of those: with 50 ms in fq one flow made 0.96
 * Mbit/s where netem made 430. So such a packet goes by a clone, which has no
 * socket, and the original is consumed. The stamp is typed (bpf_skb_set_tstamp)
 * and set before: an untyped one is cleared by the redirect, and on a veth it
 * would be taken for a receive time. The helper knows IPv4 and IPv6 only; what
 * is not IP takes the plain path with an untyped stamp, socket or not.
 *
 * ifb: the same for ingress, with fq on an ifb that puts the packet back.
 *
 * hold: 16 bytes in front of the frame say when, and a TAP takes it to the
 * holder.
 *
 * A copy (duplicate) leaves first, by bpf_clone_redirect() of the packet with
 * the copy's departure time; then the packet gets its own.
 */
#ifndef EMUD_RELEASE_H
#define EMUD_RELEASE_H

#include "maps.h"

static __always_inline int emud_passed(struct emud_packet *p, enum emud_pass why)
{
	p->count->passed[why] += p->segments;
	p->passed = 1;
	/* Not on to the mirred filter, which would send it to the ifb. The
	 * classifier is the last of all others there, so nobody misses it. */
	return p->link->release == EMUD_RELEASE_MIRRED ? TC_ACT_OK : TC_ACT_UNSPEC;
}

/* A shared packet (pktgen without !SHARED) crashes pskb_expand_head() when it
 * is cloned and changed: only a packet with a socket may come here. */
static __always_inline int emud_by_clone(struct emud_packet *p, __u32 ifindex)
{
	struct __sk_buff *skb = p->skb;

	if (bpf_clone_redirect(skb, ifindex, 0) < 0)
		p->count->passed[EMUD_PASS_FAILED] += p->segments;
	return TC_ACT_STOLEN;
}

static __always_inline void emud_send_copy(struct emud_packet *p, __u32 ifindex,
					   __u64 flags)
{
	if (bpf_clone_redirect(p->skb, ifindex, flags) < 0)
		p->count->unaltered += p->segments;
	else
		p->count->duplicated += p->segments;
}

/* Where the stamp says when: known by its tc_index if it comes by again. */
static __always_inline void emud_copy_by_stamp(struct emud_packet *p, __u32 ifindex,
					       __u64 flags)
{
	struct __sk_buff *skb = p->skb;

	if (likely(!p->copied))
		return;
	bpf_skb_set_tstamp(skb, p->copy_departure, BPF_SKB_TSTAMP_DELIVERY_MONO);
	skb->tc_index = EMUD_TC_INDEX;
	emud_send_copy(p, ifindex, flags);
	skb->tc_index = 0;
	bpf_skb_set_tstamp(skb, p->departure, BPF_SKB_TSTAMP_DELIVERY_MONO);
}

static __always_inline int emud_release_stamp(struct emud_packet *p)
{
	struct __sk_buff *skb = p->skb;

	/* fq would dissect the packet for a hash: 968 instructions a packet. */
	bpf_set_hash(skb, p->flow);
	if (bpf_skb_set_tstamp(skb, p->departure, BPF_SKB_TSTAMP_DELIVERY_MONO)) {
		/* The redirect of a copy would clear such a stamp. */
		p->count->unaltered += p->copied ? p->segments : 0;
		skb->tstamp = p->departure;
		return TC_ACT_UNSPEC;
	}
	emud_copy_by_stamp(p, skb->ifindex, 0);
	if (!skb->sk || !(p->link->flags & EMUD_F_CLONE))
		return TC_ACT_UNSPEC;
	skb->tc_index = EMUD_TC_INDEX;
	return emud_by_clone(p, skb->ifindex);
}

/* ifb wants a MAC header, which a device without one does not give. */
static __always_inline int emud_push_mac(struct emud_packet *p)
{
	struct ethhdr eth = {.h_proto = p->skb->protocol};

	return bpf_skb_change_head(p->skb, sizeof(eth), 0) ||
	       bpf_skb_store_bytes(p->skb, 0, &eth, sizeof(eth), 0);
}

/* What fq on the ifb needs; else why the packet has to pass untouched. */
static __always_inline enum emud_pass emud_stamp_for_ifb(struct emud_packet *p)
{
	if (bpf_skb_set_tstamp(p->skb, p->departure, BPF_SKB_TSTAMP_DELIVERY_MONO))
		return EMUD_PASS_NOT_IP;
	bpf_set_hash(p->skb, p->flow);
	if ((p->link->flags & EMUD_F_L3) && emud_push_mac(p))
		return EMUD_PASS_FAILED;
	return EMUD_PASS_REASONS;
}

static __always_inline int emud_release_ifb(struct emud_packet *p)
{
	enum emud_pass why = emud_stamp_for_ifb(p);

	if (why != EMUD_PASS_REASONS)
		return emud_passed(p, why);
	emud_copy_by_stamp(p, p->link->ifindex, 0);
	if (p->skb->sk)
		return emud_by_clone(p, p->link->ifindex);
	return bpf_redirect(p->link->ifindex, 0);
}

/*
 * Before Linux 6.12 (found on 6.1) an ifb drops what bpf_redirect() sends it:
 * skb->redirected is not set. A mirred filter behind the classifier sets it, so
 * there the classifier stamps and goes on. mirred keeps the socket, which
 * emud_orphan has taken off before. A copy can reach the ifb by that filter
 * only: it comes in at the device once more, with its stamp.
 */
static __always_inline int emud_release_mirred(struct emud_packet *p)
{
	enum emud_pass why = emud_stamp_for_ifb(p);

	if (why != EMUD_PASS_REASONS)
		return emud_passed(p, why);
	/* Such a device would take the MAC header off again. */
	if (p->link->flags & EMUD_F_L3)
		p->count->unaltered += p->copied ? p->segments : 0;
	else
		emud_copy_by_stamp(p, p->skb->ifindex, BPF_F_INGRESS);
	return TC_ACT_UNSPEC;
}

/* These leave by an IP-only stamp. */
static __always_inline int emud_ip_only(const struct emud_packet *p)
{
	return p->link->release == EMUD_RELEASE_IFB ||
	       p->link->release == EMUD_RELEASE_MIRRED;
}

/* The header is in front already. */
static __always_inline void emud_copy_by_header(struct emud_packet *p)
{
	const __u32 at = offsetof(struct emud_hold_hdr, departure_ns);
	__u64 departure;

	if (likely(!p->copied))
		return;
	departure = p->copy_departure;
	bpf_skb_store_bytes(p->skb, at, &departure, sizeof(departure), 0);
	emud_send_copy(p, p->link->ifindex, 0);
	departure = p->departure;
	bpf_skb_store_bytes(p->skb, at, &departure, sizeof(departure), 0);
}

static __always_inline int emud_release_hold(struct emud_packet *p)
{
	struct __sk_buff *skb = p->skb;
	struct emud_hold_hdr hdr = {
		.departure_ns = p->departure,
		.magic = p->sum_due ? EMUD_HOLD_MAGIC_SUM : EMUD_HOLD_MAGIC,
	};

	if (skb->vlan_present) {
		hdr.vlan_tci = skb->vlan_tci;
		hdr.vlan_proto = skb->vlan_proto;
		if (bpf_skb_vlan_pop(skb))
			return emud_passed(p, EMUD_PASS_FAILED);
	}
	if ((p->link->flags & EMUD_F_L3) && emud_push_mac(p))
		return emud_passed(p, EMUD_PASS_FAILED);
	if (bpf_skb_change_head(skb, sizeof(hdr), 0) ||
	    bpf_skb_store_bytes(skb, 0, &hdr, sizeof(hdr), 0))
		return emud_passed(p, EMUD_PASS_FAILED);
	emud_copy_by_header(p);
	return bpf_redirect(p->link->ifindex, 0);
}

static __always_inline int emud_release(struct emud_packet *p)
{
	switch (p->link->release) {
	case EMUD_RELEASE_STAMP:
		return emud_release_stamp(p);
	case EMUD_RELEASE_IFB:
		return emud_release_ifb(p);
	case EMUD_RELEASE_MIRRED:
		return emud_release_mirred(p);
	case EMUD_RELEASE_HOLD:
		return emud_release_hold(p);
	}
	return emud_passed(p, EMUD_PASS_INACTIVE);
}

#endif
