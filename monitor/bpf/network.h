/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * network: bytes transmitted in a sliding window.
 *
 * External devices have hardware behind them, internal ones lead to another
 * device of this host; a packet counts on each device that it passes. Devices
 * that the kernel creates on request (rtnl_link_ops: veth, bridge, ifb, dummy,
 * TAP, ...) are internal, and so is loopback, unless the user configures a
 * different class.
 *
 * Grouped by network namespace, a packet belongs to the namespace of its device
 * (net_dev_xmit, which has the driver's result). Grouped by cgroup or command,
 * it belongs to its sender, who is known only before the driver gets the packet
 * (net_dev_start_xmit): the cgroup of its socket, otherwise the running task.
 */
#ifndef EMUD_MONITOR_NETWORK_H
#define EMUD_MONITOR_NETWORK_H

#include "window.h"

/* A device keeps no more bytes than this, six full-sized packets, and no more
 * than a quarter of what a CPU reports to its window, which bounds the error of
 * shares. */
#define EMUD_CHARGE_BYTES 9000U

static __always_inline __u32 emud_charge_bytes(__u32 w)
{
	__u64 quarter = emud_config.quantum[emud_bound(w, EMUD_WINDOWS)] / 4;

	return quarter < EMUD_CHARGE_BYTES ? quarter : EMUD_CHARGE_BYTES;
}

static __always_inline __u32 emud_guess_class(const struct net_device *dev)
{
	return dev->rtnl_link_ops || dev->flags & IFF_LOOPBACK ? EMUD_WINDOW_INTERNAL
							       : EMUD_WINDOW_EXTERNAL;
}

/* Charges the rest of a sender, which had a slot when the first packet came. */
static __always_inline void emud_settle_dev(struct emud_dev *d, __u32 cpu)
{
	if (d->uncharged && d->window != EMUD_WINDOW_NONE)
		emud_charge_known(d->window, cpu, d->group, d->uncharged);
	if (d->uncharged && d->own != EMUD_WINDOW_NONE)
		emud_charge_known(d->own, cpu, d->group, d->uncharged);
	d->uncharged = 0;
}

/* A rule is for a name, which each network namespace may have. */
static __always_inline void emud_own_window(struct emud_window *window, __u32 ifindex,
					    __u32 netns)
{
	int several = window->netns && window->netns != netns;

	window->ifindex = several ? 0 : ifindex;
	window->netns = several ? EMUD_SEVERAL : netns;
}

/* Caches a device that is new to this CPU or has changed. */
static __always_inline void emud_learn_dev(struct emud_dev *d,
					   const struct net_device *dev, __u32 cpu)
{
	struct emud_netdev_rule *rule;
	struct emud_name name = {};
	struct emud_window *window;
	__u32 own;

	/* The device before this one keeps its share. */
	emud_settle_dev(d, cpu);
	bpf_probe_read_kernel_str(name.text, sizeof(dev->name), dev->name);
	rule = bpf_map_lookup_elem(&emud_netdev_rules, &name);
	d->dev = (__u64)dev;
	d->net = (__u64)dev->nd_net.net;
	d->ifindex = dev->ifindex;
	d->group = 0;
	d->window =
		rule && rule->window != EMUD_GUESS ? rule->window : emud_guess_class(dev);
	/* Ignored, or the class has no threshold. */
	if (d->window > EMUD_WINDOW_INTERNAL ||
	    !emud_config.threshold[emud_bound(d->window, EMUD_WINDOWS)])
		d->window = EMUD_WINDOW_NONE;
	d->own = rule ? rule->own : EMUD_WINDOW_NONE;
	d->charge_bytes = emud_charge_bytes(d->window);
	own = d->own;
	if (own == EMUD_WINDOW_NONE)
		return;
	if (emud_charge_bytes(own) < d->charge_bytes || d->window == EMUD_WINDOW_NONE)
		d->charge_bytes = emud_charge_bytes(own);
	window = bpf_map_lookup_elem(&emud_windows, &own);
	if (window)
		emud_own_window(window, d->ifindex, dev->nd_net.net->ns.inum);
}

static __always_inline struct emud_dev *
emud_dev_of(struct emud_tx *tx, const struct net_device *dev, __u32 cpu)
{
	__u64 i = emud_bound(emud_hash(emud_scalar(&tx->scratch, dev)), EMUD_DEVS);
	struct emud_dev *d = &tx->devs[i];

	if (unlikely(d->dev != (__u64)dev || d->net != (__u64)dev->nd_net.net))
		emud_learn_dev(d, dev, cpu);
	return d;
}

/* The sender of a packet: a socket has its cgroup of the unified hierarchy. */
static __always_inline struct emud_who emud_who_sends(const struct sk_buff *skb,
						      __u64 *scratch)
{
	const struct sock *sk = skb->sk;
	struct emud_who who = {};

	if (emud_config.group_by == EMUD_BY_CGROUP && sk) {
		const struct cgroup *cgroup = sk->sk_cgrp_data.cgroup;

		if (cgroup && cgroup->level > 0) {
			who.key = emud_scalar(scratch, cgroup);
			who.cgroup = who.key;
			return who;
		}
	}
	return emud_who_task(bpf_get_current_task_btf(), scratch);
}

/* Charges the bytes that a device sent to the share of the sender. Only here is
 * the index checked, which shows whether a different device now has the
 * address: the index is in a cache line that transmission does not read. */
static __always_inline void emud_charge_dev(struct emud_dev *d,
					    const struct net_device *dev, __u32 cpu,
					    const struct emud_who *who)
{
	if (unlikely(d->ifindex != (__u32)dev->ifindex)) {
		emud_learn_dev(d, dev, cpu);
		d->group = who->key;
	}
	if (d->window != EMUD_WINDOW_NONE)
		emud_charge_window(d->window, cpu, who, d->uncharged);
	if (unlikely(d->own != EMUD_WINDOW_NONE))
		emud_charge_window(d->own, cpu, who, d->uncharged);
	d->uncharged = 0;
}

/* The sender on this device changes. */
static __always_inline void emud_dev_turn(struct emud_dev *d,
					  const struct net_device *dev, __u32 cpu,
					  const struct emud_who *who)
{
	emud_settle_dev(d, cpu);
	d->group = who->key;
	/* Takes a slot while the group can still be named. */
	emud_charge_dev(d, dev, cpu, who);
}

static __always_inline void emud_sent(struct emud_tx *tx, struct emud_dev *d, __u32 cpu,
				      __u32 len)
{
	if (d->window != EMUD_WINDOW_NONE)
		emud_count(tx, d->window, cpu, len, EMUD_HOOK_XMIT);
	if (unlikely(d->own != EMUD_WINDOW_NONE))
		emud_count(tx, d->own, cpu, len, EMUD_HOOK_XMIT);
}

/* Grouped by network namespace, that of the device. Most packets touch no table. */
static __always_inline void emud_transmitted(struct emud_tx *tx, __u32 cpu,
					     const struct net_device *dev, __u32 len)
{
	struct emud_dev *d = emud_dev_of(tx, dev, cpu);
	struct emud_who who = {.key = d->net, .net = d->net};

	if (unlikely(d->group != who.key))
		emud_dev_turn(d, dev, cpu, &who);
	d->uncharged += len;
	if (unlikely(d->uncharged >= d->charge_bytes))
		emud_charge_dev(d, dev, cpu, &who);
	emud_sent(tx, d, cpu, len);
}

/* Grouped by sender: packets of a sender that sends continuously touch no table
 * either. */
static __always_inline void emud_offered(struct emud_tx *tx, __u32 cpu,
					 const struct sk_buff *skb,
					 const struct net_device *dev)
{
	struct emud_who who = emud_who_sends(skb, &tx->scratch);
	struct emud_dev *d = emud_dev_of(tx, dev, cpu);
	__u32 len = skb->len;

	if (unlikely(who.key != d->group))
		emud_dev_turn(d, dev, cpu, &who);
	d->uncharged += len;
	if (unlikely(d->uncharged >= d->charge_bytes))
		emud_charge_dev(d, dev, cpu, &who);
	emud_sent(tx, d, cpu, len);
}

SEC("tp_btf/net_dev_xmit")
int emud_xmit(emud_args *args)
{
	const struct net_device *dev = (void *)args[2];
	__u32 cpu = bpf_get_smp_processor_id();
	struct emud_tx *tx = emud_this_tx(cpu);

	emud_ran(EMUD_HOOK_XMIT);
	/* Unless the driver rejected it. */
	if (tx && !(int)args[1])
		emud_transmitted(tx, cpu, dev, args[3]);
	return 0;
}

SEC("tp_btf/net_dev_start_xmit")
int emud_start_xmit(emud_args *args)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct emud_tx *tx = emud_this_tx(cpu);

	emud_ran(EMUD_HOOK_XMIT);
	if (tx)
		emud_offered(tx, cpu, (void *)args[0], (void *)args[1]);
	return 0;
}

#endif
