// SPDX-License-Identifier: MIT OR Apache-2.0
//! Code that emud's tests and benchmarks share. It does not link emud: it runs the command, as
//! users do.

pub mod bpf;
pub mod bulk;
pub mod chain;
pub mod chance;
pub mod clock;
pub mod damage;
pub mod etcd;
pub mod host;
pub mod lab;
pub mod load;
pub mod malformed;
pub mod nobody;
pub mod probe;
pub mod refusal;
pub mod runs;
pub mod site;
pub mod stats;
pub mod trial;
pub mod udp;
pub mod validator;
pub mod watch;
pub mod witness;

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The repository.
pub fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = own.ancestors().nth(2).expect("tests/support");
        root.to_owned()
    });
    &ROOT
}

/// Whether the emud under test is a release build.
pub fn is_optimised() -> bool {
    emud_path().iter().any(|part| part == "release")
}

/// The emud under test: `EMUD_BIN`, or the one that cargo built beside this program.
pub fn emud_path() -> PathBuf {
    std::env::var_os("EMUD_BIN").map_or_else(beside, PathBuf::from)
}

/// Cargo puts programs into target/PROFILE, tests into target/PROFILE/deps.
fn beside() -> PathBuf {
    let own = std::env::current_exe().expect("the path of this program");
    let emud = own.ancestors().skip(1).take(2).map(|dir| dir.join("emud"));
    let found = emud.into_iter().find(|path| path.is_file());
    found.expect("no emud beside the test: cargo build --bin emud")
}

/// What a command line prints at a terminal with this number of columns, which `script` creates.
pub fn at_terminal(columns: u16, line: &str) -> String {
    let line = format!("stty rows 24 cols {columns} && {line}");
    let out = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .output()
        .expect("script");
    String::from_utf8_lossy(&out.stdout).replace('\r', "")
}

/// The calling thread enters the network namespace of that name (`ip netns`).
pub fn enter(namespace: &str) {
    let path = Path::new("/run/netns").join(namespace);
    let space = File::open(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network))
        .unwrap_or_else(|e| panic!("enter {namespace}: {e}"));
}

/// Whether this is the full run (`EMUD_TEST_FULL`): all trials, statistics and timings.
pub fn full() -> bool {
    std::env::var_os("EMUD_TEST_FULL").is_some()
}

/// The size of a sample: `whole` in the full run, two fifths of it else, and a tenth in a guest, whose kernel
/// runs the same program. What it is compared with follows from the size.
pub fn count(whole: u64) -> u64 {
    match (full(), guest()) {
        (true, _) => whole,
        (false, true) => whole / 10,
        (false, false) => whole * 2 / 5,
    }
}

/// Whether this is a guest kernel (`EMUD_GUEST`): all features are expected, an attach takes
/// seconds, there is one CPU, and its clock counts instructions.
pub fn guest() -> bool {
    std::env::var_os("EMUD_GUEST").is_some()
}

/// How many random cases to run of `all`, which the full run uses.
pub fn cases(all: u32) -> u32 {
    if full() { all } else { all / 12 }
}

/// A number from an environment variable.
pub fn number_from(variable: &str) -> Option<f64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|e| panic!("{variable}={text}: {e}")))
}
