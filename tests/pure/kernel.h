/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* In place of bpf/kernel.h, for programs of the qdisc that are compiled for this machine. */
#define EMUD_KERNEL_H
#define SEC(name)
#define __uint(name, value) int(*name)[value]
#define __type(name, value) value *name
#define __kptr
#define __noinline
#define likely(x) (x)
#define unlikely(x) (x)
#define bpf_loop(n, step, context, flags)               \
	({                                              \
		__u32 i_ = 0, n_ = (n);                 \
		while (i_ < n_ && !step(i_++, context)) \
			;                               \
		i_;                                     \
	})
