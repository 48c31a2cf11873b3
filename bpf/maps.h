/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps, and the state that one packet carries from stage to stage.
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
#include <linux/udp.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "emud.h"
#include "shared.h"

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

/* Departure time of the last packet of each flow of fq: see emud_lane(). */
struct emud_lanes {
	__u64 last[EMUD_LANES];
};

EMUD_MAP(emud_links, ARRAY, EMUD_SLOTS, struct emud_link);
EMUD_MAP(emud_tables, ARRAY, EMUD_SLOTS, struct emud_table);
/* Mappable only to begin at a page: then no state shares a cache line with that of the
 * other direction, whose packets another CPU sends. */
_Static_assert(sizeof(struct emud_state) % 64 == 0, "cache lines");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, EMUD_DIRECTIONS);
	__type(key, __u32);
	__type(value, struct emud_state);
} emud_states SEC(".maps");
EMUD_MAP(emud_counts, PERCPU_ARRAY, EMUD_DIRECTIONS, struct emud_counters);
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 + 2 * EMUD_PIECES);
	__type(key, __u32);
	__type(value, struct emud_piece);
} emud_saved SEC(".maps");
EMUD_MAP(emud_lanes, PERCPU_ARRAY, EMUD_DIRECTIONS, struct emud_lanes);
EMUD_MAP(emud_patterns, ARRAY, EMUD_SLOTS, struct emud_pattern);
EMUD_MAP(emud_rings, ARRAY, EMUD_DIRECTIONS *(EMUD_RING_LEN / EMUD_RING_STEP),
	 struct emud_ring);

/* Set by tests only, whose packets carry the time in hwtstamp and the hook in
 * cb[0]. The verifier removes the branch that the constant rules out. */
const volatile __u8 emud_test_run;

/* Whether this kernel has PREEMPT_RT: see emud_scratch(). */
const volatile __u8 emud_preempt_rt;

/* Filled by the loader. Being constant, it removes the code of features that
 * are not used. */
const volatile struct emud_layout emud_layout;
const volatile __u32 emud_features; /* enum emud_feature */

/* What the object contains (build.rs): most passes of the verifier follow the whole program,
 * whatever a constant rules out (docs/design.md). */
#ifndef EMUD_BUILT
#define EMUD_BUILT EMUD_FEATURES
#endif

/* The links of this object are those of engine qdisc: all its programs have one direction. */
#define EMUD_ONLY_QDISC (!(EMUD_BUILT & (EMUD_BY_FQ | EMUD_BY_HOLD)))

/* The compiler keeps a load for each volatile read, needed or not; without them it keeps
 * values on the stack, which has no room for them in the other objects. */
static __always_inline __u32 emud_features_of_links(void)
{
	const __u32 *at = (const __u32 *)&emud_features;

	if (!EMUD_ONLY_QDISC)
		return emud_features;
	asm("" : "+r"(at));
	return *at;
}

/* False: no link needs this. The verifier does not follow code after it, which is most
 * of the time of an attach, and removes it. Before Linux 6.8 it checks every global
 * function, called or not, so those check, too. */
#define emud_uses_any(bits) (emud_features_of_links() & EMUD_BUILT & (bits))
#define emud_uses(feature) emud_uses_any(EMUD_FEATURE_##feature)
#define emud_releases(kind) emud_uses_any(1 << EMUD_RELEASE_##kind)

EMUD_MAP(emud_rows, ARRAY, 1, struct emud_row);

/* A packet on its way through the stages. Numbers only, because most stages are
 * global functions: the verifier checks such a function once, independent of
 * its callers; with all stages in one function it checked every path through
 * all of them (49,000 instructions, 0.4 s a program). A pointer in here would
 * leave a stage as a plain number. */
struct emud_packet {
	/* Reset to 0 for every packet. The members after `direction` keep the
	 * values of the previous packet until a stage sets them. */
	struct emud_overlay over; /* figures that replace the link's */
	__u32 number; /* of the link, selects the counters */
	__u32 untouched; /* a rule lets it pass */
	__u32 timed; /* enum emud_timeline_kind of the link whose rows they are */
	__u32 l4_off; /* 0: none, or in a different fragment */
	__u8 l4_proto;
	__u8 is_ip;
	__u8 is_neighbour;
	__u8 passed; /* not emulated, reason in enum emud_pass */
	__u8 mark; /* the queue requests CE */
	__u8 copied; /* the packet gets a copy */
	__u8 sum_due; /* corrupted, and the device would repair the checksum */
	__u8 numbered;
	__u8 tags; /* VLAN tags in the data, up to the parser's limit */
	__u8 lost; /* after the bottleneck in whose class it waits */
	__u8 corrupted; /* the same */
	__u8 reset; /* the same */
	__u32 service; /* number of that class; 0: of none, or not yet known */

	__u32 direction; /* the first one that is not reset */
	__u32 scratch; /* which set of figures per CPU: emud_scratch() */
	__u32 base; /* slot of link number 0: direction and generation */
	__u32 slot; /* of link and table */
	__u32 queue; /* of the state with the queue */
	__u32 path; /* of the state with everything else */
	__u32 control; /* value of struct emud_control */
	__u32 timeline; /* slot of the link whose rows they are, if it is timed */

	/* parse */
	__u32 segments; /* wire packets in here: 1 unless GSO or GRO */
	__u32 wire_len; /* of all of them together, without overhead */
	__u32 full_len; /* of each wire packet but the last, without overhead */
	__u32 last_len; /* of the last or only one */
	__u32 l3_off;
	__u64 addresses; /* hash of the flow without `ends` */
	__u64 ends; /* protocol and ports */
	__u64 flow; /* hash of both */

	/* rng */
	__u64 draw; /* hash(seed, link, flow, n-th packet), not yet mixed */
	__u64 known; /* position of its flow, if the packet was numbered */

	/* queue and delay */
	__u64 arrival; /* ns, CLOCK_MONOTONIC, as every time here */
	__u64 sent; /* the last bit is on the wire */
	__u64 departure;
	__u64 copy_departure;
	__u64 earliest; /* not on the wire before: the sender's stamp; 0: any time */
	__u64 held; /* additional delay because of that, ns */

	__u64 socket; /* address of struct sock */

	/* per CPU, kept from packet to packet */
	__u64 busy; /* a packet is in the classifier, only with PREEMPT_RT */
};
#define EMUD_PACKET_ZEROED offsetof(struct emud_packet, direction)

/* Not on the stack, of which all functions together have 512 bytes. No packet
 * of this attachment can interrupt a classifier on its CPU, because the packets
 * that it sends are marked. One per direction, because with PREEMPT_RT the
 * softirq of ingress can interrupt it, and EMUD_DEPTHS times as many there: see
 * emud_scratch(). */
EMUD_MAP(emud_packets, PERCPU_ARRAY, EMUD_DIRECTIONS, struct emud_packet);

/* Until when packets follow a super-packet through the segmenter; 0: there was none lately. The
 * loader sets it: before this program there may have been another one. */
__u64 emud_segmenting_until[EMUD_DIRECTIONS] = {1, 1};

#define EMUD_LOOKUP(map, index)                       \
	({                                            \
		__u32 index_ = (index);               \
		bpf_map_lookup_elem(&(map), &index_); \
	})

static __always_inline const struct emud_link *emud_link(const struct emud_packet *p)
{
	return EMUD_LOOKUP(emud_links, p->slot);
}

/* The slot of a link number. */
static __always_inline __u32 emud_slot(const struct emud_packet *p, __u32 number)
{
	return number * EMUD_SLOTS + p->base;
}

static __always_inline __u64 emud_rate_mult(const struct emud_packet *p,
					    const struct emud_link *l)
{
	return p->over.set & EMUD_SET_RATE ? p->over.rate_mult : l->rate_mult;
}

static __always_inline __u32 emud_rate_shift(const struct emud_packet *p,
					     const struct emud_link *l)
{
	return (p->over.set & EMUD_SET_RATE ? p->over.rate_shift : l->rate_shift) & 63;
}

static __always_inline struct emud_state *emud_queue_state(const struct emud_packet *p)
{
	return EMUD_LOOKUP(emud_states, p->queue);
}

static __always_inline struct emud_state *emud_path_state(const struct emud_packet *p)
{
	return EMUD_LOOKUP(emud_states, p->path);
}

static __always_inline struct emud_counters *emud_counters(const struct emud_packet *p)
{
	__u32 sets = emud_preempt_rt ? EMUD_SETS : EMUD_DIRECTIONS;

	return EMUD_LOOKUP(emud_counts, p->number * sets + p->scratch);
}

#endif
