// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of emud's devices, where packets of a link wait: a TAP of engine hold or an ifb of
//! the other engines; and the ends of the segmenter.

use super::engine::Engine;
use crate::netlink::Link;

/// The kernel's IFNAMSIZ without the terminating byte.
const MAX_NAME: usize = libc::IFNAMSIZ - 1;

/// Prefixes of a device name, and the kernel's name for this kind of device. The second prefix is
/// for an index with too many digits for the first one; the index is then hexadecimal.
struct DeviceKind {
    long: &'static str,
    short: &'static str,
    kernel: &'static str,
}

const TAPS: [DeviceKind; 2] = [
    DeviceKind {
        long: "emud-up-",
        short: "emud-ux",
        kernel: "tun",
    },
    DeviceKind {
        long: "emud-down-",
        short: "emud-dx",
        kernel: "tun",
    },
];
const IFB: DeviceKind = DeviceKind {
    long: "emud-ifb-",
    short: "emud-ix",
    kernel: "ifb",
};

const SEGMENTER: [DeviceKind; 2] = [
    DeviceKind {
        long: "emud-sa-",
        short: "emud-ax",
        kernel: "veth",
    },
    DeviceKind {
        long: "emud-sb-",
        short: "emud-bx",
        kernel: "veth",
    },
];

impl DeviceKind {
    fn name(&self, ifindex: u32) -> String {
        let name = format!("{}{ifindex}", self.long);
        match name.len() <= MAX_NAME {
            true => name,
            false => format!("{}{ifindex:x}", self.short),
        }
    }

    /// Returns the index of the interface for which a device has this name.
    fn of(&self, kind: Option<&str>, name: &str) -> Option<u32> {
        if kind != Some(self.kernel) {
            return None;
        }
        let digits = |prefix| name.strip_prefix(prefix);
        let ifindex = match (digits(self.long), digits(self.short)) {
            (Some(decimal), _) => decimal.parse().ok()?,
            (None, Some(hex)) => u32::from_str_radix(hex, 16).ok()?,
            (None, None) => return None,
        };
        (self.name(ifindex) == name).then_some(ifindex)
    }
}

/// Returns the device names of a link's directions, by `EMUD_UP`, `EMUD_DOWN`. The ifb also exists
/// for `up` alone: it keeps the record.
pub(crate) fn names(engine: Engine, directions: [bool; 2], ifindex: u32) -> [Option<String>; 2] {
    let [up, down] = directions;
    match engine {
        Engine::Fq | Engine::Qdisc => [None, Some(IFB.name(ifindex))],
        Engine::Hold => [
            up.then(|| TAPS[0].name(ifindex)),
            down.then(|| TAPS[1].name(ifindex)),
        ],
    }
}

/// Returns the names of an interface's segmenter.
pub(crate) fn segmenter(ifindex: u32) -> [String; 2] {
    SEGMENTER.each_ref().map(|kind| kind.name(ifindex))
}

/// Returns every name that a device of emud for an interface can have.
pub(crate) fn all_names(ifindex: u32) -> impl Iterator<Item = String> {
    all().map(move |kind| kind.name(ifindex))
}

fn all() -> impl Iterator<Item = &'static DeviceKind> {
    TAPS.iter().chain([&IFB]).chain(&SEGMENTER)
}

/// Returns the index of the interface whose packets pass this device, from the name of the device.
pub(crate) fn serves(device: &Link) -> Option<u32> {
    all().find_map(|kind| kind.of(device.kind.as_deref(), &device.name))
}

/// Returns whether emud makes devices of this kind.
pub(crate) fn is_of_a_kind(device: &Link) -> bool {
    all().any(|kind| device.kind.as_deref() == Some(kind.kernel))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_fits_and_reads_back() {
        let decimal = |ifindex: u32| {
            let named = all().filter(|kind| {
                let name = kind.name(ifindex);
                assert!(name.len() <= 15, "{name}");
                assert_eq!(kind.of(Some(kind.kernel), &name), Some(ifindex));
                assert_eq!(kind.of(Some("dummy"), &name), None);
                name.ends_with(&format!("-{ifindex}"))
            });
            named.count()
        };
        let indices = [
            1,
            99_999,
            100_000,
            999_999,
            1_000_000,
            10_000_000,
            i32::MAX as u32,
        ];
        assert_eq!(indices.map(decimal), [5, 5, 4, 4, 3, 0, 0]);
        for name in ["emud-ifb-", "emud-ifb-x", "emud-ifb-07", "emud-ix2", "ifb0"] {
            assert_eq!(IFB.of(Some("ifb"), name), None, "{name}");
        }
    }
}
