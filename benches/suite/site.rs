// SPDX-License-Identifier: MIT OR Apache-2.0
//! One side of a comparison: a laboratory whose far end counts and discards packets.

use serde_json::Value;

use support::lab::{Engine, Lab};

pub struct Site {
    pub lab: Lab,
    /// Of the far end.
    pub mac: String,
}

impl Site {
    pub fn new() -> Self {
        Self::with_queues(1)
    }

    pub fn with_queues(queues: u32) -> Self {
        let lab = Lab::with_queues(queues);
        let mac = lab.in_b("cat /sys/class/net/vb/address").trim().to_owned();
        let near_mac = lab.in_a("cat /sys/class/net/va/address").trim().to_owned();
        // No neighbour discovery. A receiver would only add to the common part of all sides;
        // `ingress`, not `clsact`, which would enable the egress hook for all devices.
        lab.in_a(&format!(
            "ip neigh replace {} lladdr {mac} dev va nud permanent",
            Lab::B4
        ));
        lab.in_b(&format!(
            "ip neigh replace {} lladdr {near_mac} dev vb nud permanent
             tc qdisc add dev vb ingress
             tc filter add dev vb ingress matchall action drop",
            Lab::A4
        ));
        Self { lab, mac }
    }

    /// Packets that the far end has seen.
    pub fn delivered(&self) -> u64 {
        let count = self.lab.in_b("cat /sys/class/net/vb/statistics/rx_packets");
        count.trim().parse().unwrap()
    }

    /// A root qdisc in tc's syntax, which replaces the existing one: a new one, with its own
    /// counts.
    pub fn qdisc(&self, what: &str) {
        self.lab.in_a(&format!(
            "tc qdisc del dev va root 2>/dev/null || true
             tc qdisc add dev va root {what}"
        ));
    }

    /// Packets that the root qdisc has dropped.
    pub fn dropped(&self) -> u64 {
        let text = self.lab.in_a("tc -s -j qdisc show dev va root");
        let shown: Value = serde_json::from_str(&text).unwrap();
        shown.pointer("/0/drops").and_then(Value::as_u64).unwrap()
    }

    pub fn attach(&self, profile: &str) {
        self.attach_by(Engine::Fq, profile);
    }

    pub fn attach_by(&self, engine: Engine, profile: &str) {
        let options = ["--direction", "up", "--seed", "1"];
        self.lab.attach(engine, profile, &options);
    }

    /// Packets that the link has handled and lost; ends if its qdisc has dropped any.
    pub fn handled(&self) -> (u64, u64) {
        let shown = self.lab.show();
        let at = |pointer: &str| {
            let number = shown.pointer(pointer).and_then(Value::as_u64);
            number.unwrap_or_else(|| panic!("{pointer} in {shown}"))
        };
        assert_eq!(at("/up/engine_dropped"), 0, "dropped by the engine");
        (at("/up/counters/packets"), at("/up/counters/lost"))
    }
}
