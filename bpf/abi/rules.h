/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What rules match on, and what is learned for them.
 */
#ifndef EMUD_ABI_RULES_H
#define EMUD_ABI_RULES_H

#include <linux/types.h>

#include "general.h"
#include "link.h"

/* Which fields exist in a packet for rules to match on. */
enum emud_has {
	EMUD_HAS_IP = 1 << 0,
	EMUD_HAS_IP6 = 1 << 1, /* and it is IPv6 */
	EMUD_HAS_PORTS = 1 << 2, /* not in a fragment */
	EMUD_HAS_ICMP = 1 << 3,
	EMUD_HAS_VLAN = 1 << 4,
	EMUD_HAS_MAC = 1 << 5,
};

#define EMUD_KEY_WORDS 8
/* The fields that rules match on, in packet byte order, and the masks over them. */
struct emud_key {
	__u64 source[2]; /* IPv4: in the first four bytes */
	__u64 destination[2];
	__be16 source_port;
	__be16 destination_port;
	__u32 mark;
	__u16 vlan; /* of the outer tag */
	__u8 has; /* enum emud_has */
	__u8 protocol;
	__u8 tos;
	__u8 icmp_type;
	__u8 source_mac[6];
	__u8 destination_mac[6];
	/* that it belongs to, by bits: emud_masks.cgroup from the lowest on, .name from
	 * the highest */
	__u16 cgroups;
	__u32 table; /* direction, generation and mask, in a rule's key */
};
_Static_assert(sizeof(struct emud_key) == 8 * EMUD_KEY_WORDS, "no padding: it is hashed");

/* Rules of one mask cost one lookup. */
#define EMUD_MASKS_MAX 32
struct emud_mask {
	struct emud_key bits;
	__u64 first; /* the lowest position of its rules */
};
/* With the names; each takes a mask. */
#define EMUD_CGROUPS_MAX 16
struct emud_masks {
	__u32 count;
	__u32 list; /* hash of `cgroup` */
	struct emud_mask mask[EMUD_MASKS_MAX]; /* by `first` */
	__u64 cgroup[EMUD_CGROUPS_MAX]; /* ids of those in emud_cgroups; 0: none */
	__u64 name[EMUD_CGROUPS_MAX]; /* hashes, even; 0: none */
};
_Static_assert(sizeof(struct emud_masks) == 2568, "shared with Rust");

/* Flows of control groups, learned from what they sent: sets of EMUD_LEARNED_WAYS. */
#define EMUD_LEARNED_WAYS 4
#define EMUD_LEARNED_MAX 65536
struct emud_learned_flow {
	__u64 key; /* hash of the flow as this host sends it; 0: not in use */
	__u64 seen; /* ns */
	__u32 list; /* emud_masks.list, by which `cgroups` is */
	__u32 cgroups;
};
struct emud_learned {
	EMUD_LOCK lock;
	__u32 reserved; /* 0 */
	struct emud_learned_flow way[EMUD_LEARNED_WAYS];
};
_Static_assert(sizeof(struct emud_learned) == 104, "shared with Rust");

/* Addresses of names, learned from DNS answers. */
#define EMUD_FOR_NAME 0x5d3f0a91c8e2764bULL /* initial value of the hash of a name */
#define EMUD_ADDRESSES_MAX 4096
struct emud_address {
	__u64 ip[2]; /* IPv4: in the first four bytes */
	__u64 name; /* hash; plus 1: IPv6 */
};
#define EMUD_RESOLVERS_MAX 8
struct emud_resolvers {
	struct emud_address resolver[EMUD_RESOLVERS_MAX]; /* name: 0, or 1: IPv6 */
	__u32 count;
	__u32 reserved; /* 0 */
};
_Static_assert(sizeof(struct emud_resolvers) == 200, "shared with Rust");

/* Which packets share one instance of a rule's link. */
enum emud_per {
	EMUD_PER_LINK, /* all */
	EMUD_PER_FLOW,
	EMUD_PER_SOURCE,
	EMUD_PER_DESTINATION,
	EMUD_PER_PAIR,
};

#define EMUD_LINK_NONE 0xffffffff /* packets pass untouched */
struct emud_rule {
	__u32 place; /* position among the rules: the lowest wins */
	__u32 link; /* number, or EMUD_LINK_NONE */
	__u32 per; /* enum emud_per */
	__u32 service; /* number of the class where it waits; 0: the link's */
};

/* Pairs of addresses with separate figures. IPv4 is stored as ::ffff:a.b.c.d. */
#define EMUD_PAIRS_MAX 65536
struct emud_pair_key {
	__u64 source[2];
	__u64 destination[2];
};
struct emud_pair {
	struct emud_overlay half[EMUD_GENERATIONS]; /* one active, one to be written */
	struct emud_pair_key key; /* for readers of the map; 0: not in use */
};
_Static_assert(sizeof(struct emud_pair) == 112, "shared with Rust");

/* Instances: sets of EMUD_INSTANCE_WAYS. */
#define EMUD_INSTANCE_WAYS 4
#define EMUD_INSTANCES_MAX 65536
struct emud_instance {
	__u64 key; /* hash of the link and the owner; 0: not in use */
	__u64 seen; /* ns */
};
struct emud_instances {
	EMUD_LOCK lock;
	__u32 reserved; /* 0 */
	struct emud_instance way[EMUD_INSTANCE_WAYS];
};
_Static_assert(sizeof(struct emud_instances) == 72, "shared with Rust");

#endif
