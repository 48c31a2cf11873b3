// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles with a mistake as input of the real program.

use emud::profile::shipped::SHIPPED;
use support::lab::{Engine, Lab, Said, emud, scaled};
use support::malformed::malformed;

fn texts() -> Vec<&'static str> {
    SHIPPED.iter().map(|shipped| shipped.text).collect()
}

fn judge(kind: &str, text: &[u8], said: &Said) {
    let text = String::from_utf8_lossy(text);
    assert_eq!(said.code, 65, "{kind}: {}{}\n{text}", said.out, said.err);
    assert!(!said.err.contains("panicked"), "{kind}: {}", said.err);
    // FILE.toml:LINE:COLUMN
    let place = said.err.split(".toml:").nth(1).unwrap_or_default();
    let line: String = place.chars().take_while(char::is_ascii_digit).collect();
    let lines = text.lines().count();
    assert!(
        line.parse()
            .is_ok_and(|n: usize| (1..=lines + 1).contains(&n)),
        "{kind}: no line number in {}\n{text}",
        said.err
    );
}

/// `profile check` of a thousand.
pub fn check() {
    let lab = Lab::empty();
    let path = lab.profile("");
    let count = scaled(1000) as usize;
    for wrong in malformed(&texts(), count) {
        std::fs::write(&path, &wrong.bytes).expect("write a profile");
        let said = emud(&["profile", "check", &path]);
        judge(wrong.kind, &wrong.bytes, &said);
    }
    println!("    {count} rejected");
}

/// `attach` of some dozens: nothing is attached.
pub fn attach(engine: Engine) {
    let lab = Lab::new();
    let before = lab.snapshot();
    let path = lab.profile("");
    for wrong in malformed(&texts(), 60) {
        std::fs::write(&path, &wrong.bytes).expect("write a profile");
        let said = lab.emud(&["attach", "va", "--engine", engine.name(), "-p", &path]);
        judge(wrong.kind, &wrong.bytes, &said);
        assert_eq!(lab.emud(&["show", "va"]).code, 66);
    }
    assert_eq!(before, lab.snapshot());
}
