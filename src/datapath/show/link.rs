// SPDX-License-Identifier: MIT OR Apache-2.0
//! A link's figures in force: those of its phase's link, under those of its row.

use schemars::JsonSchema;
use serde::Serialize;

use super::report::{Counters, counters, moments};
use super::time::rate_bit_s;
use super::{loss as report_loss, time as report_time};
use crate::abi;
use crate::datapath::maps::{DatapathError, Maps};
use crate::datapath::stage::queueing;
use crate::datapath::stage::queueing::{Manager, Queue, Wire};
use crate::profile::{Link, Profile};

/// One direction of a link.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LinkReport {
    /// Rate in bit/s, 0 in an outage, of opportunities the mean; null: no limit. Off by at most a
    /// part in 10^12.
    #[schemars(range(min = 0))]
    pub rate_bit_s: Option<f64>,
    /// Bytes that each packet needs on the wire in addition to its length.
    #[schemars(range(min = -64, max = 4096))]
    pub overhead_bytes: i32,
    /// Properties of the wire other than its rate.
    pub wire: Wire,
    /// Limits of the queue, all of which apply; "none" without a rate.
    pub queue: Queue,
    /// Name of the queue that several links share; null: the queue of this link alone.
    #[schemars(length(min = 1))]
    pub shared: Option<String>,
    /// Packets that wait longer are marked, in ns; null: none.
    pub ecn_above_ns: Option<u64>,
    /// Active queue management; null: none.
    pub aqm: Option<Manager>,
    /// Time until the last packet of the queue has left the wire, in ns.
    pub backlog_ns: u64,
    /// Delay in force.
    pub delay: Delay,
    /// Packets that are sent without delay, to overtake others; null: none.
    pub reorder: Option<Reordering>,
    /// Long-run share of lost packets; null: it depends on their length.
    #[schemars(range(min = 0, max = 1))]
    pub loss: Option<f64>,
    /// Treatment of ARP, neighbour discovery and PTP event messages.
    #[schemars(extend("enum" = ["pass", "emulate"]))]
    pub neighbours: &'static str,
    /// Counters since attach. Packets are wire packets: a super-packet counts for those in it.
    pub counters: Counters,
    /// "down": every packet is lost.
    #[schemars(extend("enum" = ["up", "down"]))]
    pub state: &'static str,
    /// Loss model; null: nothing is lost. A row with a loss is "bernoulli".
    pub loss_model: Option<report_loss::LossReport>,
    /// Packets that arrive twice; null: none.
    pub duplicate: Option<report_loss::DuplicateReport>,
    /// Packets that arrive damaged; null: none.
    pub corrupt: Option<report_loss::CorruptReport>,
    /// Changes with time; null: none.
    pub timeline: Option<report_time::TimelineReport>,
    /// Departures in slots; null: at any time.
    pub slot: Option<report_time::SlotReport>,
}

/// Mean and deviation of the delays in force.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Delay {
    /// Mean in ns.
    #[schemars(range(min = 0))]
    pub mean_ns: f64,
    /// Standard deviation in ns.
    #[schemars(range(min = 0))]
    pub sd_ns: f64,
    /// Distribution; null: constant.
    #[schemars(extend("enum" = ["uniform", "normal", "pareto", "paretonormal", "lognormal", "table", null]))]
    pub distribution: Option<&'static str>,
    /// "never" keeps the order of packets, "jitter" does not.
    #[schemars(extend("enum" = ["never", "jitter"]))]
    pub reorder: &'static str,
    /// Time between two independent delays in ns; null: delays are independent of time.
    #[schemars(range(min = 1))]
    pub coherence_ns: Option<u64>,
    /// Correlation of the delays of successive packets of a flow.
    #[schemars(range(min = 0, max = 1))]
    pub correlation: f64,
    /// Share of the packets that are delayed; null: all.
    #[schemars(range(min = 0, max = 1))]
    pub share: Option<f64>,
    /// Longest delay in ns; null: not limited.
    #[schemars(range(min = 1))]
    pub max_ns: Option<u64>,
}

/// Packets that are sent without delay, to overtake.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reordering {
    /// Probability that a packet is sent without delay.
    #[schemars(range(min = 0, max = 1))]
    pub probability: f64,
    /// Correlation with the previous packet.
    #[schemars(range(min = 0, max = 1))]
    pub correlation: f64,
    /// At least gap - 1 delayed packets are between two of them.
    #[schemars(range(min = 1))]
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
            ecn_above_ns: queueing::ecn_above_ns(link),
            aqm: queueing::manager(link),
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
