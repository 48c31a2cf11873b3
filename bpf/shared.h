/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps that the classifier shares with emud's qdisc, which serves bottlenecks.
 */
#ifndef EMUD_SHARED_H
#define EMUD_SHARED_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "emud.h"

/* The lengths are those for a profile without named links; the loader sets the
 * real ones. */
#define EMUD_MAP(name_, type_, len_, value_)        \
	struct {                                    \
		__uint(type, BPF_MAP_TYPE_##type_); \
		__uint(max_entries, len_);          \
		__type(key, __u32);                 \
		__type(value, value_);              \
	} name_ SEC(".maps")

EMUD_MAP(emud_control, ARRAY, 1, struct emud_control);
EMUD_MAP(emud_holders, ARRAY, EMUD_DIRECTIONS, struct emud_holder);
EMUD_MAP(emud_classes, ARRAY, 1, struct emud_class);
EMUD_MAP(emud_plans, ARRAY, EMUD_SLOTS, struct emud_plan);

#endif
