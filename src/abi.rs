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

/// Both directions, `EMUD_UP` and `EMUD_DOWN`.
pub const DIRECTIONS: [u32; 2] = [EMUD_UP, EMUD_DOWN];

/// Returns the user's word for a direction.
pub const fn direction_name(direction: u32) -> &'static str {
    if direction == EMUD_UP { "up" } else { "down" }
}

/// The finaliser of bpf/rng.h.
pub fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

macro_rules! pod {
    ($($t:ty),+) => {$(
        // SAFETY: plain C of integers, no padding (size asserts in bpf/emud.h),
        // every bit pattern valid.
        unsafe impl aya::Pod for $t {}
    )+};
}

pod!(
    emud_class,
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
