// SPDX-License-Identifier: MIT OR Apache-2.0
//! A link's figures in force: those of its phase's link, under those of its row.

use serde::Serialize;

use super::report::{Counters, counters, moments};
use super::time::rate_bit_s;
use super::{loss as report_loss, time as report_time};
use crate::abi;
use crate::datapath::maps::{DatapathError, Maps};
use crate::datapath::stage::aqm::{self, Manager};
use crate::datapath::stage::queueing;
use crate::datapath::stage::queueing::{Queue, Wire};
use crate::profile::{Link, Profile};

/// One direction of a link.
#[derive(Debug, Serialize)]
pub struct LinkReport {
    /// bit/s, 0 in an outage, of opportunities their mean; absent: no limit.
    pub rate_bit_s: Option<f64>,
    pub overhead_bytes: i32,
    pub wire: Wire,
    pub queue: Queue,
    /// The name by which other links have this queue, too; absent: it is this link's alone.
    pub shared: Option<String>,
    /// The class of a bottleneck where its packets wait that no rule puts into another.
    pub class: Option<String>,
    /// Packets that wait for longer are marked; absent: none for that.
    pub ecn_above_ns: Option<u64>,
    pub aqm: Option<Manager>,
    /// Time until the last admitted packet has left the wire.
    pub backlog_ns: u64,
    pub delay: Delay,
    pub reorder: Option<Reordering>,
    /// Share of the packets in the long run; absent where it depends on their length.
    pub loss: Option<f64>,
    /// ARP, neighbour discovery and PTP event messages: `pass` or `emulate`.
    pub neighbours: &'static str,
    pub counters: Counters,
    /// `up`, or `down`: everything is lost.
    pub state: &'static str,
    /// Absent: nothing is lost.
    pub loss_model: Option<report_loss::LossReport>,
    pub duplicate: Option<report_loss::DuplicateReport>,
    pub corrupt: Option<report_loss::CorruptReport>,
    /// Absent: nothing changes with time.
    pub timeline: Option<report_time::TimelineReport>,
    pub slot: Option<report_time::SlotReport>,
}

/// Mean and deviation of the delays in force.
#[derive(Debug, Serialize)]
pub struct Delay {
    pub mean_ns: f64,
    pub sd_ns: f64,
    pub distribution: Option<&'static str>,
    /// `never` or `jitter`.
    pub reorder: &'static str,
    /// Only in order.
    pub coherence_ns: Option<u64>,
    /// Of the delays of a flow's successive packets; only per packet.
    pub correlation: f64,
    /// Of the packets that are delayed; absent: all.
    pub share: Option<f64>,
    /// The longest; absent: as the distribution has it.
    pub max_ns: Option<u64>,
}

/// Packets that are sent without delay, to overtake.
#[derive(Debug, Serialize)]
pub struct Reordering {
    pub probability: f64,
    pub correlation: f64,
    pub gap: u64,
}

/// Where links are read from.
pub(crate) struct Reader<'a> {
    pub maps: &'a Maps,
    /// What is in no map: names, and what a table was made of.
    pub profile: Option<&'a Profile>,
    pub now_ns: u64,
}

/// What a packet would meet now.
struct InForce {
    /// Whose the table is: of a phase another link's than the one asked for.
    number: u32,
    link: abi::emud_link,
    /// What of it counts is in its `set`.
    row: abi::emud_row,
}

impl Reader<'_> {
    /// The link of a number, as it is now.
    pub fn link(&self, number: u32, direction: u32) -> Result<LinkReport, DatapathError> {
        let own = self.maps.link_of(number, direction)?;
        let moment = report_time::moment(self.maps, &own, self.profile, self.now_ns)?;
        let row = moment.as_ref().map(|m| m.row);
        let in_force = InForce::of(self.maps, number, direction, own, row)?;
        let (link, rate) = (&in_force.link, in_force.rate_bit_s());
        // Limits in bytes and a burst are made times by the link's own rate, not the row's.
        let of_link = rate_bit_s(link.rate_mult, link.rate_shift);
        let wanted = self.wanted(in_force.number, direction);
        // The queue stays what it is, whichever phase it is.
        let queue = self.maps.state_of(own.bottleneck, direction)?;
        Ok(LinkReport {
            rate_bit_s: rate,
            overhead_bytes: link.overhead,
            wire: queueing::wire(link, of_link),
            queue: queueing::queue(link, of_link),
            shared: (self.wanted(number, direction)).and_then(|l| l.shared.clone()),
            class: (self.wanted(number, direction)).and_then(|l| l.class.clone()),
            ecn_above_ns: queueing::ecn_above_ns(link),
            aqm: aqm::manager(link),
            backlog_ns: match rate {
                Some(_) => queue.busy_until.saturating_sub(self.now_ns),
                None => 0,
            },
            delay: in_force.delay(self.maps, direction, wanted)?,
            reorder: reordering(link),
            loss: report_loss::expected(link, wanted),
            neighbours: match link.flags & abi::EMUD_F_NEIGHBOURS {
                0 => "pass",
                _ => "emulate",
            },
            counters: counters(&*self.maps.counters_of(number, direction)?),
            state: report_loss::state(link),
            loss_model: report_loss::loss(link),
            duplicate: report_loss::duplicate(link),
            corrupt: report_loss::corrupt(link),
            timeline: moment.map(|m| m.report),
            slot: report_time::slot(link),
        })
    }

    fn wanted(&self, number: u32, direction: u32) -> Option<&Link> {
        (self.profile?.links_of(direction)).nth(number as usize)
    }
}

impl InForce {
    fn of(
        maps: &Maps,
        number: u32,
        direction: u32,
        own: abi::emud_link,
        row: Option<abi::emud_row>,
    ) -> Result<Self, DatapathError> {
        let row = row.unwrap_or(abi::emud_row {
            number: abi::EMUD_SAME_LINK,
            ..Default::default()
        });
        let (number, mut link) = match row.number {
            abi::EMUD_SAME_LINK => (number, own),
            phase => (phase, maps.link_of(phase, direction)?),
        };
        if row.set & abi::EMUD_SET_LOSS != 0 {
            link.loss_model = match row.loss {
                0 => abi::EMUD_LOSS_NONE,
                _ => abi::EMUD_LOSS_BERNOULLI,
            };
            link.loss = abi::emud_chance {
                probability: row.loss,
                ..Default::default()
            };
        }
        Ok(Self { number, link, row })
    }

    fn sets(&self, figure: abi::emud_set) -> bool {
        self.row.set & figure != 0
    }

    fn rate_bit_s(&self) -> Option<f64> {
        match self.sets(abi::EMUD_SET_RATE) {
            true => rate_bit_s(self.row.rate_mult, self.row.rate_shift),
            false => rate_bit_s(self.link.rate_mult, self.link.rate_shift),
        }
    }

    fn mean_ns(&self) -> u64 {
        match self.sets(abi::EMUD_SET_DELAY) {
            true => self.row.delay_ns,
            false => self.link.delay_ns,
        }
    }

    /// What becomes of a delay of the link's table: as emud_delay_ns() of bpf/delay.h.
    fn delayed_ns(&self, own_ns: u64) -> u64 {
        if !self.sets(abi::EMUD_SET_DELAY | abi::EMUD_SET_JITTER) {
            return own_ns;
        }
        let mut off = own_ns.wrapping_sub(self.link.delay_ns).cast_signed();
        if self.sets(abi::EMUD_SET_JITTER) {
            off = off.wrapping_mul(self.row.jitter.into()) >> abi::EMUD_JITTER_SHIFT;
        }
        self.mean_ns().saturating_add_signed(off)
    }

    fn delay(
        &self,
        maps: &Maps,
        direction: u32,
        wanted: Option<&Link>,
    ) -> Result<Delay, DatapathError> {
        let link = &self.link;
        let per_packet = link.flags & abi::EMUD_F_PER_PACKET != 0;
        let constant = Delay {
            mean_ns: self.mean_ns() as f64,
            sd_ns: 0.0,
            distribution: None,
            reorder: if per_packet { "jitter" } else { "never" },
            coherence_ns: None,
            correlation: 0.0,
            share: share(link),
            max_ns: wanted.and_then(|link| link.delay.max_ns),
        };
        let still = self.sets(abi::EMUD_SET_JITTER) && self.row.jitter == 0;
        if link.flags & abi::EMUD_F_JITTER == 0 || still {
            return Ok(constant);
        }
        let table = maps.table_of(self.number, direction)?;
        let delays = table.delay_ns.iter().map(|own| self.delayed_ns(*own));
        let delays: Vec<u64> = delays.collect();
        let (mean_ns, sd_ns) = moments(&delays);
        // Of rows alone, too, whose link has no jitter.
        let jitter = wanted.and_then(|link| crate::profile::delay_with_trace(link).jitter);
        Ok(Delay {
            mean_ns,
            sd_ns,
            distribution: jitter.as_ref().map(|j| j.distribution.word()),
            coherence_ns: (!per_packet).then_some(link.coherence_ns),
            correlation: jitter.map_or(0.0, |j| j.correlation),
            ..constant
        })
    }
}

fn share(link: &abi::emud_link) -> Option<f64> {
    (link.flags & abi::EMUD_F_SHARE != 0).then(|| chance(link.share))
}

fn reordering(link: &abi::emud_link) -> Option<Reordering> {
    (link.flags & abi::EMUD_F_REORDER != 0).then(|| Reordering {
        probability: chance(link.reorder),
        correlation: chance(link.reorder_repeat),
        gap: link.reorder_gap,
    })
}

/// The probability that a random u64 is below `bound`.
fn chance(bound: u64) -> f64 {
    bound as f64 / 2f64.powi(64)
}
