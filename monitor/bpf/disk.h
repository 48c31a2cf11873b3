/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * disk: a block device that is never empty for theta.
 *
 * A device is non-empty from a request that finds none pending to the
 * completion that leaves none. It is judged at every request that finds others
 * pending, when the device becomes empty, and by the tick (a stuck device has
 * no further event). Shares are the bytes requested in that time.
 *
 * Each request and bio is known by its address, so an end counts only for one that
 * has started: not those from before the monitor, the parts of a bio that was
 * split, or one whose start the kernel did not report. An end that it did not
 * report would make the device busy for ever. It is noticed when the address starts
 * again, before an alarm, and every EMUD_SWEEP_NS of an episode; the device may have
 * been empty until then, so its interval begins again.
 *
 * Longer than 400 lines: all hooks change the same counts of pending requests.
 */
#ifndef EMUD_MONITOR_DISK_H
#define EMUD_MONITOR_DISK_H

#include "alarm.h"
#include "block.h"
#include "group.h"

const volatile __u64 emud_disk_theta_ns = 0; /* 0: the criterion is off */

#define EMUD_DISK_PROBES 8
#define EMUD_DISK_UNUSED_NS 10000000000ULL
#define EMUD_SWEEP_NS 100000000ULL
#define EMUD_EEXIST 17

static __always_inline void emud_learn_disk(struct emud_disk *d,
					    const struct gendisk *disk)
{
	struct emud_name name = {};
	__u64 *theta_ns;

	d->major = disk->major;
	d->minor = disk->first_minor;
	bpf_probe_read_kernel_str(name.text, sizeof(name.text), disk->disk_name);
	__builtin_memcpy(d->name, name.text, sizeof(d->name));
	theta_ns = bpf_map_lookup_elem(&emud_disk_rules, &name);
	d->theta_ns = theta_ns ? *theta_ns : emud_disk_theta_ns;
}

/* No request is pending, no alarm is open, and the last request is so old that
 * no other CPU is about to add one: a new device may take the slot. */
static __always_inline int emud_disk_unused(const struct emud_disk *d, __u64 now)
{
	return !d->disk || (d->inflight <= 0 && !d->episode &&
			    (__s64)(now - d->asked) > (__s64)EMUD_DISK_UNUSED_NS);
}

/* A device has its first request, or its first one since a different device
 * took its slot. */
static __always_inline __s32 emud_new_disk(const struct gendisk *disk, __u64 address,
					   __u64 now)
{
	struct emud_counters *counters = emud_counts();

	for (__u32 n = 0; counters && n < EMUD_DISK_PROBES; n++) {
		__u32 i = emud_bound(emud_hash(address) + n, EMUD_DISKS);
		struct emud_disk *d = bpf_map_lookup_elem(&emud_disks, &i);
		__u64 was;

		if (!d)
			continue;
		was = d->disk;
		if (was != address && emud_disk_unused(d, now)) {
			d->asked = now;
			was = __sync_val_compare_and_swap(&d->disk, was, address);
		}
		/* Another CPU has the device's first request, too: two slots
		 * for one device would never agree. */
		if (was == address)
			return i;
		if (d->disk != address)
			continue;
		emud_learn_disk(d, disk);
		if (!was)
			__sync_fetch_and_add(&counters->disks, 1ULL << i);
		return i;
	}
	if (counters)
		__sync_fetch_and_add(&counters->disks_unknown, 1);
	return -1;
}

/* The slot of a disk, or -1. */
static __always_inline __s32 emud_disk_index(const struct gendisk *disk, __u64 address)
{
	for (__u32 n = 0; n < EMUD_DISK_PROBES; n++) {
		__u32 i = emud_bound(emud_hash(address) + n, EMUD_DISKS);
		struct emud_disk *d = bpf_map_lookup_elem(&emud_disks, &i);

		if (!d || d->disk != address)
			continue;
		/* A new device has the address of an old one. */
		if (unlikely(d->major != (__u32)disk->major ||
			     d->minor != (__u32)disk->first_minor))
			emud_learn_disk(d, disk);
		return i;
	}
	return -1;
}

static __always_inline void emud_disk_alarm(struct emud_disk *d, __u32 i, __u64 since,
					    __u64 now, enum emud_hook hook)
{
	struct emud_table *table = bpf_map_lookup_elem(&emud_disk_tables, &i);
	struct emud_alarm alarm = {
		.kind = EMUD_RECORD_ALARM,
		.resource = EMUD_DISK,
		.now = now,
		.since = since,
		.value = now - since,
		.threshold = d->theta_ns,
		.hook = hook,
		.what = i,
		.a = d->major,
		.b = d->minor,
	};

	alarm.episode = emud_begin_episode(&d->episode, EMUD_DISK);
	if (!alarm.episode || !table)
		return;
	__builtin_memcpy(alarm.name, d->name, sizeof(alarm.name));
	emud_tell_table(table, alarm.episode);
	emud_tell_alarm(&alarm, &d->episode);
}

static __always_inline __u64 emud_disk_begin(const struct emud_disk *d, __u64 since)
{
	__u64 doubt = *(volatile __u64 *)&d->doubt;

	return (__s64)(doubt - since) > 0 ? doubt : since;
}

static __always_inline int emud_disk_late(const struct emud_disk *d, __u64 since,
					  __u64 now)
{
	return since && !d->episode &&
	       (__s64)(now - emud_disk_begin(d, since)) >= (__s64)d->theta_ns;
}

static __always_inline void emud_disk_judge(struct emud_disk *d, __u32 i, __u64 since,
					    __u64 now, enum emud_hook hook)
{
	if (emud_disk_late(d, since, now))
		emud_disk_alarm(d, i, emud_disk_begin(d, since), now, hook);
}

static __always_inline void emud_disk_clear(struct emud_disk *d, __u32 i, __u64 since,
					    __u64 now, enum emud_hook hook)
{
	struct emud_alarm clear = {
		.kind = EMUD_RECORD_CLEAR,
		.resource = EMUD_DISK,
		.now = now,
		.since = emud_disk_begin(d, since),
		.until = now,
		.hook = hook,
		.what = i,
		.a = d->major,
		.b = d->minor,
	};

	clear.episode = emud_end_episode(&d->episode);
	if (!clear.episode)
		return;
	__builtin_memcpy(clear.name, d->name, sizeof(clear.name));
	emud_tell(&clear);
}

/* Counts `ended` completions; lost: the kernel did not report when they completed. */
static __always_inline void emud_disk_left(struct emud_disk *d, __u32 i, __u32 ended,
					   enum emud_hook hook, int lost)
{
	__u64 since = *(volatile __u64 *)&d->since, now;

	if (lost && !d->episode)
		d->doubt = bpf_ktime_get_ns();
	if (__sync_fetch_and_add(&d->inflight, -(__s64)ended) > ended || !since)
		return;
	/* Done before the episode ends, or the tick would report the same
	 * interval again; skipped if another CPU has started a new interval. */
	__sync_val_compare_and_swap(&d->since, since, 0);
	/* Not earlier than the alarm of a tick that has seen the interval. */
	now = bpf_ktime_get_ns();
	if (!lost)
		emud_disk_judge(d, i, since, now, hook);
	if (d->episode)
		emud_disk_clear(d, i, since, now, hook);
}

struct emud_sweep {
	__u64 disk;
	__u32 slot;
	__u32 ended;
};

static long emud_disk_look(void *map, const __u64 *address, struct emud_pending *pending,
			   struct emud_sweep *sweep)
{
	struct emud_pending copy = *pending;

	if (copy.slot != sweep->slot || emud_pends(*address, copy.is_bio, sweep->disk) ||
	    bpf_map_delete_elem(map, address))
		return 0;
	/* It may have started again in between: then it counts until its program sees that. */
	if (!emud_pends(*address, copy.is_bio, sweep->disk) ||
	    bpf_map_update_elem(map, address, &copy, BPF_NOEXIST))
		sweep->ended++;
	return 0;
}

/* Before an alarm, and now and then in an episode. Returns how many requests of the disk
 * had ended unnoticed. Takes 20 to 100 us. Called by programs themselves: Linux 6.1 has
 * 512 bytes of stack for all calls. */
__noinline int emud_disk_check(__u32 i, __u64 now, __u32 hook)
{
	struct emud_disk *d = bpf_map_lookup_elem(&emud_disks, &i);
	struct emud_sweep sweep = {.slot = i};

	if (!d || !d->since)
		return 0;
	if (!emud_disk_late(d, d->since, now)) {
		if (!d->episode || (__s64)(now - d->swept) < (__s64)EMUD_SWEEP_NS)
			return 0;
		d->swept = now;
	}
	sweep.disk = d->disk;
	bpf_for_each_map_elem(&emud_pending, emud_disk_look, &sweep, 0);
	if (sweep.ended)
		emud_disk_left(d, i, sweep.ended, hook, 1);
	return sweep.ended;
}

/* The cgroup that the request is accounted to, otherwise the requesting task. */
static __always_inline struct emud_who emud_who_asks(const struct bio *bio,
						     __u64 *scratch)
{
	struct emud_who who = {};

	if (emud_config.group_by == EMUD_BY_CGROUP && bio) {
		who.cgroup = (__u64)BPF_CORE_READ(bio, bi_blkg, blkcg, css.cgroup);
		if (who.cgroup && emud_level(who.cgroup) > 0) {
			who.key = who.cgroup;
			return who;
		}
	}
	return emud_who_task(bpf_get_current_task_btf(), scratch);
}

static __always_inline void emud_disk_end(const void *what, enum emud_hook hook, int lost)
{
	__u64 address = (__u64)what;
	const struct emud_pending *pending = bpf_map_lookup_elem(&emud_pending, &address);
	struct emud_disk *d;
	__u32 i;

	if (!pending)
		return;
	i = pending->slot;
	d = bpf_map_lookup_elem(&emud_disks, &i);
	if (d && !bpf_map_delete_elem(&emud_pending, &address))
		emud_disk_left(d, i, 1, hook, lost);
}

/* No CPU can end a request while it starts. */
static __always_inline int emud_disk_enter(const void *what, __u32 i, enum emud_hook hook)
{
	struct emud_pending pending = {.slot = i, .is_bio = hook == EMUD_HOOK_BIO_START};
	__u64 address = (__u64)what;
	long failed = bpf_map_update_elem(&emud_pending, &address, &pending, BPF_NOEXIST);

	if (unlikely(failed == -EMUD_EEXIST)) {
		emud_disk_end(what, hook, 1);
		failed = bpf_map_update_elem(&emud_pending, &address, &pending,
					     BPF_NOEXIST);
	}
	return !failed;
}

static __always_inline void emud_disk_start(const struct gendisk *disk, const void *what,
					    const struct bio *bio, __u64 bytes,
					    enum emud_hook hook)
{
	struct emud_tx *tx = emud_this_tx(bpf_get_smp_processor_id());
	struct emud_counters *counters = emud_counts();
	struct emud_table *table;
	struct emud_who who;
	struct emud_disk *d;
	__u64 address, now;
	__s32 index;
	__u32 i;

	if (!tx || !counters)
		return;
	now = bpf_ktime_get_ns();
	address = emud_scalar(&tx->scratch, disk);
	index = emud_disk_index(disk, address);
	if (unlikely(index < 0))
		index = emud_new_disk(disk, address, now);
	if (index < 0)
		return;
	i = index;
	d = bpf_map_lookup_elem(&emud_disks, &i);
	table = bpf_map_lookup_elem(&emud_disk_tables, &i);
	if (!d || !table)
		return;
	d->asked = now;
	if (!d->theta_ns)
		return;
	if (unlikely(!emud_disk_enter(what, i, hook))) {
		__sync_fetch_and_add(&counters->disks_unknown, 1);
		return;
	}
	if (__sync_fetch_and_add(&d->inflight, 1) <= 0) {
		d->since = now;
		table->interval = ++d->interval;
	} else if (unlikely(emud_disk_late(d, d->since, now)) &&
		   !emud_disk_check(i, now, hook)) {
		emud_disk_judge(d, i, d->since, now, hook);
	}
	who = emud_who_asks(bio, &tx->scratch);
	emud_charge(table, &who, EMUD_DISK, bytes);
}

/* A separate function is verified once and not for each disk. */
__noinline int emud_disk_tick(__u32 i, __u64 now)
{
	struct emud_disk *d = bpf_map_lookup_elem(&emud_disks, &i);
	__u64 since;

	if (!d || !d->theta_ns)
		return 0;
	since = *(volatile __u64 *)&d->since;
	emud_disk_judge(d, i, since, now, EMUD_HOOK_TICK);
	/* If the device has become empty since, nothing else may end the episode. */
	if (since && d->episode && *(volatile __u64 *)&d->since != since)
		emud_disk_clear(d, i, since, bpf_ktime_get_ns(), EMUD_HOOK_TICK);
	return 0;
}

static __always_inline void emud_disks_tick(__u64 now)
{
	struct emud_counters *counters = emud_counts();
	__u64 used;

	if (!emud_disk_theta_ns || !counters)
		return;
	used = counters->disks;
	for (__u32 n = 0; n < EMUD_DISKS && used; n++, used >>= 1)
		if (used & 1 && !emud_disk_check(n, now, EMUD_HOOK_TICK))
			emud_disk_tick(n, now);
}

static __always_inline int emud_request_start(const struct request *rq)
{
	const struct gendisk *disk = emud_request_disk(rq);

	if (disk)
		emud_disk_start(disk, rq, rq->bio, rq->__data_len, EMUD_HOOK_DISK_START);
	return 0;
}

static __always_inline int emud_request_end(const struct request *rq)
{
	emud_disk_end(rq, EMUD_HOOK_DISK_END, 0);
	return 0;
}

SEC("tp_btf/block_io_start")
int emud_io_start(emud_args *args)
{
	emud_ran(EMUD_HOOK_DISK_START);
	return emud_request_start((void *)args[0]);
}

SEC("tp_btf/block_io_done")
int emud_io_done(emud_args *args)
{
	const struct request *rq = (void *)args[0];

	emud_ran(EMUD_HOOK_DISK_END);
	return emud_in_flush(rq) ? 0 : emud_request_end(rq);
}

/* A request that was merged into another one before it was issued: it has
 * started and will not complete. */
SEC("tp_btf/block_rq_merge")
int emud_io_merge(emud_args *args)
{
	emud_ran(EMUD_HOOK_DISK_MERGE);
	return emud_request_end((void *)args[0]);
}

/* Until Linux 6.4. */
SEC("tp_btf/block_rq_issue")
int emud_rq_issue(emud_args *args)
{
	emud_ran(EMUD_HOOK_DISK_START);
	return emud_request_start((void *)args[0]);
}

SEC("tp_btf/block_rq_requeue")
int emud_rq_requeue(emud_args *args)
{
	emud_ran(EMUD_HOOK_DISK_MERGE);
	return emud_request_end((void *)args[0]);
}

SEC("tp_btf/block_rq_complete")
int emud_rq_complete(emud_args *args)
{
	const struct request *rq = (void *)args[0];

	emud_ran(EMUD_HOOK_DISK_END);
	return emud_is_complete(rq, args[2]) ? emud_request_end(rq) : 0;
}

SEC("tp_btf/block_bio_queue")
int emud_bio_queue(emud_args *args)
{
	const struct bio *bio = (void *)args[0];
	const struct gendisk *disk = emud_bio_disk(bio);

	emud_ran(EMUD_HOOK_BIO_START);
	if (disk)
		emud_disk_start(disk, bio, bio, bio->bi_iter.bi_size,
				EMUD_HOOK_BIO_START);
	return 0;
}

SEC("tp_btf/block_bio_complete")
int emud_bio_complete(emud_args *args)
{
	emud_ran(EMUD_HOOK_BIO_END);
	emud_disk_end((void *)args[1], EMUD_HOOK_BIO_END, 0);
	return 0;
}

#endif
