/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * network: bytes transmitted in a sliding window.
 *
 * External devices have hardware behind them, internal ones lead to another
 * device of this host; a packet is counted on each device that it passes. A
 * kind of device that the kernel makes on request (rtnl_link_ops: veth, bridge,
 * ifb, dummy, TAP, ...) is internal, and so is loopback, unless the user says
 * otherwise.
 *
 * Grouped by network namespace, a packet belongs to that of its device
 * (net_dev_xmit, which knows whether the driver took it). Grouped by cgroup or
 * command, to its sender, who is known before the driver gets it only
 * (net_dev_start_xmit): by the cgroup of its socket, else by the task that runs.
 */
#ifndef EMUD_MONITOR_NETWORK_H
#define EMUD_MONITOR_NETWORK_H

#include "window.h"

static __always_inline __u32 emud_guess_class(const struct net_device *dev)
{
	return dev->rtnl_link_ops || dev->flags & IFF_LOOPBACK ? EMUD_WINDOW_INTERNAL
							       : EMUD_WINDOW_EXTERNAL;
}

/* A device this CPU has not seen, or that has changed. */
static __always_inline void emud_learn_dev(struct emud_dev *d,
					   const struct net_device *dev)
{
	struct emud_netdev_rule *rule;
	struct emud_name name = {};
	struct emud_window *window;
	__u32 own;

	bpf_probe_read_kernel_str(name.text, sizeof(dev->name), dev->name);
	rule = bpf_map_lookup_elem(&emud_netdev_rules, &name);
	d->dev = (__u64)dev;
	d->net = (__u64)dev->nd_net.net;
	d->ifindex = dev->ifindex;
	d->window =
		rule && rule->window != EMUD_GUESS ? rule->window : emud_guess_class(dev);
	d->own = rule ? rule->own : EMUD_WINDOW_NONE;
	own = d->own;
	if (own == EMUD_WINDOW_NONE)
		return;
	window = bpf_map_lookup_elem(&emud_windows, &own);
	if (window) {
		window->ifindex = d->ifindex;
		window->netns = dev->nd_net.net->ns.inum;
	}
}

static __always_inline struct emud_dev *emud_dev_of(struct emud_tx *tx,
						    const struct net_device *dev)
{
	__u64 i = emud_bound(emud_hash(emud_scalar(&tx->scratch, dev)), EMUD_DEVS);
	struct emud_dev *d = &tx->devs[i];

	if (unlikely(d->dev != (__u64)dev || d->ifindex != (__u32)dev->ifindex ||
		     d->net != (__u64)dev->nd_net.net))
		emud_learn_dev(d, dev);
	return d;
}

/* The one who sends: a socket knows its cgroup of the unified hierarchy. */
static __always_inline struct emud_who emud_who_sends(const struct sk_buff *skb,
						      __u64 *scratch)
{
	const struct sock *sk = skb->sk;
	struct emud_who who = {};

	if (emud_config.group_by == EMUD_BY_CGROUP && sk) {
		who.cgroup = emud_scalar(scratch, sk->sk_cgrp_data.cgroup);
		if (who.cgroup && emud_level(who.cgroup) > 0) {
			who.key = who.cgroup;
			return who;
		}
	}
	return emud_who_task(bpf_get_current_task_btf(), scratch);
}

static __always_inline struct emud_who emud_who_owns(const struct net_device *dev,
						     __u64 *scratch)
{
	__u64 net = emud_scalar(scratch, dev->nd_net.net);

	return (struct emud_who){.key = net, .net = net};
}

static __always_inline void emud_transmitted(struct emud_tx *tx, __u32 cpu,
					     const struct net_device *dev, __u32 len,
					     const struct emud_who *who)
{
	struct emud_dev *d = emud_dev_of(tx, dev);

	if (d->window != EMUD_WINDOW_NONE &&
	    emud_config.threshold[d->window & (EMUD_WINDOWS - 1)])
		emud_count(tx, d->window, cpu, who, len, EMUD_HOOK_XMIT);
	if (unlikely(d->own != EMUD_WINDOW_NONE))
		emud_count(tx, d->own, cpu, who, len, EMUD_HOOK_XMIT);
}

#endif
