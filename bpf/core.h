/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The only field of the kernel's packet that is read and that struct __sk_buff
 * does not have; the loader finds its offset (CO-RE).
 */
#ifndef EMUD_CORE_H
#define EMUD_CORE_H

#include "maps.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct refcount_struct {
	int refs;
};

struct sk_buff {
	struct refcount_struct users;
};

#pragma clang attribute pop

/* Returns whether this packet has a single reference. A shared packet (pktgen
 * sends the same one repeatedly) must not be changed, and the kernel crashes on
 * its clone (pskb_expand_head). A field that cannot be read is not 1. */
static __always_inline int emud_alone(const struct __sk_buff *skb)
{
	const struct sk_buff *packet = (const void *)skb;
	__u32 users = 0;

	bpf_probe_read_kernel(&users, sizeof(users), &packet->users);
	return users == 1;
}

#endif
