// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The far side of the segmenter: a veth pair whose ends accept wire packets
 * only (no feature of segmentation), so the kernel segments a super-packet on entry
 * (validate_xmit_skb()). The segments return to the device and pass the
 * classifier one by one. If a link damages packets and keeps checksums, the ends have no
 * feature of checksums either, so the kernel computes those that are open.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
#include "emud.h"

/* The device. */
const volatile __u32 emud_ifindex;

static __always_inline int emud_return(struct __sk_buff *skb, __u64 flags)
{
	/* Only the classifier may send packets to this device. */
	if (skb->tc_index != EMUD_TC_INDEX_SEGMENT)
		return TC_ACT_SHOT;
	return bpf_redirect(emud_ifindex, flags);
}

SEC("classifier")
int emud_seg_up(struct __sk_buff *skb)
{
	return emud_return(skb, 0);
}

SEC("classifier")
int emud_seg_down(struct __sk_buff *skb)
{
	return emud_return(skb, BPF_F_INGRESS);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
