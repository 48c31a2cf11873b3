/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The server of emud's qdisc, compiled for this machine: reads a bottleneck and packets, and
 * writes what becomes of each packet, in the order of decisions.
 *
 * Input: how many bottlenecks; of each its plan, how many packets, and the packets: whether there
 * is a change before it (from when on, what is decided before, the plan), arrival, class, bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/bpf.h>
#include "kernel.h"

struct sk_buff;
static void *value_at(const void *map, __u32 index);
#define bpf_map_lookup_elem(map, index) value_at(map, *(index))

#include "../../bpf/server.h"

#define PACKETS 1000

static struct emud_waiting waiting[PACKETS];
static struct emud_customer customers[PACKETS];

static void *value_at(const void *map, __u32 index)
{
	if (index >= PACKETS)
		return NULL;
	return map == &emud_waiting ? (void *)&waiting[index] : (void *)&customers[index];
}

static int emud_sent(__u32 direction, __u32 node, __u32 number)
{
	const struct emud_server *s = emud_server_at(direction);

	printf("sent %u %llu %llu\n", number - 1, s->now, s->wire.at);
	return 0;
}

static int emud_expired(__u32 direction, __u32 node, __u32 number)
{
	printf("expired %u\n", number - 1);
	return 0;
}

static __u64 number(void)
{
	unsigned long long n;

	if (scanf("%llu", &n) != 1)
		exit(2);
	return n;
}

static void read_plan(struct emud_plan *plan)
{
	plan->rate = number();
	plan->schedule = number();
	plan->nodes = number();
	plan->leaves = number();
	plan->first = 1;
	for (__u32 i = 1; i < plan->nodes; i++) {
		struct emud_node_plan *n = &plan->node[i];

		n->rate = number();
		n->ceil = number();
		n->quantum = number();
		n->limit_bytes = number();
		n->limit_ns = number();
		n->limit_packets = number();
		n->parent = number();
		n->level = number();
		n->priority = number();
		n->is_leaf = number();
		n->node = i;
	}
}

static void arrive(struct emud_server *s, __u32 i)
{
	__u64 at = number();
	__u32 node = 1 + number();
	__u32 bytes = number();

	while (emud_serve(0, at, 1))
		;
	if (s->now < at)
		s->now = at;
	if (emud_is_full(s, emud_node_at(s, node), bytes, 1)) {
		printf("full %u\n", i);
		return;
	}
	customers[i].arrival = at;
	customers[i].classed.bytes = bytes;
	customers[i].classed.packets = 1;
	emud_admit(0, s, node, i + 1, &customers[i]);
}

static void change(struct emud_server *s)
{
	static struct emud_plan plan;
	__u64 at = number(), until = number();

	while (emud_serve(0, until, 0))
		;
	read_plan(&plan);
	emud_change(0, &plan, at);
}

static void bottleneck(struct emud_server *s)
{
	static struct emud_plan plan;
	__u32 packets;

	memset(s, 0, sizeof(*s));
	memset(waiting, 0, sizeof(waiting));
	read_plan(&plan);
	emud_change(0, &plan, 0);
	packets = number();
	for (__u32 i = 0; i < packets && i < PACKETS; i++) {
		if (number())
			change(s);
		arrive(s, i);
	}
	while (emud_serve(0, EMUD_NEVER - 1, 0))
		;
}

int main(void)
{
	__u32 bottlenecks = number();

	for (__u32 i = 0; i < bottlenecks; i++)
		bottleneck(emud_server_at(0));
	return 0;
}
