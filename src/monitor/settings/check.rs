// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the values go together, and the finished configuration.

use std::time::Duration;

use emud_monitor::Config;
use emud_monitor::config::{Alarms, Class, Cpu, Disk, Emulator, Memory, Network, Psi};

use super::argument::Only;
use super::draft::{Draft, FILE, Slot};
use super::value::Setting;
use crate::text::{At, Located, Mistake, Rate, Reader, Time};

/// The configuration; meaningless if that adds a mistake.
pub(crate) fn finish(reader: &mut Reader, mut draft: Draft, only: &[Only]) -> Config {
    ignored_devices(reader, &mut draft);
    let config = Config {
        cpu: cpu(&draft),
        network: network(reader, &draft),
        memory: memory(&draft),
        disk: disk(reader, &draft),
        emulator: or_default(&draft.late, Some(Emulator::default().late))
            .map(|late| Emulator { late }),
        psi: psi(reader, &draft),
        alarms: Alarms {
            limit: value(&draft.limit).unwrap_or(Alarms::default().limit),
            group_by: value(&draft.group_by).unwrap_or(Alarms::default().group_by),
            reporters: value(&draft.reporters).unwrap_or(Alarms::default().reporters),
        },
    };
    // After other mistakes a criterion may be missing for another reason.
    if reader.mistakes.is_empty() {
        for resource in only.iter().flat_map(|only| &only.resources) {
            is_watched(reader, &config, resource);
        }
    }
    config
}

fn cpu(draft: &Draft) -> Option<Cpu> {
    let usual = Cpu::default();
    Some(Cpu {
        theta: or_default(&draft.cpu_theta, Some(usual.theta))?,
        basis: value(&draft.basis).unwrap_or(usual.basis),
    })
}

fn network(reader: &mut Reader, draft: &Draft) -> Option<Network> {
    let usual = Network::default();
    let window = value(&draft.network_window).unwrap_or(usual.window);
    for threshold in [&draft.external, &draft.internal]
        .into_iter()
        .flatten()
        .chain(draft.devices.values())
    {
        a_byte_at_least(reader, threshold, window, draft.network_window.as_ref());
    }
    let classes = draft.classes.iter();
    let devices = draft.devices.iter();
    let network = Network {
        window,
        external_bit_s: or_default(&draft.external, usual.external_bit_s),
        internal_bit_s: or_default(&draft.internal, usual.internal_bit_s),
        classes: classes
            .map(|(name, class)| (name.clone(), class.value))
            .collect(),
        devices: devices
            .filter_map(|(name, rate)| Some((name.clone(), on(rate.value)?)))
            .collect(),
    };
    let watched = network.external_bit_s.is_some()
        || network.internal_bit_s.is_some()
        || !network.devices.is_empty();
    watched.then_some(network)
}

/// The kernel counts bytes: a threshold of less than one would always be reached.
fn a_byte_at_least(
    reader: &mut Reader,
    threshold: &Located<Setting<u64>>,
    window: Duration,
    written: Option<&Located<Duration>>,
) {
    let Setting::On(bit_s) = threshold.value else {
        return;
    };
    if u128::from(bit_s) * window.as_nanos() >= 8_000_000_000 {
        return;
    }
    let at = latest(&threshold.at, written.map(|window| &window.at));
    let (rate, window) = (Rate(bit_s), Time(window.as_nanos() as u64));
    reader.mistakes.push(Mistake::new(
        at,
        format!("{rate}/s is less than a byte in a window of {window}"),
        "idle devices would reach it: raise the rate or the window, or switch it \"off\"",
    ));
}

/// A device is either not counted or has a threshold; the command line decides
/// against the file.
fn ignored_devices(reader: &mut Reader, draft: &mut Draft) {
    for (name, class) in &draft.classes {
        let Some(Located {
            value: Setting::On(_),
            at,
        }) = draft.devices.get(name)
        else {
            continue;
        };
        if class.value != Class::Ignored {
            continue;
        }
        if at.source == FILE && class.at.source > FILE {
            draft.devices.remove(name);
            continue;
        }
        reader.mistakes.push(Mistake::new(
            latest(at, Some(&class.at)),
            format!("`{name}` is ignored and has a threshold of its own"),
            "keep one of the two: class = \"ignored\" or the threshold",
        ));
    }
}

fn memory(draft: &Draft) -> Option<Memory> {
    let usual = Memory::default();
    let memory = Memory {
        window: value(&draft.memory_window).unwrap_or(usual.window),
        page_ins: or_default(&draft.page_ins, usual.page_ins),
        page_outs: or_default(&draft.page_outs, usual.page_outs),
    };
    (memory.page_ins.is_some() || memory.page_outs.is_some()).then_some(memory)
}

fn disk(reader: &mut Reader, draft: &Draft) -> Option<Disk> {
    let usual = Disk::default();
    let disks = draft.disks.iter();
    if let Some(theta) = or_default(&draft.disk_theta, Some(usual.theta)) {
        return Some(Disk {
            theta,
            devices: disks.map(|(name, own)| (name.clone(), own.value)).collect(),
        });
    }
    let off = draft
        .disk_theta
        .as_ref()
        .map_or(FILE, |theta| theta.at.source);
    for (name, own) in disks {
        // Unless the command line switched off what the file describes.
        if own.value.is_some() && (own.at.source > FILE || off == FILE) {
            reader.mistakes.push(Mistake::new(
                &own.at,
                format!("`{name}` has a threshold, but disks are off"),
                "give [disk] a theta; single disks can be \"ignored\"",
            ));
        }
    }
    None
}

fn psi(reader: &mut Reader, draft: &Draft) -> Option<Psi> {
    let lonely = |at: &At, given: &str, missing: &str| {
        let help = "give both, such as stall = \"150ms\" and window = \"1s\"";
        Mistake::new(at, format!("`{given}` without `{missing}`"), help)
    };
    if draft.psi_unread {
        return None;
    }
    match (&draft.psi_stall, &draft.psi_window) {
        (None, None) => None,
        (Some(stall), window) => {
            let ns = on(stall.value)?;
            let Some(window) = window else {
                let mistake = lonely(&stall.at, "stall", "window");
                reader.mistakes.push(mistake);
                return None;
            };
            if ns > window.value {
                reader.mistakes.push(Mistake::new(
                    latest(&stall.at, Some(&window.at)),
                    "the stall is longer than its window",
                    "stall is the part of window in which tasks stand still",
                ));
            }
            Some(Psi {
                stall: ns,
                window: window.value,
            })
        }
        (None, Some(window)) => {
            let mistake = lonely(&window.at, "window", "stall");
            reader.mistakes.push(mistake);
            None
        }
    }
}

/// What `--only` names must not be off for another reason.
fn is_watched(reader: &mut Reader, config: &Config, resource: &Located<String>) {
    let watched = match resource.value.as_str() {
        "cpu" => config.cpu.is_some(),
        "network" => config.network.is_some(),
        "memory" => config.memory.is_some(),
        "disk" => config.disk.is_some(),
        "emulator" => config.emulator.is_some(),
        "psi" => config.psi.is_some(),
        // Programs report of themselves.
        _ => true,
    };
    if !watched {
        reader.mistakes.push(Mistake::new(
            &resource.at,
            format!("`{}` has no threshold", resource.value),
            "it is off: give it one, in the file or by its flag",
        ));
    }
}

fn value<T: Copy>(slot: &Slot<T>) -> Option<T> {
    slot.as_ref().map(|located| located.value)
}

fn on<T>(setting: Setting<T>) -> Option<T> {
    match setting {
        Setting::On(value) => Some(value),
        Setting::Off => None,
    }
}

fn or_default<T: Copy>(slot: &Slot<Setting<T>>, default: Option<T>) -> Option<T> {
    match slot {
        Some(located) => on(located.value),
        None => default,
    }
}

/// The later of two places: what was written last is what does not fit.
fn latest<'a>(at: &'a At, other: Option<&'a At>) -> &'a At {
    match other {
        Some(other) if (other.source, other.span.start) > (at.source, at.span.start) => other,
        _ => at,
    }
}
