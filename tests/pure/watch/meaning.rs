// SPDX-License-Identifier: MIT OR Apache-2.0
//! The meaning of files and arguments.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use emud::monitor::settings as watch;
use emud::monitor::settings::Argument;
use emud::text::TextError;
use emud_monitor::Config;
use emud_monitor::config::{
    Alarms, Basis, Class, Cpu, Disk, Emulator, GroupBy, Memory, Network, Psi, Reporters,
};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn parse(text: &str) -> Config {
    watch::parse(text, "m.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// `text` as a file, and the arguments over it.
pub fn with(text: &str, arguments: &[Argument]) -> Result<Config, TextError> {
    let path = std::env::temp_dir().join(format!(
        "emud-watch-{}-{:?}.toml",
        std::process::id(),
        std::thread::current().id()
    ));
    std::fs::write(&path, text).unwrap();
    let config = watch::config(Some(&path), arguments);
    std::fs::remove_file(&path).unwrap();
    config
}

fn map<T: Clone>(of: &[(&str, T)]) -> BTreeMap<String, T> {
    let owned = |(name, value): &(&str, T)| (name.to_string(), value.clone());
    of.iter().map(owned).collect()
}

/// The example of docs/monitor.md contains every key.
#[test]
fn the_example_in_the_documentation() {
    let doc = include_str!("../../../docs/monitor.md");
    let (_, rest) = doc.split_once("```toml\n").expect("an example");
    let (example, _) = rest.split_once("```").unwrap();
    let expected = Config {
        network: Some(Network {
            classes: map(&[
                ("wg0", Class::External),
                ("br-lab", Class::Internal),
                ("eth1", Class::Ignored),
            ]),
            devices: map(&[("eth0", 900_000_000)]),
            device_windows: map(&[("eth0", MS(50))]),
            ..Network::default()
        }),
        disk: Some(Disk {
            devices: map(&[("nvme0n1", Some(MS(50))), ("sr0", None)]),
            ..Disk::default()
        }),
        psi: Some(Psi {
            stall: MS(150),
            window: MS(1000),
        }),
        ..Config::default()
    };
    assert_eq!(parse(example), expected);
    // All of them are in the example, so none is missing in the documentation.
    let printed = watch::to_toml(&expected);
    for line in printed.lines().filter(|line| !line.is_empty()) {
        let said = |own: &str| own.split('#').next().unwrap_or_default().trim() == line;
        assert!(example.lines().any(said), "{line} is not in the example");
    }
}

#[test]
fn nothing_said_is_the_default() {
    for text in ["", "[cpu]", "[network]\n[memory]\n[disk]\n[alarms]", "# x"] {
        assert_eq!(parse(text), Config::default());
    }
    assert_eq!(watch::config(None, &[]).unwrap(), Config::default());
}

/// `shared` instead of a file; `emud monitor` prints it, and reads what it printed.
#[test]
fn thresholds_of_shared_machines() {
    let shared = Path::new(watch::SHARED);
    let expected = Config {
        cpu: Some(Cpu {
            theta: MS(1000),
            ..Cpu::default()
        }),
        network: None,
        memory: Some(Memory {
            page_ins: Some(1000),
            page_outs: Some(1000),
            ..Memory::default()
        }),
        disk: Some(Disk {
            theta: MS(1000),
            ..Disk::default()
        }),
        emulator: Some(Emulator { late: MS(20) }),
        alarms: Alarms {
            group_by: GroupBy::Command,
            ..Alarms::default()
        },
        ..Config::default()
    };
    assert_eq!(watch::config(Some(shared), &[]).unwrap(), expected);
    assert_eq!(parse(&watch::text(shared).unwrap()), expected);
    let printed = Command::new(support::emud_path())
        .args(["monitor", "--config", "shared", "--print-config"])
        .output()
        .unwrap();
    assert!(printed.status.success(), "{printed:?}");
    assert_eq!(parse(str::from_utf8(&printed.stdout).unwrap()), expected);
    // A flag changes one of them.
    let late = watch::config(Some(shared), &[Argument::set("emulator.late=7ms")]).unwrap();
    assert_eq!(late.emulator, Some(Emulator { late: MS(7) }));
    assert_eq!(late.cpu, expected.cpu);
}

#[test]
fn every_key_of_a_file() {
    let text = r#"
        cpu = { theta = "20ms", basis = "idle" }
        memory = { window = "1s", page-ins = 5, page-outs = "7" }
        emulator.late = "50us"
        psi = { stall = "0.5s", window = "10s" }
        alarms = { limit = 9, group-by = "cgroup", reporters = "all" }
        [network]
        window = "1ms"
        external = "1Gbit"
        internal = "2.5Gbit/s"
        class."eth0.100" = "internal"
        device."eth0.100" = "8kbit"
        device-window."eth0.100" = "2s"
        [disk]
        theta = "1h"
        device = { sda = "1ms", "cciss!c0d0" = "ignored" }
    "#
    .replace("1h", "60min");
    let expected = Config {
        cpu: Some(Cpu {
            theta: MS(20),
            basis: Basis::Idle,
        }),
        network: Some(Network {
            window: MS(1),
            external_bit_s: Some(1_000_000_000),
            internal_bit_s: Some(2_500_000_000),
            classes: map(&[("eth0.100", Class::Internal)]),
            devices: map(&[("eth0.100", 8_000)]),
            device_windows: map(&[("eth0.100", MS(2000))]),
        }),
        memory: Some(Memory {
            window: MS(1000),
            page_ins: Some(5),
            page_outs: Some(7),
        }),
        disk: Some(Disk {
            theta: MS(3_600_000),
            devices: map(&[("sda", Some(MS(1))), ("cciss!c0d0", None)]),
        }),
        emulator: Some(Emulator {
            late: Duration::from_micros(50),
        }),
        psi: Some(Psi {
            stall: MS(500),
            window: MS(10_000),
        }),
        alarms: Alarms {
            limit: 9,
            group_by: GroupBy::Cgroup,
            reporters: Reporters::All,
        },
        ..Config::default()
    };
    assert_eq!(parse(&text), expected);
}

#[test]
fn off() {
    let all = "cpu = \"off\"\nnetwork = \"off\"\nmemory = \"off\"\ndisk = \"off\"\n\
               emulator = \"off\"\npsi = \"off\"";
    let by_section = parse(all);
    let nothing = Config {
        cpu: None,
        network: None,
        memory: None,
        disk: None,
        emulator: None,
        ..Config::default()
    };
    assert_eq!(by_section, nothing);
    let by_key = "cpu.theta = \"off\"\nnetwork = { external = \"off\", internal = \"off\" }\n\
                  memory = { page-ins = \"off\", page-outs = \"off\" }\ndisk.theta = \"off\"\n\
                  emulator.late = \"off\"\npsi.stall = \"off\"";
    assert_eq!(parse(by_key), nothing);
    // One of two thresholds keeps the other; so does a single device.
    let one = parse("memory.page-ins = \"off\"").memory.unwrap();
    assert_eq!((one.page_ins, one.page_outs), (None, Some(1)));
    let device = "network = { external = \"off\", internal = \"off\", device.x = \"1Mbit\" }";
    let network = parse(device).network.unwrap();
    assert_eq!(
        (network.external_bit_s, network.internal_bit_s),
        (None, None)
    );
    assert_eq!(network.devices, map(&[("x", 1_000_000)]));
}

/// Flags over `--set`'s keys over the file over the defaults, key by key.
#[test]
fn the_command_line_wins() {
    let file = "cpu.theta = \"20ms\"\ncpu.basis = \"idle\"\nmemory = \"off\"\n\
                network.device = { eth0 = \"5Mbit\", eth1 = \"6Mbit\" }\n\
                network.device-window.eth1 = \"50ms\"\n\
                disk.device.sda = \"5ms\"\nalarms.limit = 7";
    let arguments = [
        Argument::set("cpu.theta = 30ms"),
        Argument::key("--page-ins", ("memory", "page-ins"), "4"),
        Argument::named("--class", ("network", "class"), "eth0=ignored"),
        Argument::named("--device", ("network", "device"), "eth0.7=7Mbit/s"),
        Argument::set("network.device.eth1=off"),
        Argument::psi("150ms/1s"),
        Argument::set("disk=off"),
        // A repeated value is no contradiction.
        Argument::set("alarms.limit=5"),
        Argument::key("--limit", ("alarms", "limit"), "5"),
    ];
    let config = with(file, &arguments).unwrap_or_else(|error| panic!("{error}"));
    let expected = Config {
        cpu: Some(Cpu {
            theta: MS(30),
            basis: Basis::Idle,
        }),
        network: Some(Network {
            classes: map(&[("eth0", Class::Ignored)]),
            devices: map(&[("eth0.7", 7_000_000)]),
            ..Network::default()
        }),
        memory: Some(Memory {
            page_ins: Some(4),
            page_outs: None,
            ..Memory::default()
        }),
        disk: None,
        psi: Some(Psi {
            stall: MS(150),
            window: MS(1000),
        }),
        alarms: Alarms {
            limit: 5,
            ..Alarms::default()
        },
        ..Config::default()
    };
    assert_eq!(config, expected);
}

#[test]
fn only() {
    let file = "[network.device]\neth0 = \"5Mbit\"\n[disk.device]\nsda = \"5ms\"";
    let config = with(file, &[Argument::only("cpu, disk")]).unwrap();
    assert_eq!(config.cpu, Config::default().cpu);
    assert_eq!(config.disk.unwrap().devices, map(&[("sda", Some(MS(5)))]));
    assert_eq!((config.network, config.memory), (None, None));
    assert_eq!((config.emulator, config.psi), (None, None));
    let application = watch::config(None, &[Argument::only("application")]).unwrap();
    assert_eq!((application.cpu, application.disk), (None, None));
}

#[test]
fn a_missing_file() {
    let error = watch::config(Some(Path::new("/no/such.toml")), &[]).unwrap_err();
    assert_eq!(error.exit_code(), 66);
    assert!(error.to_string().starts_with("/no/such.toml: No such file"));
}
