// SPDX-License-Identifier: MIT OR Apache-2.0
//! The types of bpf/record.h, made by bindgen, and the compiled programs.

#![allow(
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    dead_code,
    missing_docs
)]

include!(concat!(env!("OUT_DIR"), "/record.rs"));

/// The object file of bpf/record.bpf.c, aligned for the ELF parser.
pub static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/record.bpf.o"));

macro_rules! pod {
    ($($t:ty),+) => {$(
        // SAFETY: plain C of integers without padding, every bit pattern valid.
        unsafe impl aya::Pod for $t {}
    )+};
}

pod!(emud_rec_cpu, emud_rec_disk, emud_rec_counters);
