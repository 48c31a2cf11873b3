/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * alarm: an episode of contention begins or ends.
 *
 * The limit of a resource, which determines whether an alarm is reported, is
 * checked before the ring buffer is touched. Beyond the limit an episode still
 * exists, so that it is counted once, but it is silent.
 */
#ifndef EMUD_MONITOR_ALARM_H
#define EMUD_MONITOR_ALARM_H

#include "maps.h"

/* Returns a number for a new episode, which is silent until emud_tell_alarm(); 0 if
 * an episode is open or the new one stays silent. */
static __always_inline __u64 emud_begin_episode(__u64 *episode,
						enum emud_resource resource)
{
	struct emud_counters *counters = emud_counts();
	__u32 key = resource;
	__u64 *raised = bpf_map_lookup_elem(&emud_raised, &key);

	if (*(volatile __u64 *)episode || !counters || !raised)
		return 0;
	/* Another CPU may see the same contention. */
	if (__sync_val_compare_and_swap(episode, 0, EMUD_SILENT))
		return 0;
	if (__sync_fetch_and_add(raised, 1) >= emud_config.limit) {
		__sync_fetch_and_add(&counters->suppressed[resource], 1);
		return 0;
	}
	return __sync_fetch_and_add(&counters->episodes, 1) + 1;
}

static __always_inline void emud_output(void *record, __u64 len, __u64 flags)
{
	struct emud_counters *counters;

	if (!bpf_ringbuf_output(&emud_ring, record, len, flags))
		return;
	counters = emud_counts();
	if (counters)
		__sync_fetch_and_add(&counters->ring_full, 1);
}

/* The shares are written first: a reader of the alarm already has them. */
static __always_inline void emud_tell_table(struct emud_table *table, __u64 episode)
{
	table->kind = EMUD_RECORD_TABLE;
	table->episode = episode;
	emud_output(table, sizeof(*table), BPF_RB_NO_WAKEUP);
}

static __always_inline void emud_tell(struct emud_alarm *alarm)
{
	emud_output(alarm, sizeof(*alarm), BPF_RB_FORCE_WAKEUP);
}

/* If another CPU has ended the episode by now, its end follows here: from there it would
 * have come before this alarm, and user space ignores an end without an alarm. */
static __always_inline void emud_tell_alarm(struct emud_alarm *alarm, __u64 *episode)
{
	emud_tell(alarm);
	if (__sync_val_compare_and_swap(episode, EMUD_SILENT, alarm->episode) ==
	    EMUD_SILENT)
		return;
	alarm->kind = EMUD_RECORD_CLEAR;
	alarm->now = bpf_ktime_get_ns();
	alarm->until = alarm->now;
	emud_tell(alarm);
}

/* Ends an episode; returns its number, or 0 if it is silent. */
static __always_inline __u64 emud_end_episode(__u64 *episode)
{
	__u64 was = __sync_lock_test_and_set(episode, 0);

	return was & EMUD_SILENT ? 0 : was;
}

#endif
