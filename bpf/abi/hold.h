/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The holder: its side of a direction, its classes, and the header of a frame for it.
 */
#ifndef EMUD_ABI_HOLD_H
#define EMUD_ABI_HOLD_H

#include <linux/types.h>

#include "general.h"
#include "state.h"

/* The holder's side of a direction: only the holder writes it. */
struct emud_holder {
	/* Frames may be sent to the holder until then. Engine qdisc: senders may wait for emud's
	 * qdisc; 0: another one has taken over, and nothing would send what they wait for. */
	__u64 lease_ns;
	__u64 pid;
	__u64 released; /* frames written back */
	__u64 dropped; /* frames not written back: malformed, write failed */
	__u64 late; /* written back more than EMUD_LATE_NS too late */
	__u64 worst_late_ns;
	__u64 waiting; /* frames held right now */
	__u32 tuning; /* enum emud_tuning */
	__u32 cpu; /* bound to, if EMUD_TUNED_CPU */
	__u64 disordered; /* read when a bottleneck had decided on later ones */
	struct emud_served served[EMUD_LINKS_MAX]; /* by link; not in emud_counters */
};

/* A class of a bottleneck: written by the holder alone. */
struct emud_class {
	__u64 sent_packets;
	__u64 sent_bytes; /* on the wire */
	__u64 marked; /* of those sent */
	__u64 full; /* dropped for want of room in packets or bytes */
	__u64 expired; /* dropped because they would have waited for too long */
	__u64 managed; /* dropped by the queue's manager */
	__u64 wait_ns; /* from arrival to transmission: the sum, */
	__u64 longest_wait_ns;
	__u64 backlog_packets; /* waiting right now */
	__u64 backlog_bytes;
};

/* What makes the holder punctual, as far as the kernel granted it. */
enum emud_tuning {
	EMUD_TUNED_CPU = 1 << 0, /* bound to one CPU: without it frames may overtake */
	EMUD_TUNED_REALTIME = 1 << 1, /* SCHED_RR: without it other tasks delay frames */
	EMUD_TUNED_TIMER = 1 << 2, /* no timer slack */
	EMUD_TUNED_MEMORY = 1 << 3, /* locked in memory */
};
#define EMUD_LATE_NS 1000000ULL

/* The header of every frame on its way to the holder. It includes the VLAN tag
 * outside the data because tun_put_user() would insert the tag at byte 12,
 * inside this header. It also includes the tag after that one, which replaces
 * it (skb_vlan_pop()). */
#define EMUD_HOLD_TAGS 2
struct emud_hold_tag {
	__u16 tci;
	__be16 proto; /* 0: no tag */
};
struct emud_hold_hdr {
	__u64 departure_ns; /* CLOCK_MONOTONIC */
	__u32 magic; /* EMUD_HOLD_MAGIC or EMUD_HOLD_MAGIC_SUM, with EMUD_HOLD_BY_SENDER */
	struct emud_hold_tag tag[EMUD_HOLD_TAGS]; /* outer, inner */
	__u32 service; /* number of the class where it waits; 0: none */
};

/* Follows for a packet that waits in a class; departure_ns is that without the wait. */
struct emud_hold_service {
	__u64 arrival_ns; /* at the bottleneck */
	__u64 copy_ns; /* when a copy departs, as departure_ns; 0: there is none */
	__u32 path; /* packets of one path keep their order */
	__u32 bytes; /* on the wire */
	__u32 last_bytes; /* the same of the last packet of a train */
	__u8 flags; /* enum emud_service_flags */
	__u8 link; /* number, for struct emud_served */
	__u16 full_len; /* of the other frames of a train; 0: there is none */
};
_Static_assert(sizeof(struct emud_hold_service) == 32, "on the wire to the holder");
enum emud_service_flags {
	EMUD_SERVICE_LOST = 1 << 0, /* after the bottleneck, whose time it takes */
	EMUD_SERVICE_OVERTAKES = 1 << 1, /* it may */
	EMUD_SERVICE_CORRUPTED = 1 << 2,
	EMUD_SERVICE_L3 = 1 << 3, /* emud has added the Ethernet header */
	EMUD_SERVICE_HELD = 1 << 4, /* its sender waits for it (EMUD_TOKEN) */
	EMUD_SERVICE_RESET = 1 << 5,
};
#define EMUD_HOLD_MAGIC 0x656d7564
/* Corrupted: a checksum left to the device must be computed, or a receiver on
 * this host would treat it as valid. */
#define EMUD_HOLD_MAGIC_SUM 0x656d7573
/* With either: its sender holds it back for more than EMUD_HELD_USUAL_NS. */
#define EMUD_HOLD_BY_SENDER (1U << 31)
_Static_assert(sizeof(struct emud_hold_hdr) == 24, "on the wire to the holder");

#endif
