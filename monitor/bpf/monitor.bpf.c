// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The contention monitor inside the kernel.
 *
 * Theory of operation
 *
 * For each criterion, programs on tracepoints track how long a resource has
 * been busy or the amount in a sliding window, and judge it immediately:
 * nothing is sampled, and user space receives alarms only. One header per
 * criterion:
 *
 * 	cpu network memory disk emulator steal	-> group (attribution) -> alarm
 *
 * The tick, a timer on every CPU, detects what has no event (a task that never
 * yields, a stuck device, a rate that has fallen). A criterion's programs are
 * at the end of its header.
 *
 * Some programs of this object are alternatives: the loader tries the hooks of
 * a criterion in order and keeps the first one that works. Each program is
 * verified separately, so a structure that the running kernel lacks disables
 * only the program that needs it.
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

/* One CPU ticks more often, to detect stuck devices. */
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
	emud_faults_tick(now);
}

SEC("perf_event")
int emud_tick(void *ctx)
{
	emud_ran(EMUD_HOOK_TICK);
	emud_tick_now();
	return 0;
}

/* The fallback where the kernel rejects a timer: on a busy CPU this runs at
 * every scheduler tick, and at every switch; one run a jiffy is enough. */
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

/* Measures the cost of calling a program. */
SEC("raw_tp/sched_switch")
int emud_empty(void *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
