// SPDX-License-Identifier: MIT OR Apache-2.0
//! C programs of tests/pure, which include a program of the kernel.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, thread};

/// Compiles and runs a program that prints what is wrong.
pub fn finds_nothing(name: &str, options: &[&str]) {
    answers(name, options, "");
}

/// Compiles and runs a program with this input, and returns its output.
pub fn answers(name: &str, options: &[&str], input: &str) -> String {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    // Tests of one program run side by side.
    static RUN: AtomicU32 = AtomicU32::new(0);
    let (process, run) = (std::process::id(), RUN.fetch_add(1, Ordering::Relaxed));
    let of_test = format!("emud-{}-{process}-{run}", name.replace('/', "-"));
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
    let mut command = Command::new(&program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = command.spawn().unwrap();
    let mut stdin = running.stdin.take().unwrap();
    let ran = thread::scope(|scope| {
        // It ends as soon as it finds something, whatever is left to read.
        scope.spawn(move || stdin.write_all(input.as_bytes()).ok());
        running.wait_with_output().unwrap()
    });
    fs::remove_dir_all(&folder).unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{said}");
    said
}
