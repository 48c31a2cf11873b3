/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dns: addresses of the names of rules (match.answer), learned from the DNS answers
 * that pass.
 *
 * Only answers of the configured resolvers count, over UDP, to exactly one question,
 * which is a name of the rules; all addresses in the answer section are its own, at
 * the end of any chain of aliases. A full table forgets the address that was
 * unused longest, so it keeps those in use.
 */
#ifndef EMUD_DNS_H
#define EMUD_DNS_H

#include "cgroup.h"
#include "maps.h"
#include "parse.h"
#include "rng.h"

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct emud_address);
	__type(value, __u64); /* ns, when it was learned */
} emud_addresses SEC(".maps");
EMUD_MAP(emud_resolvers, ARRAY, 1, struct emud_resolvers);

#define EMUD_DNS_PORT 53
#define EMUD_DNS_HEADER 12
#define EMUD_DNS_NAME 255 /* RFC 1035, with lengths */
#define EMUD_DNS_LABELS 128
#define EMUD_DNS_RECORDS 32 /* that are read of an answer */
#define EMUD_DNS_RECORD 10 /* without name and data */
#define EMUD_DNS_LEN 1024 /* that is read of an answer */
#define EMUD_DNS_A 1
#define EMUD_DNS_AAAA 28

struct emud_answer {
	__u8 data[EMUD_DNS_LEN + 16];
	__u32 len;
};
/* As emud_packets. */
EMUD_MAP(emud_answers, PERCPU_ARRAY, EMUD_DIRECTIONS, struct emud_answer);

static __always_inline __u8 emud_answer_byte(const struct emud_answer *a, __u32 at)
{
	return a->data[emud_bound(at, EMUD_DNS_LEN)];
}

static __always_inline __u32 emud_answer_half(const struct emud_answer *a, __u32 at)
{
	return emud_answer_byte(a, at) << 8 | emud_answer_byte(a, at + 1);
}

/* Returns the position after a name. A global function, like all of these. */
__noinline __u32 emud_answer_skip(__u32 scratch, __u32 at)
{
	const struct emud_answer *a;
	__u32 i, len;

	if (!emud_uses(NAMES))
		return 0;
	a = EMUD_LOOKUP(emud_answers, scratch);
	if (!a)
		return EMUD_DNS_LEN;
	for (i = 0; i < EMUD_DNS_LABELS; i++) {
		len = emud_answer_byte(a, at);
		if (!len)
			return at + 1;
		if (len >= 0xc0)
			return at + 2;
		at += len + 1;
	}
	return EMUD_DNS_LEN;
}

/*
 * Returns the hash of the name in the question, in lower case; 0: none. What ends at
 * the first zero is a whole name if it has the hash of one: its lengths are those of
 * that name. No length is a letter.
 */
__noinline __u64 emud_answer_name(__u32 scratch)
{
	const struct emud_answer *a;
	__u64 hash = EMUD_FOR_NAME;
	__u32 i, byte;

	if (!emud_uses(NAMES))
		return 0;
	a = EMUD_LOOKUP(emud_answers, scratch);
	if (!a)
		return 0;
	for (i = 0; i < EMUD_DNS_NAME; i++) {
		byte = a->data[EMUD_DNS_HEADER + i];
		if (!byte)
			return emud_mix(hash) & ~1ULL;
		if (byte - 'A' < 26)
			byte |= 0x20;
		hash = emud_absorb(hash, byte);
	}
	return 0;
}

__noinline int emud_answer_learn(__u32 scratch, __u32 at, __u64 name, __u32 is_ip6)
{
	const struct emud_answer *a;
	struct emud_address address = {.name = name | is_ip6};
	__u64 now = bpf_ktime_get_ns();

	if (!emud_uses(NAMES))
		return 0;
	a = EMUD_LOOKUP(emud_answers, scratch);
	if (!a)
		return 0;
	at = emud_bound(at, EMUD_DNS_LEN);
	if (is_ip6)
		__builtin_memcpy(address.ip, &a->data[at], 16);
	else
		__builtin_memcpy(address.ip, &a->data[at], 4);
	bpf_map_update_elem(&emud_addresses, &address, &now, BPF_ANY);
	return 1;
}

static __always_inline int emud_answer_read(struct __sk_buff *skb, struct emud_answer *a,
					    __u32 off)
{
	__u32 len = skb->len - off;

	if (skb->len <= off)
		return 0;
	if (len > EMUD_DNS_LEN)
		len = EMUD_DNS_LEN;
	asm volatile("" : "+r"(len));
	if (len < EMUD_DNS_HEADER || len > EMUD_DNS_LEN ||
	    bpf_skb_load_bytes(skb, off, a->data, len))
		return 0;
	a->len = len;
	return 1;
}

/* Learns the addresses of an answer whose question is a name of the rules. */
__noinline int emud_answer(struct __sk_buff *skb, __u32 scratch, __u32 off, __u32 base)
{
	const struct emud_masks *masks;
	struct emud_answer *a;
	__u32 i, at, kind, len, records;
	__u64 name;

	if (!emud_uses(NAMES))
		return 0;
	a = EMUD_LOOKUP(emud_answers, scratch);
	masks = EMUD_LOOKUP(emud_masks, base);
	if (!a || !masks || !emud_answer_read(skb, a, off))
		return 0;
	/* An answer to a standard query, no error, one question. */
	if ((a->data[2] & 0xf8) != 0x80 || a->data[3] & 0xf ||
	    emud_answer_half(a, 4) != 1)
		return 0;
	records = emud_answer_half(a, 6);
	name = emud_answer_name(scratch);
	for (i = 0; i < EMUD_CGROUPS_MAX; i++)
		if (masks->name[i] == name)
			break;
	if (!name || i == EMUD_CGROUPS_MAX)
		return 0;
	at = emud_answer_skip(scratch, EMUD_DNS_HEADER) + 4;
	for (i = 0; i < EMUD_DNS_RECORDS; i++) {
		if (i >= records)
			break;
		at = emud_answer_skip(scratch, at);
		if (at + EMUD_DNS_RECORD > a->len)
			break;
		kind = emud_answer_half(a, at);
		len = emud_answer_half(a, at + 8);
		at += EMUD_DNS_RECORD;
		if (at + len > a->len)
			break;
		if (kind == EMUD_DNS_A && len == 4)
			emud_answer_learn(scratch, at, name, 0);
		if (kind == EMUD_DNS_AAAA && len == 16)
			emud_answer_learn(scratch, at, name, 1);
		at += len;
	}
	return 1;
}

static __always_inline int emud_is_resolver(const struct emud_key *k)
{
	const struct emud_resolvers *all = EMUD_LOOKUP(emud_resolvers, 0);
	__u32 i, is_ip6 = k->has & EMUD_HAS_IP6 ? 1 : 0;

	if (!all)
		return 0;
	for (i = 0; i < EMUD_RESOLVERS_MAX; i++) {
		if (i >= all->count)
			break;
		if (all->resolver[i].ip[0] == k->source[0] &&
		    all->resolver[i].ip[1] == k->source[1] &&
		    all->resolver[i].name == is_ip6)
			return 1;
	}
	return 0;
}

/* Sets the bits of the names whose addresses include the other host's. */
__noinline int emud_key_names(struct emud_packet *p, struct emud_key *k)
{
	const struct emud_masks *masks;
	struct emud_address address = {};
	const __u64 *far;
	__u32 i;

	if (!p || !k || !emud_uses(NAMES))
		return 0;
	masks = EMUD_LOOKUP(emud_masks, p->base);
	if (!masks || !(k->has & EMUD_HAS_IP))
		return 0;
	far = p->direction == EMUD_DOWN ? k->source : k->destination;
	address.ip[0] = far[0];
	address.ip[1] = far[1];
	for (i = 0; i < EMUD_CGROUPS_MAX; i++) {
		if (!masks->name[i])
			break;
		address.name = masks->name[i] | (k->has & EMUD_HAS_IP6 ? 1 : 0);
		if (bpf_map_lookup_elem(&emud_addresses, &address))
			k->cgroups |= 1U << (EMUD_CGROUPS_MAX - 1 - i);
	}
	return 1;
}

/* Learns from a packet, and sets the names that it belongs to. */
static __always_inline void emud_names(struct __sk_buff *skb, struct emud_packet *p,
				       struct emud_key *k)
{
	if (p->l4_proto == IPPROTO_UDP && k->has & EMUD_HAS_PORTS &&
	    k->source_port == bpf_htons(EMUD_DNS_PORT) && emud_is_resolver(k))
		emud_answer(skb, p->scratch, p->l4_off + sizeof(struct udphdr), p->base);
	emud_key_names(p, k);
}

#endif
