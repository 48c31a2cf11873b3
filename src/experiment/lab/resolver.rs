// SPDX-License-Identifier: MIT OR Apache-2.0
//! Determines which name servers of the host a node can reach.

use std::fs;
use std::net::IpAddr;

const HOST: &str = "/etc/resolv.conf";
/// The servers that systemd-resolved uses; /etc/resolv.conf only has the stub on loopback.
const UPSTREAM: &str = "/run/systemd/resolve/resolv.conf";

/// Returns the host's resolv.conf for use in a node, and notes about what is not available. A node
/// reaches no name server on the host's loopback, and none by IPv6, which wires do not carry.
/// `None`: names outside are not resolved.
pub fn resolver() -> (Option<String>, Vec<String>) {
    let host = match fs::read_to_string(HOST) {
        Ok(text) => text,
        Err(e) => return (None, vec![format!("{HOST}: {e}: names are not resolved")]),
    };
    let own = Servers::of(&host);
    if own.usable > 0 {
        let notes = own.left_out_of(HOST);
        return (Some(own.text), notes);
    }
    if let Ok(text) = fs::read_to_string(UPSTREAM) {
        let upstream = Servers::of(&text);
        if upstream.usable > 0 {
            let mut notes = vec![format!(
                "a node reaches none of the name servers in {HOST}: those in {UPSTREAM} are used"
            )];
            notes.extend(upstream.left_out_of(UPSTREAM));
            return (Some(upstream.text), notes);
        }
    }
    let why = format!(
        "a node reaches none of the name servers in {HOST} (on loopback, or by IPv6): \
         names are not resolved"
    );
    (None, vec![why])
}

/// A resolv.conf without the servers that a node cannot reach.
#[derive(Debug, PartialEq, Eq)]
struct Servers {
    text: String,
    usable: usize,
    left_out: Vec<String>,
}

impl Servers {
    fn of(file: &str) -> Self {
        let mut found = Self {
            text: String::new(),
            usable: 0,
            left_out: Vec::new(),
        };
        for line in file.lines() {
            let mut words = line.split_whitespace();
            if words.next() == Some("nameserver") {
                let server = words.next().unwrap_or_default();
                if !reachable(server) {
                    found.left_out.push(server.to_owned());
                    continue;
                }
                found.usable += 1;
            }
            found.text.push_str(line);
            found.text.push('\n');
        }
        found
    }

    fn left_out_of(&self, file: &str) -> Vec<String> {
        if self.left_out.is_empty() {
            return Vec::new();
        }
        let servers = self.left_out.join(", ");
        vec![format!(
            "a node does not reach {servers} of {file}: the other name servers are used"
        )]
    }
}

fn reachable(server: &str) -> bool {
    matches!(server.parse(), Ok(IpAddr::V4(address)) if !address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_a_node_can_use() {
        let file = "# by hand\nsearch example.org\nnameserver 127.0.0.53\nnameserver 192.0.2.53\n\
                    nameserver fe80::1%eth0\nnameserver 2001:db8::53\noptions edns0\n";
        let servers = Servers::of(file);
        assert_eq!(
            servers.text,
            "# by hand\nsearch example.org\nnameserver 192.0.2.53\noptions edns0\n"
        );
        assert_eq!(servers.usable, 1);
        assert_eq!(
            servers.left_out,
            ["127.0.0.53", "fe80::1%eth0", "2001:db8::53"]
        );
    }

    #[test]
    fn no_server_is_the_one_on_loopback() {
        assert_eq!(Servers::of("search example.org\n").usable, 0);
        assert_eq!(Servers::of("nameserver\n").left_out, [""]);
    }
}
