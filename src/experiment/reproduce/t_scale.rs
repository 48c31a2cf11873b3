// SPDX-License-Identifier: MIT OR Apache-2.0
//! T: 34 classes of links at a high rate of packets. What does not arrive was lost by the profile of
//! its link; the emulator itself loses nothing.

use emud_monitor::log::{Counted, RunVerdict};

use super::counts::Counts;
use super::live::Variant;
use super::netem::Netem;
use super::t_links::MOBILE;
use super::{Bench, Experiment, Figure, ReproduceError, Tolerance, t_tree};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "t-scale",
    description: "34 classes of links at 20,000, 85,000 and 100,000 packets/s, and what is lost beyond their loss",
    source: t_tree::EXPERIMENT.source,
    method: "packets of 1,492 and 242 bytes for 30 s (--quick: 5 s of 20,000 packets/s) through the scenario t-scale; \
             counted are what was sent, what arrived, and what links, queues and sockets lost. With --netem each run again \
             with 34 stock netems under HTB, whose losses and drops the kernel does not count apart",
    scenarios: &["t-scale"],
    thresholds: None,
    measure,
};

/// Packets/s that a machine with 2 CPUs must carry, and so send, however many more it should.
const CARRIED: u32 = 20_000;
/// Of the source, and whether a machine with 2 CPUs must carry it.
const RATES: [(u32, bool); 3] = [(CARRIED, true), (85_000, false), (100_000, false)];
/// IP packets, bytes.
const SIZES: [u32; 2] = [1492, 242];
const CLASSES: u16 = 34;
/// Below that of the first class.
const PORTS: u16 = 6000;
/// A correct link is outside this number of standard errors in 1 of 15,000 runs.
const ERRORS: f64 = 4.0;
/// The same for 34 classes.
const CLASS_ERRORS: f64 = 5.0;
/// Headers of IP and UDP.
const HEADERS: u32 = 28;
/// Most loss of the source beyond that of the profiles, %.
const BEYOND: f64 = 0.01;
/// The classes with stock netem, as in the source.
const TREE: &str = "\
    tc qdisc add dev wire root handle 1: htb || exit; \
    for class in $(seq 34); do \
        minor=1:$(printf %x $class); \
        tc class add dev wire parent 1: classid $minor htb rate 10gbit quantum 1514 && \
        tc qdisc add dev wire parent $minor netem limit 100000 delay 200ms 50ms loss 0.5% && \
        tc filter add dev wire parent 1: protocol ip u32 match ip dst 10.1.$class.0/24 flowid $minor || exit; \
    done";
const FEWER: &str =
    "sender, engine and receiver share the CPUs of this host, which cannot send so many packets";
const OVERFLOW: &str = "at this rate the engine or the receiver does not get enough of the CPUs of this host, and a \
                        queue overflows, which counts it";

fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
    let mut figures = vec![];
    for (rate, carried) in RATES {
        if bench.quick && !carried {
            break;
        }
        for size in SIZES {
            let seconds = if bench.quick { 5 } else { 30 };
            let title = format!("{rate} packets/s of {size} bytes");
            let variant = Variant {
                title: &title,
                scenario: "t-scale",
                env: &[
                    ("PPS", rate.to_string()),
                    ("PACKETS", (rate * seconds).to_string()),
                    ("SIZE", (size - HEADERS).to_string()),
                ],
                counted: true,
                ..Variant::default()
            };
            let counts = match carried {
                true => bench.run(&variant)?,
                false => bench.overloaded(&variant, &bench.settings.config)?,
            };
            let netem = bench.with_netem(&variant, Netem::Command(TREE))?;
            let [sent, lost, beyond, uncounted, classes] = judged(&title, rate, carried, &counts);
            let packets = netem.as_ref().and_then(Packets::of_netem);
            let packets = packets.as_ref();
            figures.extend([
                sent.netem(netem.as_ref().and_then(Counts::sending_rate)),
                lost,
                beyond.netem(packets.map(|packets| 100.0 * packets.shares()[1])),
                uncounted,
                classes.netem(packets.map(|packets| packets.as_asked() as f64)),
            ]);
        }
    }
    Ok(figures)
}

#[derive(Debug, Clone, Default)]
struct Packets {
    /// Sent and arrived of each class.
    classes: Vec<[u64; 2]>,
    /// In one direction of the link.
    link: Counted,
    /// Without room in the sockets of the receiver.
    overflowed: u64,
    /// As in [`Counts`].
    only_dropped: Option<RunVerdict>,
}

impl Packets {
    /// `None`: a class was not sent or not received.
    fn of(counts: &Counts) -> Option<Self> {
        Some(Self {
            classes: classes(counts)?,
            link: *counts.link("wire", "up")?,
            overflowed: counts.overflowed(),
            only_dropped: counts.only_dropped,
        })
    }

    /// Of a run with netem, which does not count what it loses: as many as it should lose.
    fn of_netem(counts: &Counts) -> Option<Self> {
        let mut packets = Self {
            classes: classes(counts)?,
            ..Self::default()
        };
        packets.link.lost = (packets.sum(0) * MOBILE.loss).round() as u64;
        Some(packets)
    }

    fn sum(&self, of: usize) -> f64 {
        self.classes.iter().map(|class| class[of]).sum::<u64>() as f64
    }

    /// Returns the share that the links lost, share that did not arrive beyond that, and share of the latter that
    /// no counter has.
    fn shares(&self) -> [f64; 3] {
        let (sent, link) = (self.sum(0), &self.link);
        let beyond = sent - self.sum(1) - link.lost as f64;
        let uncounted = beyond - self.in_queues() as f64;
        [link.lost as f64 / sent, beyond / sent, uncounted / sent]
    }

    /// Returns how many were dropped in full queues and sockets.
    fn in_queues(&self) -> u64 {
        self.link.dropped + self.link.engine_dropped + self.overflowed
    }

    /// Returns whether a class lost less than its link loses, which no overflow explains.
    fn loses_too_little(&self) -> bool {
        self.beyond_loss().any(|of| of < -1.0)
    }

    /// Classes of which as many packets are missing as their link loses.
    fn as_asked(&self) -> usize {
        self.beyond_loss().filter(|of| of.abs() <= 1.0).count()
    }

    /// Missing packets of each class beyond those that its link loses, in the most that is accepted.
    fn beyond_loss(&self) -> impl Iterator<Item = f64> {
        self.classes.iter().map(|[sent, arrived]| {
            let sent = *sent as f64;
            let lost = 1.0 - *arrived as f64 / sent;
            (lost - MOBILE.loss) / (CLASS_ERRORS * error(sent))
        })
    }
}

fn classes(counts: &Counts) -> Option<Vec<[u64; 2]>> {
    let classes = (1..=CLASSES).map(|class| {
        let port = PORTS + class;
        Some([counts.sent(port)?.packets, counts.received(port)?.packets])
    });
    classes.collect()
}

/// Returns the standard error of the share lost.
fn error(sent: f64) -> f64 {
    (MOBILE.loss * (1.0 - MOBILE.loss) / sent.max(1.0)).sqrt()
}

fn judged(title: &str, rate: u32, carried: bool, counts: &Counts) -> [Figure; 5] {
    let packets = Packets::of(counts);
    let run = counts.verdict;
    figures(title, rate, carried, packets, counts.sending_rate(), run)
}

fn figures(
    title: &str,
    rate: u32,
    carried: bool,
    packets: Option<Packets>,
    sent_s: Option<f64>,
    run: RunVerdict,
) -> [Figure; 5] {
    // What the engine drops makes a run invalid, and is one of the counters.
    let only_dropped = packets.as_ref().and_then(|packets| packets.only_dropped);
    let run = Some(match (run, only_dropped) {
        (RunVerdict::Invalid, Some(without)) if !carried => without,
        (other, _) => other,
    });
    let rate = f64::from(rate);
    let sent = packets.as_ref().map_or(1.0, |packets| packets.sum(0));
    let shares = packets.as_ref().map(Packets::shares);
    let percent = |of: usize| shares.map(|shares| 100.0 * shares[of]);
    let speed = Figure::new(format!("{title}: sent"), "packets/s").published(rate);
    let lost = Figure::new(format!("{title}: lost by the links"), "%").theory(100.0 * MOBILE.loss);
    let lost = lost.within(Tolerance::Absolute(100.0 * ERRORS * error(sent)));
    let beyond = Figure::new(format!("{title}: lost beyond that"), "%").published(BEYOND);
    let beyond = beyond.theory(0.0).within(Tolerance::Absolute(BEYOND));
    let classes = Figure::new(format!("{title}: classes with their loss"), "1");
    let classes = classes.theory(f64::from(CLASSES));
    let classes = classes.within(Tolerance::Absolute(0.0));
    let uncounted = Figure::new(format!("{title}: lost, but counted nowhere"), "%").theory(0.0);
    let uncounted = uncounted.within(Tolerance::Absolute(BEYOND));
    let speed = match carried {
        true => speed,
        false => speed.known(f64::from(CARRIED), rate, FEWER),
    };
    let overflowed = packets.as_ref().filter(|of| !carried && of.in_queues() > 0);
    let beyond = match overflowed {
        Some(_) => beyond.known(BEYOND, 100.0, OVERFLOW),
        None => beyond,
    };
    let classes = match overflowed {
        Some(of) if !of.loses_too_little() => classes.known(0.0, f64::from(CLASSES), OVERFLOW),
        _ => classes,
    };
    let as_asked = packets.as_ref().map(|packets| packets.as_asked() as f64);
    [
        speed.measured(sent_s, run),
        lost.measured(percent(0), run),
        beyond.measured(percent(1), run),
        uncounted.measured(percent(2), run),
        classes.measured(as_asked, run),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::reproduce::FigureVerdict;

    fn packets() -> Packets {
        Packets {
            classes: vec![[10_000, 9_950]; usize::from(CLASSES)],
            link: Counted {
                packets: 340_000,
                lost: 1_700,
                ..Counted::default()
            },
            overflowed: 0,
            only_dropped: Some(RunVerdict::Clean),
        }
    }

    /// The verdict of a run is that of the sampler: drops of the engine make it invalid.
    fn verdicts(packets: Packets, carried: bool) -> [FigureVerdict; 5] {
        let run = match packets.link.engine_dropped {
            0 => RunVerdict::Clean,
            _ => RunVerdict::Invalid,
        };
        let of = figures("x", 20_000, carried, Some(packets), Some(2e4), run);
        of.map(|figure| figure.verdict)
    }

    #[test]
    fn what_a_queue_drops_is_counted_and_what_disappears_is_not() {
        use FigureVerdict::{Deviates, Explained, Within};
        assert_eq!(verdicts(packets(), true), [Within; 5]);
        let mut dropped = packets();
        dropped.classes[3][1] -= 1_000;
        for carried in [false, true] {
            let disappeared = verdicts(dropped.clone(), carried);
            assert_eq!(disappeared[2..], [Deviates; 3]);
        }
        let mut before_the_link = dropped.clone();
        before_the_link.link.packets -= 1_000;
        assert_eq!(verdicts(before_the_link, false)[2..], [Deviates; 3]);
        let all: [fn(&mut Packets); 3] = [
            |all| all.link.dropped += 1_000,
            |all| all.link.engine_dropped += 1_000,
            |all| all.overflowed += 1_000,
        ];
        for counted in all {
            let mut dropped = dropped.clone();
            counted(&mut dropped);
            let of = verdicts(dropped, false);
            assert_eq!(of[2..], [Explained, Within, Explained]);
        }
        dropped.link.engine_dropped += 1_000;
        assert_eq!(verdicts(dropped.clone(), true), [FigureVerdict::Invalid; 5]);
        // The host lacked something, too.
        dropped.only_dropped = Some(RunVerdict::Contended);
        assert_eq!(
            verdicts(dropped.clone(), false),
            [FigureVerdict::Contended; 5]
        );
        // It failed for another reason, too.
        dropped.only_dropped = None;
        assert_eq!(verdicts(dropped, false), [FigureVerdict::Invalid; 5]);
    }

    /// As a packet that takes the default link.
    #[test]
    fn a_class_without_its_loss_is_found() {
        let mut one = packets();
        one.classes[7][1] = 10_000;
        one.link.lost -= 50;
        for carried in [true, false] {
            let of = verdicts(one.clone(), carried);
            assert_eq!(of[4], FigureVerdict::Deviates);
            assert_eq!(of[..4], [FigureVerdict::Within; 4]);
        }
        // A queue that overflows does not deliver more.
        one.classes[3][1] -= 1_000;
        one.overflowed += 1_000;
        let of = verdicts(one, false);
        assert_eq!(of[2], FigureVerdict::Explained);
        assert_eq!(of[4], FigureVerdict::Deviates);
    }

    #[test]
    fn a_host_sends_at_least_what_it_must_carry() {
        let of = |sent| {
            let run = RunVerdict::Clean;
            figures("x", 85_000, false, Some(packets()), Some(sent), run)[0].verdict
        };
        assert_eq!(of(85_000.0), FigureVerdict::Within);
        assert_eq!(of(50_000.0), FigureVerdict::Explained);
        assert_eq!(of(19_000.0), FigureVerdict::Deviates);
        assert_eq!(of(0.0), FigureVerdict::Deviates);
    }
}
