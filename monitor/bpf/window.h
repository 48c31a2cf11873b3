/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * window: amounts in a sliding window.
 *
 * A CPU keeps its count local up to a quantum (1/64 of the threshold, on more than
 * 8 CPUs less: together they keep up to 1/8) and then reports it to the window,
 * with the time since when no part of it is older. A packet therefore costs no
 * clock read, no lock and no shared cache line, and only every quantum does. The window is the sum of the reported
 * amounts; near the threshold, the amounts that other CPUs have not reported
 * yet are added. An amount counts as old as its oldest part may be, so an alarm
 * is never early, and late by at most a quantum.
 */
#ifndef EMUD_MONITOR_WINDOW_H
#define EMUD_MONITOR_WINDOW_H

#include "alarm.h"
#include "group.h"

#define EMUD_CPUS_MAX 512

static __always_inline enum emud_resource emud_window_resource(__u32 w)
{
	return w == EMUD_WINDOW_PAGE_IN || w == EMUD_WINDOW_PAGE_OUT ? EMUD_MEMORY
								     : EMUD_NETWORK;
}

/* No context waits for a window: a CPU that finds it taken reports later. */
static __always_inline int emud_take(struct emud_window *window)
{
	return !__sync_lock_test_and_set(&window->lock, 1);
}

static __always_inline void emud_give(struct emud_window *window)
{
	__sync_lock_test_and_set(&window->lock, 0);
}

static __always_inline struct emud_table *emud_window_table(__u32 w, __u32 cpu)
{
	__u32 i = w * emud_config.cpus + cpu;

	return bpf_map_lookup_elem(&emud_window_tables, &i);
}

/* An amount that is younger than an entry by less than this joins it, and counts as old as
 * the entry: so EMUD_ENTRIES / 2 entries cover the window. */
#define EMUD_JOINED(window_ns) ((window_ns) / (EMUD_ENTRIES / 2))

/* Removes entries older than the edge. */
static __always_inline void emud_expire(struct emud_window *window, __u64 edge)
{
	for (__u32 n = 0; n < EMUD_ENTRIES; n++) {
		__u64 i = emud_bound(window->tail, EMUD_ENTRIES);

		if (window->tail == window->head || window->entries[i].since >= edge)
			break;
		window->sum -= window->entries[i].amount;
		window->tail++;
	}
}

/* How many entries back an amount may join: CPUs of different rates report amounts of different
 * ages in turn. */
#define EMUD_BACK 8

static __always_inline void emud_push(struct emud_window *window, __u64 since,
				      __u64 amount, __u64 joined_ns)
{
	__u64 used = window->head - window->tail;
	struct emud_entry *entry;

	window->sum += amount;
	for (__u32 back = 1; back <= EMUD_BACK && back <= used; back++) {
		entry = &window->entries[emud_bound(window->head - back, EMUD_ENTRIES)];
		if (since >= entry->since && since - entry->since < joined_ns) {
			entry->amount += amount;
			return;
		}
	}
	/* Full: it joins the last one, as old as the older of them. To drop the oldest one
	 * is to lose half a threshold with 64 CPUs. */
	if (used == EMUD_ENTRIES) {
		entry = &window->entries[emud_bound(window->head - 1, EMUD_ENTRIES)];
		if (since < entry->since)
			entry->since = since;
		entry->amount += amount;
		return;
	}
	entry = &window->entries[emud_bound(window->head, EMUD_ENTRIES)];
	entry->since = since;
	entry->amount = amount;
	window->head++;
}

/* The amount that other CPUs have sent within the window and not reported yet. */
static __always_inline __u64 emud_untold(__u32 w, __u32 self, __u64 edge)
{
	__u64 sum = 0;

	for (__u32 cpu = 0; cpu < EMUD_CPUS_MAX; cpu++) {
		struct emud_tx *tx;
		__u32 key = cpu;

		if (cpu >= emud_config.cpus)
			break;
		tx = bpf_map_lookup_elem(&emud_txs, &key);
		if (!tx || cpu == self)
			continue;
		if (tx->since[emud_bound(w, EMUD_WINDOWS)] >= edge)
			sum += tx->pending[emud_bound(w, EMUD_WINDOWS)];
	}
	return sum;
}

static __always_inline void emud_tell_window_tables(__u32 w, __u64 episode)
{
	for (__u32 cpu = 0; cpu < EMUD_CPUS_MAX; cpu++) {
		struct emud_table *table;

		if (cpu >= emud_config.cpus)
			break;
		table = emud_window_table(w, cpu);
		/* A CPU without a transmission has no share. */
		if (table && table->interval)
			emud_tell_table(table, episode);
	}
}

static __always_inline void emud_window_alarm(struct emud_window *window, __u32 w,
					      __u64 now, __u64 value, enum emud_hook hook)
{
	struct emud_alarm alarm = {
		.kind = EMUD_RECORD_ALARM,
		.resource = emud_window_resource(w),
		.now = now,
		.since = window->since,
		.value = value,
		.threshold = emud_config.threshold[emud_bound(w, EMUD_WINDOWS)],
		.hook = hook,
		.what = w,
		.a = window->ifindex,
		.b = window->netns,
	};

	alarm.episode = emud_begin_episode(&window->episode, alarm.resource);
	if (!alarm.episode)
		return;
	emud_tell_window_tables(w, alarm.episode);
	emud_tell_alarm(&alarm, &window->episode);
}

static __always_inline void emud_judge(struct emud_window *window, __u32 w, __u32 cpu,
				       __u64 now, __u64 edge, enum emud_hook hook)
{
	__u64 threshold = emud_config.threshold[emud_bound(w, EMUD_WINDOWS)];
	__u64 sum = window->sum;

	if (sum * 2 >= threshold)
		sum += emud_untold(w, cpu, edge);
	if (sum < threshold)
		return;
	window->over_ns = now;
	if (window->episode)
		return;
	window->since = window->entries[emud_bound(window->tail, EMUD_ENTRIES)].since;
	emud_window_alarm(window, w, now, sum, hook);
}

/*
 * A CPU reports its pending amount to a window; `amount` is the last part of
 * it.
 *
 * A separate function is verified once: inlined at every location that counts,
 * the verifier processed 68,000 instructions for the program of a packet.
 */
__noinline int emud_tell_window(__u32 w, __u32 cpu, __u64 amount, __u32 hook)
{
	__u64 i = emud_bound(w, EMUD_WINDOWS);
	struct emud_window *window = bpf_map_lookup_elem(&emud_windows, &w);
	struct emud_tx *tx = emud_this_tx(cpu);
	__u64 now, since, sent, edge;

	if (!window || !tx || !emud_take(window))
		return 0;
	now = bpf_ktime_get_ns();
	edge = now - emud_config.window_ns[i];
	emud_expire(window, edge);
	/* The amount had no earlier part: it is from now. */
	since = tx->pending[i] == amount ? now : tx->since[i];
	sent = tx->pending[i];
	/* Sent over such a long time that only the last part is surely in the window. */
	if (since < edge) {
		since = now;
		sent = amount;
	}
	emud_push(window, since, sent, EMUD_JOINED(emud_config.window_ns[i]));
	tx->pending[i] = 0;
	tx->since[i] = now;
	emud_judge(window, w, cpu, now, edge, hook);
	emud_give(window);
	return 0;
}

/* The table at its current interval; the clock is read once a jiffy. */
static __always_inline struct emud_table *emud_window_table_now(__u32 w, __u32 cpu)
{
	struct emud_table *table = emud_window_table(w, cpu);
	__u64 jiffies = bpf_jiffies64();

	if (table && unlikely(table->jiffies != jiffies)) {
		table->jiffies = jiffies;
		table->interval = bpf_ktime_get_ns() /
				  emud_config.window_ns[emud_bound(w, EMUD_WINDOWS)];
	}
	return table;
}

/* Adds to a group's share in a window. */
static __always_inline void emud_charge_window(__u32 w, __u32 cpu,
					       const struct emud_who *who, __u64 amount)
{
	struct emud_table *table = emud_window_table_now(w, cpu);

	if (table)
		emud_charge(table, who, emud_window_resource(w), amount);
}

/* The same for a group that already has a slot, without its identity. */
static __always_inline void emud_charge_known(__u32 w, __u32 cpu, __u64 group,
					      __u64 amount)
{
	struct emud_table *table = emud_window_table_now(w, cpu);

	if (table)
		emud_charge_slot(table, emud_slot_of(table, group), amount);
}

/* Counts an amount without a group. */
static __always_inline void emud_count(struct emud_tx *tx, __u32 w, __u32 cpu,
				       __u64 amount, enum emud_hook hook)
{
	__u64 i = emud_bound(w, EMUD_WINDOWS);

	tx->pending[i] += amount;
	if (unlikely(tx->pending[i] >= emud_config.quantum[i]))
		emud_tell_window(w, cpu, amount, hook);
}

/* Signed: another CPU may have reached the threshold after this one read the clock. */
static __always_inline int emud_quiet(const struct emud_window *window, __u64 now,
				      __u64 window_ns)
{
	return (__s64)(now - *(volatile __u64 *)&window->over_ns) >= (__s64)window_ns;
}

/* An episode ends when the threshold was not reached for one window. */
static __always_inline void emud_window_tick(__u32 w, __u64 now)
{
	__u64 window_ns = emud_config.window_ns[w];
	struct emud_window *window = bpf_map_lookup_elem(&emud_windows, &w);
	struct emud_alarm clear = {
		.kind = EMUD_RECORD_CLEAR,
		.resource = emud_window_resource(w),
		.now = now,
		.hook = EMUD_HOOK_TICK,
		.what = w,
	};

	if (!window || likely(!window->episode) || !emud_quiet(window, now, window_ns) ||
	    !emud_take(window))
		return;
	clear.since = window->since;
	clear.until = window->over_ns;
	clear.a = window->ifindex;
	clear.b = window->netns;
	if (emud_quiet(window, now, window_ns))
		clear.episode = emud_end_episode(&window->episode);
	if (clear.episode)
		emud_tell(&clear);
	emud_give(window);
}

static __always_inline void emud_windows_tick(__u64 now)
{
	for (__u32 w = 0; w < EMUD_WINDOWS; w++) {
		if (w >= emud_config.windows)
			break;
		if (emud_config.threshold[w])
			emud_window_tick(w, now);
	}
}

#endif
