/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tree: the classes of a server, and which of them are ready.
 *
 * The rules are those of src/bottleneck/tree.rs, step by step, so that both have the same
 * results. There are few classes, so what is kept in order there is searched here.
 */
#ifndef EMUD_TREE_H
#define EMUD_TREE_H

#include "wheel.h"

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
	__u32 waiting; /* packets, those of super-packets */
	__u32 head_bytes;
	__u32 head_packets;
	__u32 sent_packets; /* on the wire last */
	__u64 head_number; /* of the packet, in the order of arrival; 0: none waits */
	__u64 head_after; /* from the start of its transmission to a departure, ns, at least */
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
	__u32 event_known; /* nothing has changed since it was searched */
	__u64 least_after; /* the least head_after */
	__u64 until; /* what is decided on now happens until then */
	__u32 lender; /* of the packet that is being sent */
	__u32 freed; /* packets and their bytes, which the qdisc still counts */
	__u64 freed_bytes;
	struct emud_clock wire; /* is busy until then */
	__u64 tickets; /* positions given so far */
	__u64 longest; /* bytes of the longest packet */
	__u64 admitted; /* packets */
	__u32 held; /* packets in classes whose senders wait */
	__u64 now; /* all that happens before is decided */
	__u32 above[EMUD_DEPTH];
	struct emud_node node[EMUD_NODES];
	__u64 last[EMUD_PATHS]; /* departure of each path that keeps its order */
};

/* One per direction; the kernel's lock of the qdisc protects it. */
struct emud_server emud_servers[EMUD_DIRECTIONS];

/* Rolled up: the code would be 31 times as long. */
#define emud_each(i, from, to) \
	_Pragma("clang loop unroll(disable)") for (i = (from); i < (to); i++)

#define emud_server_at(direction) \
	(&emud_servers[emud_wheel_bound(direction, EMUD_DIRECTIONS)])
#define emud_node_at(s, i) (&(s)->node[emud_wheel_bound(i, EMUD_NODES)])

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

	emud_server_at(direction)->event_known = 0;
	emud_each(i, 0, EMUD_DEPTH)
	{
		if (!node)
			break;
		node = emud_refresh_one(direction, node, now);
	}
	return 0;
}

/* A leaf has packets again (`by` is 1), or none any more (-1): time without packets earns no
 * guarantee. */
static __always_inline void emud_fill(struct emud_server *s, __u32 node, int by)
{
	__u32 i;

	emud_each(i, 0, EMUD_DEPTH)
	{
		struct emud_node *n = emud_node_at(s, node);

		if (!node)
			break;
		if (!n->filled)
			emud_raise(&n->guarantee, s->now);
		n->filled += by;
		node = n->plan.parent;
	}
}

#endif
