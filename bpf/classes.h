/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * classes: packets of the qdisc that wait in a class before they wait for their departure,
 * which counts from the end of their transmission.
 */
#ifndef EMUD_CLASSES_H
#define EMUD_CLASSES_H

#include "kernel.h"
#include "server.h"
#include "shared.h"

/* The longest delay of a decision, if the packets that it is about depart later anyway. */
#define EMUD_LAG_NS 1000000ULL

static __always_inline __u32 emud_len(struct sk_buff *skb)
{
	return ((struct qdisc_skb_cb *)skb->cb)->pkt_len;
}

static __always_inline struct emud_class *emud_account(const struct emud_server *s,
						       __u32 node)
{
	const __u32 index = s->first + node - 2;

	return bpf_map_lookup_elem(&emud_classes, &index);
}

static __always_inline struct emud_served *emud_served_of(__u32 direction, __u32 link)
{
	struct emud_holder *holder = bpf_map_lookup_elem(&emud_holders, &direction);

	return holder ? &holder->served[emud_wheel_bound(link, EMUD_LINKS_MAX)] : NULL;
}

/* Until when packets whose senders wait may come here: for ever, or not. */
static __always_inline void emud_set_waiting(__u32 direction, __u64 until)
{
	struct emud_holder *holder = bpf_map_lookup_elem(&emud_holders, &direction);

	if (holder)
		holder->lease_ns = until;
}

static __always_inline void emud_count_queue(struct emud_class *count,
					     const struct emud_node *n)
{
	count->backlog_packets = n->waiting;
	count->backlog_bytes = n->backlog;
}

/* By token: the number of the packet that came before it; 0: none is expected. */
EMUD_MAP(emud_tokens, ARRAY, 1, __u32); /* the loader sets the length */

static __always_inline void emud_expect_token(const struct emud_classed *classed,
					      __u32 number)
{
	const __u32 token = classed->token;
	__u32 *expected;

	if (likely(!(classed->flags & EMUD_SERVICE_HELD)))
		return;
	expected = bpf_map_lookup_elem(&emud_tokens, &token);
	if (expected)
		*expected = number;
}

/* Keeps a token until its packet has left the class; if it has by now, frees it. Packets of other
 * senders may come between the two (since 6.19 __dev_xmit_skb() has one CPU enqueue those of all),
 * so they are found by a random number. */
static __always_inline void emud_keep_token(const struct emud_classed *classed,
					    struct sk_buff *skb)
{
	const __u32 token = classed->token;
	__u32 *expected = bpf_map_lookup_elem(&emud_tokens, &token);
	struct emud_customer *c = NULL;

	if (expected && *expected) {
		c = emud_customer_at(*expected);
		*expected = 0;
	}
	if (c && c->waits && c->classed.token == classed->token) {
		skb = bpf_kptr_xchg(&c->token, skb);
		if (!skb)
			return;
	}
	bpf_kfree_skb(skb);
}

/* A packet leaves its class: its sender may go on. */
static __always_inline void emud_free_token(struct emud_server *s,
					    struct emud_customer *c)
{
	struct sk_buff *token;

	c->waits = 0;
	if (likely(!(c->classed.flags & EMUD_SERVICE_HELD)))
		return;
	s->held--;
	token = bpf_kptr_xchg(&c->token, NULL);
	if (token)
		bpf_kfree_skb(token);
}

/* Frees a packet that waited in a class, and its value. */
static __always_inline void emud_free_classed(struct emud_server *s, struct emud_wheel *w,
					      __u32 number, struct emud_waiting *value)
{
	struct sk_buff *skb = bpf_kptr_xchg(&value->skb, NULL);

	emud_give_back(w, number, value);
	if (!skb)
		return;
	s->freed++;
	s->freed_bytes += emud_len(skb);
	bpf_kfree_skb(skb);
}

/* A packet is on the wire until s->wire. */
static __noinline int emud_sent(__u32 direction, __u32 node, __u32 number)
{
	struct emud_wheel *w = &emud_wheels[emud_wheel_bound(direction, EMUD_DIRECTIONS)];
	struct emud_server *s = emud_server_at(direction);
	struct emud_customer *c = emud_customer_at(number);
	struct emud_waiting *value = emud_waiting_at(number);
	struct emud_class *count = emud_account(s, node);
	struct emud_served *served;
	__u64 due, wait, *last;

	if (!c || !value)
		return 0;
	emud_free_token(s, c);
	wait = s->now - c->arrival;
	if (count) {
		count->sent_packets += c->classed.packets;
		count->sent_bytes += c->classed.bytes;
		count->wait_ns += wait * c->classed.packets;
		if (count->longest_wait_ns < wait)
			count->longest_wait_ns = wait;
		emud_count_queue(count, emud_node_at(s, node));
	}
	served = emud_served_of(direction, c->classed.link);
	if (c->classed.flags & EMUD_SERVICE_LOST) {
		if (served)
			served->lost += c->classed.packets;
		emud_free_classed(s, w, number, value);
		return 0;
	}
	if (served) {
		served->sent_packets += c->classed.packets;
		served->sent_bytes += c->classed.own_bytes;
		if (c->classed.flags & EMUD_SERVICE_CORRUPTED)
			served->corrupted += c->classed.packets;
		if (c->classed.flags & EMUD_SERVICE_RESET)
			served->reset += c->classed.packets;
	}
	due = s->wire.at + c->delay;
	if (!(c->classed.flags & EMUD_SERVICE_OVERTAKES)) {
		last = &s->last[emud_wheel_bound(c->classed.path, EMUD_PATHS)];
		if (due < *last)
			due = *last;
		*last = due;
	}
	due = (due & ~EMUD_QDISC_MARKS) | (value->due & EMUD_QDISC_BY_SENDER);
	value->due = due;
	value->arrival = w->arrivals++;
	/* If the timer is late, there may be no bucket for the time at which it was due. */
	emud_sort_in(w, number, due > s->until ? due : s->until, s->until);
	return 0;
}

/* A packet has waited too long. */
static __noinline int emud_expired(__u32 direction, __u32 node, __u32 number)
{
	struct emud_wheel *w = &emud_wheels[emud_wheel_bound(direction, EMUD_DIRECTIONS)];
	struct emud_server *s = emud_server_at(direction);
	struct emud_customer *c = emud_customer_at(number);
	struct emud_waiting *value = emud_waiting_at(number);
	struct emud_class *count = emud_account(s, node);
	struct emud_served *served;

	if (!c || !value)
		return 0;
	emud_free_token(s, c);
	if (count) {
		count->expired += c->classed.packets;
		emud_count_queue(count, emud_node_at(s, node));
	}
	served = emud_served_of(direction, c->classed.link);
	if (served)
		served->dropped += c->classed.packets;
	emud_free_classed(s, w, number, value);
	return 0;
}

/* Takes over the figures in force. */
static __noinline int emud_update(__u32 direction, __u64 now)
{
	struct emud_server *s = emud_server_at(direction);
	const struct emud_control *control;
	const struct emud_plan *plan;
	__u32 generation, slot = 0;
	__u64 turns_at;

	control = bpf_map_lookup_elem(&emud_control, &slot);
	if (!control)
		return 0;
	/* As emud_first() of link.bpf.c. */
	turns_at = *(volatile __u64 *)&control->turns_at;
	generation = *(volatile __u32 *)&control->generation;
	if (unlikely(turns_at && now >= turns_at))
		generation = *(volatile __u32 *)&control->next;
	if (likely(s->generation == generation + 1ULL))
		return 0;
	slot = direction * EMUD_GENERATIONS + (generation & EMUD_LINKS_GENERATION);
	plan = bpf_map_lookup_elem(&emud_plans, &slot);
	if (!plan || !plan->nodes)
		return 0;
	emud_change(direction, plan, now);
	s->generation = generation + 1ULL;
	return 0;
}

/* Decides on what happens until now; `arrives`: what is sent now comes after an arrival. */
static __always_inline void emud_serve_all(struct Qdisc *sch, __u32 direction, __u64 now,
					   int arrives)
{
	struct emud_server *s = emud_server_at(direction);

	emud_update(direction, now);
	if (!s->nodes)
		return;
	emud_serve(direction, now, arrives);
	sch->q.qlen -= s->freed;
	sch->qstats.backlog -= s->freed_bytes;
	s->freed = 0;
	s->freed_bytes = 0;
}

/* Returns when to decide on what waits: in time for what departs first. */
static __always_inline __u64 emud_wake(const struct emud_server *s)
{
	__u64 base = s->event_at, after = s->least_after;

	if (!s->nodes || base == EMUD_NEVER)
		return EMUD_NEVER;
	if (base < s->wire.at)
		base = s->wire.at;
	if (after > EMUD_LAG_NS)
		after = EMUD_LAG_NS;
	return base + emud_later(after, EMUD_TIMER_LEAD_NS);
}

static __always_inline void emud_read_class(const struct sk_buff *skb,
					    struct emud_classed *classed)
{
	const struct qdisc_skb_cb *cb = (const struct qdisc_skb_cb *)skb->cb;
	const __u32 *from = (const __u32 *)cb->data;
	__u32 *to = (__u32 *)classed;

	to[0] = from[0];
	to[1] = from[1];
	to[2] = from[2];
	to[3] = from[3];
	to[4] = from[4];
}

/* What becomes of a packet with EMUD_QDISC_CLASSED. */
enum emud_entry {
	EMUD_ENTRY_DROPPED,
	EMUD_ENTRY_WAITS,
	EMUD_ENTRY_FOREIGN, /* it is of no class */
};

/* skb_set_tcp_pure_ack() */
#define EMUD_TRUESIZE_PURE_ACK 2

/* Returns whether the buffer of the sender limits its packets in a class. Pure ACKs of TCP take
 * nothing of it, and many sockets together would take the room of all classes. */
static __always_inline int emud_is_limited(const struct emud_server *s,
					   const struct emud_classed *classed,
					   const struct sk_buff *skb, __u32 room)
{
	return classed->flags & EMUD_SERVICE_HELD &&
	       skb->truesize != EMUD_TRUESIZE_PURE_ACK &&
	       s->held < room >> EMUD_QDISC_HELD_SHIFT;
}

/* Judges a packet that comes to its class now. */
static __always_inline enum emud_entry emud_enter(struct emud_server *s,
						  const struct emud_classed *classed,
						  int is_limited, __u64 now)
{
	const __u32 node = classed->service - s->first + 1;

	if (classed->magic != EMUD_CLASSED || !s->nodes || !node || node >= s->nodes ||
	    !emud_node_at(s, node)->plan.is_leaf)
		return EMUD_ENTRY_FOREIGN;
	/* Two packets do not come at one time if the server has gone on in between. */
	s->now = s->now < now ? now : s->now + 1;
	if (is_limited ||
	    !emud_is_full(s, emud_node_at(s, node), classed->bytes, classed->packets))
		return EMUD_ENTRY_WAITS;
	return EMUD_ENTRY_DROPPED;
}

/* A packet finds no room in its class. */
static __always_inline void emud_count_full(__u32 direction, const struct emud_server *s,
					    const struct emud_classed *classed)
{
	struct emud_class *count = emud_account(s, classed->service - s->first + 1);
	struct emud_served *served = emud_served_of(direction, classed->link);

	if (count)
		count->full += classed->packets;
	if (served)
		served->dropped += classed->packets;
}

/* Puts a packet in its class, whose departure was stamped as if it did not wait there. */
static __always_inline void emud_put_in_class(__u32 direction, struct emud_server *s,
					      const struct emud_classed *classed,
					      __u32 number, __u64 stamp)
{
	const __u32 node = classed->service - s->first + 1;
	struct emud_customer *c = emud_customer_at(number);
	struct emud_class *count = emud_account(s, node);

	if (!c)
		return;
	emud_expect_token(classed, number);
	if (unlikely(classed->flags & EMUD_SERVICE_HELD))
		s->held++;
	c->arrival = s->now;
	c->delay = (__s64)((stamp & ~EMUD_QDISC_MARKS) - s->now);
	c->classed = *classed;
	emud_admit(direction, s, node, number, c);
	if (count)
		emud_count_queue(count, emud_node_at(s, node));
}

/* Frees a packet of the class of the event, in no order of time, or goes on to the next class. */
static long emud_free_next_classed(__u32 i, __u32 *direction)
{
	struct emud_wheel *w =
		&emud_wheels[emud_wheel_bound(*direction, EMUD_DIRECTIONS)];
	struct emud_server *s = emud_server_at(*direction);
	const __u32 node = s->event_node;
	struct emud_node *n = emud_node_at(s, node);
	struct emud_waiting *value;
	struct emud_customer *c;
	struct emud_class *count;
	__u32 number;

	if (node >= s->nodes)
		return 1;
	number = emud_queue_pop(n, 0, 0);
	if (!number) {
		s->event_node++;
		n->backlog = 0;
		n->waiting = 0;
		count = emud_account(s, node);
		if (count)
			emud_count_queue(count, n);
		emud_new_head(*direction, node);
		return 0;
	}
	value = emud_waiting_at(number);
	c = emud_customer_at(number);
	if (!value || !c)
		return 1;
	emud_free_token(s, c);
	emud_free_classed(s, w, number, value);
	return 0;
}

/* Frees what waits in classes: `packets` at most. */
static __always_inline void emud_free_classes(__u32 direction, __u32 packets)
{
	struct emud_server *s = emud_server_at(direction);

	s->event_node = 1;
	bpf_loop(packets + EMUD_NODES, emud_free_next_classed, &direction, 0);
	s->freed = 0;
	s->freed_bytes = 0;
}

#endif
