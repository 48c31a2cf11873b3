// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[matrix]`: figures for pairs of addresses, from a CSV file.

use std::net::IpAddr;
use std::sync::Arc;

use super::draft::LinkDraft;
use super::kinds::{Count, Text};
use super::links::NamedDraft;
use super::located::latest;
use super::quantile::{TABLE_STEPS, delay_table};
use super::rules::OWN;
use super::{Aqm, Link, NamedLink, Profile, ProfileError, keys, links};
use crate::abi;
use crate::text::{
    At, Draft, Entry, Kind, Located, Mistake, Reader, TextError, Time, Value, table,
};

/// The most pairs of a matrix.
pub const MAX_PAIRS: u32 = abi::EMUD_PAIRS_MAX;
/// The longest queue of a pair in packets, and all of those together.
const RING_MAX: u32 = 256;
const RINGS_MAX_BYTES: u64 = 64 << 20;

/// The row of a table of delays at the normal value -3: of 1000 delays 1.4 are below. To cut
/// them there changes the mean by less than 0.001 standard deviations.
const RARELY_BELOW: usize = 5 * TABLE_STEPS / 16;

table! {
    /// Pairs and what they are based on.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Matrix {
        /// A named link; `None`: the profile's own.
        link: Option<String> = None, "link" as Text;
        /// How many pairs there may be, 1..=65536.
        capacity: u32 = 1, "capacity" as Count<1, MAX_PAIRS>;
    }
    beside {
        /// To begin with. They are not in the canonical text, where they would not fit.
        pairs: Arc<Vec<Pair>> = Arc::default();
    }
    struct MatrixDraft {
        file: Option<Located<Vec<Pair>>>;
    }
}

/// A row: packets from one address to another. What is `None` is the base link's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// Address of the sender.
    pub source: IpAddr,
    /// Address of the receiver.
    pub destination: IpAddr,
    /// Rate in bit/s; `None`: that of the base link.
    pub rate: Option<u64>,
    /// Mean delay in ns; `None`: that of the base link.
    pub delay_ns: Option<u64>,
    /// Share lost, 0.0..=1.0; `None`: that of the base link.
    pub loss: Option<f64>,
}

impl Profile {
    /// Pairs of addresses with separate figures.
    pub fn pairs(&self) -> &[Pair] {
        self.matrix.as_ref().map_or(&[], |matrix| &matrix.pairs)
    }

    /// Returns the number of the link that pairs are based on.
    pub fn matrix_link(&self, matrix: &Matrix) -> u32 {
        let named = matrix.link.as_ref();
        named.and_then(|name| self.number_of(name)).unwrap_or(0)
    }

    /// Returns that link in both directions, by `EMUD_UP`, `EMUD_DOWN`.
    pub fn matrix_links(&self, matrix: &Matrix) -> [&Link; 2] {
        let number = self.matrix_link(matrix) as usize;
        [abi::EMUD_UP, abi::EMUD_DOWN].map(|direction| {
            let named = number.checked_sub(1).and_then(|n| self.links.get(n));
            named.map_or(self.direction(direction), |named| {
                named.direction(direction)
            })
        })
    }
}

impl Profile {
    /// Returns a pair whose delay is shorter than the jitter of its link goes below it, and the least delay
    /// in ns: shorter ones would be cut to zero, and so have a different mean.
    pub fn too_short<'a>(&self, pairs: &'a [Pair]) -> Option<(&'a Pair, u64)> {
        let links = self.matrix_links(self.matrix.as_ref()?);
        let below = links.map(|link| {
            let delays = delay_table(&link.delay).unwrap_or_default();
            let low = delays.get(RARELY_BELOW).copied();
            low.map_or(0, |low| link.delay.mean_ns.saturating_sub(low))
        });
        let least_ns = below.into_iter().max()?;
        let short = |pair: &&Pair| pair.delay_ns.is_some_and(|ns| ns < least_ns);
        Some((pairs.iter().find(short)?, least_ns))
    }
}

impl Matrix {
    pub(super) fn to_toml(&self) -> String {
        let link = self.link.as_ref();
        let link = link.map_or(String::new(), |name| format!("link = \"{name}\"\n"));
        format!("\n[matrix]\n{link}capacity = {}\n", self.capacity)
    }
}

/// Reads the table `matrix`.
pub(super) fn read(reader: &mut Reader, key: &At, entries: &[Entry]) -> MatrixDraft {
    let mut draft = MatrixDraft {
        at: Some(key.clone()),
        ..MatrixDraft::default()
    };
    for entry in entries {
        if entry.key.value == "file" {
            let folder = reader.folder.clone();
            reader.put(&mut draft.file, &entry.value, |v| {
                let name = Text::read(v, "file")?;
                Pair::load(&folder.join(name)).map_err(|error| in_file(v, &error))
            });
        } else if !draft.key(reader, entry) {
            let unknown = keys::unknown(&entry.key, &keys::MATRIX);
            reader.mistakes.push(unknown);
        }
    }
    let written = |key: &str| entries.iter().any(|e| e.key.value == key);
    if !written("file") && !written("capacity") {
        let help = "name the pairs, file = \"pairs.csv\", or give the number that `emud apply` may add, \
                    capacity = 1000";
        let mistake = Mistake::new(key, "a matrix without pairs", help);
        reader.mistakes.push(mistake);
    }
    draft
}

/// Returns the mistake in the file of pairs, at the position where it is named.
fn in_file(value: &Located<Value>, error: &ProfileError) -> Mistake {
    if let ProfileError::Text(TextError::Mistakes(found)) = error
        && let Some(first) = found.iter().next()
    {
        let (file, line) = (found.origin(first), found.line(first));
        let title = format!("{file}:{line}: {}", first.title);
        return Mistake::new(&value.at, title, first.help.clone());
    }
    let help = "a relative path starts at the folder of the profile";
    Mistake::new(&value.at, error.to_string(), help)
}

impl MatrixDraft {
    /// Returns where its link is named, or else the table.
    pub(super) fn at(&self) -> &At {
        let link = self.link.as_ref().map(|link| &link.at);
        link.or(self.at.as_ref()).unwrap_or(&At::START)
    }
}

impl Reader {
    /// Returns the finished matrix; meaningless if that adds a mistake.
    pub(super) fn finish_matrix(&mut self, draft: &MatrixDraft, named: &[NamedLink]) -> Matrix {
        let link = draft.link.as_ref().filter(|link| link.value != OWN);
        if let Some(link) = link
            && !named.iter().any(|known| known.name == link.value)
        {
            let names = named.iter().map(|n| n.name.as_str());
            self.mistakes.push(links::unknown(link, names));
        }
        let pairs = draft.file.as_ref().map(|file| file.value.clone());
        let pairs = pairs.unwrap_or_default();
        let capacity = draft.capacity.as_ref();
        if let Some(capacity) = capacity
            && pairs.len() > capacity.value as usize
        {
            let title = format!("the file has {} pairs", pairs.len());
            let help = format!("write capacity = {}, or leave it out", pairs.len());
            self.mistake(&capacity.at, title, help);
        }
        Matrix {
            link: link.map(|link| link.value.clone()),
            capacity: capacity.map_or(pairs.len().max(1) as u32, |c| c.value),
            pairs: pairs.into(),
        }
    }

    /// Rows of a trace and phases would replace the pairs' figures.
    pub(super) fn pairs_stay(
        &mut self,
        draft: &MatrixDraft,
        own: [&LinkDraft; 2],
        named: &[NamedDraft],
        phases: Option<&At>,
    ) {
        let base = draft.link.as_ref().map(|link| link.value.as_str());
        let base = named.iter().filter(|n| Some(n.name.value.as_str()) == base);
        let links = own.into_iter().chain(base.flat_map(|n| [&n.up, &n.down]));
        let traces = links.filter_map(|link| link.trace.at.as_ref());
        let (title, timed) = match (phases, traces.max_by_key(|at| at.source)) {
            (Some(at), _) => ("a matrix beside phases", at),
            (None, Some(at)) => ("a matrix on a link with a trace", at),
            (None, None) => return,
        };
        let help = "a pair's figures are those of its row at all times: take the matrix away or \
                    what changes with time, for which rules can send packets to links with traces";
        let at = draft.at();
        let mistake = Mistake::new(latest(at, [Some(timed)]), title, help);
        self.mistakes.push(mistake);
    }

    /// Checks that the queues of all pairs have room for the packets of the base link's queue.
    pub(super) fn pairs_have_room(&mut self, draft: &MatrixDraft, profile: &Profile) {
        let Some(matrix) = &profile.matrix else {
            return;
        };
        if profile
            .matrix_links(matrix)
            .into_iter()
            .any(|link| link.delay.max_ns.is_some())
        {
            let help = "a pair has a separate mean, and `max` is that of the link: leave it out";
            let title = "a matrix on a link whose delay has a `max`";
            self.mistake(draft.at(), title, help);
        }
        if let (Some(file), Some((pair, least_ns))) =
            (&draft.file, profile.too_short(&matrix.pairs))
        {
            let title = format!(
                "the delay of {} to {} is shorter than the link's jitter goes below its mean",
                pair.source, pair.destination
            );
            let help = format!(
                "give at least \"{}\", or the link less jitter",
                Time(least_ns)
            );
            self.mistake(&file.at, title, help);
        }
        let managed = |link: &Link| link.queue.aqm.is_some() || link.queue.ecn_above_ns.is_some();
        if (profile.matrix_links(matrix).into_iter())
            .any(|link| link.rate.is_none() && managed(link))
        {
            let help = "what a manager reckons with is of the rate of that link: give it a `rate`, \
                        which pairs without one have, too";
            let title = "`aqm` or `ecn` of a matrix on a link without `rate`";
            self.mistake(draft.at(), title, help);
        }
        let limits = profile
            .matrix_links(matrix)
            .map(|link| link.queue.pair_limit_packets());
        let packets = limits.into_iter().max().unwrap_or_default();
        if packets == 0 {
            return;
        }
        let ring = packets.next_power_of_two().max(abi::EMUD_RING_STEP);
        let bytes = u64::from(ring) * 8 * u64::from(matrix.capacity);
        if packets <= RING_MAX && bytes <= RINGS_MAX_BYTES {
            return;
        }
        let title = format!(
            "{} pairs on a link with a queue of {packets} packets",
            matrix.capacity
        );
        let most = (RINGS_MAX_BYTES / 8 / u64::from(matrix.capacity)).min(RING_MAX.into());
        let most = match most.checked_ilog2() {
            Some(log) if most >= abi::EMUD_RING_STEP.into() => {
                Some(format!("at most \"{}p\"", 1u64 << log))
            }
            _ => None,
        };
        let is_rio = |link: &Link| matches!(link.queue.aqm, Some(Aqm::Rio(_)));
        let others = "in bytes or time, such as queue = \"256KiB\" or \"200ms\"";
        let limit = match (most, profile.matrix_links(matrix).into_iter().any(is_rio)) {
            // RIO remembers packets whatever other limits it has.
            (Some(most), true) => most,
            (Some(most), false) => format!("{most}, or {others}"),
            (None, _) => format!("not in packets but {others}"),
        };
        let help =
            format!("each pair's queue remembers its packets: limit that link's queue, {limit}");
        let at = draft.at();
        self.mistake(at, title, help);
    }
}
