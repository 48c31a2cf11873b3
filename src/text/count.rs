// SPDX-License-Identifier: MIT OR Apache-2.0

/// Formats with commas: "12,345".
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn three_digits_stand_together() {
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(123), "123");
    }
}
