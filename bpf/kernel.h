/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a BPF qdisc needs of the kernel's types and functions: their fields are found by
 * name when the object is loaded (CO-RE), so no list of a kernel's types is needed.
 */
#ifndef EMUD_KERNEL_H
#define EMUD_KERNEL_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#ifndef NULL
#define NULL ((void *)0)
#endif

/* clang before 15 drops the tag in silence, and the kernel then takes the pointer for a
 * number. */
#ifndef __kptr
#define __kptr __attribute__((btf_type_tag("kptr")))
#endif

/* include/linux/netdevice.h */
#define NET_XMIT_SUCCESS 0
#define NET_XMIT_DROP 1

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sk_buff {
	__u64 tstamp;
	unsigned int truesize;
	char cb[48];
};

/* What net/core/dev.c keeps in sk_buff.cb, and what is left for qdiscs and classifiers. */
struct qdisc_skb_cb {
	unsigned int pkt_len;
	unsigned char data[20];
};

struct qdisc_skb_head {
	__u32 qlen;
};

struct gnet_stats_queue {
	__u32 backlog;
	__u32 drops;
};

struct Qdisc {
	struct qdisc_skb_head q;
	struct gnet_stats_queue qstats;
	__u32 limit;
	__u32 handle;
};

struct bpf_sk_buff_ptr {
	struct sk_buff *skb;
};

struct nlattr {
	__u16 nla_len;
};

struct netlink_ext_ack {
	const char *_msg;
};

struct Qdisc_ops {
	int (*enqueue)(struct sk_buff *, struct Qdisc *, struct sk_buff **);
	struct sk_buff *(*dequeue)(struct Qdisc *);
	int (*init)(struct Qdisc *, struct nlattr *, struct netlink_ext_ack *);
	void (*reset)(struct Qdisc *);
	void (*destroy)(struct Qdisc *);
	char id[16];
};

#pragma clang attribute pop

extern void bpf_qdisc_skb_drop(struct sk_buff *skb,
			       struct bpf_sk_buff_ptr *to_free) __ksym;
extern void bpf_kfree_skb(struct sk_buff *skb) __ksym;
extern void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, __u64 expire,
					__u64 delta_ns) __ksym;
extern void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb) __ksym;

#endif
