// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handles of qdiscs and ids of classes: `1:10`, two hexadecimal numbers.

/// Returns the only form of an id: `1:a` of `0x1:0A`, `1:` of `1` and `1:0`. What tc would not read, such
/// as `$PARENT:1`, remains as it is.
pub(super) fn canonical(id: &str) -> String {
    let (first, second) = id.split_once(':').unwrap_or((id, ""));
    match (number(first), number(second)) {
        (Some(first), Some(second)) => format!("{first}:{second}"),
        _ => id.to_owned(),
    }
}

/// Completes an id without a first number (`:10`), which belongs to the qdisc `own`.
pub(super) fn of_qdisc(id: &str, own: &str) -> String {
    match id.strip_prefix(':') {
        Some(second) => format!("{own}:{second}"),
        None => id.to_owned(),
    }
}

/// Returns `1` of `1:10`.
pub(super) fn major(id: &str) -> &str {
    id.split(':').next().unwrap_or(id)
}

/// As strtoul() reads it with base 16, and without zeros in front; 0 is empty.
fn number(text: &str) -> Option<String> {
    let digits = text
        .strip_prefix("0x")
        .or_else(|| text.strip_prefix("0X"))
        .unwrap_or(text);
    if digits.is_empty() {
        return Some(String::new());
    }
    match u16::from_str_radix(digits, 16).ok()? {
        0 => Some(String::new()),
        number => Some(format!("{number:x}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_id_has_one_form() {
        for same in ["1:a", "1:0xa", "01:00A", "0x1:0XA"] {
            assert_eq!(canonical(same), "1:a");
        }
        for same in ["10:", "10", "0x10:0"] {
            assert_eq!(canonical(same), "10:");
        }
        assert_eq!(of_qdisc(&canonical(":0x20"), "1"), "1:20");
        assert_eq!(of_qdisc("2:1", "1"), "2:1");
        for other in ["$P:1", "1:10000", "1:g"] {
            assert_eq!(canonical(other), other);
        }
    }
}
