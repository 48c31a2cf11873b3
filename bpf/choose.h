/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * choose: the class that sends next, and what that costs it and the classes above it.
 */
#ifndef EMUD_CHOOSE_H
#define EMUD_CHOOSE_H

#include "tree.h"

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

/* Returns the class that lends; 0: the wire, as with a schedule without guarantees. */
static __always_inline __u32 emud_lender(struct emud_server *s)
{
	struct emud_due best = {};
	__u32 i;

	if (s->schedule != EMUD_SCHEDULE_HTB)
		return 0;
	emud_each(i, 1, EMUD_NODES)
	{
		struct emud_node *n = emud_node_at(s, i);

		if (i >= s->nodes)
			break;
		if (!n->plan.parent && emud_due_before(&n->offered, &best))
			best = n->offered;
	}
	return best.node;
}

/* Returns the leaf that is next, and sets its lender. */
__noinline __u32 emud_choose(__u32 direction)
{
	struct emud_server *s = emud_server_at(direction);
	struct emud_descent d = {.direction = direction, .node = emud_lender(s)};

	s->lender = d.node;
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

#endif
