// SPDX-License-Identifier: GPL-2.0-only
//! Compiles bpf/monitor.bpf.c and turns bpf/monitor.h into Rust.

#[path = "../bpf/build.rs"]
mod bpf;

use std::path::Path;

fn main() -> anyhow::Result<()> {
    let out = bpf::out_dir(&["bpf", "../bpf/build.rs"])?;
    bpf::compile(Path::new("bpf/monitor.bpf.c"), &out.join("monitor.bpf.o"))?;
    bpf::bind(Path::new("bpf/monitor.h"), &out.join("monitor.rs"))
}
