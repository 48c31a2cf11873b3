// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles bpf/*.bpf.c and generates Rust types from bpf/emud.h.

#[path = "bpf/build.rs"]
mod bpf;

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// The first clang that keeps the tag of a kptr (`btf_type_tag`); older ones drop it in silence.
const KPTR_CLANG: u32 = 15;

/// The classifiers, by what each of them has (enum emud_feature), the one to prefer first. The kernel takes
/// the longer for a program the more of it a link has no use for.
const CLASSIFIERS: [(&str, &str); 7] = [
    ("fq-delay", "EMUD_BY_FQ | EMUD_FEATURE_SHORT"),
    ("qdisc-delay", "EMUD_BY_QDISC | EMUD_FEATURE_SHORT"),
    ("hold-delay", "EMUD_BY_HOLD"),
    ("fq", "EMUD_BY_FQ | EMUD_FEATURES_USUAL"),
    ("qdisc", "EMUD_BY_QDISC | EMUD_FEATURES_USUAL"),
    ("hold", "EMUD_BY_HOLD | EMUD_FEATURES_USUAL"),
    ("all", "EMUD_FEATURES"),
];

/// emud's qdiscs, without and with classes.
const QDISCS: [(&str, &str); 2] = [
    ("qdisc", "EMUD_SERVES=0"),
    ("qdisc-serves", "EMUD_SERVES=1"),
];

fn main() -> anyhow::Result<()> {
    let out = bpf::out_dir(&["bpf"])?;
    if bpf::is_compiled(&out)? {
        return Ok(());
    }
    for name in ["segment", "stamp"] {
        let source = format!("bpf/{name}.bpf.c");
        bpf::compile(Path::new(&source), &out.join(format!("{name}.bpf.o")))?;
    }
    compile_classifiers(&out)?;
    compile_qdiscs(&out)?;
    bpf::bind(Path::new("bpf/emud.h"), &out.join("emud.rs"))
}

/// Compiles bpf/link.bpf.c once for each of [`CLASSIFIERS`], and lists them in classifiers.rs.
fn compile_classifiers(out: &Path) -> anyhow::Result<()> {
    let file = |name: &str| format!("link-{name}.bpf.o");
    // At once: the crate waits for them, and little else of the build is left by then.
    std::thread::scope(|scope| {
        let compilers = CLASSIFIERS.map(|(name, built)| {
            let (object, defined) = (out.join(file(name)), [format!("EMUD_BUILT=({built})")]);
            scope.spawn(move || {
                bpf::compile_by(
                    &bpf::clang(),
                    Path::new("bpf/link.bpf.c"),
                    &object,
                    &defined,
                )
            })
        });
        let mut done = compilers.into_iter().map(|compiler| compiler.join());
        done.try_for_each(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    let list = CLASSIFIERS.map(|(name, built)| {
        let file = file(name);
        format!(
            "({built}, aya::include_bytes_aligned!(concat!(env!(\"OUT_DIR\"), \"/{file}\"))),\n"
        )
    });
    Ok(fs::write(
        out.join("classifiers.rs"),
        format!("[{}]", list.concat()),
    )?)
}

/// Compiles bpf/qdisc.bpf.c once for each of [`QDISCS`] by the first clang that is new enough for kptrs. The
/// objects are empty if there is none, or nothing to load them.
fn compile_qdiscs(out: &Path) -> anyhow::Result<()> {
    let clang = env::var_os("CARGO_FEATURE_QDISC").and_then(|_| kptr_clang());
    for (name, defined) in QDISCS {
        let object = out.join(format!("{name}.bpf.o"));
        match &clang {
            Some(clang) => bpf::compile_by(
                clang,
                Path::new("bpf/qdisc.bpf.c"),
                &object,
                &[defined.to_owned()],
            )?,
            None => fs::write(object, [])?,
        }
    }
    Ok(())
}

/// Returns the first clang that is new enough for kptrs, and prints a warning if there is none.
fn kptr_clang() -> Option<String> {
    let named = (KPTR_CLANG..=KPTR_CLANG + 9)
        .rev()
        .map(|n| format!("clang-{n}"));
    let found = std::iter::once(bpf::clang())
        .chain(named)
        .find(|clang| version(clang) >= KPTR_CLANG);
    if found.is_none() {
        println!(
            "cargo:warning=no clang {KPTR_CLANG} or later: emud is built without engine qdisc"
        );
    }
    found
}

/// Returns the major version of a clang; 0 if it does not run.
fn version(clang: &str) -> u32 {
    let Ok(done) = Command::new(clang).arg("-dumpversion").output() else {
        return 0;
    };
    let text = String::from_utf8_lossy(&done.stdout);
    let major = text.split('.').next().map(str::trim);
    major.and_then(|major| major.parse().ok()).unwrap_or(0)
}
