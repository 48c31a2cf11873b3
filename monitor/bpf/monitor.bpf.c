// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The contention monitor inside the kernel.
 *
 * Theory of operation
 *
 * Programs on tracepoints keep, per criterion, how long a thing has been busy
 * or how much passed in a sliding window, and judge it there and then: nothing
 * is sampled, and user space learns of alarms only. One header a criterion:
 *
 *	cpu network memory disk emulator	-> (group: whose) -> alarm
 *
 * What has no event of its own (a task that never yields, a device that is
 * stuck, a rate that has fallen) is seen by the tick, a timer on every CPU.
 *
 * Programs of this object are alternatives of one another: the loader tries
 * the hooks of a criterion in order and keeps the first that holds. Each is
 * verified alone, so a structure that one of them needs and a kernel lacks
 * costs that one only.
 */
#include "maps.h"
#include "group.h"
#include "alarm.h"
#include "cpu.h"
#include "network.h"
#include "memory.h"
#include "disk.h"
#include "emulator.h"

/* Arguments of a tracepoint, as its prototype has them. */
typedef unsigned long long emud_args;

SEC("tp_btf/sched_switch")
int emud_switch(emud_args *args)
{
	emud_ran(EMUD_RAN_SWITCH);
	emud_cpu_switch((void *)args[1], (void *)args[2]);
	return 0;
}

SEC("tp_btf/cpu_idle")
int emud_idle(emud_args *args)
{
	emud_ran(EMUD_RAN_IDLE);
	emud_cpu_idle_state(args[0]);
	return 0;
}

/* One CPU ticks more often, for the sake of devices that are stuck. */
static __always_inline void emud_tick_now(void)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct emud_tx *tx = emud_this_tx(cpu);
	__u64 now = bpf_ktime_get_ns();

	emud_disks_tick(now);
	if (!tx || now - tx->ticked < emud_config.tick_ns - emud_config.tick_ns / 8)
		return;
	tx->ticked = now;
	emud_cpu_tick(cpu, now);
	emud_windows_tick(now);
	emud_fault_tick(EMUD_LATE, now);
	emud_fault_tick(EMUD_DROPPED, now);
}

SEC("perf_event")
int emud_tick(void *ctx)
{
	emud_ran(EMUD_RAN_TICK);
	emud_tick_now();
	return 0;
}

/* Where a timer is refused: on a busy CPU this comes with every scheduler tick,
 * and with every switch besides, of which one a jiffy is enough. */
SEC("tp_btf/sched_stat_runtime")
int emud_tick_stat(emud_args *args)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct emud_tx *tx = emud_this_tx(cpu);
	__u64 jiffies = bpf_jiffies64();

	emud_ran(EMUD_RAN_TICK_STAT);
	if (!tx || tx->jiffies == jiffies)
		return 0;
	tx->jiffies = jiffies;
	emud_tick_now();
	return 0;
}

SEC("tp_btf/net_dev_xmit")
int emud_xmit(emud_args *args)
{
	const struct net_device *dev = (void *)args[2];
	__u32 cpu = bpf_get_smp_processor_id();
	struct emud_tx *tx = emud_this_tx(cpu);

	emud_ran(EMUD_RAN_XMIT);
	/* Unless the driver did not take it. */
	if (tx && !(int)args[1])
		emud_transmitted(tx, cpu, dev, args[3]);
	return 0;
}

SEC("tp_btf/net_dev_start_xmit")
int emud_start_xmit(emud_args *args)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct emud_tx *tx = emud_this_tx(cpu);

	emud_ran(EMUD_RAN_START_XMIT);
	if (tx)
		emud_offered(tx, cpu, (void *)args[0], (void *)args[1]);
	return 0;
}

SEC("tp_btf/mm_vmscan_write_folio")
int emud_page_out(emud_args *args)
{
	const void *folio = (void *)args[0];

	emud_ran(EMUD_RAN_PAGE_OUT);
	if (emud_swap_backed(folio))
		emud_paged(EMUD_WINDOW_PAGE_OUT, emud_folio_pages(folio),
			   EMUD_HOOK_PAGE_OUT);
	return 0;
}

SEC("fentry/swap_read_folio")
int emud_page_in(emud_args *args)
{
	emud_ran(EMUD_RAN_PAGE_IN);
	emud_paged(EMUD_WINDOW_PAGE_IN, emud_folio_pages((void *)args[0]),
		   EMUD_HOOK_PAGE_IN);
	return 0;
}

/* Until Linux 6.7. */
SEC("fentry/swap_readpage")
int emud_page_in_old(emud_args *args)
{
	emud_ran(EMUD_RAN_PAGE_IN_OLD);
	emud_paged(EMUD_WINDOW_PAGE_IN, emud_folio_pages((void *)args[0]),
		   EMUD_HOOK_PAGE_IN);
	return 0;
}

SEC("kprobe/swap_read_folio")
int emud_page_in_probe(void *ctx)
{
	emud_ran(EMUD_RAN_PAGE_IN_PROBE);
	emud_paged(EMUD_WINDOW_PAGE_IN, 1, EMUD_HOOK_PAGE_IN);
	return 0;
}

SEC("kprobe/swap_readpage")
int emud_page_in_probe_old(void *ctx)
{
	emud_ran(EMUD_RAN_PAGE_IN_PROBE_OLD);
	emud_paged(EMUD_WINDOW_PAGE_IN, 1, EMUD_HOOK_PAGE_IN);
	return 0;
}

SEC("tp_btf/block_bio_queue")
int emud_page_in_bio(emud_args *args)
{
	emud_ran(EMUD_RAN_PAGE_IN_BIO);
	emud_swap_read((void *)args[0]);
	return 0;
}

SEC("perf_event")
int emud_page_in_fault(void *ctx)
{
	emud_ran(EMUD_RAN_PAGE_IN_FAULT);
	emud_paged(EMUD_WINDOW_PAGE_IN, 1, EMUD_HOOK_PAGE_IN);
	return 0;
}

static __always_inline int emud_request_start(const struct request *rq)
{
	const struct gendisk *disk = emud_request_disk(rq);

	if (disk)
		emud_disk_start(disk, rq->bio, rq->__data_len, EMUD_HOOK_DISK_START);
	return 0;
}

static __always_inline int emud_request_end(const struct request *rq)
{
	const struct gendisk *disk = emud_request_disk(rq);

	if (disk)
		emud_disk_end(disk, EMUD_HOOK_DISK_END);
	return 0;
}

SEC("tp_btf/block_io_start")
int emud_io_start(emud_args *args)
{
	emud_ran(EMUD_RAN_IO_START);
	return emud_request_start((void *)args[0]);
}

SEC("tp_btf/block_io_done")
int emud_io_done(emud_args *args)
{
	emud_ran(EMUD_RAN_IO_DONE);
	return emud_request_end((void *)args[0]);
}

/* A request that became part of another one before it was issued: it has begun
 * and will not complete. */
SEC("tp_btf/block_rq_merge")
int emud_io_merge(emud_args *args)
{
	emud_ran(EMUD_RAN_IO_MERGE);
	return emud_request_end((void *)args[0]);
}

/* Until Linux 6.4. */
SEC("tp_btf/block_rq_issue")
int emud_rq_issue(emud_args *args)
{
	emud_ran(EMUD_RAN_RQ_ISSUE);
	return emud_request_start((void *)args[0]);
}

SEC("tp_btf/block_rq_requeue")
int emud_rq_requeue(emud_args *args)
{
	emud_ran(EMUD_RAN_RQ_REQUEUE);
	return emud_request_end((void *)args[0]);
}

SEC("tp_btf/block_rq_complete")
int emud_rq_complete(emud_args *args)
{
	const struct request *rq = (void *)args[0];

	emud_ran(EMUD_RAN_RQ_COMPLETE);
	/* It may complete in parts. */
	return (__u32)args[2] >= rq->__data_len ? emud_request_end(rq) : 0;
}

SEC("tp_btf/block_bio_queue")
int emud_bio_queue(emud_args *args)
{
	const struct bio *bio = (void *)args[0];
	const struct gendisk *disk = emud_bio_disk(bio);

	emud_ran(EMUD_RAN_BIO_QUEUE);
	if (disk)
		emud_disk_start(disk, bio, bio->bi_iter.bi_size, EMUD_HOOK_BIO_START);
	return 0;
}

SEC("tp_btf/block_bio_complete")
int emud_bio_complete(emud_args *args)
{
	const struct gendisk *disk = emud_bio_disk((void *)args[1]);

	emud_ran(EMUD_RAN_BIO_COMPLETE);
	if (disk)
		emud_disk_end(disk, EMUD_HOOK_BIO_END);
	return 0;
}

SEC("tp_btf/net_dev_start_xmit")
int emud_late(emud_args *args)
{
	emud_ran(EMUD_RAN_LATE);
	emud_check_late((void *)args[0], (void *)args[1]);
	return 0;
}

SEC("tp_btf/kfree_skb")
int emud_drop(emud_args *args)
{
	emud_ran(EMUD_RAN_DROP);
	emud_check_drop((void *)args[0], args[2]);
	return 0;
}

/* What the mere call of a program costs. */
SEC("raw_tp/sched_switch")
int emud_empty(void *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
