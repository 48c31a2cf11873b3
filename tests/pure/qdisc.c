/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * emud's qdisc, compiled for this machine, with a clock and a timer of this test: packets
 * come, are taken out, and the timer goes off in any order, as on several CPUs. While one
 * CPU sends, the timer of another one takes out nothing, and leaves it to the first.
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

#define PACKETS 64

static __u64 clock_ns = 1000000000;
static __u64 timer_ns; /* 0: not set */
static void *value_at(__u32 index);

#define bpf_map_lookup_elem(map, index) value_at(*(index))
#define bpf_ktime_get_ns() clock_ns
#define bpf_qdisc_watchdog_schedule(sch, expire, delta) (timer_ns = (expire))
#define bpf_qdisc_bstats_update(sch, skb) (void)(skb)
#define bpf_qdisc_skb_drop(skb, to_free) (void)(skb)
#define bpf_kfree_skb(skb) (void)(skb)
#define bpf_loop(n, step, context, flags) \
	for (__u32 i_ = 0; i_ < (n) && !step(i_, context); i_++)
#define bpf_kptr_xchg(at, new)                \
	({                                    \
		struct sk_buff *was_ = *(at); \
		*(at) = (new);                \
		was_;                         \
	})

#define const /* the test is the loader */
#include "../../bpf/qdisc.bpf.c"

static void *value_at(__u32 index)
{
	static struct emud_waiting values[PACKETS];

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
			by_senders += by_sender;
		} else if (!by_sender || by_senders < PACKETS / 4) {
			fails("dropped");
		}
		if (by_senders > PACKETS / 4)
			fails("senders take more than their share");
		return;
	}
}

/* Takes out what is due. */
static void run(void)
{
	struct sk_buff *skb;

	while ((skb = emud_dequeue(&sch))) {
		if (skb->tstamp > clock_ns + 2 * EMUD_EARLY_NS)
			fails("early");
		waits[skb - packets] = 0;
		by_senders -= skb->tstamp & EMUD_QDISC_BY_SENDER;
	}
	if (sch.q.qlen && !timer_ns)
		fails("nothing will take out the rest");
}

int main(void)
{
	int sending = 0;

	emud_room.packets = PACKETS;
	emud_init(&sch, NULL, NULL);
	for (int i = 0; i < 1000000; i++) {
		clock_ns += random_below(20000);
		if (timer_ns && clock_ns >= timer_ns) {
			timer_ns = 0;
			if (!sending)
				run();
		}
		if (random_below(3) == 0)
			enqueue(random_below(4) ? 100000 : random_below(300000000), 0);
		if (random_below(8) == 0)
			enqueue(20000000 + random_below(300000000), 1);
		/* The one that sends takes out the next when it is done. */
		sending = random_below(2);
		if (!sending)
			run();
	}
	clock_ns += 1000000000;
	run();
	/* The rounds in between take more than one pass, and the timer goes off for each. */
	while (sch.q.qlen) {
		if (timer_ns > clock_ns)
			fails("left behind");
		timer_ns = 0;
		run();
	}
	if (emud_wheels[0].by_sender)
		fails("the share is not given back");
	return 0;
}
