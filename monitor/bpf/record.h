/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the recording programs share with their Rust side, which gets it through
 * bindgen. A record is also what a recording's file holds, little endian
 * (docs/record-format.md): numbers once given stay. Times are ns of
 * CLOCK_MONOTONIC.
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
	EMUD_REC_LOST = 8, /* written by the reader of the ring only, */
	EMUD_REC_END = 9, /* so is this, ahead of the trailer */
	EMUD_REC_KINDS,
};

/* Of a busy interval. */
#define EMUD_REC_OPEN_BEGIN 1 /* it may have begun before what is said */
#define EMUD_REC_OPEN_END 2 /* it had not ended when the recording did */
/* Of a packet: what its device is. */
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
			__u64 time; /* of an interval: its end */
			__u64 value; /* begin of the interval, bytes, pages */
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
	__u64 lost[EMUD_REC_KINDS]; /* by kind: they found the ring full */
	__u64 disks_unknown; /* requests of devices that found no room */
	__u64 unpaired; /* requests that ended and had not begun */
};

#endif
