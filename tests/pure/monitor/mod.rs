// SPDX-License-Identifier: MIT OR Apache-2.0
//! The monitor's programs, compiled for this machine: the orders in which CPUs can run them.

use std::process::Command;
use std::{env, fs};

/// About 0.5 s. With three changes of the CPU instead of two, 14 s (`EMUD_TEST_FULL`).
#[test]
fn every_alarm_is_followed_by_its_end() {
    let changes = if support::full() { 3 } else { 2 };
    finds_nothing("episodes", &format!("-DCHANGES={changes}"));
}

#[test]
fn what_they_count() {
    finds_nothing("counts", "-g");
}

/// Compiles and runs a program of this folder, which prints what is wrong.
fn finds_nothing(name: &str, option: &str) {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let folder = env::temp_dir().join(format!("emud-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (object, program) = (folder.join("test.o"), folder.join("test"));
    let mut compile = Command::new(&clang);
    compile.args(["-w", "-O1", "-c", "-o"]).arg(&object);
    compile.args(["-fsanitize-coverage=bb,trace-loads,trace-stores", option]);
    compile.arg(format!(
        "{}/tests/pure/monitor/{name}.c",
        env!("CARGO_MANIFEST_DIR")
    ));
    let mut link = Command::new(&clang);
    link.arg(&object).arg("-o").arg(&program);
    for step in [&mut compile, &mut link] {
        assert!(step.status().unwrap().success(), "{step:?}");
    }
    let ran = Command::new(&program).output().unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}");
}
