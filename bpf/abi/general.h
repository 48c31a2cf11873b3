/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Directions, slots, marks of packets, tables, lanes, engines.
 */
#ifndef EMUD_ABI_GENERAL_H
#define EMUD_ABI_GENERAL_H

#include <linux/types.h>

/* The lock of a value of a map. User space always reads 0. */
#ifdef __bpf__
#include <linux/bpf.h>
#define EMUD_LOCK struct bpf_spin_lock
#else
#define EMUD_LOCK __u32
#endif

#define EMUD_UP 0 /* egress of the device */
#define EMUD_DOWN 1 /* ingress of the device */
#define EMUD_DIRECTIONS 2

/* How many packets of a direction may be in the classifier of a CPU: more than one only with
 * PREEMPT_RT, and one that finds no free set of figures passes. */
#define EMUD_DEPTHS 8
#define EMUD_SETS (EMUD_DIRECTIONS * EMUD_DEPTHS)
#define EMUD_NO_SCRATCH EMUD_SETS

/* classid of the ingress filter; a program sees 16 bits of it. TC_ACT_OK copies
 * it into skb->tc_index, where it has no effect. */
#define EMUD_CLASSID_DOWN 2

/* Two configurations per direction: the active one and the one that is being
 * written. */
#define EMUD_GENERATIONS 2
#define EMUD_SLOTS (EMUD_DIRECTIONS * EMUD_GENERATIONS)

/* skb->tc_index of a packet that already waited until its departure time (or of
 * a clone that carries the time in its stamp) and must not be emulated again.
 * No qdisc since 6.3 reads tc_index; skb->mark belongs to the user. */
#define EMUD_TC_INDEX 0xe3d1
/* skb->tc_index of a clone that only serves to drop the socket: not emulated
 * yet. */
#define EMUD_TC_INDEX_CLONE 0xe3d2
/* skb->tc_index of a packet that passes the segmenter, in both directions. */
#define EMUD_TC_INDEX_SEGMENT 0xe3d3
/* skb->tc_index of an encrypted packet after the link; the lower bits hold the
 * device number. The same device receives the decrypted content again
 * (xfrm_input(), gro_cells_receive()), and no wire carried that separately. */
#define EMUD_TC_INDEX_ENCRYPTED 0x8000
#define EMUD_TC_INDEX_DEVICE 0x1fff
/* The index of lo in every network namespace (LOOPBACK_IFINDEX). */
#define EMUD_LOOPBACK 1

/* For this long after a packet that has to pass the segmenter, all packets take the path
 * through it. Otherwise they would overtake that one, which waits for the softirq that
 * receives from a veth. */
#define EMUD_SEGMENTING_NS 10000000ULL

/* Links of a profile: number 0, which is the profile itself, and the named
 * links, which rules and phases refer to. A link has EMUD_SLOTS slots, one per
 * direction and generation. */
#define EMUD_LINKS_MAX 64

/* A stamp further in the future than this is not a departure time (but a
 * receive time in CLOCK_REALTIME, for example). The default horizon of sch_fq
 * is the same. */
#define EMUD_HORIZON_NS 10000000000ULL
/* A pacing sender holds packets back for less than this. */
#define EMUD_HELD_MAX_NS 1000000000ULL
/* As a rule, less than this; packets held back for longer get a share of the room of the
 * holder, or of emud's qdisc. */
#define EMUD_HELD_USUAL_NS 10000000ULL

/* Delay table: EMUD_TABLE_LEN - 1 steps over the standard normal value
 * [-8, 8), so that one step is 1/256 of a standard deviation. */
#define EMUD_Z_SHIFT 24 /* normal values are Q8.24 */
#define EMUD_TABLE_SHIFT 16 /* 2^16 of them per step */
#define EMUD_TABLE_STEPS 4096
#define EMUD_TABLE_LEN (EMUD_TABLE_STEPS + 1)
#define EMUD_TABLE_ORIGIN (8 << EMUD_Z_SHIFT)

/* Normal quantile with an index like a floating-point number: 32 octaves of 64
 * steps. */
#define EMUD_NORMAL_OCTAVES 32
#define EMUD_NORMAL_STEPS 64
#define EMUD_NORMAL_LEN (EMUD_NORMAL_OCTAVES * EMUD_NORMAL_STEPS + 1)

/* 1/sqrt(w^2 + (1-w)^2) over w in [0, 1], Q2.30. */
#define EMUD_BLEND_STEPS 1024
#define EMUD_BLEND_LEN (EMUD_BLEND_STEPS + 1)

/* The longest queue that can be counted in packets. */
#define EMUD_RING_LEN 65536
/* Departure times are stored in pieces of this length, which is a
 * super-packet's maximum number of packets. */
#define EMUD_RING_STEP 64
struct emud_ring {
	__u64 sent[EMUD_RING_STEP]; /* when each packet has left the wire, ns */
};
/* With RIO, beside the time: the packet is assured. */
#define EMUD_RING_ASSURED (1ULL << 63)

/* Flows that fq distinguishes, a power of two: its orphan_mask is one less. The
 * lower half is for lanes, the upper half for the others. */
#define EMUD_FQ_FLOWS 65536U
#define EMUD_FQ_OTHERS (EMUD_FQ_FLOWS / 2)
/* fq, or emud's qdisc, and the timer deliver a packet to the receiver this much
 * later than tc-netem. */
#define EMUD_LEAD_NS 3200ULL
/* Lanes of each CPU: enough for about 16,000 waiting packets in any order. */
#define EMUD_LANES_LOG 8
#define EMUD_LANES (1U << EMUD_LANES_LOG)
/* 2 us: timers are no finer, and no CPU sends faster than that. */
#define EMUD_FQ_SHIFT_MIN 11
/* Spreads the delays of neighbouring paths; 2^16 divided by the golden ratio. */
#define EMUD_FQ_SPREAD 40503

/* Flows whose packets are numbered: sets of EMUD_FLOW_WAYS. */
#define EMUD_FLOW_SETS 8192
#define EMUD_FLOW_WAYS 4

/* Delays are counted in classes, each a 16th of an octave wide or 2^10 ns. */
#define EMUD_HIST_UNIT 10
#define EMUD_HIST_STEPS_LOG 4
#define EMUD_HIST_STEPS (1 << EMUD_HIST_STEPS_LOG)
#define EMUD_HIST_LEN 512

enum emud_release {
	EMUD_RELEASE_NONE, /* inactive: every packet passes */
	EMUD_RELEASE_STAMP, /* fq on this device schedules by skb->tstamp */
	EMUD_RELEASE_IFB, /* fq on emud's ifb schedules */
	EMUD_RELEASE_MIRRED, /* the same, by a mirred filter after the classifier */
	EMUD_RELEASE_HOLD, /* the holder behind the TAP schedules */
	EMUD_RELEASE_QDISC, /* emud's qdisc on this device schedules by skb->tstamp */
	EMUD_RELEASE_QDISC_IFB, /* the same on emud's ifb */
};

/* emud's qdisc (bpf/qdisc.bpf.c): the direction, in its handle. */
#define EMUD_QDISC_HANDLE_SHIFT 16
/* The longest wait, 52 days: a later stamp is no departure time. A stamp of
 * CLOCK_REALTIME is 2^60. */
#define EMUD_QDISC_HORIZON_NS (1ULL << 52)
#define EMUD_EBUSY 16
/* In place of the number of bpf_rdonly_cast(): see emud_readable(). */
#define EMUD_RDONLY_CAST 0x0e3dca57
/* Its name: this, and the rest random. */
#define EMUD_QDISC_ID_LEN 16
/* In the stamp: its sender holds the packet back for more than EMUD_HELD_USUAL_NS. */
#define EMUD_QDISC_BY_SENDER 1ULL
/* In the stamp: the packet waits in a class first, which struct emud_classed says. */
#define EMUD_QDISC_CLASSED 2ULL
/* A departure is a multiple of 4 ns. */
#define EMUD_QDISC_MARKS 3ULL
/* The share of the room for those is 1/2^n. */
#define EMUD_QDISC_BY_SENDER_SHIFT 2
/* Above 1/2^n of the room, the limits of their classes hold for packets whose senders wait, too. */
#define EMUD_QDISC_HELD_SHIFT 1
struct emud_qdisc_room {
	__u32 packets; /* that can wait, in each direction */
	__u32 down_from; /* the first of `down` in the map */
};

#endif
