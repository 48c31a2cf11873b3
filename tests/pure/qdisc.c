/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * emud's qdisc, compiled for this machine, with a clock and a timer of this test: packets
 * come, are taken out, and the timer goes off in any order, as on several CPUs. While one
 * CPU sends, the timer of another one takes out nothing, and leaves it to the first. Nothing
 * leaves early, nothing that is due stays without a timer, and of packets that are due in the
 * same 4 us the one that came first leaves first, however long they waited.
 */
#include <stdio.h>
#include <stdlib.h>
#include <linux/bpf.h>

#define EMUD_KERNEL_H
#define SEC(name)
#define __uint(name, value) int(*name)[value]
#define __type(name, value) value *name
#define __kptr
#define BPF_PROG(name, arguments...) name(arguments)
#define likely(x) (x)
#define unlikely(x) (x)
#define NET_XMIT_SUCCESS 0
#define NET_XMIT_DROP 1

struct sk_buff {
	__u64 tstamp;
	char cb[48];
};

struct qdisc_skb_cb {
	unsigned int pkt_len;
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

static __u64 clock_ns = 1000000000;
static __u64 timer_ns; /* 0: not set */
static void *value_at(__u32 index);

#define bpf_map_lookup_elem(map, index) value_at(*(index))
#define bpf_ktime_get_ns() clock_ns
#define bpf_qdisc_watchdog_schedule(sch, expire, delta) (timer_ns = (expire))
#define bpf_qdisc_bstats_update(sch, skb) (void)(skb)
#define bpf_qdisc_skb_drop(skb, to_free) (void)(skb)
#define bpf_kfree_skb(skb) (void)(skb)
#define bpf_loop(n, step, context, flags)                          \
	({                                                         \
		__u32 i_ = 0, n_ = (n);                            \
		while (i_ < n_ && !step(i_++, context))            \
			;                                          \
		i_;                                                \
	})
#define bpf_kptr_xchg(at, new)                \
	({                                    \
		struct sk_buff *was_ = *(at); \
		*(at) = (new);                \
		was_;                         \
	})

#define const /* the test is the loader */
#include "../../bpf/qdisc.bpf.c"

static struct emud_waiting values[PACKETS];

static void *value_at(__u32 index)
{
	return index < PACKETS ? &values[index] : NULL;
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

static void fails(const char *what)
{
	printf("%s: %u wait at %llu ns\n", what, sch.q.qlen, clock_ns);
	exit(1);
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

/* Takes out what is due. If only the timer woke it so far, nothing is late. */
static void run(int only_timer)
{
	struct sk_buff *skb;

	while ((skb = emud_dequeue(&sch))) {
		if (skb->tstamp > clock_ns + 2 * EMUD_EARLY_NS)
			fails("early");
		if (only_timer && skb->tstamp + 2 * EMUD_EARLY_NS < clock_ns)
			fails("late");
		waits[skb - packets] = 0;
		is_first(skb - packets);
		by_senders -= skb->tstamp & EMUD_QDISC_BY_SENDER;
	}
	if (sch.q.qlen && !timer_ns)
		fails("nothing will take out the rest");
	for (int i = 0; i < PACKETS; i++)
		if (waits[i] && packets[i].tstamp + 4096 < clock_ns && timer_ns > clock_ns)
			fails("left behind");
}

int main(void)
{
	int sending = 0;

	emud_room.packets = PACKETS;
	emud_init(&sch, NULL, NULL);
	for (int i = 0; i < 300000; i++) {
		clock_ns += random_below(20000);
		if (timer_ns && clock_ns >= timer_ns) {
			timer_ns = 0;
			if (!sending)
				run(0);
		}
		if (random_below(3) == 0)
			enqueue(random_below(40) ? 100000 : random_below(300000000), 0);
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
		/* The one that sends takes out the next when it is done. */
		sending = random_below(2);
		if (!sending)
			run(0);
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
	return 0;
}
