// SPDX-License-Identifier: MIT OR Apache-2.0
//! [`Config`] in the words of the kernel part: `struct emud_config`, the windows
//! of single devices, and what is asked for by name.

use std::time::Duration;

use crate::abi::{self, emud_config, emud_name, emud_netdev_rule};
use crate::config::{Basis, Class, Config, GroupBy, Network};
use crate::monitor::MonitorError;

/// The timer of every CPU, and that of the one which also watches over devices
/// that are stuck: a program takes 0.3 us, the interrupt for it about 1 us.
pub const TICK: Duration = Duration::from_millis(4);
pub const WATCH_TICK: Duration = Duration::from_millis(1);

/// What a CPU keeps to itself before it tells a window, as part of the threshold.
const QUANTA: u64 = 64;

pub struct Settings {
    pub config: emud_config,
    /// Names of the devices with windows of their own, from EMUD_WINDOW_DEVICES on.
    pub devices: Vec<String>,
    pub netdev_rules: Vec<(emud_name, emud_netdev_rule)>,
    pub disk_rules: Vec<(emud_name, u64)>,
}

impl Settings {
    /// # Errors
    /// More than twelve devices with thresholds of their own, more than 64 rules, or a
    /// name that no device can have.
    pub fn of(config: &Config, cpus: u32) -> Result<Self, MonitorError> {
        let mut settings = Self {
            config: emud_config {
                cpus,
                limit: u64::from(config.alarms.limit),
                tick_ns: ns(TICK),
                group_by: match config.alarms.group_by {
                    GroupBy::Netns => abi::EMUD_BY_NETNS,
                    GroupBy::Cgroup => abi::EMUD_BY_CGROUP,
                    GroupBy::Command => abi::EMUD_BY_COMMAND,
                },
                ..Default::default()
            },
            devices: vec![],
            netdev_rules: vec![],
            disk_rules: vec![],
        };
        settings.times(config);
        if let Some(network) = &config.network {
            settings.network(network)?;
        }
        if let Some(disk) = &config.disk {
            for (disk, theta) in &disk.devices {
                let theta_ns = theta.map_or(0, ns);
                settings.disk_rules.push((name(disk)?, theta_ns));
            }
        }
        settings.config.windows = settings.windows();
        let rules = settings.netdev_rules.len().max(settings.disk_rules.len());
        if rules > 64 {
            return Err(MonitorError::Config(format!(
                "{rules} devices are named, 64 are possible"
            )));
        }
        Ok(settings)
    }

    fn times(&mut self, config: &Config) {
        let c = &mut self.config;
        if let Some(cpu) = &config.cpu {
            c.cpu_theta_ns = ns(cpu.theta);
            c.cpu_idle_basis = u32::from(cpu.basis == Basis::Idle);
        }
        if let Some(disk) = &config.disk {
            c.disk_theta_ns = ns(disk.theta);
        }
        if let Some(emulator) = &config.emulator {
            c.late_ns = ns(emulator.late);
        }
        if let Some(memory) = &config.memory {
            let pages = [
                (abi::EMUD_WINDOW_PAGE_IN, memory.page_ins),
                (abi::EMUD_WINDOW_PAGE_OUT, memory.page_outs),
            ];
            for (w, threshold) in pages {
                self.window(w, memory.window, threshold);
            }
        }
    }

    fn network(&mut self, network: &Network) -> Result<(), MonitorError> {
        let bytes = |bit_s: u64| {
            let bits = u128::from(bit_s) * network.window.as_nanos() / 1_000_000_000;
            (bits / 8) as u64
        };
        let classes = [
            (abi::EMUD_WINDOW_EXTERNAL, network.external_bit_s),
            (abi::EMUD_WINDOW_INTERNAL, network.internal_bit_s),
        ];
        for (w, bit_s) in classes {
            self.window(w, network.window, bit_s.map(bytes));
        }
        for device in network.devices.keys().chain(network.classes.keys()) {
            if self.netdev_rules.iter().any(|(n, _)| spells(n, device)) {
                continue;
            }
            let mut own = abi::EMUD_WINDOW_NONE;
            if let Some(bit_s) = network.devices.get(device) {
                own = abi::EMUD_WINDOW_DEVICES + self.devices.len() as u32;
                if own >= abi::EMUD_WINDOWS {
                    let most = abi::EMUD_WINDOWS - abi::EMUD_WINDOW_DEVICES;
                    return Err(MonitorError::Config(format!(
                        "more than {most} devices with a threshold of their own"
                    )));
                }
                self.window(own, network.window, Some(bytes(*bit_s)));
                self.devices.push(device.clone());
            }
            let window = match network.classes.get(device) {
                Some(Class::External) => abi::EMUD_WINDOW_EXTERNAL,
                Some(Class::Internal) => abi::EMUD_WINDOW_INTERNAL,
                Some(Class::Ignored) => abi::EMUD_WINDOW_NONE,
                None => abi::EMUD_GUESS,
            };
            let rule = emud_netdev_rule { window, own };
            self.netdev_rules.push((name(device)?, rule));
        }
        Ok(())
    }

    fn window(&mut self, w: u32, window: Duration, threshold: Option<u64>) {
        let i = w as usize;
        let threshold = threshold.unwrap_or(0);
        self.config.window_ns[i] = ns(window);
        self.config.threshold[i] = threshold;
        self.config.quantum[i] = (threshold / QUANTA).max(1);
    }

    /// Windows in use: those of devices follow the fixed ones.
    pub fn windows(&self) -> u32 {
        abi::EMUD_WINDOW_DEVICES + self.devices.len() as u32
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn name(of: &str) -> Result<emud_name, MonitorError> {
    let mut name = emud_name::default();
    if of.is_empty() || of.len() >= name.text.len() {
        return Err(MonitorError::Config(format!(
            "\"{of}\" cannot be the name of a device"
        )));
    }
    for (to, from) in name.text.iter_mut().zip(of.bytes()) {
        *to = from as _;
    }
    Ok(name)
}

fn spells(name: &emud_name, text: &str) -> bool {
    let bytes = name.text.iter().map(|c| *c as u8);
    bytes.take_while(|c| *c != 0).eq(text.bytes())
}
