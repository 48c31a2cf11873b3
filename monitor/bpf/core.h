/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of the kernel's structures that are read. The loader moves each
 * access to the member's offset in the running kernel (CO-RE). A member that
 * some supported version lacks is read through a separate type, with three
 * underscores, and only after bpf_core_field_exists().
 */
#ifndef EMUD_CORE_H
#define EMUD_CORE_H

#include <linux/types.h>

#define PF_IDLE 0x00000002 /* include/linux/sched.h: an idle task */
#define IFF_LOOPBACK 0x8

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

struct nsproxy {
	struct net *net_ns;
};

struct kernfs_node {
	const char *name;
	__u64 id;
};

struct cgroup_root {
	int hierarchy_id;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

struct cgroup {
	int level;
	struct kernfs_node *kn;
	struct cgroup_root *root;
};

struct css_set {
	struct cgroup_subsys_state *subsys[16];
	struct cgroup *dfl_cgrp;
};

struct sched_entity {
	__u64 exec_start;
	__u64 sum_exec_runtime;
};

struct task_struct {
	unsigned int flags;
	int pid;
	struct sched_entity se;
	char comm[16];
	struct nsproxy *nsproxy;
	struct css_set *cgroups;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct rtnl_link_ops;

struct net_device {
	int ifindex;
	unsigned int flags;
	possible_net_t nd_net;
	const struct rtnl_link_ops *rtnl_link_ops;
	char name[16];
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

struct sock {
	struct sock_cgroup_data sk_cgrp_data;
};

struct sk_buff {
	struct sock *sk;
	struct net_device *dev;
	__s64 tstamp;
	unsigned int len;
};

struct block_device_operations {
	void (*submit_bio)(void);
};

struct gendisk {
	int major;
	int first_minor;
	char disk_name[32];
	const struct block_device_operations *fops;
};

struct block_device {
	struct gendisk *bd_disk;
	__u32 bd_dev;
};

struct request_queue {
	struct gendisk *disk;
};

struct blkcg {
	struct cgroup_subsys_state css;
};

struct blkcg_gq {
	struct blkcg *blkcg;
};

struct bvec_iter {
	unsigned int bi_size;
};

struct bio {
	struct block_device *bi_bdev;
	unsigned int bi_opf;
	struct bvec_iter bi_iter;
	struct blkcg_gq *bi_blkg;
};

enum mq_rq_state { MQ_RQ_IDLE };

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
	__u32 rq_flags;
	unsigned int __data_len;
	struct bio *bio;
	enum mq_rq_state state;
};

struct folio {
	unsigned long _flags_1;
};

/* Until Linux 6.5. */
struct folio___order {
	unsigned char _folio_order;
};

/* Values differ between kernels: read with bpf_core_enum_value(). */
enum pageflags { PG_head, PG_swapbacked };
enum cgroup_subsys_id { cpu_cgrp_id, io_cgrp_id, memory_cgrp_id, CGROUP_SUBSYS_COUNT };
enum skb_drop_reason {
	SKB_DROP_REASON_QDISC_DROP,
	SKB_DROP_REASON_FQ_BAND_LIMIT, /* 6.13 */
	SKB_DROP_REASON_FQ_HORIZON_LIMIT,
	SKB_DROP_REASON_FQ_FLOW_LIMIT,
};

#pragma clang attribute pop

#endif
