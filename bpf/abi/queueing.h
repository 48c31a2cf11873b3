/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A queue besides its rate and limits: the algorithm that drops or marks.
 */
#ifndef EMUD_ABI_QUEUEING_H
#define EMUD_ABI_QUEUEING_H

#include <linux/types.h>

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

#endif
