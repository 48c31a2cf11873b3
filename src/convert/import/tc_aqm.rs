// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads tc's codel and pie (iproute2: tc/q_codel.c, tc/q_pie.c).

use super::shell::Word;
use super::tc_made::Made;
use super::tc_units::{size, time_us, whole};
use crate::text::Mistake;

/// A manager whose limit is in packets, with its keys in the profile.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Aqm {
    pub name: &'static str,
    pub limit: Option<u32>,
    /// ns.
    pub times: Vec<(&'static str, u64)>,
    pub gains: Vec<(&'static str, f64)>,
    pub ecn: bool,
}

impl Aqm {
    /// Reads the options; `None`: of another qdisc. `warnings` gets those without an equivalent.
    pub fn read(made: &mut Made, warnings: &mut Vec<String>) -> Result<Option<Self>, Mistake> {
        let (name, times): (_, &[_]) = match made.kind.value {
            "codel" => ("codel", &["target", "interval"]),
            "pie" => ("pie", &["target", "tupdate"]),
            _ => return Ok(None),
        };
        let mut aqm = Self {
            name,
            limit: None,
            times: Vec::new(),
            gains: Vec::new(),
            ecn: false,
        };
        let words = &mut made.options;
        while let Some(word) = words.next() {
            if let Some(key) = times.iter().find(|key| **key == word.value) {
                aqm.times
                    .push((key, time_us(&words.argument(key, "15ms")?)?));
                continue;
            }
            match (name, word.value) {
                (_, "limit") => aqm.limit = Some(packets(&words.argument("limit", "1000")?)?),
                (_, "ecn") => aqm.ecn = true,
                (_, "noecn") => aqm.ecn = false,
                ("pie", key @ ("alpha" | "beta")) => {
                    let key = if key == "alpha" { "alpha" } else { "beta" };
                    let sixteenths = whole(&words.argument(key, "2")?, 0..=32)?;
                    aqm.gains.push((key, sixteenths as f64 / 16.0));
                }
                // emud has the delay from the backlog.
                ("pie", "nobytemode" | "dq_rate_estimator" | "no_dq_rate_estimator") => {}
                (_, other) => {
                    warnings.push(format!("`{other}` of {name}: emud has none"));
                    words.number();
                }
            }
        }
        Ok(Some(aqm))
    }
}

/// Reads `1000`, or `1000p` as tc prints it.
pub(super) fn packets(word: &Word) -> Result<u32, Mistake> {
    let value = word.value.strip_suffix('p').unwrap_or(word.value);
    size(&Word {
        value,
        at: word.at.clone(),
    })
}
