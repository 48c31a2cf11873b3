/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * block: which requests and bios belong to a device's queue.
 */
#ifndef EMUD_MONITOR_BLOCK_H
#define EMUD_MONITOR_BLOCK_H

#include <bpf/bpf_core_read.h>
#include "core.h"

#define EMUD_REQ_OP_MASK 0xff
#define EMUD_REQ_OP_READ 0
#define EMUD_REQ_OP_WRITE 1
#define EMUD_REQ_OP_ZONE_APPEND 7
#define EMUD_REQ_OP_DRV_IN 34
#define EMUD_REQ_OP_DRV_OUT 35

/* The disk of a request; NULL for the driver's internal commands (SMART,
 * ioctl), whose start is reported but not their end. */
static __always_inline const struct gendisk *emud_request_disk(const struct request *rq)
{
	__u32 op = rq->cmd_flags & EMUD_REQ_OP_MASK;

	return op == EMUD_REQ_OP_DRV_IN || op == EMUD_REQ_OP_DRV_OUT ? 0 : rq->q->disk;
}

/* RQF_FLUSH_SEQ, which is different in older kernels: set at load. */
const volatile __u64 emud_flush_seq = 1 << 1;

/* A write with a flush ends for block_io_done with its data and again with the
 * whole sequence, which has left this state; the flushes between, requests
 * without a start, never leave it. */
static __always_inline int emud_in_flush(const struct request *rq)
{
	return rq->rq_flags & emud_flush_seq;
}

/* block_rq_complete: not a part of a request, nor the end of such a sequence,
 * which is not issued and has no bytes left. */
static __always_inline int emud_is_complete(const struct request *rq, __u32 bytes)
{
	__u32 op = rq->cmd_flags & EMUD_REQ_OP_MASK;

	if (!bytes && (op == EMUD_REQ_OP_WRITE || op == EMUD_REQ_OP_ZONE_APPEND))
		return 0;
	return bytes >= rq->__data_len;
}

/* "nvme" and "bcache", as the first bytes of a name are read. */
#define EMUD_NVME 0x656d766eULL
#define EMUD_BCACHE 0x656863616362ULL

/* The head of several paths (NVMe) and a cache (bcache) pass a bio on to another
 * device, and it ends there: theirs would pend without end. */
static __always_inline int emud_passes_on(const struct gendisk *disk)
{
	__u64 name = *(const __u64 *)&disk->disk_name[0];

	return (name & 0xffffffff) == EMUD_NVME || (name & 0xffffffffffff) == EMUD_BCACHE;
}

/* The disk of a bio whose driver takes bios (zram, md, dm) and has no requests
 * to count. NULL for all other bios. */
static __always_inline const struct gendisk *emud_bio_disk(const struct bio *bio)
{
	const struct gendisk *disk = bio->bi_bdev->bd_disk;

	return disk->fops->submit_bio && !emud_passes_on(disk) ? disk : 0;
}

/* Whether what is at this address still pends on the disk. The memory of a request
 * that has ended belongs to its queue, is idle and has no bio until the next one; one
 * that waits in the queue has a bio, and a flush is not idle. A bio is released from
 * its cgroup when it ends; a kernel without those does not show it. */
static __always_inline int emud_pends(__u64 address, int is_bio, __u64 disk)
{
	const struct request *rq = (void *)address;
	const struct bio *bio = (void *)address;

	if (!is_bio)
		return (__u64)BPF_CORE_READ(rq, q, disk) == disk &&
		       (BPF_CORE_READ(rq, bio) || BPF_CORE_READ(rq, state) != MQ_RQ_IDLE);
	if (!bpf_core_field_exists(bio->bi_blkg))
		return 1;
	return (__u64)BPF_CORE_READ(bio, bi_bdev, bd_disk) == disk &&
	       BPF_CORE_READ(bio, bi_blkg);
}

#endif
