// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The contention monitor inside the kernel.
 *
 * Theory of operation
 *
 * Programs on tracepoints keep, per criterion, how long a thing has been busy
 * or how much passed in a sliding window, and judge it there and then: nothing
 * is sampled, and user space learns of alarms only. One header a criterion:
 *
 *	cpu network memory disk emulator steal	-> (group: whose) -> alarm
 *
 * What has no event of its own (a task that never yields, a device that is
 * stuck, a rate that has fallen) is seen by the tick, a timer on every CPU.
 * A criterion's programs are at the end of its header.
 *
 * Programs of this object are alternatives of one another: the loader tries
 * the hooks of a criterion in order and keeps the first that holds. Each is
 * verified alone, so a structure that one of them needs and a kernel lacks
 * costs that one only.
 */
#include "maps.h"
#include "group.h"
#include "alarm.h"
#include "cpu.h"
#include "network.h"
#include "memory.h"
#include "disk.h"
#include "emulator.h"
#include "steal.h"

/* One CPU ticks more often, for the sake of devices that are stuck. */
static __always_inline void emud_tick_now(void)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct emud_tx *tx = emud_this_tx(cpu);
	__u64 now = bpf_ktime_get_ns();

	emud_disks_tick(now);
	if (!tx || now - tx->ticked < emud_config.tick_ns - emud_config.tick_ns / 8)
		return;
	tx->ticked = now;
	emud_cpu_tick(cpu, now);
	emud_windows_tick(now);
	emud_fault_tick(EMUD_LATE, now);
	emud_fault_tick(EMUD_DROPPED, now);
}

SEC("perf_event")
int emud_tick(void *ctx)
{
	emud_ran(EMUD_HOOK_TICK);
	emud_tick_now();
	return 0;
}

/* Where a timer is refused: on a busy CPU this comes with every scheduler tick,
 * and with every switch besides, of which one a jiffy is enough. */
SEC("tp_btf/sched_stat_runtime")
int emud_tick_stat(emud_args *args)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct emud_tx *tx = emud_this_tx(cpu);
	__u64 jiffies = bpf_jiffies64();

	emud_ran(EMUD_HOOK_TICK);
	if (!tx || tx->jiffies == jiffies)
		return 0;
	tx->jiffies = jiffies;
	emud_tick_now();
	return 0;
}

/* What the mere call of a program costs. */
SEC("raw_tp/sched_switch")
int emud_empty(void *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
