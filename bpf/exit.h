/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exit: what all kinds of release share: a packet on its way out, its stamp, and
 * its copy.
 *
 * A copy (duplicate) leaves first, by bpf_clone_redirect() of the packet with
 * the copy's departure time; then the packet gets its own.
 */
#ifndef EMUD_EXIT_H
#define EMUD_EXIT_H

#include "core.h"
#include "delay.h"
#include "maps.h"

static __always_inline __u32 emud_by_fq(void)
{
	return emud_uses_any(EMUD_BY_FQ);
}

static __always_inline __u32 emud_by_qdisc(void)
{
	return emud_uses_any(EMUD_BY_QDISC);
}

/* A packet on its way out, for the functions below. */
struct emud_exit {
	struct __sk_buff *skb;
	struct emud_packet *p;
	const struct emud_link *link;
	struct emud_counters *count;
};

/* Does not continue to the mirred filter, which would send the packet to the
 * ifb. The classifier is the last other filter there, so no filter misses the
 * packet. */
static __always_inline int emud_untouched(const struct emud_link *l)
{
	return l->release == EMUD_RELEASE_MIRRED ? TC_ACT_OK : TC_ACT_UNSPEC;
}

/* The verifier permits a write to the context at a constant offset only; clang merges two
 * of them into one at an address that it computes. */
static __always_inline void emud_set_stamp(struct __sk_buff *skb, __u64 stamp)
{
	asm volatile("*(u64 *)(%[skb] + %[at]) = %[stamp]"
		     :
		     : [skb] "r"(skb), [at] "i"(offsetof(struct __sk_buff, tstamp)),
		       [stamp] "r"(stamp)
		     : "memory");
}

/* Returns the stamp for emud's qdisc, which sees nothing else of how long a sender holds
 * its packet back. */
static __always_inline __u64 emud_marked(__u64 stamp, __u64 held)
{
	return (stamp & ~EMUD_QDISC_MARKS) |
	       (held > EMUD_HELD_USUAL_NS ? EMUD_QDISC_BY_SENDER : 0);
}

/* A packet that passes keeps the time before which its sender does not want it on the
 * wire. Any other stamp, in the past or by another clock, is removed: the monitor
 * takes it for a departure time of this link, and the packet for a late one. Any user
 * can set such a stamp (SO_TXTIME), and one that another link has set is in the past.
 * To the qdisc, none means at once, as does one in the past. */
static __always_inline void emud_unstamp(struct __sk_buff *skb, __u32 direction,
					 __u64 now)
{
	__u64 earliest = emud_earliest(skb, direction, now);

	if (!emud_uses_any(EMUD_BY_FQ | EMUD_BY_QDISC) || direction != EMUD_UP)
		return;
	if (!earliest)
		emud_set_stamp(skb, 0);
	else if (emud_by_qdisc() && !emud_by_fq())
		emud_set_stamp(skb, emud_marked(earliest, earliest - now));
}

static __always_inline int emud_passed(struct __sk_buff *skb, struct emud_packet *p,
				       const struct emud_link *l,
				       struct emud_counters *count, enum emud_pass why)
{
	count->passed[why] += p->segments;
	p->passed = 1;
	emud_unstamp(skb, p->direction, p->arrival);
	return emud_untouched(l);
}

static __always_inline int emud_pass_by(const struct emud_exit *e, enum emud_pass why)
{
	return emud_passed(e->skb, e->p, e->link, e->count, why);
}

/* A shared packet (pktgen without !SHARED) crashes pskb_expand_head() when it
 * is cloned and changed: only a packet with a socket may be passed in. */
static __always_inline int emud_by_clone(const struct emud_exit *e, __u32 ifindex)
{
	return bpf_clone_redirect(e->skb, ifindex, 0) >= 0;
}

static __always_inline void emud_send_copy(const struct emud_exit *e, __u32 ifindex,
					   __u64 flags)
{
	long failed = bpf_clone_redirect(e->skb, ifindex, flags);

	/* A qdisc counts the packets that it drops (NET_XMIT_DROP). No counter has those
	 * that netif_rx() drops (NET_RX_DROP, the CPU's backlog is full). */
	if (failed < 0 || (flags & BPF_F_INGRESS && failed))
		e->count->unaltered += e->p->segments;
	else
		e->count->duplicated += e->p->segments;
}

/* ifb requires a MAC header, which a device without one does not provide. */
static __always_inline int emud_push_mac(struct __sk_buff *skb)
{
	struct ethhdr eth = {.h_proto = skb->protocol};

	return bpf_skb_change_head(skb, sizeof(eth), 0) ||
	       bpf_skb_store_bytes(skb, 0, &eth, sizeof(eth), 0);
}

#endif
