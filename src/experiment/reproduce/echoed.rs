// SPDX-License-Identifier: MIT OR Apache-2.0
//! What ping says at its end.

use crate::convert::import::ping::counts;

/// The summary of a ping of iputils.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Echoed {
    pub node: String,
    pub sent: u64,
    pub answered: u64,
    pub mean_ms: f64,
    /// Standard deviation, which ping calls mdev.
    pub sd_ms: f64,
}

impl Echoed {
    /// Reads the output of ping; `None`: it is that of another program.
    pub fn parse(node: &str, output: &str) -> Option<Self> {
        let (sent, answered) = output.lines().find_map(counts)?;
        let mut lines = output.lines();
        let times = lines.find_map(|line| line.strip_prefix("rtt min/avg/max/mdev = "))?;
        let mut times = times.split(['/', ' ']).map(str::parse);
        Some(Self {
            node: node.to_owned(),
            sent,
            answered,
            mean_ms: times.nth(1)?.ok()?,
            sd_ms: times.nth(1)?.ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_read() {
        let output = "PING server (10.77.0.2) 1422(1450) bytes of data.\n\n\
                      --- server ping statistics ---\n\
                      500 packets transmitted, 493 received, 1.4% packet loss, time 12135ms\n\
                      rtt min/avg/max/mdev = 311.453/400.164/492.192/40.103 ms, pipe 22\n";
        let read = Echoed::parse("client", output).unwrap();
        let wanted = Echoed {
            node: "client".into(),
            sent: 500,
            answered: 493,
            mean_ms: 400.164,
            sd_ms: 40.103,
        };
        assert_eq!(read, wanted);
        let with_errors = output.replace("received,", "received, +3 errors,");
        assert_eq!(Echoed::parse("client", &with_errors), Some(wanted));
        assert_eq!(
            Echoed::parse("client", "ping: server: Name unknown\n"),
            None
        );
        // Nothing was answered.
        let none = output.lines().filter(|line| !line.starts_with("rtt"));
        let none: Vec<&str> = none.collect();
        assert_eq!(Echoed::parse("client", &none.join("\n")), None);
    }
}
