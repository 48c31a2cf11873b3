// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads the classifier into the kernel.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use aya::Ebpf;
use aya::maps::MapData;
use aya::programs::SchedClassifier;
use emud_monitor::loader;

use super::find::maps_of_program;
use super::pins::Pins;
use super::{DatapathError, Maps, STRETCHES, at, rows};
use crate::abi;
use crate::datapath::stage::sizes::Sizes;
use crate::datapath::stage::{features, shapes};
use crate::host::{btf, has_preempt_rt, now_ns};

/// A program of bpf/link.bpf.c.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// At both hooks of clsact.
    Classify,
    /// The same at egress by tcx.
    Egress,
    /// On what the egress TAP receives from the holder.
    TapUp,
    /// On what the ingress TAP receives from the holder.
    TapDown,
    /// At ingress, before mirred: removes the sender's socket.
    Orphan,
}

impl Program {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Classify,
        Self::Egress,
        Self::TapUp,
        Self::TapDown,
        Self::Orphan,
    ];

    /// Returns the name in the object file and, truncated to 15 characters, in the kernel.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Classify => "emud_classify",
            Self::Egress => "emud_egress",
            Self::TapUp => "emud_tap_up",
            Self::TapDown => "emud_tap_down",
            Self::Orphan => "emud_orphan",
        }
    }

    /// Returns whether a program with this name in the kernel emulates a link.
    pub fn emulates(name: Option<&str>) -> bool {
        [Self::Classify, Self::Egress]
            .map(|p| Some(p.name()))
            .contains(&name)
    }
}

/// Figures of a packet in the classifier: a set for each direction of a CPU, and more with PREEMPT_RT.
const OF_A_PACKET: [&str; 4] = [
    "emud_answers",
    "emud_crossings",
    "emud_packets",
    "emud_turns",
];

/// Returns how many sets of figures and counters a CPU has.
pub(super) fn sets() -> u32 {
    match has_preempt_rt() {
        true => abi::EMUD_SETS,
        false => abi::EMUD_DIRECTIONS,
    }
}

/// Maps of what only these features use. Without them they have one entry.
const OF_FEATURES: [(&str, u32); 5] = [
    ("emud_behinds", abi::EMUD_FEATURE_BACKGROUND),
    ("emud_flows", abi::EMUD_FEATURES_DRAWING),
    ("emud_services", abi::EMUD_FEATURES_DRAWING),
    ("emud_rings", abi::EMUD_FEATURE_QUEUE),
    (STRETCHES, abi::EMUD_FEATURE_BACKGROUND),
];

/// Returns the object with the number of a function of the kernel in each call of `function` (bpf/core.h). `None`:
/// nothing is called, since this kernel does not have it.
fn with_function(object: &[u8], function: u32, number: Option<u32>) -> Vec<u8> {
    let call = |number: u32| {
        let [a, b, c, d] = number.to_le_bytes();
        [0x85, 0x20, 0, 0, a, b, c, d]
    };
    let r0_is_0 = [0xb7, 0, 0, 0, 0, 0, 0, 0];
    let (planned, new) = (call(function), number.map_or(r0_is_0, call));
    let mut object = object.to_vec();
    // Instructions are at multiples of their length.
    let (instructions, _) = object.as_chunks_mut();
    for instruction in instructions.iter_mut().filter(|found| **found == planned) {
        *instruction = new;
    }
    object
}

/// The programs and maps of one attachment, active or in preparation.
pub struct Loaded {
    bpf: Ebpf,
    features: u32,
    /// The first one that emulates.
    main: Program,
}

impl Loaded {
    /// Loads the object into the kernel with some of its programs, for links that need these features
    /// ([`features::of`]): verification takes most of the time.
    ///
    /// # Errors
    /// The kernel lacks BPF or its verifier rejects a program.
    pub fn load(programs: &[Program], sizes: &Sizes, features: u32) -> Result<Self, DatapathError> {
        Self::load_with(programs, sizes, features, false, &[])
    }

    /// Does [`Self::load`] with maps that exist already, by name.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn load_sharing(
        programs: &[Program],
        sizes: &Sizes,
        features: u32,
        shared: Vec<(String, MapData)>,
    ) -> Result<Self, DatapathError> {
        let pins = Pins::new(shared)?;
        Self::load_with(programs, sizes, features, false, pins.names())
    }

    /// Loads the object with some of its programs, for all links.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn load_only(programs: &[Program], sizes: &Sizes) -> Result<Self, DatapathError> {
        Self::load(programs, sizes, features::ALL)
    }

    /// Loads other programs for the maps of a loaded one, whose sizes these are. Maps that only the new
    /// features use are created.
    ///
    /// # Errors
    /// As [`Self::load`], and if there is no such program.
    pub fn load_again(
        program: u32,
        programs: &[Program],
        sizes: &Sizes,
        features: u32,
    ) -> Result<Self, DatapathError> {
        let pins = Pins::new(kept_maps(program)?)?;
        Self::load_with(programs, sizes, features, false, pins.names())
    }

    /// Loads a program that emulates for tests under BPF_PROG_TEST_RUN: the clock is a packet's hardware
    /// stamp, ns since boot, and not the kernel's clock; the hook is egress if `cb[0]` is 0, since
    /// no filter sets a classid. `maps_of`: a program whose maps it takes.
    ///
    /// # Errors
    /// As [`Self::load_again`].
    pub fn load_test_run(
        program: Program,
        sizes: &Sizes,
        features: u32,
        maps_of: Option<u32>,
    ) -> Result<Self, DatapathError> {
        let pins = maps_of.map(|program| Pins::new(kept_maps(program)?));
        let pins = pins.transpose()?;
        let pinned = pins.as_ref().map_or(&[][..], Pins::names);
        Self::load_with(&[program], sizes, features, true, pinned)
    }

    /// Loads the object. `pinned`: maps that exist already, by name, and their paths.
    fn load_with(
        programs: &[Program],
        sizes: &Sizes,
        features: u32,
        test_run: bool,
        pinned: &[(String, String)],
    ) -> Result<Self, DatapathError> {
        let has_all = |&&(built, _): &&(u32, &[u8])| features & !built == 0;
        let object = abi::CLASSIFIERS.iter().find(has_all);
        let (_, object) = object.ok_or(DatapathError::Missing("emud_classify"))?;
        let (quantile, blend) = (shapes::normal_quantile(), shapes::blend());
        let layout = sizes.layout();
        let fields = &btf::FIELDS;
        let byte = |bits: Option<u32>| bits.unwrap_or_default() / 8;
        let (users_offset, sndbuf_offset) = (byte(fields.users), byte(fields.sndbuf));
        let (wmem_offset, kernel_offset) = (byte(fields.wmem), byte(fields.kernel_sock));
        let kern = fields.kernel_sock.unwrap_or_default();
        // BTF counts bits from the one with the lowest address.
        let kernel_bit: u8 = match cfg!(target_endian = "big") {
            true => 0x80 >> (kern % 8),
            false => 1 << (kern % 8),
        };
        let protocol_offset = byte(fields.protocol);
        let functions = fields.sock.zip(fields.rdonly_cast);
        let (sock_type, rdonly_cast) = functions.filter(|_| protocol_offset != 0).unzip();
        let sock_type = sock_type.unwrap_or_default();
        // Packets that came before may still be in the segmenter.
        let until = match test_run {
            true => 0,
            false => now_ns() + u64::from(abi::EMUD_SEGMENTING_NS),
        };
        let object = with_function(object, abi::EMUD_RDONLY_CAST, rdonly_cast);
        let mut loader = loader(None);
        loader
            .map_max_entries("emud_rings", sizes.rings())
            .map_max_entries("emud_behinds", sizes.plain())
            .map_max_entries(
                STRETCHES,
                sizes.numbers() * abi::EMUD_SLOTS * abi::EMUD_STRETCHES,
            );
        for (name, path) in pinned {
            loader.map_pin_path(name, Path::new(path));
        }
        for name in OF_A_PACKET {
            loader.map_max_entries(name, sets());
        }
        for (name, users) in OF_FEATURES {
            if features & users == 0 {
                loader.map_max_entries(name, 1);
            }
        }
        let mut bpf = loader
            .override_global("emud_features", &features, true)
            .override_global("emud_users_offset", &users_offset, true)
            .override_global("emud_sndbuf_offset", &sndbuf_offset, true)
            .override_global("emud_wmem_offset", &wmem_offset, true)
            .override_global("emud_protocol_offset", &protocol_offset, true)
            .override_global("emud_kernel_offset", &kernel_offset, true)
            .override_global("emud_kernel_bit", &kernel_bit, true)
            .override_global("emud_sock_type", &sock_type, true)
            .override_global("emud_segmenting_until", &[until; 2], true)
            .override_global("emud_normal_quantile", quantile.as_slice(), true)
            .override_global("emud_blend", blend.as_slice(), true)
            .override_global("emud_layout", &layout, true)
            .override_global("emud_test_run", &u8::from(test_run), true)
            .override_global("emud_preempt_rt", &u8::from(has_preempt_rt()), true)
            .map_max_entries("emud_links", sizes.numbers() * abi::EMUD_SLOTS)
            .map_max_entries("emud_tables", sizes.numbers() * abi::EMUD_SLOTS)
            .map_max_entries("emud_patterns", sizes.numbers() * abi::EMUD_SLOTS)
            .map_max_entries("emud_states", sizes.states())
            .map_max_entries("emud_rules", sizes.rule_keys)
            .map_max_entries("emud_hits", sizes.rules)
            .map_max_entries("emud_instances", sizes.instance_sets())
            .map_max_entries("emud_learned", sizes.learned_sets())
            .map_max_entries("emud_addresses", sizes.addresses.max(1))
            .map_max_entries("emud_pair_index", sizes.pairs.max(1))
            .map_max_entries("emud_pairs", sizes.pairs.max(1))
            .map_max_entries("emud_counts", sizes.numbers() * sets())
            .map_max_entries("emud_rows", rows::len_for(sizes.rows))
            .map_max_entries("emud_classes", sizes.classes.max(1))
            .load(&object)?;
        for program in programs {
            classifier(&mut bpf, program.name())?
                .load()
                .map_err(|source| DatapathError::Program {
                    name: program.name(),
                    source,
                })?;
        }
        Ok(Self {
            bpf,
            features,
            main: programs.first().copied().unwrap_or(Program::Classify),
        })
    }

    /// Returns the classifier, to attach it or to run it on a test packet.
    pub fn program(&self, program: Program) -> Result<&SchedClassifier, DatapathError> {
        self.bpf
            .program(program.name())
            .and_then(|p| p.try_into().ok())
            .ok_or(DatapathError::Missing(program.name()))
    }

    /// Returns the file descriptor of a program, to attach it by netlink.
    pub fn program_fd(&self, program: Program) -> Result<BorrowedFd<'_>, DatapathError> {
        let classifier = self.program(program)?;
        let fd = classifier.fd().map_err(|source| DatapathError::Program {
            name: program.name(),
            source,
        })?;
        Ok(fd.as_fd())
    }

    /// Returns the program of the first direction, by which the link is found.
    pub const fn main(&self) -> Program {
        self.main
    }

    /// Returns the kernel's id of that program.
    ///
    /// # Errors
    /// As [`Self::program_id`].
    pub fn main_id(&self) -> Result<u32, DatapathError> {
        self.program_id(self.main)
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
        maps.set_features(self.features)?;
        Ok(maps)
    }
}

/// Returns the maps of a loaded classifier, except those that its links do not use.
fn kept_maps(program: u32) -> Result<Vec<(String, MapData)>, DatapathError> {
    let mut maps = maps_of_program(program)?;
    for (name, _) in OF_FEATURES {
        let Some(index) = maps.iter().position(|(map, _)| map == name) else {
            continue;
        };
        let info = maps[index].1.info().map_err(at(name))?;
        if info.max_entries() == 1 {
            maps.swap_remove(index);
        }
    }
    Ok(maps)
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
