/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The types that the monitor's programs share with the Rust side, for which
 * bindgen generates them. Times are ns of CLOCK_MONOTONIC.
 */
#ifndef EMUD_MONITOR_H
#define EMUD_MONITOR_H

#include <linux/types.h>

/* Order of emud_monitor::event::Resource. */
enum emud_resource {
	EMUD_CPU,
	EMUD_NETWORK,
	EMUD_MEMORY,
	EMUD_DISK,
	EMUD_APPLICATION,
	EMUD_EMULATOR,
	EMUD_STEAL,
	EMUD_RESOURCES,
};

enum emud_group_by {
	EMUD_BY_NETNS,
	EMUD_BY_CGROUP,
	EMUD_BY_COMMAND,
};

/* A hook of the kernel. Alternative programs, of which one is attached, share a
 * number. */
enum emud_hook {
	EMUD_HOOK_SWITCH,
	EMUD_HOOK_IDLE,
	EMUD_HOOK_TICK,
	EMUD_HOOK_XMIT,
	EMUD_HOOK_PAGE_IN,
	EMUD_HOOK_PAGE_OUT,
	EMUD_HOOK_DISK_START,
	EMUD_HOOK_DISK_END,
	EMUD_HOOK_DISK_MERGE,
	EMUD_HOOK_BIO_START,
	EMUD_HOOK_BIO_END,
	EMUD_HOOK_LATE,
	EMUD_HOOK_DROP,
	EMUD_HOOK_STEAL,
	EMUD_HOOKS,
};

/* Sliding windows. Windows of single network devices follow the fixed ones. */
enum emud_window_index {
	EMUD_WINDOW_EXTERNAL,
	EMUD_WINDOW_INTERNAL,
	EMUD_WINDOW_PAGE_IN,
	EMUD_WINDOW_PAGE_OUT,
	EMUD_WINDOW_DEVICES,
};
#define EMUD_WINDOWS 16
/* The window of a device whose packets are not counted. */
#define EMUD_WINDOW_NONE 0xff

/* Set once, before the programs are loaded, like the constants of each
 * criterion: the verifier removes the code of criteria that are off. */
struct emud_config {
	__u64 tick_ns; /* the longest time between two ticks of a CPU */
	__u64 window_ns[EMUD_WINDOWS];
	__u64 threshold[EMUD_WINDOWS]; /* bytes, pages; 0: not watched */
	__u64 quantum[EMUD_WINDOWS]; /* what a CPU may keep before it reports */
	__u64 limit; /* alarms a resource */
	__u32 cpus; /* possible CPUs */
	__u32 group_by; /* enum emud_group_by */
	__u32 windows; /* in use: those of single devices are last */
	__u32 pad;
};

/* A group's share of a busy interval or window. */
#define EMUD_SLOTS 64
#define EMUD_NAME_LEN 32
/* Keys without a group: time on top of the idle task; a task that has released
 * its namespaces. */
#define EMUD_KEY_INTERRUPTS 1ULL
#define EMUD_KEY_EXITING 2ULL
struct emud_slot {
	__u64 key; /* identifies the group: a kernel address or a hash; 0: free */
	__u64 id; /* inode number of namespace or cgroup */
	__u64 amount; /* ns, bytes, pages in the interval */
	__u64 prior; /* the same in the previous interval */
	__u64 base; /* rank of the group that gave way to this one; 0: none did */
	__u32 interval;
	__u16 hierarchy; /* of the cgroup, as in /proc/cgroups */
	__u16 named; /* low bits of the interval in which the name was read */
	char name[EMUD_NAME_LEN]; /* command, or last component of the cgroup */
};

struct emud_table {
	__u64 episode; /* set only in records */
	__u32 kind; /* enum emud_record, the same */
	__u32 interval; /* the current one */
	__u64 elsewhere; /* amount of groups without a slot, */
	__u64 elsewhere_prior; /* in the interval before it */
	__u32 elsewhere_interval; /* in this interval */
	__u32 pad;
	__u64 jiffies; /* when the interval was last looked up */
	struct emud_slot slots[EMUD_SLOTS];
};

/* The state of one CPU. */
struct emud_cpu {
	__u64 since; /* busy without idle since; 0: idle */
	__u64 episode;
	/* The same moment in CLOCK_MONOTONIC and on the run queue's clock. */
	__u64 pair_mono;
	__u64 pair_rq;
	/* The running group, and when it started on the run queue's clock. */
	__u64 group;
	__u64 group_rq;
	__u64 scratch; /* see emud_scalar() */
	__u64 idle; /* last seen idle, where the clock was read anyway */
	__u32 near; /* theta ends before the tick after the next */
	__u32 interval;
};

/* A network device as one CPU has it cached. */
struct emud_dev {
	__u64 dev; /* address */
	__u64 net; /* address */
	__u32 ifindex;
	__u8 window; /* of its class, or EMUD_WINDOW_NONE */
	__u8 own; /* window of this device only, or EMUD_WINDOW_NONE */
	__u8 pad[2];
	__u64 group; /* the sender of these */
	__u32 uncharged; /* bytes that are not charged yet, */
	__u32 charge_bytes; /* fewer than these */
};

/* What one CPU transmitted since it last reported to the windows. */
#define EMUD_DEVS 64
struct emud_tx {
	__u64 pending[EMUD_WINDOWS];
	__u64 since[EMUD_WINDOWS]; /* no byte of pending is older */
	__u64 jiffies; /* of the last tick, if the tick is sched_stat_runtime */
	__u64 ticked; /* last complete tick of this CPU */
	__u64 scratch; /* see emud_scalar() */
	struct emud_dev devs[EMUD_DEVS];
};

/* Devices of one name in several network namespaces. */
#define EMUD_SEVERAL 0xffffffff

/* A sliding window: the amounts that CPUs reported to it. */
#define EMUD_ENTRIES 128
struct emud_entry {
	__u64 since; /* no part is older */
	__u64 amount;
};

struct emud_window {
	__u64 sum; /* of the entries from tail to head */
	__u64 over_ns; /* when the threshold was last reached */
	__u64 since; /* start of the window in which it was first reached */
	__u64 episode;
	__u32 lock;
	__u32 head;
	__u32 tail;
	__u32 ifindex; /* of a window of a single device */
	__u32 netns; /* or EMUD_SEVERAL */
	__u32 pad;
	struct emud_entry entries[EMUD_ENTRIES];
};

/* A block device. */
#define EMUD_DISKS 64
#define EMUD_DISK_NAME_LEN 32
struct emud_disk {
	__u64 disk; /* address of the gendisk; 0: free */
	__s64 inflight;
	__u64 since; /* never empty since; 0: empty */
	__u64 doubt; /* it may have been empty until then */
	__u64 swept; /* when pending requests were last checked in an episode */
	__u64 asked; /* the last request */
	__u64 theta_ns; /* 0: ignored */
	__u64 episode;
	__u32 interval;
	__u32 major;
	__u32 minor;
	__u32 pad;
	char name[EMUD_DISK_NAME_LEN];
};

/* A request or bio that has started and not ended, by its address. */
#define EMUD_PENDING 8192
struct emud_pending {
	__u32 slot; /* of its disk */
	__u32 is_bio;
};

/* The name of a device, the key of rules for its class or threshold. */
struct emud_name {
	char text[EMUD_DISK_NAME_LEN];
};

struct emud_netdev_rule {
	__u32 window; /* of its class, EMUD_WINDOW_NONE, or EMUD_GUESS */
	__u32 own; /* EMUD_WINDOW_NONE: none */
};
#define EMUD_GUESS 0xfe

/* A device with an emulated link, the key of its number. */
#define EMUD_EMULATED 4096
struct emud_emulated {
	__u32 netns;
	__u32 ifindex;
};

/* Failures of the emulator: late packets, dropped packets. */
enum emud_failure {
	EMUD_LATE,
	EMUD_DROPPED,
	EMUD_FAILURES,
};

/* Those of a device, by its number. */
#define EMUD_FAULTS (EMUD_EMULATED * EMUD_FAILURES)
struct emud_fault {
	__u64 episode;
	__u64 since;
	__u64 last_ns;
	__u64 count;
	__u32 ifindex;
	__u32 netns;
};

/* Records of the ring buffer. Tables precede the alarm they belong to. */
enum emud_record {
	EMUD_RECORD_TABLE,
	EMUD_RECORD_ALARM,
	EMUD_RECORD_CLEAR,
};

struct emud_alarm {
	__u64 episode;
	__u32 kind; /* enum emud_record: same offset as in emud_table */
	__u32 resource;
	__u64 now;
	__u64 since;
	__u64 until; /* end of the episode, in a clear */
	__u64 value;
	__u64 threshold;
	__u32 hook; /* enum emud_hook */
	__u32 what; /* CPU, window, disk slot, failure */
	__u32 a; /* ifindex, major */
	__u32 b; /* network namespace, minor */
	char name[EMUD_DISK_NAME_LEN];
};

/* Episodes beyond the limit: tracked in the kernel, not reported. */
#define EMUD_SILENT (1ULL << 63)

/* Runs of each program on a CPU: the kernel counts runs only while it times
 * them. */
struct emud_runs {
	__u64 of[EMUD_HOOKS];
} __attribute__((aligned(64)));

struct emud_counters {
	__u64 episodes;
	__u64 ring_full;
	__u64 suppressed[EMUD_RESOURCES];
	__u64 disks; /* slots in use, a bit each */
	__u64 disks_unknown; /* no room for the device, or for the request */
	__u64 faults; /* number of slots of emud_faults that have been used */
	__u64 failing; /* an episode of a late or dropped packet may be open */
};

#endif
