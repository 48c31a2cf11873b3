// SPDX-License-Identifier: MIT OR Apache-2.0
//! A link's figures in force: those of its phase's link, under those of its row.

use schemars::JsonSchema;
use serde::Serialize;

use super::counters::{Counters, counters_of};
use super::time as report_time;
use super::time::rate_bit_s;
use crate::abi;
use crate::datapath::maps::{DatapathError, Maps};
use crate::datapath::segments::decides;
use crate::datapath::stage::compile::{Beside, decode};
use crate::profile::{
    Aqm, Background, Corrupt, Delay, Duplicate, Link, LinkState, Loss, Neighbours, Profile, Queue,
    Reordering, Slot, Wire,
};

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
    pub queue: QueueInForce,
    /// Name of the queue that several links share; null: the queue of this link alone.
    #[schemars(length(min = 1))]
    pub shared: Option<String>,
    /// Class of a bottleneck in which the packets wait that no rule puts into another; null: none.
    pub class: Option<String>,
    /// Packets that wait longer are marked, in ns; null: none.
    pub ecn_above_ns: Option<u64>,
    /// Active queue management; null: none.
    pub aqm: Option<Aqm>,
    /// Time until the last packet of the queue has left the wire, in ns. Packets of a background that
    /// came after the last packet are not included. null: not known, since the link has several queues (`per`, a
    /// matrix).
    pub backlog_ns: Option<u64>,
    /// What is in the queue; `None`: no limit, or not known (several queues, opportunities of a trace).
    #[serde(skip)]
    pub backlog_bytes: Option<u64>,
    /// Delay in force.
    pub delay: Delay,
    /// Packets that are sent without delay, to overtake others; null: none.
    pub reorder: Option<Reordering>,
    /// Long-run share of lost packets; null: it depends on their length.
    #[schemars(range(min = 0, max = 1))]
    pub loss: Option<f64>,
    /// Treatment of ARP, neighbour discovery and PTP event messages.
    pub neighbours: Neighbours,
    /// Counters since attach. Packets are wire packets: a super-packet counts for those in it.
    pub counters: Counters,
    /// Whether packets are decided one by one: all packets of a super-packet then have one fate.
    pub one_by_one: bool,
    /// "down": every packet is lost.
    pub state: LinkState,
    /// Loss model; null: nothing is lost. A row with a loss is "bernoulli".
    pub loss_model: Option<Loss>,
    /// Packets that arrive twice; null: none.
    pub duplicate: Option<Duplicate>,
    /// Packets that arrive damaged; null: none.
    pub corrupt: Option<Corrupt>,
    /// Probability that a TCP packet becomes a reset; null: none does.
    pub reset: Option<f64>,
    /// Changes with time; null: none.
    pub timeline: Option<report_time::TimelineReport>,
    /// Departures in slots; null: at any time.
    pub slot: Option<Slot>,
    /// Traffic that takes a part of the queue and of the wire; null: none.
    pub background: Option<BackgroundInForce>,
}

/// A background, and the load of its random times.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BackgroundInForce {
    /// Keys of the profile's table `background`.
    #[serde(flatten)]
    pub configured: Background,
    /// Mean share of the rate in a period, which random times make different from `load`.
    #[schemars(range(min = 0))]
    pub drawn_load: f64,
    /// Time in s after which it repeats.
    #[schemars(range(min = 0))]
    pub period_s: f64,
}

impl BackgroundInForce {
    fn of(figures: &abi::emud_background, configured: Background) -> Self {
        let period_ns = figures.period_ns as f64;
        Self {
            configured,
            drawn_load: figures.packets as f64 * figures.service_ns as f64 / period_ns,
            period_s: period_ns / 1e9,
        }
    }
}

/// The limits of a queue.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueueInForce {
    /// No rate, so nothing ever waits.
    None,
    /// Limits, all of which apply.
    #[serde(untagged)]
    Limits(Queue),
}

/// Where links are read from.
pub(crate) struct Reader<'a> {
    pub maps: &'a Maps,
    /// Which generation is read.
    pub control: abi::emud_control,
    /// The profile, for what no map contains: names, and the source of a table.
    pub profile: Option<&'a Profile>,
    pub now_ns: u64,
}

/// The figures of a link that change with time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    pub rate_bit_s: Option<f64>,
    pub backlog: Backlog,
    pub down: bool,
}

/// The queue of a link. Without figures: there are several, of instances or pairs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Backlog {
    /// Time until its last packet has left the wire.
    pub ns: Option<u64>,
    /// Bytes that the rate sends in this time, over all rows of a trace until then. `None`: no limit, or
    /// opportunities, which packets need not fill.
    pub bytes: Option<u64>,
}

/// The figures that a packet would meet now.
struct InForce {
    /// The link whose table this is: in a phase not the requested one.
    number: u32,
    link: abi::emud_link,
    /// Its `set` says which of its fields are in force.
    row: abi::emud_row,
}

impl Reader<'_> {
    /// Returns the link of a number, as it is now.
    pub fn link(&self, number: u32, direction: u32) -> Result<LinkReport, DatapathError> {
        let (moment, in_force, backlog) = self.now(number, direction)?;
        let rate_bit_s = in_force.rate_bit_s();
        // The queue stays that of the link itself in every phase.
        let configured = self.wanted(number, direction);
        let wanted = self.wanted(in_force.number, direction);
        let pairs = self.profile.is_none_or(|profile| profile.matrix.is_some());
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
            reset,
            trace: _,
            slot,
            background,
            class,
        } = in_force.decode(self.maps, direction, wanted)?;
        Ok(LinkReport {
            rate_bit_s,
            overhead_bytes: overhead,
            wire,
            queue: match rate {
                None => QueueInForce::None,
                Some(_) => QueueInForce::Limits(Queue {
                    packets: Some(queue.limit_packets()).filter(|packets| *packets > 0),
                    ..queue
                }),
            },
            shared: configured.and_then(|link| link.shared.clone()),
            class,
            ecn_above_ns: queue.ecn_above_ns,
            aqm: queue.aqm,
            backlog_ns: backlog.ns,
            backlog_bytes: backlog.bytes,
            delay,
            reorder,
            loss: loss.share(),
            neighbours,
            counters: counters_of(self.maps, number, direction)?,
            one_by_one: pairs || configured.into_iter().chain(wanted).any(decides),
            state,
            loss_model: (!loss.is_none()).then_some(loss),
            duplicate: (duplicate.probability > 0.0).then_some(duplicate),
            corrupt: (corrupt.probability > 0.0).then_some(corrupt),
            reset: (reset > 0.0).then_some(reset),
            timeline: moment.map(|m| m.report),
            slot,
            background: background
                .filter(|_| in_force.link.background.count > 0)
                .map(|configured| BackgroundInForce::of(&in_force.link.background, configured)),
        })
    }

    /// Returns the figures of a link that change with time, without what takes longer to read.
    pub fn figures(&self, number: u32, direction: u32) -> Result<Figures, DatapathError> {
        let (_, in_force, backlog) = self.now(number, direction)?;
        Ok(Figures {
            rate_bit_s: in_force.rate_bit_s(),
            backlog,
            down: in_force.link.flags & abi::EMUD_F_DOWN != 0,
        })
    }

    /// Returns where in time a link is, what is in force there, and its queue.
    fn now(
        &self,
        number: u32,
        direction: u32,
    ) -> Result<(Option<report_time::Moment>, InForce, Backlog), DatapathError> {
        let own = self.maps.link_at(self.control, number, direction)?;
        let moment = report_time::moment(self.maps, &own, self.profile, self.now_ns)?;
        let row = moment.as_ref().map(|m| m.row);
        let in_force = InForce::of(self, number, direction, own, row)?;
        if (self.profile).is_none_or(|profile| profile.has_more_queues(number, direction)) {
            return Ok((moment, in_force, Backlog::default()));
        }
        let Some(rate_bit_s) = in_force.rate_bit_s() else {
            // Packets of a class wait in its bottleneck.
            let waits = (self.wanted(number, direction)).is_some_and(|link| link.class.is_some());
            let ns = (!waits).then_some(0);
            return Ok((moment, in_force, Backlog { ns, bytes: None }));
        };
        // The queue stays what it is, whichever phase it is.
        let state = self.maps.state_of(own.bottleneck, direction)?;
        let ns = state.busy_until.saturating_sub(self.now_ns);
        let bytes = match &moment {
            None => Some(rate_bit_s * ns as f64 / 8e9),
            Some(_) if ns == 0 => Some(0.0),
            Some(moment) => {
                let end = report_time::moment(self.maps, &own, self.profile, state.busy_until)?;
                end.and_then(|end| end.sent_since(moment, rate_bit_s * ns as f64 / 8e9))
            }
        };
        let (ns, bytes) = (Some(ns), bytes.map(|bytes| bytes.round() as u64));
        Ok((moment, in_force, Backlog { ns, bytes }))
    }

    fn wanted(&self, number: u32, direction: u32) -> Option<&Link> {
        (self.profile?.links_of(direction)).nth(number as usize)
    }
}

impl InForce {
    fn of(
        reader: &Reader,
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
            phase => (
                phase,
                reader.maps.link_at(reader.control, phase, direction)?,
            ),
        };
        // A link that is down is so in all its phases: as emud_stages() of bpf/link.bpf.c.
        link.flags |= own.flags & abi::EMUD_F_DOWN;
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

    /// Returns the delay in force for a delay of the link's table, as emud_delay_ns() of bpf/delay.h.
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
