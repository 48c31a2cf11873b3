/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts of the kernel's structures that the recording programs read. The
 * loader moves each access to where the running kernel has the member (CO-RE).
 */
#ifndef EMUD_RECORD_CORE_H
#define EMUD_RECORD_CORE_H

#include <linux/types.h>

#define PF_IDLE 0x00000002 /* include/linux/sched.h: an idle task */
#define IFF_LOOPBACK 0x8

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct {
	unsigned int flags;
};

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct rtnl_link_ops;

struct net_device {
	int ifindex;
	unsigned int flags;
	possible_net_t nd_net;
	const struct rtnl_link_ops *rtnl_link_ops;
	char name[16];
};

struct block_device_operations {
	void (*submit_bio)(void);
};

struct gendisk {
	int major;
	int first_minor;
	char disk_name[32];
	const struct block_device_operations *fops;
};

struct block_device {
	struct gendisk *bd_disk;
	__u32 bd_dev;
};

struct request_queue {
	struct gendisk *disk;
};

struct bvec_iter {
	unsigned int bi_size;
};

struct bio {
	struct block_device *bi_bdev;
	unsigned int bi_opf;
	struct bvec_iter bi_iter;
};

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
	unsigned int __data_len;
};

struct folio {
	unsigned long _flags_1;
};

/* Until Linux 6.5. */
struct folio___order {
	unsigned char _folio_order;
};

/* Values differ from kernel to kernel: read by bpf_core_enum_value(). */
enum pageflags { PG_head, PG_swapbacked };

#pragma clang attribute pop

#endif
