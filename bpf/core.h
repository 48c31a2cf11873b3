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
const volatile __u32 emud_protocol_offset; /* of struct sock */
const volatile __u32 emud_kernel_offset; /* of struct sock: the byte with sk_kern_sock */
const volatile __u8 emud_kernel_bit; /* and which bit of it, as a mask */
/* Type number of struct sock for bpf_rdonly_cast(); 0: this kernel has no such function
 * (before 6.2). */
const volatile __u32 emud_sock_type;

/* A call of a function of the kernel by its number, which the loader writes in place of this one:
 * aya does not know such functions. */
#define EMUD_CALL(function) \
	((__u64)(function) << 32 | BPF_PSEUDO_KFUNC_CALL << 12 | BPF_JMP | BPF_CALL)

/* Returns the socket as a pointer by which its fields can be read: a load each. The kernel replaces
 * the call by a move. bpf_probe_read_kernel() takes 120 instructions. */
static __always_inline const char *emud_readable(struct bpf_sock *sk)
{
	const char *at;

	asm volatile("r1 = %[sk]\n\tr2 = %[type]\n\t.8byte %[call]\n\t%[at] = r0"
		     : [at] "=r"(at)
		     : [sk] "r"(sk), [type] "r"((__u64)emud_sock_type),
		       [call] "i"(EMUD_CALL(EMUD_RDONLY_CAST))
		     : "r0", "r1", "r2", "r3", "r4", "r5");
	return at;
}

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

/* The state is that of UDP; other full sockets may have it, those of requests and TIME-WAIT do not. */
static __always_inline int emud_may_be_udp(const struct bpf_sock *sk, __u32 connected)
{
	return sk->state == BPF_TCP_CLOSE ||
	       (connected && sk->state == BPF_TCP_ESTABLISHED);
}

static __always_inline int emud_udp_has_room(struct bpf_sock *sk)
{
	const char *at = emud_readable(sk);

	return *(const __u16 *)(at + emud_protocol_offset) == IPPROTO_UDP &&
	       *(const __u32 *)(at + emud_wmem_offset) <
		       *(const __u32 *)(at + emud_sndbuf_offset) >> 1;
}

/* Global, since the stack of its callers has no room for it. */
__noinline int emud_has_room(struct __sk_buff *skb, __u32 scratch, __u32 connected)
{
	struct bpf_sock *sk = skb->sk;
	__u32 room, used;
	const char *at;

	if (EMUD_ONLY_QDISC || !emud_sndbuf_offset || !emud_wmem_offset || !sk ||
	    !emud_may_be_udp(sk, connected))
		return 0;
	if (emud_sock_type)
		return emud_udp_has_room(sk);
	sk = bpf_sk_fullsock(sk);
	if (!sk || sk->protocol != IPPROTO_UDP)
		return 0;
	at = emud_socket_at(sk, scratch);
	if (!at || bpf_probe_read_kernel(&used, sizeof(used), at + emud_wmem_offset) ||
	    bpf_probe_read_kernel(&room, sizeof(room), at + emud_sndbuf_offset))
		return 0;
	return used < room >> 1;
}

/*
 * Returns whether a packet may keep its socket while it waits: most of the send
 * buffer is free, so the socket does not stop its sender.
 *
 * Only UDP: TCP's small queues stop a sender long before, and a packet or XDP socket may
 * wait for its packets themselves. Connected sockets only with `connected`: to fq, all
 * packets of one are one flow, whatever their hash.
 */
static __always_inline int emud_keeps_socket(struct __sk_buff *skb, __u32 scratch,
					     __u32 connected)
{
	struct bpf_sock *sk;

	if (!EMUD_ONLY_QDISC)
		return emud_has_room(skb, scratch, connected);
	sk = skb->sk;
	return emud_sock_type && emud_sndbuf_offset && emud_wmem_offset && sk &&
	       emud_may_be_udp(sk, connected) && emud_udp_has_room(sk);
}

#endif
