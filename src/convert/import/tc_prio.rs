// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bands of tc's prio, and which packets it sends there (`prio_classify`).

use super::tc_filter::Filter;
use super::tc_handle::major;
use super::tc_made::{Made, begins};
use super::tc_units::whole;
use super::writer::quoted;
use crate::text::Mistake;

/// `priomap` of prio and pfifo_fast: band of a packet's priority.
const PRIOMAP: [usize; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];

/// Its classes, by their ids.
pub(super) struct Bands {
    pub ids: Vec<String>,
    /// The one of packets with priority 0.
    pub default: String,
    /// Bands of other packets, by the bits of their ToS that count.
    by_tos: Vec<(u8, String)>,
}

impl Bands {
    pub fn read(prio: &Made) -> Result<Self, Mistake> {
        let own = major(prio.handle.as_deref().unwrap_or("1:"));
        let (mut bands, mut map) = (3, PRIOMAP.to_vec());
        let mut options = prio.options.clone();
        while let Some(word) = options.next() {
            if begins(word.value, "bands") {
                bands = whole(&options.argument("bands", "3")?, 2..=16)? as usize;
            } else if begins(word.value, "priomap") {
                for slot in &mut map {
                    let Some(band) = options.number() else { break };
                    *slot = whole(&band, 0..=15)? as usize;
                }
            }
        }
        let id = |band: usize| format!("{own}:{:x}", band + 1);
        let default = id(map[0]);
        // rt_tos2priority() of the kernel, where that is not 0: of the DS field two bits count.
        let tos = [(0x10, 6), (0x08, 2), (0x18, 4)];
        let tos = tos.map(|(tos, priority)| (tos, id(map[priority])));
        Ok(Self {
            ids: (0..bands).map(id).collect(),
            by_tos: tos.into_iter().filter(|(_, id)| *id != default).collect(),
            default,
        })
    }

    /// Gives filters of a device the classes that they select, and adds what prio does without a filter.
    pub fn choose<'a>(&self, prio: &Made<'a>, filters: &mut Vec<Filter<'a>>) {
        for filter in filters.iter_mut().filter(|f| f.device == prio.device) {
            if let Some(class) = self.of(&filter.class) {
                filter.class.clone_from(class);
            }
        }
        filters.extend(self.by_tos.iter().map(|(tos, class)| Filter {
            at: prio.kind.at.clone(),
            device: prio.device,
            is_tos: true,
            class: class.clone(),
            // IPv6 sets no priority.
            matches: vec![
                ("source", quoted("0.0.0.0/0")),
                ("tos", format!("\"{tos:#x}/0x18\"")),
            ],
            ..Filter::default()
        }));
    }

    /// Returns the class of a filter's `flowid`: prio_classify() takes its second number, and the default band for a
    /// number without one. `None`: a variable of the shell.
    fn of(&self, flowid: &str) -> Option<&String> {
        let number = match flowid.split_once(':')?.1 {
            "" => 0,
            minor => usize::from_str_radix(minor, 16).ok()?,
        };
        let band = number.checked_sub(1).and_then(|band| self.ids.get(band));
        Some(band.unwrap_or(&self.default))
    }
}
