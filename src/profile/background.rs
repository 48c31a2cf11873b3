// SPDX-License-Identifier: MIT OR Apache-2.0
//! `background`: traffic that takes its part of a link's queue and wire, without any real packet.

use schemars::JsonSchema;
use serde::Serialize;

use super::draft::LinkDraft;
use super::kinds::{Count, Share, SomeBytes, SomeTime};
use super::located::latest;
use super::read::Draft;
use super::{DEFAULT_QUEUE_PACKETS, Link, PACKET_BYTES, Profile, Queue};
use crate::abi::DIRECTIONS;
use crate::text::{At, Kind, Located, Mistake, Reader, Time, Value, number, table};

/// The limit of the queue where the profile does not say.
const QUEUE_BYTES: u32 = DEFAULT_QUEUE_PACKETS * PACKET_BYTES;

/// Returns the queue of a link with a background where the profile does not say.
pub(super) fn usual_queue() -> Queue {
    Queue {
        bytes: Some(QUEUE_BYTES.into()),
        ..Queue::default()
    }
}

/// Maximum of the sources' total rate, as a multiple of the link's rate.
const PEAK_MAX: f64 = 50.0;
/// Times are whole ns: a packet that takes less is off by a large part of it.
const SERVICE_MIN_NS: u64 = 100;

table! {
    /// Packets of on/off sources, which take only room in the queue and time on the wire.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
    pub struct Background {
        /// Mean share of the rate, above 0.
        #[schemars(range(min = 0, max = 1))]
        load: f64 = 0.0, "load" as Load;
        /// Number of independent sources.
        #[schemars(range(min = 1, max = 100))]
        sources: u32 = 10, "sources" as Count<1, 100>;
        /// Shape of the Pareto distributions of both times.
        #[schemars(range(min = 1.05, max = 10))]
        shape: f64 = 1.5, "shape" as ParetoShape;
        /// Mean time in ns for which a source sends.
        on_ns: u64 = 500_000_000, "on" as SomeTime;
        /// Mean time in ns for which a source is silent.
        off_ns: u64 = 500_000_000, "off" as SomeTime;
        /// Length of a packet on the wire in bytes.
        packet_bytes: u32 = PACKET_BYTES, "packet" as SomeBytes;
    }
    struct BackgroundDraft {}
}

impl Background {
    /// Returns the share of the time in which a source sends.
    pub fn on_share(&self) -> f64 {
        self.on_ns as f64 / (self.on_ns as f64 + self.off_ns as f64)
    }

    /// Returns the share of the rate that all sources send together.
    pub fn peak(&self) -> f64 {
        self.load / self.on_share()
    }

    /// Returns the time of a packet on a wire with this rate (bit/s), in whole ns.
    pub fn service_ns(&self, rate: u64) -> u64 {
        let (bits_ns, rate) = (
            u128::from(self.packet_bytes) * 8_000_000_000,
            u128::from(rate.max(1)),
        );
        u64::try_from((bits_ns + rate / 2) / rate).unwrap_or(u64::MAX)
    }

    /// Returns the keys as text, such as `load 40% sources 10`.
    pub fn summary(&self) -> String {
        self.plain_text(&[]).trim_start().to_owned()
    }
}

/// A share above 0, in percent.
pub(crate) struct Load;
/// 1.05..=10: below, the mean of any feasible number of times is far from their mean.
pub(crate) struct ParetoShape;

impl Kind for Load {
    type Value = f64;

    fn read(value: &Located<Value>, key: &str) -> Result<f64, Mistake> {
        match Share::read(value, key)? {
            0.0 => {
                let help = "write background = \"none\" for a link without background";
                Err(Mistake::new(&value.at, "a background with load 0", help))
            }
            share => Ok(share),
        }
    }

    fn text(share: &f64) -> String {
        Share::text(share)
    }
}

impl Kind for ParetoShape {
    type Value = f64;

    fn read(value: &Located<Value>, key: &str) -> Result<f64, Mistake> {
        let help = "write a number from 1.05 to 10, such as shape = 1.5";
        number(value, key, 1.05..=10.0, help)
    }

    fn text(shape: &f64) -> String {
        shape.to_string()
    }
}

impl Reader {
    /// Returns the finished background, for which the queue gets its usual limit; meaningless if that adds a
    /// mistake.
    pub(super) fn finish_background(
        &mut self,
        draft: &LinkDraft,
        queue: &mut Queue,
    ) -> Option<Background> {
        let own = &draft.background;
        let at = own.at.as_ref().filter(|_| !own.broken)?;
        let background = own.values();
        let Some(rate) = draft.rate.as_ref().map(|rate| rate.value) else {
            let help = "its load is a share of the rate: give `rate` too, or leave it out";
            self.mistake(at, "`background` without `rate`", help);
            return None;
        };
        if own.load.is_none() {
            let help = "give the share of the rate that it takes: background = { load = \"40%\" }";
            self.mistake(at, "a background without `load`", help);
            return None;
        }
        if let Some((other, title, help)) = beside(draft) {
            self.mistake(latest(at, [Some(other)]), title, help);
        }
        if let Some((title, help)) = too_fast(&background, rate) {
            self.mistake(at, title, help);
        }
        if !queue.is_limited() {
            *queue = usual_queue();
        }
        self.holds_background(draft, queue, &background, background.service_ns(rate));
        Some(background)
    }

    /// Checks that the queue holds a packet of the background on the wire and one that waits.
    fn holds_background(
        &mut self,
        draft: &LinkDraft,
        finished: &Queue,
        background: &Background,
        service_ns: u64,
    ) {
        let (queue, packet) = (&draft.queue, background.packet_bytes);
        let least = 2 * u64::from(packet);
        let written = queue.bytes.as_ref().map(|bytes| &bytes.at);
        if let Some(bytes) = finished.bytes.filter(|bytes| *bytes < least)
            && let Some(at) = written.or(draft.background.at.as_ref())
        {
            let help = format!("write at least queue = \"{least}B\", or a shorter `packet`");
            let title =
                format!("a queue of {bytes} bytes and packets of {packet} in the background");
            self.mistake(at, title, help);
        }
        if let Some(time) = queue
            .time_ns
            .as_ref()
            .filter(|time| time.value < service_ns)
        {
            let help = format!(
                "write at least \"{}\", or a shorter `packet`",
                Time(service_ns)
            );
            let title = "a queue shorter than a packet of the background takes";
            self.mistake(&time.at, title, help);
        }
    }
}

/// Returns a key that a link with a background cannot have, with title and help.
fn beside(draft: &LinkDraft) -> Option<(&At, &'static str, &'static str)> {
    let queue = &draft.queue;
    [
        (
            queue.packets.as_ref().map(|packets| &packets.at),
            "`background` beside `queue.limit`",
            "packets of the background are not counted: limit the queue in bytes or time, such as \
             queue = \"1MB\"",
        ),
        (
            queue.aqm.as_ref().map(|aqm| &aqm.at),
            "`background` beside `queue.aqm`",
            "a manager does not judge packets of the background: take one of both away",
        ),
        (
            draft.trace.at.as_ref(),
            "`background` beside a trace",
            "its load is a share of one rate at all times: take one of both away",
        ),
        (
            draft.shared.as_ref().map(|shared| &shared.at),
            "`background` beside `shared`",
            "a background is in the queue of one link: take one of both away",
        ),
    ]
    .into_iter()
    .find_map(|(at, title, help)| Some((at?, title, help)))
}

/// Packets closer together than the clock can say.
fn too_fast(background: &Background, rate: u64) -> Option<(String, &'static str)> {
    if background.peak() > PEAK_MAX {
        let title = format!(
            "sources that send {:.0} times the rate together",
            background.peak()
        );
        return Some((
            title,
            "the limit is 50: write a longer `on`, a shorter `off` or a lower `load`",
        ));
    }
    let service_ns = background.service_ns(rate);
    (service_ns < SERVICE_MIN_NS).then(|| {
        let title = format!("packets of the background that take {service_ns} ns");
        (title, "the least is 100 ns: write a longer `packet`")
    })
}

impl Draft {
    /// Checks that each background belongs to one queue with one rate.
    pub(super) fn background_stays(&self, reader: &mut Reader, profile: &Profile) {
        let has = |link: &Link| link.background.is_some();
        let own = has(&profile.up) || has(&profile.down);
        let phases = &profile.phases.list;
        let phased = phases
            .iter()
            .any(|p| DIRECTIONS.iter().any(|d| has(p.direction(*d))));
        if let Some(at) = self.phases.at().filter(|_| own || phased) {
            let help = "its load is a share of one rate at all times: take one of both away";
            reader.mistake(at, "phases beside `background`", help);
        }
        if let (Some(draft), Some(matrix)) = (&self.matrix, &profile.matrix)
            && (own || profile.matrix_links(matrix).into_iter().any(has))
        {
            let help = "each pair has a separate queue: take one of both away";
            reader.mistake(draft.at(), "a matrix beside `background`", help);
        }
        for (draft, rule) in self.rules.iter().zip(&profile.rules) {
            if let Some(per) = &draft.per
                && profile.links_of_rule(rule).into_iter().any(has)
            {
                let help = "each instance has a separate queue: take one of both away";
                reader.mistake(&per.at, "`per` for a link with `background`", help);
            }
        }
    }
}
