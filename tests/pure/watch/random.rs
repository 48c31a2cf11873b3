// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random files and arguments.

use std::collections::BTreeMap;
use std::time::Duration;

use emud::monitor::settings as watch;
use emud::monitor::settings::Argument;
use emud_monitor::Config;
use emud_monitor::config::{
    Alarms, Basis, Class, Cpu, Disk, Emulator, GroupBy, Memory, Network, Psi, Reporters,
};
use emud_monitor::criteria::Steal;
use proptest::prelude::*;
use proptest::sample::select;
use support::chance::same_cases;

const US: u64 = 1_000;
const MS: u64 = 1_000 * US;
const HOUR: u64 = 3_600_000 * MS;

fn times(range: std::ops::RangeInclusive<u64>) -> impl Strategy<Value = Duration> + Clone {
    range.prop_map(Duration::from_nanos)
}

fn names(max_bytes: usize) -> impl Strategy<Value = String> {
    "[^/:\\s\\p{Cc}]{1,12}|[a-z0-9._\"'\\\\=#-]{1,15}".prop_filter("a name", move |n| {
        n.len() <= max_bytes && n != "." && n != ".."
    })
}

fn cpus() -> impl Strategy<Value = Cpu> {
    let basis = select(vec![Basis::Task, Basis::Idle]);
    (times(MS..=HOUR), basis).prop_map(|(theta, basis)| Cpu { theta, basis })
}

fn networks() -> impl Strategy<Value = Network> {
    // 8 kbit/s are a byte in the shortest window.
    let rate = 8_000..=1_000_000_000_000u64;
    let class = select(vec![Class::External, Class::Internal, Class::Ignored]);
    let own = prop::option::of(times(MS..=10_000 * MS));
    (
        times(MS..=10_000 * MS),
        prop::option::of(rate.clone()),
        prop::option::of(rate.clone()),
        prop::collection::btree_map(names(15), class, 0..4),
        prop::collection::btree_map(names(15), (rate, own), 0..4),
    )
        .prop_filter_map(
            "a threshold",
            |(window, external, internal, classes, devices)| {
                let devices: BTreeMap<_, _> = devices
                    .into_iter()
                    .filter(|(name, _)| classes.get(name) != Some(&Class::Ignored))
                    .collect();
                let watched = external.is_some() || internal.is_some() || !devices.is_empty();
                let own = devices.iter();
                let own = own.filter_map(|(name, (_, own))| Some((name.clone(), (*own)?)));
                let device_windows = own.collect();
                let rates = devices.into_iter().map(|(name, (rate, _))| (name, rate));
                watched.then_some(Network {
                    window,
                    external_bit_s: external,
                    internal_bit_s: internal,
                    classes,
                    devices: rates.collect(),
                    device_windows,
                })
            },
        )
}

fn memories() -> impl Strategy<Value = Memory> {
    let pages = || prop::option::of(1..=u64::MAX);
    (times(MS..=10_000 * MS), pages(), pages()).prop_filter_map(
        "a threshold",
        |(window, page_ins, page_outs)| {
            (page_ins.is_some() || page_outs.is_some()).then_some(Memory {
                window,
                page_ins,
                page_outs,
            })
        },
    )
}

fn disks() -> impl Strategy<Value = Disk> {
    let own = prop::option::of(times(MS..=HOUR));
    let devices = prop::collection::btree_map(names(31), own, 0..4);
    (times(MS..=HOUR), devices).prop_map(|(theta, devices)| Disk { theta, devices })
}

fn psis() -> impl Strategy<Value = Psi> {
    (500 * MS..=10_000 * MS).prop_flat_map(|window| {
        times(US..=window).prop_map(move |stall| Psi {
            stall,
            window: Duration::from_nanos(window),
        })
    })
}

fn configs() -> impl Strategy<Value = Config> {
    let group_by = select(vec![GroupBy::Netns, GroupBy::Cgroup, GroupBy::Command]);
    let reporters = select(vec![Reporters::Root, Reporters::Own, Reporters::All]);
    (
        prop::option::of(cpus()),
        prop::option::of(networks()),
        prop::option::of(memories()),
        prop::option::of(disks()),
        prop::option::of(times(US..=HOUR)),
        prop::option::of(psis()),
        prop::option::of((100..=1_000_000u64, times(100 * MS..=60_000 * MS))),
        (1..=u32::MAX, group_by, reporters),
    )
        .prop_map(
            |(cpu, network, memory, disk, late, psi, steal, alarms)| Config {
                cpu,
                network,
                memory,
                disk,
                emulator: late.map(|late| Emulator { late }),
                psi,
                steal: steal.map(|(millionths, window)| Steal { millionths, window }),
                alarms: Alarms {
                    limit: alarms.0,
                    group_by: alarms.1,
                    reporters: alarms.2,
                },
                ..Config::default()
            },
        )
}

proptest! {
    #![proptest_config(same_cases(support::cases(1000)))]

    #[test]
    fn printed_and_read_again_is_the_same(config in configs()) {
        let text = watch::to_toml(&config);
        match watch::parse(&text, "printed") {
            Ok(back) => prop_assert_eq!(back, config, "{}", text),
            Err(error) => prop_assert!(false, "{text}\n{error}"),
        }
    }

    #[test]
    fn any_text(text in "(\\PC|[\n\r\t\"'={}\\[\\]#.]){0,100}") {
        accepted_or_explained(watch::parse(&text, "m.toml"), "m.toml:");
    }

    #[test]
    fn any_values(
        key in "(cpu.theta|cpu.basis|network.(window|external|class.x|device.x)|memory.(window|page-ins)|disk.(theta|device.x)|emulator.late|psi.(stall|window)|alarms.(limit|group-by))",
        value in "(\"[-0-9.eE]{0,6}[ a-zA-Zµ%/]{0,5}\"|[-0-9.e]{1,5}|\"(off|ignored|task|netns)\")",
    ) {
        accepted_or_explained(watch::parse(&format!("{key} = {value}\n"), "m.toml"), "m.toml:");
    }

    #[test]
    fn any_argument(text in "([a-z]{1,8}|cpu|network.device|disk)\\.?[a-z.]{0,12}=?\\PC{0,20}", which in 0..4) {
        let argument = match which {
            0 => Argument::set(&text),
            1 => Argument::named("--disk", ("disk", "device"), &text),
            2 => Argument::psi(&text),
            _ => Argument::only(&text),
        };
        accepted_or_explained(watch::config(None, &[argument]), "command line:1:");
    }
}

/// Either the configuration is equal after reading its text, or a message names the position.
fn accepted_or_explained(result: Result<Config, emud::text::TextError>, place: &str) {
    match result {
        Ok(config) => {
            assert_eq!(watch::parse(&watch::to_toml(&config), "x").unwrap(), config);
        }
        Err(error) => assert!(error.to_string().contains(place), "{error}"),
    }
}
