/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The monitor's programs without a kernel: what they count, and for whom.
 */
#include "kernel.h"

/* What the loader sets is not constant here. */
#define const
#include "../../../monitor/bpf/maps.h"
#include "../../../monitor/bpf/cpu.h"
#include "../../../monitor/bpf/disk.h"
#include "../../../monitor/bpf/memory.h"
#include "../../../monitor/bpf/network.h"
#undef const

#define MS 1000000ULL

static void step(void)
{
}

/* The kernel's side: one CPU. */

static struct emud_cpu cpus[1];
static struct emud_tx txs[1];
static struct emud_runs runs[1];
static struct emud_disk disks[EMUD_DISKS];
static struct emud_window windows[EMUD_WINDOWS];
static struct emud_table cpu_tables[1], window_tables[EMUD_WINDOWS];
static struct emud_table disk_tables[EMUD_DISKS];
static struct emud_counters counters;
static __u32 swaps[1] = {1};
static __u64 raised[8], armed[1];

#define MAP(map, array)           \
	if (at == (void *)&(map)) \
		return &(array)[i];

static void *lookup(const void *at, const void *key)
{
	__u32 i = *(const __u32 *)key;

	MAP(emud_cpus, cpus)
	MAP(emud_txs, txs)
	MAP(emud_runs, runs)
	MAP(emud_disks, disks)
	MAP(emud_windows, windows)
	MAP(emud_cpu_tables, cpu_tables)
	MAP(emud_window_tables, window_tables)
	MAP(emud_disk_tables, disk_tables)
	MAP(emud_raised, raised)
	MAP(emud_swaps, swaps)
	MAP(emud_armed, armed)
	if (at == (void *)&emud_counters)
		return &counters;
	if (at == (void *)&emud_pending)
		return pending_of(*(const __u64 *)key);
	return NULL;
}

/* The alarms, and how many have ended. */
static struct emud_alarm alarms[8];
static int alarmed, cleared;

static long told(const void *record)
{
	const struct emud_alarm *alarm = record;

	if (alarm->kind == EMUD_RECORD_ALARM && alarmed < 8)
		alarms[alarmed++] = *alarm;
	cleared += alarm->kind == EMUD_RECORD_CLEAR;
	return 0;
}

static int wrong;
int main(void);

static void same(const char *what, long long wanted, long long got)
{
	if (wanted == got)
		return;
	printf("%s: %lld, not %lld\n", what, got, wanted);
	wrong = 1;
}

static struct task_struct task = {.comm = "load"};

static void begin(void)
{
	memset(cpus, 0, sizeof(cpus));
	memset(txs, 0, sizeof(txs));
	memset(disks, 0, sizeof(disks));
	memset(windows, 0, sizeof(windows));
	memset(cpu_tables, 0, sizeof(cpu_tables));
	memset(window_tables, 0, sizeof(window_tables));
	memset(disk_tables, 0, sizeof(disk_tables));
	memset(&counters, 0, sizeof(counters));
	memset(raised, 0, sizeof(raised));
	memset(&emud_config, 0, sizeof(emud_config));
	memset(pending, 0, sizeof(pending));
	alarmed = 0;
	cleared = 0;
	clock_ns = 1000 * MS;
	armed[0] = 1;
	current_task = &task;
	emud_config.group_by = EMUD_BY_COMMAND;
	emud_config.cpus = 1;
	emud_config.limit = 1000;
	emud_config.tick_ns = 4 * MS;
}

static void (*before_load)(const void *at);
__attribute__((no_sanitize("coverage"))) static void accessed(const void *at,
							      int is_load8)
{
	if (is_load8 && before_load)
		before_load(at);
}

#define CALL(program, ...) program((emud_args[]){__VA_ARGS__})

/* CPUs. Stolen time is missing in the run queue's clock. */

static struct task_struct idle = {.flags = PF_IDLE}, busy;
static __u64 rq_ns;

static void passes(__u64 ns, __u64 stolen_ns)
{
	clock_ns += ns;
	rq_ns += ns - stolen_ns;
}

static void switches(struct task_struct *to)
{
	to->se.exec_start = rq_ns;
	CALL(emud_switch, 0, (__u64)(to == &idle ? &busy : &idle), (__u64)to);
	current_task = to;
}

static void ticks(void)
{
	emud_cpu_tick(0, clock_ns);
}

static void stolen_from_a_cpu(const char *what, __u64 theta_ns, struct task_struct *from,
			      __u64 stolen_ns, int ticks_then)
{
	__u64 begins;

	begin();
	emud_cpu_theta_ns = theta_ns;
	rq_ns = 500 * MS;
	switches(&busy);
	passes(MS / 4, 0);
	if (from == &idle)
		switches(&idle);
	passes(stolen_ns, stolen_ns);
	if (ticks_then)
		ticks();
	if (from == &busy)
		switches(&idle);
	passes(MS / 4, 0);
	begins = clock_ns;
	switches(&busy);
	if (cpus[0].since < begins || cpus[0].since > clock_ns)
		same(what, begins, cpus[0].since);
	passes(theta_ns * 3 / 4, 0);
	ticks();
	same(what, 0, alarmed);
	passes(theta_ns / 2, 0);
	ticks();
	same(what, 1, alarmed);
}

/* Disks. */

static struct gendisk disk = {.major = 8, .disk_name = "sda"};
static struct request_queue queue = {.disk = &disk};
static struct bio data;

#define RQ_PREFLUSH (1U << 18)

static __s64 inflight(void)
{
	__s64 sum = 0;

	for (int i = 0; i < EMUD_DISKS; i++)
		sum += disks[i].inflight;
	return sum;
}

/* The order of calls is that of blk-flush.c. */
static void a_write_with_a_flush(__u32 flag)
{
	struct request other = {.q = &queue, .bio = &data};
	struct request rq = {.q = &queue, .cmd_flags = EMUD_REQ_OP_WRITE | RQ_PREFLUSH};
	struct request flush = {.q = &queue, .cmd_flags = 2, .rq_flags = flag};

	begin();
	emud_disk_theta_ns = 60 * MS;
	emud_flush_seq = flag;
	CALL(emud_io_start, (__u64)&other);
	for (int n = 0; n < 3; n++) {
		CALL(emud_io_start, (__u64)&rq);
		rq.rq_flags |= flag;
		CALL(emud_io_done, (__u64)&flush);
		CALL(emud_io_done, (__u64)&rq);
		CALL(emud_io_done, (__u64)&flush);
		same("within a flush", 2, inflight());
		rq.rq_flags &= ~flag;
		CALL(emud_io_done, (__u64)&rq);
		same("behind a flush", 1, inflight());
	}
	clock_ns += 61 * MS;
	emud_disks_tick(clock_ns);
	same("the disk was never empty", 1, alarmed);
}

static void an_issued_write_with_a_flush(void)
{
	struct request other = {.q = &queue, .cmd_flags = EMUD_REQ_OP_READ};
	struct request rq = {.q = &queue, .cmd_flags = EMUD_REQ_OP_WRITE | RQ_PREFLUSH};
	struct request flush = {.q = &queue, .cmd_flags = 2};
	struct request reset = {.q = &queue, .cmd_flags = 15};

	begin();
	CALL(emud_rq_issue, (__u64)&other);
	CALL(emud_rq_issue, (__u64)&flush);
	CALL(emud_rq_complete, (__u64)&flush, 0, 0);
	rq.__data_len = 4096;
	CALL(emud_rq_issue, (__u64)&rq);
	CALL(emud_rq_complete, (__u64)&rq, 0, 2048);
	rq.__data_len = 2048;
	same("a part of a write", 2, inflight());
	CALL(emud_rq_complete, (__u64)&rq, 0, 2048);
	rq.__data_len = 0;
	same("its data", 1, inflight());
	CALL(emud_rq_complete, (__u64)&rq, 0, 0);
	same("an issued write with a flush", 1, inflight());
	CALL(emud_rq_issue, (__u64)&reset);
	CALL(emud_rq_complete, (__u64)&reset, 0, 0);
	same("the reset of a zone", 1, inflight());
}

/* What the kernel does to a request: it takes the bio from one that ends, and the
 * program runs, or not. */

static void starts(struct request *rq)
{
	*rq = (struct request){.q = &queue, .cmd_flags = EMUD_REQ_OP_READ, .bio = &data};
	CALL(emud_io_start, (__u64)rq);
}

static void ends_unnoticed(struct request *rq)
{
	rq->bio = NULL;
	rq->state = MQ_RQ_IDLE;
}

static void ends(struct request *rq)
{
	CALL(emud_io_done, (__u64)rq);
	ends_unnoticed(rq);
}

static void goes_by(__u64 ns)
{
	clock_ns += ns;
	emud_disks_tick(clock_ns);
}

static void watch_disks(void)
{
	begin();
	emud_disk_theta_ns = 60 * MS;
	emud_flush_seq = 1 << 1;
}

static void an_alarm_whose_request_ends_unnoticed(void)
{
	struct request rq, next;

	watch_disks();
	starts(&rq);
	goes_by(61 * MS);
	same("a slow request", 1, alarmed);
	ends_unnoticed(&rq);
	goes_by(EMUD_SWEEP_NS);
	goes_by(EMUD_SWEEP_NS);
	same("its end is noticed", 1, cleared);
	same("nothing pends", 0, inflight());
	goes_by(1000 * MS);
	same("an empty disk", 1, alarmed);
	starts(&next);
	goes_by(61 * MS);
	same("a slow request again", 2, alarmed);
	ends(&next);
	same("it ends", 2, cleared);
}

/* Half of the time, and by another CPU, which does not use the same memory. */
static void a_disk_in_use_after_an_unnoticed_end(int same_memory)
{
	struct request rq, other;
	struct request *next = same_memory ? &rq : &other;

	watch_disks();
	starts(&rq);
	ends_unnoticed(&rq);
	for (int n = 0; n < 100; n++) {
		goes_by(MS);
		starts(next);
		goes_by(MS);
		ends(next);
	}
	same("a disk that is empty half of the time", 0, alarmed);
	same("it pends", 0, inflight());
}

/* What waits in the queue, and a flush behind the data, pend for long. */
static void requests_that_do_not_end(void)
{
	struct request rq;

	for (int n = 0; n < 2; n++) {
		watch_disks();
		starts(&rq);
		if (n) {
			rq.bio = NULL;
			rq.state = MQ_RQ_IDLE + 1;
		}
		goes_by(61 * MS);
		same(n ? "a slow flush" : "a slow queue", 1, alarmed);
		goes_by(EMUD_SWEEP_NS);
		goes_by(EMUD_SWEEP_NS);
		same("it has not ended", 0, cleared);
		ends(&rq);
		same("it has ended", 1, cleared);
	}
}

/* Requests from before the monitor, or whose start the kernel did not report. */
static void ends_without_a_start(void)
{
	struct request rq, before = {.q = &queue};

	watch_disks();
	starts(&rq);
	ends(&before);
	same("a request from before", 1, inflight());
	goes_by(61 * MS);
	same("a slow request", 1, alarmed);
}

/* The parts of a bio end like the whole, but only the whole starts. */
static void a_bio_in_parts(void)
{
	struct block_device_operations takes_bios = {.submit_bio = (void *)main};
	struct gendisk raid = {.major = 9, .disk_name = "md127", .fops = &takes_bios};
	struct blkcg_gq cgroup;
	struct block_device whole = {.bd_disk = &raid};
	struct bio bio = {.bi_bdev = &whole, .bi_blkg = &cgroup}, part = bio;

	watch_disks();
	CALL(emud_bio_queue, (__u64)&bio);
	CALL(emud_bio_complete, 0, (__u64)&part);
	same("a part of a bio", 1, inflight());
	goes_by(61 * MS);
	same("a slow bio", 1, alarmed);
	bio.bi_blkg = NULL;
	goes_by(EMUD_SWEEP_NS);
	goes_by(EMUD_SWEEP_NS);
	same("its end is noticed", 1, cleared);
}

static void bios_that_are_passed_on(void)
{
	static const char *names[] = {"zram0",	 "nvme0n1", "md127",
				      "bcache0", "nvm",	    "dm-0"};
	static const int counted[] = {1, 0, 1, 0, 1, 1};
	struct block_device_operations takes_bios = {.submit_bio = (void *)main};

	for (int n = 0; n < 6; n++) {
		struct gendisk head = {.major = 9, .fops = &takes_bios};
		struct block_device part = {.bd_disk = &head};
		struct bio bio = {.bi_bdev = &part};

		begin();
		strcpy(head.disk_name, names[n]);
		CALL(emud_bio_queue, (__u64)&bio);
		same(names[n], counted[n], inflight());
	}
}

/* An interrupt takes another address between the two accesses to the scratch. */
static int interrupts;

static __attribute__((no_sanitize("coverage"))) void interrupt(const void *at)
{
	if (at != &txs[0].scratch || !interrupts)
		return;
	interrupts--;
	txs[0].scratch = (__u64)&queue;
}

static void an_address_is_a_number(void)
{
	begin();
	before_load = interrupt;
	for (int n = 0; n < EMUD_SCALAR_TRIES; n++) {
		interrupts = n;
		same("an interrupted number", (__u64)&disk,
		     emud_scalar(&txs[0].scratch, &disk));
		same("interrupts", 0, interrupts);
	}
	before_load = NULL;
}

/* Shares. */

static const struct emud_slot *slot_of(const struct emud_table *table, __u64 id)
{
	for (int i = 0; i < EMUD_SLOTS; i++)
		if (table->slots[i].key && table->slots[i].id == id)
			return &table->slots[i];
	return NULL;
}

static __u64 amount_of(const struct emud_table *table, __u64 id)
{
	const struct emud_slot *slot = slot_of(table, id);

	return slot && slot->interval == table->interval ? slot->amount : 0;
}

/* Another group has the address of one that has ended. */
static void an_address_is_used_again(__u32 group_by)
{
	struct kernfs_node node = {.name = "first", .id = 11};
	struct cgroup_root root = {.hierarchy_id = 3};
	struct cgroup cgroup = {.level = 1, .kn = &node, .root = &root};
	struct net net = {.ns.inum = 11};
	struct emud_who who = {.key = group_by == EMUD_BY_NETNS ? (__u64)&net
								: (__u64)&cgroup,
			       .net = (__u64)&net,
			       .cgroup = (__u64)&cgroup};
	struct emud_table *table = &window_tables[0];
	const struct emud_slot *slot;

	begin();
	emud_config.group_by = group_by;
	table->interval = 65535;
	emud_charge(table, &who, EMUD_NETWORK, 100);
	same("the first group", 100, amount_of(table, 11));
	table->interval++;
	node = (struct kernfs_node){.name = "second", .id = 12};
	net.ns.inum = 12;
	/* Bytes that were left take the slot to the new interval. */
	emud_charge_slot(table, emud_slot_of(table, who.key), 1);
	emud_charge(table, &who, EMUD_NETWORK, 7);
	same("the second group", 7, amount_of(table, 12));
	slot = slot_of(table, 12);
	if (!slot)
		return;
	same("before it", 0, slot->prior);
	same("the first one then", 101, table->elsewhere);
	emud_charge(table, &who, EMUD_NETWORK, 7);
	table->interval++;
	emud_charge(table, &who, EMUD_NETWORK, 3);
	emud_charge_elsewhere(table, 5);
	same("elsewhere before", 101, table->elsewhere_prior);
	same("the second group again", 3, amount_of(table, 12));
	same("before that", 14, slot->prior);
	if (group_by == EMUD_BY_CGROUP) {
		same("its name", 0, strcmp(slot->name, "second"));
		same("its hierarchy", 3, slot->hierarchy);
	}
}

/* A page of 64 KiB. */
static void a_large_page(void)
{
	struct block_device swap = {0};
	struct bio bio = {.bi_bdev = &swap, .bi_iter.bi_size = 1 << 16};

	begin();
	emud_config.threshold[EMUD_WINDOW_PAGE_IN] = 2;
	emud_config.quantum[EMUD_WINDOW_PAGE_IN] = 1;
	emud_config.window_ns[EMUD_WINDOW_PAGE_IN] = 10 * MS;
	emud_page_shift = 16;
	CALL(emud_page_in_bio, (__u64)&bio);
	same("one page", 0, alarmed);
	CALL(emud_page_in_bio, (__u64)&bio);
	same("two pages", 1, alarmed);
}

/* Two devices that one CPU cannot have cached at the same time. */
static void devices_in_turn(void)
{
	static struct net_device devs[EMUD_DEVS + 1];
	static struct net nets[2] = {{.ns.inum = 21}, {.ns.inum = 22}};
	struct emud_table *table = &window_tables[EMUD_WINDOW_EXTERNAL];
	struct net_device *pair[2] = {NULL, NULL};
	int at[EMUD_DEVS];

	begin();
	memset(at, 0xff, sizeof(at));
	for (int n = 0; n <= EMUD_DEVS; n++) {
		int i = emud_bound(emud_hash((__u64)&devs[n]), EMUD_DEVS);

		if (at[i] >= 0) {
			pair[0] = &devs[at[i]];
			pair[1] = &devs[n];
		}
		at[i] = n;
	}
	for (int n = 0; n < 2; n++)
		*pair[n] = (struct net_device){.ifindex = n + 2, .nd_net = {&nets[n]}};
	emud_config.group_by = EMUD_BY_NETNS;
	emud_config.windows = EMUD_WINDOW_DEVICES;
	emud_config.window_ns[EMUD_WINDOW_EXTERNAL] = 1000000 * MS;
	emud_config.threshold[EMUD_WINDOW_EXTERNAL] = 1ULL << 40;
	emud_config.quantum[EMUD_WINDOW_EXTERNAL] = 1ULL << 34;
	for (int n = 0; n < 6; n++) {
		CALL(emud_xmit, 0, 0, (__u64)pair[0], 100);
		CALL(emud_xmit, 0, 0, (__u64)pair[1], 1000);
	}
	/* The last packet is not charged yet. */
	same("a device before another", 600, amount_of(table, 21));
	same("the other one", 5000, amount_of(table, 22));
	same("of neither", 0, table->elsewhere);
	/* A new device has the address of one that has ended. */
	pair[1]->ifindex = 9;
	CALL(emud_xmit, 0, 0, (__u64)pair[1], 9000);
	CALL(emud_xmit, 0, 0, (__u64)pair[0], 100);
	same("the device at its address", 15000, amount_of(table, 22));
}

static void devices_of_one_name(void)
{
	struct emud_window *window = &windows[EMUD_WINDOW_DEVICES];

	begin();
	emud_own_window(window, 2, 4026531840);
	emud_own_window(window, 5, 4026531840);
	same("a device that was created again", 5, window->ifindex);
	same("its namespace", 4026531840, window->netns);
	emud_own_window(window, 2, 4026532000);
	emud_own_window(window, 2, 4026532000);
	same("one of several", 0, window->ifindex);
	same("namespaces", EMUD_SEVERAL, window->netns);
}

/*
 * 64 CPUs that send the threshold together, half of them three times as fast: with the
 * times since when their reports count alternating. What is not reported yet is an
 * eighth; little more may lack.
 */
static void many_cpus_at_different_rates(void)
{
	enum { QUANTA = 512, AMOUNT = 1000, STEPS = 3072, WINDOWS = 4 };
	static struct emud_window window;
	const __u64 step_ns = 100 * MS / STEPS, window_ns = STEPS * step_ns;
	__u64 least = ~0ULL, most = 0;

	memset(&window, 0, sizeof(window));
	for (int at = 1; at <= WINDOWS * STEPS; at++) {
		__u64 now = 1000 * MS + at * step_ns;

		for (int n = 0; n < 64; n++) {
			int lag = n % 2 ? STEPS / 12 : STEPS / 4;

			if ((at + n * 97) % lag)
				continue;
			emud_expire(&window, now - window_ns);
			emud_push(&window, now - lag * step_ns, AMOUNT,
				  EMUD_JOINED(window_ns));
			if (at <= 2 * STEPS)
				continue;
			least = window.sum < least ? window.sum : least;
			most = window.sum > most ? window.sum : most;
		}
	}
	same("64 CPUs: at least 0.84 of what they sent", 1,
	     least * 100 >= 84 * QUANTA * AMOUNT);
	same("64 CPUs: no more than they sent", 1, most <= QUANTA * AMOUNT);
	if (wrong)
		printf("64 CPUs: %llu to %llu of %d\n", least, most, QUANTA * AMOUNT);
}

int main(void)
{
	many_cpus_at_different_rates();
	a_write_with_a_flush(1 << 1);
	a_write_with_a_flush(1 << 4);
	an_issued_write_with_a_flush();
	bios_that_are_passed_on();
	an_alarm_whose_request_ends_unnoticed();
	a_disk_in_use_after_an_unnoticed_end(0);
	a_disk_in_use_after_an_unnoticed_end(1);
	requests_that_do_not_end();
	ends_without_a_start();
	a_bio_in_parts();
	an_address_is_used_again(EMUD_BY_NETNS);
	an_address_is_used_again(EMUD_BY_CGROUP);
	a_large_page();
	devices_in_turn();
	an_address_is_a_number();
	stolen_from_a_cpu("nothing stolen", 200 * MS, &idle, 0, 0);
	stolen_from_a_cpu("stolen while idle", 200 * MS, &idle, 300 * MS, 1);
	stolen_from_a_cpu("stolen while busy", 200 * MS, &busy, 150 * MS, 1);
	stolen_from_a_cpu("stolen without a tick", 2 * MS, &idle, 3 * MS / 2, 0);
	devices_of_one_name();
	return wrong;
}
