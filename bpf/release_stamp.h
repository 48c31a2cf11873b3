/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stamp: fq on this device honours skb->tstamp. A packet with a socket is
 * counted as "in the local queue" until it is freed, and TCP Small Queues stop
 * a sender at about 1 ms worth of those: with 50 ms in fq one flow made 0.96
 * Mbit/s where netem made 430. So such a packet is replaced by a clone, which
 * has no socket, and the original is consumed, unless its socket has enough room
 * to wait (emud_keeps_socket()): a clone takes some 2,500 instructions. The stamp is typed
 * (bpf_skb_set_tstamp) and set before: the redirect clears an untyped one, and
 * on a veth it would count as a receive time. The helper supports IPv4 and IPv6
 * only; other protocols take the plain path with an untyped stamp. One with a
 * socket counts as not IP: the link may slow its sender down.
 *
 * ifb: the same for ingress, with fq on an ifb that puts the packet back.
 *
 * qdisc: the same two with emud's own qdisc instead of fq, which needs neither flows
 * nor time ahead.
 */
#ifndef EMUD_RELEASE_STAMP_H
#define EMUD_RELEASE_STAMP_H

#include "delay.h"
#include "exit.h"
#include "parse.h"
#include "queue.h"

/*
 * Returns a flow of fq that can take a packet in the order of departures: the
 * first flow whose last packet leaves before it. As in the game of patience,
 * the last departures fall from lane to lane, and n packets that leave in
 * random order take about 2 sqrt(n) lanes. EMUD_LANES if all flows end later.
 *
 * One fq flow per overtaking packet, or per link with many links, would cost fq
 * a tree of flows, a tree of times, and memory to allocate and free.
 */
__noinline __u32 emud_lane(__u32 direction, __u64 departure)
{
	struct emud_lanes *lanes = EMUD_LOOKUP(emud_lanes, direction);
	__u64 lane = 0;
	int bit;

	if (!lanes || !emud_by_fq())
		return EMUD_LANES;
	if (lanes->last[0] > departure) {
		/* Without branches, because the verifier would follow each. */
#pragma unroll
		for (bit = EMUD_LANES_LOG - 1; bit >= 0; bit--) {
			__u64 middle = emud_bound(lane + (1 << bit) - 1, EMUD_LANES);

			lane += ((departure - lanes->last[middle]) >> 63) << bit;
		}
		lane = emud_bound(lane, EMUD_LANES);
		if (lanes->last[lane] > departure)
			return EMUD_LANES;
	}
	lanes->last[lane] = departure;
	return lane;
}

/* Returns the lower half of the hash that fq uses to distinguish flows
 * (EMUD_FQ_FLOWS).
 *
 * Packets in order leave in the order of arrival: one flow, a list. All others
 * take a lane. fq reschedules a flow only when the packet that was its first is
 * due, so a packet with an earlier departure that arrives meanwhile would wait
 * for that one. Packets without a lane share a flow with packets of the same
 * delay / 2^fq_shift ns, which leave in their order. */
static __always_inline __u32 emud_fq_flow(const struct emud_packet *p,
					  const struct emud_link *l, __u64 departure)
{
	/* Slots are in order. Every other packet overtakes one that its sender
	 * holds back. */
	int overtakes = (l->flags & EMUD_F_DRAWN && !l->tdma.span_ns) || p->held;
	__u32 lane, flow = p->path;

	if (overtakes || p->path >= EMUD_DIRECTIONS) {
		lane = emud_lane(p->direction, departure);
		if (likely(lane < EMUD_LANES))
			return (bpf_get_smp_processor_id() * EMUD_LANES + lane) %
			       EMUD_FQ_OTHERS;
	}
	if (overtakes)
		flow = p->path * EMUD_FQ_SPREAD +
		       ((departure - p->sent) >> (l->fq_shift & 63));
	return EMUD_FQ_OTHERS + flow % EMUD_FQ_OTHERS;
}

/* fq would dissect a packet without a hash: 968 instructions. The upper half is
 * the user's flow, which selects the transmit queue (skb_tx_hash()). */
static __always_inline __u32 emud_hash(const struct emud_packet *p,
				       const struct emud_link *l, __u64 departure)
{
	return ((__u32)p->flow & ~(EMUD_FQ_FLOWS - 1)) | emud_fq_flow(p, l, departure);
}

/* By the protocol that the kernel sees; with a second tag this is the
 * protocol of the tag. */
static __always_inline int emud_stampable(const struct __sk_buff *skb)
{
	return skb->protocol == bpf_htons(ETH_P_IP) ||
	       skb->protocol == bpf_htons(ETH_P_IPV6);
}

static __always_inline int emud_own_qdisc(const struct emud_link *l)
{
	return emud_by_qdisc() && (!emud_by_fq() || l->release >= EMUD_RELEASE_QDISC);
}

/* The time at which fq or the qdisc must dequeue a packet for it to reach the receiver in
 * time. */
static __always_inline __u64 emud_stamp_of(const struct emud_exit *e, __u64 departure)
{
	__u64 stamp = emud_test_run ? departure : departure - EMUD_LEAD_NS;

	if (!emud_own_qdisc(e->link))
		return stamp;
	stamp = emud_marked(stamp, e->p->held);
	return emud_uses(CLASSES) && e->p->service ? stamp | EMUD_QDISC_CLASSED : stamp;
}

/* Returns whether the sender can wait until its packet has left the class. One that answers a SYN
 * or has closed (TIME-WAIT) has no buffer. */
static __always_inline int emud_can_wait(const struct emud_exit *e)
{
	const struct emud_holder *qdisc = EMUD_LOOKUP(emud_holders, e->p->direction);
	struct bpf_sock *sk = e->skb->sk;

	return e->link->release == EMUD_RELEASE_QDISC && emud_stampable(e->skb) &&
	       qdisc && qdisc->lease_ns && sk && bpf_sk_fullsock(sk);
}

static __always_inline int emud_is_held(const struct emud_exit *e)
{
	return e->p->service & EMUD_SERVICE_BLOCKS;
}

/* Writes for the qdisc how the packet waits in its class. */
static __always_inline void emud_put_class(const struct emud_exit *e)
{
	const struct emud_packet *p = e->p;
	const int overtakes = e->link->flags & EMUD_F_DRAWN || p->held;
	const int is_held = emud_is_held(e);
	const union {
		struct emud_classed classed;
		__u32 word[5];
	} to = {
		.classed =
			{
				.magic = EMUD_CLASSED,
				.service = p->service,
				.path = p->path,
				.token = is_held ? bpf_get_prandom_u32() : 0,
				.bytes = emud_on_wire(p, e->link),
				.own_bytes = p->wire_len,
				.link = p->number,
				.flags = (p->lost ? EMUD_SERVICE_LOST : 0) |
					 (overtakes ? EMUD_SERVICE_OVERTAKES : 0) |
					 (p->corrupted ? EMUD_SERVICE_CORRUPTED : 0) |
					 (p->reset ? EMUD_SERVICE_RESET : 0) |
					 (is_held ? EMUD_SERVICE_HELD : 0),
				.packets = p->segments,
			},
	};

	e->skb->cb[0] = to.word[0];
	e->skb->cb[1] = to.word[1];
	e->skb->cb[2] = to.word[2];
	e->skb->cb[3] = to.word[3];
	e->skb->cb[4] = to.word[4];
}

/* Sets what the qdisc needs. Returns non-zero if the packet is not IP, which the
 * helper does not support.
 *
 * fq before 6.7 sends priority 7 at once and ignores its stamp, and reads the low bits
 * only (fq_classify()): IGMP and routing daemons would have no delay, nor what netfilter
 * puts into a class with minor 7. */
static __always_inline long emud_stamp(const struct emud_exit *e, __u64 departure)
{
	if (!emud_own_qdisc(e->link)) {
		__u32 priority = e->skb->priority;

		if (unlikely((priority & TC_PRIO_MAX) == TC_PRIO_CONTROL))
			e->skb->priority =
				priority - TC_PRIO_CONTROL + TC_PRIO_INTERACTIVE;
		bpf_set_hash(e->skb, emud_hash(e->p, e->link, departure));
	}
	return bpf_skb_set_tstamp(e->skb, emud_stamp_of(e, departure),
				  BPF_SKB_TSTAMP_DELIVERY_MONO);
}

/* The stamp holds the departure time; tc_index identifies a copy that passes the
 * classifier `again`. One from an ifb does not, and the next link that it meets would
 * let it pass. */
static __always_inline void emud_copy_by_stamp(const struct emud_exit *e, __u32 ifindex,
					       __u64 flags, int again)
{
	struct __sk_buff *skb = e->skb;

	if (!emud_uses(ALTER) || likely(!e->p->copied))
		return;
	emud_stamp(e, e->p->copy_departure);
	if (again)
		skb->tc_index = EMUD_TC_INDEX;
	emud_send_copy(e, ifindex, flags);
	if (again)
		skb->tc_index = 0;
	emud_stamp(e, e->p->departure);
}

/*
 * A sender that waits for its class. A packet with its socket counts in the buffer of that one
 * until it is freed, but also during the delay behind the class: TCP would make 4.6 Mbit/s over 10 ms.
 * So a clone without the socket waits and departs, and the packet itself stays in the qdisc
 * until the server sends the clone, and is freed then. Later filters see the clone only.
 */
static __always_inline int emud_release_held(const struct emud_exit *e)
{
	const union {
		struct emud_classed classed;
		__u32 word[5];
	} token = {.classed = {.magic = EMUD_TOKEN}};
	struct __sk_buff *skb = e->skb;

	skb->tc_index = EMUD_TC_INDEX;
	if (!emud_by_clone(e, skb->ifindex)) {
		skb->tc_index = 0;
		return TC_ACT_UNSPEC;
	}
	skb->tc_index = 0;
	skb->cb[0] = token.word[0];
	return TC_ACT_OK;
}

static __always_inline int emud_release_stamp(const struct emud_exit *e)
{
	struct __sk_buff *skb = e->skb;
	struct emud_packet *p = e->p;

	if (emud_stamp(e, p->departure)) {
		/* The redirect of a copy would clear such a stamp. */
		e->count->unaltered += p->copied ? p->segments : 0;
		emud_set_stamp(skb, emud_stamp_of(e, p->departure));
		if (skb->sk && !p->service) {
			e->count->passed[EMUD_PASS_NOT_IP] += p->segments;
			p->passed = 1;
		}
		return TC_ACT_UNSPEC;
	}
	if (emud_by_qdisc() && emud_uses(CLASSES) && unlikely(emud_is_held(e)))
		return emud_release_held(e);
	emud_copy_by_stamp(e, skb->ifindex, 0, 1);
	/* A packet held back for long keeps its socket, whose buffer limits the number
	 * of such packets in fq. */
	if (!skb->sk || !(e->link->flags & EMUD_F_CLONE) || p->held > EMUD_HELD_MAX_NS ||
	    emud_keeps_socket(skb, p->scratch, emud_own_qdisc(e->link)))
		return TC_ACT_UNSPEC;
	skb->tc_index = EMUD_TC_INDEX;
	if (emud_by_clone(e, skb->ifindex))
		return TC_ACT_STOLEN;
	/* Without memory for a clone the packet itself waits, with its socket. It does not
	 * pass this classifier again, and must not be taken for the clone by that of the
	 * other end of a veth. */
	skb->tc_index = 0;
	return TC_ACT_UNSPEC;
}

/* Returns whether the packet is ESP, AH, or ESP in UDP to its port. */
static __always_inline int emud_encrypted(const struct __sk_buff *skb)
{
	__u8 ip[24], proto; /* IPv4 header and two ports */
	__be16 to = 0;

	if (bpf_skb_load_bytes_relative(skb, 0, ip, sizeof(ip), BPF_HDR_START_NET))
		return 0;
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		proto = ip[9];
		if (ip[0] == 0x45)
			to = *(__be16 *)&ip[22];
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		proto = ip[6];
		if (proto == IPPROTO_UDP)
			bpf_skb_load_bytes_relative(skb, sizeof(struct ipv6hdr) + 2, &to,
						    sizeof(to), BPF_HDR_START_NET);
	} else {
		return 0;
	}
	return proto == IPPROTO_ESP || proto == IPPROTO_AH ||
	       (proto == IPPROTO_UDP && to == bpf_htons(EMUD_ESP_IN_UDP));
}

static __always_inline __u32 emud_encrypted_mark(const struct __sk_buff *skb)
{
	return EMUD_TC_INDEX_ENCRYPTED | (skb->ifindex & EMUD_TC_INDEX_DEVICE);
}

/* An ifb with fq returns a packet after the hook. */
static __always_inline void emud_mark_encrypted(const struct emud_exit *e)
{
	if (e->p->l4_proto != IPPROTO_TCP && emud_encrypted(e->skb))
		e->skb->tc_index = emud_encrypted_mark(e->skb);
}

/* Sets what fq on the ifb needs. Returns the reason if the packet has to pass
 * without emulation. */
static __always_inline enum emud_pass emud_stamp_for_ifb(const struct emud_exit *e)
{
	if (emud_stamp(e, e->p->departure))
		return EMUD_PASS_NOT_IP;
	if ((e->link->flags & EMUD_F_L3) && emud_push_mac(e->skb))
		return EMUD_PASS_FAILED;
	return EMUD_PASS_REASONS;
}

static __always_inline int emud_release_ifb(const struct emud_exit *e)
{
	enum emud_pass why = emud_stamp_for_ifb(e);

	if (why != EMUD_PASS_REASONS)
		return emud_pass_by(e, why);
	emud_mark_encrypted(e);
	emud_copy_by_stamp(e, e->link->ifindex, 0, 0);
	if (e->skb->sk &&
	    !emud_keeps_socket(e->skb, e->p->scratch, emud_own_qdisc(e->link)) &&
	    emud_by_clone(e, e->link->ifindex))
		return TC_ACT_STOLEN;
	return bpf_redirect(e->link->ifindex, 0);
}

/*
 * Before Linux 6.12 (found on 6.1) an ifb drops packets from bpf_redirect(),
 * because skb->redirected is not set. A mirred filter after the classifier
 * sets it, so on these kernels the classifier stamps the packet and continues.
 * mirred keeps the socket, which emud_orphan has removed before. A copy can
 * reach the ifb by that filter only: it enters the device once more with its
 * stamp.
 */
static __always_inline int emud_release_mirred(const struct emud_exit *e)
{
	enum emud_pass why = emud_stamp_for_ifb(e);

	if (why != EMUD_PASS_REASONS)
		return emud_pass_by(e, why);
	/* Such a device would remove the MAC header again. */
	if (e->link->flags & EMUD_F_L3)
		e->count->unaltered += e->p->copied ? e->p->segments : 0;
	else
		emud_copy_by_stamp(e, e->skb->ifindex, BPF_F_INGRESS, 1);
	emud_mark_encrypted(e);
	return TC_ACT_UNSPEC;
}

/* These protocols leave by an IP-only stamp. */
static __always_inline int emud_ip_only(const struct emud_link *l)
{
	return l->release == EMUD_RELEASE_IFB || l->release == EMUD_RELEASE_MIRRED ||
	       l->release == EMUD_RELEASE_QDISC_IFB;
}

/* Releases by fq or emud's qdisc. */
static __always_inline int emud_release_stamped(const struct emud_exit *e)
{
	const __u32 release = e->link->release;

	if (emud_by_qdisc() && emud_uses(CLASSES) && unlikely(e->p->service)) {
		if (unlikely(emud_is_held(e)) && !emud_can_wait(e))
			e->p->service &= ~EMUD_SERVICE_BLOCKS;
		emud_put_class(e);
	}
	if (emud_uses_any(1 << EMUD_RELEASE_STAMP | 1 << EMUD_RELEASE_QDISC) &&
	    (release == EMUD_RELEASE_STAMP || release == EMUD_RELEASE_QDISC))
		return emud_release_stamp(e);
	if (emud_uses_any(1 << EMUD_RELEASE_IFB | 1 << EMUD_RELEASE_QDISC_IFB) &&
	    (release == EMUD_RELEASE_IFB || release == EMUD_RELEASE_QDISC_IFB))
		return emud_release_ifb(e);
	if (emud_releases(MIRRED) && release == EMUD_RELEASE_MIRRED)
		return emud_release_mirred(e);
	return emud_pass_by(e, EMUD_PASS_INACTIVE);
}

#endif
