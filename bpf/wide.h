/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wide: products of 128 bits.
 */
#ifndef EMUD_WIDE_H
#define EMUD_WIDE_H

#include <linux/types.h>
#include <bpf/bpf_helpers.h>

/* The upper half of a product, for which BPF has no instruction. */
static __always_inline __u64 emud_mul_high(__u64 a, __u64 b)
{
	__u64 al = a & 0xffffffff, ah = a >> 32, bl = b & 0xffffffff, bh = b >> 32;
	__u64 mid = ah * bl + ((al * bl) >> 32), mid2 = al * bh + (mid & 0xffffffff);

	return ah * bh + (mid >> 32) + (mid2 >> 32);
}

/* a * b / 2^shift, 1 <= shift < 64; the caller ensures that the result fits. */
static __always_inline __u64 emud_mul_shift(__u64 a, __u64 b, __u32 shift)
{
	return (emud_mul_high(a, b) << ((64 - shift) & 63)) | ((a * b) >> (shift & 63));
}

#endif
