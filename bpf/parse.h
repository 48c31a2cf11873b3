/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * parse: protocol of a packet, its length on the wire, and its flow.
 *
 * A flow is the 5-tuple. For ICMP the type stands for the ports (the echo
 * identifier is a process id, which would give every ping a different fate).
 * For fragments nothing does, since only the first one has ports.
 */
#ifndef EMUD_PARSE_H
#define EMUD_PARSE_H

#include "maps.h"
#include "rng.h"

#define ETH_P_QINQ 0x88a8 /* ETH_P_8021AD */
#define EMUD_VLAN_DEPTH 2
#define EMUD_IP6_EXT_DEPTH 4
#define EMUD_ND_FIRST 133 /* router solicitation */
#define EMUD_ND_LAST 137 /* redirect */
#define EMUD_ESP_IN_UDP 4500 /* RFC 3948 */
#define EMUD_SCTP_HEADER 12
#define EMUD_GSO_BY_FRAGS 0xffff /* GSO_BY_FRAGS: packets of any lengths */
#define EMUD_PTP_EVENT 319 /* IEEE 1588: the UDP port of messages with a time stamp */

/* Above any offset of a header, for the verifier. */
#define EMUD_OFF_MASK 0x3fff

/* Enough for two tags, an IPv6 header and TCP's first 20 bytes. */
#define EMUD_PULL_LEN (ETH_HLEN + 4 * EMUD_VLAN_DEPTH + 40 + 20)

struct emud_vlan {
	__be16 tci;
	__be16 proto;
};

struct emud_cursor {
	void *data;
	void *end;
	__u32 off; /* at most a few hundred: the verifier must be able to prove it */
	__be16 proto;
};

/* For use after emud_parse(), which pulled in the headers. */
static __always_inline struct emud_cursor emud_cursor(const struct __sk_buff *skb,
						      __u32 off)
{
	struct emud_cursor c = {
		.data = (void *)(long)skb->data,
		.end = (void *)(long)skb->data_end,
		.off = off,
	};

	return c;
}

static __always_inline void *emud_at(struct emud_cursor *c, __u32 len)
{
	void *p = c->data + c->off;

	return p + len <= c->end ? p : NULL;
}

static __always_inline void emud_is_flow(struct emud_packet *p, __u64 addresses,
					 __u8 proto, __u32 ports)
{
	p->addresses = addresses;
	p->ends = (__u64)proto << 32 | ports;
	p->flow = emud_flow_hash(addresses, p->ends);
}

/* GSO and GRO packets are trains of wire packets, each with its own headers.
 * gso_segs is not valid on ingress, gso_size is. In a tunnel the inner headers are on
 * each packet, too: what is too long for the payload of gso_segs packets is header.
 * Those of SCTP can differ in length: the mean counts. A global function: rare, and long for the
 * verifier. */
__noinline int emud_train(struct __sk_buff *skb, struct emud_packet *p)
{
	__u32 segs, len = skb->len, size = skb->gso_size, header_len;
	struct emud_cursor c;
	struct tcphdr *tcp;

	if (!p)
		return 0;
	c = emud_cursor(skb, p->l4_off & EMUD_OFF_MASK);
	segs = p->direction == EMUD_UP ? skb->gso_segs : 0;
	header_len = c.off + 8;
	tcp = emud_at(&c, sizeof(*tcp));
	if (tcp && p->l4_proto == IPPROTO_TCP)
		header_len = c.off + tcp->doff * 4;
	if (size == EMUD_GSO_BY_FRAGS) {
		header_len = c.off + EMUD_SCTP_HEADER;
		size = segs && len > header_len ? (len - header_len + segs - 1) / segs
						: 0;
	}
	if (!size || len <= header_len)
		return 0;
	p->segments = (len - header_len + size - 1) / size;
	if (segs && (segs - 1) * size < len - header_len) {
		p->segments = segs;
		if (len - header_len > segs * size)
			header_len = len - segs * size;
	}
	header_len += p->wire_len - len; /* a tag outside the data is on all of them */
	p->wire_len += (p->segments - 1) * header_len;
	p->full_len = header_len + size;
	p->last_len = p->wire_len - (p->segments - 1) * p->full_len;
	return 1;
}

static __always_inline void emud_parse_l4(struct __sk_buff *skb, struct emud_packet *p,
					  struct emud_cursor *c, __u8 proto,
					  __u64 addresses)
{
	__u32 ports = 0, *l4 = emud_at(c, sizeof(*l4));

	p->l4_off = c->off;
	p->l4_proto = proto;
	if (proto == IPPROTO_TCP || proto == IPPROTO_UDP || proto == IPPROTO_SCTP ||
	    proto == IPPROTO_DCCP || proto == IPPROTO_UDPLITE) {
		if (l4)
			ports = *l4;
		if (proto == IPPROTO_UDP && l4 &&
		    ((struct udphdr *)l4)->dest == bpf_htons(EMUD_PTP_EVENT))
			p->is_neighbour = 1;
	} else if (proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6) {
		if (l4)
			ports = *(__u8 *)l4;
		if (proto == IPPROTO_ICMPV6 && ports >= EMUD_ND_FIRST &&
		    ports <= EMUD_ND_LAST)
			p->is_neighbour = 1;
	}
	if (unlikely(skb->gso_size))
		emud_train(skb, p);
	emud_is_flow(p, addresses, proto, ports);
}

static __always_inline void emud_parse_ip4(struct __sk_buff *skb, struct emud_packet *p,
					   struct emud_cursor *c)
{
	struct iphdr *ip = emud_at(c, sizeof(*ip));
	__u64 addresses;
	__u8 proto;

	if (!ip || ip->version != 4)
		return;
	p->is_ip = 1;
	addresses = emud_absorb(4, ((__u64)ip->saddr << 32) | ip->daddr);
	proto = ip->protocol;
	if (unlikely(ip->frag_off & bpf_htons(0x3fff))) {
		p->l4_proto = proto; /* rules match on it */
		emud_is_flow(p, addresses, proto, 0);
		return;
	}
	c->off += ip->ihl * 4;
	emud_parse_l4(skb, p, c, proto, addresses);
}

/* After Ethernet and at most two tags, a bound that the verifier must be able
 * to prove. */
static __always_inline struct emud_cursor emud_cursor_l3(const struct __sk_buff *skb,
							 const struct emud_packet *p)
{
	return emud_cursor(skb, p->l3_off & 31);
}

static __always_inline int emud_is_ip6_ext(__u8 proto)
{
	return proto == IPPROTO_HOPOPTS || proto == IPPROTO_ROUTING ||
	       proto == IPPROTO_DSTOPTS;
}

/* Skips up to four extension headers, of which `proto` is the first, at `off`. Returns the offset
 * behind them, and in the lower byte the protocol there. A global function, whose result the verifier
 * does not follow: it would check all that comes after for each number of headers. */
__noinline __u32 emud_ip6_skip(struct __sk_buff *skb, __u32 off, __u32 proto)
{
	struct emud_cursor c = emud_cursor(skb, off & 127);
	int i;

	for (i = 0; i < EMUD_IP6_EXT_DEPTH && emud_is_ip6_ext(proto); i++) {
		struct ipv6_opt_hdr *ext = emud_at(&c, sizeof(*ext));

		if (!ext)
			break;
		proto = ext->nexthdr;
		c.off += (ext->hdrlen + 1) * 8;
	}
	return c.off << 8 | (proto & 255);
}

/* A global function: the verifier checks it once. */
__noinline int emud_parse_ip6(struct __sk_buff *skb, struct emud_packet *p)
{
	struct emud_cursor cursor, *c = &cursor;
	struct ipv6hdr *ip;
	__u64 addresses = 6, *word;
	__u32 behind;
	__u8 proto;
	int i;

	if (!p)
		return 0;
	cursor = emud_cursor_l3(skb, p);
	ip = emud_at(c, sizeof(*ip));
	if (!ip || ip->version != 6)
		return 0;
	p->is_ip = 1;
	word = (void *)&ip->saddr;
	for (i = 0; i < 4; i++)
		addresses = emud_absorb(addresses, word[i]);
	proto = ip->nexthdr;
	c->off += sizeof(*ip);
	if (unlikely(emud_is_ip6_ext(proto))) {
		behind = emud_ip6_skip(skb, c->off, proto);
		cursor = emud_cursor(skb, behind >> 8 & EMUD_OFF_MASK);
		proto = behind;
	}
	if (proto == IPPROTO_FRAGMENT) {
		struct ipv6_opt_hdr *fragment = emud_at(c, sizeof(*fragment));

		if (fragment)
			p->l4_proto = fragment->nexthdr;
		emud_is_flow(p, addresses, proto, 0);
		return 1;
	}
	emud_parse_l4(skb, p, c, proto, addresses);
	return 1;
}

static __always_inline void emud_parse_l2(struct emud_packet *p, struct emud_cursor *c)
{
	struct ethhdr *eth = emud_at(c, sizeof(*eth));
	int i;

	if (!eth)
		return;
	c->proto = eth->h_proto;
	c->off += sizeof(*eth);
	for (i = 0; i < EMUD_VLAN_DEPTH; i++) {
		struct emud_vlan *tag;

		if (likely(c->proto != bpf_htons(ETH_P_8021Q) &&
			   c->proto != bpf_htons(ETH_P_QINQ)))
			break;
		tag = emud_at(c, sizeof(*tag));
		if (!tag)
			return;
		c->proto = tag->proto;
		c->off += sizeof(*tag);
		p->tags++;
	}
}

static __always_inline int emud_parse(struct __sk_buff *skb, struct emud_packet *p,
				      const struct emud_link *l)
{
	struct emud_cursor c = {.proto = skb->protocol};

	/* Some drivers and tun leave the headers in a fragment: pull them in. */
	if (unlikely((void *)(long)skb->data + EMUD_PULL_LEN >
		     (void *)(long)skb->data_end))
		bpf_skb_pull_data(skb,
				  skb->len < EMUD_PULL_LEN ? skb->len : EMUD_PULL_LEN);
	c.data = (void *)(long)skb->data;
	c.end = (void *)(long)skb->data_end;

	p->segments = 1;
	p->wire_len = skb->len;
	if (!(l->flags & EMUD_F_L3))
		emud_parse_l2(p, &c);
	if (skb->vlan_present)
		p->wire_len += sizeof(struct emud_vlan);
	p->last_len = p->wire_len;
	p->l3_off = c.off;

	/* From memory, so that the verifier checks the rest once, not for each number of tags. */
	c.off = *(volatile __u32 *)&p->l3_off & 31;
	if (likely(c.proto == bpf_htons(ETH_P_IP)))
		emud_parse_ip4(skb, p, &c);
	else if (c.proto == bpf_htons(ETH_P_IPV6))
		emud_parse_ip6(skb, p);
	else if (c.proto == bpf_htons(ETH_P_ARP) || c.proto == bpf_htons(ETH_P_1588))
		p->is_neighbour = 1;
	if (unlikely(!p->is_ip))
		emud_is_flow(p, c.proto, 0, 0);
	return 1;
}

#endif
