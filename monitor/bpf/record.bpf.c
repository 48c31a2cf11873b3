// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Records what the criteria judge, so that thresholds can be tried on it later
 * (emud monitor calibrate).
 *
 * Every program turns one event of the kernel into one record of the ring
 * buffer. A busy interval is recorded when it ends; intervals that are still
 * open are read from emud_rec_cpus and emud_rec_disks when the recording stops.
 * The ring's reader polls: no program wakes a task, so the recording adds no
 * switch at an event. Nothing is lost silently: a record that finds the ring
 * full is counted by kind.
 *
 * There is one program for each hook that a kernel may have; user space takes
 * those that load and attach.
 *
 * Longer than 400 lines: a program for each hook that a kernel may have.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "record.h"
#include "block.h"
#include "core.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24); /* set again at load */
} emud_rec_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct emud_rec_counters);
} emud_rec_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct emud_rec_cpu);
} emud_rec_cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32); /* dev_t */
	__type(value, struct emud_rec_disk);
} emud_rec_disks SEC(".maps");

/* The device of each request and bio that has started and not ended. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u64); /* address */
	__type(value, __u32); /* dev_t */
} emud_rec_pending SEC(".maps");

/* Devices whose name is in the file. A device that was evicted is named again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct emud_rec_netdev);
	__type(value, __u8);
} emud_rec_netdevs SEC(".maps");

/* Swap partitions and disks, by dev_t: filled from /proc/swaps. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u8);
} emud_rec_swaps SEC(".maps");

/* Set at load. */
volatile const __u32 emud_rec_page_shift = 12;

static const __u32 zero;

static __always_inline struct emud_rec_counters *emud_rec_counters(void)
{
	return bpf_map_lookup_elem(&emud_rec_counts, &zero);
}

/* Returns whether the ring had room. */
static __always_inline int emud_rec_write(struct emud_rec *r)
{
	struct emud_rec_counters *c;

	r->cpu = bpf_get_smp_processor_id();
	if (!bpf_ringbuf_output(&emud_rec_ring, r, sizeof(*r), BPF_RB_NO_WAKEUP))
		return 1;
	c = emud_rec_counters();
	if (c && r->kind < EMUD_REC_KINDS)
		c->lost[r->kind]++;
	return 0;
}

static __always_inline void emud_rec_interval(__u8 kind, __u8 flags, __u32 id,
					      __u64 begin, __u64 end)
{
	struct emud_rec r = {
		.kind = kind, .flags = flags, .id = id, .time = end, .value = begin};

	emud_rec_write(&r);
}

/* CPU */

/* The kernel does not report every switch (emud_cpu_untold_end()): a CPU that leaves idle
 * was idle, and when it became that is not known. */
static __always_inline void emud_rec_cpu_busy(__u32 flags)
{
	struct emud_rec_cpu *c = bpf_map_lookup_elem(&emud_rec_cpus, &zero);

	if (!c || (c->state == EMUD_REC_BUSY && flags & EMUD_REC_OPEN_BEGIN))
		return;
	c->since = bpf_ktime_get_ns();
	c->flags = flags;
	c->state = EMUD_REC_BUSY;
}

static __always_inline void emud_rec_cpu_idle(void)
{
	struct emud_rec_cpu *c = bpf_map_lookup_elem(&emud_rec_cpus, &zero);

	if (!c)
		return;
	if (c->state == EMUD_REC_BUSY)
		emud_rec_interval(EMUD_REC_CPU_BUSY, c->flags, 0, c->since,
				  bpf_ktime_get_ns());
	c->state = EMUD_REC_IDLE;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(emud_rec_switch, bool preempt, struct task_struct *prev,
	     struct task_struct *next)
{
	if (next->flags & PF_IDLE)
		emud_rec_cpu_idle();
	else
		emud_rec_cpu_busy(prev->flags & PF_IDLE ? 0 : EMUD_REC_OPEN_BEGIN);
	return 0;
}

SEC("tp_btf/cpu_idle")
int BPF_PROG(emud_rec_idle, unsigned int state)
{
	if (state == (unsigned int)-1) /* PWR_EVENT_EXIT */
		emud_rec_cpu_busy(0);
	else
		emud_rec_cpu_idle();
	return 0;
}

/* The only hook for a CPU that was busy before the recording and never switches
 * or idles; once a tick. */
SEC("tp_btf/sched_stat_runtime")
int BPF_PROG(emud_rec_runtime)
{
	struct emud_rec_cpu *c = bpf_map_lookup_elem(&emud_rec_cpus, &zero);

	if (!c || c->state != EMUD_REC_UNKNOWN)
		return 0;
	/* The time may be charged from another CPU, which may be idle. */
	if (!(bpf_get_current_task_btf()->flags & PF_IDLE))
		emud_rec_cpu_busy(EMUD_REC_OPEN_BEGIN);
	return 0;
}

/* Network */

static __always_inline void emud_rec_netdev_name(const struct net_device *dev,
						 struct emud_rec_netdev *key)
{
	struct emud_rec r = {
		.kind = EMUD_REC_NETDEV, .id = key->ifindex, .netns = key->netns};
	__u8 told = 1;

	bpf_probe_read_kernel(r.name, sizeof(r.name), dev->name);
	if (emud_rec_write(&r))
		bpf_map_update_elem(&emud_rec_netdevs, key, &told, BPF_ANY);
}

SEC("tp_btf/net_dev_xmit")
int BPF_PROG(emud_rec_xmit, void *skb, int rc, struct net_device *dev, unsigned int len)
{
	struct emud_rec r = {.kind = EMUD_REC_PACKET, .value = len};
	struct emud_rec_netdev key;

	if (rc) /* NETDEV_TX_OK is 0 */
		return 0;
	r.time = bpf_ktime_get_ns();
	key.ifindex = r.id = dev->ifindex;
	key.netns = r.netns = dev->nd_net.net->ns.inum;
	if (dev->rtnl_link_ops)
		r.flags |= EMUD_REC_VIRTUAL;
	if (dev->flags & IFF_LOOPBACK)
		r.flags |= EMUD_REC_LOOPBACK;
	if (!bpf_map_lookup_elem(&emud_rec_netdevs, &key))
		emud_rec_netdev_name(dev, &key);
	emud_rec_write(&r);
	return 0;
}

/* Memory */

static __always_inline void emud_rec_pages(__u8 kind, __u64 pages)
{
	struct emud_rec r = {.kind = kind, .time = bpf_ktime_get_ns(), .value = pages};

	emud_rec_write(&r);
}

/* The flags are the first member of a folio, whatever the name of their type. */
static __always_inline unsigned long emud_rec_folio_flags(const struct folio *folio)
{
	return *(const unsigned long *)folio;
}

static __always_inline __u64 emud_rec_folio_pages(const struct folio *folio)
{
	const struct folio___order *old = (const void *)folio;
	unsigned int order;

	if (!(emud_rec_folio_flags(folio) &
	      1UL << bpf_core_enum_value(enum pageflags, PG_head)))
		return 1;
	if (bpf_core_field_exists(old->_folio_order))
		order = old->_folio_order;
	else
		order = folio->_flags_1 & 0xff;
	return 1ULL << (order & 31);
}

SEC("tp_btf/mm_vmscan_write_folio")
int BPF_PROG(emud_rec_write_folio, struct folio *folio)
{
	/* Dirty pages of files are written by reclaim too. */
	if (emud_rec_folio_flags(folio) &
	    1UL << bpf_core_enum_value(enum pageflags, PG_swapbacked))
		emud_rec_pages(EMUD_REC_PAGE_OUT, emud_rec_folio_pages(folio));
	return 0;
}

/* Linux 6.8 and later. */
SEC("fentry/swap_read_folio")
int BPF_PROG(emud_rec_swap_read_folio, struct folio *folio)
{
	emud_rec_pages(EMUD_REC_PAGE_IN, emud_rec_folio_pages(folio));
	return 0;
}

/* Linux 6.1 reads page by page. */
SEC("fentry/swap_readpage")
int BPF_PROG(emud_rec_swap_readpage)
{
	emud_rec_pages(EMUD_REC_PAGE_IN, 1);
	return 0;
}

static __always_inline void emud_rec_swap_bio(const struct bio *bio, __u32 op, __u8 kind)
{
	__u32 dev = bio->bi_bdev->bd_dev;

	if ((bio->bi_opf & EMUD_REQ_OP_MASK) != op ||
	    !bpf_map_lookup_elem(&emud_rec_swaps, &dev))
		return;
	emud_rec_pages(kind, bio->bi_iter.bi_size >> emud_rec_page_shift);
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(emud_rec_swap_in_bio, struct bio *bio)
{
	emud_rec_swap_bio(bio, EMUD_REQ_OP_READ, EMUD_REC_PAGE_IN);
	return 0;
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(emud_rec_swap_out_bio, struct bio *bio)
{
	emud_rec_swap_bio(bio, EMUD_REQ_OP_WRITE, EMUD_REC_PAGE_OUT);
	return 0;
}

/* Disk */

static __always_inline void emud_rec_disk_name(const struct gendisk *disk, __u32 dev)
{
	struct emud_rec r = {.kind = EMUD_REC_DISK, .id = dev};

	bpf_probe_read_kernel(r.name, sizeof(r.name), disk->disk_name);
	emud_rec_write(&r);
}

static __always_inline __u32 emud_rec_dev(const struct gendisk *disk)
{
	return (__u32)disk->major << 20 | (__u32)disk->first_minor;
}

static __always_inline struct emud_rec_disk *emud_rec_disk(const struct gendisk *disk)
{
	struct emud_rec_disk empty = {}, *d;
	struct emud_rec_counters *c;
	__u32 dev = emud_rec_dev(disk);

	d = bpf_map_lookup_elem(&emud_rec_disks, &dev);
	if (d)
		return d;
	if (!bpf_map_update_elem(&emud_rec_disks, &dev, &empty, BPF_NOEXIST))
		emud_rec_disk_name(disk, dev);
	d = bpf_map_lookup_elem(&emud_rec_disks, &dev);
	c = emud_rec_counters();
	if (!d && c)
		c->disks_unknown++;
	return d;
}

static __always_inline void emud_rec_disk_start(const struct gendisk *disk,
						const void *what)
{
	struct emud_rec_disk *d = emud_rec_disk(disk);
	struct emud_rec_counters *c;
	__u64 address = (__u64)what;
	__u32 dev = emud_rec_dev(disk);

	if (!d)
		return;
	if (!bpf_map_update_elem(&emud_rec_pending, &address, &dev, BPF_NOEXIST)) {
		if (__sync_fetch_and_add(&d->inflight, 1) <= 0)
			d->since = bpf_ktime_get_ns();
	} else if (bpf_map_lookup_elem(&emud_rec_pending, &address)) {
		/* The kernel did not report its end: the device may have been empty. */
		if (d->inflight == 1)
			d->since = bpf_ktime_get_ns();
	} else {
		c = emud_rec_counters();
		if (c)
			c->disks_unknown++;
	}
}

/* No lock: while this request counts, no CPU finds the device empty, so `since`
 * does not change. It has to be read before the request is removed. */
static __always_inline void emud_rec_disk_end(const void *what)
{
	__u64 address = (__u64)what;
	const __u32 *pending = bpf_map_lookup_elem(&emud_rec_pending, &address);
	struct emud_rec_counters *c;
	struct emud_rec_disk *d;
	__u64 since;
	__u32 dev;

	/* From before the recording, or a part of a bio. */
	if (!pending) {
		c = emud_rec_counters();
		if (c)
			c->unpaired++;
		return;
	}
	dev = *pending;
	d = bpf_map_lookup_elem(&emud_rec_disks, &dev);
	if (!d || bpf_map_delete_elem(&emud_rec_pending, &address))
		return;
	since = *(volatile __u64 *)&d->since;
	if (__sync_fetch_and_add(&d->inflight, -1) == 1)
		emud_rec_interval(EMUD_REC_DISK_BUSY, 0, dev, since, bpf_ktime_get_ns());
}

#define EMUD_REC_REQUEST(hook, name, action)                        \
	SEC("tp_btf/" #hook)                                        \
	int BPF_PROG(name, struct request *rq)                      \
	{                                                           \
		const struct gendisk *disk = emud_request_disk(rq); \
                                                                    \
		if (disk)                                           \
			action;                                     \
		return 0;                                           \
	}

/* Linux 6.5 and later: from queueing to completion. A merged request never
 * completes. */
EMUD_REC_REQUEST(block_io_start, emud_rec_io_start, emud_rec_disk_start(disk, rq))
EMUD_REC_REQUEST(block_rq_merge, emud_rec_rq_merge, emud_rec_disk_end(rq))
EMUD_REC_REQUEST(block_io_done, emud_rec_io_done,
		 emud_in_flush(rq) ? (void)0 : emud_rec_disk_end(rq))

/* Earlier kernels: from the issue to the driver, without the time in the
 * scheduler. */
EMUD_REC_REQUEST(block_rq_issue, emud_rec_rq_issue, emud_rec_disk_start(disk, rq))
EMUD_REC_REQUEST(block_rq_requeue, emud_rec_rq_requeue, emud_rec_disk_end(rq))

SEC("tp_btf/block_rq_complete")
int BPF_PROG(emud_rec_rq_complete, struct request *rq, int error, unsigned int bytes)
{
	if (emud_request_disk(rq) && emud_is_complete(rq, bytes))
		emud_rec_disk_end(rq);
	return 0;
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(emud_rec_bio_queue, struct bio *bio)
{
	const struct gendisk *disk = emud_bio_disk(bio);

	if (disk)
		emud_rec_disk_start(disk, bio);
	return 0;
}

SEC("tp_btf/block_bio_complete")
int BPF_PROG(emud_rec_bio_complete, void *queue, struct bio *bio)
{
	if (emud_bio_disk(bio))
		emud_rec_disk_end(bio);
	return 0;
}
