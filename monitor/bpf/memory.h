/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memory: pages read from and written to swap, in one sliding window each.
 *
 * Demand paging of files is not swapping: a written page counts if it is
 * swap-backed, and reads from swap have separate hooks.
 */
#ifndef EMUD_MONITOR_MEMORY_H
#define EMUD_MONITOR_MEMORY_H

#include "block.h"
#include "window.h"

const volatile __u64 emud_page_shift = 12;

static __always_inline __u64 emud_folio_flags(const void *folio)
{
	__u64 flags = 0;

	/* First member in every kernel, of a type whose name changed. */
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

/* A page-in observed as a request to a swap device. */
static __always_inline void emud_swap_read(const struct bio *bio)
{
	__u32 dev = bio->bi_bdev->bd_dev;

	if ((bio->bi_opf & EMUD_REQ_OP_MASK) != EMUD_REQ_OP_READ ||
	    !bpf_map_lookup_elem(&emud_swaps, &dev))
		return;
	emud_paged(EMUD_WINDOW_PAGE_IN, bio->bi_iter.bi_size >> emud_page_shift,
		   EMUD_HOOK_PAGE_IN);
}

SEC("tp_btf/mm_vmscan_write_folio")
int emud_page_out(emud_args *args)
{
	const void *folio = (void *)args[0];

	emud_ran(EMUD_HOOK_PAGE_OUT);
	if (emud_swap_backed(folio))
		emud_paged(EMUD_WINDOW_PAGE_OUT, emud_folio_pages(folio),
			   EMUD_HOOK_PAGE_OUT);
	return 0;
}

SEC("fentry/swap_read_folio")
int emud_page_in(emud_args *args)
{
	emud_ran(EMUD_HOOK_PAGE_IN);
	emud_paged(EMUD_WINDOW_PAGE_IN, emud_folio_pages((void *)args[0]),
		   EMUD_HOOK_PAGE_IN);
	return 0;
}

/* Until Linux 6.7. */
SEC("fentry/swap_readpage")
int emud_page_in_old(emud_args *args)
{
	emud_ran(EMUD_HOOK_PAGE_IN);
	emud_paged(EMUD_WINDOW_PAGE_IN, emud_folio_pages((void *)args[0]),
		   EMUD_HOOK_PAGE_IN);
	return 0;
}

SEC("kprobe/swap_read_folio")
int emud_page_in_probe(void *ctx)
{
	emud_ran(EMUD_HOOK_PAGE_IN);
	emud_paged(EMUD_WINDOW_PAGE_IN, 1, EMUD_HOOK_PAGE_IN);
	return 0;
}

SEC("kprobe/swap_readpage")
int emud_page_in_probe_old(void *ctx)
{
	emud_ran(EMUD_HOOK_PAGE_IN);
	emud_paged(EMUD_WINDOW_PAGE_IN, 1, EMUD_HOOK_PAGE_IN);
	return 0;
}

SEC("tp_btf/block_bio_queue")
int emud_page_in_bio(emud_args *args)
{
	emud_ran(EMUD_HOOK_PAGE_IN);
	emud_swap_read((void *)args[0]);
	return 0;
}

SEC("perf_event")
int emud_page_in_fault(void *ctx)
{
	emud_ran(EMUD_HOOK_PAGE_IN);
	emud_paged(EMUD_WINDOW_PAGE_IN, 1, EMUD_HOOK_PAGE_IN);
	return 0;
}

#endif
