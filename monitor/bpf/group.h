/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * group: attribution of load.
 *
 * A group is identified by a key that takes few reads (the address of a network
 * namespace or of a css_set, or eight bytes and eight bytes of a command), and
 * gets its name with its first slot of a table. A slot stores the number of its
 * interval: a new interval costs nothing, and old slots are reset when they are
 * next used.
 *
 * A group that finds no free slot takes that of the group that ranks last, whose
 * amount is added to "elsewhere", and ranks as that one did plus its own amount
 * ("Space-Saving", Metwally et al. 2005): however many short programs were
 * first, a group with a large amount keeps a slot. A share is a lower bound, by
 * what the group had used when it lost a slot.
 */
#ifndef EMUD_MONITOR_GROUP_H
#define EMUD_MONITOR_GROUP_H

#include "maps.h"

#define EMUD_PROBES 4

struct emud_who {
	__u64 key;
	__u64 task; /* addresses; 0: unknown */
	__u64 net;
	__u64 cgroup;
};

/* Any user can give a task an empty name, or one whose key would be that of no group. */
static __always_inline __u64 emud_command_key(const struct task_struct *task)
{
	__u64 key = (*(const __u64 *)&task->comm[0] * 0x9e3779b97f4a7c15ULL) ^
		    *(const __u64 *)&task->comm[8];

	return key > EMUD_KEY_EXITING ? key : key + EMUD_KEY_EXITING + 1;
}

/* The key of a task's group. */
static __always_inline __u64 emud_group_of(const struct task_struct *task, __u64 *scratch)
{
	const struct nsproxy *nsproxy;

	switch (emud_config.group_by) {
	case EMUD_BY_NETNS:
		nsproxy = task->nsproxy;
		return nsproxy ? emud_scalar(scratch, nsproxy->net_ns) : EMUD_KEY_EXITING;
	case EMUD_BY_CGROUP:
		return emud_scalar(scratch, task->cgroups);
	default:
		return emud_command_key(task);
	}
}

static __always_inline struct emud_who emud_who_task(const struct task_struct *task,
						     __u64 *scratch)
{
	__u64 key = emud_group_of(task, scratch);

	return (struct emud_who){
		.key = key,
		.task = (__u64)task,
		.net = emud_config.group_by == EMUD_BY_NETNS ? key : 0,
	};
}

static __always_inline int emud_level(__u64 cgroup)
{
	return cgroup ? BPF_CORE_READ((struct cgroup *)cgroup, level) : 0;
}

static __always_inline __u64 emud_v1_cgroup(__u64 css_set, __u32 subsystem)
{
	struct css_set *set = (struct css_set *)css_set;
	struct cgroup_subsys_state *css = NULL;

	bpf_core_read(&css, sizeof(css), &set->subsys[subsystem]);
	return css ? (__u64)BPF_CORE_READ(css, cgroup) : 0;
}

/*
 * On a v2 host, the cgroup of the unified hierarchy. With v1 or hybrid
 * hierarchies that one may be empty (every task in its root): then the cgroup
 * of the resource's controller, or of another controller if it is not the root.
 */
static __always_inline __u64 emud_task_cgroup(__u64 task, enum emud_resource resource)
{
	__u64 css_set = (__u64)BPF_CORE_READ((struct task_struct *)task, cgroups);
	__u64 unified, cgroup;
	__u32 own;

	unified = (__u64)BPF_CORE_READ((struct css_set *)css_set, dfl_cgrp);
	if (emud_level(unified) > 0)
		return unified;
	own = resource == EMUD_MEMORY
		      ? bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id)
	      : resource == EMUD_DISK
		      ? bpf_core_enum_value(enum cgroup_subsys_id, io_cgrp_id)
		      : bpf_core_enum_value(enum cgroup_subsys_id, cpu_cgrp_id);
	cgroup = emud_v1_cgroup(css_set, own);
	if (emud_level(cgroup) > 0)
		return cgroup;
	for (__u32 i = 0; i < 16; i++) {
		if (i >= bpf_core_enum_value(enum cgroup_subsys_id, CGROUP_SUBSYS_COUNT))
			break;
		cgroup = emud_v1_cgroup(css_set, i);
		if (emud_level(cgroup) > 0)
			return cgroup;
	}
	return unified;
}

/* Keeps the name of a group that has not changed. */
static __always_inline void emud_name_group(struct emud_slot *slot,
					    const struct emud_who *who,
					    enum emud_resource resource)
{
	__u64 id = 0;
	/* Outside the macros, which would relocate the members of emud_who, too. */
	struct task_struct *task = (struct task_struct *)who->task;
	struct net *net = (struct net *)who->net;
	struct cgroup *cgroup = (struct cgroup *)who->cgroup;

	if (who->key <= EMUD_KEY_EXITING)
		return;
	switch (emud_config.group_by) {
	case EMUD_BY_NETNS:
		slot->id = BPF_CORE_READ(net, ns.inum);
		break;
	case EMUD_BY_CGROUP:
		if (!cgroup)
			cgroup = (void *)emud_task_cgroup(who->task, resource);
		id = BPF_CORE_READ(cgroup, kn, id);
		if (id == slot->id)
			break;
		slot->id = id;
		slot->hierarchy = BPF_CORE_READ(cgroup, root, hierarchy_id);
		bpf_probe_read_kernel_str(slot->name, sizeof(slot->name),
					  BPF_CORE_READ(cgroup, kn, name));
		break;
	default:
		BPF_CORE_READ_STR_INTO(&slot->name, task, comm);
	}
}

/* Low bits of the result select a slot. The product's bit n depends on bits 0 to
 * n of the key only: commands that differ in their seventh and eighth byte, that
 * is in the key's top 16 bits, had four slots together before these were folded. */
static __always_inline __u64 emud_hash(__u64 key)
{
	key ^= key >> 32;
	return (key * 0x9e3779b97f4a7c15ULL) >> 32;
}

static __always_inline void emud_charge_elsewhere(struct emud_table *table, __u64 amount)
{
	if (table->elsewhere_interval != table->interval) {
		table->elsewhere_prior = table->interval - table->elsewhere_interval == 1
						 ? table->elsewhere
						 : 0;
		table->elsewhere_interval = table->interval;
		table->elsewhere = 0;
	}
	table->elsewhere += amount;
}

/* A sliding window still uses the previous interval. */
static __always_inline __u32 emud_kept(enum emud_resource resource)
{
	return resource == EMUD_CPU || resource == EMUD_DISK ? 0 : 1;
}

/* What counts of a slot: an interval of the CPU or the disk is judged alone. */
static __always_inline __u64 emud_counted(const struct emud_slot *slot,
					  enum emud_resource resource)
{
	return emud_kept(resource) ? slot->amount + slot->prior : slot->amount;
}

/* Not on the usual path: the group has no slot in this table yet. */
static __always_inline struct emud_slot *emud_new_slot(struct emud_table *table,
						       const struct emud_who *who,
						       enum emud_resource resource)
{
	struct emud_slot *last = NULL;
	__u64 rank = ~0ULL;

	for (__u32 n = 0; n < EMUD_PROBES; n++) {
		__u64 i = emud_bound(emud_hash(who->key) + n, EMUD_SLOTS);
		struct emud_slot *slot = &table->slots[i];
		__u64 its;

		if (!slot->key ||
		    table->interval - slot->interval > emud_kept(resource)) {
			last = slot;
			rank = 0;
			slot->amount = 0;
			slot->prior = 0;
			break;
		}
		its = slot->base + emud_counted(slot, resource);
		if (its < rank) {
			last = slot;
			rank = its;
		}
	}
	if (!last)
		return NULL;
	emud_charge_elsewhere(table, emud_counted(last, resource));
	last->key = who->key;
	last->base = rank;
	last->amount = 0;
	last->prior = 0;
	last->interval = table->interval;
	last->id = 0;
	last->hierarchy = 0;
	last->name[0] = 0;
	last->named = table->interval - 1;
	return last;
}

static __always_inline struct emud_slot *emud_slot_of(struct emud_table *table, __u64 key)
{
	for (__u32 n = 0; n < EMUD_PROBES; n++) {
		__u64 i = emud_bound(emud_hash(key) + n, EMUD_SLOTS);

		if (table->slots[i].key == key)
			return &table->slots[i];
	}
	return NULL;
}

static __always_inline void emud_charge_slot(struct emud_table *table,
					     struct emud_slot *slot, __u64 amount)
{
	if (unlikely(!slot)) {
		emud_charge_elsewhere(table, amount);
		return;
	}
	if (unlikely(slot->interval != table->interval)) {
		slot->prior = table->interval - slot->interval == 1 ? slot->amount : 0;
		slot->base = 0;
		slot->amount = 0;
		slot->interval = table->interval;
	}
	slot->amount += amount;
}

/* A command is its key. */
static __always_inline int emud_is_named(const struct emud_table *table,
					 const struct emud_slot *slot)
{
	return emud_config.group_by == EMUD_BY_COMMAND
		       ? slot->name[0]
		       : slot->named == (__u16)table->interval;
}

/* Once an interval: the kernel may use the address of a group that has ended for
 * a new one. A namespace takes one read of the kernel's memory, a cgroup of the
 * unified hierarchy five. */
static __always_inline void emud_identify(struct emud_table *table,
					  struct emud_slot *slot,
					  const struct emud_who *who,
					  enum emud_resource resource)
{
	__u64 id = slot->id;

	emud_name_group(slot, who, resource);
	slot->named = table->interval;
	if (!id || id == slot->id)
		return;
	if (table->interval - slot->interval <= emud_kept(resource))
		emud_charge_elsewhere(table, emud_counted(slot, resource));
	slot->amount = 0;
	slot->prior = 0;
}

/* Adds to a group's share in the current interval of the table. */
static __always_inline void emud_charge(struct emud_table *table,
					const struct emud_who *who,
					enum emud_resource resource, __u64 amount)
{
	struct emud_slot *slot = emud_slot_of(table, who->key);

	if (unlikely(!slot))
		slot = emud_new_slot(table, who, resource);
	if (slot && unlikely(!emud_is_named(table, slot)))
		emud_identify(table, slot, who, resource);
	emud_charge_slot(table, slot, amount);
}

#endif
