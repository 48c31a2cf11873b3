/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hold: 24 bytes in front of the frame say when, and a TAP takes it to the
 * holder; 32 more say how it waits for a bottleneck before.
 */
#ifndef EMUD_RELEASE_HOLD_H
#define EMUD_RELEASE_HOLD_H

#include "delay.h"
#include "exit.h"
#include "queue.h"

/* The header is already in front of the frame. */
static __always_inline void emud_copy_by_header(const struct emud_exit *e)
{
	const __u32 at = offsetof(struct emud_hold_hdr, departure_ns);
	__u64 departure;

	if (!emud_uses(ALTER) || likely(!e->p->copied))
		return;
	departure = e->p->copy_departure;
	bpf_skb_store_bytes(e->skb, at, &departure, sizeof(departure), 0);
	emud_send_copy(e, e->link->ifindex, 0);
	departure = e->p->departure;
	bpf_skb_store_bytes(e->skb, at, &departure, sizeof(departure), 0);
}

/* Pushes the figures for a bottleneck after the header. It makes the copy itself. The TAP
 * segments a train, each of whose packets then has this in front. */
static __always_inline long emud_push_service(const struct emud_exit *e)
{
	const struct emud_packet *p = e->p;
	const int overtakes = e->link->flags & EMUD_F_DRAWN || p->held;
	const int train = p->segments > 1;
	const __u32 mac_len = e->link->flags & EMUD_F_L3 ? sizeof(struct ethhdr) : 0;
	const __u32 full_len = train ? p->full_len + mac_len : 0;
	const struct emud_hold_service service = {
		.arrival_ns = p->sent,
		.copy_ns = p->copied ? p->copy_departure : 0,
		.path = p->path,
		.bytes = emud_framed(e->link, train ? p->full_len : p->last_len),
		.last_bytes = emud_framed(e->link, p->last_len),
		.flags = (p->lost ? EMUD_SERVICE_LOST : 0) |
			 (overtakes ? EMUD_SERVICE_OVERTAKES : 0) |
			 (p->corrupted ? EMUD_SERVICE_CORRUPTED : 0) |
			 (p->reset ? EMUD_SERVICE_RESET : 0) |
			 (mac_len ? EMUD_SERVICE_L3 : 0),
		.link = p->number,
		.full_len = full_len < 0xffff ? full_len : 0xffff,
	};

	return bpf_skb_change_head(e->skb, sizeof(service), 0) ||
	       bpf_skb_store_bytes(e->skb, 0, &service, sizeof(service), 0);
}

static __always_inline int emud_release_hold(const struct emud_exit *e)
{
	struct __sk_buff *skb = e->skb;
	struct emud_hold_hdr hdr = {
		.departure_ns = e->p->departure,
		.magic = (e->p->sum_due ? EMUD_HOLD_MAGIC_SUM : EMUD_HOLD_MAGIC) |
			 (e->p->held > EMUD_HELD_USUAL_NS ? EMUD_HOLD_BY_SENDER : 0),
		.service = e->p->service,
	};
	int i;

	/* More tags than the header has room for. */
	if (unlikely(skb->vlan_present && e->p->tags >= EMUD_HOLD_TAGS))
		return emud_pass_by(e, EMUD_PASS_FAILED);
	for (i = 0; i < EMUD_HOLD_TAGS; i++) {
		if (likely(!skb->vlan_present))
			break;
		hdr.tag[i].tci = skb->vlan_tci;
		hdr.tag[i].proto = skb->vlan_proto;
		if (bpf_skb_vlan_pop(skb))
			return emud_pass_by(e, EMUD_PASS_FAILED);
	}
	if ((e->link->flags & EMUD_F_L3) && emud_push_mac(skb))
		return emud_pass_by(e, EMUD_PASS_FAILED);
	if (unlikely(hdr.service) && emud_push_service(e))
		return emud_pass_by(e, EMUD_PASS_FAILED);
	if (bpf_skb_change_head(skb, sizeof(hdr), 0) ||
	    bpf_skb_store_bytes(skb, 0, &hdr, sizeof(hdr), 0))
		return emud_pass_by(e, EMUD_PASS_FAILED);
	if (likely(!hdr.service))
		emud_copy_by_header(e);
	return bpf_redirect(e->link->ifindex, 0);
}

#endif
