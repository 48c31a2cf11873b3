// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the programs of bpf/ and generates Rust types from the headers they share with Rust.

#[path = "bpf/build.rs"]
mod bpf;

use std::path::Path;

fn main() -> anyhow::Result<()> {
    let out = bpf::out_dir(&["bpf"])?;
    if bpf::is_compiled(&out)? {
        return Ok(());
    }
    for name in ["monitor", "record"] {
        let source = format!("bpf/{name}.bpf.c");
        bpf::compile(Path::new(&source), &out.join(format!("{name}.bpf.o")))?;
        let header = format!("bpf/{name}.h");
        bpf::bind(Path::new(&header), &out.join(format!("{name}.rs")))?;
    }
    Ok(())
}
