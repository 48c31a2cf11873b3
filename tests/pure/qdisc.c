/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * emud's qdisc, compiled for this machine, with a clock and a timer of this test: packets
 * come, are taken out, and the timer goes off in any order, as on several CPUs. While one
 * CPU sends, the timer of another one takes out nothing, and leaves it to the first. Nothing
 * leaves early, nothing that is due stays without a timer, and of packets that are due in the
 * same 4 us the one that came first leaves first, however long they waited. So it is with
 * packets that wait in classes before, and each of those is counted once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/bpf.h>
#include "kernel.h"
#define BPF_PROG(name, arguments...) name(arguments)
#define NET_XMIT_SUCCESS 0
#define NET_XMIT_DROP 1

struct sk_buff {
	__u64 tstamp;
	unsigned int truesize;
	char cb[48];
};

struct qdisc_skb_cb {
	unsigned int pkt_len;
	unsigned char data[20];
};

struct Qdisc {
	struct {
		__u32 qlen;
	} q;
	struct {
		__u32 backlog, drops;
	} qstats;
	__u32 limit, handle;
};

struct bpf_sk_buff_ptr;
struct nlattr;
struct netlink_ext_ack;
struct Qdisc_ops {
	void *enqueue, *dequeue, *init, *reset, *destroy;
	char id[16];
};

#define PACKETS 1024

static void free_skb(struct sk_buff *skb);
static __u64 clock_ns = 1000000000;
static __u64 timer_ns; /* 0: not set */
static void *value_at(void *map, __u32 index);

#define bpf_map_lookup_elem(map, index) value_at(map, *(index))
#define bpf_ktime_get_ns() clock_ns
#define bpf_qdisc_watchdog_schedule(sch, expire, delta) (timer_ns = (expire))
#define bpf_qdisc_bstats_update(sch, skb) (void)(skb)
#define bpf_qdisc_skb_drop(skb, to_free) (void)(skb)
#define bpf_kfree_skb(skb) free_skb(skb)
#define bpf_kptr_xchg(at, new)                \
	({                                    \
		struct sk_buff *was_ = *(at); \
		*(at) = (new);                \
		was_;                         \
	})

static int serves;

#define EMUD_SERVES serves
#define const /* the test is the loader */
#include "../../bpf/qdisc.bpf.c"

#define CLASSES 4

static struct emud_waiting values[PACKETS];
static struct emud_customer customers[PACKETS];
static struct emud_class classes[CLASSES];
static struct emud_holder holders[EMUD_DIRECTIONS];
static struct emud_control control;
static __u32 expected[EMUD_TOKENS];
static struct emud_plan plans[EMUD_SLOTS];

static void *value_at(void *map, __u32 index)
{
	if (map == &emud_waiting)
		return index < PACKETS ? &values[index] : NULL;
	if (map == &emud_customers)
		return index < PACKETS ? &customers[index] : NULL;
	if (map == &emud_classes)
		return index < CLASSES ? &classes[index] : NULL;
	if (map == &emud_holders)
		return index < EMUD_DIRECTIONS ? &holders[index] : NULL;
	if (map == &emud_plans)
		return index < EMUD_SLOTS ? &plans[index] : NULL;
	if (map == &emud_tokens)
		return &expected[index];
	return map == &emud_control && !index ? &control : NULL;
}

static __u64 random_below(__u64 n)
{
	static __u64 state = 1;

	state = state * 6364136223846793005 + 1442695040888963407;
	return (state >> 33) % n;
}

static struct Qdisc sch;
static struct sk_buff packets[PACKETS];
static int waits[PACKETS];
static unsigned int arrival[PACKETS], arrivals;
static int by_senders;

/* Those of classes leave so, too: they have waited too long, or are lost behind the server. */
static void free_skb(struct sk_buff *skb)
{
	waits[skb - packets] = 0;
}

static void fails(const char *what)
{
	printf("%s: %u wait at %llu ns\n", what, sch.q.qlen, clock_ns);
	exit(1);
}

static int sending;
static void run_some(int only_timer, int stops);
static void run_classed_some(int only_timer, int stops);

/* The CPU that enqueued takes out what is due, under the same lock, unless another one is sending. */
static void comes(void)
{
	if (sending)
		return;
	if (serves)
		run_classed_some(0, 1);
	else
		run_some(0, 1);
}

/* A CPU has taken out a packet, and sends it until the next run. */
static void begin_sending(void)
{
	sending = 1;
	emud_wheels[0].sending = 1;
}

static void enqueue(__u64 in_ns, int by_sender)
{
	for (int i = 0; i < PACKETS; i++) {
		if (waits[i])
			continue;
		packets[i].tstamp = ((clock_ns + in_ns) & ~EMUD_QDISC_BY_SENDER) | by_sender;
		if (!emud_enqueue(&packets[i], &sch, NULL)) {
			waits[i] = 1;
			arrival[i] = arrivals++;
			by_senders += by_sender;
		} else if (!by_sender || by_senders < PACKETS / 4) {
			fails("dropped");
		}
		if (by_senders > PACKETS / 4)
			fails("senders take more than their share");
		comes();
		return;
	}
}

/* None waits that was due long before it, or in the same 4 us if it came before it. */
static void is_first(int one)
{
	__u64 due = packets[one].tstamp;

	for (int i = 0; i < PACKETS; i++) {
		if (!waits[i])
			continue;
		if (packets[i].tstamp + 2 * EMUD_EARLY_NS < due)
			fails("overtaken");
		if (arrival[i] < arrival[one] &&
		    packets[i].tstamp >> EMUD_WHEEL_SHIFT == due >> EMUD_WHEEL_SHIFT)
			fails("out of order");
	}
}

/* Takes out what is due. If only the timer woke it so far, nothing is late. It may stop while it
 * sends a packet. */
static void run_some(int only_timer, int stops)
{
	struct sk_buff *skb;

	sending = 0;
	while ((skb = emud_dequeue(&sch))) {
		if (skb->tstamp > clock_ns + 2 * EMUD_EARLY_NS)
			fails("early");
		if (only_timer && skb->tstamp + 2 * EMUD_EARLY_NS < clock_ns)
			fails("late");
		waits[skb - packets] = 0;
		is_first(skb - packets);
		by_senders -= skb->tstamp & EMUD_QDISC_BY_SENDER;
		if (stops && random_below(2)) {
			sending = 1;
			return;
		}
	}
	if (sch.q.qlen && !timer_ns)
		fails("nothing will take out the rest");
	for (int i = 0; i < PACKETS; i++)
		if (waits[i] && packets[i].tstamp + 4096 < clock_ns && timer_ns > clock_ns)
			fails("left behind");
}

static void run(int only_timer)
{
	run_some(only_timer, 0);
}

/* 100 Mbit/s: a third of them by priority, the others by weight, one of these with a ceil. */
static void make_plan(struct emud_plan *plan, __u64 rate)
{
	static const struct emud_node_plan leaf = {
		.quantum = 1600,
		.limit_bytes = ~0ULL,
		.limit_ns = ~0ULL,
		.limit_packets = 40,
		.is_leaf = 1,
	};

	plan->rate = rate;
	plan->schedule = EMUD_SCHEDULE_PRIORITY;
	plan->nodes = 5;
	plan->leaves = 3;
	plan->first = 1;
	for (int i = 1; i < 5; i++) {
		plan->node[i] = leaf;
		plan->node[i].node = i;
	}
	plan->node[2].is_leaf = 0;
	plan->node[2].priority = 1;
	plan->node[3].parent = plan->node[4].parent = 2;
	plan->node[3].limit_ns = 3000000;
	plan->node[4].ceil = rate / 5;
	plan->node[4].quantum = 3200;
}

static __u64 offered[CLASSES + 1];
static __u64 earliest[PACKETS]; /* at which a packet of a class may leave */

static void run_classed(int only_timer);

/* The packet with the socket of the one before: it stays until that one is sent. */
static void enqueue_token(__u16 token)
{
	for (int i = 0; i < PACKETS; i++) {
		struct emud_classed *told = (void *)((struct qdisc_skb_cb *)packets[i].cb)->data;

		if (waits[i])
			continue;
		packets[i].tstamp = EMUD_QDISC_CLASSED;
		told->magic = EMUD_TOKEN;
		told->token = token;
		waits[i] = 1;
		if (emud_enqueue(&packets[i], &sch, NULL))
			fails("a token is dropped");
		comes();
		return;
	}
}

static int tokens(void)
{
	int n = 0;

	for (int i = 0; i < PACKETS; i++)
		n += customers[i].token != NULL;
	return n;
}

static unsigned int truesize;
static unsigned int train = 1; /* packets of each super-packet */

/* Returns the number of the packet; below 0: it is dropped. */
static int put_classed(__u32 class, __u64 delay_ns, int is_held, __u16 token)
{
	int is_taken;

	for (int i = 0; i < PACKETS; i++) {
		struct emud_classed *told = (void *)((struct qdisc_skb_cb *)packets[i].cb)->data;

		if (waits[i])
			continue;
		packets[i].tstamp = ((clock_ns + delay_ns) & ~EMUD_QDISC_MARKS) |
				    EMUD_QDISC_CLASSED;
		packets[i].truesize = truesize;
		*told = (struct emud_classed){
			.magic = EMUD_CLASSED,
			.service = class,
			.bytes = 64 + random_below(1450),
			.flags = (random_below(10) ? 0 : EMUD_SERVICE_LOST) |
				 (is_held ? EMUD_SERVICE_HELD : 0),
			.packets = train,
			.token = token,
		};
		earliest[i] = clock_ns + told->bytes * 80 + delay_ns;
		waits[i] = 1;
		if (emud_enqueue(&packets[i], &sch, NULL))
			waits[i] = 0;
		is_taken = waits[i];
		comes();
		return is_taken ? i : -1;
	}
	fails("no packet is free");
	return -1;
}

static void enqueue_classed(__u32 class, __u64 delay_ns, int is_held)
{
	__u16 token = random_below(EMUD_TOKENS);

	offered[class] += train;
	if (put_classed(class, delay_ns, is_held, token) < 0 && is_held)
		fails("one whose sender waits is dropped");
	if (!is_held)
		return;
	/* Another CPU sends it before the token comes. */
	if (random_below(4) == 0) {
		clock_ns += 1000000;
		run_classed(0);
	}
	enqueue_token(token);
}

/* Takes out what is due: the qdisc writes into the packet when that is. */
static void run_classed_some(int only_timer, int stops)
{
	static __u64 last;
	struct sk_buff *skb;

	sending = 0;
	while ((skb = emud_dequeue(&sch))) {
		if (skb->tstamp > clock_ns + 2 * EMUD_EARLY_NS)
			fails("early");
		if (skb->tstamp < last)
			fails("packets of one path out of order");
		last = skb->tstamp;
		if (earliest[skb - packets] > clock_ns + 2 * EMUD_EARLY_NS)
			fails("before its transmission");
		if (only_timer && skb->tstamp + 2 * EMUD_EARLY_NS < clock_ns)
			fails("late");
		waits[skb - packets] = 0;
		if (stops && random_below(2)) {
			sending = 1;
			return;
		}
	}
	if (sch.q.qlen && !timer_ns)
		fails("nothing will take out the rest");
}

static void run_classed(int only_timer)
{
	run_classed_some(only_timer, 0);
}

static void to_timer(void)
{
	if (timer_ns > clock_ns)
		clock_ns = timer_ns;
	timer_ns = 0;
}

static void leave_all(void)
{
	run_classed(0);
	while (sch.q.qlen) {
		if (!timer_ns)
			fails("no timer");
		to_timer();
		run_classed(0);
	}
}

/* The buffer of a sender limits what it waits for, unless it takes nothing of it, or all that wait
 * take the room of the others. Nothing is sent meanwhile. */
static void senders_have_limits(void)
{
	const __u32 most = PACKETS >> EMUD_QDISC_HELD_SHIFT;

	begin_sending();
	for (__u32 i = 0; i < PACKETS - 40; i++)
		if ((put_classed(4, 0, 1, 0) >= 0) != (i < most))
			fails("all room is taken by those who wait");
	for (int i = 0; i < 41; i++)
		if ((put_classed(1, 0, 0, 0) >= 0) != (i < 40))
			fails("no room for the others");
	emud_reset(&sch);
	truesize = EMUD_TRUESIZE_PURE_ACK;
	for (int i = 0; i < 41; i++)
		if ((put_classed(4, 0, 1, 0) >= 0) != (i < 40))
			fails("ACKs have no limit");
	truesize = 0;
	emud_reset(&sch);
}

/* A limit in packets is one of those in super-packets; a longer one comes alone. */
static void trains_have_limits(void)
{
	begin_sending();
	train = 16;
	for (int i = 0; i < 4; i++)
		if ((put_classed(1, 0, 0, 0) >= 0) != (i < 2))
			fails("super-packets count as one packet");
	train = 8;
	if (put_classed(1, 0, 0, 0) < 0 || put_classed(1, 0, 0, 0) >= 0)
		fails("a super-packet has no room that is there");
	if (classes[0].backlog_packets != 40)
		fails("a backlog of super-packets");
	emud_reset(&sch);
	train = 50;
	for (int i = 0; i < 2; i++)
		if ((put_classed(1, 0, 0, 0) >= 0) != (i < 1))
			fails("a super-packet above the limit");
	train = 1;
	emud_reset(&sch);
}

/* What a class sends late departs at once, and nothing else does. */
static void late(void)
{
	const __u64 far = 300000000;

	clock_ns += far - clock_ns % far;
	begin_sending();
	enqueue_classed(1, 0, 0);
	clock_ns += 100000000;
	enqueue(200000000, 0);
	enqueue(60000000, 0);
	enqueue(100000000, 0);
	leave_all();
}

static void with_classes(void)
{
	__u64 sent = 0;

	serves = 1;
	make_plan(&plans[0], 100000000);
	make_plan(&plans[1], 90000000);
	for (int i = 0; i < 200000; i++) {
		clock_ns += random_below(60000);
		if (timer_ns && clock_ns >= timer_ns) {
			timer_ns = 0;
			if (!sending)
				run_classed_some(0, 1);
		}
		train = random_below(4) ? 1 : 1 + random_below(20);
		/* More than it can send, and nothing for a while. */
		if (i % 2000 < 1500 && random_below(3))
			enqueue_classed((__u32[]){1, 3, 4}[random_below(3)],
					random_below(4) * 500000,
					i % 2000 < 100 && random_below(8) == 0);
		if (tokens() > classes[0].backlog_packets + classes[2].backlog_packets +
				       classes[3].backlog_packets)
			fails("a sender waits for nothing");
		if (random_below(500) == 0)
			control.generation += EMUD_CHANGE + 1;
		if (!sending || random_below(2))
			run_classed_some(0, 1);
		for (int n = 0; !sending && i % 1000 == 0 && n < 50 && timer_ns; n++) {
			to_timer();
			run_classed(n > 0);
		}
	}
	leave_all();
	for (__u32 i = 1; i <= CLASSES; i++) {
		const struct emud_class *c = &classes[i - 1];

		if (offered[i] != c->sent_packets + c->full + c->expired)
			fails("counted twice or not at all");
		if (c->backlog_packets || c->backlog_bytes)
			fails("a backlog of nothing");
		if (offered[i] && !c->sent_packets)
			fails("a class without load");
		sent += c->sent_packets;
	}
	if (!classes[2].expired || !classes[3].full)
		fails("no limit was met");
	if (sent != holders[0].served[0].sent_packets + holders[0].served[0].lost ||
	    !holders[0].served[0].lost)
		fails("a packet of no link");

	for (int i = 0; i < 100; i++)
		enqueue_classed((__u32[]){1, 3, 4}[i % 3], 1000000, i % 4 == 3);
	emud_reset(&sch);
	for (int i = 0; i < PACKETS; i++)
		if (values[i].skb || customers[i].token || waits[i])
			fails("a packet of a class is not freed");
	if (sch.q.qlen || classes[0].backlog_packets || emud_servers[0].node[2].filled ||
	    emud_servers[0].held)
		fails("a class is not empty");
	late();
	train = 1;
	senders_have_limits();
	trains_have_limits();
}

int main(void)
{
	emud_room.packets = PACKETS;
	emud_init(&sch, NULL, NULL);
	for (int i = 0; i < 300000; i++) {
		clock_ns += random_below(20000);
		if (timer_ns && clock_ns >= timer_ns) {
			timer_ns = 0;
			if (!sending)
				run_some(0, 1);
		}
		if (random_below(3) == 0)
			enqueue(random_below(40) ? 100000 : random_below(300000000), 0);
		/* It leaves now, and while it is sent the timer of another one can go off. */
		if (random_below(10) == 0)
			enqueue(random_below(EMUD_EARLY_NS), 0);
		/* Many of one time, some of them early enough for a list of their span. */
		if (random_below(300) == 0)
			enqueue(300000000 - clock_ns % 300000000, 0);
		if (random_below(3000) == 0)
			enqueue(random_below(100) * 1000000000, 0);
		/* Nothing happens for a while. */
		if (random_below(5000) == 0)
			clock_ns += random_below(200000000);
		if (random_below(8) == 0)
			enqueue(20000000 + random_below(300000000), 1);
		/* The one that sends takes out the next when it is done. One that sends none does so at once. */
		if (!sending || random_below(2))
			run_some(0, 1);
		/* For a while the timer alone. */
		for (int n = 0; !sending && i % 5000 == 0 && n < 50 && timer_ns; n++) {
			if (timer_ns > clock_ns)
				clock_ns = timer_ns;
			timer_ns = 0;
			run(n > 0);
		}
	}
	clock_ns += 1000000000;
	run(0);
	while (sch.q.qlen) {
		if (timer_ns > clock_ns)
			clock_ns = timer_ns;
		timer_ns = 0;
		run(0);
	}
	if (emud_wheels[0].by_sender)
		fails("the share is not given back");

	/* Of few packets: the timer goes off to draw them, also from beyond the last span. */
	enqueue(90000000000, 0);
	enqueue(10000000000, 0);
	enqueue(1000000000, 0);
	enqueue(80000000000, 0);
	run(1);
	while (sch.q.qlen) {
		if (!timer_ns)
			fails("no timer");
		if (timer_ns > clock_ns)
			clock_ns = timer_ns;
		timer_ns = 0;
		run(1);
	}

	/* What was due while the CPU did something else leaves in order. */
	clock_ns += 1000000000 - clock_ns % 1000000000;
	begin_sending();
	enqueue(40 * (1ULL << EMUD_SPAN_SHIFT), 0);
	for (int i = 0; i < 200; i++)
		enqueue(20 * (1ULL << EMUD_SPAN_SHIFT) - i * 100000, 0);
	clock_ns += 3000000000;
	while (sch.q.qlen)
		run(0);

	for (int i = 0; i < PACKETS; i++)
		enqueue(i * 100000000ULL % 90000000000, 0);
	sch.handle = 0;
	emud_wheels[0].owner = (__u64)&sch;
	emud_reset(&sch);
	for (int i = 0; i < PACKETS; i++)
		if (values[i].skb)
			fails("not freed");
	if (emud_wheels[0].far || emud_next_due(&emud_wheels[0]) != EMUD_NEVER)
		fails("not empty");
	memset(waits, 0, sizeof(waits));

	/* The spans that were far before are not taken for near ones. */
	clock_ns += 1000000000;
	enqueue(300000000, 0);
	enqueue(250000000, 0);
	enqueue(100000000, 0);
	run(1);
	while (sch.q.qlen) {
		to_timer();
		run(1);
	}
	with_classes();
	return 0;
}
