// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The station of a shared medium: appends the time of sending to each packet
 * of its TAP, 8 bytes of CLOCK_MONOTONIC in host order. After the packet and
 * not in front of it, so that captures in the node stay readable.
 *
 * A super-packet (UDP GSO, or merged by GRO of another device) cannot have a
 * stamp: bpf_skb_change_tail() forgets its segment size (skb_gso_reset()), and
 * the kernel segments it after this hook (validate_xmit_skb()). It passes the
 * loopback device first, with a VLAN tag, for which that device has no feature
 * of segmentation (netif_skb_features(), vlan_features): its segments return.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "emud.h"

/*
 * Until then all packets of a CPU pass the loopback device: they would overtake
 * a super-packet that waits there for its softirq (netif_rx()).
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} emud_segmenting SEC(".maps");

SEC("classifier")
int emud_stamp(struct __sk_buff *skb)
{
	__u64 now = bpf_ktime_get_ns(), *until;
	__u32 len = skb->len, first = 0;

	until = bpf_map_lookup_elem(&emud_segmenting, &first);
	if (!until)
		return TC_ACT_UNSPEC;
	if (skb->gso_size)
		*until = now + EMUD_SEGMENTING_NS;
	if (skb->tc_index == EMUD_TC_INDEX_SEGMENT) {
		skb->tc_index = 0;
	} else if (now < *until) {
		skb->tc_index = skb->ifindex;
		if (bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021AD), 1) != 0)
			return TC_ACT_UNSPEC;
		return bpf_redirect(EMUD_LOOPBACK, 0);
	}
	if (bpf_skb_change_tail(skb, len + sizeof(now), 0) == 0)
		bpf_skb_store_bytes(skb, len, &now, sizeof(now), 0);
	return TC_ACT_UNSPEC;
}

/* What the loopback device receives: packets go back to their TAP. */
SEC("classifier")
int emud_segmented(struct __sk_buff *skb)
{
	__u32 ifindex = skb->tc_index;

	if (!ifindex || !skb->vlan_present)
		return TC_ACT_UNSPEC;
	if (bpf_skb_vlan_pop(skb) != 0)
		return TC_ACT_SHOT;
	skb->tc_index = EMUD_TC_INDEX_SEGMENT;
	return bpf_redirect(ifindex, 0);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
