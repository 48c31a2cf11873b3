/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * emulator: packets that fq released late or dropped, on devices where emud
 * emulates a link. (The holder of engine hold reports its own.)
 *
 * The departure time is still in the packet when the driver gets it.
 */
#ifndef EMUD_MONITOR_EMULATOR_H
#define EMUD_MONITOR_EMULATOR_H

#include "alarm.h"

const volatile __u64 emud_late_ns = 0;

/* An episode ends this long after its last event. */
#define EMUD_FAULT_QUIET_NS 100000000ULL

static __always_inline int emud_is_emulated(const struct net_device *dev)
{
	struct emud_emulated key = {
		.netns = dev->nd_net.net->ns.inum,
		.ifindex = dev->ifindex,
	};

	return bpf_map_lookup_elem(&emud_emulated, &key) != NULL;
}

static __always_inline void emud_failed(__u32 failure, const struct net_device *dev,
					__u64 since, __u64 now, __u64 value)
{
	struct emud_fault *fault = bpf_map_lookup_elem(&emud_faults, &failure);
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

	if (!fault)
		return;
	__sync_fetch_and_add(&fault->count, 1);
	fault->last_ns = now;
	alarm.episode = emud_begin_episode(&fault->episode, EMUD_EMULATOR);
	if (!alarm.episode)
		return;
	fault->since = since;
	fault->ifindex = alarm.a;
	fault->netns = alarm.b;
	bpf_probe_read_kernel_str(alarm.name, sizeof(dev->name), dev->name);
	emud_tell(&alarm);
}

static __always_inline void emud_check_late(const struct sk_buff *skb,
					    const struct net_device *dev)
{
	__u64 departure = skb->tstamp;
	__u64 now;

	if (!departure || !emud_is_emulated(dev))
		return;
	now = bpf_ktime_get_ns();
	/* A stamp ahead of this clock comes from a different clock (a receive
	 * time). */
	if (now > departure && now - departure > emud_late_ns)
		emud_failed(EMUD_LATE, dev, departure, now, now - departure);
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
	__u64 now;

	if (!emud_qdisc_dropped(reason) || !dev || !emud_is_emulated(dev))
		return;
	now = bpf_ktime_get_ns();
	emud_failed(EMUD_DROPPED, dev, now, now, 1);
}

static __always_inline void emud_fault_tick(__u32 failure, __u64 now)
{
	struct emud_fault *fault = bpf_map_lookup_elem(&emud_faults, &failure);
	struct emud_alarm clear = {
		.kind = EMUD_RECORD_CLEAR,
		.resource = EMUD_EMULATOR,
		.now = now,
		.hook = EMUD_HOOK_TICK,
		.what = failure,
	};

	if (likely(!fault || !fault->episode) ||
	    (__s64)(now - fault->last_ns) < (__s64)EMUD_FAULT_QUIET_NS)
		return;
	clear.since = fault->since;
	clear.until = fault->last_ns;
	clear.a = fault->ifindex;
	clear.b = fault->netns;
	clear.episode = emud_end_episode(&fault->episode);
	if (clear.episode)
		emud_tell(&clear);
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
