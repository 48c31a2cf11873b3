/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cpu: a CPU without idle for theta.
 *
 * A busy interval begins when the idle task is switched out and ends when it is
 * switched in (basis "task"), or when the CPU leaves and enters an idle state
 * (basis "idle", which counts softirqs on top of the idle task as busy). The
 * tick checks whether an interval is too long: a task that never yields makes
 * no switch (43 of them in 2 s were measured).
 *
 * A switch costs no clock read. bpf_ktime_get_ns() takes 60 ns on the machine
 * where this was measured, more than the rest of the program: the run queue's
 * clock is in next->se.exec_start, which every scheduling class sets when it
 * picks a task, and the two clocks are compared again when the last comparison
 * is older than EMUD_PAIR_NS. Nor does a switch within a group cost a table
 * access: a group is charged when a different group takes over, or when its
 * share is read.
 */
#ifndef EMUD_MONITOR_CPU_H
#define EMUD_MONITOR_CPU_H

#include "alarm.h"
#include "group.h"

const volatile __u64 emud_cpu_theta_ns = 0; /* 0: the criterion is off */
const volatile __u64 emud_cpu_idle_basis = 0; /* 0: the idle task */

/* The run queue's clock excludes stolen time and, on some kernels, the time of
 * interrupts: a comparison is valid for this long, and until the next tick.
 * After stolen time, a tick is due before anything else runs. */
#define EMUD_PAIR_NS 4000000ULL

static __always_inline struct emud_cpu *emud_this_cpu(__u32 cpu)
{
	return bpf_map_lookup_elem(&emud_cpus, &cpu);
}

static __always_inline __u64 emud_mono(const struct emud_cpu *c, __u64 rq)
{
	return c->pair_mono + (rq - c->pair_rq);
}

/* The next switch compares the clocks again; the difference stays until then. */
static __always_inline void emud_pair_expires(struct emud_cpu *c)
{
	if (!c->pair_mono)
		return;
	c->pair_mono -= EMUD_PAIR_NS;
	c->pair_rq -= EMUD_PAIR_NS;
}

/* There may be no tick within theta. */
static __always_inline int emud_cpu_is_short(void)
{
	return emud_cpu_theta_ns <= emud_config.tick_ns;
}

static __always_inline __u64 emud_switch_time(struct emud_cpu *c, __u64 rq, int exact)
{
	if (exact || rq - c->pair_rq >= EMUD_PAIR_NS) {
		c->pair_rq = rq;
		c->pair_mono = bpf_ktime_get_ns();
	}
	return emud_mono(c, rq);
}

static __always_inline void emud_cpu_begin(struct emud_cpu *c, __u64 now, __u64 rq,
					   __u64 group)
{
	c->since = likely((__s64)(now - c->idle) >= 0) ? now : c->idle;
	c->near = emud_cpu_is_short();
	c->interval++;
	c->group = group;
	c->group_rq = rq;
}

/* Charges a group for the time since it took over. */
static __always_inline void emud_cpu_charge(struct emud_cpu *c, __u32 cpu,
					    const struct emud_who *who, __u64 rq)
{
	struct emud_table *table = bpf_map_lookup_elem(&emud_cpu_tables, &cpu);
	__s64 used = rq - c->group_rq;

	if (!table)
		return;
	table->interval = c->interval;
	if (c->group_rq && used > 0)
		emud_charge(table, who, EMUD_CPU, used);
	c->group_rq = rq;
}

static __always_inline void emud_cpu_alarm(struct emud_cpu *c, __u32 cpu, __u64 now,
					   enum emud_hook hook)
{
	struct emud_table *table = bpf_map_lookup_elem(&emud_cpu_tables, &cpu);
	struct emud_alarm alarm = {
		.kind = EMUD_RECORD_ALARM,
		.resource = EMUD_CPU,
		.now = now,
		.since = c->since,
		.value = now - c->since,
		.threshold = emud_cpu_theta_ns,
		.hook = hook,
		.what = cpu,
	};

	alarm.episode = emud_begin_episode(&c->episode, EMUD_CPU);
	if (!alarm.episode || !table)
		return;
	emud_tell_table(table, alarm.episode);
	emud_tell_alarm(&alarm, &c->episode);
}

/* The shares of the alarm are those of the first theta: another group may have
 * kept the CPU since. */
static __always_inline void emud_cpu_clear(struct emud_cpu *c, __u32 cpu, __u64 now,
					   enum emud_hook hook)
{
	struct emud_table *table = bpf_map_lookup_elem(&emud_cpu_tables, &cpu);
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
	if (!clear.episode || !table)
		return;
	emud_tell_table(table, clear.episode);
	emud_tell(&clear);
}

static __always_inline int emud_is_idle(const struct task_struct *task)
{
	return task->flags & PF_IDLE;
}

/* Basis "idle": what runs on top of the idle task is interrupts. */
static __always_inline struct emud_who emud_who_runs(const struct task_struct *task,
						     __u64 *scratch)
{
	if (emud_is_idle(task))
		return (struct emud_who){.key = EMUD_KEY_INTERRUPTS};
	return emud_who_task(task, scratch);
}

/* Who has run since the group took over: do_exit() takes the namespaces of a task before
 * its last switch. */
static __always_inline struct emud_who emud_who_ran(struct emud_cpu *c,
						    const struct task_struct *task)
{
	struct emud_who who = emud_who_runs(task, &c->scratch);

	if (unlikely(who.key == EMUD_KEY_EXITING && c->group > EMUD_KEY_EXITING))
		who.key = who.net = c->group;
	return who;
}

/* Charges the running group, which would otherwise be charged only at its end. */
static __always_inline void emud_cpu_settle(struct emud_cpu *c, __u32 cpu,
					    const struct task_struct *current, __u64 now)
{
	struct emud_who who = emud_who_ran(c, current);

	emud_cpu_charge(c, cpu, &who, c->pair_rq + (now - c->pair_mono));
}

/* The CPU goes idle; `task` has run until now. */
static __always_inline void emud_cpu_end(struct emud_cpu *c, __u32 cpu,
					 const struct task_struct *task,
					 enum emud_hook hook)
{
	if (unlikely(c->near)) {
		__u64 now = bpf_ktime_get_ns();

		c->idle = now;
		/* Theta may have elapsed between the last tick and now. */
		if (c->episode || now - c->since >= emud_cpu_theta_ns) {
			emud_cpu_settle(c, cpu, task, now);
			if (!c->episode)
				emud_cpu_alarm(c, cpu, now, hook);
			emud_cpu_clear(c, cpu, now, hook);
		}
	}
	c->since = 0;
}

/* A group that differs from the running one takes over. */
static __always_inline void
emud_cpu_turn(struct emud_cpu *c, const struct task_struct *prev, __u64 group, __u64 rq)
{
	struct emud_who who = emud_who_ran(c, prev);

	/* Interrupts take the two clocks apart, during a long interval by seconds. */
	emud_switch_time(c, rq, 0);
	emud_cpu_charge(c, bpf_get_smp_processor_id(), &who, rq);
	c->group = group;
	c->group_rq = rq;
}

/* The kernel does not report every switch: on a 6.18 machine, the last switch
 * of one thread was missing, from the kernel's own trace as well as here; the
 * CPU, idle since then, raised an alarm every few minutes. The end of such an
 * interval is when the CPU is next seen idle: at a tick, or when it leaves idle. */
static __always_inline void emud_cpu_untold_end(struct emud_cpu *c, __u32 cpu, __u64 now,
						enum emud_hook hook)
{
	if (c->episode)
		emud_cpu_clear(c, cpu, now, hook);
	c->since = 0;
}

static __always_inline void emud_cpu_switch(const struct task_struct *prev,
					    const struct task_struct *next)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct emud_cpu *c = emud_this_cpu(cpu);
	__u64 group;

	if (!c)
		return;
	if (emud_is_idle(next)) {
		if (!emud_cpu_idle_basis)
			emud_cpu_end(c, cpu, prev, EMUD_HOOK_SWITCH);
		else
			emud_cpu_turn(c, prev, EMUD_KEY_INTERRUPTS, prev->se.exec_start);
		return;
	}
	group = emud_group_of(next, &c->scratch);
	if (emud_is_idle(prev)) {
		__u64 rq = next->se.exec_start;
		__u64 now = emud_switch_time(c, rq, emud_cpu_is_short());

		if (emud_cpu_idle_basis) {
			emud_cpu_turn(c, prev, group, rq);
			return;
		}
		if (unlikely(c->episode))
			emud_cpu_untold_end(c, cpu, now, EMUD_HOOK_SWITCH);
		emud_cpu_begin(c, now, rq, group);
	} else if (group != c->group || emud_config.group_by == EMUD_BY_COMMAND) {
		/* Threads begin with their parent's command, and exec and they
		 * themselves change it: 400 of them were one group, and the
		 * last one had the time of all. */
		emud_cpu_turn(c, prev, group, next->se.exec_start);
	}
}

/* Basis "idle": state is the one entered, or -1 when the CPU leaves idle. */
static __always_inline void emud_cpu_idle_state(__u32 state)
{
	const struct task_struct *task = bpf_get_current_task_btf();
	__u32 cpu = bpf_get_smp_processor_id();
	struct emud_cpu *c = emud_this_cpu(cpu);
	__u64 now;

	if (!c)
		return;
	if (state != (__u32)-1) {
		if (c->since)
			emud_cpu_end(c, cpu, task, EMUD_HOOK_IDLE);
		return;
	}
	now = bpf_ktime_get_ns();
	/* The run queue's clock is unknown until the next switch to a task:
	 * assume that it advanced as the other clock did. */
	emud_cpu_begin(c, now, c->pair_mono ? c->pair_rq + (now - c->pair_mono) : 0,
		       EMUD_KEY_INTERRUPTS);
}

static __always_inline void emud_cpu_tick(__u32 cpu, __u64 now)
{
	__u32 zero = 0;
	const __u64 *armed = bpf_map_lookup_elem(&emud_armed, &zero);
	const struct task_struct *current = bpf_get_current_task_btf();
	struct emud_cpu *c = emud_this_cpu(cpu);

	if (!emud_cpu_theta_ns || !c || !armed || !*armed)
		return;
	emud_pair_expires(c);
	/* Loading the monitor took up to 0.4 s of a slow CPU, which is not load
	 * of the host. */
	if (c->since && c->since < *armed)
		c->since = *armed;
	if (!emud_cpu_idle_basis && emud_is_idle(current)) {
		c->idle = now;
		emud_cpu_untold_end(c, cpu, now, EMUD_HOOK_TICK);
		return;
	}
	if (!c->since) {
		/* Busy since before the monitor started: the interval counts
		 * from now. */
		if (!emud_is_idle(current)) {
			c->pair_mono = now;
			c->pair_rq = current->se.exec_start;
			emud_cpu_begin(c, now, c->pair_rq,
				       emud_group_of(current, &c->scratch));
		}
		return;
	}
	if (now < c->since)
		return;
	c->near = now - c->since + 2 * emud_config.tick_ns >= emud_cpu_theta_ns;
	if (now - c->since < emud_cpu_theta_ns)
		return;
	/* Also during an episode: a run may end before it. */
	emud_cpu_settle(c, cpu, current, now);
	if (!c->episode)
		emud_cpu_alarm(c, cpu, now, EMUD_HOOK_TICK);
}

SEC("tp_btf/sched_switch")
int emud_switch(emud_args *args)
{
	emud_ran(EMUD_HOOK_SWITCH);
	emud_cpu_switch((void *)args[1], (void *)args[2]);
	return 0;
}

SEC("tp_btf/cpu_idle")
int emud_idle(emud_args *args)
{
	emud_ran(EMUD_HOOK_IDLE);
	emud_cpu_idle_state(args[0]);
	return 0;
}

#endif
