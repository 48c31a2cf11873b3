// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The link emulator inside the kernel.
 *
 * Theory of operation
 *
 * A classifier on a device sets a departure time for every packet, or drops it,
 * so that the device behaves like the link described in struct emud_link. A
 * packet passes the stages in one direction, one header each:
 *
 * 	parse -> match -> timeline -> queue (aqm, ecn) -> loss -> alter -> delay ->
 * 	slot -> release
 *
 * A stage is a global function: the verifier checks each one once.
 *
 * No packet waits in the classifier: release hands the packet, with its
 * departure time, to sch_fq, emud's qdisc, or the holder at a TAP.
 *
 * Egress of the device is the link's up direction, ingress is down. A packet
 * that returns after its wait (the clone, a frame from the holder) passes the
 * classifier again and is identified by its tc_index. Foreign packets continue
 * to the next filter (TC_ACT_UNSPEC), so that other programs on the device see
 * them. A lost packet is consumed (TC_ACT_STOLEN): TC_ACT_SHOT would notify a
 * local TCP sender, which no wire does.
 *
 * The configuration is doubled: `emud set` writes the inactive generation and
 * then switches one control word, so no packet sees half a change.
 *
 * Longer than 400 lines: the order of the stages, for the programs of all hooks.
 */
#include <linux/if_packet.h>
#include "maps.h"
#include "rng.h"
#include "parse.h"
#include "match.h"
#include "queue.h"
#include "loss.h"
#include "delay.h"
#include "alter.h"
#include "release.h"
#include "slot.h"
#include "short.h"

static __always_inline int emud_holder_gone(const struct emud_packet *p,
					    const struct emud_link *l, __u64 now)
{
	struct emud_holder *h;

	if (!emud_releases(HOLD) || l->release != EMUD_RELEASE_HOLD)
		return 0;
	h = EMUD_LOOKUP(emud_holders, p->direction);
	return !h || *(volatile __u64 *)&h->lease_ns < now;
}

/* Returns the kind of the rows in force, 0 without. */
static __always_inline __u32 emud_timed_by(const struct emud_packet *p)
{
	return emud_uses(TIMELINE) ? p->timed : 0;
}

/* Returns whether the link needs packet numbers for its draws. */
static __always_inline int emud_draws(const struct emud_packet *p,
				      const struct emud_link *l)
{
	return emud_loses(p, l) || emud_alters(l) ||
	       (emud_uses_any(EMUD_FEATURE_JITTER | EMUD_FEATURE_DELAYS) &&
		l->flags & EMUD_F_DRAWN) ||
	       (emud_uses(SIGNALS) && emud_aqm_draws(l));
}

/* Returns why a packet is not emulated. */
static __always_inline enum emud_pass emud_foreign(const struct __sk_buff *skb,
						   const struct emud_packet *p,
						   const struct emud_link *l, __u64 now,
						   __u32 down)
{
	if (l->release == EMUD_RELEASE_NONE)
		return EMUD_PASS_INACTIVE;
	if (unlikely(p->untouched))
		return EMUD_PASS_RULE;
	if (p->is_neighbour && !(l->flags & EMUD_F_NEIGHBOURS))
		return EMUD_PASS_NEIGHBOUR;
	if (down)
		return EMUD_PASS_REASONS;
	if (emud_ip_only(l) && !emud_stampable(skb))
		return EMUD_PASS_NOT_IP;
	if (emud_holder_gone(p, l, now))
		return EMUD_PASS_NO_HOLDER;
	return EMUD_PASS_REASONS;
}

/* Drops the packet like a wire: without a notification to the sender. */
static __always_inline int emud_gone(const struct emud_packet *p, __u64 *count)
{
	*count += p->segments;
	return TC_ACT_STOLEN;
}

/* Returns false if the packet was dropped and counted. */
static __always_inline int emud_through_queue(struct __sk_buff *skb,
					      struct emud_packet *p,
					      const struct emud_link *l,
					      struct emud_counters *count)
{
	int verdict;

	p->sent = p->arrival;
	if (!emud_uses(QUEUE))
		return 1;
	if (unlikely(emud_timed_by(p) >= EMUD_TIMELINE_RATES))
		verdict = emud_timed_queue(skb, p);
	else if (emud_rate_mult(p, l))
		verdict = emud_queue(skb, p, l);
	else
		return 1;
	if (verdict == EMUD_FULL)
		count->queue_dropped += p->segments;
	if (verdict == EMUD_DROP)
		count->aqm_dropped[l->queueing.aqm & (EMUD_AQMS - 1)] += p->segments;
	p->mark = verdict == EMUD_MARK;
	return verdict == EMUD_ADMIT || verdict == EMUD_MARK;
}

/* Returns false if no slot within the permitted wait has room. */
static __always_inline int emud_slot_in(struct emud_packet *p)
{
	p->departure = emud_slotted(p, p->departure);
	if (!p->departure)
		return 0;
	if (p->copied) {
		p->copy_departure = emud_slotted(p, p->copy_departure);
		p->copied = p->copy_departure != 0;
	}
	return 1;
}

static __always_inline int emud_wire_loses(struct __sk_buff *skb, struct emud_packet *p,
					   const struct emud_link *l,
					   struct emud_counters *count)
{
	if (!emud_loses(p, l) || !emud_lost(p, l))
		return 0;
	if (!emud_uses(SIGNALS) || likely(!(l->flags & EMUD_F_LOSS_MARKS)) ||
	    !emud_ecn_instead(skb, p))
		return 1;
	count->marked += p->segments;
	return 0;
}

/* Emulates one link; parse and match have filled in p. */
static __always_inline int emud_emulate(struct __sk_buff *skb, struct emud_packet *p,
					const struct emud_link *l,
					struct emud_counters *count)
{
	int verdict;

	/* The link of a later row may draw where this one does not. */
	if (emud_timed_by(p) || emud_draws(p, l))
		emud_number(p, l, count);
	if (unlikely(l->flags & EMUD_F_LOSS_BEFORE) && emud_wire_loses(skb, p, l, count))
		return emud_gone(p, &count->lost);
	if (!emud_through_queue(skb, p, l, count))
		return TC_ACT_STOLEN;
	if (emud_uses(SIGNALS) && unlikely(p->mark)) {
		if (!emud_ecn_mark(skb, p))
			return emud_passed(skb, p, l, count, EMUD_PASS_FAILED);
		count->marked += p->segments;
	}
	if (unlikely(emud_timed_by(p))) {
		emud_timeline(p, p->sent, 1);
		l = emud_link(p);
		if (!l)
			return TC_ACT_UNSPEC;
	}
	if (!p->service)
		p->service = l->service;
	/* In phases, that of the link at which its last bit is sent. */
	if (likely(!(l->flags & EMUD_F_LOSS_BEFORE)) &&
	    emud_wire_loses(skb, p, l, count)) {
		if (likely(!p->service))
			return emud_gone(p, &count->lost);
		/* The wire of the bottleneck is in front of what loses it, and its
		 * class may drop it first: the holder counts. */
		p->lost = 1;
	}
	if (emud_alters(l) && !p->lost)
		emud_alter(skb, p);
	emud_delay(p, l, count);
	if (emud_uses(ALTER) && unlikely(p->copied))
		emud_delay_copy(p);
	if (emud_uses(SLOT) && unlikely(l->tdma.span_ns) && !emud_slot_in(p))
		return emud_gone(p, &count->queue_dropped);
	emud_hold_back(p);
	verdict = emud_release(skb, p, l, count);
	if (p->passed || p->lost)
		return verdict;
	emud_count_delay(p, count);
	/* What a class may drop is counted by the holder. */
	if (unlikely(p->service))
		count->classed += p->segments;
	else
		count->sent_bytes += p->wire_len;
	return verdict;
}

static __always_inline int emud_stages(struct __sk_buff *skb, struct emud_packet *p)
{
	__u64 now = emud_now(skb);
	struct emud_counters *count;
	const struct emud_link *l;
	enum emud_pass why;
	__u32 down;

	l = emud_link(p);
	if (!l)
		return TC_ACT_UNSPEC;
	/* The local copy of a packet that this host sent to a multicast group:
	 * never on the wire, and without an Ethernet header
	 * (dev_loopback_xmit()). */
	if (unlikely(skb->pkt_type == PACKET_LOOPBACK && p->direction == EMUD_DOWN))
		return emud_untouched(l);
	emud_parse(skb, p, l);
	if (emud_uses(MATCH) && unlikely(l->flags & (EMUD_F_RULES | EMUD_F_MATRIX))) {
		emud_match(skb, p);
		l = emud_link(p);
	}
	count = emud_counters(p);
	if (!l || !count)
		return TC_ACT_UNSPEC;
	count->packets += p->segments;
	count->bytes += p->wire_len;
	if (p->segments > 1)
		count->super_packets++;
	p->arrival = now;
	p->earliest = emud_earliest(skb, p->direction, now);
	p->held = 0;
	down = l->flags & EMUD_F_DOWN;
	if (emud_uses(TIMELINE) && unlikely(l->timeline.count)) {
		p->timeline = p->slot;
		p->timed = l->timeline.kind;
		emud_timeline(p, p->arrival, 0);
		l = emud_link(p);
		if (!l)
			return TC_ACT_UNSPEC;
		/* A link that is down is down in all its phases. */
		down |= l->flags & EMUD_F_DOWN;
	}
	why = emud_foreign(skb, p, l, now, down);
	if (unlikely(why != EMUD_PASS_REASONS))
		return emud_passed(skb, p, l, count, why);
	if (unlikely(down))
		return emud_gone(p, &count->down);
	return emud_emulate(skb, p, l, count);
}

/* All packets of a super-packet would have the same fate, so it passes the
 * segmenter first, whatever its source: UDP GSO and packets merged on another
 * device ignore this device's gso_max_segs. With `sums`, so does a packet whose
 * checksum is still to be computed: after the link it would cover the damage. Returns
 * the device to send it to. */
static __always_inline __u32 emud_to_segment(struct __sk_buff *skb, __u32 direction,
					     __u32 segmenter, __u32 sums)
{
	__u64 *until = &emud_segmenting_until[direction], seen, now;

	if (skb->tc_index == EMUD_TC_INDEX_SEGMENT) {
		skb->tc_index = 0;
		return 0;
	}
	if (likely(!segmenter))
		return 0;
	/* The local copy of a packet to a group: bpf_redirect() drops what has no Ethernet header. */
	if (unlikely(skb->pkt_type == PACKET_LOOPBACK))
		return 0;
	/* A shared packet cannot wait in a second queue, and is not damaged. */
	if (emud_uses(ALTER) && sums && !emud_alone(skb))
		return 0;
	seen = *(volatile __u64 *)until;
	if (skb->gso_size || (emud_uses(ALTER) && sums && emud_is_partial(skb))) {
		now = emud_now(skb);
		/* All CPUs read it; at most once in this time it is written. */
		if (now + EMUD_SEGMENTING_NS > seen)
			*(volatile __u64 *)until = now + 2 * EMUD_SEGMENTING_NS;
		return segmenter;
	}
	if (likely(!seen))
		return 0;
	if (emud_now(skb) < seen)
		return segmenter;
	/* Another CPU may have set it again. */
	__sync_val_compare_and_swap(until, seen, 0);
	return 0;
}

#define EMUD_KEEP(map) asm volatile("" : : "r"(&(map)))

/* A map that no program references is freed with the loader: detach finds the saved
 * state through the maps of this one, the holder its account, and another classifier
 * takes over maps that this one does not use. */
static __always_inline void emud_keep_maps(void)
{
	EMUD_KEEP(emud_addresses);
	EMUD_KEEP(emud_behinds);
	EMUD_KEEP(emud_cgroups);
	EMUD_KEEP(emud_classes);
	EMUD_KEEP(emud_flows);
	EMUD_KEEP(emud_hits);
	EMUD_KEEP(emud_holders);
	EMUD_KEEP(emud_instances);
	EMUD_KEEP(emud_lanes);
	EMUD_KEEP(emud_learned);
	EMUD_KEEP(emud_masks);
	EMUD_KEEP(emud_pair_index);
	EMUD_KEEP(emud_pairs);
	EMUD_KEEP(emud_patterns);
	EMUD_KEEP(emud_plans);
	EMUD_KEEP(emud_resolvers);
	EMUD_KEEP(emud_rings);
	EMUD_KEEP(emud_rows);
	EMUD_KEEP(emud_rules);
	EMUD_KEEP(emud_saved);
	EMUD_KEEP(emud_services);
	EMUD_KEEP(emud_states);
	EMUD_KEEP(emud_tables);
	EMUD_KEEP(emud_stretches);
	EMUD_KEEP(emud_turns);
}

/*
 * Returns which set of the figures per CPU a packet of this direction uses; EMUD_NO_SCRATCH: none
 * is free, and the packet has to pass.
 *
 * With PREEMPT_RT, disabled bottom halves are no lock of the CPU unless the kernel was built with
 * PREEMPT_RT_NEEDS_BH_LOCK (local_bh_disable() since 6.18): a thread that sends can lose its CPU
 * in the classifier, to an urgent one or at the end of its slice, and the next one sends, too. The
 * figures of two packets must not be mixed, and the second one cannot wait for the first one, so it
 * takes another set.
 */
static __always_inline __u32 emud_scratch(const struct __sk_buff *skb, __u32 direction)
{
	struct emud_counters *count;
	struct emud_packet *p;
	__u32 set;

	if (!emud_preempt_rt)
		return direction;
	for (set = direction; set < EMUD_SETS; set += EMUD_DIRECTIONS) {
		p = EMUD_LOOKUP(emud_packets, set);
		if (p && !__sync_lock_test_and_set(&p->busy, 1))
			return set;
	}
	count = EMUD_LOOKUP(emud_counts, direction);
	if (count) {
		__sync_fetch_and_add(&count->preempting, skb->gso_segs ?: 1);
		__sync_fetch_and_add(&count->preempting_bytes, skb->len);
	}
	return EMUD_NO_SCRATCH;
}

static __always_inline void emud_leave(__u32 scratch)
{
	struct emud_packet *p;

	if (!emud_preempt_rt)
		return;
	p = EMUD_LOOKUP(emud_packets, scratch);
	if (p)
		*(volatile __u64 *)&p->busy = 0;
}

/* A packet that emud has not seen yet. */
static __always_inline int emud_first(struct __sk_buff *skb, __u32 direction,
				      __u32 scratch, struct emud_control *control)
{
	__u32 segmenter, generation, base;
	struct emud_packet *p;
	__u64 turns_at;
	int verdict;

	/* Before the generation: user space writes that first, then 0. */
	turns_at = *(volatile __u64 *)&control->turns_at;
	generation = *(volatile __u32 *)&control->generation;
	if (unlikely(turns_at && emud_now(skb) >= turns_at))
		generation = *(volatile __u32 *)&control->next;
	segmenter = *(volatile __u32 *)&control->segmenter[direction];
	segmenter = emud_to_segment(skb, direction, segmenter,
				    generation & EMUD_SUMS << direction);
	if (unlikely(segmenter)) {
		skb->tc_index = EMUD_TC_INDEX_SEGMENT;
		return bpf_redirect(segmenter, 0);
	}
	base = direction * EMUD_GENERATIONS + (generation & EMUD_LINKS_GENERATION);
	if (emud_uses(SHORT) && likely(generation & EMUD_SHORT << direction)) {
		verdict = EMUD_ONLY_QDISC ? emud_short(skb, direction, scratch, base)
					  : emud_short_apart(skb, scratch, base);
		if (likely(verdict != EMUD_NOT_PLAIN))
			return verdict;
	}
	p = EMUD_LOOKUP(emud_packets, scratch);
	if (!p)
		return TC_ACT_UNSPEC;
	__builtin_memset(p, 0, EMUD_PACKET_ZEROED);
	p->direction = direction;
	p->scratch = scratch;
	p->control = generation;
	p->base = p->slot = base;
	p->queue = p->path = direction;
	return emud_stages(skb, p);
}

static __always_inline int emud_run(struct __sk_buff *skb, __u32 direction)
{
	struct emud_control *control;
	__u32 scratch, mark;
	__u64 ends_at;
	int verdict;

	if (skb->tc_index == EMUD_TC_INDEX) {
		mark = direction == EMUD_DOWN && emud_encrypted(skb)
			       ? emud_encrypted_mark(skb)
			       : 0;
		skb->tc_index = mark;
		return TC_ACT_UNSPEC;
	}
	if (direction == EMUD_DOWN &&
	    unlikely(skb->tc_index == emud_encrypted_mark(skb))) {
		skb->tc_index = 0;
		/* Otherwise it was forwarded unchanged, and this is a different
		 * wire. */
		if (!emud_encrypted(skb))
			return TC_ACT_UNSPEC;
	}
	if (skb->tc_index == EMUD_TC_INDEX_CLONE)
		skb->tc_index = 0;
	control = EMUD_LOOKUP(emud_control, 0);
	if (!control) {
		emud_keep_maps();
		return TC_ACT_UNSPEC;
	}
	ends_at = *(volatile __u64 *)&control->ends_at;
	if (unlikely(ends_at && emud_now(skb) >= ends_at)) {
		emud_unstamp(skb, direction, emud_now(skb));
		return TC_ACT_UNSPEC;
	}
	scratch = emud_scratch(skb, direction);
	if (scratch == EMUD_NO_SCRATCH) {
		emud_unstamp(skb, direction, emud_now(skb));
		return TC_ACT_UNSPEC;
	}
	verdict = emud_first(skb, direction, scratch, control);
	emud_leave(scratch);
	return verdict;
}

/* Both hooks of clsact: cls_bpf_classify() identifies the hook by the filter's classid.
 * One program for both is verified once, which is most of the time of an
 * attach. */
SEC("classifier")
int emud_classify(struct __sk_buff *skb)
{
	int down;

	if (emud_test_run)
		down = skb->cb[0];
	else if (EMUD_ONLY_QDISC)
		down = 1; /* emud_egress() has the other hook */
	else
		down = skb->tc_classid == EMUD_CLASSID_DOWN;
	return emud_run(skb, down ? EMUD_DOWN : EMUD_UP);
}

/* Egress of engine qdisc, by tcx: a program there takes 130 instructions for a packet before
 * its first one, a filter of clsact 325. tcx has no verdict that consumes a packet, but a
 * redirect to no device frees it, and the sender gets no error. */
SEC("classifier")
int emud_egress(struct __sk_buff *skb)
{
	int verdict = emud_run(skb, EMUD_UP);

	return verdict == TC_ACT_STOLEN ? bpf_redirect(0, 0) : verdict;
}

/*
 * Ingress, before all other filters, if a mirred filter redirects: a packet
 * that still has its sender's socket (a veth of this host) passes ingress once
 * more as a clone, which has none. So the filters in between see it once, and
 * the sender does not wait for mirred.
 */
SEC("classifier")
int emud_orphan(struct __sk_buff *skb)
{
	if (!skb->sk || skb->tc_index == EMUD_TC_INDEX_CLONE || !emud_stampable(skb))
		return TC_ACT_UNSPEC;
	skb->tc_index = EMUD_TC_INDEX_CLONE;
	/* netif_rx() answers NET_RX_DROP = 1 if the CPU's backlog is full. */
	if (bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS)) {
		skb->tc_index = 0;
		return TC_ACT_UNSPEC;
	}
	return TC_ACT_STOLEN;
}

/* Ingress of emud's TAP: the holder has written a frame back; the frame
 * continues to its target. */
static __always_inline int emud_resume(struct __sk_buff *skb, __u64 flags)
{
	struct emud_control *control;
	__u32 zero = 0;

	control = bpf_map_lookup_elem(&emud_control, &zero);
	if (!control)
		return TC_ACT_SHOT;
	skb->tc_index = EMUD_TC_INDEX;
	return bpf_redirect(control->ifindex, flags);
}

SEC("classifier")
int emud_tap_up(struct __sk_buff *skb)
{
	return emud_resume(skb, 0);
}

SEC("classifier")
int emud_tap_down(struct __sk_buff *skb)
{
	return emud_resume(skb, BPF_F_INGRESS);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
