/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cpu: a CPU without idle for theta.
 *
 * A busy interval begins when the idle task is switched from and ends when it
 * is switched to (basis "task"), or when the CPU leaves and enters an idle
 * state (basis "idle", which counts softirqs on top of the idle task as busy).
 * Whether it has become too long is judged by the tick: a task that never
 * yields makes no switch (43 of them in 2 s were measured).
 *
 * A switch costs no clock. bpf_ktime_get_ns() takes 60 ns on the machine this
 * was measured on, more than all the rest: the run queue's clock is in
 * next->se.exec_start, which every scheduling class sets when it picks a task,
 * and the two clocks are compared anew when that comparison is older than
 * EMUD_PAIR_NS. What a task used is the growth of its sum_exec_runtime.
 */
#ifndef EMUD_MONITOR_CPU_H
#define EMUD_MONITOR_CPU_H

#include "alarm.h"
#include "group.h"

/* The run queue's clock leaves out time stolen and, on some kernels, that of
 * interrupts: so long may it be relied upon. */
#define EMUD_PAIR_NS 4000000ULL

static __always_inline struct emud_cpu *emud_this_cpu(__u32 cpu)
{
	return bpf_map_lookup_elem(&emud_cpus, &cpu);
}

static __always_inline __u64 emud_switch_time(struct emud_cpu *c,
					      const struct task_struct *next)
{
	__u64 rq = next->se.exec_start;

	if (rq - c->pair_rq >= EMUD_PAIR_NS) {
		c->pair_rq = rq;
		c->pair_mono = bpf_ktime_get_ns();
	}
	return c->pair_mono + (rq - c->pair_rq);
}

static __always_inline void emud_cpu_begin(struct emud_cpu *c, struct emud_table *table,
					   __u64 now)
{
	c->since = now;
	c->charged = 0;
	c->near = 0;
	table->interval = ++c->interval;
}

static __always_inline void emud_cpu_alarm(struct emud_cpu *c, struct emud_table *table,
					   __u32 cpu, __u64 now, enum emud_hook hook)
{
	struct emud_alarm alarm = {
		.kind = EMUD_RECORD_ALARM,
		.resource = EMUD_CPU,
		.now = now,
		.since = c->since,
		.value = now - c->since,
		.threshold = emud_config.cpu_theta_ns,
		.hook = hook,
		.what = cpu,
	};

	alarm.episode = emud_begin_episode(&c->episode, EMUD_CPU);
	if (!alarm.episode)
		return;
	emud_tell_table(table, alarm.episode);
	emud_tell(&alarm);
}

static __always_inline void emud_cpu_clear(struct emud_cpu *c, __u32 cpu, __u64 now,
					   enum emud_hook hook)
{
	struct emud_alarm clear = {
		.kind = EMUD_RECORD_CLEAR,
		.resource = EMUD_CPU,
		.now = now,
		.since = c->since,
		.until = now,
		.hook = hook,
		.what = cpu,
	};

	clear.episode = emud_end_episode(&c->episode);
	if (clear.episode)
		emud_tell(&clear);
}

static __always_inline void emud_cpu_end(struct emud_cpu *c, struct emud_table *table,
					 __u32 cpu, enum emud_hook hook)
{
	if (unlikely(c->near)) {
		__u64 now = bpf_ktime_get_ns();

		/* Theta was over between the last tick and now. */
		if (!c->episode && now - c->since >= emud_config.cpu_theta_ns)
			emud_cpu_alarm(c, table, cpu, now, hook);
		if (c->episode)
			emud_cpu_clear(c, cpu, now, hook);
	}
	c->since = 0;
}

/* What has run since the last switch, to whom it belongs. */
static __always_inline void emud_cpu_charge(struct emud_cpu *c, struct emud_table *table,
					    const struct task_struct *prev)
{
	__s64 used = prev->se.sum_exec_runtime - c->exec_start;
	struct emud_who who;

	if (c->running != (__u64)prev || used <= 0)
		return;
	who = emud_who_task(prev, &c->scratch);
	emud_charge(table, &who, EMUD_CPU, used);
	c->charged += used;
}

static __always_inline int emud_is_idle(const struct task_struct *task)
{
	return task->flags & PF_IDLE;
}

static __always_inline void emud_cpu_switch(const struct task_struct *prev,
					    const struct task_struct *next)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct emud_table *table = bpf_map_lookup_elem(&emud_cpu_tables, &cpu);
	struct emud_cpu *c = emud_this_cpu(cpu);

	if (!c || !table)
		return;
	if (emud_is_idle(prev)) {
		if (!emud_config.cpu_idle_basis)
			emud_cpu_begin(c, table, emud_switch_time(c, next));
	} else {
		emud_cpu_charge(c, table, prev);
	}
	if (emud_is_idle(next)) {
		if (!emud_config.cpu_idle_basis)
			emud_cpu_end(c, table, cpu, EMUD_HOOK_SWITCH);
		c->running = 0;
	} else {
		c->running = (__u64)next;
		c->exec_start = next->se.sum_exec_runtime;
	}
}

/* Basis "idle": state is that entered, or -1 when the CPU leaves it. */
static __always_inline void emud_cpu_idle_state(__u32 state)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct emud_table *table = bpf_map_lookup_elem(&emud_cpu_tables, &cpu);
	struct emud_cpu *c = emud_this_cpu(cpu);

	if (!c || !table)
		return;
	if (state == (__u32)-1)
		emud_cpu_begin(c, table, bpf_ktime_get_ns());
	else if (c->since)
		emud_cpu_end(c, table, cpu, EMUD_HOOK_IDLE);
}

/* Brings the table up to now: the task that runs is charged at its end only. */
static __always_inline void emud_cpu_settle(struct emud_cpu *c, struct emud_table *table,
					    const struct task_struct *current, __u64 now)
{
	__s64 open = now - c->since - c->charged;
	struct emud_who who;

	if (open <= 0)
		return;
	if (emud_is_idle(current))
		who = (struct emud_who){.key = EMUD_KEY_INTERRUPTS};
	else
		who = emud_who_task(current, &c->scratch);
	emud_charge(table, &who, EMUD_CPU, open);
	c->charged += open;
	c->exec_start += open;
}

static __always_inline void emud_cpu_tick(__u32 cpu, __u64 now)
{
	struct emud_table *table = bpf_map_lookup_elem(&emud_cpu_tables, &cpu);
	const struct task_struct *current = bpf_get_current_task_btf();
	struct emud_cpu *c = emud_this_cpu(cpu);

	if (!emud_config.cpu_theta_ns || !c || !table)
		return;
	if (!c->since) {
		/* Busy since before the monitor was there: known from now on. */
		if (!emud_is_idle(current))
			emud_cpu_begin(c, table, now);
		return;
	}
	if (now < c->since)
		return;
	c->near = now - c->since + 2 * emud_config.tick_ns >= emud_config.cpu_theta_ns;
	if (c->episode || now - c->since < emud_config.cpu_theta_ns)
		return;
	emud_cpu_settle(c, table, current, now);
	emud_cpu_alarm(c, table, cpu, now, EMUD_HOOK_TICK);
}

#endif
