/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The monitor's programs on several CPUs, without a kernel: a CPU can be stopped at
 * every access to a map that others use, and at every call of a helper. All orders
 * with up to CHANGES changes from one CPU to another are tried. In each of them every
 * alarm is followed by its end.
 */
#include <ucontext.h>

#include "kernel.h"

/* What the loader sets is not constant here. */
#define const
#include "../../../monitor/bpf/maps.h"
#include "../../../monitor/bpf/disk.h"
#include "../../../monitor/bpf/emulator.h"
#include "../../../monitor/bpf/window.h"
#undef const

static struct task_struct task = {.comm = "load"};

#define MS 1000000ULL
#define CPUS 3
#ifndef CHANGES
#define CHANGES 2
#endif
#define THETA (60 * MS)
#define WINDOW (20 * MS)
#define THRESHOLD 1000
#define RECORDS 64

/* The kernel's side. */

static struct emud_disk disks[EMUD_DISKS];
static struct emud_table disk_tables[EMUD_DISKS];
static struct emud_tx txs[CPUS];
static struct emud_window windows[EMUD_WINDOWS];
static struct emud_table window_table;
static struct emud_fault faults[2 * EMUD_FAILURES];
static struct emud_counters counters;
static __u64 raised[8];
static struct gendisk disk = {.major = 7, .disk_name = "slow"};
static struct request_queue queue = {.disk = &disk};
static struct request rqs[1 + CPUS];
static struct net netns;
static struct net_device devs[] = {
	{.ifindex = 2, .nd_net = {&netns}, .name = "eth0"},
	{.ifindex = 3, .nd_net = {&netns}, .name = "eth1"},
};

/* Alarms and ends by number, negative: an end. */
static long long records[RECORDS];
static int recorded;

static void *lookup(const void *map, const void *key)
{
	static __u32 numbers[] = {0, 1};
	__u32 i = *(const __u32 *)key;

	step();
	return map == &emud_disks	    ? (void *)&disks[i]
	       : map == &emud_disk_tables   ? &disk_tables[i]
	       : map == &emud_txs	    ? &txs[i]
	       : map == &emud_windows	    ? &windows[i]
	       : map == &emud_window_tables ? &window_table
	       : map == &emud_faults	    ? &faults[i]
	       : map == &emud_counters	    ? &counters
	       : map == &emud_raised	    ? (void *)&raised[i]
	       : map == &emud_pending	    ? pending_of(*(const __u64 *)key)
	       : map == &emud_emulated
		       ? (void *)&numbers[((struct emud_emulated *)key)->ifindex == 3]
		       : NULL;
}

static long told(const void *record)
{
	const struct emud_alarm *alarm = record;

	step();
	if (alarm->kind != EMUD_RECORD_TABLE && recorded < RECORDS)
		records[recorded++] = alarm->kind == EMUD_RECORD_ALARM
					      ? (long long)alarm->episode
					      : -(long long)alarm->episode;
	step();
	return 0;
}

/* The programs. */

static void starts(struct request *rq)
{
	static struct bio data;

	*rq = (struct request){.q = &queue, .bio = &data};
	emud_request_start(rq);
}

/* The kernel has taken its bio, and releases it behind the program. */
static void ends(struct request *rq)
{
	rq->state = MQ_RQ_IDLE + 1;
	rq->bio = NULL;
	emud_request_end(rq);
	rq->state = MQ_RQ_IDLE;
}

static void request_starts(void)
{
	starts(&rqs[CPUS]);
}

static void request_ends(void)
{
	ends(&rqs[CPUS]);
}

static void short_request(void)
{
	struct request *rq = &rqs[cpu];

	starts(rq);
	ends(rq);
}

static void packet_is_late(void)
{
	struct sk_buff skb = {.tstamp = clock_ns - MS};

	emud_check_late(&skb, &devs[0]);
}

static void packet_of_another_is_late(void)
{
	struct sk_buff skb = {.tstamp = clock_ns - MS};

	emud_check_late(&skb, &devs[1]);
}

static void packets_are_sent(void)
{
	emud_count(&txs[cpu], EMUD_WINDOW_EXTERNAL, cpu, THRESHOLD, EMUD_HOOK_XMIT);
}

static void tick(void)
{
	__u64 now = bpf_ktime_get_ns();

	emud_disks_tick(now);
	emud_windows_tick(now);
	emud_faults_tick(now);
}

/* CPUs. */

static struct {
	ucontext_t context;
	char stack[1 << 16];
	int over;
} cpus[CPUS];
static ucontext_t orders;
static int within; /* the programs run on CPUs */
static int steps;
static struct {
	int step, to;
} changes[CHANGES];
static int changed;
static int useless; /* one of them changes nothing */

static void step(void)
{
	if (!within)
		return;
	for (int n = 0; n < changed; n++) {
		unsigned int from = cpu, to = changes[n].to;

		if (changes[n].step != steps)
			continue;
		if (to == from || cpus[to].over) {
			useless = 1;
			break;
		}
		steps++;
		cpu = to;
		swapcontext(&cpus[from].context, &cpus[to].context);
		return;
	}
	steps++;
}

#define SHARED(at, map) \
	((char *)(at) >= (char *)&(map) && (char *)(at) < (char *)(&(map) + 1))
__attribute__((no_sanitize("coverage"))) static void accessed(const void *at,
							      int is_load8)
{
	if (within && (SHARED(at, disks) || SHARED(at, windows) || SHARED(at, faults) ||
		       SHARED(at, counters)))
		step();
}

static void (*(*programs))(void);

static void run_cpu(void)
{
	programs[cpu]();
	cpus[cpu].over = 1;
}

/* The changes name the next CPU; one that is over is followed by the first that is not. */
static void run(void (*on[CPUS])(void))
{
	programs = on;
	for (int n = 0; n < CPUS; n++) {
		cpus[n].over = !on[n];
		getcontext(&cpus[n].context);
		cpus[n].context.uc_stack.ss_sp = cpus[n].stack;
		cpus[n].context.uc_stack.ss_size = sizeof(cpus[n].stack);
		cpus[n].context.uc_link = &orders;
		makecontext(&cpus[n].context, run_cpu, 0);
	}
	steps = 0;
	useless = 0;
	within = 1;
	for (;;) {
		for (cpu = 0; cpu < CPUS && cpus[cpu].over; cpu++)
			;
		if (cpu == CPUS)
			break;
		swapcontext(&orders, &cpus[cpu].context);
	}
	within = 0;
	cpu = 0;
}

/* Scenarios: what was before, what happens at the same time, and what is then judged. */

struct scenario {
	const char *name;
	__u64 limit;
	void (*before)(void);
	void (*on[CPUS])(void);
	void (*after)(void);
};

static void later(__u64 ns)
{
	clock_ns += ns;
}

static void idle_disk(void)
{
	short_request();
}

static void slow_request(void)
{
	request_starts();
	later(THETA);
}

/* The kernel does not report its end. */
static void slow_request_ended(void)
{
	slow_request();
	tick();
	rqs[CPUS].bio = NULL;
	later(2 * EMUD_SWEEP_NS);
}

static void late_for_long(void)
{
	packet_is_late();
	later(EMUD_FAULT_QUIET_NS);
}

static void sent_before(void)
{
	packets_are_sent();
	later(WINDOW);
}

/* It ends everything, and nothing begins; then another episode is noticed. */
static void again(void (*begins)(void), void (*ends)(void))
{
	int before;

	later(1000 * MS);
	tick();
	later(1000 * MS);
	tick();
	emud_config.limit = 1000;
	before = recorded;
	begins();
	tick();
	ends();
	later(1000 * MS);
	tick();
	if (recorded != before + 2)
		records[recorded++] = 0;
}

static void disk_again(void)
{
	again(slow_request, request_ends);
}

static void disk_ends_again(void)
{
	request_ends();
	disk_again();
}

static void nothing(void)
{
}

static void late_again(void)
{
	again(packet_is_late, nothing);
}

static void sent_again(void)
{
	again(packets_are_sent, nothing);
}

static struct scenario scenarios[] = {
	{"a request ends at a tick",
	 1000,
	 slow_request,
	 {tick, request_ends},
	 disk_again},
	{"a request ends at two ticks",
	 1000,
	 slow_request,
	 {tick, request_ends, tick},
	 disk_again},
	{"it ends beyond the limit",
	 0,
	 slow_request,
	 {tick, request_ends, tick},
	 disk_again},
	{"the next request comes at once",
	 1000,
	 slow_request,
	 {tick, request_ends, short_request},
	 disk_again},
	{"a request from before the monitor ends",
	 1000,
	 idle_disk,
	 {request_ends, short_request},
	 disk_again},
	{"a request ended unnoticed",
	 1000,
	 slow_request_ended,
	 {tick, tick, short_request},
	 disk_again},
	{"and another one uses its memory",
	 1000,
	 slow_request_ended,
	 {tick, request_starts, short_request},
	 disk_ends_again},
	{"a packet is late again",
	 1000,
	 late_for_long,
	 {packet_is_late, tick, tick},
	 late_again},
	{"packets of two links are late",
	 1000,
	 nothing,
	 {packet_is_late, packet_of_another_is_late, tick},
	 late_again},
	{"packets are sent again",
	 1000,
	 sent_before,
	 {packets_are_sent, tick, tick},
	 sent_again},
};

static const char *fault(void)
{
	for (int n = 0; n < recorded; n++) {
		int others = 0, ends = 0;

		if (!records[n])
			return "the next episode is not noticed";
		for (int m = 0; m < recorded; m++) {
			others += m != n && records[m] == records[n];
			ends += m > n && records[m] == -records[n];
		}
		if (others)
			return "a number is used again";
		if (records[n] > 0 && !ends)
			return "an alarm has no end after it";
		if (records[n] < 0 && ends)
			return "an end comes before its alarm";
	}
	return recorded == RECORDS ? "there is no end of alarms" : NULL;
}

static int in_order(struct scenario *s)
{
	const char *wrong;

	memset(disks, 0, sizeof(disks));
	memset(txs, 0, sizeof(txs));
	memset(windows, 0, sizeof(windows));
	memset(faults, 0, sizeof(faults));
	memset(&counters, 0, sizeof(counters));
	memset(raised, 0, sizeof(raised));
	memset(pending, 0, sizeof(pending));
	recorded = 0;
	clock_ns = 1000 * MS;
	emud_config.limit = s->limit;
	s->before();
	run(s->on);
	s->after();
	wrong = fault();
	if (!wrong)
		return steps;
	printf("%s: %s; changes", s->name, wrong);
	for (int n = 0; n < changed; n++)
		printf(" at %d to CPU %d", changes[n].step, changes[n].to);
	printf("; records");
	for (int n = 0; n < recorded; n++)
		printf(" %lld", records[n]);
	printf("\n");
	return -1;
}

/* Returns the number of orders; negative: a fault. */
static long in_orders(struct scenario *s, int first)
{
	int len = in_order(s);
	long tried = 1;

	if (len < 0)
		return -1;
	if (useless || changed == CHANGES)
		return !useless;
	for (int at = first; at < len; at++)
		for (int to = 0; to < CPUS && s->on[to]; to++) {
			long more;

			changes[changed++] = (__typeof__(*changes)){at, to};
			more = in_orders(s, at + 1);
			changed--;
			if (more < 0)
				return -1;
			tried += more;
		}
	return tried;
}

int main(void)
{
	int wrong = 0;

	current_task = &task;
	emud_disk_theta_ns = THETA;
	emud_config.group_by = EMUD_BY_COMMAND;
	emud_config.cpus = 1;
	emud_config.windows = EMUD_WINDOW_DEVICES;
	emud_config.window_ns[EMUD_WINDOW_EXTERNAL] = WINDOW;
	emud_config.threshold[EMUD_WINDOW_EXTERNAL] = THRESHOLD;
	emud_config.quantum[EMUD_WINDOW_EXTERNAL] = 1;
	for (size_t n = 0; n < sizeof(scenarios) / sizeof(*scenarios); n++) {
		long tried = in_orders(&scenarios[n], 0);

		if (tried > 0)
			printf("%s: %ld orders\n", scenarios[n].name, tried);
		wrong |= tried < 0;
	}
	return wrong;
}
