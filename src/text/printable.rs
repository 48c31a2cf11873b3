// SPDX-License-Identifier: MIT OR Apache-2.0

use std::borrow::Cow;

/// Makes text safe for a terminal or a file: control characters, which may also occur in names of
/// interfaces, are written as `\x1b`. Line feeds and tabs are kept.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    escaped(text, is_plain, |code| format!("\\x{code:02x}"))
}

/// Returns JSON whose strings [`printable`] leaves as they are: serde_json escapes control characters of ASCII below
/// space only, and others are in strings only.
pub fn printable_json(json: &str) -> Cow<'_, str> {
    let is_plain = |c: char| !c.is_control() || c.is_ascii_control() && c != '\x7f';
    escaped(json, is_plain, |code| format!("\\u{code:04x}"))
}

fn escaped(
    text: &str,
    is_plain: impl Fn(char) -> bool,
    escape: impl Fn(u32) -> String,
) -> Cow<'_, str> {
    if text.chars().all(&is_plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_plain(c) {
            true => out.push(c),
            false => out.push_str(&escape(c.into())),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_json_is_still_json() {
        let value = serde_json::json!({"name": "v\x7f\u{9b}\x1b\"ö", "a": [1, "\n"]});
        for json in [value.to_string(), format!("{value:#}")] {
            let json = printable_json(&json);
            assert_eq!(printable(&json), json);
            assert_eq!(
                serde_json::from_str::<serde_json::Value>(&json).unwrap(),
                value
            );
        }
        assert!(matches!(printable_json("{\"ö\": 1}\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn control_characters_are_written_out() {
        assert_eq!(
            printable("e\x1b[31m\r\u{9b}0\tx\n"),
            "e\\x1b[31m\\x0d\\x9b0\tx\n"
        );
        assert!(matches!(printable("größer\n"), Cow::Borrowed(_)));
    }
}
