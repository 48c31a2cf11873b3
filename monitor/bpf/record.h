/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The types that the recording programs share with the Rust side, for which
 * bindgen generates them. The file of a recording holds the same records,
 * little endian (docs/record-format.md): a number, once assigned, never
 * changes. Times are ns of CLOCK_MONOTONIC.
 */
#ifndef EMUD_RECORD_H
#define EMUD_RECORD_H

#include <linux/types.h>

enum emud_rec_kind {
	EMUD_REC_CPU_BUSY = 1,
	EMUD_REC_PACKET = 2,
	EMUD_REC_PAGE_IN = 3,
	EMUD_REC_PAGE_OUT = 4,
	EMUD_REC_DISK_BUSY = 5,
	EMUD_REC_NETDEV = 6, /* the name of a network device */
	EMUD_REC_DISK = 7, /* the name of a block device */
	EMUD_REC_LOST = 8, /* only written by the reader of the ring, */
	EMUD_REC_END = 9, /* like this one, before the trailer */
	EMUD_REC_KINDS,
};

/* Flags of a busy interval. */
#define EMUD_REC_OPEN_BEGIN 1 /* it may have begun earlier than recorded */
#define EMUD_REC_OPEN_END 2 /* it had not ended at the end of the recording */
/* Flags of a packet: the kind of its device. */
#define EMUD_REC_VIRTUAL 1 /* has rtnl_link_ops: veth, bridge, tun, ... */
#define EMUD_REC_LOOPBACK 2

#define EMUD_REC_NAME_LEN 16

struct emud_rec {
	__u8 kind;
	__u8 flags;
	__u16 cpu;
	__u32 id; /* ifindex, or dev_t of the whole disk */
	union {
		struct {
			__u64 time; /* end of an interval */
			__u64 value; /* start of the interval, or bytes, or pages */
		};
		char name[EMUD_REC_NAME_LEN];
	};
	__u32 netns; /* inode number */
	__u32 extra;
};
_Static_assert(sizeof(struct emud_rec) == 32, "a record of the file");

enum emud_rec_state {
	EMUD_REC_UNKNOWN,
	EMUD_REC_IDLE,
	EMUD_REC_BUSY,
};

struct emud_rec_cpu {
	__u64 since; /* of the current busy interval */
	__u32 state; /* enum emud_rec_state */
	__u32 flags; /* EMUD_REC_OPEN_BEGIN */
};

struct emud_rec_disk {
	__s64 inflight;
	__u64 since; /* never empty since */
};

struct emud_rec_netdev {
	__u32 netns;
	__u32 ifindex;
};

struct emud_rec_counters {
	__u64 lost[EMUD_REC_KINDS]; /* by kind: the ring was full */
	__u64 disks_unknown; /* requests of devices beyond the table */
	__u64 unpaired; /* requests that ended without a start */
};

#endif
