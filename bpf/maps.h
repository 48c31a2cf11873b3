/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The maps, and what one packet carries from stage to stage.
 */
#ifndef EMUD_MAPS_H
#define EMUD_MAPS_H

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/in.h>
#include <linux/tcp.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "emud.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* The verifier of 6.1 loses the bounds of an index on its way through 32-bit
 * arithmetic; a mask that the compiler cannot prove to be needless restores
 * them. */
#define emud_bound(index, len)                                   \
	({                                                       \
		__u64 index_ = (index);                          \
		_Static_assert(((len) & ((len)-1)) == 0, "2^n"); \
		asm volatile("" : "+r"(index_));                 \
		index_ &((len)-1);                               \
	})

#define EMUD_MAP(name_, type_, len_, value_)        \
	struct {                                    \
		__uint(type, BPF_MAP_TYPE_##type_); \
		__uint(max_entries, len_);          \
		__type(key, __u32);                 \
		__type(value, value_);              \
	} name_ SEC(".maps")

EMUD_MAP(emud_control, ARRAY, 1, struct emud_control);
EMUD_MAP(emud_links, ARRAY, EMUD_SLOTS, struct emud_link);
EMUD_MAP(emud_tables, ARRAY, EMUD_SLOTS, struct emud_table);
EMUD_MAP(emud_states, ARRAY, EMUD_DIRECTIONS, struct emud_state);
EMUD_MAP(emud_holders, ARRAY, EMUD_DIRECTIONS, struct emud_holder);
EMUD_MAP(emud_counts, PERCPU_ARRAY, EMUD_DIRECTIONS, struct emud_counters);
EMUD_MAP(emud_saved, ARRAY, 1, struct emud_restore);

struct emud_flow;

/* A packet on its way through the stages. */
struct emud_packet {
	struct __sk_buff *skb;
	const struct emud_link *link;
	struct emud_state *state;
	struct emud_counters *count;
	__u32 direction;
	__u32 slot; /* of link and table */

	/* parse */
	__u32 segments; /* wire packets in here: 1 unless GSO or GRO */
	__u32 wire_len; /* of all of them together, without overhead */
	__u64 flow; /* hash of the 5-tuple */
	__u64 service; /* the same without ephemeral ports */
	__u8 is_ip;
	__u8 is_neighbour;
	__u8 passed; /* untouched, for one of enum emud_pass */

	/* rng */
	__u64 draw; /* hash(seed, link, flow, n-th packet), not yet mixed */
	struct emud_flow *known; /* its flow, if it was numbered */

	/* queue and delay */
	__u64 arrival; /* ns, CLOCK_MONOTONIC, as every time here */
	__u64 sent; /* the last bit is on the wire */
	__u64 departure;
};

#endif
