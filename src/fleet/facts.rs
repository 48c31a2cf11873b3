// SPDX-License-Identifier: MIT OR Apache-2.0
//! The facts about its host that an agent reports.

use std::fs;
use std::io;
use std::mem;
use std::net::{IpAddr, UdpSocket};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::FleetError;
use super::clock::any;
use crate::datapath::doctor;
use crate::host::counters::memory_bytes;

/// Version of the facts, the plan and the keys. Hosts of one run have the same.
pub const VERSION: &str = concat!("emud-fleet/1 of emud ", env!("CARGO_PKG_VERSION"));

/// A host as its agent describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Version of what is exchanged.
    pub version: String,
    /// Address in the underlay: of tunnels and probes.
    pub address: IpAddr,
    /// UDP port that answers probes of the clock.
    pub probe_port: u16,
    /// Token that a probe must carry, in hexadecimal.
    pub probe_token: String,
    /// Number of CPUs.
    pub cpus: usize,
    /// MemTotal of /proc/meminfo in bytes.
    pub memory_bytes: u64,
    /// Share of an experiment, relative to other hosts.
    pub weight: f64,
    /// Whether programs run as root.
    pub allow_root: bool,
    /// How the kernel's clock is synchronised.
    pub clock: SystemClock,
    /// As `emud doctor --json`.
    pub doctor: Value,
}

/// Synchronisation of the time of day as the kernel knows it, from chrony, ntpd or ptp4l (`adjtimex`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemClock {
    /// A daemon synchronises it.
    pub synchronised: bool,
    /// Offset in ns that is not corrected yet.
    pub offset_ns: i64,
    /// Largest error in ns as the daemon estimates it.
    pub bound_ns: u64,
}

impl SystemClock {
    /// Reads the state of the clock by `adjtimex`.
    pub fn read() -> io::Result<Self> {
        // SAFETY: zeros are a request that changes nothing.
        let mut timex: libc::timex = unsafe { mem::zeroed() };
        // SAFETY: the kernel fills in the structure.
        let state = unsafe { libc::adjtimex(&raw mut timex) };
        if state < 0 {
            return Err(io::Error::last_os_error());
        }
        let unit = match timex.status & libc::STA_NANO {
            0 => 1000,
            _ => 1,
        };
        Ok(Self {
            synchronised: timex.status & libc::STA_UNSYNC == 0,
            offset_ns: timex.offset * unit,
            bound_ns: timex.maxerror.unsigned_abs() * 1000,
        })
    }
}

impl Facts {
    /// Examines this host, which takes about a second.
    ///
    /// # Errors
    /// A figure cannot be read.
    pub fn collect(
        address: IpAddr,
        probe: &super::clock::Responder,
        weight: Option<f64>,
        allow_root: bool,
    ) -> Result<Self, FleetError> {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let doctor = serde_json::to_value(doctor::examine());
        let read = |what| FleetError::system(format!("read {what}"));
        Ok(Self {
            version: VERSION.to_owned(),
            address,
            probe_port: probe.port,
            probe_token: format!("{:016x}", probe.token),
            cpus,
            memory_bytes: memory().map_err(read("/proc/meminfo"))?,
            weight: weight.unwrap_or(cpus as f64),
            allow_root,
            clock: SystemClock::read().map_err(read("the clock's state"))?,
            doctor: doctor.unwrap_or_default(),
        })
    }

    /// Returns why the host cannot take part; `None`: it can.
    pub fn problem(&self) -> Option<String> {
        if self.version != VERSION {
            return Some(format!("it has {}, this is {VERSION}", self.version));
        }
        let engines = self.doctor["engines"].as_array();
        engines
            .is_none_or(Vec::is_empty)
            .then(|| "no engine works there (`emud doctor`)".to_owned())
    }
}

fn memory() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    memory_bytes(&text, "MemTotal").ok_or_else(|| io::Error::other("no MemTotal"))
}

/// Returns the address with which this host reaches another one.
///
/// # Errors
/// The name cannot be resolved, or there is no route.
pub fn own_address(host: &str, port: u16) -> io::Result<IpAddr> {
    use std::net::ToSocketAddrs;
    let to = (host, port).to_socket_addrs()?.next();
    let to = to.ok_or(io::ErrorKind::AddrNotAvailable)?;
    let socket = UdpSocket::bind((any(to.ip()), 0))?;
    // Nothing is sent.
    socket.connect(to)?;
    Ok(socket.local_addr()?.ip())
}
