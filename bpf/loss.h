/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loss: on the wire, after the queue, so that a lost packet costs bandwidth; or
 * before it, where it costs none.
 *
 * Gilbert-Elliott and the four states are those of tc-netem: S. Salsano, F.
 * Ludovici, A. Ordine, D. Giannuzzi: "Definition of a general and intuitive
 * loss model for packet networks and its implementation in the Netem module in
 * the Linux kernel", 2012. The state belongs to the link and every flow changes
 * it, so it is under the lock; each packet's own draw decides the transition.
 */
#ifndef EMUD_LOSS_H
#define EMUD_LOSS_H

#include "chance.h"
#include "maps.h"
#include "queue.h"
#include "rng.h"
#include "wide.h"

/* A super-packet has at most 2^19 bytes (BIG TCP) plus its headers. */
#define EMUD_LENGTH_BITS 20

/* Both models have the good state 0, in which a chain begins. */
enum emud_gilbert_state {
	EMUD_GILBERT_GOOD,
	EMUD_GILBERT_BAD,
};

enum emud_four_state {
	EMUD_FOUR_SENT, /* state 1 of the paper: sent within a gap */
	EMUD_FOUR_SENT_IN_BURST, /* 2 */
	EMUD_FOUR_LOST_IN_BURST, /* 3 */
	EMUD_FOUR_LOST, /* 4: alone, within a gap */
};

/* The state decides on the packet and then changes, as in netem. */
static __always_inline int emud_gilbert_elliott(const struct emud_link *l, __u64 *state,
						__u64 move, __u64 draw)
{
	if (*state == EMUD_GILBERT_BAD) {
		if (move < l->loss_param[1])
			*state = EMUD_GILBERT_GOOD;
		return draw < l->loss_param[2];
	}
	if (move < l->loss_param[0])
		*state = EMUD_GILBERT_BAD;
	return draw < l->loss_param[3];
}

/* The state changes and then decides on the packet. */
static __always_inline int emud_four_state(const struct emud_link *l, __u64 *state,
					   __u64 move)
{
	const __u64 *q = l->loss_param; /* p13, p31, p32, p23, p14 */

	switch (*state) {
	case EMUD_FOUR_SENT:
		if (move < q[4])
			*state = EMUD_FOUR_LOST;
		else if (move - q[4] < q[0])
			*state = EMUD_FOUR_LOST_IN_BURST;
		break;
	case EMUD_FOUR_SENT_IN_BURST:
		if (move < q[3])
			*state = EMUD_FOUR_LOST_IN_BURST;
		break;
	case EMUD_FOUR_LOST_IN_BURST:
		if (move < q[2])
			*state = EMUD_FOUR_SENT_IN_BURST;
		else if (move - q[2] < q[1])
			*state = EMUD_FOUR_SENT;
		break;
	default:
		*state = EMUD_FOUR_SENT;
	}
	return *state >= EMUD_FOUR_LOST_IN_BURST;
}

static __always_inline int emud_every(const struct emud_link *l, __u64 *count)
{
	/* 0 stands for a model that has just begun, so the stored count is one
	 * more. */
	if (!*count)
		*count = l->loss_param[1] + 1;
	if (*count < l->loss_param[0]) {
		++*count;
		return 0;
	}
	*count = 1;
	return 1;
}

static __always_inline int emud_burst(const struct emud_link *l, __u64 *left, __u64 draw)
{
	if (*left) {
		--*left;
		return 1;
	}
	if (draw >= l->loss_param[0])
		return 0;
	*left = l->loss_param[1] - 1;
	return 1;
}

static __always_inline int emud_pattern_bit(const struct emud_link *l,
					    const struct emud_pattern *bits, __u64 *pos)
{
	__u64 at = *pos;

	if (at >= l->loss_param[0]) {
		if (!l->loss_param[1])
			return 0;
		at = 0;
	}
	*pos = at + 1;
	return (bits->bits[emud_bound(at >> 6, EMUD_PATTERN_LEN / 64)] >> (at & 63)) & 1;
}

/* The models with a state. */
static __always_inline int emud_lost_by_state(const struct emud_packet *p,
					      const struct emud_link *l,
					      struct emud_state *s)
{
	__u64 move = emud_draw(p, EMUD_FOR_LOSS_STATE);
	__u64 draw = emud_draw(p, EMUD_FOR_LOSS);
	const struct emud_pattern *bits;
	int lost = 0;

	bits = EMUD_LOOKUP(emud_patterns, p->slot);
	if (!bits)
		return 0;
	bpf_spin_lock(&s->lock);
	if (s->loss_id != l->loss_id) {
		s->loss_id = l->loss_id;
		s->loss_state = 0;
	}
	switch (l->loss_model) {
	case EMUD_LOSS_GILBERT_ELLIOTT:
		lost = emud_gilbert_elliott(l, &s->loss_state, move, draw);
		break;
	case EMUD_LOSS_FOUR_STATE:
		lost = emud_four_state(l, &s->loss_state, move);
		break;
	case EMUD_LOSS_EVERY:
		lost = emud_every(l, &s->loss_state);
		break;
	case EMUD_LOSS_PATTERN:
		lost = emud_pattern_bit(l, bits, &s->loss_state);
		break;
	case EMUD_LOSS_BURST:
		lost = emud_burst(l, &s->loss_state, draw);
		break;
	}
	bpf_spin_unlock(&s->lock);
	return lost;
}

/* The probability that a byte survives, to the power of the number of bytes, by
 * repeated squaring. A global function: the verifier checks the loop once, and
 * not on every path to it. */
__noinline __u64 emud_survival(__u64 byte, __u64 bytes)
{
	__u64 all = ~0ULL;
	int i;

	if (!emud_uses(LOSS_MODELS))
		return all;
	for (i = 0; i < EMUD_LENGTH_BITS && bytes; i++) {
		if (bytes & 1)
			all = emud_mul_high(all, byte) + 1;
		byte = emud_mul_high(byte, byte) + 1;
		bytes >>= 1;
	}
	return all;
}

/* 1 - (1-ber)^bits of one packet and 1 - (1-p)^n of a train of n follow from
 * the same product. */
static __always_inline int emud_bit_error(const struct emud_packet *p,
					  const struct emud_link *l)
{
	return emud_draw(p, EMUD_FOR_LOSS) >=
	       emud_survival(l->loss_param[0], emud_on_wire(p, l));
}

static __always_inline int emud_loses(const struct emud_packet *p,
				      const struct emud_link *l)
{
	if (!emud_uses(LOSS))
		return 0;
	/* A packet that nothing loses ends a run. */
	if (l->loss_run_max)
		return 1;
	return p->over.set & EMUD_SET_LOSS ? p->over.loss != 0 : l->loss_model;
}

static __always_inline int emud_lost_by_model(const struct emud_packet *p,
					      const struct emud_link *l,
					      struct emud_state *s)
{
	if (p->over.set & EMUD_SET_LOSS)
		return emud_draw(p, EMUD_FOR_LOSS) < p->over.loss;
	switch (l->loss_model) {
	case EMUD_LOSS_NONE:
		return 0;
	case EMUD_LOSS_BERNOULLI:
		return emud_chance(p, s, &l->loss, &s->loss_normal, EMUD_FOR_LOSS);
	case EMUD_LOSS_BIT_ERROR:
		return emud_bit_error(p, l);
	}
	return emud_lost_by_state(p, l, s);
}

/* The packet after the longest permitted run passes, whatever the model's
 * decision; the model continues as if it were lost. */
static __always_inline int emud_run_goes_on(const struct emud_link *l,
					    struct emud_state *s, int lost)
{
	bpf_spin_lock(&s->lock);
	if (s->loss_run >= l->loss_run_max)
		lost = 0;
	s->loss_run = lost ? s->loss_run + 1 : 0;
	bpf_spin_unlock(&s->lock);
	return lost;
}

__noinline int emud_lost_any(struct emud_packet *p)
{
	const struct emud_link *l;
	struct emud_state *s;
	int lost;

	if (!p || !emud_uses(LOSS_MODELS))
		return 0;
	l = emud_link(p);
	s = emud_path_state(p);
	if (!l || !s)
		return 0;
	lost = emud_lost_by_model(p, l, s);
	return l->loss_run_max ? emud_run_goes_on(l, s, lost) : lost;
}

/* Independent losses, the most common model, need no call. */
static __always_inline int emud_lost(struct emud_packet *p, const struct emud_link *l)
{
	if (!emud_uses(LOSS_MODELS) ||
	    (l->loss_model == EMUD_LOSS_BERNOULLI && !l->loss.correlation &&
	     !l->loss_run_max && !(p->over.set & EMUD_SET_LOSS)))
		return emud_draw(p, EMUD_FOR_LOSS) < l->loss.probability;
	return emud_lost_any(p);
}

#endif
