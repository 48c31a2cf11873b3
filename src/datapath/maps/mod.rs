// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loaded classifier: its programs and its maps, either just loaded or found by the id of a
//! program on a device.

mod accounts;
mod batch;
mod classifiers;
mod error;
mod find;
mod generation;
mod loaded;
mod names;
pub mod pairs;
mod pins;
mod record;
mod rows;
mod rules;

use aya::maps::{Array, CgroupArray, HashMap, Map, MapData, MapError, PerCpuArray};

use crate::abi;
use crate::host::now_ns;
pub(crate) use classifiers::{Classifiers, is_gone};
pub use error::DatapathError;
use error::at;
pub(crate) use find::{control_of, look};
pub use generation::Prepared;
use generation::{grace_period, of_links, slot};
pub(crate) use loaded::classifier;
pub use loaded::{Loaded, Program};
use pairs::Pairs;
use record::Record;
use rows::RowsMap;

/// The maps, through which everything is read and changed. Each access fails if its map cannot be
/// read or written.
pub struct Maps {
    /// The kernel's id of the first one: that of the link, whichever programs use the maps.
    pub id: u32,
    control: Array<MapData, abi::emud_control>,
    links: Array<MapData, abi::emud_link>,
    tables: Array<MapData, abi::emud_table>,
    states: Array<MapData, abi::emud_state>,
    holders: Array<MapData, abi::emud_holder>,
    classes: Array<MapData, abi::emud_class>,
    plans: Array<MapData, abi::emud_plan>,
    /// Those that come into force with the next generation; `None`: those in force.
    next_plans: Option<Box<[abi::emud_plan; 2]>>,
    counts: PerCpuArray<MapData, abi::emud_counters>,
    saved: Record,
    patterns: Array<MapData, abi::emud_pattern>,
    masks: Array<MapData, abi::emud_masks>,
    cgroups: CgroupArray<MapData>,
    rules: HashMap<MapData, abi::emud_key, abi::emud_rule>,
    addresses: HashMap<MapData, abi::emud_address, u64>,
    resolvers: Array<MapData, abi::emud_resolvers>,
    hits: PerCpuArray<MapData, u64>,
    instances: Array<MapData, abi::emud_instances>,
    pairs: Pairs,
    rows: RowsMap,
    stretches: MapData,
    behinds: Array<MapData, abi::emud_behind>,
}

/// The packets of backgrounds, which are written many at once.
const STRETCHES: &str = "emud_stretches";

impl Maps {
    fn from_named(
        mut take: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError> {
        macro_rules! map {
            ($name:literal) => {
                take($name)?
                    .try_into()
                    .map_err(|source| DatapathError::Map {
                        name: $name,
                        source,
                    })?
            };
        }
        let control = take("emud_control")?;
        let id = match &control {
            Map::Array(data) => data.info().map_err(at("emud_control"))?.id(),
            _ => return Err(DatapathError::OtherVersion("emud_control")),
        };
        Ok(Self {
            id,
            control: control.try_into().map_err(at("emud_control"))?,
            links: map!("emud_links"),
            tables: map!("emud_tables"),
            states: map!("emud_states"),
            holders: map!("emud_holders"),
            classes: map!("emud_classes"),
            plans: map!("emud_plans"),
            next_plans: None,
            counts: map!("emud_counts"),
            saved: Record::new(map!("emud_saved")),
            patterns: map!("emud_patterns"),
            masks: map!("emud_masks"),
            cgroups: map!("emud_cgroups"),
            rules: map!("emud_rules"),
            addresses: map!("emud_addresses"),
            resolvers: map!("emud_resolvers"),
            hits: map!("emud_hits"),
            instances: map!("emud_instances"),
            pairs: Pairs::new(take("emud_pair_index")?, take("emud_pairs")?)?,
            rows: RowsMap::new(take("emud_rows")?)?,
            behinds: map!("emud_behinds"),
            stretches: match take(STRETCHES)? {
                Map::Array(stretches) => stretches,
                _ => return Err(DatapathError::Missing(STRETCHES)),
            },
        })
    }

    /// Returns which generation is active, and the device.
    pub fn control(&self) -> Result<abi::emud_control, DatapathError> {
        let mut control = self.control_word()?;
        // The classifier does the same with each packet.
        if control.turns_at != 0 && now_ns() >= control.turns_at {
            control.generation = control.next;
        }
        Ok(control)
    }

    fn control_word(&self) -> Result<abi::emud_control, DatapathError> {
        self.control.get(&0, 0).map_err(at("emud_control"))
    }

    fn change_control(
        &mut self,
        change: impl FnOnce(&mut abi::emud_control),
    ) -> Result<(), DatapathError> {
        let mut control = self.control_word()?;
        change(&mut control);
        self.control.set(0, control, 0).map_err(at("emud_control"))
    }

    /// Makes the first write after loading: the device, and the inode number of its network
    /// namespace (32 bits in every kernel; 0: no real device).
    pub fn init(&mut self, ifindex: u32, netns: u64) -> Result<(), DatapathError> {
        self.change_control(|control| {
            control.abi = abi::EMUD_ABI;
            control.ifindex = ifindex;
            control.netns = u32::try_from(netns).unwrap_or(0);
        })
    }

    /// Sets what the classifier can do that uses these maps.
    pub fn set_features(&mut self, features: u32) -> Result<(), DatapathError> {
        self.change_control(|control| control.features = features)
    }

    /// Sets the ifindex of the device that segments super-packets of each direction; 0: none.
    pub fn segment_at(&mut self, segmenter: [u32; 2]) -> Result<(), DatapathError> {
        self.change_control(|control| control.segmenter = segmenter)
    }

    /// Sets the end of the link, ns on CLOCK_MONOTONIC: from then on all packets pass unchanged.
    pub fn end_at(&mut self, ns: u64) -> Result<(), DatapathError> {
        self.change_control(|control| control.ends_at = ns)
    }

    /// Returns the time of [`Self::end_at`]; `None`: the link does not end by itself.
    pub fn ends_at(&self) -> Result<Option<u64>, DatapathError> {
        Ok(Some(self.control()?.ends_at).filter(|ns| *ns > 0))
    }

    /// Returns whether the link has ended by itself.
    pub(crate) fn is_over(&self) -> Result<bool, DatapathError> {
        Ok(self.ends_at()?.is_some_and(|end| end <= now_ns()))
    }

    /// Returns the time from which on the link is that of the record; `None`: it is that already.
    pub fn turns_at(&self) -> Result<Option<u64>, DatapathError> {
        Ok(Some(self.control_word()?.turns_at).filter(|ns| *ns > 0))
    }

    /// Returns the active link of a direction.
    pub fn link(&self, direction: u32) -> Result<abi::emud_link, DatapathError> {
        self.link_of(0, direction)
    }

    /// Returns the link of a direction by the link's number, as this control value has it.
    pub(crate) fn link_at(
        &self,
        control: abi::emud_control,
        number: u32,
        direction: u32,
    ) -> Result<abi::emud_link, DatapathError> {
        let slot = slot(direction, of_links(control)) + number * abi::EMUD_SLOTS;
        self.links.get(&slot, 0).map_err(at("emud_links"))
    }

    /// Returns the active link of a direction by the link's number.
    pub fn link_of(&self, number: u32, direction: u32) -> Result<abi::emud_link, DatapathError> {
        self.link_at(self.control()?, number, direction)
    }

    /// Returns the active delay table of a direction of a link, by the link's number.
    pub fn table_of(
        &self,
        number: u32,
        direction: u32,
    ) -> Result<Box<abi::emud_table>, DatapathError> {
        let slot = self.active_slot(number, direction)?;
        self.tables
            .get(&slot, 0)
            .map(Box::new)
            .map_err(at("emud_tables"))
    }

    /// Returns the active loss pattern of a direction of a link, by the link's number.
    pub(crate) fn pattern_of(
        &self,
        number: u32,
        direction: u32,
    ) -> Result<Box<abi::emud_pattern>, DatapathError> {
        let slot = self.active_slot(number, direction)?;
        self.patterns
            .get(&slot, 0)
            .map(Box::new)
            .map_err(at("emud_patterns"))
    }

    /// Returns the row of a timeline by its position in the map.
    pub fn row(&self, place: u32) -> Result<abi::emud_row, DatapathError> {
        self.rows.get(place)
    }

    /// Returns the bytes that attach left for detach.
    pub fn saved(&self) -> Result<Vec<u8>, DatapathError> {
        self.saved.read()
    }

    /// Saves bytes for detach.
    ///
    /// # Errors
    /// There are too many bytes, or the map cannot be written.
    pub fn save(&mut self, bytes: &[u8]) -> Result<(), DatapathError> {
        self.saved.write(bytes)
    }
}

/// Checks whether keys and values have the expected length.
fn of_size(
    name: &'static str,
    map: &MapData,
    key: usize,
    value: usize,
) -> Result<(), DatapathError> {
    let info = map.info().map_err(at(name))?;
    match (info.key_size() as usize, info.value_size() as usize) {
        (k, v) if (k, v) == (key, value) => Ok(()),
        (_, found) => Err(at(name)(MapError::InvalidValueSize {
            size: value,
            expected: found,
        })),
    }
}

/// Returns the time to the end in s; 0 from then on; `None`: the link does not end by itself.
pub(crate) fn ends_in_s(control: abi::emud_control, now_ns: u64) -> Option<f64> {
    let remains = control.ends_at.saturating_sub(now_ns) as f64 / 1e9;
    (control.ends_at > 0).then_some(remains)
}
