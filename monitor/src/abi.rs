// SPDX-License-Identifier: MIT OR Apache-2.0
//! The types of bpf/monitor.h, made by bindgen, and the compiled programs.

#![allow(
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    dead_code, // what only the C side names
    missing_docs
)]

include!(concat!(env!("OUT_DIR"), "/monitor.rs"));

/// The object file of bpf/monitor.bpf.c, aligned for the ELF parser.
pub static MONITOR_OBJECT: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/monitor.bpf.o"));

macro_rules! pod {
    ($($t:ty),+) => {$(
        // SAFETY: plain C of integers, no padding (laid out so in bpf/monitor.h),
        // every bit pattern valid.
        unsafe impl aya::Pod for $t {}
    )+};
}

pod!(
    emud_alarm,
    emud_config,
    emud_counters,
    emud_emulated,
    emud_name,
    emud_netdev_rule,
    emud_runs,
    emud_table,
    emud_tx
);
