/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * emulator: packets that fq released late or dropped, on devices where emud
 * emulates a link. (The holder of engine hold reports its own.)
 *
 * The departure time is still in the packet when the driver gets it. Each device
 * has its episodes: a run is judged by those of its links alone, which one of
 * another link must not hide.
 */
#ifndef EMUD_MONITOR_EMULATOR_H
#define EMUD_MONITOR_EMULATOR_H

#include "alarm.h"

const volatile __u64 emud_late_ns = 0;

/* An episode ends this long after its last event. */
#define EMUD_FAULT_QUIET_NS 100000000ULL
#define EMUD_FAULTS_AT_ONCE 64

/* The number of an emulated device, or NULL. */
static __always_inline const __u32 *emud_emulation(const struct net_device *dev)
{
	struct emud_emulated key = {
		.netns = dev->nd_net.net->ns.inum,
		.ifindex = dev->ifindex,
	};

	return bpf_map_lookup_elem(&emud_emulated, &key);
}

/* Other CPUs may raise it at the same time, once for each of their slots. */
static __always_inline void emud_raise_faults(__u64 *faults, __u32 slot)
{
	for (int n = 0; n < EMUD_FAULTS_AT_ONCE; n++) {
		__u64 was = *(volatile __u64 *)faults;

		if (was > slot ||
		    __sync_val_compare_and_swap(faults, was, slot + 1) == was)
			break;
	}
}

static __always_inline void emud_failed(__u32 failure, const __u32 *number,
					const struct net_device *dev, __u64 since,
					__u64 now, __u64 value)
{
	__u32 slot = emud_bound(*number * EMUD_FAILURES + failure, EMUD_FAULTS);
	struct emud_fault *fault = bpf_map_lookup_elem(&emud_faults, &slot);
	struct emud_counters *counters = emud_counts();
	struct emud_alarm alarm = {
		.kind = EMUD_RECORD_ALARM,
		.resource = EMUD_EMULATOR,
		.now = now,
		.since = since,
		.value = value,
		.threshold = failure == EMUD_LATE ? emud_late_ns : 1,
		.hook = failure == EMUD_LATE ? EMUD_HOOK_LATE : EMUD_HOOK_DROP,
		.what = failure,
		.a = dev->ifindex,
		.b = dev->nd_net.net->ns.inum,
	};

	if (!fault || !counters)
		return;
	__sync_fetch_and_add(&fault->count, 1);
	fault->last_ns = now;
	emud_raise_faults(&counters->faults, slot);
	alarm.episode = emud_begin_episode(&fault->episode, EMUD_EMULATOR);
	/* Not earlier: a tick on another CPU may find none open. */
	counters->failing = 1;
	if (!alarm.episode)
		return;
	fault->since = since;
	fault->ifindex = alarm.a;
	fault->netns = alarm.b;
	bpf_probe_read_kernel_str(alarm.name, sizeof(dev->name), dev->name);
	emud_tell_alarm(&alarm, &fault->episode);
}

static __always_inline void emud_check_late(const struct sk_buff *skb,
					    const struct net_device *dev)
{
	__u64 departure = skb->tstamp;
	const __u32 *number;
	__u64 now;

	if (!departure)
		return;
	number = emud_emulation(dev);
	if (!number)
		return;
	now = bpf_ktime_get_ns();
	/* A stamp ahead of this clock comes from a different clock (a receive
	 * time). */
	if (now > departure && now - departure > emud_late_ns)
		emud_failed(EMUD_LATE, number, dev, departure, now, now - departure);
}

static __always_inline int emud_qdisc_dropped(__u32 reason)
{
	if (reason ==
	    bpf_core_enum_value(enum skb_drop_reason, SKB_DROP_REASON_QDISC_DROP))
		return 1;
	if (!bpf_core_enum_value_exists(enum skb_drop_reason,
					SKB_DROP_REASON_FQ_FLOW_LIMIT))
		return 0;
	return reason == bpf_core_enum_value(enum skb_drop_reason,
					     SKB_DROP_REASON_FQ_FLOW_LIMIT) ||
	       reason == bpf_core_enum_value(enum skb_drop_reason,
					     SKB_DROP_REASON_FQ_BAND_LIMIT) ||
	       reason == bpf_core_enum_value(enum skb_drop_reason,
					     SKB_DROP_REASON_FQ_HORIZON_LIMIT);
}

static __always_inline void emud_check_drop(const struct sk_buff *skb, __u32 reason)
{
	const struct net_device *dev = skb->dev;
	const __u32 *number;
	__u64 now;

	if (!emud_qdisc_dropped(reason) || !dev)
		return;
	number = emud_emulation(dev);
	if (!number)
		return;
	now = bpf_ktime_get_ns();
	emud_failed(EMUD_DROPPED, number, dev, now, now, 1);
}

/* Returns 1 if an episode stays open. Separate functions are verified once and not
 * for each slot. */
__noinline int emud_fault_tick(__u32 slot, __u64 now)
{
	struct emud_fault *fault = bpf_map_lookup_elem(&emud_faults, &slot);
	struct emud_alarm clear = {
		.kind = EMUD_RECORD_CLEAR,
		.resource = EMUD_EMULATOR,
		.now = now,
		.hook = EMUD_HOOK_TICK,
		.what = slot % EMUD_FAILURES,
	};

	if (likely(!fault || !fault->episode))
		return 0;
	if ((__s64)(now - fault->last_ns) < (__s64)EMUD_FAULT_QUIET_NS)
		return 1;
	clear.since = fault->since;
	clear.until = fault->last_ns;
	clear.a = fault->ifindex;
	clear.b = fault->netns;
	clear.episode = emud_end_episode(&fault->episode);
	if (clear.episode)
		emud_tell(&clear);
	return 0;
}

__noinline int emud_some_faults_tick(__u32 first, __u32 used, __u64 now)
{
	int open = 0;

	for (__u32 n = 0; n < EMUD_FAULTS_AT_ONCE; n++) {
		if (first + n >= used)
			break;
		open |= emud_fault_tick(first + n, now);
	}
	return open;
}

static __always_inline void emud_faults_tick(__u64 now)
{
	struct emud_counters *counters = emud_counts();
	int open = 0;

	/* Until none is open, not for a time: a host that stands still has no tick. */
	if (!counters || likely(!counters->failing) ||
	    !__sync_lock_test_and_set(&counters->failing, 0))
		return;
	for (__u32 first = 0; first < EMUD_FAULTS; first += EMUD_FAULTS_AT_ONCE) {
		if (first >= counters->faults)
			break;
		open |= emud_some_faults_tick(first, counters->faults, now);
	}
	if (open)
		counters->failing = 1;
}

SEC("tp_btf/net_dev_start_xmit")
int emud_late(emud_args *args)
{
	emud_ran(EMUD_HOOK_LATE);
	emud_check_late((void *)args[0], (void *)args[1]);
	return 0;
}

SEC("tp_btf/kfree_skb")
int emud_drop(emud_args *args)
{
	emud_ran(EMUD_HOOK_DROP);
	emud_check_drop((void *)args[0], args[2]);
	return 0;
}

#endif
