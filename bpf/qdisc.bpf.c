// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The qdisc of engine `qdisc`: holds each packet until the departure time in its stamp,
 * which the classifier has set (bpf/release_stamp.h).
 *
 * One Qdisc_ops serves both directions of a link: the root of the device and that of the
 * ifb, which differ in their handles. Its name is unique on the host, and the kernel lists
 * it only while attach runs; a qdisc in use keeps its programs and their maps.
 */
#include "kernel.h"
#include "wheel.h"
#include "classes.h"

/* 1: packets may wait in classes. Compiled with and without: code that the kernel finds dead and removes
 * makes attach a third longer. */
#ifndef EMUD_SERVES
#define EMUD_SERVES 1
#endif

/* Set by the loader. */
SEC(".rodata.room") const volatile struct emud_qdisc_room emud_room;

/* Packets due within this time leave with those due now: a timer interrupt costs 1,300 to
 * 2,000 instructions, and netem sends up to five packets for one. Flat out, a packet with a
 * delay of 2 ms took 2,139 instructions with 8 us, 2,255 with 4; one of a local sender 2,264
 * and 3,133 (7.2, icount). */
#define EMUD_EARLY_NS 8192

/* Packets that move into the buckets (wheel.h) with each one that leaves: they keep pace with one
 * that comes for each one that leaves, and empty spans. If none leaves, more. */
#define EMUD_DRAW 2
#define EMUD_DRAW_MOST 64

static __always_inline __u32 emud_direction(const struct Qdisc *sch)
{
	return sch->handle >> EMUD_QDISC_HANDLE_SHIFT & (EMUD_DIRECTIONS - 1);
}

/* A stamp in the past, or no departure time: at once. */
static __always_inline __u64 emud_due(const struct sk_buff *skb, __u64 now)
{
	__u64 due = skb->tstamp;

	return due > now && due - now < EMUD_QDISC_HORIZON_NS ? due
							      : now & ~EMUD_QDISC_MARKS;
}

SEC("struct_ops/emud_enqueue")
int BPF_PROG(emud_enqueue, struct sk_buff *skb, struct Qdisc *sch,
	     struct bpf_sk_buff_ptr *to_free)
{
	__u32 direction = emud_direction(sch), number, len = emud_len(skb);
	struct emud_wheel *w = &emud_wheels[direction];
	__u64 now = bpf_ktime_get_ns(), stamp = skb->tstamp, due = emud_due(skb, now);
	enum emud_entry entry = EMUD_ENTRY_FOREIGN;
	__u32 by_sender = due & EMUD_QDISC_BY_SENDER;
	struct emud_server *s = emud_server_at(direction);
	struct emud_classed classed = {};
	struct emud_waiting *value = NULL;

	if (EMUD_SERVES && stamp & EMUD_QDISC_CLASSED) {
		emud_read_class(skb, &classed);
		if (unlikely(classed.magic == EMUD_TOKEN)) {
			emud_keep_token(&classed, skb);
			return NET_XMIT_SUCCESS;
		}
		emud_serve_all(sch, direction, now, 1);
		entry = emud_enter(s, &classed,
				   emud_is_limited(s, &classed, skb, emud_room.packets),
				   now);
		if (entry == EMUD_ENTRY_DROPPED) {
			/* Like a wire, without a notification to the sender; the monitor takes
			 * SKB_DROP_REASON_QDISC_DROP for a failure of the engine. */
			emud_expect_token(&classed, 0);
			emud_count_full(direction, s, &classed);
			bpf_kfree_skb(skb);
			return NET_XMIT_SUCCESS;
		}
	}
	/* Any user can hold packets back for 10 s, and would take the room of all. */
	if (by_sender && w->by_sender >= emud_room.packets >> EMUD_QDISC_BY_SENDER_SHIFT)
		goto drop;
	number = emud_take(w, direction == EMUD_DOWN ? emud_room.down_from : 0,
			   emud_room.packets, &value);
	if (!number || !value)
		goto drop;
	due &= ~EMUD_QDISC_CLASSED;
	value->due = due;
	value->next = 0;
	value->arrival = w->arrivals++;
	w->by_sender += by_sender;
	skb = bpf_kptr_xchg(&value->skb, skb);
	if (skb) /* never: the value was free */
		bpf_kfree_skb(skb);
	if (entry == EMUD_ENTRY_WAITS)
		emud_put_in_class(direction, s, &classed, number, stamp);
	else
		emud_sort_in(w, number, due, now);
	sch->q.qlen++;
	sch->qstats.backlog += len;
	/* Another CPU that sends takes out the next packet later. */
	w->now = w->sending ? 0 : now;
	return NET_XMIT_SUCCESS;
drop:
	if (entry != EMUD_ENTRY_FOREIGN)
		emud_expect_token(&classed, 0);
	sch->qstats.drops++;
	bpf_qdisc_skb_drop(skb, to_free);
	return NET_XMIT_DROP;
}

static __always_inline void emud_set_timer(struct Qdisc *sch, struct emud_wheel *w,
					   __u64 time)
{
	w->timer = time;
	bpf_qdisc_watchdog_schedule(sch, time, 0);
}

/* When the next span may be drawn, for the timer that is set early. */
static __always_inline __u64 emud_draw_due(const struct emud_wheel *w)
{
	return (w->near << EMUD_SPAN_SHIFT) + EMUD_TIMER_LEAD_NS;
}

struct emud_draws {
	__u64 now;
	__u32 direction;
};

static long emud_draw_next(__u32 i, struct emud_draws *draws)
{
	struct emud_wheel *w = &emud_wheels[draws->direction & (EMUD_DIRECTIONS - 1)];

	return !emud_draw(w, draws->now);
}

/* `due` is that of the next packet. Returns whether more has to be drawn before any packet
 * leaves: the time has come to a span that is not near, or no packet leaves anyway. */
static __always_inline int emud_draw_some(struct emud_wheel *w, __u32 direction,
					  __u64 now, __u64 due)
{
	struct emud_draws draws = {now, direction};
	int waits = due > now + EMUD_EARLY_NS || emud_present(w, now) > w->near;
	__u32 most = waits ? EMUD_DRAW_MOST : EMUD_DRAW;

	return bpf_loop(most, emud_draw_next, &draws, 0) == most && waits;
}

SEC("struct_ops/emud_dequeue")
struct sk_buff *BPF_PROG(emud_dequeue, struct Qdisc *sch)
{
	__u32 direction = emud_direction(sch), number;
	struct emud_wheel *w = &emud_wheels[direction];
	struct emud_waiting *value = NULL;
	__u64 now = w->now, wake = EMUD_NEVER, due;
	struct sk_buff *skb;

	w->now = 0;
	w->sending = 0;
	if (EMUD_SERVES) {
		if (!now)
			now = bpf_ktime_get_ns();
		emud_serve_all(sch, direction, now, 0);
		wake = emud_wake(emud_server_at(direction));
	}
	due = emud_next_due(w);
	if (due == EMUD_NEVER && !w->far && wake == EMUD_NEVER)
		return NULL;
	if (!now)
		now = bpf_ktime_get_ns();
	if (unlikely(w->far)) {
		if (emud_draw_some(w, direction, now, due)) {
			emud_set_timer(sch, w, now);
			return NULL;
		}
		due = emud_next_due(w);
	}
	if (due > now + EMUD_EARLY_NS) {
		if (unlikely(w->far) && due > emud_draw_due(w))
			due = emud_draw_due(w);
		due -= EMUD_TIMER_LEAD_NS;
		if (due > wake)
			due = wake;
		/* A timer for this time has not gone off if that is ahead, since `now` was read under
		 * this lock. The kernel's function would find it set, too, for 40 instructions. */
		if (due != w->timer || due <= now)
			emud_set_timer(sch, w, due);
		return NULL;
	}
	number = emud_pop(w, &value);
	if (!number || !value)
		return NULL;
	skb = bpf_kptr_xchg(&value->skb, NULL);
	due = value->due & ~EMUD_QDISC_MARKS;
	emud_give_back(w, number, value);
	if (!skb)
		return NULL;
	/* The monitor takes it for the departure time; none stays none. */
	if (EMUD_SERVES && skb->tstamp)
		skb->tstamp = due;
	w->sending = 1;
	sch->q.qlen--;
	sch->qstats.backlog -= emud_len(skb);
	bpf_qdisc_bstats_update(sch, skb);
	return skb;
}

SEC("struct_ops/emud_init")
int BPF_PROG(emud_init, struct Qdisc *sch, struct nlattr *options,
	     struct netlink_ext_ack *why)
{
	struct emud_wheel *w = &emud_wheels[emud_direction(sch)];

	/* A second qdisc of this name, made by hand while attach ran: it would get the
	 * packets of the first. */
	if (w->owner)
		return -EMUD_EBUSY;
	w->owner = (__u64)sch;
	if (EMUD_SERVES)
		emud_set_waiting(emud_direction(sch), ~0ULL);
	w->line_due = w->at = EMUD_NEVER;
	sch->limit = emud_room.packets;
	return 0;
}

/* Frees all waiting packets, then the spans, each as the near one: a counter of this loop would be
 * one that the verifier follows. */
static long emud_free_next(__u32 i, __u32 *direction)
{
	struct emud_wheel *w =
		&emud_wheels[emud_wheel_bound(*direction, EMUD_DIRECTIONS)];
	struct emud_waiting *value = NULL;
	struct emud_list *span;
	struct sk_buff *skb;
	__u32 number;

	if (emud_next_due(w) != EMUD_NEVER) {
		number = emud_pop(w, &value);
	} else {
		if (!w->far)
			return 1;
		span = emud_span_at(w, w->near);
		number = span->first;
		if (!number) {
			w->near++;
			return 0;
		}
		value = emud_waiting_at(number);
		if (value)
			span->first = value->next;
		w->far--;
	}
	if (!number || !value)
		return 1;
	skb = bpf_kptr_xchg(&value->skb, NULL);
	emud_give_back(w, number, value);
	if (skb)
		bpf_kfree_skb(skb);
	return 0;
}

/* The device goes down, or the qdisc is deleted. */
SEC("struct_ops/emud_reset")
void BPF_PROG(emud_reset, struct Qdisc *sch)
{
	__u32 direction = emud_direction(sch);
	struct emud_wheel *w = &emud_wheels[direction];

	if (w->owner != (__u64)sch)
		return;
	bpf_loop(emud_room.packets + EMUD_SPANS + 1, emud_free_next, &direction, 0);
	if (EMUD_SERVES)
		emud_free_classes(emud_direction(sch), emud_room.packets);
	w->now = w->timer = 0;
	/* Otherwise packets of its spans would go into buckets, which have no room for them. */
	w->near = 0;
	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
}

/* Also of a qdisc whose init failed. */
SEC("struct_ops/emud_destroy")
void BPF_PROG(emud_destroy, struct Qdisc *sch)
{
	struct emud_wheel *w = &emud_wheels[emud_direction(sch)];

	if (w->owner != (__u64)sch)
		return;
	w->owner = 0;
	if (EMUD_SERVES)
		emud_set_waiting(emud_direction(sch), 0);
}

/* The loader writes the id. */
SEC(".struct_ops")
struct Qdisc_ops emud_qdisc = {
	.enqueue = (void *)emud_enqueue,
	.dequeue = (void *)emud_dequeue,
	.init = (void *)emud_init,
	.reset = (void *)emud_reset,
	.destroy = (void *)emud_destroy,
	.id = "emud",
};

char LICENSE[] SEC("license") = "Dual BSD/GPL";
