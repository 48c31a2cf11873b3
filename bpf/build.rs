// SPDX-License-Identifier: MIT OR Apache-2.0
//! How BPF programs in C become part of a Rust crate: clang compiles them, and bindgen turns the
//! header they share with Rust into types. Used by both build scripts.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Published crates contain this folder, so that they need no clang; the repository does not.
const COMPILED: &str = "bpf/compiled";

/// Copies the files of [`COMPILED`] to the output folder. Returns false if there are none, or if they
/// are not for the target: they are for 64 bits, least significant byte first.
pub fn is_compiled(out: &Path) -> Result<bool> {
    let target = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    let fits = (target("POINTER_WIDTH"), target("ENDIAN")) == ("64".into(), "little".into());
    if !fits || !Path::new(COMPILED).is_dir() {
        return Ok(false);
    }
    for entry in std::fs::read_dir(COMPILED)? {
        let entry = entry?;
        std::fs::copy(entry.path(), out.join(entry.file_name()))?;
    }
    Ok(true)
}

/// Compiles `source` to `object`.
pub fn compile(source: &Path, object: &Path) -> Result<()> {
    compile_by(&clang(), source, object, &[])
}

/// Returns the clang that the user names, or the default one.
pub fn clang() -> String {
    env::var("CLANG").unwrap_or_else(|_| "clang".into())
}

/// The same by this clang with definitions, each as `NAME=VALUE`.
///
/// # Errors
/// It is not there, or the source is wrong.
pub fn compile_by(clang: &str, source: &Path, object: &Path, defined: &[String]) -> Result<()> {
    let status = Command::new(clang)
        // mcpu=v3: atomics that return the old value (Linux 5.12).
        .args([
            "-g",
            "-O2",
            "-target",
            "bpf",
            "-mcpu=v3",
            "-Wall",
            "-Wextra",
            // The hook determines a program's arguments, used or not.
            "-Wno-unused-parameter",
            "-Werror",
        ])
        .args(multiarch_include())
        .args(defined.iter().map(|definition| format!("-D{definition}")))
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(object)
        .status()
        .with_context(|| format!("cannot run {clang}: install clang (Debian: clang libbpf-dev)"))?;
    if !status.success() {
        bail!("{clang} failed on {}", source.display());
    }
    Ok(())
}

/// Debian keeps <asm/types.h> in a folder of the host's architecture, which
/// clang does not search when the target is BPF.
fn multiarch_include() -> Option<String> {
    let arch = env::var("CARGO_CFG_TARGET_ARCH").ok()?;
    let dir = format!("/usr/include/{arch}-linux-gnu");
    Path::new(&dir).is_dir().then(|| format!("-I{dir}"))
}

/// Writes the `emud_` items of `header` as Rust.
pub fn bind(header: &Path, rust: &Path) -> Result<()> {
    bindgen::Builder::default()
        .header(header.to_string_lossy())
        .allowlist_item("(emud|EMUD)_.*")
        .prepend_enum_name(false)
        .derive_default(true)
        .layout_tests(false)
        .generate()
        .context("bindgen")?
        .write_to_file(rust)?;
    Ok(())
}

/// Returns the output folder of the build script and prints what triggers a rebuild.
pub fn out_dir(watched: &[&str]) -> Result<PathBuf> {
    for path in watched {
        println!("cargo:rerun-if-changed={path}");
    }
    println!("cargo:rerun-if-env-changed=CLANG");
    Ok(PathBuf::from(env::var("OUT_DIR")?))
}
