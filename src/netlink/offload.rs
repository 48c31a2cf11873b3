// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device features and transmit queues, through the ethtool family of generic netlink.

use std::collections::{BTreeMap, BTreeSet};

use netlink_bindings::ethtool::{self, IterableBitset, Stringset};
use serde::{Deserialize, Serialize};

use super::{Link, Netlink, NetlinkError, Result};

/// Features that merge received packets before the classifier sees them, by the kernel's names.
/// "rx-gro-list" and "rx-udp-gro-forwarding" are separate kinds of GRO for forwarded packets.
pub const RECEIVE_MERGING: [&str; 5] = [
    "rx-gro-hw",
    "rx-lro",
    "rx-gro-list",
    "rx-udp-gro-forwarding",
    "rx-gro",
];

/// Returns whether a feature lets a device send super-packets of one kind.
pub fn is_segmentation(feature: &str) -> bool {
    feature.starts_with("tx-") && feature.ends_with("-segmentation") || feature == "tx-gso-list"
}

// The generated requests have the numbers of other commands (0.3.5 also counts the kernel's
// notifications: its features-set would set ring sizes), so they are corrected: ETHTOOL_MSG_* of
// linux/ethtool_netlink.h.
const MSG_FEATURES_GET: u8 = 11;
const MSG_FEATURES_SET: u8 = 12;
const MSG_CHANNELS_GET: u8 = 17;

const COMPACT_BITSETS: u32 = 1;
const ETH_SS_FEATURES: u32 = 4;

/// The state of some features of one device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offloads {
    /// Enabled features that the driver can switch.
    pub changeable: BTreeSet<String>,
    /// Enabled features that cannot be switched.
    pub fixed: BTreeSet<String>,
}

/// A feature's index and three of its four states.
struct Feature {
    name: String,
    switchable: bool,
    active: bool,
}

impl Offloads {
    /// Reads which of these features are enabled (see [`RECEIVE_MERGING`], [`is_segmentation`]).
    pub fn snapshot(nl: &mut Netlink, ifindex: u32, wanted: impl Fn(&str) -> bool) -> Result<Self> {
        let mut state = Self::default();
        for feature in nl.features(ifindex)? {
            if feature.active && wanted(&feature.name) {
                let set = if feature.switchable {
                    &mut state.changeable
                } else {
                    &mut state.fixed
                };
                set.insert(feature.name);
            }
        }
        Ok(state)
    }

    /// Switches off what is enabled and changeable. Returns the features that are still enabled.
    pub fn cap(&self, nl: &mut Netlink, ifindex: u32) -> Result<Vec<String>> {
        self.switch(nl, ifindex, false)?;
        let still = nl.active_among(ifindex, self.changeable.iter().chain(&self.fixed))?;
        Ok(still)
    }

    /// Switches on what [`Offloads::cap`] switched off. Returns the features that are still
    /// disabled.
    pub fn restore(&self, nl: &mut Netlink, ifindex: u32) -> Result<Vec<String>> {
        self.switch(nl, ifindex, true)?;
        let back = nl.active_among(ifindex, self.changeable.iter())?;
        Ok(self
            .changeable
            .iter()
            .filter(|name| !back.contains(name))
            .cloned()
            .collect())
    }

    fn switch(&self, nl: &mut Netlink, ifindex: u32, on: bool) -> Result<()> {
        if self.changeable.is_empty() {
            return Ok(());
        }
        let mut request = ethtool::Request::new().op_features_set_do();
        request.header_mut().cmd = MSG_FEATURES_SET;
        let mut bits = request
            .encode()
            .nested_header()
            .push_dev_index(ifindex)
            .push_flags(COMPACT_BITSETS)
            .end_nested()
            .nested_wanted()
            .nested_bits();
        for name in &self.changeable {
            let bit = bits.nested_bit().push_name_bytes(name.as_bytes());
            let bit = if on { bit.push_value(()) } else { bit };
            bits = bit.end_nested();
        }
        bits.end_nested().end_nested();
        let name = nl.name_of(ifindex);
        let verb = if on { "on" } else { "off" };
        let list = self
            .changeable
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", ");
        nl.exchange(
            &request,
            || format!("switch {verb} {list} on {name}"),
            |_| (),
        )
    }
}

fn bits(set: Result<IterableBitset<'_>, netlink_bindings::utils::ErrorContext>) -> Vec<u32> {
    let words = set.and_then(|s| s.get_value()).unwrap_or(&[]);
    words
        .chunks_exact(4)
        .map(|w| u32::from_ne_bytes([w[0], w[1], w[2], w[3]]))
        .collect()
}

fn is_set(words: &[u32], index: u32) -> bool {
    words
        .get(index as usize / 32)
        .is_some_and(|w| w >> (index % 32) & 1 != 0)
}

impl Netlink {
    /// Returns the number of transmit queues in use; all that the device has if its driver does not report
    /// them.
    pub fn transmit_queues(&mut self, link: &Link) -> u32 {
        let mut request = ethtool::Request::new().op_channels_get_do();
        request.header_mut().cmd = MSG_CHANNELS_GET;
        request
            .encode()
            .nested_header()
            .push_dev_index(link.index)
            .end_nested();
        let mut used = 0;
        let what = || format!("read the channels of {}", link.name);
        let asked = self.exchange(&request, what, |reply| {
            used = reply.get_tx_count().unwrap_or(0) + reply.get_combined_count().unwrap_or(0);
        });
        match asked {
            Ok(()) if used > 0 => used,
            _ => link.num_tx_queues,
        }
    }

    fn active_among<'a>(
        &mut self,
        ifindex: u32,
        names: impl Iterator<Item = &'a String>,
    ) -> Result<Vec<String>> {
        let on: BTreeSet<String> = self
            .features(ifindex)?
            .into_iter()
            .filter(|f| f.active)
            .map(|f| f.name)
            .collect();
        Ok(names.filter(|name| on.contains(*name)).cloned().collect())
    }

    fn features(&mut self, ifindex: u32) -> Result<Vec<Feature>> {
        let names = self.feature_names()?;
        let mut request = ethtool::Request::new().op_features_get_do();
        request.header_mut().cmd = MSG_FEATURES_GET;
        // Compact: the long form can exceed the receive buffer for a large NIC.
        request
            .encode()
            .nested_header()
            .push_dev_index(ifindex)
            .push_flags(COMPACT_BITSETS)
            .end_nested();
        let mut features = Vec::new();
        let what = || format!("read the features of interface {ifindex}");
        let asked = self.exchange(&request, what, |reply| {
            let hw = bits(reply.get_hw());
            let active = bits(reply.get_active());
            let nochange = bits(reply.get_nochange());
            features = names
                .iter()
                .map(|(&index, name)| Feature {
                    name: name.clone(),
                    switchable: is_set(&hw, index) && !is_set(&nochange, index),
                    active: is_set(&active, index),
                })
                .collect();
        });
        match asked {
            Err(e) if e.errno() == libc::ENODEV => {
                Err(NetlinkError::NoInterface(format!("with index {ifindex}")))
            }
            Err(e) => Err(e),
            Ok(()) => Ok(features),
        }
    }

    fn feature_names(&mut self) -> Result<BTreeMap<u32, String>> {
        let mut request = ethtool::Request::new().op_strset_get_do();
        // The kernel requires the header, even an empty one: the names belong to no device.
        request
            .encode()
            .nested_header()
            .end_nested()
            .nested_stringsets()
            .nested_stringset()
            .push_id(ETH_SS_FEATURES)
            .end_nested()
            .end_nested();
        let mut names = BTreeMap::new();
        self.exchange(
            &request,
            || "read the names of features".into(),
            |reply| {
                let Ok(sets) = reply.get_stringsets() else {
                    return;
                };
                // get_strings() stops at the id before them.
                let strings = sets
                    .get_stringset()
                    .flatten()
                    .filter_map(|attr| match attr {
                        Ok(Stringset::Strings(strings)) => Some(strings),
                        _ => None,
                    });
                for string in strings.flat_map(|s| s.get_string()) {
                    if let (Ok(index), Ok(name)) = (string.get_index(), string.get_value()) {
                        names.insert(index, name.to_string_lossy().into_owned());
                    }
                }
            },
        )?;
        Ok(names)
    }
}
