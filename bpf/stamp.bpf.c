// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The station of a shared medium: appends the time of sending to each packet
 * of its TAP, 8 bytes of CLOCK_MONOTONIC in host order. Behind the packet and
 * not in front of it, so that captures in the node stay readable.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

SEC("classifier")
int emud_stamp(struct __sk_buff *skb)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 len = skb->len;

	/*
	 * bpf_skb_change_tail() forgets the segment size of a super-packet
	 * (skb_gso_reset()); its segments leave without a stamp.
	 */
	if (skb->gso_size)
		return TC_ACT_UNSPEC;
	if (bpf_skb_change_tail(skb, len + sizeof(now), 0) == 0)
		bpf_skb_store_bytes(skb, len, &now, sizeof(now), 0);
	return TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
