// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loaded classifier: its programs and its maps, either just loaded or found by the id of a
//! program on a device.

pub mod batch;
mod by_id;
pub mod pairs;
mod pins;
mod record;
mod rows;
pub mod rules;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use aya::maps::{Array, HashMap, Map, MapData, MapError, PerCpuArray};
use aya::programs::{ProgramError, ProgramInfo, SchedClassifier};
use aya::sys::SyscallError;
use aya::{Ebpf, EbpfError, EbpfLoader};
use emud_monitor::denied::{is_denied, with_causes};
use rustix::net::{AddressFamily, SocketType, socket};

use crate::abi;
use crate::datapath::stage::compile::Compiled;
use crate::datapath::stage::sizes::Sizes;
use crate::datapath::stage::{features, shapes, short};
use crate::host::btf;
use crate::profile::rule_keys;
use pairs::Pairs;
use pins::Pins;
use record::Record;
use rows::RowsMap;

/// Why the classifier could not be loaded, found, read or written.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum DatapathError {
    #[error("cannot load the classifier: {}", said(.0))]
    Load(#[from] EbpfError),
    #[error("the kernel rejects program {name}: {}", said(.source))]
    Program {
        name: &'static str,
        source: ProgramError,
    },
    #[error("map {name}: {source}")]
    Map {
        name: &'static str,
        source: MapError,
    },
    #[error("the classifier has no {0}: a different version of emud loaded it")]
    Missing(&'static str),
    #[error(
        "the classifier has emud ABI {found}, this version of emud supports {}: detach it with the version that attached it",
        abi::EMUD_ABI
    )]
    Abi { found: u32 },
    #[error(
        "map {0} has a size of a different version of emud: detach the link with the version that attached it"
    )]
    OtherVersion(&'static str),
    #[error("there is no BPF program with id {0}")]
    NoProgram(u32),
    #[error("cannot list the loaded BPF programs: {}", said(.0))]
    Search(ProgramError),
    #[error("cannot wait until no packet uses the previous link: {0}")]
    GracePeriod(io::Error),
    #[error(
        "the profile, its patterns and samples, and the state to restore take {0} bytes, the maximum is {max}: use fewer or shorter patterns and samples",
        max = abi::EMUD_RESTORE_LEN - 4
    )]
    TooLong(usize),
    #[error(
        "there is no room for {rows} rows of a trace: this link was attached with room for {room}, including the active ones; detach, then attach with the new trace"
    )]
    NoRoomForRows { rows: u32, room: u32 },
    #[error("the kernel no longer has the rows of that trace: give its file again")]
    RowsGone,
    #[error(
        "the loaded classifier lacks features {0:#x}, which the link needs: detach and attach the link"
    )]
    Lacks(u32),
    #[error("cannot pass maps to another program by a BPF file system: {0}")]
    Pin(io::Error),
}

/// A generation of links that is written and not yet active: its number, and which directions take
/// the short path, as bits of the control word.
#[must_use]
#[derive(Debug)]
pub struct Prepared(u32);

/// A program of bpf/link.bpf.c.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// At both hooks.
    Classify,
    /// On what the egress TAP receives from the holder.
    TapUp,
    /// On what the ingress TAP receives from the holder.
    TapDown,
    /// At ingress, before mirred: removes the sender's socket.
    Orphan,
}

impl Program {
    /// Returns the name in the object file and, truncated to 15 characters, in the kernel.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Classify => "emud_classify",
            Self::TapUp => "emud_tap_up",
            Self::TapDown => "emud_tap_down",
            Self::Orphan => "emud_orphan",
        }
    }
}

/// The programs and maps of one attachment, active or in preparation.
pub struct Loaded {
    bpf: Ebpf,
    features: u32,
}

impl Loaded {
    /// Loads the object into the kernel, with every program that an attachment needs, for links
    /// that need these `features`.
    ///
    /// # Errors
    /// The kernel lacks BPF or its verifier rejects a program.
    pub fn load(sizes: &Sizes, features: u32) -> Result<Self, DatapathError> {
        use Program::{Classify, Orphan, TapDown, TapUp};
        let programs = [Classify, TapUp, TapDown, Orphan];
        Self::load_with(&programs, sizes, features, false, &[])
    }

    /// Loads the object with some of its programs, for all links.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn load_only(programs: &[Program], sizes: &Sizes) -> Result<Self, DatapathError> {
        Self::load_with(programs, sizes, features::ALL, false, &[])
    }

    /// Loads the classifier for tests under BPF_PROG_TEST_RUN: the clock is a packet's hardware
    /// stamp, ns since boot, and not the kernel's clock; the hook is egress if `cb[0]` is 0, since
    /// no filter sets a classid. `maps_of`: a program whose maps it takes.
    ///
    /// # Errors
    /// As [`Self::load_again`].
    pub fn load_test_run(
        sizes: &Sizes,
        features: u32,
        maps_of: Option<u32>,
    ) -> Result<Self, DatapathError> {
        let pins = maps_of
            .map(|program| Pins::new(maps_of_id(program)?))
            .transpose()?;
        let pinned = pins.as_ref().map_or(&[][..], Pins::names);
        Self::load_with(&[Program::Classify], sizes, features, true, pinned)
    }

    /// Loads another classifier for the maps of a loaded one, whose sizes these are.
    ///
    /// # Errors
    /// As [`Self::load`], and if there is no such program.
    pub fn load_again(program: u32, sizes: &Sizes, features: u32) -> Result<Self, DatapathError> {
        let pins = Pins::new(maps_of_id(program)?)?;
        Self::load_with(&[Program::Classify], sizes, features, false, pins.names())
    }

    /// `pinned`: maps that exist already, by name, and their paths.
    fn load_with(
        programs: &[Program],
        sizes: &Sizes,
        features: u32,
        test_run: bool,
        pinned: &[(String, String)],
    ) -> Result<Self, DatapathError> {
        let (quantile, blend) = (shapes::normal_quantile(), shapes::blend());
        let layout = sizes.layout();
        let [users_offset, sndbuf_offset, wmem_offset] = btf::kernel_offsets([
            ("sk_buff", "users"),
            ("sock", "sk_sndbuf"),
            ("sock", "sk_wmem_alloc"),
        ])
        .map(Option::unwrap_or_default);
        let mut loader = loader();
        for (name, path) in pinned {
            loader.map_pin_path(name, Path::new(path));
        }
        let mut bpf = loader
            .override_global("emud_features", &features, true)
            .override_global("emud_users_offset", &users_offset, true)
            .override_global("emud_sndbuf_offset", &sndbuf_offset, true)
            .override_global("emud_wmem_offset", &wmem_offset, true)
            .override_global("emud_normal_quantile", quantile.as_slice(), true)
            .override_global("emud_blend", blend.as_slice(), true)
            .override_global("emud_layout", &layout, true)
            .override_global("emud_test_run", &u8::from(test_run), true)
            .map_max_entries("emud_links", sizes.numbers() * abi::EMUD_SLOTS)
            .map_max_entries("emud_tables", sizes.numbers() * abi::EMUD_SLOTS)
            .map_max_entries("emud_patterns", sizes.numbers() * abi::EMUD_SLOTS)
            .map_max_entries("emud_states", sizes.states())
            .map_max_entries("emud_rings", sizes.rings())
            .map_max_entries("emud_rules", sizes.rule_keys)
            .map_max_entries("emud_hits", sizes.rules)
            .map_max_entries("emud_instances", sizes.instance_sets())
            .map_max_entries("emud_pair_index", sizes.pairs.max(1))
            .map_max_entries("emud_pairs", sizes.pairs.max(1))
            .map_max_entries("emud_counts", sizes.numbers() * abi::EMUD_DIRECTIONS)
            .map_max_entries("emud_rows", rows::len_for(sizes.rows))
            .map_max_entries("emud_classes", sizes.classes.max(1))
            .load(abi::LINK_OBJECT)?;
        for program in programs {
            classifier(&mut bpf, program.name())?
                .load()
                .map_err(|source| DatapathError::Program {
                    name: program.name(),
                    source,
                })?;
        }
        Ok(Self { bpf, features })
    }

    /// Returns the classifier, to attach it or to run it on a test packet.
    ///
    /// # Errors
    /// The object has no such program.
    pub fn program(&self, program: Program) -> Result<&SchedClassifier, DatapathError> {
        self.bpf
            .program(program.name())
            .and_then(|p| p.try_into().ok())
            .ok_or(DatapathError::Missing(program.name()))
    }

    /// Returns the file descriptor of a program, to attach it by netlink.
    ///
    /// # Errors
    /// The object has no such program.
    pub fn program_fd(&self, program: Program) -> Result<BorrowedFd<'_>, DatapathError> {
        let classifier = self.program(program)?;
        let fd = classifier.fd().map_err(|source| DatapathError::Program {
            name: program.name(),
            source,
        })?;
        Ok(fd.as_fd())
    }

    /// Returns the kernel's id of a program.
    ///
    /// # Errors
    /// The object has no such program, or the kernel does not show it.
    pub fn program_id(&self, program: Program) -> Result<u32, DatapathError> {
        let info = self.program(program)?.info();
        info.map(|i| i.id())
            .map_err(|source| DatapathError::Program {
                name: program.name(),
                source,
            })
    }

    /// Takes the maps out; call it once.
    ///
    /// # Errors
    /// The object lacks a map.
    pub fn maps(&mut self) -> Result<Maps, DatapathError> {
        let bpf = &mut self.bpf;
        let mut maps =
            Maps::from_named(|name| bpf.take_map(name).ok_or(DatapathError::Missing(name)))?;
        maps.serve(self.features)?;
        Ok(maps)
    }
}

/// Returns a loader without relocations: reading the kernel's types for them takes longest.
pub(crate) fn loader<'a>() -> EbpfLoader<'a> {
    let mut loader = EbpfLoader::new();
    loader.btf(None);
    loader
}

/// Returns a classifier of an object, to load it.
pub(crate) fn classifier<'a>(
    bpf: &'a mut Ebpf,
    name: &'static str,
) -> Result<&'a mut SchedClassifier, DatapathError> {
    bpf.program_mut(name)
        .and_then(|program| program.try_into().ok())
        .ok_or(DatapathError::Missing(name))
}

/// The maps, through which everything is read and changed.
pub struct Maps {
    /// The kernel's id of the first one: that of the link, whichever programs use the maps.
    pub id: u32,
    control: Array<MapData, abi::emud_control>,
    links: Array<MapData, abi::emud_link>,
    tables: Array<MapData, abi::emud_table>,
    states: Array<MapData, abi::emud_state>,
    holders: Array<MapData, abi::emud_holder>,
    classes: Array<MapData, abi::emud_class>,
    counts: PerCpuArray<MapData, abi::emud_counters>,
    saved: Record,
    patterns: Array<MapData, abi::emud_pattern>,
    pub(crate) masks: Array<MapData, abi::emud_masks>,
    pub(crate) rules: HashMap<MapData, abi::emud_key, abi::emud_rule>,
    pub(crate) hits: PerCpuArray<MapData, u64>,
    pub(crate) instances: Array<MapData, abi::emud_instances>,
    pub(crate) pairs: Pairs,
    rows: RowsMap,
}

impl Maps {
    /// Finds the maps from the id of a filter's program.
    ///
    /// # Errors
    /// The program no longer exists or belongs to a different version of emud.
    pub fn of_program(id: u32) -> Result<Self, DatapathError> {
        Self::of_maps(maps_of_id(id)?)
    }

    /// Returns whether a program uses these maps.
    pub(crate) fn are_of(&self, program: u32) -> bool {
        by_id::map_ids(program).is_ok_and(|ids| ids.contains(&self.id))
    }

    /// Finds the maps of a loaded program.
    ///
    /// # Errors
    /// It belongs to a different version of emud.
    pub(crate) fn of_info(info: &ProgramInfo) -> Result<Self, DatapathError> {
        Self::of_maps(maps_of(map_ids(info)?, |_| true, usize::MAX)?)
    }

    fn of_maps(mut found: Vec<(String, MapData)>) -> Result<Self, DatapathError> {
        let maps = Self::from_named(|name| {
            let at = found.iter().position(|(n, _)| n == name);
            let (_, data) = found.swap_remove(at.ok_or(DatapathError::Missing(name))?);
            Map::from_map_data(data).map_err(|source| DatapathError::Map { name, source })
        })?;
        speaks(maps.control()?.abi)?;
        Ok(maps)
    }

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
            counts: map!("emud_counts"),
            saved: Record::new(take("emud_saved")?)?,
            patterns: map!("emud_patterns"),
            masks: map!("emud_masks"),
            rules: map!("emud_rules"),
            hits: map!("emud_hits"),
            instances: map!("emud_instances"),
            pairs: Pairs::new(take("emud_pair_index")?, take("emud_pairs")?)?,
            rows: RowsMap::new(take("emud_rows")?)?,
        })
    }

    /// Returns which generation is active, and the device.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn control(&self) -> Result<abi::emud_control, DatapathError> {
        self.control.get(&0, 0).map_err(at("emud_control"))
    }

    /// Makes the first write after loading: the device, and the inode number of its network
    /// namespace (32 bits in every kernel; 0: no real device).
    ///
    /// # Errors
    /// The map cannot be written.
    pub fn init(&mut self, ifindex: u32, netns: u64) -> Result<(), DatapathError> {
        let control = abi::emud_control {
            abi: abi::EMUD_ABI,
            ifindex,
            netns: u32::try_from(netns).unwrap_or(0),
            ..self.control()?
        };
        self.control.set(0, control, 0).map_err(at("emud_control"))
    }

    /// Sets what the classifier can do that uses these maps.
    ///
    /// # Errors
    /// The map cannot be written.
    pub fn serve(&mut self, features: u32) -> Result<(), DatapathError> {
        let control = abi::emud_control {
            features,
            ..self.control()?
        };
        self.control.set(0, control, 0).map_err(at("emud_control"))
    }

    /// Sets the ifindex of the device that segments super-packets of each direction; 0: none.
    ///
    /// # Errors
    /// The map cannot be written.
    pub fn segment_at(&mut self, segmenter: [u32; 2]) -> Result<(), DatapathError> {
        let control = abi::emud_control {
            segmenter,
            ..self.control()?
        };
        self.control.set(0, control, 0).map_err(at("emud_control"))
    }

    /// From then on all packets pass unchanged, ns on CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// The map cannot be written.
    pub fn end_at(&mut self, ns: u64) -> Result<(), DatapathError> {
        let control = abi::emud_control {
            ends_at: ns,
            ..self.control()?
        };
        self.control.set(0, control, 0).map_err(at("emud_control"))
    }

    /// Returns the time of [`Self::end_at`]; `None`: the link does not end by itself.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn ends_at(&self) -> Result<Option<u64>, DatapathError> {
        Ok(Some(self.control()?.ends_at).filter(|ns| *ns > 0))
    }

    /// Returns the active link of a direction.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn link(&self, direction: u32) -> Result<abi::emud_link, DatapathError> {
        self.link_of(0, direction)
    }

    /// Returns the active link of a direction by the link's number.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn link_of(&self, number: u32, direction: u32) -> Result<abi::emud_link, DatapathError> {
        let slot = self.active_slot(number, direction)?;
        self.links.get(&slot, 0).map_err(at("emud_links"))
    }

    /// Returns the active delay table of a direction.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn table(&self, direction: u32) -> Result<Box<abi::emud_table>, DatapathError> {
        self.table_of(0, direction)
    }

    /// Returns the active delay table of a direction of a link, by the link's number.
    ///
    /// # Errors
    /// The map cannot be read.
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

    /// Returns the slot of a direction of a link in the generation in force.
    fn active_slot(&self, number: u32, direction: u32) -> Result<u32, DatapathError> {
        Ok(slot(direction, of_links(self.control()?)) + number * abi::EMUD_SLOTS)
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

    /// Changes both directions between two packets: writes the inactive generation, switches the
    /// control word, and waits until no packet still uses the old generation (which the next change
    /// will overwrite).
    ///
    /// # Errors
    /// A map cannot be written; the active generation stays.
    pub fn apply(&mut self, both: [&[Compiled]; 2]) -> Result<(), DatapathError> {
        self.apply_with(both, &rule_keys::none())
    }

    /// [`Self::apply`] with the rules that choose the link of a packet.
    ///
    /// # Errors
    /// As there.
    pub fn apply_with(
        &mut self,
        both: [&[Compiled]; 2],
        rules: &rule_keys::Compiled,
    ) -> Result<(), DatapathError> {
        let prepared = self.prepare(both, rules)?;
        self.enforce(prepared)
    }

    /// Writes the inactive generation.
    ///
    /// # Errors
    /// A map cannot be written or has no room, or the classifier lacks what the links need.
    pub fn prepare(
        &mut self,
        both: [&[Compiled]; 2],
        rules: &rule_keys::Compiled,
    ) -> Result<Prepared, DatapathError> {
        let lacks = features::of(both) & !self.control()?.features;
        if lacks != 0 {
            return Err(DatapathError::Lacks(lacks));
        }
        let next = (of_links(self.control()?) + 1) % abi::EMUD_GENERATIONS;
        let in_force = self.timelines()?;
        let all = both.into_iter().flatten();
        let mut timelines = self.rows.place(&in_force, all)?.into_iter();
        for (direction, links) in (0..).zip(both) {
            for ((number, compiled), timeline) in (0..).zip(links).zip(&mut timelines) {
                let slot = slot(direction, next) + number * abi::EMUD_SLOTS;
                self.tables
                    .set(slot, *compiled.table, 0)
                    .map_err(at("emud_tables"))?;
                if let Some(pattern) = &compiled.pattern {
                    self.patterns
                        .set(slot, **pattern, 0)
                        .map_err(at("emud_patterns"))?;
                }
                let link = abi::emud_link {
                    timeline,
                    ..compiled.link
                };
                self.links.set(slot, link, 0).map_err(at("emud_links"))?;
            }
        }
        self.write_rules(next, rules)?;
        let own = both.map(|links| links.first().map(|own| &own.link));
        Ok(Prepared(next | short::bits(own)))
    }

    /// Activates a prepared generation, and waits until no packet still uses the previous one.
    ///
    /// # Errors
    /// A map cannot be written.
    pub fn enforce(&mut self, prepared: Prepared) -> Result<(), DatapathError> {
        let previous = (prepared.0 & abi::EMUD_LINKS_GENERATION) ^ abi::EMUD_LINKS_GENERATION;
        self.turn(prepared)?;
        self.clear_rules(previous)
    }

    /// Returns the timelines of all active links.
    fn timelines(&self) -> Result<Vec<abi::emud_timeline>, DatapathError> {
        let generation = of_links(self.control()?);
        let slots = (0..self.links.len())
            .filter(|slot| slot % abi::EMUD_GENERATIONS == generation % abi::EMUD_GENERATIONS);
        let timeline = |slot| self.links.get(&slot, 0).map(|link| link.timeline);
        let all = slots.map(timeline).collect::<Result<_, _>>();
        all.map_err(at("emud_links"))
    }

    /// Returns the row of a timeline by its position in the map.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn row(&self, place: u32) -> Result<abi::emud_row, DatapathError> {
        self.rows.get(place)
    }

    /// [`Self::apply`] for a profile's own links that need no table.
    ///
    /// # Errors
    /// As there.
    pub fn apply_links(&mut self, both: [abi::emud_link; 2]) -> Result<(), DatapathError> {
        let next = (of_links(self.control()?) + 1) % abi::EMUD_GENERATIONS;
        for (direction, link) in (0..).zip(both) {
            self.links
                .set(slot(direction, next), link, 0)
                .map_err(at("emud_links"))?;
        }
        self.turn(Prepared(next | short::bits(both.each_ref().map(Some))))
    }

    /// Activates a generation of links.
    fn turn(&mut self, Prepared(word): Prepared) -> Result<(), DatapathError> {
        let before = self.control()?.generation & !(abi::EMUD_LINKS_GENERATION | short::ALL);
        self.turn_to(before.wrapping_add(abi::EMUD_CHANGE) | word)
    }

    /// Activates both generations.
    pub(crate) fn turn_to(&mut self, generation: u32) -> Result<(), DatapathError> {
        let control = abi::emud_control {
            generation,
            ..self.control()?
        };
        self.control
            .set(0, control, 0)
            .map_err(at("emud_control"))?;
        grace_period()
    }

    /// Returns the counters of a direction, summed over the CPUs.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn counters(&self, direction: u32) -> Result<Box<abi::emud_counters>, DatapathError> {
        self.counters_of(0, direction)
    }

    /// Returns the counters of a direction of a link, by the link's number.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn counters_of(
        &self,
        number: u32,
        direction: u32,
    ) -> Result<Box<abi::emud_counters>, DatapathError> {
        let index = number * abi::EMUD_DIRECTIONS + direction;
        let per_cpu = self.counts.get(&index, 0).map_err(at("emud_counts"))?;
        let mut sum = Box::<abi::emud_counters>::default();
        for c in per_cpu.iter() {
            sum.add(c);
        }
        Ok(sum)
    }

    /// Returns the queue of a direction.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn state(&self, direction: u32) -> Result<abi::emud_state, DatapathError> {
        self.state_of(0, direction)
    }

    /// Returns the queue of a direction of a link, by the link's number; for links with `per`, not
    /// those of instances.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn state_of(&self, number: u32, direction: u32) -> Result<abi::emud_state, DatapathError> {
        let index = number * abi::EMUD_DIRECTIONS + direction;
        self.states.get(&index, 0).map_err(at("emud_states"))
    }

    /// Returns the holder's account of a direction.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn holder(&self, direction: u32) -> Result<abi::emud_holder, DatapathError> {
        self.holders.get(&direction, 0).map_err(at("emud_holders"))
    }

    /// Writes the holder's account, which renews the lease; only the holder calls it.
    ///
    /// # Errors
    /// The map cannot be written.
    pub fn set_holder(
        &mut self,
        direction: u32,
        holder: &abi::emud_holder,
    ) -> Result<(), DatapathError> {
        self.holders
            .set(direction, holder, 0)
            .map_err(at("emud_holders"))
    }

    /// The account of a class of a bottleneck, by its number from 1.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn class(&self, number: u32) -> Result<abi::emud_class, DatapathError> {
        let class = self.classes.get(&(number - 1), 0);
        class.map_err(at("emud_classes"))
    }

    /// Written by the holder.
    ///
    /// # Errors
    /// The map cannot be written.
    pub fn set_class(&mut self, number: u32, class: &abi::emud_class) -> Result<(), DatapathError> {
        let done = self.classes.set(number - 1, class, 0);
        done.map_err(at("emud_classes"))
    }

    /// The bytes that attach left for detach.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn saved(&self) -> Result<Vec<u8>, DatapathError> {
        self.saved.read()
    }

    /// Resets the queue of a pair that no packet can use now. The pairs' are the last ones.
    pub(crate) fn clear_state_of_pair(&mut self, number: u32) -> Result<(), DatapathError> {
        let first = self.states.len() - self.pairs.capacity();
        let anew = abi::emud_state::default();
        self.states
            .set(first + number, anew, 0)
            .map_err(at("emud_states"))
    }

    /// Saves bytes for detach.
    ///
    /// # Errors
    /// There are too many bytes, or the map cannot be written.
    pub fn save(&mut self, bytes: &[u8]) -> Result<(), DatapathError> {
        self.saved.write(bytes)
    }
}

fn map_ids(info: &ProgramInfo) -> Result<Vec<u32>, DatapathError> {
    let ids = info.map_ids();
    let ids = ids.map_err(|source| DatapathError::Program { name: "", source })?;
    Ok(ids.unwrap_or_default())
}

fn maps_of_id(program: u32) -> Result<Vec<(String, MapData)>, DatapathError> {
    let ids = by_id::map_ids(program).map_err(|io_error| {
        let call = "bpf_prog_get_fd_by_id";
        match ProgramError::from(SyscallError { call, io_error }) {
            e if is_denied(&e) => DatapathError::Search(e),
            _ => DatapathError::NoProgram(program),
        }
    })?;
    maps_of(ids, |_| true, usize::MAX)
}

/// Returns the maps with these names, up to `most`.
fn maps_of(
    ids: Vec<u32>,
    wanted: impl Fn(&str) -> bool,
    most: usize,
) -> Result<Vec<(String, MapData)>, DatapathError> {
    let mut found = Vec::new();
    for id in ids {
        let data = MapData::from_id(id).map_err(at("by id"))?;
        let info = data.info().map_err(at("by id"))?;
        let name = info.name_as_str().unwrap_or_default();
        if wanted(name) {
            found.push((name.to_owned(), data));
        }
        if found.len() == most {
            break;
        }
    }
    Ok(found)
}

/// Returns the device of a loaded program and the active links of both directions, from two of the
/// maps: opening a map takes most of the time.
///
/// # Errors
/// The program no longer exists, or belongs to a different version of emud.
pub(crate) fn look(
    info: &ProgramInfo,
) -> Result<(abi::emud_control, [abi::emud_link; 2]), DatapathError> {
    const CONTROL: &str = "emud_control";
    const LINKS: &str = "emud_links";
    let mut found = maps_of(map_ids(info)?, |name| name == CONTROL || name == LINKS, 2)?;
    let mut take = |name: &'static str| {
        let place = found.iter().position(|(found, _)| found == name);
        let (_, data) = found.swap_remove(place.ok_or(DatapathError::Missing(name))?);
        Map::from_map_data(data).map_err(at(name))
    };
    let control: Array<_, abi::emud_control> = take(CONTROL)?.try_into().map_err(at(CONTROL))?;
    let control = control.get(&0, 0).map_err(at(CONTROL))?;
    speaks(control.abi)?;
    let links: Array<_, abi::emud_link> = take(LINKS)?.try_into().map_err(at(LINKS))?;
    let link = |direction| {
        let slot = slot(direction, of_links(control));
        links.get(&slot, 0).map_err(at(LINKS))
    };
    Ok((control, [link(abi::EMUD_UP)?, link(abi::EMUD_DOWN)?]))
}

/// Returns the control word of a loaded program.
///
/// # Errors
/// As [`look`].
pub(crate) fn control_of(info: &ProgramInfo) -> Result<abi::emud_control, DatapathError> {
    const CONTROL: &str = "emud_control";
    let mut found = maps_of(map_ids(info)?, |name| name == CONTROL, 1)?;
    let (_, data) = found.pop().ok_or(DatapathError::Missing(CONTROL))?;
    let control = Map::from_map_data(data).map_err(at(CONTROL))?;
    let control: Array<_, abi::emud_control> = control.try_into().map_err(at(CONTROL))?;
    let control = control.get(&0, 0).map_err(at(CONTROL))?;
    speaks(control.abi)?;
    Ok(control)
}

/// Checks whether a classifier belongs to this version of emud.
fn speaks(found: u32) -> Result<(), DatapathError> {
    match found {
        abi::EMUD_ABI => Ok(()),
        found => Err(DatapathError::Abi { found }),
    }
}

pub(crate) fn at(name: &'static str) -> impl Fn(MapError) -> DatapathError {
    move |source| match source {
        MapError::InvalidKeySize { .. } | MapError::InvalidValueSize { .. } => {
            DatapathError::OtherVersion(name)
        }
        source => DatapathError::Map { name, source },
    }
}

/// Returns the generation of the links.
const fn of_links(control: abi::emud_control) -> u32 {
    control.generation & abi::EMUD_LINKS_GENERATION
}

const fn slot(direction: u32, generation: u32) -> u32 {
    direction * abi::EMUD_GENERATIONS + generation
}

/// MEMBARRIER_CMD_GLOBAL is synchronize_rcu(), and classifiers run inside an RCU read section. A
/// kernel with nohz_full returns EINVAL, one without CONFIG_MEMBARRIER does not have it.
pub(crate) fn grace_period() -> Result<(), DatapathError> {
    const MEMBARRIER_CMD_GLOBAL: libc::c_int = 1;
    // SAFETY: passes integers only and accesses no memory of this process.
    match unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) } {
        0 => Ok(()),
        _ => grace_period_of_socket(),
    }
}

/// Closing a packet socket waits in packet_release() for synchronize_net().
fn grace_period_of_socket() -> Result<(), DatapathError> {
    socket(AddressFamily::PACKET, SocketType::RAW, None)
        .map(drop)
        .map_err(|e| DatapathError::GracePeriod(e.into()))
}

/// Formats an error of the BPF library with its causes and the missing permissions, if any.
fn said(error: &(dyn std::error::Error + 'static)) -> String {
    let hint = match is_denied(error) {
        true => " (needs root of the host: CAP_SYS_ADMIN, or CAP_BPF and CAP_NET_ADMIN)",
        false => "",
    };
    with_causes(error) + hint
}

impl DatapathError {
    /// Returns the exit code for the error, from sysexits.h.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Load(e) if is_denied(e) => 77,
            Self::Program { source: e, .. } | Self::Search(e) if is_denied(e) => 77,
            Self::Load(_) | Self::Program { .. } => 69,
            Self::Search(_)
            | Self::GracePeriod(_)
            | Self::Map { .. }
            | Self::NoProgram(_)
            | Self::Pin(_) => 71,
            Self::Missing(_) | Self::Abi { .. } | Self::OtherVersion(_) | Self::Lacks(_) => 70,
            Self::TooLong(_) | Self::NoRoomForRows { .. } | Self::RowsGone => 65,
        }
    }
}

impl abi::emud_counters {
    fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.lost += other.lost;
        self.queue_dropped += other.queue_dropped;
        self.reordered += other.reordered;
        self.clamped += other.clamped;
        self.super_packets += other.super_packets;
        self.flows_forgotten += other.flows_forgotten;
        self.undelayed += other.undelayed;
        self.marked += other.marked;
        self.instances_forgotten += other.instances_forgotten;
        for (a, b) in self.aqm_dropped.iter_mut().zip(other.aqm_dropped) {
            *a += b;
        }
        for (a, b) in self.passed.iter_mut().zip(other.passed) {
            *a += b;
        }
        for (a, b) in self.delay_hist.iter_mut().zip(other.delay_hist) {
            *a += b;
        }
        self.down += other.down;
        self.duplicated += other.duplicated;
        self.corrupted += other.corrupted;
        self.unaltered += other.unaltered;
        self.sent_bytes += other.sent_bytes;
        self.delay_ns = self.delay_ns.wrapping_add(other.delay_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_membarrier_is_refused_a_socket_waits() {
        let denied = || io::Error::from_raw_os_error(libc::EPERM);
        match grace_period_of_socket() {
            Ok(()) => {}
            // Happens only without CAP_NET_RAW.
            Err(DatapathError::GracePeriod(e)) => assert_eq!(e.kind(), denied().kind()),
            Err(e) => panic!("{e}"),
        }
        let search = |error| DatapathError::Search(ProgramError::IOError(error));
        assert_eq!(
            search(io::Error::from_raw_os_error(libc::ENOMEM)).exit_code(),
            71
        );
    }
}
