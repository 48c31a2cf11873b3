// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes transmitted in a sliding window.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::table::{
    Conflict, Device, Key, Kind, MS, Of, SECOND, Table as _, Usual, Values, Word as _, table, words,
};
use super::{Attempt, GroupBy, Measured, Recorded, Settings, Watch, name};
use crate::abi::{self, emud_alarm, emud_netdev_rule};
use crate::terms::{Scope, Unit};
use crate::candidates::Point::Tracepoint;
use crate::candidates::{Candidate, part, tracepoints};

table! {
    /// Bytes transmitted in a sliding window.
    Network = "network", On;

    /// Window in which transmitted bytes are counted
    "window" window: Duration = Duration::from_millis(10),
        Key::new(Kind::Time(MS, 10 * SECOND), "window_ns").flag("network-window", "TIME");

    /// Total rate of all external devices that is contention, or `off`
    "external" external_bit_s: Option<u64> = Some(490_000_000),
        Key::new(Kind::Rate, "external_bytes").threshold().flag("external", "RATE");

    /// Total rate of all internal devices that is contention, or `off`
    "internal" internal_bit_s: Option<u64> = Some(1_000_000_000),
        Key::new(Kind::Rate, "internal_bytes").threshold().flag("internal", "RATE");

    /// Class of an interface, if the guess from its kind is wrong: external, internal, ignored
    "class" classes: BTreeMap<String, Class> = BTreeMap::new(),
        Key::new(Kind::Named(Device::Interface, Of::Word(Class::WORDS)), "class")
            .flag("class", "IFACE=CLASS").also(&["classes"]);

    /// Rate of a single interface that is contention, in addition to its class
    "device" devices: BTreeMap<String, u64> = BTreeMap::new(),
        Key::new(Kind::Named(Device::Interface, Of::Rate), "device_bytes").threshold()
            .flag("device", "IFACE=RATE").also(&["devices", "disks", "interface"]);

    /// Window of a single interface with a rate, if it differs from `window`
    "device-window" device_windows: BTreeMap<String, Duration> = BTreeMap::new(),
        Key::new(Kind::Named(Device::Interface, Of::Window(MS, 10 * SECOND)), "device_window_ns")
            .flag("device-window", "IFACE=TIME").also(&["device-windows"]);

    impl {
        const ALSO: &'static [&'static str] = &["net"];

        fn conflicts(values: &Values) -> Vec<Conflict> {
            conflicts(values)
        }
    }
}

words! {
    /// Class of a device, by the destination of its packets.
    Class {
        /// Leaves this host: the device has hardware behind it.
        External = "external",
        /// Stays on this host: veth, bridge, TAP, loopback, ...
        Internal = "internal",
        /// Its bytes are not counted.
        Ignored = "ignored",
    }
}

fn conflicts(values: &Values) -> Vec<Conflict> {
    let mut found = vec![];
    let devices = values.named::<u64>("device");
    let classes = values.named::<Class>("class");
    let ignored = |name: &&String| classes.get(*name) == Some(&Class::Ignored);
    for name in devices.keys().filter(ignored) {
        found.push(Conflict {
            between: vec![("device", Some(name.clone())), ("class", Some(name.clone()))],
            gives_way: true,
            title: format!("`{name}` is ignored and has a separate threshold"),
            help: "remove one of the two: class = \"ignored\" or the threshold",
        });
    }
    let windows = values.named::<u64>("device-window");
    let without = |name: &&String| !devices.contains_key(*name);
    for name in windows.keys().filter(without) {
        found.push(Conflict {
            between: vec![("device-window", Some(name.clone())), ("device", Some(name.clone()))],
            gives_way: true,
            title: format!("`{name}` has a separate window, but no separate threshold"),
            help: "add its threshold, device.NAME = \"900Mbit\", or remove the window",
        });
    }
    let both = ["external", "internal"].map(|key| (key, None, values.number(key)));
    let devices = devices.into_iter().map(|(name, rate)| ("device", Some(name), Some(rate)));
    for (key, name, rate) in both.into_iter().chain(devices) {
        let own = name.as_ref().and_then(|name| Some((name.clone(), *windows.get(name)?)));
        let (window, window_ns) = match own {
            Some((name, ns)) => (("device-window", Some(name)), Some(ns)),
            None => (("window", None), values.number("window")),
        };
        // The kernel counts bytes: a threshold below one byte would always be reached.
        let bits = |bit_s: u64| u128::from(bit_s) * u128::from(window_ns.unwrap_or(0));
        if rate.is_some_and(|bit_s| bits(bit_s) < 8 * u128::from(SECOND)) {
            found.push(Conflict {
                between: vec![(key, name), window],
                gives_way: false,
                title: "$0/s is less than a byte in a window of $1".into(),
                help: "idle devices would reach it: raise the rate or the window, or switch \
                       it \"off\"",
            });
        }
    }
    found
}

impl Watch for Network {
    const SLIDING: Option<Unit> = Some(Unit::Bytes);
    const MEASURED: &'static [Measured] = &[
        Measured::new("external", &Network::KEYS[1], "external: rate over", &["network"]),
        Measured::new("internal", &Network::KEYS[2], "internal: rate over", &["network"]),
    ];
    const RECORDED: &'static [Recorded] = &[Recorded::new("network", "packets", "network", |_| {
        vec![tracepoints(&[("emud_rec_xmit", "net_dev_xmit")])]
    })];

    fn set(&self, kernel: &mut Settings) -> Result<(), String> {
        let bytes = |bit_s: u64, window: Duration| {
            let bits = u128::from(bit_s) * window.as_nanos() / 1_000_000_000;
            (bits / 8) as u64
        };
        let classes = [
            (abi::EMUD_WINDOW_EXTERNAL, self.external_bit_s),
            (abi::EMUD_WINDOW_INTERNAL, self.internal_bit_s),
        ];
        for (w, bit_s) in classes {
            kernel.window(w, self.window, bit_s.map(|bit_s| bytes(bit_s, self.window)));
        }
        let named: BTreeSet<&String> = self.devices.keys().chain(self.classes.keys()).collect();
        for device in named {
            let own = match self.devices.get(device) {
                Some(bit_s) => {
                    let window = self.device_windows.get(device).copied().unwrap_or(self.window);
                    kernel.device_window(device, window, bytes(*bit_s, window))?
                }
                None => abi::EMUD_WINDOW_NONE,
            };
            let window = match self.classes.get(device) {
                Some(Class::External) => abi::EMUD_WINDOW_EXTERNAL,
                Some(Class::Internal) => abi::EMUD_WINDOW_INTERNAL,
                Some(Class::Ignored) => abi::EMUD_WINDOW_NONE,
                None => abi::EMUD_GUESS,
            };
            let rule = emud_netdev_rule { window, own };
            kernel.netdev_rules.push((name(device)?, rule));
        }
        Ok(())
    }

    fn hooks(&self, group_by: GroupBy) -> Vec<Attempt> {
        let one = |program, tracepoint| {
            Candidate::of([part(program, Tracepoint(tracepoint), abi::EMUD_HOOK_XMIT)])
        };
        let taken = one("emud_xmit", "net_dev_xmit");
        let offered = one("emud_start_xmit", "net_dev_start_xmit");
        let twice = "a packet that a busy driver rejects counts at every attempt";
        let candidates = match group_by {
            GroupBy::Netns => vec![taken, offered.but(twice)],
            GroupBy::Cgroup => vec![offered.but(format!(
                "the cgroup is that of the socket (unified hierarchy), otherwise of the running task; \
                 {twice}"
            ))],
            GroupBy::Command => vec![offered.but(format!(
                "a packet sent in softirq is counted for the task that was interrupted; {twice}"
            ))],
        };
        vec![Attempt::of("network", candidates)]
    }

    fn scope(alarm: &emud_alarm, devices: &[String]) -> (Scope, Unit) {
        let scope = match alarm.what {
            abi::EMUD_WINDOW_EXTERNAL => Scope::Class { class: "external" },
            abi::EMUD_WINDOW_INTERNAL => Scope::Class { class: "internal" },
            device => Scope::Device {
                name: devices
                    .get(device.saturating_sub(abi::EMUD_WINDOW_DEVICES) as usize)
                    .cloned()
                    .unwrap_or_default(),
                ifindex: alarm.a,
                netns: match alarm.b {
                    abi::EMUD_SEVERAL => 0,
                    netns => netns,
                },
            },
        };
        (scope, Unit::Bytes)
    }

    fn words(scope: &Scope) -> Option<[String; 2]> {
        match scope {
            Scope::Class { class } => {
                Some([format!("all {class} devices"), format!("{class} devices")])
            }
            Scope::Device { name, netns: 0, .. } => {
                Some([format!("{name} in several netns"), name.clone()])
            }
            Scope::Device { name, netns, .. } => {
                Some([format!("{name} in netns {netns}"), name.clone()])
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_its_window_or_that_of_all() {
        let of = |name: &str, bit_s: u64| (name.to_owned(), bit_s);
        let network = Network {
            devices: [of("eth0", 900_000_000), of("eth1", 80_000)].into(),
            device_windows: [("eth0".to_owned(), Duration::from_millis(50))].into(),
            ..Network::default()
        };
        let config = crate::config::Config {
            network: Some(network),
            ..crate::config::Config::default()
        };
        let settings = Settings::of(&config, 2).unwrap();
        assert_eq!(settings.devices, ["eth0", "eth1"]);
        let kernel = settings.config;
        let window = |w: u32| (kernel.window_ns[w as usize], kernel.threshold[w as usize]);
        let own = abi::EMUD_WINDOW_DEVICES;
        assert_eq!(window(own), (50 * MS, 5_625_000));
        assert_eq!(window(own + 1), (10 * MS, 100));
        assert_eq!(window(abi::EMUD_WINDOW_EXTERNAL), (10 * MS, 612_500));
    }

    #[test]
    fn one_namespace_is_named_for_a_device_but_not_for_several() {
        let alarm = |a, b| emud_alarm {
            what: abi::EMUD_WINDOW_DEVICES,
            a,
            b,
            ..emud_alarm::default()
        };
        let words = |alarm| {
            let scope = Network::scope(&alarm, &["eth0".into()]).0;
            Network::words(&scope).unwrap()[0].clone()
        };
        assert_eq!(words(alarm(2, 4_026_531_840)), "eth0 in netns 4026531840");
        assert_eq!(words(alarm(0, abi::EMUD_SEVERAL)), "eth0 in several netns");
    }
}
