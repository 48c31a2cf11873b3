// SPDX-License-Identifier: MIT OR Apache-2.0
//! What clients of iperf3 say at their end, with `-f k`.

/// All clients of a node.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Iperf {
    pub node: String,
    /// Data that arrived, of each connection, bit/s.
    pub bit_s: Vec<f64>,
}

impl Iperf {
    /// Reads the output of iperf3; `None`: it is that of another program. Lines of several clients may be in any order.
    pub fn parse(node: &str, output: &str) -> Option<Self> {
        let of_connection = |line: &&str| line.ends_with("receiver") && !line.starts_with("[SUM]");
        let lines = output.lines().map(str::trim_end).filter(of_connection);
        let bit_s: Option<Vec<f64>> = lines.map(kbit_s).collect();
        let bit_s = bit_s.filter(|all| !all.is_empty())?;
        Some(Self {
            node: node.to_owned(),
            bit_s: bit_s.into_iter().map(|rate| rate * 1e3).collect(),
        })
    }
}

fn kbit_s(line: &str) -> Option<f64> {
    let mut words = line.split_whitespace().rev();
    words.find(|word| *word == "Kbits/sec")?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_counted_once() {
        let output = "Connecting to host receiver, port 5201\n\
            [  5]   0.00-10.00  sec  5.83 MBytes  4900 Kbits/sec                  (omitted)\n\
            [ ID] Interval           Transfer     Bitrate         Retr\n\
            [  5]   0.00-10.00  sec  13.8 MBytes  11590 Kbits/sec    0             sender\n\
            [  5]   0.00-10.01  sec  13.8 MBytes  11586 Kbits/sec                  receiver\n\
            [  7]   0.00-10.01  sec  13.8 MBytes  11585 Kbits/sec                  receiver\n\
            [SUM]   0.00-10.01  sec  27.6 MBytes  23171 Kbits/sec                  receiver\n\
            [  5]   0.00-10.02  sec  13.8 MBytes  11584 Kbits/sec                  receiver \n\
            \n\
            iperf Done.\n";
        let read = Iperf::parse("sender", output).unwrap();
        assert_eq!(read.bit_s, [11_586e3, 11_585e3, 11_584e3]);
        assert_eq!(Iperf::parse("sender", "iperf3: error - no route\n"), None);
        // Another unit is none of these numbers.
        let other = output.replace("Kbits", "Mbits");
        assert_eq!(Iperf::parse("sender", &other), None);
    }
}
