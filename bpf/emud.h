/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The types that the classifier shares with the Rust side. Plain C without
 * kernel headers except <linux/types.h>; bindgen generates the Rust half.
 */
#ifndef EMUD_H
#define EMUD_H

#include <linux/types.h>

/* Incremented when a struct below changes: show, set and detach reject a
 * classifier that a different emud version loaded, instead of misreading it. */
#define EMUD_ABI 17

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
/* Its name: this, and the rest random. */
#define EMUD_QDISC_ID_LEN 16
/* In the stamp: its sender holds the packet back for more than EMUD_HELD_USUAL_NS. A
 * departure is even. */
#define EMUD_QDISC_BY_SENDER 1ULL
/* The share of the room for those is 1/2^n. */
#define EMUD_QDISC_BY_SENDER_SHIFT 2
struct emud_qdisc_room {
	__u32 packets; /* that can wait, in each direction */
	__u32 down_from; /* the first of `down` in the map */
};

enum emud_flags {
	EMUD_F_L3 = 1 << 0, /* the device has no Ethernet header */
	EMUD_F_NEIGHBOURS = 1 << 1, /* emulate ARP and neighbour discovery too */
	EMUD_F_PER_PACKET = 1 << 2, /* jitter is random per packet and reorders */
	EMUD_F_JITTER = 1 << 3, /* the delay table is in use */
	EMUD_F_CLONE = 1 << 4, /* packets with a socket are cloned */
	EMUD_F_PLAIN_QUEUE = 1 << 7, /* a rate and limits, nothing else */
	EMUD_F_SHARE = 1 << 8, /* only a share of the packets is delayed */
	EMUD_F_REORDER = 1 << 9, /* some packets are sent without delay */
	EMUD_F_CORRELATED = 1 << 10, /* per packet, correlated with the previous one */

	EMUD_F_DOWN = 1 << 16, /* the link is down */
	EMUD_F_LOSS_BEFORE = 1 << 17, /* loss before the queue */
	EMUD_F_MEND = 1 << 18, /* corrupt: repair the checksums */
	EMUD_F_LOSS_MARKS = 1 << 19, /* loss: mark instead of drop where possible */

	/* of link number 0 */
	EMUD_F_RULES = 1 << 24, /* rules choose the link of a packet */
	EMUD_F_MATRIX = 1 << 25, /* pairs of addresses have separate figures */
	EMUD_F_CGROUPS = 1 << 26, /* rules match control groups */
	EMUD_F_NAMES = 1 << 27, /* rules match names of DNS answers */
};

/* Why a packet passed without emulation. */
enum emud_pass {
	EMUD_PASS_NEIGHBOUR, /* ARP, ICMPv6 neighbour discovery, PTP events */
	EMUD_PASS_NOT_IP, /* this engine cannot delay other protocols here */
	EMUD_PASS_NO_HOLDER, /* the holder's lease has expired */
	EMUD_PASS_INACTIVE, /* attach or detach is under way */
	EMUD_PASS_FAILED, /* a helper returned an error */
	EMUD_PASS_RULE, /* a rule lets it pass */
	EMUD_PASS_REASONS,
};

/* The model that drops packets. Its figures are in emud_link.loss_param in this
 * order. A probability is the bound of a random u64. */
enum emud_loss {
	EMUD_LOSS_NONE,
	EMUD_LOSS_BERNOULLI, /* emud_link.loss */
	EMUD_LOSS_GILBERT_ELLIOTT, /* p, r, loss in the bad, in the good state */
	EMUD_LOSS_FOUR_STATE, /* p13, p31, p32, p23, p14 */
	EMUD_LOSS_BIT_ERROR, /* probability that a byte survives, times 2^64, minus 1 */
	EMUD_LOSS_EVERY, /* n, count at the start */
	EMUD_LOSS_PATTERN, /* packets, 1: repeats */
	EMUD_LOSS_BURST, /* probability that a burst begins, packets */
};
#define EMUD_LOSS_PARAMS 5

/* A recorded pattern: one bit per packet, 1 means lost. */
#define EMUD_PATTERN_LEN 262144
struct emud_pattern {
	__u64 bits[EMUD_PATTERN_LEN / 64];
};

/* Correlations are fractions of 2^30. */
#define EMUD_CORRELATION_SHIFT 30

/* An event of one probability. Packets are independent or correlated. With
 * correlation the event happens if a standard normal AR(1) process is below the
 * quantile of the probability, so correlation does not change the probability. */
struct emud_chance {
	__u64 probability; /* bound of a random u64; 0: never */
	__s64 below; /* quantile of the probability, Q8.24 */
	__u32 correlation; /* of the normal values; 0: none */
	__u32 innovation; /* sqrt(1 - correlation^2) */
};

/* The maximum number of bits that corrupt flips in a packet. */
#define EMUD_CORRUPT_BITS 32

/* The algorithm that drops or marks before the queue is full. */
enum emud_aqm {
	EMUD_AQM_NONE,
	EMUD_AQM_RED,
	EMUD_AQM_CODEL,
	EMUD_AQM_PIE,
	EMUD_AQM_ARED,
	EMUD_AQM_RIO,
	EMUD_AQM_PI,
	EMUD_AQM_REM,
	EMUD_AQMS, /* a power of two */
};

/* Floyd, Jacobson: "Random early detection gateways for congestion avoidance",
 * IEEE/ACM Transactions on Networking 1(4), 1993. Queue lengths in ns of the wire. */
struct emud_red {
	__u64 min_ns;
	__u64 max_ns;
	__u64 packet_ns; /* the wire time of a small packet */
	__u64 probability; /* at max_ns, times 2^32 */
	__u64 weight; /* of the newest length in the average, times 2^32 */
};

/* Floyd, Gummadi, Shenker: "Adaptive RED: an algorithm for increasing the robustness
 * of RED's active queue management", 2001, as ns-2 has it. With emud_queueing.red,
 * whose probability is the first. */
struct emud_ared {
	__u64 interval_ns; /* between two moves of the probability */
	__u64 alpha; /* added to it, times 2^32 */
	__u64 beta; /* what is left of it, times 2^32 */
};
#define EMUD_ARED_BOTTOM (0x100000000ULL / 100) /* of the probability */
#define EMUD_ARED_TOP (0x100000000ULL / 2)

/* Clark, Fang: "Explicit allocation of best-effort packet delivery service",
 * IEEE/ACM Transactions on Networking 6(4), 1998. With emud_queueing.red for all
 * packets that are not assured. */
struct emud_rio {
	struct emud_red assured;
	__u64 codes; /* packets of DSCP n are assured: bit n */
};

/* RFC 8289. */
struct emud_codel {
	__u64 target_ns;
	__u64 interval_ns;
	__u64 packet_ns; /* the wire time of a full packet */
};

/* Drop probabilities are times 2^EMUD_PIE_SHIFT. The two gains are times a
 * further 2^EMUD_PIE_GAIN_SHIFT and per ns, delays are below
 * 2^EMUD_PIE_DELAY_SHIFT ns: gains up to 10/s fit. */
#define EMUD_PIE_SHIFT 48
#define EMUD_PIE_GAIN_SHIFT 6
#define EMUD_PIE_DELAY_SHIFT 33

/* RFC 8033. */
struct emud_pie {
	__u64 target_ns;
	__u64 tupdate_ns;
	__u64 alpha;
	__u64 beta;
	__u64 packets_ns; /* the wire time of two packets of mean size */
};

/* Two gains a ns of the wire: times 2^(32 + shift), below 2^29. */
struct emud_gains {
	__s64 mult[2];
	__u32 shift;
	__u32 reserved; /* 0 */
};
/* Lengths are below 2^EMUD_LENGTH_SHIFT ns, so sums of two products fit. */
#define EMUD_LENGTH_SHIFT 33

/* Hollot, Misra, Towsley, Gong: "On designing improved controllers for AQM routers
 * supporting TCP flows", INFOCOM 2001. */
struct emud_pi {
	__u64 target_ns;
	__u64 tupdate_ns;
	__u64 packet_ns; /* the wire time of the packet that gains are of */
	struct emud_gains gains; /* a - b and b */
};

/* Athuraliya, Low, Li, Yin: "REM: active queue management", IEEE Network 15(3), 2001.
 * The price is times ln(phi). */
struct emud_rem {
	__u64 target_ns;
	__u64 tupdate_ns;
	__u64 packet_ns;
	struct emud_gains gains; /* gamma alpha ln(phi) and gamma ln(phi) */
};

/* Options of a queue besides rate and limits. */
struct emud_queueing {
	__u64 burst_ns; /* the wire's clock may lag behind by this */
	__u64 mark_ns; /* CE above this sojourn time; ~0: none */
	__u32 mpu; /* minimum length of a packet, including overhead */
	__u32 cell_size; /* payload of a cell; 0: no cells */
	__s32 cell_overhead; /* bytes of a cell besides the payload */
	__u32 cell_pad; /* the last cell is sent full */
	__u32 ecn; /* something may mark */
	__u32 aqm; /* enum emud_aqm */
	struct emud_red red;
	struct emud_codel codel;
	struct emud_pie pie;
	struct emud_ared ared;
	struct emud_rio rio;
	struct emud_pi pi;
	struct emud_rem rem;
};
_Static_assert(sizeof(struct emud_queueing) == 312, "shared with Rust");

/* What the rows of a timeline contain. */
enum emud_timeline_kind {
	EMUD_TIMELINE_NONE,
	EMUD_TIMELINE_FIGURES, /* delay, jitter, loss, other links; no rate */
	EMUD_TIMELINE_RATES, /* the same, and a rate in every row */
	EMUD_TIMELINE_OPPORTUNITIES, /* each carries EMUD_OPPORTUNITY bytes */
};
/* Mahimahi's: Netravali et al.: "Mahimahi: Accurate record-and-replay for HTTP",
 * USENIX ATC 2015. */
#define EMUD_OPPORTUNITY 1500

/* A link that changes with time: rows of emud_rows, and one more row that says
 * where they end. Bytes are times 2^frac. */
struct emud_timeline {
	__u64 epoch_ns; /* time of row 0; used in signed differences */
	__u64 period_ns; /* repeats; 0: the last row stays in force */
	__u64 sent; /* bytes of a period */
	__u64 content; /* hash of the rows, to skip writing the same rows again */
	__u64 id; /* a new one resets the count of opportunities */
	__u32 first; /* in emud_rows */
	__u32 count; /* without the end row */
	__u32 kind; /* enum emud_timeline_kind */
	__u32 frac; /* 1..EMUD_FRAC_MAX */
};
_Static_assert(sizeof(struct emud_timeline) == 56, "shared with Rust");
#define EMUD_FRAC_MAX 40
/* Conversion of ns to bytes: times 2^(frac + this). */
#define EMUD_BYTE_RATE_SHIFT 30

/* rate_mult of a row in which the wire is stopped. */
#define EMUD_STOPPED 0xffffffffffffffffULL
/* emud_row.number of a row that does not change the link. */
#define EMUD_SAME_LINK 0xffffffffU

/* The figures from one moment on. */
struct emud_row {
	__u64 at_ns; /* from the start of the period */
	__u64 rate_mult; /* as emud_link's; 0: no limit */
	__u64 sent; /* bytes from the start of the period until at_ns */
	__u64 byte_rate; /* bytes per ns, times 2^(frac + EMUD_BYTE_RATE_SHIFT) */
	__u64 delay_ns; /* as in emud_overlay, like the next two */
	__u64 loss;
	__u32 rate_shift;
	__u32 jitter;
	__u32 set; /* enum emud_set */
	__u32 number; /* of the link from here on */
};
_Static_assert(sizeof(struct emud_row) == 64, "shared with Rust");

/* Departures in slots (TDMA). */
struct emud_tdma {
	__u64 min_ns; /* minimum distance between slots */
	__u64 span_ns; /* width of the range of distances; 0: no slots */
	__u64 id; /* a new one restarts the process */
	__u64 wait_ns; /* longest wait for a slot; ~0: any */
	__u32 packets; /* of a slot; 0: any */
	__u32 bytes;
};
_Static_assert(sizeof(struct emud_tdma) == 40, "shared with Rust");

/* Packets of a background that arrive at equal distances. The first row of a period is at 0,
 * and the one after the last says where it ends. */
struct emud_stretch {
	__u64 at_ns; /* the first packet, from the start of the period */
	__u64 gap_ns; /* above 0 */
	__u64 count;
	__u64 backlog_ns; /* of the background alone when that packet arrives, and the burst */
};
_Static_assert(sizeof(struct emud_stretch) == 32, "shared with Rust");
#define EMUD_STRETCHES 8192 /* of a link */

/* How far a queue has taken in its background. */
struct emud_behind {
	__u64 until; /* ns: arrivals up to this time are in the queue's clock; 0: none */
	__u32 row; /* where the search starts */
	__u32 reserved; /* 0 */
};
_Static_assert(sizeof(struct emud_behind) == 16, "shared with Rust");

/* Traffic of sources that exist only in the queue. A period begins and ends with no
 * backlog. */
struct emud_background {
	__u64 epoch_ns; /* time of row 0; there is none before */
	__u64 period_ns; /* repeats */
	__u64 service_ns; /* of each packet on the wire */
	__u64 limit_ns; /* a packet that waits longer, and the burst, is dropped */
	__u64 packets; /* in a period */
	__u32 count; /* rows; 0: no background */
	__u32 reserved; /* 0 */
};
_Static_assert(sizeof(struct emud_background) == 48, "shared with Rust");

/* One direction of the link, as the classifier runs it. */
struct emud_link {
	__u64 seed; /* seed, link and direction, already mixed */
	__u64 rate_mult; /* ns per byte, times 2^rate_shift; 0: no rate */
	__u64 queue_wait_ns; /* longest wait before serialisation; ~0: any */
	__u64 queue_busy_ns; /* longest backlog including the packet; ~0: any */
	__u64 delay_ns; /* constant delay, instead of a table */
	__u64 coherence_ns; /* distance between two knots of the jitter */
	__u64 epoch_ns; /* time of knot 0, CLOCK_MONOTONIC */
	__u32 rate_shift;
	__u32 queue_packets; /* 1..EMUD_RING_LEN; 0: any */
	__s32 overhead; /* bytes a packet on the wire, may be negative */
	__u32 flags; /* enum emud_flags */
	__u32 release; /* enum emud_release */
	__u32 ifindex; /* redirect target: ifb or TAP, or 0 */

	/* delay */
	__u64 share; /* delayed if a random u64 is below */
	__u64 reorder; /* sent without delay if a random u64 is below */
	__u64 reorder_repeat; /* same as the previous decision if a random u64 is below */
	__u64 reorder_gap; /* at least gap - 1 delayed packets in between */
	__u32 correlation; /* of a flow's successive normal values, Q2.30 */
	__u32 innovation; /* sqrt(1 - correlation^2), Q2.30 */

	struct emud_chance loss; /* EMUD_LOSS_BERNOULLI */
	__u64 loss_param[EMUD_LOSS_PARAMS]; /* of the other models */
	__u64 loss_id; /* a new one restarts the model */
	struct emud_chance duplicate;
	struct emud_chance corrupt;
	__u32 loss_model; /* enum emud_loss */
	__u32 corrupt_bits; /* 1..EMUD_CORRUPT_BITS */
	__u32 corrupt_from; /* range of bytes from the start */
	__u32 corrupt_to; /* of the IP header; excluded */

	struct emud_queueing queueing;

	__u32 queue_bytes; /* longest backlog, source of queue_busy_ns; 0: any */
	__u32 bottleneck; /* number of the link that owns the queue */
	__u32 matrix_link; /* of link number 0: the base link of pairs */
	__u32 pair_packets; /* limits of a pair's queue, instead of the link's */
	__u32 pair_bytes;
	__u32 fq_shift; /* packets of one delay, to 2^this ns, are a flow to fq */
	__u32 service; /* number of the class where packets wait; 0: none */
	__u32 loss_run_max; /* maximum number of packets lost in a row; 0: any */
	__u32 delay_class; /* of delay_ns, in emud_counters.delay_hist */
	__u32 reserved; /* 0 */

	struct emud_timeline timeline;
	struct emud_tdma tdma;
	struct emud_background background;
};
_Static_assert(sizeof(struct emud_link) == 752, "shared with Rust");

/* Which figures replace those of the link. */
enum emud_set {
	EMUD_SET_RATE = 1 << 0,
	EMUD_SET_DELAY = 1 << 1,
	EMUD_SET_JITTER = 1 << 2,
	EMUD_SET_LOSS = 1 << 3,
	EMUD_SET_PAIR = 1 << 4, /* of a pair: the pair exists */
};
#define EMUD_JITTER_SHIFT 20

/* Figures of one packet that come from its pair of addresses or from a row of a
 * trace. */
struct emud_overlay {
	__u64 rate_mult; /* as emud_link's */
	__u64 delay_ns; /* mean; replaces the mean of the link's delays */
	__u64 loss; /* bound of a random u64; replaces every model */
	__u32 rate_shift;
	__u32 jitter; /* amplitude, times 2^EMUD_JITTER_SHIFT; at most 1 */
	__u32 set; /* enum emud_set */
	__u32 reserved; /* 0 */
};
_Static_assert(sizeof(struct emud_overlay) == 40, "shared with Rust");

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
#ifdef __bpf__
	struct bpf_spin_lock lock;
#else
	__u32 lock; /* always read as 0 */
#endif
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
#ifdef __bpf__
	struct bpf_spin_lock lock;
#else
	__u32 lock; /* always read as 0 */
#endif
	__u32 reserved; /* 0 */
	struct emud_instance way[EMUD_INSTANCE_WAYS];
};
_Static_assert(sizeof(struct emud_instances) == 72, "shared with Rust");

/* The layout of states and rings in their maps: those of plain links, one per
 * link and direction, then those of instances, then those of pairs. */
struct emud_layout {
	__u32 plain;
	__u32 instances; /* a power of two, or 0 */
	__u32 instance_rings; /* pieces of an instance's ring: a power of two, or 0 */
	__u32 pair_rings;
	__u32 spare_ring; /* the piece for queues without a limit in packets */
	__u32 learned; /* flows of control groups: a power of two, or 0 */
};

/* Classifier features that the links of an interface need. The loader sets them for
 * the links that it attaches, and loads another program before a change needs more
 * (src/datapath/stage/features.rs). */
enum emud_feature {
	/* Bits 0 to 7: 1 << enum emud_release */
	EMUD_FEATURE_MATCH = 1 << 8, /* rules, pairs of addresses */
	EMUD_FEATURE_TIMELINE = 1 << 9, /* traces, phases */
	EMUD_FEATURE_QUEUE = 1 << 10, /* a rate */
	EMUD_FEATURE_SIGNALS = 1 << 11, /* queue managers, congestion marks */
	EMUD_FEATURE_LOSS = 1 << 12,
	EMUD_FEATURE_LOSS_MODELS = 1 << 13, /* other than independent losses */
	EMUD_FEATURE_ALTER = 1 << 14, /* duplicate, corrupt */
	EMUD_FEATURE_JITTER = 1 << 15,
	EMUD_FEATURE_DELAYS =
		1 << 16, /* share, reorder, correlation, figures of pairs and rows */
	EMUD_FEATURE_SLOT = 1 << 17,
	EMUD_FEATURE_SHORT = 1 << 18, /* a link of EMUD_SHORT */
	EMUD_FEATURE_CGROUPS = 1 << 19, /* rules match control groups */
	EMUD_FEATURE_NAMES = 1 << 20, /* rules match names of DNS answers */
	EMUD_FEATURE_BACKGROUND = 1 << 21,
	EMUD_FEATURES = (1 << 22) - 1,
	/* The features that the built classifiers have besides an engine (build.rs). */
	EMUD_FEATURES_USUAL = EMUD_FEATURE_QUEUE | EMUD_FEATURE_LOSS |
			      EMUD_FEATURE_JITTER | EMUD_FEATURE_SHORT,
	EMUD_BY_FQ = 1 << EMUD_RELEASE_STAMP | 1 << EMUD_RELEASE_IFB |
		     1 << EMUD_RELEASE_MIRRED,
	EMUD_BY_HOLD = 1 << EMUD_RELEASE_HOLD,
	EMUD_BY_QDISC = 1 << EMUD_RELEASE_QDISC | 1 << EMUD_RELEASE_QDISC_IFB,
	/* Those that draw, which requires a packet's number in its flow. */
	EMUD_FEATURES_DRAWING = EMUD_FEATURE_TIMELINE | EMUD_FEATURE_SIGNALS |
				EMUD_FEATURE_LOSS | EMUD_FEATURE_LOSS_MODELS |
				EMUD_FEATURE_ALTER | EMUD_FEATURE_JITTER |
				EMUD_FEATURE_DELAYS,
};

/* Delay by standard normal value, absolute, in ns. */
struct emud_table {
	__u64 delay_ns[EMUD_TABLE_LEN];
};

/* The state of the queue manager; times are in ns. */
struct emud_aqm_state {
	__u32 aqm; /* owner of this state: a different one resets it */
	__s32 red_count; /* packets since the last drop, from -1 */
	__u64 red_average; /* length of the queue, times 2^16 */
	__u64 codel_first_above; /* 0: below the target */
	__u64 codel_drop_next;
	__u32 codel_count;
	__u32 codel_last_count;
	__u32 codel_dropping;
	__u32 codel_owes; /* drop_next moves on with the next packet above the target */
	__u64 next; /* PIE, PI and REM: update of the probability or the price */
	__u64 pie_probability; /* times 2^EMUD_PIE_SHIFT, as the next */
	__u64 pie_accumulated;
	__u64 pie_delay_old;
	__u64 pie_burst; /* no drop for this time */
	__u64 ared_probability; /* at max_ns, times 2^32 */
	__u64 ared_moved; /* when it did */
	__u64 pi_probability; /* times 2^32 */
	__u64 pi_before; /* length at the last sample */
	__u64 rem_price; /* times ln(phi) and 2^32 */
	__u64 rem_arrived; /* ns of the wire since the last change of the price */

	/* RIO: the rest of the ring, from the first packet that has not left yet as far
	 * as is known */
	__u32 rio_queued; /* packets */
	__s32 rio_count; /* red_count of assured packets */
	__u64 rio_average; /* red_average of assured packets */
	__u64 rio_backlog; /* of assured packets */
	__u64 rio_left; /* when the one before the first left the wire */
	__u64 rio_last; /* when the last one will */
};
_Static_assert(sizeof(struct emud_aqm_state) == 176, "shared with Rust");

/* The queue and the order of one direction; `emud set` keeps it. */
struct emud_state {
#ifdef __bpf__
	struct bpf_spin_lock lock;
#else
	__u32 lock; /* always read as 0 */
#endif
	__u32 ring_pos; /* packets admitted so far */
	__u64 busy_until; /* the wire is busy until, ns */
	__u64 busy_frac; /* and a fraction of a ns, times 2^rate_shift */
	__u64 last_departure; /* the latest departure so far, ns */

	__u64 loss_id; /* id of the model that owns loss_state */
	__u64 loss_state; /* state of its chain, or a count */
	__s64 loss_normal; /* of struct emud_chance; 0: not begun */
	__u64 loss_run; /* packets lost in a row so far */
	__s64 duplicate_normal;
	__s64 corrupt_normal;

	struct emud_aqm_state aqm;

	/* timeline: where the search starts, and the opportunity in use */
	__u32 row_arrival;
	__u32 row_sent;
	__u64 timeline_id;
	__u64 opportunity; /* from the epoch on, all rounds counted */
	__u64 opportunity_left; /* bytes */

	/* slots: the last one in use */
	__u64 tdma_id;
	__u64 tdma_number;
	__u64 tdma_at; /* ns */
	__u32 tdma_packets; /* in the slot so far */
	__u32 tdma_bytes;
};
_Static_assert(sizeof(struct emud_state) == 320, "shared with Rust");

/* Which generation is active, for both directions at once: bits of one integer. */
#define EMUD_LINKS_GENERATION 1
#define EMUD_PAIRS_GENERATION 2
/* The link in force needs no stage but a delay and independent losses: plain packets take
 * the short path. Shifted by the direction. */
#define EMUD_SHORT 4
/* A link in force damages packets and keeps their checksums, so those must be computed
 * before: a packet whose sender left that to the device passes the segmenter, too. Shifted
 * by the direction. */
#define EMUD_SUMS 16
/* Added at each change of links, so that a change and its reverse do not look like no change. */
#define EMUD_CHANGE 256
struct emud_control {
	__u32 abi; /* EMUD_ABI */
	__u32 generation; /* of links and rules, of pairs, EMUD_SHORT, EMUD_SUMS, and how many changes */
	__u32 ifindex; /* the device, for emud_tap */
	__u32 netns; /* inode number of its network namespace, for the monitor */
	__u32 segmenter[EMUD_DIRECTIONS]; /* veth end for super-packets; 0: none */
	__u64 ends_at; /* ns: packets that come then or later pass unchanged; 0: it does not end by itself */
	__u32 features; /* of the loaded classifier, enum emud_feature */
	__u32 next; /* the generation from turns_at on */
	__u64 turns_at; /* ns; 0: no change is ahead */
};
_Static_assert(sizeof(struct emud_control) == 48, "shared with Rust");

struct emud_counters {
	__u64 packets; /* seen, wire packets */
	__u64 bytes; /* seen, wire bytes without overhead */
	__u64 lost; /* by the loss stage */
	__u64 queue_dropped; /* the queue was full */
	__u64 reordered; /* departs before a packet that arrived earlier */
	__u64 clamped; /* held back to keep the order */
	__u64 super_packets; /* GSO or GRO packets, which met one fate each */
	__u64 flows_forgotten; /* flows evicted from the flow table */
	__u64 undelayed; /* not in the delayed share, or sent early by reorder */
	__u64 passed[EMUD_PASS_REASONS];
	__u64 delay_hist[EMUD_HIST_LEN]; /* departure - arrival, emud_delay_class() */
	__u64 down; /* lost because the link was down */
	__u64 duplicated; /* copies made */
	__u64 corrupted;
	__u64 unaltered; /* copies or corruptions that failed */
	__u64 aqm_dropped[EMUD_AQMS]; /* by each manager, with room in the queue */
	__u64 marked; /* CE by the queue or instead of a loss, including packets that had it */
	__u64 instances_forgotten; /* instances evicted for a new one */
	__u64 sent_bytes; /* wire bytes without overhead of packets with a departure time */
	__u64 delay_ns; /* sum of departure - arrival over wire packets, modulo 2^64 */
	__u64 classed; /* in delay_hist, and not in sent_bytes: they wait in a class first */

	/* of link number 0, if rules match control groups */
	__u64 learned_forgotten; /* flows of control groups evicted for a new one */
	__u64 unattributed; /* neither a socket nor a learned flow */

	/* of link number 0: passed without emulation, counted nowhere else (emud_scratch()) */
	__u64 preempting;
	__u64 preempting_bytes; /* without overhead */
};

/* Counts of a link's packets that waited in a class: known only when its server has
 * sent them, or the class has dropped them. */
struct emud_served {
	__u64 sent_packets; /* and not lost */
	__u64 sent_bytes; /* without overhead */
	__u64 dropped; /* by the class */
	__u64 lost;
	__u64 duplicated;
	__u64 corrupted;
};

/* The holder's side of a direction: only the holder writes it. */
struct emud_holder {
	__u64 lease_ns; /* frames may be sent to the holder until then */
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
};
#define EMUD_HOLD_MAGIC 0x656d7564
/* Corrupted: a checksum left to the device must be computed, or a receiver on
 * this host would treat it as valid. */
#define EMUD_HOLD_MAGIC_SUM 0x656d7573
/* With either: its sender holds it back for more than EMUD_HELD_USUAL_NS. */
#define EMUD_HOLD_BY_SENDER (1U << 31)
_Static_assert(sizeof(struct emud_hold_hdr) == 24, "on the wire to the holder");

/* The state that detach must restore, and the profile: opaque bytes, written by
 * attach, in pieces: memory by their length. A profile carries its tables of measured
 * delays in its text. */
#define EMUD_PIECES 511 /* of each half of emud_saved: one is in force, one is written */
#define EMUD_PIECE_LEN 2036
struct emud_piece {
	/* Of key 0 only, which says which pieces are in force: keys `first`, `first` + 1, ... */
	__u32 first; /* 1 or 1 + EMUD_PIECES */
	__u32 len; /* bytes in all of them */
	__u32 writes; /* so far: a reader starts again if it has changed meanwhile */
	__u8 bytes[EMUD_PIECE_LEN];
};

#endif
