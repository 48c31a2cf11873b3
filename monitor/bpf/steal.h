/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * steal: time that the hypervisor took from a CPU of this guest.
 *
 * While the hypervisor takes time, the guest has no event. A timer on every CPU
 * reads how much time the kernel has accounted as stolen: the run queue has
 * this to the ns, updated with every scheduler tick, and /proc/stat prints the
 * same amount. (kernel_cpustat itself cannot be read: a per-CPU variable has no
 * address in kallsyms without CONFIG_KALLSYMS_ALL.) A kernel without
 * CONFIG_PARAVIRT has no such member, and the kernel rejects the program.
 */
#ifndef EMUD_MONITOR_STEAL_H
#define EMUD_MONITOR_STEAL_H

#include "alarm.h"

const volatile __u64 emud_steal_window_ns = 0;
const volatile __u64 emud_steal_threshold_ns = 0; /* of a window */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct rq___steal {
	__u64 prev_steal_time;
};

struct cfs_rq___steal {
	struct rq___steal *rq;
};

struct sched_entity___steal {
	struct cfs_rq___steal *cfs_rq;
};

struct task_struct___steal {
	struct sched_entity___steal se;
};

#pragma clang attribute pop

/* The stolen time until a moment. */
struct emud_steal_step {
	__u64 at;
	__u64 stolen;
};

#define EMUD_STEAL_STEPS 64
struct emud_steal {
	__u64 episode;
	__u64 since; /* start of the window in which the threshold was first reached */
	__u64 over_ns; /* when it was last reached */
	__u64 head;
	__u64 tail;
	struct emud_steal_step steps[EMUD_STEAL_STEPS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct emud_steal);
} emud_steals SEC(".maps");

static __always_inline struct emud_steal_step *emud_steal_step(struct emud_steal *s,
							       __u64 n)
{
	return &s->steps[emud_bound(n, EMUD_STEAL_STEPS)];
}

/* Every task points to the queue of fair tasks of the CPU that it runs on. */
static __always_inline __u64 emud_stolen(void)
{
	struct task_struct___steal *task = (void *)bpf_get_current_task();

	return BPF_CORE_READ(task, se.cfs_rq, rq, prev_steal_time);
}

/* Removes steps older than a window, except the last one: after an absence
 * longer than a window it is the only known value from before. */
static __always_inline void emud_steal_expire(struct emud_steal *s, __u64 now)
{
	for (__u32 n = 0; n < EMUD_STEAL_STEPS; n++) {
		if (s->head - s->tail <= 1 ||
		    now - emud_steal_step(s, s->tail)->at <= emud_steal_window_ns)
			break;
		s->tail++;
	}
}

/* The maximum number of steps in a window. */
static __always_inline void emud_steal_note(struct emud_steal *s, __u64 now, __u64 stolen)
{
	__u64 least = emud_steal_window_ns / (EMUD_STEAL_STEPS - 1);

	if (s->head != s->tail && now - emud_steal_step(s, s->head - 1)->at < least)
		return;
	if (s->head - s->tail == EMUD_STEAL_STEPS)
		s->tail++;
	*emud_steal_step(s, s->head) = (struct emud_steal_step){now, stolen};
	s->head++;
}

static __always_inline void emud_steal_alarm(struct emud_steal *s, __u32 cpu, __u64 now,
					     __u64 value)
{
	struct emud_alarm alarm = {
		.kind = EMUD_RECORD_ALARM,
		.resource = EMUD_STEAL,
		.now = now,
		.since = s->since,
		.value = value,
		.threshold = emud_steal_threshold_ns,
		.hook = EMUD_HOOK_STEAL,
		.what = cpu,
	};

	alarm.episode = emud_begin_episode(&s->episode, EMUD_STEAL);
	if (alarm.episode)
		emud_tell_alarm(&alarm, &s->episode);
}

static __always_inline void emud_steal_clear(struct emud_steal *s, __u32 cpu, __u64 now)
{
	struct emud_alarm clear = {
		.kind = EMUD_RECORD_CLEAR,
		.resource = EMUD_STEAL,
		.now = now,
		.since = s->since,
		.until = s->over_ns,
		.hook = EMUD_HOOK_STEAL,
		.what = cpu,
	};

	clear.episode = emud_end_episode(&s->episode);
	if (clear.episode)
		emud_tell(&clear);
}

SEC("perf_event")
int emud_steal(void *ctx)
{
	__u32 zero = 0, cpu = bpf_get_smp_processor_id();
	struct emud_steal *s = bpf_map_lookup_elem(&emud_steals, &zero);
	__u64 now = bpf_ktime_get_ns(), stolen = emud_stolen(), value = 0;

	emud_ran(EMUD_HOOK_STEAL);
	if (!s)
		return 0;
	emud_steal_expire(s, now);
	if (s->head != s->tail)
		value = stolen - emud_steal_step(s, s->tail)->stolen;
	/* A CPU that comes online starts again. */
	if ((__s64)value < 0) {
		s->tail = s->head;
		value = 0;
	}
	if (value >= emud_steal_threshold_ns) {
		s->over_ns = now;
		if (!s->episode) {
			s->since = emud_steal_step(s, s->tail)->at;
			emud_steal_alarm(s, cpu, now, value);
		}
	} else if (s->episode && now - s->over_ns >= emud_steal_window_ns) {
		emud_steal_clear(s, cpu, now);
	}
	emud_steal_note(s, now, stolen);
	return 0;
}

#endif
