/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memory: pages read from and written to swap, in a sliding window each.
 *
 * Demand paging of files is not swapping: a page that is written out counts
 * when it is swap-backed, and reading has hooks of its own.
 */
#ifndef EMUD_MONITOR_MEMORY_H
#define EMUD_MONITOR_MEMORY_H

#include "block.h"
#include "window.h"

#define EMUD_PAGE_SHIFT 12

static __always_inline __u64 emud_folio_flags(const void *folio)
{
	__u64 flags = 0;

	/* First member in every kernel, of a type that changed its name. */
	bpf_probe_read_kernel(&flags, sizeof(flags), folio);
	return flags;
}

static __always_inline int emud_swap_backed(const void *folio)
{
	return emud_folio_flags(folio) >>
		       bpf_core_enum_value(enum pageflags, PG_swapbacked) &
	       1;
}

static __always_inline __u64 emud_folio_pages(const void *folio)
{
	__u8 order = 0;

	if (!(emud_folio_flags(folio) >> bpf_core_enum_value(enum pageflags, PG_head) &
	      1))
		return 1;
	if (bpf_core_field_exists(((struct folio___order *)folio)->_folio_order))
		order = BPF_CORE_READ((struct folio___order *)folio, _folio_order);
	else
		order = BPF_CORE_READ((struct folio *)folio, _flags_1) & 0xff;
	return 1ULL << (order & 15);
}

static __always_inline void emud_paged(__u32 w, __u64 pages, enum emud_hook hook)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct emud_tx *tx = emud_this_tx(cpu);
	struct emud_who who;

	if (!tx)
		return;
	who = emud_who_task(bpf_get_current_task_btf(), &tx->scratch);
	emud_charge_window(w, cpu, &who, pages);
	emud_count(tx, w, cpu, pages, hook);
}

/* A page-in seen as a request to a swap device. */
static __always_inline void emud_swap_read(const struct bio *bio)
{
	__u32 dev = bio->bi_bdev->bd_dev;

	if ((bio->bi_opf & EMUD_REQ_OP_MASK) != EMUD_REQ_OP_READ ||
	    !bpf_map_lookup_elem(&emud_swaps, &dev))
		return;
	emud_paged(EMUD_WINDOW_PAGE_IN, bio->bi_iter.bi_size >> EMUD_PAGE_SHIFT,
		   EMUD_HOOK_PAGE_IN);
}

#endif
