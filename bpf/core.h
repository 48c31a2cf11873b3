/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fields of the kernel that are read and that struct __sk_buff and struct bpf_sock
 * do not have.
 */
#ifndef EMUD_CORE_H
#define EMUD_CORE_H

#include "maps.h"

/* Offsets in bytes, from the loader (src/host/btf.rs): CO-RE would have it build all
 * types of the kernel for a few fields. 0: not known. */
const volatile __u32 emud_users_offset; /* of struct sk_buff */
const volatile __u32 emud_sndbuf_offset; /* of struct sock */
const volatile __u32 emud_wmem_offset; /* of struct sock */
const volatile __u32 emud_kernel_offset; /* of struct sock: the byte with sk_kern_sock */
const volatile __u8 emud_kernel_bit; /* and which bit of it, as a mask */

/* Returns whether this packet has a single reference. A shared packet (pktgen
 * sends the same one repeatedly) must not be changed, and the kernel crashes on
 * its clone (pskb_expand_head). A field that cannot be read is not 1. */
static __always_inline int emud_alone(const struct __sk_buff *skb)
{
	__u32 users = 0;

	if (emud_users_offset)
		bpf_probe_read_kernel(&users, sizeof(users),
				      (const char *)skb + emud_users_offset);
	return users == 1;
}

/* The verifier permits no arithmetic on a socket; what is read from a map is a
 * number. */
static __always_inline const char *emud_socket_at(struct bpf_sock *sk, __u32 scratch)
{
	struct emud_packet *p = EMUD_LOOKUP(emud_packets, scratch);

	if (!p)
		return NULL;
	*(void *volatile *)&p->socket = sk;
	return (const char *)*(volatile __u64 *)&p->socket;
}

/* Returns whether a full socket of what this host sends belongs to the kernel. */
static __always_inline int emud_of_kernel(struct bpf_sock *sk, __u32 scratch)
{
	const char *at = emud_socket_at(sk, scratch);
	__u8 byte = 0;

	return !at ||
	       bpf_probe_read_kernel(&byte, sizeof(byte), at + emud_kernel_offset) ||
	       byte & emud_kernel_bit;
}

/*
 * Returns whether a packet may keep its socket while it waits: most of the send
 * buffer is free, so the socket does not stop its sender.
 *
 * Only UDP: TCP's small queues stop a sender long before, and a packet or XDP socket may
 * wait for its packets themselves. Connected sockets only with `connected`: to fq, all
 * packets of one are one flow, whatever their hash.
 */
__noinline int emud_keeps_socket(struct __sk_buff *skb, __u32 scratch, __u32 connected)
{
	struct bpf_sock *sk = skb->sk;
	__u32 room, used;
	const char *at;

	if (!emud_sndbuf_offset || !emud_wmem_offset || !sk)
		return 0;
	sk = bpf_sk_fullsock(sk);
	if (!sk || sk->protocol != IPPROTO_UDP ||
	    (!connected && sk->state != BPF_TCP_CLOSE))
		return 0;
	at = emud_socket_at(sk, scratch);
	if (!at || bpf_probe_read_kernel(&used, sizeof(used), at + emud_wmem_offset) ||
	    bpf_probe_read_kernel(&room, sizeof(room), at + emud_sndbuf_offset))
		return 0;
	return used < room >> 1;
}

#endif
