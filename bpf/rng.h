/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rng: every random decision is hash(seed, link, flow, n-th packet, purpose).
 *
 * Therefore the same packets have the same fate whatever the timing, the CPU
 * and the other flows. A flow with two fixed ports is identified by its
 * 5-tuple. A flow with an ephemeral port (every ordinary client) would be a new
 * flow in every run, so it is identified by its 5-tuple without that port and
 * its ordinal among such flows: a repeated experiment sees the same link.
 */
#ifndef EMUD_RNG_H
#define EMUD_RNG_H

#include "maps.h"

/* The purpose of a draw: makes two decisions on one packet independent. */
#define EMUD_FOR_LOSS 0x8f3c6d2a51b7e901ULL
#define EMUD_FOR_DELAY 0x35a9e1c47d60b2f3ULL
#define EMUD_FOR_KNOT 0xc2b2ae3d27d4eb4fULL
#define EMUD_FOR_SHARE 0x6b1f0c93e5a8d427ULL
#define EMUD_FOR_REORDER 0xd94e7a1b38c6f05dULL
#define EMUD_FOR_REORDER_REPEAT 0x17c5b8e2906d3fa1ULL
#define EMUD_FOR_LOSS_STATE 0x5be2d31f9a0c7746ULL
#define EMUD_FOR_DUPLICATE 0xa17d0fb86c3e9251ULL
#define EMUD_FOR_COPY 0x61f4b93ce02d8a7bULL
#define EMUD_FOR_CORRUPT 0xd94a2e70b5f8163dULL
#define EMUD_FOR_BIT 0x2c86f15ad3479eb0ULL
#define EMUD_FOR_AQM 0x71d67fffeda60001ULL
#define EMUD_FOR_INSTANCE 0x4be98134a5976fd3ULL
#define EMUD_FOR_CGROUP 0x83d1e6b70f92ac5bULL
#define EMUD_FOR_SLOT 0x4b7e19c35d02f8a6ULL
#define EMUD_FOR_RESET 0x9b30d7ce61a4f285ULL

#define EMUD_GOLDEN 0x9e3779b97f4a7c15ULL

/* Steele, Lea, Flood: "Fast splittable pseudorandom number generators",
 * OOPSLA 2014, the finaliser with Stafford's constants (variant 13). */
static __always_inline __u64 emud_mix(__u64 x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* 1 if x is not 0. Without a branch, which would be two paths for the verifier. */
static __always_inline __u64 emud_nonzero(__u64 x)
{
	return (x | -x) >> 63;
}

/* floor(log2(x)) of 8 bits, 0 for 0. */
static const __u8 emud_log2_of[256] = {
	[2 ... 3] = 1,	 [4 ... 7] = 2,	   [8 ... 15] = 3,    [16 ... 31] = 4,
	[32 ... 63] = 5, [64 ... 127] = 6, [128 ... 255] = 7,
};

/* floor(log2(x)) of 32 bits, 0 for 0. The BPF instruction set has no bit scan; the last
 * three of five steps took 20 instructions, the table takes 3. */
static __always_inline __u32 emud_log2_32(__u64 x)
{
	__u64 r, step;

	r = emud_nonzero(x >> 16) << 4;
	x >>= r;
	step = emud_nonzero(x >> 8) << 3;
	x >>= step;
	return r + step + emud_log2_of[emud_bound(x, 256)];
}

static __always_inline __u32 emud_log2(__u64 x)
{
	__u64 step = emud_nonzero(x >> 32) << 5;

	return step + emud_log2_32(x >> step);
}

static __always_inline __u64 emud_absorb(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0xff51afd7ed558ccdULL;
	return hash ^ (hash >> 32);
}

/* A hash of addresses, protocol and ports. Never 0, which stands for no flow. */
static __always_inline __u64 emud_flow_hash(__u64 addresses, __u64 ends)
{
	return emud_absorb(addresses, ends) | 1;
}

/* Ports from here on count as ephemeral (net.ipv4.ip_local_port_range). */
#define EMUD_EPHEMERAL_PORT 32768

/* The hash of the flow without ephemeral ports. */
static __always_inline __u64 emud_service_hash(const struct emud_packet *p)
{
	__u32 ports = p->ends;
	__u64 ends = p->ends;

	if (bpf_ntohs(ports & 0xffff) >= EMUD_EPHEMERAL_PORT)
		ends &= ~0xffffULL;
	if (bpf_ntohs(ports >> 16) >= EMUD_EPHEMERAL_PORT)
		ends &= ~0xffff0000ULL;
	return emud_flow_hash(p->addresses, ends);
}

/* Standard normal quantile (Q8.24) of probability u / 2^32 below a half, filled
 * by the loader: 32 octaves of 64 steps, which makes the tail as exact as the
 * middle. */
const volatile __s32 emud_normal_quantile[EMUD_NORMAL_LEN];

/* A flow and the number of its packets so far. */
struct emud_flow {
	__u64 key;
	__u64 id; /* hash(seed, link, flow) */
	__u64 packets;
	__u64 seen; /* ns, selects the flow to evict */

	/* delay: two CPUs that race here lose one step of the process, and the
	 * distribution stays */
	__s64 normal; /* of the previous packet, Q8.24; 0: none */
	__u32 delayed; /* packets since the last one that reorder sent early */
	__u32 reordered; /* the previous decision: 1 no, 2 yes; 0: none */
};

/* The number of flows so far that differ in an ephemeral port only. */
struct emud_service {
	__u64 key;
	__u64 flows;
};

#define EMUD_SERVICE_SETS 1024

struct emud_flow_set {
	struct emud_flow way[EMUD_FLOW_WAYS];
};

struct emud_service_set {
	struct emud_service way[EMUD_FLOW_WAYS];
	__u64 evicted;
};

/* Maps, not globals: a program that replaces another one continues with its maps, and aya
 * clears a program's globals. */
EMUD_MAP(emud_flows, ARRAY, EMUD_DIRECTIONS *EMUD_FLOW_SETS, struct emud_flow_set);
EMUD_MAP(emud_services, ARRAY, EMUD_DIRECTIONS *EMUD_SERVICE_SETS,
	 struct emud_service_set);

/* The set of an entry with this hash. */
#define emud_set(map, sets, direction, hash) \
	EMUD_LOOKUP(map, (direction) * (sets) + (((hash) >> 40) & ((sets)-1)))

/* The ordinal of this flow among flows that differ in an ephemeral port only. A
 * full set evicts the entry with the fewest flows; its successor counts from
 * a number that no flow of the set had before: from 0, one that comes back would
 * lose the same packets again. Under the lock. */
static __always_inline __u64 emud_ordinal(struct emud_service_set *set, __u64 service)
{
	struct emud_service *victim = set->way;
	__u64 first = 0;
	__u32 i;

	for (i = 0; i < EMUD_FLOW_WAYS; i++) {
		struct emud_service *of = &set->way[i];

		if (of->key == service)
			return of->flows++;
		if ((__u32)of->flows < (__u32)victim->flows)
			victim = of;
	}
	if (victim->key)
		first = ++set->evicted << 32;
	victim->key = service;
	victim->flows = first + 1;
	return first;
}

static __always_inline struct emud_flow_set *emud_flows_of(__u32 direction, __u64 flow)
{
	return emud_set(emud_flows, EMUD_FLOW_SETS, direction, flow);
}

static __always_inline struct emud_flow *emud_flow(const struct emud_packet *p)
{
	struct emud_flow_set *set = emud_flows_of(p->direction, p->flow);

	return set ? &set->way[emud_bound(p->known, EMUD_FLOW_WAYS)] : 0;
}

/* Adds the first packet of a flow. Rare, so the cost of the lock is negligible.
 * The key is written last, for readers without the lock. Returns the way in the
 * set, plus EMUD_FLOW_WAYS if it replaced a flow. Takes no address of the packet,
 * whose figures would then not stay in registers (bpf/short.h). */
__noinline __u32 emud_new_flow(__u32 direction, __u64 flow, __u64 service, __u64 seed)
{
	struct emud_service_set *services;
	struct emud_flow *f, *victim;
	struct emud_flow_set *set;
	struct emud_state *s;
	__u32 i, way = 0;

	/* One lock for all flows of a direction. */
	s = EMUD_LOOKUP(emud_states, direction);
	set = emud_flows_of(direction, flow);
	services = emud_set(emud_services, EMUD_SERVICE_SETS, direction, service);
	if (!s || !set || !services)
		return 0;
	victim = set->way;
	bpf_spin_lock(&s->lock);
	for (i = 0; i < EMUD_FLOW_WAYS; i++) {
		f = &set->way[i];
		if (f->key == flow) {
			bpf_spin_unlock(&s->lock);
			return i;
		}
		if (f->seen < victim->seen) {
			victim = f;
			way = i;
		}
	}
	f = victim;
	if (f->key)
		way += EMUD_FLOW_WAYS;
	f->id = emud_mix(
		seed ^ emud_mix(service + emud_ordinal(services, service) * EMUD_GOLDEN));
	f->packets = 0;
	f->normal = 0;
	f->delayed = 0;
	f->reordered = 0;
	f->key = flow;
	bpf_spin_unlock(&s->lock);
	return way;
}

/* The way of a flow in its set, or EMUD_FLOW_WAYS. Without further branches: each
 * would be a separate path for the verifier, which would check all code after it
 * once per path. */
static __always_inline __u32 emud_flow_way(const struct emud_packet *p,
					   const struct emud_flow_set *set)
{
	__u64 way = EMUD_FLOW_WAYS, i;

	/* Most sets have one flow. */
	if (likely(set->way[0].key == p->flow))
		return 0;
	for (i = 1; i < EMUD_FLOW_WAYS; i++)
		way -= (1 - emud_nonzero(set->way[i].key ^ p->flow)) *
		       (EMUD_FLOW_WAYS - i);
	return way;
}

/* Numbers the packet within its flow; every draw on it starts from that number. */
static __always_inline void emud_number(struct emud_packet *p, const struct emud_link *l,
					struct emud_counters *count)
{
	struct emud_flow_set *set = emud_flows_of(p->direction, p->flow);
	struct emud_flow *f;

	if (!set)
		return;
	p->known = emud_flow_way(p, set);
	if (unlikely(p->known == EMUD_FLOW_WAYS)) {
		p->known = emud_new_flow(p->direction, p->flow, emud_service_hash(p),
					 l->seed);
		if (p->known >= EMUD_FLOW_WAYS)
			count->flows_forgotten++;
	}
	f = &set->way[emud_bound(p->known, EMUD_FLOW_WAYS)];
	f->seen = p->arrival;
	p->numbered = 1;
	p->draw = f->id + __sync_fetch_and_add(&f->packets, 1) * EMUD_GOLDEN;
}

static __always_inline __u64 emud_draw(const struct emud_packet *p, __u64 purpose)
{
	return emud_mix(p->draw ^ purpose);
}

/* Converts a random u64 to a standard normal value, Q8.24: bit 63 is the sign,
 * the low half the tail probability. */
static __always_inline __s64 emud_normal(__u64 random)
{
	__u64 tail = (random & 0xffffffff) | 1;
	__u32 octave = emud_log2_32(tail) & (EMUD_NORMAL_OCTAVES - 1);
	/* the mantissa below the leading one, as a 0.32 fraction */
	__u64 mantissa = (tail << (32 - octave)) & 0xffffffff;
	__u32 i = emud_bound(octave * EMUD_NORMAL_STEPS + (mantissa >> 26),
			     EMUD_NORMAL_LEN - 1);
	__s64 a = emud_normal_quantile[i], b = emud_normal_quantile[i + 1], z;

	z = a + (((b - a) * (__s64)(mantissa & 0x3ffffff)) >> 26);
	return random >> 63 ? -z : z;
}

#endif
