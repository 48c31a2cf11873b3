// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dates in logs and traces.

/// Reads `2019.12.16_13.40.04`, `2016-06-01 00:00:05.250`, `2016-06-01 00:00:05,250`, `2016-06-01T00:00:05Z`: ns since 1970,
/// ignoring the zone, because only differences count.
pub(crate) fn date_ns(cell: &str) -> Option<i128> {
    let mut groups = cell
        .split(|c: char| !c.is_ascii_digit())
        .filter(|g| !g.is_empty());
    let year = groups.next().filter(|year| year.len() == 4)?;
    let mut next = || groups.next()?.parse::<i128>().ok();
    let (year, month, day) = (year.parse::<i128>().ok()?, next()?, next()?);
    let (hour, minute, second) = (next()?, next()?, next()?);
    let in_time = hour < 24 && minute < 60 && second < 62;
    let valid = in_time && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !valid || cell.starts_with('-') {
        return None;
    }
    let part: f64 = match cell.rsplit_once(['.', ',']) {
        Some((head, part)) if head.contains(':') => {
            let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
            format!("0.{digits}").parse().ok()?
        }
        _ => 0.0,
    };
    // Days of the Gregorian calendar, its years from March on.
    let (y, m) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 719_469;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    Some(seconds * 1_000_000_000 + (part * 1e9).round() as i128)
}

/// Returns `2016-06-01T00:00:05.250Z` as `2016-06-01 00:00:05`.
pub(crate) fn to_the_second(time: &str) -> String {
    time.get(..19).unwrap_or(time).replace('T', " ")
}

#[cfg(test)]
mod tests {
    use super::date_ns;

    #[test]
    fn dates() {
        for (text, ms) in [
            ("1970-01-01 00:00:00", 0),
            ("1970.01.02_00.00.01", 86_401_000),
            ("2000-02-29T12:00:00Z", 951_825_600_000),
            ("2016-06-01 00:00:05.250", 1_464_739_205_250),
            ("2024/12/31 23:59:59", 1_735_689_599_000),
            ("2016-06-01 00:00:05,250", 1_464_739_205_250),
            ("2016-06-01T00:00:05,250+01:00", 1_464_739_205_250),
        ] {
            assert_eq!(date_ns(text), Some(ms * 1_000_000), "{text}");
        }
        for text in [
            "1289406399.549",
            "12:30:00",
            "2016-13-01 00:00:00",
            "-2016-1-1 0:0:0",
            "5",
            "2016-06-01 00:00:99999999999999999999999999999999999999",
        ] {
            assert_eq!(date_ns(text), None, "{text}");
        }
    }
}
