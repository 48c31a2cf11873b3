// SPDX-License-Identifier: MIT OR Apache-2.0
//! The monitor's programs, compiled for this machine: the orders in which CPUs can run them.

use std::process::Command;
use std::{env, fs};

/// The compiler calls the test before each access.
const ACCESSES: &str = "-fsanitize-coverage=bb,trace-loads,trace-stores";

/// About 0.5 s. With three changes of the CPU instead of two, 14 s (`EMUD_TEST_FULL`).
#[test]
fn every_alarm_is_followed_by_its_end() {
    let changes = if support::full() { 3 } else { 2 };
    finds_nothing(
        "monitor/episodes",
        &[ACCESSES, &format!("-DCHANGES={changes}")],
    );
}

#[test]
fn what_they_count() {
    finds_nothing("monitor/counts", &[ACCESSES, "-g"]);
}

#[test]
fn what_the_recorder_counts() {
    finds_nothing("monitor/record", &[ACCESSES, "-g"]);
}

/// Compiles and runs a C program of tests/pure, which prints what is wrong.
pub fn finds_nothing(name: &str, options: &[&str]) {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let of_test = format!("emud-{}-{}", name.replace('/', "-"), std::process::id());
    let folder = env::temp_dir().join(of_test);
    fs::create_dir_all(&folder).unwrap();
    let (object, program) = (folder.join("test.o"), folder.join("test"));
    let mut compile = Command::new(&clang);
    compile.args(["-w", "-O1", "-c", "-o"]).arg(&object);
    compile.args(options);
    compile.arg(format!(
        "{}/tests/pure/{name}.c",
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
