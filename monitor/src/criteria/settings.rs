// SPDX-License-Identifier: MIT OR Apache-2.0
//! Translates [`Config`] for the kernel part: its constants, the windows of single devices, and the
//! rules by name.

use std::time::Duration;

use super::table::ns;
use super::{CRITERIA, Config, GroupBy};
use crate::abi::{self, emud_config, emud_name, emud_netdev_rule};
use crate::candidates::TICK;

/// Amount that a CPU keeps before it reports to a window, as a fraction of the threshold. All CPUs
/// together keep no more than these eight: an amount that none of them reports within a window is not
/// counted, and 128 CPUs with 1/64 each would raise no alarm below twice the threshold.
const QUANTA: u64 = 64;
const CPUS: u64 = 8;

pub struct Settings {
    pub config: emud_config,
    /// Constants of single criteria, by the name of the variable.
    pub globals: Vec<(&'static str, u64)>,
    /// Names of the devices with separate windows, from EMUD_WINDOW_DEVICES on.
    pub devices: Vec<String>,
    pub netdev_rules: Vec<(emud_name, emud_netdev_rule)>,
    pub disk_rules: Vec<(emud_name, u64)>,
}

impl Settings {
    /// Translates a configuration.
    ///
    /// # Errors
    /// More than twelve devices with separate thresholds, more than 64 rules, or a name that no
    /// device can have.
    pub fn of(config: &Config, cpus: u32) -> Result<Self, String> {
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
            globals: vec![],
            devices: vec![],
            netdev_rules: vec![],
            disk_rules: vec![],
        };
        for criterion in &CRITERIA {
            (criterion.tell)(config, &mut settings)?;
        }
        settings.config.windows = settings.windows();
        let rules = settings.netdev_rules.len().max(settings.disk_rules.len());
        if rules > 64 {
            return Err(format!("{rules} devices have settings, the maximum is 64"));
        }
        Ok(settings)
    }

    pub fn global(&mut self, name: &'static str, value: u64) {
        self.globals.push((name, value));
    }

    pub fn window(&mut self, w: u32, window: Duration, threshold: Option<u64>) {
        let i = w as usize;
        let threshold = threshold.unwrap_or(0);
        self.config.window_ns[i] = ns(window);
        self.config.threshold[i] = threshold;
        let quanta = QUANTA * u64::from(self.config.cpus).div_ceil(CPUS).max(1);
        self.config.quantum[i] = (threshold / quanta).max(1);
    }

    /// Adds a window for one device and returns its number.
    pub fn device_window(
        &mut self,
        device: &str,
        window: Duration,
        threshold: u64,
    ) -> Result<u32, String> {
        let own = self.windows();
        if own >= abi::EMUD_WINDOWS {
            let most = abi::EMUD_WINDOWS - abi::EMUD_WINDOW_DEVICES;
            return Err(format!(
                "more than {most} devices with a separate threshold"
            ));
        }
        self.window(own, window, Some(threshold));
        self.devices.push(device.to_owned());
        Ok(own)
    }

    /// Returns the number of windows in use: those of devices follow the fixed ones.
    pub fn windows(&self) -> u32 {
        abi::EMUD_WINDOW_DEVICES + self.devices.len() as u32
    }
}

/// Converts the name of a device.
///
/// # Errors
/// No device can have that name.
pub fn name(of: &str) -> Result<emud_name, String> {
    let mut name = emud_name::default();
    if of.is_empty() || of.len() >= name.text.len() {
        return Err(format!("\"{of}\" is not a valid name of a device"));
    }
    for (to, from) in name.text.iter_mut().zip(of.bytes()) {
        *to = from as _;
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cpus_together_keep_little_of_a_threshold() {
        for cpus in [1, 2, 8, 9, 64, 128, 512] {
            let settings = Settings::of(&Config::default(), cpus).unwrap().config;
            for (quantum, threshold) in settings.quantum.iter().zip(settings.threshold) {
                let kept = quantum * u64::from(cpus);
                assert!(
                    kept <= threshold / 8 + u64::from(cpus),
                    "{cpus} CPUs: {kept}"
                );
            }
        }
    }
}
