// SPDX-License-Identifier: GPL-2.0-only
/*
 * The link emulator inside the kernel.
 *
 * Theory of operation
 *
 * A classifier on a device gives every packet a departure time, or loses it,
 * so that the device behaves like the link described in struct emud_link. A
 * packet goes one way through the stages, one header each:
 *
 *	parse -> queue -> loss -> delay -> release
 *
 * Nothing waits in here: release hands the packet, with its departure time, to
 * sch_fq or to the holder behind a TAP.
 *
 * Egress of the device is the link's up direction, ingress is down. A packet
 * that comes back from waiting (the clone, a frame from the holder) passes the
 * classifier again and is known by its tc_index. Packets that are not ours go
 * on to the next filter (TC_ACT_UNSPEC), so that other programs on the device
 * see them. A lost packet is consumed (TC_ACT_STOLEN): TC_ACT_SHOT would tell
 * a local TCP sender, which no wire does.
 *
 * The configuration is doubled: `emud set` writes the generation not in force
 * and then turns one word, so no packet sees half a change.
 */
#include "maps.h"
#include "rng.h"
#include "parse.h"
#include "queue.h"
#include "loss.h"
#include "delay.h"
#include "release.h"

static __always_inline int emud_holder_gone(const struct emud_packet *p, __u64 now)
{
	struct emud_holder *h;

	if (p->link->release != EMUD_RELEASE_HOLD)
		return 0;
	h = bpf_map_lookup_elem(&emud_holders, &p->direction);
	return !h || *(volatile __u64 *)&h->lease_ns < now;
}

/* TCP's pacing and SO_TXTIME put a departure time into the stamp: the packet
 * reaches the link then, not now. */
static __always_inline __u64 emud_arrival(const struct __sk_buff *skb, __u64 now)
{
	__u64 stamp = skb->tstamp;

	return stamp > now && stamp - now < EMUD_HORIZON_NS ? stamp : now;
}

static __always_inline int emud_stages(struct emud_packet *p)
{
	__u64 now = bpf_ktime_get_ns();
	int verdict;

	emud_parse(p);
	p->count->packets += p->segments;
	p->count->bytes += p->wire_len;
	if (p->segments > 1)
		p->count->super_packets++;
	if (p->link->release == EMUD_RELEASE_NONE)
		return emud_passed(p, EMUD_PASS_INACTIVE);
	if (p->is_neighbour && !(p->link->flags & EMUD_F_NEIGHBOURS))
		return emud_passed(p, EMUD_PASS_NEIGHBOUR);
	if (emud_ip_only(p) && !p->is_ip)
		return emud_passed(p, EMUD_PASS_NOT_IP);
	if (emud_holder_gone(p, now))
		return emud_passed(p, EMUD_PASS_NO_HOLDER);

	p->arrival = emud_arrival(p->skb, now);
	if (p->link->loss || (p->link->flags & EMUD_F_DRAWN))
		emud_number(p);
	if (!emud_queue(p)) {
		p->count->queue_dropped += p->segments;
		return TC_ACT_STOLEN;
	}
	if (emud_lost(p)) {
		p->count->lost += p->segments;
		return TC_ACT_STOLEN;
	}
	emud_delay(p);
	verdict = emud_release(p);
	if (!p->passed)
		emud_count_delay(p);
	return verdict;
}

static __always_inline int emud_run(struct __sk_buff *skb, __u32 direction)
{
	struct emud_packet p = {.skb = skb, .direction = direction};
	struct emud_control *control;
	__u32 zero = 0;

	if (skb->tc_index == EMUD_TC_INDEX) {
		/* detach finds the saved state by the maps of this program:
		 * one it does not name would be gone with the loader. */
		asm volatile("" : : "r"(&emud_saved));
		skb->tc_index = 0;
		return TC_ACT_UNSPEC;
	}
	if (skb->tc_index == EMUD_TC_INDEX_CLONE)
		skb->tc_index = 0;
	control = bpf_map_lookup_elem(&emud_control, &zero);
	if (!control)
		return TC_ACT_UNSPEC;
	p.slot = direction * EMUD_GENERATIONS +
		 (*(volatile __u32 *)&control->generation & (EMUD_GENERATIONS - 1));
	p.link = bpf_map_lookup_elem(&emud_links, &p.slot);
	p.state = bpf_map_lookup_elem(&emud_states, &direction);
	p.count = bpf_map_lookup_elem(&emud_counts, &direction);
	if (!p.link || !p.state || !p.count)
		return TC_ACT_UNSPEC;
	return emud_stages(&p);
}

SEC("classifier")
int emud_egress(struct __sk_buff *skb)
{
	return emud_run(skb, EMUD_UP);
}

SEC("classifier")
int emud_ingress(struct __sk_buff *skb)
{
	return emud_run(skb, EMUD_DOWN);
}

/*
 * Ingress, before all other filters, where a mirred filter does the redirect:
 * a packet that still has its sender's socket (a veth of this host) goes once
 * more through ingress as a clone, which has none. So the filters in between
 * see it once, and mirred does not make the sender wait for it.
 */
SEC("classifier")
int emud_orphan(struct __sk_buff *skb)
{
	if (!skb->sk || skb->tc_index == EMUD_TC_INDEX_CLONE ||
	    (skb->protocol != bpf_htons(ETH_P_IP) &&
	     skb->protocol != bpf_htons(ETH_P_IPV6)))
		return TC_ACT_UNSPEC;
	skb->tc_index = EMUD_TC_INDEX_CLONE;
	if (bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS) < 0) {
		skb->tc_index = 0;
		return TC_ACT_UNSPEC;
	}
	return TC_ACT_STOLEN;
}

/* Ingress of emud's TAP: the holder has written a frame back, it goes on. */
static __always_inline int emud_resume(struct __sk_buff *skb, __u64 flags)
{
	struct emud_control *control;
	__u32 zero = 0;

	control = bpf_map_lookup_elem(&emud_control, &zero);
	if (!control)
		return TC_ACT_SHOT;
	skb->tc_index = EMUD_TC_INDEX;
	return bpf_redirect(control->ifindex, flags);
}

SEC("classifier")
int emud_tap_up(struct __sk_buff *skb)
{
	return emud_resume(skb, 0);
}

SEC("classifier")
int emud_tap_down(struct __sk_buff *skb)
{
	return emud_resume(skb, BPF_F_INGRESS);
}

char LICENSE[] SEC("license") = "GPL";
