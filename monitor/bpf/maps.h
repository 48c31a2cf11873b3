/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps and shared helpers. The loader sets the sizes that depend on the
 * number of CPUs.
 */
#ifndef EMUD_MONITOR_MAPS_H
#define EMUD_MONITOR_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "core.h"
#include "monitor.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* The verifier of 6.1 loses the bounds of an index on its way through 32-bit
 * arithmetic; a mask that the compiler cannot prove to be needless restores
 * them. */
#define emud_bound(index, len)                                   \
	({                                                       \
		__u64 index_ = (index);                          \
		_Static_assert(((len) & ((len)-1)) == 0, "2^n"); \
		asm volatile("" : "+r"(index_));                 \
		index_ &((len)-1);                               \
	})

#define EMUD_ARRAY(name_, len_, value_)           \
	struct {                                  \
		__uint(type, BPF_MAP_TYPE_ARRAY); \
		__uint(max_entries, len_);        \
		__type(key, __u32);               \
		__type(value, value_);            \
	} name_ SEC(".maps")

#define EMUD_HASH(name_, len_, key_, value_)     \
	struct {                                 \
		__uint(type, BPF_MAP_TYPE_HASH); \
		__uint(max_entries, len_);       \
		__type(key, key_);               \
		__type(value, value_);           \
	} name_ SEC(".maps")

const volatile struct emud_config emud_config = {};

EMUD_ARRAY(emud_cpus, 1, struct emud_cpu); /* by CPU */
EMUD_ARRAY(emud_txs, 1, struct emud_tx); /* by CPU */
EMUD_ARRAY(emud_runs, 1, struct emud_runs); /* by CPU */
EMUD_ARRAY(emud_windows, EMUD_WINDOWS, struct emud_window);
EMUD_ARRAY(emud_disks, EMUD_DISKS, struct emud_disk);
EMUD_ARRAY(emud_faults, EMUD_FAULTS, struct emud_fault);
EMUD_ARRAY(emud_counters, 1, struct emud_counters);
EMUD_ARRAY(emud_armed, 1, __u64); /* when loading finished; 0: not yet */
EMUD_ARRAY(emud_raised, 8, __u64); /* by resource; set to 0 from outside */

/* Shares: by CPU; by window and CPU; by disk. */
EMUD_ARRAY(emud_cpu_tables, 1, struct emud_table);
EMUD_ARRAY(emud_window_tables, 1, struct emud_table);
EMUD_ARRAY(emud_disk_tables, EMUD_DISKS, struct emud_table);

/* User settings of devices by name, the devices with emulated links, and the
 * block devices (dev_t) used for swap. */
EMUD_HASH(emud_netdev_rules, 64, struct emud_name, struct emud_netdev_rule);
EMUD_HASH(emud_disk_rules, 64, struct emud_name, __u64);
EMUD_HASH(emud_emulated, EMUD_EMULATED, struct emud_emulated, __u32);
EMUD_HASH(emud_swaps, 64, __u32, __u32);
EMUD_HASH(emud_pending, EMUD_PENDING, __u64, struct emud_pending);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20); /* set again at load */
} emud_ring SEC(".maps");

/* The verifier rejects arithmetic on a kernel address; a value read from a map
 * is a plain number. An interrupt may use the same scratch in between. */
#define EMUD_SCALAR_TRIES 4

static __always_inline __u64 emud_scalar(__u64 *scratch, const void *address)
{
	__u64 number = 0, seen;

	for (int n = 0; n < EMUD_SCALAR_TRIES; n++) {
		*(volatile __u64 *)scratch = (__u64)address;
		number = *(volatile __u64 *)scratch;
		seen = number;
		/* Or the compiler returns the address, which is equal. */
		asm volatile("" : "+r"(seen));
		if (likely(seen == (__u64)address))
			break;
	}
	return number;
}

/* Arguments of a tracepoint, as its prototype has them. */
typedef unsigned long long emud_args;

static __always_inline void emud_ran(enum emud_hook hook)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct emud_runs *runs = bpf_map_lookup_elem(&emud_runs, &cpu);

	if (runs)
		runs->of[hook]++;
}

static __always_inline struct emud_tx *emud_this_tx(__u32 cpu)
{
	return bpf_map_lookup_elem(&emud_txs, &cpu);
}

static __always_inline struct emud_counters *emud_counts(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&emud_counters, &zero);
}

#endif
