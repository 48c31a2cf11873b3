// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles bpf/*.bpf.c and generates Rust types from bpf/emud.h.

#[path = "bpf/build.rs"]
mod bpf;

use std::path::Path;

fn main() -> anyhow::Result<()> {
    let out = bpf::out_dir(&["bpf"])?;
    if bpf::is_compiled(&out)? {
        return Ok(());
    }
    bpf::compile(Path::new("bpf/link.bpf.c"), &out.join("link.bpf.o"))?;
    bpf::compile(Path::new("bpf/segment.bpf.c"), &out.join("segment.bpf.o"))?;
    bpf::compile(Path::new("bpf/stamp.bpf.c"), &out.join("stamp.bpf.o"))?;
    bpf::bind(Path::new("bpf/emud.h"), &out.join("emud.rs"))
}
