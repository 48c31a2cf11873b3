// SPDX-License-Identifier: GPL-2.0-only
//! What the user wrote, validated, in units that carry their name.

use super::{Queue, Wire};

/// A described link, both directions.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    pub name: String,
    pub description: String,
    /// Where the figures come from.
    pub source: String,
    /// Seed of every random decision; drawn at attach where it is `None`.
    pub seed: Option<u64>,
    pub offload: Offload,
    /// Egress of the interface.
    pub up: Link,
    /// Ingress of the interface.
    pub down: Link,
}

impl Profile {
    /// The link of a direction (`EMUD_UP`, `EMUD_DOWN`).
    pub fn direction(&self, direction: u32) -> &Link {
        if direction == crate::abi::EMUD_UP {
            &self.up
        } else {
            &self.down
        }
    }

    /// The same link seen from its other end.
    pub fn reversed(self) -> Self {
        Self {
            up: self.down,
            down: self.up,
            ..self
        }
    }
}

/// One direction of the link.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Link {
    /// Rate on the wire in bit/s, at least 1; `None`: no serialisation delay.
    pub rate: Option<u64>,
    /// Bytes added to every packet on the wire, -64..=4096.
    pub overhead: i32,
    /// What else the wire does to a packet's length and time.
    pub wire: Wire,
    /// The backlog in front of the link.
    pub queue: Queue,
    pub delay: Delay,
    /// Probability that a packet is lost, 0.0..=1.0.
    pub loss: f64,
    pub neighbours: Neighbours,
}

/// Limit of the backlog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Packets, the one on the wire included; 1..=65536.
    Packets(u32),
    /// Bytes on the wire not yet serialised, the arriving packet included.
    Bytes(u64),
    /// Longest wait in ns before a packet's own serialisation begins.
    Time(u64),
}

/// One-way propagation delay.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Delay {
    /// Mean in ns, up to one hour.
    pub mean_ns: u64,
    pub jitter: Option<Jitter>,
}

/// How the delay varies about its mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Jitter {
    /// Standard deviation in ns (for `uniform` the half-width is sqrt(3) of it).
    pub sd_ns: f64,
    pub distribution: Distribution,
    pub reorder: Reorder,
    /// Distance in ns between two independent values of the in-order process;
    /// `None`: derived from the distribution's spread.
    pub coherence_ns: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Distribution {
    #[default]
    Uniform,
    Normal,
    /// Shape 3, as tc-netem's table.
    Pareto,
    /// A quarter normal, three quarters pareto, as tc-netem's table.
    ParetoNormal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reorder {
    /// The jitter is a process in time; packets stay in order.
    #[default]
    Never,
    /// Each packet draws its own; packets overtake.
    Jitter,
}

/// What happens to ARP and ICMPv6 neighbour discovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Neighbours {
    #[default]
    Pass,
    Emulate,
}

/// What to do about packets longer than the wire's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Offload {
    /// Cap segmentation on the device while attached.
    #[default]
    Auto,
    /// Leave it as it is.
    Keep,
}
