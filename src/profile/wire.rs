// SPDX-License-Identifier: MIT OR Apache-2.0
//! `rate` as a table: what the wire does to a packet's length and time.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::Trace;
use super::draft::LinkDraft;
use super::keys;
use super::kinds::Count;
use super::located::{latest, value};
use super::queue::{Bytes, some_bytes};
use crate::text::{
    Draft, Entry, Kind, Located, Mistake, Rate, Reader, Value, braced, is_none, number, table,
};

/// A packet of 1500 bytes after an Ethernet header.
pub const PACKET_BYTES: u32 = 1514;

const MPU_MAX: u32 = 4096;
const CELL_SIZE_MAX: f64 = 65535.0;
const CELL_OVERHEAD_MAX: f64 = 255.0;

table! {
    /// Burst and framing; without effect where there is no rate.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
    pub struct Wire {
        /// Bytes that pass at once after idleness, 1..=4 GiB less 1.
        #[serde(rename = "burst_bytes", serialize_with = "or_zero")]
        #[schemars(with = "u64")]
        burst: Option<u64> = None, "burst" as Burst;
        /// Least bytes of a packet on the wire, overhead included, 0..=4096.
        #[serde(rename = "mpu_bytes")]
        #[schemars(range(max = 4096))]
        mpu: u32 = 0, "mpu" as Count<0, MPU_MAX>;
        /// Cells into which packets are cut; null: none.
        #[serde(rename = "cell")]
        #[schemars(with = "Option<CellKeys>")]
        cells: Option<Cells> = None, "cell" as CellKind;
    }
    struct WireDraft {}
}

/// The keys of `rate` that are the link's own.
pub(super) const LINK_KEYS: &[&str] = &["rate", "overhead"];

/// How packets are cut up on the wire (tc-stab(8), tc-netem(8), tc-cake(8)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cells {
    /// 48 bytes of payload in cells of 53, the last one padded.
    Atm,
    /// A byte for every 64 bytes or part of them.
    Ptm,
    /// Cells of this shape.
    Of {
        /// Payload of a cell in bytes, 1..=65535; the last one is padded.
        size: u32,
        /// Bytes of a cell beside it, above -size, at most 255.
        overhead: i32,
    },
}

fn or_zero<S: Serializer>(bytes: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(bytes.unwrap_or(0))
}

/// Cells in JSON.
#[derive(Serialize, JsonSchema)]
struct CellKeys {
    /// Payload of a cell in bytes.
    #[schemars(range(min = 1, max = 65535))]
    size_bytes: u32,
    /// Bytes of a cell in addition to its payload.
    #[schemars(range(min = -65534, max = 255))]
    overhead_bytes: i32,
    /// The last cell is padded.
    padded: bool,
}

impl Serialize for Cells {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let keys = CellKeys {
            size_bytes: self.size(),
            overhead_bytes: self.overhead(),
            padded: self.padded(),
        };
        keys.serialize(to)
    }
}

impl Cells {
    /// Returns the payload of a cell in bytes.
    pub fn size(self) -> u32 {
        match self {
            Self::Atm => 48,
            Self::Ptm => 64,
            Self::Of { size, .. } => size,
        }
    }

    /// Returns the header of a cell in bytes.
    pub fn overhead(self) -> i32 {
        match self {
            Self::Atm => 5,
            Self::Ptm => 1,
            Self::Of { overhead, .. } => overhead,
        }
    }

    /// Returns whether the last cell is filled up.
    pub fn padded(self) -> bool {
        self != Self::Ptm
    }
}

impl Wire {
    /// Bytes on the wire of a packet of `len` with an additional `overhead`.
    pub fn bytes(&self, len: u32, overhead: i32) -> u64 {
        let len = (i64::from(len) + i64::from(overhead)).max(i64::from(self.mpu));
        let Some(cells) = self.cells else {
            return len.unsigned_abs();
        };
        let size = i64::from(cells.size());
        let count = (len + size - 1) / size;
        let payload = if cells.padded() { count * size } else { len };
        (payload + count * i64::from(cells.overhead())).unsigned_abs()
    }

    /// Returns the keys as text, such as `burst 10kB mpu 64 cell atm`.
    pub fn summary(&self) -> String {
        self.plain_text(&[]).trim_start().to_owned()
    }

    /// Returns the value of the key `rate`, with the rate if it is not that of a trace.
    pub(super) fn with_rate(&self, rate: Option<Rate>) -> String {
        let rate = rate.map(|rate| format!("rate = \"{rate}\""));
        let keys: Vec<_> = rate.into_iter().chain(self.keys_text()).collect();
        braced(&keys, "rate")
    }
}

impl Reader {
    /// Reads the value of `rate`: a table, or a plain rate, which changes neither the wire nor the overhead.
    pub(super) fn rate(&mut self, draft: &mut LinkDraft, value: &Located<Value>) {
        if is_none(value) {
            draft.rate = None;
            draft.wire = WireDraft::default();
            return;
        }
        let Value::Table(entries) = &value.value else {
            draft.apply(self, "rate", value, "rate");
            return;
        };
        for entry in entries {
            let of_link = LINK_KEYS.contains(&entry.key.value.as_str());
            if !(of_link && draft.key(self, entry) || draft.wire.key(self, entry)) {
                (self.mistakes).push(keys::unknown(&entry.key, &keys::RATE));
            }
        }
    }

    /// Returns the finished wire; meaningless if that adds a mistake.
    pub(super) fn finish_wire(&mut self, draft: &LinkDraft, trace: Option<&Trace>) -> Wire {
        if draft.rate.is_none() && !trace.is_some_and(Trace::has_rate) {
            for (key, at) in draft.wire.places() {
                let help = "without a rate packets take no time on the wire: give `rate` too, or \
                            leave it out";
                let title = format!("`{key}` without `rate`");
                self.mistake(at, title, help);
            }
        }
        draft.wire.values()
    }

    /// Checks that a limit in bytes lets a packet of a link in.
    pub(super) fn holds_a_packet(
        &mut self,
        limit: Option<&Located<u64>>,
        draft: &LinkDraft,
        wire: &Wire,
    ) {
        let Some(Located { value: bytes, at }) = limit else {
            return;
        };
        let overhead = value(&draft.overhead).unwrap_or_default();
        let packet = wire.bytes(PACKET_BYTES, overhead);
        if *bytes >= packet {
            return;
        }
        let places = [
            draft.overhead.as_ref().map(|o| &o.at),
            draft.wire.mpu.as_ref().map(|m| &m.at),
            draft.wire.cells.as_ref().map(|c| &c.at),
        ];
        let cells = if wire.cells.is_some() { ", cells" } else { "" };
        self.mistake(
            latest(at, places),
            format!("a queue of {bytes} bytes is smaller than one packet"),
            format!(
                "a packet of 1500 bytes takes {packet} on the wire (Ethernet header and \
                 overhead of {overhead}{cells}): write at least \"{packet}B\", or count packets: \
                 \"1p\""
            ),
        );
    }
}

/// Bytes that pass at once.
pub(crate) struct Burst;

impl Kind for Burst {
    type Value = u64;

    fn read(value: &Located<Value>, key: &str) -> Result<u64, Mistake> {
        some_bytes(value, key, "\"32kB\"")
    }

    fn text(bytes: &u64) -> String {
        format!("\"{}\"", Bytes(*bytes))
    }
}

pub(crate) struct CellKind;

impl Kind for CellKind {
    type Value = Cells;

    fn read(value: &Located<Value>, _: &str) -> Result<Cells, Mistake> {
        let Value::Table(entries) = &value.value else {
            return cell_word(value);
        };
        match entries.iter().find(|e| !keys::CELL.has(&e.key.value)) {
            Some(entry) => Err(keys::unknown(&entry.key, &keys::CELL)),
            None => cell_table(value, entries),
        }
    }

    fn text(cells: &Cells) -> String {
        match cells {
            Cells::Atm => "\"atm\"".to_owned(),
            Cells::Ptm => "\"ptm\"".to_owned(),
            Cells::Of { size, overhead } => {
                format!("{{ size = {size}, overhead = {overhead} }}")
            }
        }
    }
}

/// Reads a plain number without a fraction.
fn whole(
    value: &Located<Value>,
    key: &str,
    range: std::ops::RangeInclusive<f64>,
    help: &str,
) -> Result<f64, Mistake> {
    match number(value, key, range, help)? {
        n if n.fract() == 0.0 => Ok(n),
        n => Err(Mistake::new(
            &value.at,
            format!("`{n}` is not a whole number of bytes"),
            help,
        )),
    }
}

const CELL_HELP: &str =
    "write cell = \"atm\", cell = \"ptm\" or cell = { size = 48, overhead = 5 }";

fn cell_word(value: &Located<Value>) -> Result<Cells, Mistake> {
    let Value::Text(text) = &value.value else {
        return Err(Mistake::wrong_kind(value, "cell", CELL_HELP));
    };
    match text.as_str() {
        "atm" => Ok(Cells::Atm),
        "ptm" => Ok(Cells::Ptm),
        _ => {
            let title = format!("`cell` cannot be `{text}`");
            Err(Mistake::new(&value.at, title, CELL_HELP))
        }
    }
}

fn cell_table(value: &Located<Value>, entries: &[Entry]) -> Result<Cells, Mistake> {
    let find = |key: &str| entries.iter().find(|entry| entry.key.value == key);
    let Some(size) = find("size") else {
        return Err(Mistake::new(&value.at, "a cell without `size`", CELL_HELP));
    };
    let help = "write whole bytes from 1 to 65535, such as size = 48";
    let size = whole(&size.value, "size", 1.0..=CELL_SIZE_MAX, help)?;
    let overhead = match find("overhead") {
        None => 0.0,
        Some(overhead) => {
            let least = 1.0 - size;
            let help = format!("with this size, whole bytes from {least} to 255 a cell");
            whole(
                &overhead.value,
                "overhead",
                least..=CELL_OVERHEAD_MAX,
                &help,
            )?
        }
    };
    Ok(match (size as u32, overhead as i32) {
        (48, 5) => Cells::Atm,
        (size, overhead) => Cells::Of { size, overhead },
    })
}
