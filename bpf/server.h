/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * server: the bottleneck of a direction, with the packets that wait in its classes.
 *
 * Its decisions are those of src/bottleneck, to the nanosecond: which class is next, and why,
 * is described there (mod.rs), and tests/pure/server.c compares the two.
 *
 * A packet is known by the number of its value (wheel.h). It comes when it is enqueued, and
 * what happens at time t is decided by any call later than that: a call that is late changes
 * nothing but the time at which a packet can leave.
 */
#ifndef EMUD_SERVER_H
#define EMUD_SERVER_H

#include "choose.h"

/* Events that one call decides on. */
#define EMUD_EVENTS 65536

/* A packet that waits in a class: beside its value. */
struct emud_customer {
	__u64 arrival; /* ns */
	__u64 number; /* in the order of arrival */
	__s64 delay; /* from the end of its transmission to its departure, ns */
	struct emud_classed classed;
	__u32 waits; /* in a class */
	struct sk_buff __kptr *token; /* EMUD_TOKEN, if its sender waits */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* the loader sets it */
	__type(key, __u32);
	__type(value, struct emud_customer);
} emud_customers SEC(".maps");

static __always_inline struct emud_customer *emud_customer_at(__u32 number)
{
	__u32 index = number - 1;

	return bpf_map_lookup_elem(&emud_customers, &index);
}

/* Notes when a leaf's first packet has waited too long, and after the start of its transmission,
 * when it or one behind it departs at the earliest: those may have a shorter delay. */
static __always_inline void emud_watch(const struct emud_server *s, struct emud_node *n)
{
	const struct emud_customer *c;
	__s64 after;

	n->expiry = EMUD_NEVER;
	n->head_after = 0;
	if (!n->head_number)
		return;
	c = emud_customer_at(n->queue.first);
	if (!c)
		return;
	if (n->plan.limit_ns != ~0ULL)
		n->expiry = c->arrival + n->plan.limit_ns + 1;
	after = emud_duration(n->head_bytes, s->rate) + (c->delay < 0 ? c->delay : 0);
	if (after > 0)
		n->head_after = after;
}

/* A leaf's first packet may be a different one. */
__noinline int emud_new_head(__u32 direction, __u32 node)
{
	struct emud_server *s = emud_server_at(direction);
	struct emud_node *n = emud_node_at(s, node);
	const struct emud_customer *c = NULL;
	const __u64 before = n->head_number;

	if (n->queue.first)
		c = emud_customer_at(n->queue.first);
	n->head_number = c ? c->number : 0;
	n->head_bytes = c ? c->classed.bytes : 0;
	n->head_packets = c ? c->classed.packets : 0;
	emud_watch(s, n);
	if (!before && n->head_number)
		emud_fill(s, node, 1);
	else if (before && !n->head_number)
		emud_fill(s, node, -1);
	if (s->schedule == EMUD_SCHEDULE_FIFO && before != n->head_number) {
		n->is_ready = 0;
		emud_give_up(n);
	}
	return emud_refresh(direction, node, s->now);
}

/* Finds the next event. */
__noinline int emud_find_event(__u32 direction)
{
	struct emud_server *s = emud_server_at(direction);
	__u64 expiry = EMUD_NEVER, timer = EMUD_NEVER, send = EMUD_NEVER;
	__u64 after = EMUD_NEVER;
	__u32 expires = 0, changes = 0, i;

	emud_each(i, 1, EMUD_NODES)
	{
		struct emud_node *n = emud_node_at(s, i);

		if (i >= s->nodes)
			break;
		if (n->plan.is_leaf && n->head_number) {
			if (n->expiry < expiry) {
				expiry = n->expiry;
				expires = i;
			}
			if (n->head_after < after)
				after = n->head_after;
		}
		if (n->timer < timer) {
			timer = n->timer;
			changes = i;
		}
		if (n->is_ready && !n->plan.parent)
			send = s->wire.at > s->now ? s->wire.at : s->now;
	}
	s->event_known = 1;
	s->least_after = after;
	s->event = EMUD_EVENT_EXPIRY;
	s->event_at = expiry;
	s->event_node = expires;
	if (timer < s->event_at) {
		s->event = EMUD_EVENT_TIMER;
		s->event_at = timer;
		s->event_node = changes;
	}
	if (send < s->event_at) {
		s->event = EMUD_EVENT_SEND;
		s->event_at = send;
		s->event_node = 0;
	}
	return 0;
}

/* Bytes that are not yet sent. Of the last packet at most its own: one that began at a lower
 * rate takes longer than the bytes that are left of it. */
static __always_inline __u64 emud_backlog(const struct emud_server *s,
					  const struct emud_node *n)
{
	const __u64 ns = emud_later(n->sent.at, s->now);
	__u64 left = n->sent_bytes;

	if (!ns)
		return n->backlog;
	/* Below that, the product fits in 64 bits. */
	if (ns <= emud_duration(n->sent_bytes, s->rate))
		left = (ns * s->rate + n->sent.rest + EMUD_BIT_NS - 1) / EMUD_BIT_NS;
	return n->backlog + (left < n->sent_bytes ? left : n->sent_bytes);
}

/* A super-packet longer than the limit finds room in an empty class alone. */
static __always_inline int emud_is_full(const struct emud_server *s,
					const struct emud_node *n, __u32 bytes,
					__u32 train)
{
	const __u32 packets = n->waiting + (n->sent.at > s->now ? n->sent_packets : 0);

	return packets + (packets ? train : 1) > n->plan.limit_packets ||
	       (n->plan.limit_bytes != ~0ULL &&
		emud_backlog(s, n) + bytes > n->plan.limit_bytes);
}

/* Takes the first packet out of a leaf's queue. Returns its number, 0: there is none. */
static __always_inline __u32 emud_queue_pop(struct emud_node *n, __u32 bytes,
					    __u32 packets)
{
	const __u32 number = n->queue.first;
	struct emud_waiting *value;

	if (!number)
		return 0;
	value = emud_waiting_at(number);
	if (!value)
		return 0;
	n->queue.first = value->next;
	n->waiting -= packets;
	n->backlog -= bytes;
	value->next = 0;
	return number;
}

/* Puts a packet that has just come, whose value and customer are filled in, into the queue of a
 * leaf: there is room. */
static __always_inline void emud_admit(__u32 direction, struct emud_server *s, __u32 node,
				       __u32 number, struct emud_customer *c)
{
	struct emud_node *n = emud_node_at(s, node);
	const int is_first = !n->queue.first;

	c->number = ++s->admitted;
	c->waits = 1;
	emud_list_push(&n->queue, number);
	n->backlog += c->classed.bytes;
	n->waiting += c->classed.packets;
	if (is_first)
		emud_new_head(direction, node);
}

/* Drops the first packet of the class of the event, which has waited too long. */
static __always_inline __u32 emud_expire(__u32 direction, struct emud_server *s)
{
	struct emud_node *n = emud_node_at(s, s->event_node);
	const __u32 number = emud_queue_pop(n, n->head_bytes, n->head_packets);

	emud_new_head(direction, s->event_node);
	return number;
}

/* Sends the packet that is next: `leaf` is its class. */
static __always_inline __u32 emud_send(__u32 direction, struct emud_server *s, __u32 leaf)
{
	struct emud_node *n = emud_node_at(s, leaf);
	const __u32 bytes = n->head_bytes, packets = n->head_packets;
	const __u32 number = emud_queue_pop(n, bytes, packets);

	if (!number)
		return 0;
	emud_raise(&s->wire, s->now);
	emud_use(&s->wire, bytes, s->rate);
	n->sent = s->wire;
	n->sent_bytes = bytes;
	n->sent_packets = packets;
	emud_charge(direction, leaf, bytes);
	emud_new_head(direction, leaf);
	return number;
}

/* What becomes of a packet, by the file that includes this: it is on the wire until s->wire, or has
 * waited too long. */
static int emud_sent(__u32 direction, __u32 node, __u32 number);
static int emud_expired(__u32 direction, __u32 node, __u32 number);

struct emud_serving {
	__u64 until;
	__u32 direction;
	int arrives;
};

/* Returns whether the next event is one to decide on. */
static __always_inline int emud_is_due(struct emud_server *s,
				       const struct emud_serving *of)
{
	if (!s->event_known)
		emud_find_event(of->direction);
	if (s->event_at == EMUD_NEVER || s->event_at > of->until)
		return 0;
	return s->event != EMUD_EVENT_SEND || s->event_at != of->until || !of->arrives;
}

static long emud_serve_next(__u32 i, struct emud_serving *of)
{
	struct emud_server *s = emud_server_at(of->direction);
	__u32 node, number;

	if (!emud_is_due(s, of))
		return 1;
	if (s->now < s->event_at)
		s->now = s->event_at;
	node = s->event_node;
	if (s->event == EMUD_EVENT_TIMER) {
		emud_refresh(of->direction, node, s->event_at);
		return 0;
	}
	if (s->event == EMUD_EVENT_EXPIRY) {
		number = emud_expire(of->direction, s);
		if (number)
			emud_expired(of->direction, node, number);
		return 0;
	}
	node = emud_choose(of->direction);
	number = node ? emud_send(of->direction, s, node) : 0;
	if (!number)
		return 1;
	emud_sent(of->direction, node, number);
	return 0;
}

/* Decides on what happens until a time; `arrives`: what is sent at that time comes after a packet
 * that arrives then. Returns whether there is more. */
static __always_inline int emud_serve(__u32 direction, __u64 until, int arrives)
{
	struct emud_serving of = {until, direction, arrives};
	struct emud_server *s = emud_server_at(direction);

	s->until = until;
	if (!emud_is_due(s, &of))
		return 0;
	return bpf_loop(EMUD_EVENTS, emud_serve_next, &of, 0) == EMUD_EVENTS;
}

/* A guarantee or a ceil is a different one: what is used up ahead was at the former rate, so at
 * most one packet counts. */
static __always_inline void emud_new_rate(struct emud_server *s, struct emud_clock *clock,
					  __u64 was, __u64 rate, __u64 at)
{
	if (was == rate)
		return;
	clock->rest = 0;
	emud_lower(clock, at + (rate ? emud_duration(s->longest, rate) : 0));
}

/* Changes the figures of a class. */
static __always_inline void emud_change_node(struct emud_server *s, struct emud_node *n,
					     const struct emud_node_plan *plan, __u64 at)
{
	const struct emud_node_plan was = n->plan;

	n->plan = *plan;
	emud_new_rate(s, &n->guarantee, was.rate, plan->rate, at);
	emud_new_rate(s, &n->ceiling, was.ceil, plan->ceil, at);
}

/* Takes over the figures in force from `at` on. Packets stay, and classes keep their turns. */
__noinline int emud_change(__u32 direction, const struct emud_plan *plan, __u64 at)
{
	struct emud_server *s = emud_server_at(direction);
	int turns_begin;
	__u32 i;

	if (!plan)
		return 0;
	if (at < s->now)
		at = s->now;
	turns_begin = (s->schedule == EMUD_SCHEDULE_FIFO) !=
		      (plan->schedule == EMUD_SCHEDULE_FIFO);
	if (s->rate != plan->rate)
		s->wire.rest = 0;
	emud_each(i, 1, EMUD_NODES)
	{
		struct emud_node *n = emud_node_at(s, i);

		if (i >= plan->nodes)
			break;
		if (s->rate != plan->rate)
			n->sent.rest = 0;
		emud_change_node(s, n, &plan->node[emud_wheel_bound(i, EMUD_NODES)], at);
	}
	s->rate = plan->rate;
	s->schedule = plan->schedule;
	s->nodes = plan->nodes;
	s->leaves = plan->leaves;
	s->first = plan->first;
	emud_each(i, 1, EMUD_NODES)
	{
		struct emud_node *n = emud_node_at(s, i);

		if (i >= s->nodes)
			break;
		if (n->deficit > (__s64)n->plan.quantum)
			n->deficit = (__s64)n->plan.quantum;
		if (turns_begin) {
			n->is_ready = 0;
			emud_give_up(n);
		} else if (n->order && n->priority != n->plan.priority) {
			n->is_ready = 0;
			n->priority = n->plan.priority;
		}
		emud_refresh(direction, i, s->now);
		emud_watch(s, n);
	}
	return 0;
}

#endif
