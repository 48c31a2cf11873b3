// SPDX-License-Identifier: MIT OR Apache-2.0

use std::borrow::Cow;

/// Makes text safe for a terminal or a file: control characters, which may also occur in names of
/// interfaces, are written as `\x1b`. Line feeds and tabs are kept.
pub fn printable(text: &str) -> Cow<'_, str> {
    let harmless = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    if text.chars().all(harmless) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match harmless(c) {
            true => out.push(c),
            false => out.push_str(&format!("\\x{:02x}", u32::from(c))),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_written_out() {
        assert_eq!(
            printable("e\x1b[31m\r\u{9b}0\tx\n"),
            "e\\x1b[31m\\x0d\\x9b0\tx\n"
        );
        assert!(matches!(printable("größer\n"), Cow::Borrowed(_)));
    }
}
