// SPDX-License-Identifier: MIT OR Apache-2.0
//! A configuration as text, which reads back to an equal one.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::time::Duration;

use emud_monitor::Config;
use emud_monitor::config::{Alarms, Cpu, Disk, Network};

use super::value::{IGNORED, OFF};
use crate::text::{Rate, Time, Word};

/// TOML that says all of `config`, defaults included; see docs/monitor.md.
pub fn to_toml(config: &Config) -> String {
    let mut out = String::new();
    cpu(&mut out, config.cpu);
    network(&mut out, config.network.as_ref());
    header(&mut out, "memory");
    let memory = config.memory;
    if let Some(memory) = memory {
        text(&mut out, "window", time(memory.window));
    }
    pages(&mut out, "page-ins", memory.and_then(|m| m.page_ins));
    pages(&mut out, "page-outs", memory.and_then(|m| m.page_outs));
    disk(&mut out, config.disk.as_ref());
    header(&mut out, "emulator");
    threshold(&mut out, "late", config.emulator.map(|e| time(e.late)));
    header(&mut out, "psi");
    threshold(&mut out, "stall", config.psi.map(|psi| time(psi.stall)));
    if let Some(psi) = config.psi {
        text(&mut out, "window", time(psi.window));
    }
    alarms(&mut out, config.alarms);
    out
}

fn cpu(out: &mut String, cpu: Option<Cpu>) {
    header(out, "cpu");
    threshold(out, "theta", cpu.map(|cpu| time(cpu.theta)));
    if let Some(cpu) = cpu {
        text(out, "basis", cpu.basis.word());
    }
}

fn network(out: &mut String, network: Option<&Network>) {
    header(out, "network");
    if let Some(network) = network {
        text(out, "window", time(network.window));
    }
    let external = network.and_then(|n| n.external_bit_s);
    let internal = network.and_then(|n| n.internal_bit_s);
    threshold(out, "external", external.map(Rate));
    threshold(out, "internal", internal.map(Rate));
    if let Some(network) = network {
        named(out, "network.class", &network.classes, |c| c.word().into());
        named(out, "network.device", &network.devices, |bits| {
            Rate(*bits).to_string()
        });
    }
}

fn disk(out: &mut String, disk: Option<&Disk>) {
    header(out, "disk");
    threshold(out, "theta", disk.map(|disk| time(disk.theta)));
    if let Some(disk) = disk {
        named(out, "disk.device", &disk.devices, |theta| match theta {
            Some(theta) => time(*theta).to_string(),
            None => IGNORED.to_owned(),
        });
    }
}

fn alarms(out: &mut String, alarms: Alarms) {
    header(out, "alarms");
    line(out, "limit", alarms.limit);
    text(out, "group-by", alarms.group_by.word());
    text(out, "reporters", alarms.reporters.word());
}

/// Writing to a String does not fail.
fn line(out: &mut String, key: &str, value: impl Display) {
    let _ = writeln!(out, "{key} = {value}");
}

fn text(out: &mut String, key: &str, value: impl Display) {
    line(out, key, format_args!("\"{value}\""));
}

fn threshold(out: &mut String, key: &str, value: Option<impl Display>) {
    match value {
        Some(value) => text(out, key, value),
        None => text(out, key, OFF),
    }
}

fn pages(out: &mut String, key: &str, pages: Option<u64>) {
    match pages {
        Some(pages) => line(out, key, pages),
        None => text(out, key, OFF),
    }
}

fn header(out: &mut String, name: &str) {
    let blank = if out.is_empty() { "" } else { "\n" };
    let _ = writeln!(out, "{blank}[{name}]");
}

/// A table of devices; names may need quotes, which toml sees to.
fn named<T>(
    out: &mut String,
    name: &str,
    devices: &BTreeMap<String, T>,
    value: impl Fn(&T) -> String,
) {
    if devices.is_empty() {
        return;
    }
    header(out, name);
    let table: toml::Table = devices
        .iter()
        .map(|(name, device)| (name.clone(), value(device).into()))
        .collect();
    let _ = write!(out, "{table}");
}

fn time(duration: Duration) -> Time {
    Time(duration.as_nanos() as u64)
}
