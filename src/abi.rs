// SPDX-License-Identifier: MIT OR Apache-2.0
//! The types of bpf/emud.h, made by bindgen, and the compiled classifier.

#![allow(
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    missing_docs
)]

include!(concat!(env!("OUT_DIR"), "/emud.rs"));

/// The object file of bpf/link.bpf.c, aligned for the ELF parser.
pub static LINK_OBJECT: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/link.bpf.o"));

/// The object file of bpf/segment.bpf.c.
pub static SEGMENT_OBJECT: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/segment.bpf.o"));

macro_rules! pod {
    ($($t:ty),+) => {$(
        // SAFETY: plain C of integers, no padding (size asserts in bpf/emud.h),
        // every bit pattern valid.
        unsafe impl aya::Pod for $t {}
    )+};
}

pod!(
    emud_control,
    emud_counters,
    emud_holder,
    emud_instances,
    emud_key,
    emud_layout,
    emud_link,
    emud_masks,
    emud_overlay,
    emud_pair,
    emud_pair_key,
    emud_pattern,
    emud_rule,
    emud_row,
    emud_state,
    emud_table
);
