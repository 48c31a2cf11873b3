/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wheel: packets that wait, in the order in which they are due.
 *
 * The line: a packet due no earlier than the last one of the line is put after it.
 * All packets of a link in order do, so their times are exact and the cost is that of a
 * list. All others, which overtake, go into a timer wheel: buckets of 4 us, each a list,
 * and three levels of bits that lead to the next bucket that is not empty. The buckets are
 * of two spans of 67 ms: the present one and the next one. What is due later waits in the
 * list of its span, and moves into the buckets while the span before passes, some with
 * each packet that leaves. A span that has not moved to its end is still far for packets that
 * come: so packets that are due in the same 4 us are in one list, in the order in which they
 * came (those due in more than 68 s share the last list, and are sorted again from there).
 *
 * If the first bucket and the first of the line are due in the same 4 us, what came first
 * leaves first: the line and a bucket can both have packets of one link in order, whose
 * times are as close as they came.
 *
 * A packet waits in a value of a map that owns it (kptr). Values that are free are a list
 * too, so nothing is allocated and there is no lock: the kernel holds that of the qdisc.
 * Lists hold numbers of values plus 1; 0 ends them.
 */
#ifndef EMUD_WHEEL_H
#define EMUD_WHEEL_H

#include "emud.h"
#include "kernel.h"

#define EMUD_NEVER (~0ULL)

/* How early the timer is set. Half of EMUD_EARLY_NS = 4 us took 300 to 500 instructions
 * more: the timer then goes off before a packet that would save it. */
#define EMUD_TIMER_LEAD_NS 1024

/* 2^12 ns: a timer is no finer, and netem's packets are as far from their times. */
#define EMUD_WHEEL_SHIFT 12
#define EMUD_WHEEL_HALF (1ULL << (EMUD_WHEEL_SHIFT - 1))
#define EMUD_WHEEL_LOG 15
#define EMUD_WHEEL_BUCKETS (1U << EMUD_WHEEL_LOG)
#define EMUD_WHEEL_WORDS (EMUD_WHEEL_BUCKETS / 64)
#define EMUD_SPAN_LOG (EMUD_WHEEL_LOG - 1)
#define EMUD_SPAN_SHIFT (EMUD_WHEEL_SHIFT + EMUD_SPAN_LOG)
#define EMUD_SPANS 1024

/* See emud_bound() of maps.h. */
#define emud_wheel_bound(index, len)                             \
	({                                                       \
		__u64 index_ = (index);                          \
		_Static_assert(((len) & ((len)-1)) == 0, "2^n"); \
		asm volatile("" : "+r"(index_));                 \
		index_ &((len)-1);                               \
	})

struct emud_waiting {
	struct sk_buff __kptr *skb;
	__u64 due; /* ns, CLOCK_MONOTONIC, and EMUD_QDISC_BY_SENDER */
	__u32 next;
	__u32 arrival; /* number of the packet, modulo 2^32 */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* the loader sets it */
	__type(key, __u32);
	__type(value, struct emud_waiting);
} emud_waiting SEC(".maps");

struct emud_list {
	__u32 first;
	__u32 last;
};

struct emud_wheel {
	__u64 owner; /* address of the struct Qdisc that uses it; 0: none */
	__u64 now; /* when the last packet came, if the lock is held since; 0: read the clock */
	__u64 timer; /* what the timer was last set to */
	__u64 sending; /* the last call of .dequeue gave a packet: its CPU calls again, and has
			* no lock meanwhile */

	__u64 line_due; /* of the first in line; EMUD_NEVER: the line is empty */
	__u64 line_last; /* of the last */
	struct emud_list line;

	__u64 near; /* number of the last span whose packets are all in buckets */
	__u64 far; /* packets of later spans */
	struct emud_list span[EMUD_SPANS];

	__u32 free; /* values that were in use before */
	__u32 used; /* values that ever were in use */
	__u32 arrivals; /* packets that came */
	__u32 by_sender; /* packets that wait and that their senders hold back for long */

	__u64 at; /* ns >> EMUD_WHEEL_SHIFT of the first bucket in use; EMUD_NEVER: none */
	__u64 top; /* which of `middle` are not 0 */
	__u64 middle[EMUD_WHEEL_WORDS / 64]; /* which of `bits` are not 0 */
	__u64 bits[EMUD_WHEEL_WORDS]; /* buckets that are not empty */
	struct emud_list bucket[EMUD_WHEEL_BUCKETS];
};

/* One per direction; the kernel's lock of the qdisc protects it. */
struct emud_wheel emud_wheels[EMUD_DIRECTIONS];

static __always_inline struct emud_waiting *emud_waiting_at(__u32 number)
{
	__u32 index = number - 1;

	return bpf_map_lookup_elem(&emud_waiting, &index);
}

/* By a de Bruijn sequence (Leiserson, Prokop, Randall, 1998): BPF has no bit scan. */
#define EMUD_DE_BRUIJN 0x022fdd63cc95386dULL
const __u8 emud_bit_of[64] = {
	0,  1,	2,  53, 3,  7,	54, 27, 4,  38, 41, 8,	34, 55, 48, 28,
	62, 5,	39, 46, 44, 42, 22, 9,	24, 35, 59, 56, 49, 18, 29, 11,
	63, 52, 6,  26, 37, 40, 33, 47, 61, 45, 43, 21, 23, 58, 17, 10,
	51, 25, 36, 32, 60, 20, 57, 16, 50, 31, 19, 15, 30, 14, 13, 12,
};

/* The number of the lowest bit that is set; there is one. */
static __always_inline __u32 emud_lowest(__u64 word)
{
	return emud_bit_of[emud_wheel_bound(((word & -word) * EMUD_DE_BRUIJN) >> 58, 64)];
}

/* The bits from `from` on; from is at most 64. */
static __always_inline __u64 emud_from(__u64 word, __u32 from)
{
	return from < 64 ? word & (~0ULL << from) : 0;
}

#define emud_bits_at(w, i) ((w)->bits[emud_wheel_bound(i, EMUD_WHEEL_WORDS)])
#define emud_middle_at(w, i) ((w)->middle[emud_wheel_bound(i, EMUD_WHEEL_WORDS / 64)])
#define emud_span_at(w, n) (&(w)->span[emud_wheel_bound(n, EMUD_SPANS)])
#define emud_bucket_at(w, at) (&(w)->bucket[emud_wheel_bound(at, EMUD_WHEEL_BUCKETS)])

static __always_inline void emud_list_push(struct emud_list *list, __u32 number)
{
	struct emud_waiting *last;

	if (list->first) {
		last = emud_waiting_at(list->last);
		if (last)
			last->next = number;
	} else {
		list->first = number;
	}
	list->last = number;
}

/* Takes a value that is free; 0: all are in use. */
static __always_inline __u32 emud_take(struct emud_wheel *w, __u32 base, __u32 capacity,
				       struct emud_waiting **value)
{
	__u32 number = w->free;

	if (!number) {
		if (w->used >= capacity)
			return 0;
		number = base + ++w->used;
		*value = emud_waiting_at(number);
		return number;
	}
	*value = emud_waiting_at(number);
	if (*value)
		w->free = (*value)->next;
	return number;
}

static __always_inline void emud_give_back(struct emud_wheel *w, __u32 number,
					   struct emud_waiting *value)
{
	w->by_sender -= value->due & EMUD_QDISC_BY_SENDER;
	value->next = w->free;
	w->free = number;
}

static __always_inline void emud_bucket_push(struct emud_wheel *w, __u64 at, __u32 number)
{
	struct emud_list *bucket = emud_bucket_at(w, at);
	__u32 i = at & (EMUD_WHEEL_BUCKETS - 1);

	if (!bucket->first) {
		emud_bits_at(w, i >> 6) |= 1ULL << (i & 63);
		emud_middle_at(w, i >> 12) |= 1ULL << ((i >> 6) & 63);
		w->top |= 1ULL << (i >> 12);
	}
	emud_list_push(bucket, number);
	if (at < w->at)
		w->at = at;
}

static __always_inline void emud_span_push(struct emud_wheel *w, __u64 span, __u32 number)
{
	if (span > w->near + EMUD_SPANS)
		span = w->near + EMUD_SPANS;
	emud_list_push(emud_span_at(w, span), number);
	w->far++;
}

/* The span of the first bucket in use, or of now if that is earlier. */
static __always_inline __u64 emud_present(const struct emud_wheel *w, __u64 now)
{
	now >>= EMUD_WHEEL_SHIFT;
	return (w->at < now ? w->at : now) >> EMUD_SPAN_LOG;
}

/* Draws a packet nearer, or passes over an empty span. Returns whether there may be more. */
static __always_inline int emud_draw(struct emud_wheel *w, __u64 now)
{
	__u64 span = w->near + 1, at;
	struct emud_waiting *value;
	struct emud_list *list;
	__u32 number;

	if (!w->far || span > emud_present(w, now) + 1)
		return 0;
	list = emud_span_at(w, span);
	number = list->first;
	if (!number) {
		w->near = span;
		return 1;
	}
	value = emud_waiting_at(number);
	if (!value)
		return 0;
	list->first = value->next;
	value->next = 0;
	w->far--;
	at = value->due >> EMUD_WHEEL_SHIFT;
	if (unlikely(at >> EMUD_SPAN_LOG > span))
		emud_span_push(w, at >> EMUD_SPAN_LOG, number);
	else
		emud_bucket_push(w, at, number);
	return 1;
}

/* Sorts in a value that is not due before now, and whose `next` is 0. */
static __always_inline void emud_sort_in(struct emud_wheel *w, __u32 number, __u64 due,
					 __u64 now)
{
	__u64 at = due >> EMUD_WHEEL_SHIFT, span = at >> EMUD_SPAN_LOG;

	if (w->line_due == EMUD_NEVER || due >= w->line_last) {
		if (w->line_due == EMUD_NEVER)
			w->line_due = due;
		w->line_last = due;
		emud_list_push(&w->line, number);
		return;
	}
	if (unlikely(span > w->near)) {
		if (!w->far)
			w->near = emud_present(w, now) + 1;
		if (span > w->near) {
			emud_span_push(w, span, number);
			return;
		}
	}
	emud_bucket_push(w, at, number);
}

/* The first bucket, which is empty, gives way to the next one in use. */
static __always_inline void emud_next_bucket(struct emud_wheel *w)
{
	__u32 here = w->at & (EMUD_WHEEL_BUCKETS - 1), i = here >> 6, j = here >> 12;
	__u64 bit = 1ULL << (here & 63), word, next;

	word = emud_bits_at(w, i) &= ~bit;
	if (!word) {
		emud_middle_at(w, j) &= ~(1ULL << (i & 63));
		if (!emud_middle_at(w, j))
			w->top &= ~(1ULL << j);
	}
	word &= -bit << 1;
	if (likely(word)) {
		next = (i << 6) + emud_lowest(word);
		goto found;
	}
	word = emud_from(emud_middle_at(w, j), (i & 63) + 1);
	if (!word) {
		/* The rest of the round, then from its beginning. */
		word = emud_from(w->top, j + 1);
		if (!word)
			word = w->top;
		if (!word)
			goto none;
		j = emud_lowest(word);
		word = emud_middle_at(w, j);
	}
	i = (j << 6) + emud_lowest(word);
	next = (i << 6) + emud_lowest(emud_bits_at(w, i));
found:
	w->at += (next - here - 1) % EMUD_WHEEL_BUCKETS + 1;
	return;
none:
	w->at = EMUD_NEVER;
}

/* Takes the first packet out of the first bucket. Its value is not free yet. */
static __always_inline __u32 emud_bucket_pop(struct emud_wheel *w,
					     struct emud_waiting **value)
{
	struct emud_list *bucket = emud_bucket_at(w, w->at);
	__u32 number = bucket->first;

	*value = emud_waiting_at(number);
	if (!*value)
		return 0;
	bucket->first = (*value)->next;
	if (!bucket->first)
		emud_next_bucket(w);
	return number;
}

/* Takes the first packet out of the line. Its value is not free yet. */
static __always_inline __u32 emud_line_pop(struct emud_wheel *w,
					   struct emud_waiting **value)
{
	struct emud_waiting *next;
	__u32 number = w->line.first;

	*value = emud_waiting_at(number);
	if (!*value)
		return 0;
	w->line.first = (*value)->next;
	next = emud_waiting_at(w->line.first);
	w->line_due = w->line.first && next ? next->due : EMUD_NEVER;
	return number;
}

/* When the next packet is due; a bucket, in its middle. EMUD_NEVER: none waits. */
static __always_inline __u64 emud_next_due(const struct emud_wheel *w)
{
	__u64 bucket = EMUD_NEVER;

	if (w->at != EMUD_NEVER)
		bucket = (w->at << EMUD_WHEEL_SHIFT) + EMUD_WHEEL_HALF;
	return bucket < w->line_due ? bucket : w->line_due;
}

/* Returns whether the first packet of the first bucket is the next one; one waits. */
static __always_inline int emud_bucket_is_next(const struct emud_wheel *w)
{
	__u64 line = w->line_due >> EMUD_WHEEL_SHIFT;
	struct emud_waiting *in_bucket, *in_line;

	if (likely(w->at != line))
		return w->at < line;
	in_bucket = emud_waiting_at(emud_bucket_at(w, w->at)->first);
	in_line = emud_waiting_at(w->line.first);
	return in_bucket && in_line && (__s32)(in_bucket->arrival - in_line->arrival) < 0;
}

/* Takes out the next packet. */
static __always_inline __u32 emud_pop(struct emud_wheel *w, struct emud_waiting **value)
{
	return emud_bucket_is_next(w) ? emud_bucket_pop(w, value)
				      : emud_line_pop(w, value);
}

#endif
