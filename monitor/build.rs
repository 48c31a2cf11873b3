// SPDX-License-Identifier: GPL-2.0-only
//! Compiles bpf/record.bpf.c and turns bpf/record.h into Rust.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

fn main() -> Result<()> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    compile(Path::new("bpf/record.bpf.c"), &out.join("record.bpf.o"))?;
    bindgen::Builder::default()
        .header("bpf/record.h")
        .allowlist_item("(emud_rec|EMUD_REC)_?.*")
        .prepend_enum_name(false)
        .derive_default(true)
        .layout_tests(false)
        .generate()
        .context("bindgen")?
        .write_to_file(out.join("record.rs"))?;
    Ok(())
}

fn compile(source: &Path, object: &Path) -> Result<()> {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let arch = env::var("CARGO_CFG_TARGET_ARCH")?;
    let status = Command::new(&clang)
        .args([
            "-g", "-O2", "-target", "bpf", "-mcpu=v3", "-Wall", "-Wextra", "-Werror",
        ])
        .arg(format!("-I/usr/include/{arch}-linux-gnu"))
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(object)
        .status()
        .with_context(|| format!("cannot run {clang}"))?;
    if !status.success() {
        bail!("{clang} failed on {}", source.display());
    }
    Ok(())
}
