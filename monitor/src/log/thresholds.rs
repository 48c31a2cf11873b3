// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration as the log has it: ns, bytes, pages.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::config::{self, Basis, Class, Config};

/// What is contention; none: not asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Thresholds {
    pub cpu: Option<Cpu>,
    pub network: Option<Network>,
    pub memory: Option<Memory>,
    pub disk: Option<Disk>,
    pub emulator: Option<Emulator>,
    pub psi: Option<Psi>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cpu {
    pub theta_ns: u64,
    pub basis: Basis,
}

/// Bytes in a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Network {
    pub window_ns: u64,
    pub external_bytes: Option<u64>,
    pub internal_bytes: Option<u64>,
    pub class: BTreeMap<String, Class>,
    pub device_bytes: BTreeMap<String, u64>,
}

/// Pages in a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Memory {
    pub window_ns: u64,
    pub page_ins: Option<u64>,
    pub page_outs: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Disk {
    pub theta_ns: u64,
    /// None: ignored.
    pub device_theta_ns: BTreeMap<String, Option<u64>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Emulator {
    pub late_ns: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Psi {
    pub stall_ns: u64,
    pub window_ns: u64,
}

impl From<&Config> for Thresholds {
    fn from(config: &Config) -> Self {
        Self {
            cpu: config.cpu.map(|cpu| Cpu {
                theta_ns: ns(cpu.theta),
                basis: cpu.basis,
            }),
            network: config.network.as_ref().map(Network::from),
            memory: config.memory.map(|memory| Memory {
                window_ns: ns(memory.window),
                page_ins: memory.page_ins,
                page_outs: memory.page_outs,
            }),
            disk: config.disk.as_ref().map(|disk| Disk {
                theta_ns: ns(disk.theta),
                device_theta_ns: disk
                    .devices
                    .iter()
                    .map(|(name, theta)| (name.clone(), theta.map(ns)))
                    .collect(),
            }),
            emulator: config.emulator.map(|emulator| Emulator {
                late_ns: ns(emulator.late),
            }),
            psi: config.psi.map(|psi| Psi {
                stall_ns: ns(psi.stall),
                window_ns: ns(psi.window),
            }),
        }
    }
}

impl From<&config::Network> for Network {
    fn from(network: &config::Network) -> Self {
        let window_ns = ns(network.window);
        let bytes = |bit_s: u64| in_window(bit_s, window_ns);
        Self {
            window_ns,
            external_bytes: network.external_bit_s.map(bytes),
            internal_bytes: network.internal_bit_s.map(bytes),
            class: network.classes.clone(),
            device_bytes: network
                .devices
                .iter()
                .map(|(name, bit_s)| (name.clone(), bytes(*bit_s)))
                .collect(),
        }
    }
}

/// Whole bytes of a rate in a window.
fn in_window(bit_s: u64, window_ns: u64) -> u64 {
    let bytes = u128::from(bit_s) * u128::from(window_ns) / 8_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_in_bytes() {
        let network = Thresholds::from(&Config::default()).network.unwrap();
        // 490 Mbit/s and 1 Gbit/s for 10 ms.
        assert_eq!(network.external_bytes, Some(612_500));
        assert_eq!(network.internal_bytes, Some(1_250_000));
        assert_eq!(in_window(u64::MAX, 10_000_000_000), u64::MAX);
    }
}
