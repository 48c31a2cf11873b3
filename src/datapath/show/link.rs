// SPDX-License-Identifier: MIT OR Apache-2.0
//! A link's figures in force: those of its phase's link, under those of its row.

use serde::{Serialize, Serializer};

use super::report::{Counters, counters};
use super::time as report_time;
use super::time::rate_bit_s;
use crate::abi;
use crate::datapath::maps::{DatapathError, Maps};
use crate::datapath::stage::compile::{Beside, decode};
use crate::profile::{
    Aqm, Corrupt, Delay, Duplicate, Link, LinkState, Loss, Neighbours, Profile, Queue, Reordering,
    Slot, Wire,
};

/// One direction of a link.
#[derive(Debug, Serialize)]
pub struct LinkReport {
    /// bit/s, 0 in an outage, of opportunities their mean; absent: no limit.
    pub rate_bit_s: Option<f64>,
    pub overhead_bytes: i32,
    pub wire: Wire,
    /// "none" without a rate, so that nothing ever waits; else the limits, all of which hold.
    #[serde(serialize_with = "or_none")]
    pub queue: Option<Queue>,
    /// The name by which other links have this queue, too; absent: it is this link's alone.
    pub shared: Option<String>,
    /// Packets that wait for longer are marked; absent: none for that.
    pub ecn_above_ns: Option<u64>,
    pub aqm: Option<Aqm>,
    /// Time until the last admitted packet has left the wire.
    pub backlog_ns: u64,
    pub delay: Delay,
    pub reorder: Option<Reordering>,
    /// Share of the packets in the long run; absent where it depends on their length.
    pub loss: Option<f64>,
    /// Of ARP, neighbour discovery and PTP event messages.
    pub neighbours: Neighbours,
    pub counters: Counters,
    pub state: LinkState,
    /// Absent: nothing is lost.
    pub loss_model: Option<Loss>,
    pub duplicate: Option<Duplicate>,
    pub corrupt: Option<Corrupt>,
    /// Absent: nothing changes with time.
    pub timeline: Option<report_time::TimelineReport>,
    pub slot: Option<Slot>,
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
        // The queue stays what it is, whichever phase it is.
        let backlog = self.maps.state_of(own.bottleneck, direction)?;
        let rate_bit_s = in_force.rate_bit_s();
        let wanted = self.wanted(in_force.number, direction);
        // Without `..`: what a link has is shown.
        let Link {
            rate,
            overhead,
            neighbours,
            shared: _,
            state,
            wire,
            queue,
            delay,
            loss,
            reorder,
            duplicate,
            corrupt,
            trace: _,
            slot,
        } = in_force.decode(self.maps, direction, wanted)?;
        Ok(LinkReport {
            rate_bit_s,
            overhead_bytes: overhead,
            wire,
            queue: rate.map(|_| Queue {
                packets: Some(queue.limit_packets()).filter(|packets| *packets > 0),
                ..queue
            }),
            shared: (self.wanted(number, direction)).and_then(|l| l.shared.clone()),
            ecn_above_ns: queue.ecn_above_ns,
            aqm: queue.aqm,
            backlog_ns: match rate_bit_s {
                Some(_) => backlog.busy_until.saturating_sub(self.now_ns),
                None => 0,
            },
            delay,
            reorder,
            loss: loss.share(),
            neighbours,
            counters: counters(&*self.maps.counters_of(number, direction)?),
            state,
            loss_model: (!loss.is_none()).then_some(loss),
            duplicate: (duplicate.probability > 0.0).then_some(duplicate),
            corrupt: (corrupt.probability > 0.0).then_some(corrupt),
            timeline: moment.map(|m| m.report),
            slot,
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

    fn decode(
        &self,
        maps: &Maps,
        direction: u32,
        wanted: Option<&Link>,
    ) -> Result<Link, DatapathError> {
        let still = self.sets(abi::EMUD_SET_JITTER) && self.row.jitter == 0;
        let delays: Option<Vec<u64>> = match self.link.flags & abi::EMUD_F_JITTER {
            0 => None,
            _ if still => None,
            _ => {
                let table = maps.table_of(self.number, direction)?;
                let delays = table.delay_ns.iter().map(|own| self.delayed_ns(*own));
                Some(delays.collect())
            }
        };
        let pattern = match self.link.loss_model {
            abi::EMUD_LOSS_PATTERN => Some(maps.pattern_of(self.number, direction)?),
            _ => None,
        };
        let beside = Beside {
            delays: delays.as_deref(),
            mean_ns: self.mean_ns(),
            pattern: pattern.as_deref(),
            wanted,
        };
        Ok(decode(&self.link, beside))
    }
}

fn or_none<S: Serializer>(queue: &Option<Queue>, to: S) -> Result<S::Ok, S::Error> {
    match queue {
        Some(limits) => limits.serialize(to),
        None => to.serialize_str("none"),
    }
}
