// SPDX-License-Identifier: MIT OR Apache-2.0

use std::process::Command;

use support::emud_path;

/// Exit code and messages of emud in a new time namespace.
fn shifted(arguments: &[&str], emud: &[&str]) -> (i32, String) {
    let output = (Command::new("unshare").arg("--time").args(arguments))
        .arg(emud_path())
        .args(emud)
        .output()
        .expect("unshare");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap_or(-1), text)
}

/// Everything that compares its clock with the kernel's is rejected in a time namespace that shifts
/// it, and what does not is not.
pub fn of_another_time_namespace() {
    let agent = ["agent", "--etcd", "http://127.0.0.1:9", "--host", "a"];
    let attach = ["attach", "lo", "--profile", "hsdpa"];
    for verb in [
        &["run", "--profile", "hsdpa", "--", "true"][..],
        &attach,
        &["monitor"],
        &agent,
    ] {
        for (by, ahead) in [("100", "100 s"), ("-1", "-1 s")] {
            let (code, text) = shifted(&["--monotonic", by], verb);
            assert_eq!(code, 69, "{verb:?} {text}");
            let why = format!("CLOCK_MONOTONIC is {ahead} ahead of the kernel's");
            assert!(text.contains(&why), "{verb:?} {text}");
        }
    }
    for other in [&["profile", "list"][..], &["list"]] {
        let (code, text) = shifted(&["--monotonic", "100"], other);
        assert_eq!(code, 0, "{other:?} {text}");
    }
    let (_, text) = shifted(&["--boottime", "100"], &["show", "lo"]);
    assert!(!text.contains("CLOCK_MONOTONIC"), "{text}");
}
