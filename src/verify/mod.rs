// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks whether the link behaves as requested: sends probes through the live link and judges them
//! against the numbers that the classifier runs, or against a different profile.
//!
//! requested (`theory`) and chance (`simulate`) -> `judge` <- measured (`probe` over `port`s that
//! `responder` opens). docs/verify.md describes what is judged and how.

mod binomial;
mod bottleneck;
mod cdf;
mod check;
mod class;
mod classes;
mod error;
mod icmp;
mod judge;
mod outcome;
mod port;
mod probe;
mod requested;
mod responder;
mod shares;
mod simulate;
pub(crate) mod splitmix;
mod table;
mod theory;
mod thinning;
mod unjudged;

use std::net::IpAddr;
use std::thread;

pub use cdf::Cdf;
pub use check::{Check, CheckVerdict, FALSE_ALARM, Unit, What};
pub use classes::{OfBottlenecks, class_table, classes};
pub use error::VerifyError;
pub use requested::compiled;
pub(crate) use simulate::moments;

pub use outcome::{Curve, Method, Outcome, VERIFY_SCHEMA};
pub use shares::{Sample, ShareCheck, judge};
pub use table::table;
pub use theory::Asked;
pub use unjudged::DEPENDENT_LOSS;

pub(crate) use binomial::clopper_pearson;

use crate::host::random;
use crate::profile::{Profile, Time};
use bottleneck::Bottleneck;
use icmp::Icmp;
use judge::Judge;
use port::Port;
use probe::{Plan, SHORT_PAYLOAD, Stream, Udp, Wire, long_payload, wire_bytes};
use requested::Links;

/// Distance between two probes: short enough for 5,000 of them in the default time.
const INTERVAL_NS: f64 = 5e6;
/// Probes use up to this share of the rate.
const LOAD: f64 = 0.1;
/// Ratio of the train's rate to the rate of the slowest queue.
const OVERLOAD: f64 = 1.3;
/// If losses before the queue leave less of the train than this, it is too slow, and the rate is
/// not measured.
const LEAST_AHEAD: f64 = 0.05;
/// Share of the duration for the train.
const TRAIN_SHARE: f64 = 1.0 / 6.0;
const TRAIN_MOST: f64 = 200_000.0;
/// Of classes these are 20 samples.
const LEAST_NS: u64 = 1_000_000_000;
/// Time to wait for stragglers, beyond the longest delay.
const GRACE_NS: f64 = 0.5e9;
/// The same if the delay is not known.
const UNKNOWN_NS: f64 = 3e9;

/// A request to verify a link.
#[derive(Debug, Clone)]
pub struct Request {
    /// Name of the interface, or an alternative one.
    pub interface: String,
    /// The namespace of the other end, which makes it possible to measure each direction
    /// separately.
    pub peer_netns: Option<String>,
    /// Address of the other end; `None`: that of the peer's namespace.
    pub peer: Option<IpAddr>,
    /// The profile to judge against, instead of the active one.
    pub against: Option<Profile>,
    /// Time to measure for.
    pub duration_ns: u64,
    /// The permitted error of a delay because of the machine and the path.
    pub resolution_ns: u64,
}

/// Sends the probes, waits for them, and judges; `progress` is called at each step.
///
/// # Errors
/// Nothing is attached, or no probes can be sent. A property that cannot be measured is not an
/// error, but reported in the outcome.
pub fn verify(request: &Request, progress: &dyn Fn(&'static str)) -> Result<Outcome, VerifyError> {
    long_enough(request.duration_ns)?;
    let links = Links::read(request)?;
    let mut outcome = match (&request.peer_netns, request.peer) {
        (Some(netns), peer) => one_way(request, &links, netns, peer, progress)?,
        (None, Some(peer)) => round_trip(request, &links, peer, progress)?,
        (None, None) => return Err(VerifyError::NoPeer),
    };
    outcome.notes.extend(links.waiting(request.resolution_ns));
    Ok(outcome)
}

fn long_enough(duration_ns: u64) -> Result<(), VerifyError> {
    if duration_ns < LEAST_NS {
        return Err(VerifyError::TooShort(Time(duration_ns).to_string()));
    }
    Ok(())
}

fn one_way(
    request: &Request,
    links: &Links,
    netns: &str,
    peer: Option<IpAddr>,
    progress: &dyn Fn(&'static str),
) -> Result<Outcome, VerifyError> {
    let ends = responder::open(&links.interface, netns, peer)?;
    let mut outcome = Outcome::new(request, links, Method::OneWay, ends.peer);
    let way = |direction, from, to, asked| Way {
        direction,
        from,
        to,
        wire: &Udp,
        ways: vec![asked],
    };
    let ways: Vec<Way> = [
        (&links.up, "up", &ends.here, &ends.there),
        (&links.down, "down", &ends.there, &ends.here),
    ]
    .into_iter()
    .filter_map(|(asked, name, from, to)| {
        let judged = asked.as_ref().filter(|asked| !asked.nothing_judged());
        Some(way(name, from, to, judged?))
    })
    .collect();
    measure(
        &ways,
        links,
        links.mtu.min(ends.mtu),
        &mut outcome,
        progress,
    )?;
    Ok(outcome)
}

fn round_trip(
    request: &Request,
    links: &Links,
    peer: IpAddr,
    progress: &dyn Fn(&'static str),
) -> Result<Outcome, VerifyError> {
    let port = responder::open_icmp(&links.interface, peer)?;
    let mut outcome = Outcome::new(request, links, Method::RoundTrip, peer);
    let icmp = Icmp::new(peer, random_id()? as u16);
    let way = Way {
        direction: "both",
        from: &port,
        to: &port,
        wire: &icmp,
        ways: links.up.iter().chain(&links.down).collect(),
    };
    measure(&[way], links, links.mtu, &mut outcome, progress)?;
    let all_lost = |c: &Check| c.what == What::Loss && c.measured == Some(1.0);
    if outcome.checks.iter().any(all_lost) && !links.may_lose_all() {
        return Err(VerifyError::NoAnswer { peer });
    }
    Ok(outcome)
}

/// A direction, or the round trip.
struct Way<'a> {
    direction: &'static str,
    from: &'a Port,
    to: &'a Port,
    wire: &'a dyn Wire,
    ways: Vec<&'a Asked>,
}

fn measure(
    ways: &[Way],
    links: &Links,
    mtu: u32,
    outcome: &mut Outcome,
    progress: &dyn Fn(&'static str),
) -> Result<(), VerifyError> {
    let bytes = |payload| wire_bytes(payload, outcome.peer, links.l3);
    let long_payload = train_payload(ways, mtu, outcome)?;
    let (short, long) = (bytes(SHORT_PAYLOAD), bytes(long_payload));
    let duration_ns = outcome.duration_s * 1e9;
    let mut paced = Vec::new();
    let mut trains = Vec::new();
    for way in ways {
        paced.push(Some(way.pace(short, duration_ns * (1.0 - TRAIN_SHARE))?));
        let judged = way.ways.iter().all(|w| w.unjudged(What::Rate).is_none());
        let train = way.saturate(long_payload, long, duration_ns * TRAIN_SHARE)?;
        trains.push(train.filter(|_| judged));
    }
    let sent = send(ways, (&paced, &trains), links, &outcome.interface, progress);
    // Another link, or none, explains also why nothing could be sent.
    links.unchanged(&outcome.interface)?;
    let Streams { small, late, large } = sent?;
    // Judging takes time, in which the link may go.
    let failures = links.failures(&outcome.interface)?;
    progress("judging");
    for (i, way) in ways.iter().enumerate() {
        let judge = Judge {
            direction: way.direction,
            ways: way.ways.clone(),
            probe_bytes: short,
            train_bytes: long,
            resolution_ns: outcome.resolution_ns as f64,
            late_share: late[i],
            runs: simulate::RUNS,
        };
        if let (Some(plan), Some(stream)) = (paced[i], &small[i]) {
            outcome
                .checks
                .extend(judge.paced(stream, &judge.chance(plan, stream)));
            outcome.curves.push(judge.curve(stream));
            outcome.notes.extend(judge.note(plan, stream));
        }
        if let (Some(plan), Some(stream), Some(paced)) = (trains[i], &large[i], &small[i]) {
            outcome.checks.extend(judge.train(plan, stream, paced));
        } else {
            outcome.checks.extend(judge.rate_unjudged());
        }
    }
    outcome.notes.extend(failures);
    outcome.conclude();
    Ok(())
}

struct Streams {
    small: Vec<Option<Stream>>,
    /// Share of the packets that the engine released late.
    late: Vec<f64>,
    large: Vec<Option<Stream>>,
}

fn send(
    ways: &[Way],
    (paced, trains): (&[Option<Plan>], &[Option<Plan>]),
    links: &Links,
    interface: &str,
    progress: &dyn Fn(&'static str),
) -> Result<Streams, VerifyError> {
    let warm: Result<Vec<_>, _> = ways.iter().map(|way| way.warm_up().map(Some)).collect();
    // Resolves the neighbours.
    progress("finding the other end");
    run(ways, &warm?)?;
    progress("small probes: delay, loss, order");
    let small = run(ways, paced)?;
    let late = ways
        .iter()
        .map(|way| links.late_share(interface, way.direction));
    let late = late.collect::<Result<_, _>>()?;
    if trains.iter().any(Option::is_some) {
        progress("a train faster than the link: rate");
    }
    let large = run(ways, trains)?;
    Ok(Streams { small, late, large })
}

/// As long as the MTU permits; without a rate there is no train.
fn train_payload(ways: &[Way], mtu: u32, outcome: &Outcome) -> Result<usize, VerifyError> {
    let limited = |way: &Way| way.ways.iter().any(|w| w.rate_bit_s.is_some());
    match long_payload(mtu, outcome.peer) {
        Some(payload) => Ok(payload),
        None if !ways.iter().any(limited) => Ok(SHORT_PAYLOAD),
        None => Err(VerifyError::SmallMtu {
            interface: outcome.interface.clone(),
            mtu,
        }),
    }
}

fn run(ways: &[Way], plans: &[Option<Plan>]) -> Result<Vec<Option<Stream>>, VerifyError> {
    thread::scope(|scope| {
        let running: Vec<_> = ways
            .iter()
            .zip(plans)
            .map(|(way, plan)| {
                plan.map(|plan| scope.spawn(move || probe::run(way.from, way.to, way.wire, plan)))
            })
            .collect();
        running
            .into_iter()
            .map(|thread| match thread {
                Some(thread) => thread.join().map_err(|_| VerifyError::Thread)?.map(Some),
                None => Ok(None),
            })
            .collect()
    })
}

impl Way<'_> {
    fn serialisation_ns(&self, bytes: usize) -> f64 {
        let each = self.ways.iter().map(|w| w.serialisation_ns(bytes));
        each.fold(0.0, f64::max)
    }

    /// Returns the time after which a probe counts as lost.
    fn longest_ns(&self) -> f64 {
        // One in 3.5 million is later.
        let each = self.ways.iter().map(|w| w.delay_ns(5.0));
        let known = self
            .ways
            .iter()
            .all(|w| w.unjudged(What::DelayMean).is_none());
        each.sum::<f64>() + if known { GRACE_NS } else { UNKNOWN_NS }
    }

    fn warm_up(&self) -> Result<Plan, VerifyError> {
        Ok(Plan {
            id: random_id()?,
            count: 3,
            interval_ns: 100_000_000,
            payload: SHORT_PAYLOAD,
            wait_ns: self.longest_ns() as u64,
            catches_up: false,
        })
    }

    fn pace(&self, bytes: usize, duration_ns: f64) -> Result<Plan, VerifyError> {
        let interval_ns = INTERVAL_NS.max(self.serialisation_ns(bytes) / LOAD);
        Ok(Plan {
            id: random_id()?,
            count: (duration_ns / interval_ns).max(2.0) as u32,
            interval_ns: interval_ns as u64,
            payload: SHORT_PAYLOAD,
            wait_ns: (self.longest_ns() + 2.0 * self.serialisation_ns(bytes)) as u64,
            catches_up: false,
        })
    }

    /// `None`: there is no rate.
    fn saturate(
        &self,
        payload: usize,
        bytes: usize,
        duration_ns: f64,
    ) -> Result<Option<Plan>, VerifyError> {
        let Some(bottleneck) = Bottleneck::of(&self.ways, bytes) else {
            return Ok(None);
        };
        let each_ns = bottleneck.way.serialisation_ns(bytes);
        let ahead = bottleneck.ahead.max(LEAST_AHEAD);
        Ok(Some(Plan {
            id: random_id()?,
            count: (duration_ns / each_ns / ahead).clamp(2.0, TRAIN_MOST) as u32,
            interval_ns: (each_ns * ahead / OVERLOAD) as u64,
            payload,
            wait_ns: (self.longest_ns() + duration_ns.max(2.0 * each_ns)) as u64,
            catches_up: true,
        }))
    }
}

fn random_id() -> Result<u64, VerifyError> {
    let what = "random number";
    let bytes = random().map_err(|source| VerifyError::Socket { what, source })?;
    Ok(u64::from_ne_bytes(bytes))
}
