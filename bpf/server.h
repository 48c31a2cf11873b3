/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * server: the bottleneck of a direction, with the packets that wait in its classes.
 *
 * Its decisions are those of src/bottleneck, to the nanosecond: which class is next, and why,
 * is described there (mod.rs), and tests/pure/server.c compares the two. There are few classes,
 * so what is kept in order there is searched here.
 *
 * A packet is known by the number of its value (wheel.h). It comes when it is enqueued, and
 * what happens at time t is decided by any call later than that: a call that is late changes
 * nothing but the time at which a packet can leave.
 */
#ifndef EMUD_SERVER_H
#define EMUD_SERVER_H

#include "wheel.h"

/* Events that one call decides on. */
#define EMUD_EVENTS 65536
#define EMUD_BIT_NS 8000000000ULL /* ns of a second, times bits of a byte */
/* QUANTUM of src/bottleneck/plan.rs. */
#define EMUD_QUANTUM 1600
/* LONGEST_DEBT_NS of src/bottleneck/tree.rs. */
#define EMUD_DEBT_NS 60000000000ULL

/* A moment, and the remainder of the division by the rate. */
struct emud_clock {
	__u64 at;
	__u64 rest;
};

/* A class that is within its guarantee; the least one is the lender. */
struct emud_due {
	__u32 rank; /* level, then priority */
	__u32 node; /* 0: none */
	__u64 deadline;
};

struct emud_node {
	struct emud_node_plan plan;

	struct emud_clock guarantee; /* is used up until then */
	struct emud_clock ceiling; /* is used up until then */
	__s64 deficit; /* bytes left in this round, or owed */
	__u64 order; /* in the parent's round; 0: it has no position */
	__u64 waits_since; /* number of positions when it was closed, plus 1; 0: it does not wait */
	__u64 timer; /* its state changes by itself; EMUD_NEVER: it does not */
	struct emud_due offered; /* the best of this class and those below it */
	__u32 priority; /* of this position */
	__u32 filled; /* leaves with packets, this one or below */
	__u32 is_ready; /* in the parent's round */

	/* a leaf's queue */
	struct emud_list queue;
	__u32 waiting; /* packets */
	__u32 head_bytes;
	__u64 head_number; /* of the packet, in the order of arrival; 0: none waits */
	__u64 head_after; /* from the start of its transmission to its departure, ns */
	__u64 expiry; /* when the first one has waited too long; EMUD_NEVER: never */
	__u64 backlog; /* bytes that wait */
	struct emud_clock sent; /* the last packet is on the wire until then */
	__u64 sent_bytes; /* of that packet */
};

/* The next thing to happen; at one moment in this order. An arrival is between the last two. */
enum emud_event {
	EMUD_EVENT_EXPIRY,
	EMUD_EVENT_TIMER,
	EMUD_EVENT_SEND,
};

struct emud_server {
	__u64 rate;
	__u32 schedule;
	__u32 nodes;
	__u32 leaves;
	__u32 first;
	__u64 generation; /* of the figures, and 1; 0: none yet */
	__u32 event; /* enum emud_event: the next one, */
	__u32 event_node; /* of which class, */
	__u64 event_at; /* and when; EMUD_NEVER: there is none */
	__u64 least_after; /* the least head_after */
	__u64 until; /* what is decided on now happens until then */
	__u32 lender; /* of the packet that is being sent */
	__u32 freed; /* packets and their bytes, which the qdisc still counts */
	__u64 freed_bytes;
	struct emud_clock wire; /* is busy until then */
	__u64 tickets; /* positions given so far */
	__u64 longest; /* bytes of the longest packet */
	__u64 admitted; /* packets */
	__u64 now; /* all that happens before is decided */
	__u32 above[EMUD_DEPTH];
	struct emud_node node[EMUD_NODES];
	__u64 last[EMUD_PATHS]; /* departure of each path that keeps its order */
};

/* One per direction; the kernel's lock of the qdisc protects it. */
struct emud_server emud_servers[EMUD_DIRECTIONS];

/* A packet that waits in a class: beside its value. */
struct emud_customer {
	__u64 arrival; /* ns */
	__u64 number; /* in the order of arrival */
	__s64 delay; /* from the end of its transmission to its departure, ns */
	struct emud_classed classed;
	__u32 reserved; /* 0 */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* the loader sets it */
	__type(key, __u32);
	__type(value, struct emud_customer);
} emud_customers SEC(".maps");

/* Rolled up: the code would be 31 times as long. */
#define emud_each(i, from, to) \
	_Pragma("clang loop unroll(disable)") for (i = (from); i < (to); i++)

#define emud_server_at(direction) \
	(&emud_servers[emud_wheel_bound(direction, EMUD_DIRECTIONS)])
#define emud_node_at(s, i) (&(s)->node[emud_wheel_bound(i, EMUD_NODES)])

static __always_inline struct emud_customer *emud_customer_at(__u32 number)
{
	__u32 index = number - 1;

	return bpf_map_lookup_elem(&emud_customers, &index);
}

static __always_inline void emud_raise(struct emud_clock *clock, __u64 ns)
{
	if (clock->at >= ns)
		return;
	clock->at = ns;
	clock->rest = 0;
}

static __always_inline void emud_lower(struct emud_clock *clock, __u64 ns)
{
	if (clock->at <= ns)
		return;
	clock->at = ns;
	clock->rest = 0;
}

static __always_inline void emud_use(struct emud_clock *clock, __u64 bytes, __u64 rate)
{
	__u64 work = bytes * EMUD_BIT_NS + clock->rest;

	clock->at += work / rate;
	clock->rest = work % rate;
}

static __always_inline __u64 emud_duration(__u64 bytes, __u64 rate)
{
	return bytes * EMUD_BIT_NS / rate;
}

static __always_inline __u64 emud_later(__u64 ns, __u64 by)
{
	return ns > by ? ns - by : 0;
}

static __always_inline int emud_due_before(const struct emud_due *a,
					   const struct emud_due *b)
{
	if (!a->node || !b->node)
		return a->node != 0;
	if (a->rank != b->rank)
		return a->rank < b->rank;
	if (a->deadline != b->deadline)
		return a->deadline < b->deadline;
	return a->node < b->node;
}

/* The first class in the round of `parent`; `priority`: only of this one, if below 256. */
static __always_inline __u32 emud_first_ready(struct emud_server *s, __u32 parent,
					      __u32 priority)
{
	__u64 order = 0;
	__u32 first = 0, least = 0, i;

	emud_each(i, 1, EMUD_NODES)
	{
		struct emud_node *n = emud_node_at(s, i);

		if (i >= s->nodes)
			break;
		if (!n->is_ready || n->plan.parent != parent)
			continue;
		if (priority < 256 && n->priority != priority)
			continue;
		if (first &&
		    (n->priority > least || (n->priority == least && n->order >= order)))
			continue;
		first = n->plan.node;
		least = n->priority;
		order = n->order;
	}
	return first;
}

static __always_inline void emud_give_up(struct emud_node *n)
{
	n->order = 0;
	n->waits_since = 0;
}

/* Puts a class at its position, or last with a quantum, less what it owes from its last turn. */
static __always_inline void emud_join_round(struct emud_server *s, struct emud_node *n)
{
	if (n->is_ready)
		return;
	n->is_ready = 1;
	if (n->order)
		return;
	s->tickets++;
	n->priority = n->plan.priority;
	n->deficit = (n->deficit < 0 ? n->deficit : 0) + (__s64)n->plan.quantum;
	n->order = s->schedule == EMUD_SCHEDULE_FIFO && n->head_number ? n->head_number
								       : s->tickets;
}

/* Moves a class after all others of its priority, with a quantum more; it stays if all of them
 * have had a turn while it was closed. */
__noinline int emud_next_round(__u32 direction, __u32 node)
{
	struct emud_server *s = emud_server_at(direction);
	struct emud_node *n = emud_node_at(s, node);
	__u64 next = EMUD_NEVER;
	__u32 first;

	n->is_ready = 0;
	first = emud_first_ready(s, n->plan.parent, n->plan.priority);
	if (first)
		next = emud_node_at(s, first)->order;
	if (n->waits_since && next > n->waits_since - 1) {
		n->waits_since = s->tickets + 1;
		n->deficit += (__s64)n->plan.quantum;
	} else {
		emud_give_up(n);
	}
	emud_join_round(s, n);
	return 0;
}

/* Updates the state of a class from its queue, its clocks, the classes below it and the time.
 * Returns the class above. */
__noinline __u32 emud_refresh_one(__u32 direction, __u32 node, __u64 now)
{
	struct emud_server *s = emud_server_at(direction);
	struct emud_node *n = emud_node_at(s, node);
	const int open = n->ceiling.at <= now;
	__u32 below = 0, has_work, ready, i;
	struct emud_due best = {};
	__u64 timer = 0;

	if (!n->plan.is_leaf) {
		emud_each(i, 1, EMUD_NODES)
		{
			struct emud_node *child = emud_node_at(s, i);

			if (i >= s->nodes)
				break;
			if (child->plan.parent != node)
				continue;
			below |= child->is_ready;
			if (emud_due_before(&child->offered, &best))
				best = child->offered;
		}
	}
	has_work = n->plan.is_leaf ? n->head_number != 0 : below;
	ready = open && has_work;
	if (ready && n->plan.rate && n->guarantee.at <= now) {
		const __u32 bytes = n->head_number ? n->head_bytes : EMUD_QUANTUM;
		struct emud_due own = {
			.rank = n->plan.level << 8 | n->plan.priority,
			.node = node,
			.deadline = n->guarantee.at + emud_duration(bytes, n->plan.rate),
		};

		if (emud_due_before(&own, &best))
			best = own;
	}
	if (!open)
		best.node = 0;
	if (has_work && !open)
		timer = n->ceiling.at;
	else if (has_work && n->plan.rate)
		timer = n->guarantee.at;
	n->timer = timer > now ? timer : EMUD_NEVER;
	/* Closed, or all that is filled below it. */
	if (n->is_ready && !ready && n->filled) {
		/* While it is closed the others have their turns. */
		if (n->deficit <= 0)
			emud_next_round(direction, node);
		else if (!n->waits_since)
			n->waits_since = s->tickets + 1;
	}
	if (ready)
		emud_join_round(s, n);
	else
		n->is_ready = 0;
	if (!n->filled)
		emud_give_up(n);
	n->offered = best;
	return n->plan.parent;
}

/* The same of all classes above it, too. */
__noinline int emud_refresh(__u32 direction, __u32 node, __u64 now)
{
	__u32 i;

	emud_each(i, 0, EMUD_DEPTH)
	{
		if (!node)
			break;
		node = emud_refresh_one(direction, node, now);
	}
	return 0;
}

/* A leaf has packets again: time without packets earns no guarantee. */
static __always_inline void emud_fill(struct emud_server *s, __u32 node)
{
	__u32 i;

	emud_each(i, 0, EMUD_DEPTH)
	{
		struct emud_node *n = emud_node_at(s, node);

		if (!node)
			break;
		if (!n->filled)
			emud_raise(&n->guarantee, s->now);
		n->filled++;
		node = n->plan.parent;
	}
}

static __always_inline void emud_drain(struct emud_server *s, __u32 node)
{
	__u32 i;

	emud_each(i, 0, EMUD_DEPTH)
	{
		struct emud_node *n = emud_node_at(s, node);

		if (!node)
			break;
		n->filled--;
		node = n->plan.parent;
	}
}

/* Notes when a leaf's first packet has waited too long, and how long it takes from the start of
 * its transmission to its departure. */
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
	after = emud_duration(n->head_bytes, s->rate) + c->delay;
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
	emud_watch(s, n);
	if (!before && n->head_number)
		emud_fill(s, node);
	else if (before && !n->head_number)
		emud_drain(s, node);
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

static __always_inline int emud_is_full(const struct emud_server *s,
					const struct emud_node *n, __u32 bytes)
{
	const __u32 packets = n->waiting + (n->sent.at > s->now);

	return packets >= n->plan.limit_packets ||
	       (n->plan.limit_bytes != ~0ULL &&
		emud_backlog(s, n) + bytes > n->plan.limit_bytes);
}

/* Takes the first packet out of a leaf's queue. Returns its number, 0: there is none. */
static __always_inline __u32 emud_queue_pop(struct emud_node *n, __u32 bytes)
{
	const __u32 number = n->queue.first;
	struct emud_waiting *value;

	if (!number)
		return 0;
	value = emud_waiting_at(number);
	if (!value)
		return 0;
	n->queue.first = value->next;
	n->waiting--;
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

	c->number = ++s->admitted;
	emud_list_push(&n->queue, number);
	n->backlog += c->classed.bytes;
	if (!n->waiting++)
		emud_new_head(direction, node);
}

/* Drops the first packet of the class of the event, which has waited too long. */
static __always_inline __u32 emud_expire(__u32 direction, struct emud_server *s)
{
	struct emud_node *n = emud_node_at(s, s->event_node);
	const __u32 number = emud_queue_pop(n, n->head_bytes);

	emud_new_head(direction, s->event_node);
	return number;
}

struct emud_descent {
	__u32 direction;
	__u32 node;
};

/* A level down, or a class of this level gets a new turn. */
static long emud_descend(__u32 i, struct emud_descent *d)
{
	struct emud_server *s = emud_server_at(d->direction);
	__u32 child;

	if (d->node && emud_node_at(s, d->node)->plan.is_leaf)
		return 1;
	child = emud_first_ready(s, d->node, 256);
	if (!child)
		return 1;
	if (emud_node_at(s, child)->deficit > 0)
		d->node = child;
	else
		emud_next_round(d->direction, child);
	return 0;
}

/* A new turn adds a quantum at least, so a class that owes a super-packet needs 41 of them. */
#define EMUD_TURNS (64 * EMUD_NODES * EMUD_DEPTH)

/* Returns the leaf that is next, and sets its lender. */
__noinline __u32 emud_choose(__u32 direction)
{
	struct emud_server *s = emud_server_at(direction);
	struct emud_descent d = {.direction = direction};
	struct emud_due best = {};
	__u32 i;

	emud_each(i, 1, EMUD_NODES)
	{
		struct emud_node *n = emud_node_at(s, i);

		if (i >= s->nodes)
			break;
		if (!n->plan.parent && emud_due_before(&n->offered, &best))
			best = n->offered;
	}
	s->lender = d.node = best.node;
	bpf_loop(EMUD_TURNS, emud_descend, &d, 0);
	return emud_node_at(s, d.node)->plan.is_leaf ? d.node : 0;
}

static __always_inline int emud_is_below(struct emud_server *s, __u32 node, __u32 above)
{
	__u32 i;

	emud_each(i, 0, EMUD_DEPTH)
	{
		if (!node)
			return 0;
		node = emud_node_at(s, node)->plan.parent;
		if (node == above)
			return 1;
	}
	return 0;
}

/* Whether a class with a guarantee competes with that of `node`, below `bound`. */
__noinline int emud_competes(__u32 direction, __u32 one, __u32 node, __u32 bound)
{
	struct emud_server *s = emud_server_at(direction);
	const struct emud_node *n = emud_node_at(s, one), *with = emud_node_at(s, node);

	return n->filled && n->plan.rate && n->plan.level == with->plan.level &&
	       n->plan.priority == with->plan.priority && emud_is_below(s, one, bound);
}

/* What all guarantees that compete below `bound` lack, by more than a packet of the server, is
 * forgotten: they have promised more than there is. */
__noinline int emud_forget_below(__u32 direction, __u32 node, __u32 bound, __u64 now)
{
	struct emud_server *s = emud_server_at(direction);
	__u64 latest = 0, lack;
	__u32 i;

	emud_each(i, 1, EMUD_NODES)
	{
		if (i >= s->nodes)
			break;
		if (emud_competes(direction, i, node, bound) &&
		    emud_node_at(s, i)->guarantee.at > latest)
			latest = emud_node_at(s, i)->guarantee.at;
	}
	lack = emud_later(now, latest + emud_duration(s->longest, s->rate));
	if (!lack)
		return 0;
	emud_each(i, 1, EMUD_NODES)
	{
		if (i >= s->nodes)
			break;
		if (!emud_competes(direction, i, node, bound))
			continue;
		emud_node_at(s, i)->guarantee.at += lack;
		emud_refresh(direction, i, now);
	}
	return 0;
}

/* The server counts first: who is in time below it is not in competition with `node`. */
__noinline int emud_forget(__u32 direction, __u32 node, __u64 earliest, __u64 now)
{
	struct emud_server *s = emud_server_at(direction);
	__u32 above = node, depth = 0, i;

	emud_each(i, 0, EMUD_DEPTH)
	{
		if (!above)
			break;
		above = emud_node_at(s, above)->plan.parent;
		s->above[emud_wheel_bound(i, EMUD_DEPTH)] = above;
		depth = i + 1;
	}
	emud_each(i, 0, EMUD_DEPTH)
	{
		if (i >= depth || emud_node_at(s, node)->guarantee.at >= earliest)
			break;
		above = s->above[emud_wheel_bound(depth - 1 - i, EMUD_DEPTH)];
		if (!above || emud_node_at(s, above)->plan.ceil)
			emud_forget_below(direction, node, above, now);
	}
	return 0;
}

/* Charges a class of the leaf that is being sent, which `lent`. */
static __always_inline void emud_charge_one(__u32 direction, struct emud_server *s,
					    __u32 node, int lent, __u64 bytes)
{
	struct emud_node *n = emud_node_at(s, node);
	const __u64 rate = n->plan.rate, now = s->now;

	if (lent && rate) {
		/* Behind by a packet of every other class, at worst: then it catches up. */
		const __u64 slower = rate < s->rate ? rate : s->rate;
		const __u64 behind = (s->leaves + 1) * emud_duration(s->longest, slower);
		const __u64 earliest = emud_later(now, behind);

		if (n->guarantee.at < earliest)
			emud_forget(direction, node, earliest, now);
		emud_raise(&n->guarantee, earliest);
		emud_use(&n->guarantee, bytes, rate);
		emud_lower(&n->guarantee, now + EMUD_DEBT_NS);
	}
	if (n->plan.ceil) {
		/* Behind by the packet that was on the wire: more would exceed it by more than
		 * one. */
		emud_raise(&n->ceiling,
			   emud_later(now, emud_duration(s->longest, s->rate)));
		emud_use(&n->ceiling, bytes, n->plan.ceil);
	}
	if (!lent && s->schedule != EMUD_SCHEDULE_FIFO)
		n->deficit -= (__s64)bytes;
}

__noinline int emud_charge(__u32 direction, __u32 leaf, __u64 bytes)
{
	struct emud_server *s = emud_server_at(direction);
	__u32 node = leaf, i;
	int lent = 0;

	if (s->longest < bytes)
		s->longest = bytes;
	emud_each(i, 0, EMUD_DEPTH)
	{
		if (!node)
			break;
		lent |= node == s->lender;
		emud_charge_one(direction, s, node, lent, bytes);
		node = emud_node_at(s, node)->plan.parent;
	}
	return 0;
}

/* Sends the packet that is next: `leaf` is its class. */
static __always_inline __u32 emud_send(__u32 direction, struct emud_server *s, __u32 leaf)
{
	struct emud_node *n = emud_node_at(s, leaf);
	const __u32 bytes = n->head_bytes, number = emud_queue_pop(n, bytes);

	if (!number)
		return 0;
	emud_raise(&s->wire, s->now);
	emud_use(&s->wire, bytes, s->rate);
	n->sent = s->wire;
	n->sent_bytes = bytes;
	emud_charge(direction, leaf, bytes);
	emud_new_head(direction, leaf);
	return number;
}

/* What becomes of a packet, for whoever includes this: it is on the wire until s->wire, or has
 * waited too long. */
static int emud_sent(__u32 direction, __u32 node, __u32 number);
static int emud_expired(__u32 direction, __u32 node, __u32 number);

struct emud_serving {
	__u64 until;
	__u32 direction;
	int arrives;
};

static long emud_serve_next(__u32 i, struct emud_serving *of)
{
	struct emud_server *s = emud_server_at(of->direction);
	__u32 node, number;

	emud_find_event(of->direction);
	if (s->event_at == EMUD_NEVER || s->event_at > of->until)
		return 1;
	if (s->event == EMUD_EVENT_SEND && s->event_at == of->until && of->arrives)
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

	emud_server_at(direction)->until = until;
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
