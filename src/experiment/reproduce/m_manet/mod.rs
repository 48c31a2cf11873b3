// SPDX-License-Identifier: MIT OR Apache-2.0
//! M: a mobile ad hoc network with a routing daemon, against what the positions of its stations allow.

mod graphs;
mod tally;

use tally::{Flow, Reach, Tally};

use super::counts::Counts;
use super::live::{Variant, lacks};
use super::{Bench, Experiment, Figure, ReproduceError, Tolerance, m_contention};
use crate::medium::motion::{RandomWaypoint, Track};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "m-manet",
    description: "Fifty radios that move, babeld, twenty flows: delivery ratio and routing packets by speed and pause",
    source: m_contention::EXPERIMENT.source,
    method: "the scenario broch, one motion of 900 s for each speed and pause, beside the paths that its positions allow \
             within 250 m; --quick: 30 nodes on 900 x 300 m for 75 s, at up to 20 m/s without a pause, and without motion",
    scenarios: &["broch"],
    thresholds: None,
    measure,
};

const S: u64 = 1_000_000_000;
const WIDTH_M: f64 = 300.0;
/// 50 nodes have 1,500 m.
const LENGTH_M: f64 = 30.0;
/// Of the motion: the same in all runs.
const SEED: u64 = 1;
/// A flow has the number of its source, from 1.
const PORTS: u16 = 6000;
/// Of babeld; its default. With 1 s its packets fill the channel when 30 stations move.
const HELLO_S: u64 = 4;
/// IPv6, UDP, Babel, and a hello.
const LEAST_BYTES: f64 = 40.0 + 8.0 + 4.0 + 8.0;
/// Of what was sent, in which positions of 100 ms count a link too few.
const ROUNDED: f64 = 0.5;
/// Of packets with a path, without motion: some are sent before the daemons have found it.
const FOUND: f64 = 0.95;
/// babeld prefers links that lost few hellos, so not always the shortest path.
const DETOUR_HOPS: f64 = 1.0;
/// Of the hellos of the interval, which babeld draws by a quarter more or less.
const ALL_HELLOS: f64 = 0.95;
/// In %. Ten times what data and hellos take; from there on broadcasts of hidden stations often collide.
const CROWDED: f64 = 30.0;
/// Of a broadcast: the preamble of 802.11, s; bytes around an IPv6 packet; s for a byte at 1 Mbit/s.
const PREAMBLE_S: f64 = 192e-6;
const AROUND: f64 = 36.0;
const BYTE_S: f64 = 8e-6;
/// Of the time with a carrier, which routing alone takes if it is the reason. Two runs that were not crowded had 53 and 42 %
/// (docs/reproduction.md); the rest is data.
const CAUSED: f64 = 1.0 / 3.0;
/// In %. Of two runs with a crowded channel, one had 24 % and one 11 % (docs/medium.md).
const LEAST_DELIVERED: f64 = 5.0;
const CROWDED_WHY: &str = "babeld's own packets, most of them requests for sequence numbers and updates, fill the \
                           channel of 2 Mbit/s, so that hellos and data wait and are dropped in full queues";
pub(super) const LACKS: &str =
    "routing needs the program babeld: install the Debian package babeld";

#[derive(Debug, Clone, Copy)]
struct Form {
    nodes: u16,
    seconds: u64,
    /// When the first source starts, s.
    first_s: u64,
    /// From one source to the next, s.
    every_s: u64,
    /// Highest ones, m/s.
    speeds: &'static [f64],
    /// With one of `seconds` nothing moves.
    pauses_s: &'static [u64],
}

const FULL: Form = Form {
    nodes: 50,
    seconds: 900,
    first_s: 0,
    every_s: 9,
    speeds: &[20.0, 1.0],
    pauses_s: &[0, 30, 120, 300, 600, 900],
};
const QUICK: Form = Form {
    nodes: 30,
    seconds: 75,
    first_s: 30,
    every_s: 1,
    speeds: &[20.0],
    pauses_s: &[0, 75],
};

fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
    if lacks("babeld") {
        return Ok(vec![Figure::new("delivery ratio", "%").lacking(LACKS)]);
    }
    let form = if bench.quick { QUICK } else { FULL };
    let mut figures = vec![];
    for speed in form.speeds {
        for pause_s in form.pauses_s {
            let moves = *pause_s < form.seconds;
            // Once is enough.
            if !moves && *speed != form.speeds[0] {
                continue;
            }
            let title = match moves {
                true => format!("{speed} m/s, pause {pause_s} s"),
                false => "no motion".to_owned(),
            };
            let tracks = form.tracks(*speed, *pause_s);
            let counts = bench.run(&Variant {
                title: &title,
                scenario: "broch",
                nodes: Some(form.nodes.into()),
                env: &[
                    ("LAST", form.seconds.to_string()),
                    ("FIRST", form.first_s.to_string()),
                    ("EVERY", form.every_s.to_string()),
                    ("HELLO", HELLO_S.to_string()),
                ],
                tracks: &tracks,
                counted: true,
                ..Variant::default()
            })?;
            let reach = Reach::new(&tracks, *speed, form.seconds * S);
            figures.extend(form.figures(&title, &reach, &counts));
        }
    }
    Ok(figures)
}

impl Form {
    fn tracks(self, speed_m_s: f64, pause_s: u64) -> Vec<Track> {
        let motion = RandomWaypoint {
            area_m: [LENGTH_M * f64::from(self.nodes), WIDTH_M],
            // None is so slow that it never arrives.
            speed_m_s: [speed_m_s / 20.0, speed_m_s],
            pause_ns: pause_s * S,
        };
        let stations = 0..u64::from(self.nodes);
        stations
            .map(|n| motion.track(SEED, n, 2 * self.seconds * S))
            .collect()
    }

    /// As in the scenario. None: a sender or a receiver has not counted.
    fn tally(self, reach: &Reach, counts: &Counts) -> Option<Tally> {
        let mut tally = Tally::default();
        for source in 1..=self.nodes * 2 / 5 {
            let received = counts.received(PORTS + source)?;
            let flow = Flow {
                from: usize::from(source - 1),
                to: usize::from((source - 1 + self.nodes / 2) % self.nodes),
                sent: counts.sent(PORTS + source)?,
                arrived: &received.each,
            };
            tally.add(&flow, reach, counts.began_ns);
        }
        Some(tally)
    }

    /// Time that the packets of routing take as broadcasts at the basic rate, in % of the time.
    fn routing_air(self, packets: f64, bytes: f64) -> f64 {
        let air_s = packets * PREAMBLE_S + (AROUND * packets + bytes) * BYTE_S;
        100.0 * air_s / self.seconds as f64
    }

    fn figures(self, title: &str, reach: &Reach, counts: &Counts) -> Vec<Figure> {
        let run = Some(counts.verdict);
        let figure = |name: &str, unit| Figure::new(format!("{title}: {name}"), unit);
        let tally = self.tally(reach, counts).filter(|tally| tally.sent > 0);
        let shares = tally.as_ref().map(|tally| {
            let percent = |packets: u64| 100.0 * packets as f64 / tally.sent as f64;
            [tally.connected, tally.lasting, tally.arrived].map(percent)
        });
        let ratio = figure("delivery ratio", "%");
        let (ratio, connected) = match shares {
            Some([connected, ..]) => (ratio.theory(connected), connected),
            None => (ratio, 100.0),
        };
        let ratio = ratio.within(match (shares, reach.moves) {
            (None, _) => Tolerance::Range(0.0, 100.0),
            (Some([_, lasting, _]), true) => Tolerance::Range(lasting, connected + ROUNDED),
            (Some(_), false) => Tolerance::Range(FOUND * connected, connected),
        });
        let busy = counts.busy().map(|share| 100.0 * share);
        let [sum, bytes_sum] =
            ["routing", "routing-bytes"].map(|metric| counts.sum(metric, self.nodes.into()));
        let carrier = figure("time with a carrier", "%").within(Tolerance::Range(0.0, CROWDED));
        // A reason only if it is one.
        let (ratio, carrier) = match busy.zip(sum).zip(bytes_sum) {
            Some(((busy, packets), bytes))
                if busy > CROWDED && self.routing_air(packets, bytes) >= CAUSED * busy =>
            {
                let known = |figure: Figure, from, to| figure.known(from, to, CROWDED_WHY);
                (
                    known(ratio, LEAST_DELIVERED, connected),
                    known(carrier, CROWDED, 100.0),
                )
            }
            _ => (ratio, carrier),
        };
        let beyond = figure("deliveries that the positions do not allow", "packets").theory(0.0);
        let beyond = beyond.within(Tolerance::Absolute(0.0));
        let detours = figure("hops beyond the shortest path: mean", "hops");
        let detours = detours.within(Tolerance::Range(-DETOUR_HOPS / 10.0, DETOUR_HOPS));
        let hellos = f64::from(self.nodes) * (self.seconds / HELLO_S) as f64;
        let routing = |name: &str, unit, least: f64| {
            figure(name, unit).within(Tolerance::AtLeast(ALL_HELLOS * least))
        };
        let packets = routing("routing packets", "packets", hellos);
        let bytes = routing("routing data", "kB", hellos * LEAST_BYTES / 1e3);
        let impossible = tally.as_ref().map(|tally| tally.impossible as f64);
        let detour = tally.map(|tally| tally.detour_hops as f64 / tally.with_path as f64);
        vec![
            ratio.measured(shares.map(|[.., arrived]| arrived), run),
            beyond.measured(impossible, run),
            detours.measured(detour, run),
            carrier.measured(busy, run),
            packets.measured(sum, run),
            bytes.measured(bytes_sum.map(|bytes| bytes / 1e3), run),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use emud_monitor::log::{RunVerdict, StationCounted, StationSample};

    use super::super::FigureVerdict;
    use super::super::counts::Logged;
    use super::*;
    use crate::experiment::scenario::{Overrides, Program, shipped};
    use crate::experiment::traffic::{Received, Sent};

    const TEST: Form = Form {
        nodes: 5,
        seconds: 20,
        ..QUICK
    };

    fn still(x: f64) -> Track {
        Track::still([x, 0.0])
    }

    fn sent(packets: u64) -> Sent {
        Sent {
            port: PORTS + 1,
            packets,
            unroutable: 0,
            bytes: 64 * packets,
            first_ns: 5 * S,
            last_ns: 25 * S,
        }
    }

    /// Five stations in a row, of which the first and the second send four packets each, and that hear a
    /// carrier for a share of the time; each has sent this many bytes of routing.
    fn verdicts(
        run: RunVerdict,
        arrived: [usize; 2],
        ttls: [u64; 2],
        [busy, routing]: [f64; 2],
    ) -> Vec<FigureVerdict> {
        let reach = Reach::new(
            &[0, 1, 2, 3, 4].map(|n| still(f64::from(n) * 200.0)),
            20.0,
            20 * S,
        );
        let mut log = String::new();
        for (n, (arrived, ttl)) in arrived.into_iter().zip(ttls).enumerate() {
            let port = PORTS + 1 + n as u16;
            let each = vec![[5 * S, 5 * S + 1, ttl]; arrived];
            let sent = serde_json::json!({"sent": Sent { port, ..sent(4) }});
            let received = Received {
                port,
                each,
                ..Received::default()
            };
            let received = serde_json::json!({ "received": received });
            // A long line is in the log in pieces.
            let received = received.to_string();
            let (first, second) = received.split_at(received.len() / 2);
            for (text, partial) in [(&*sent.to_string(), false), (first, true), (second, false)] {
                let line = serde_json::json!({
                    "type": "output", "mono_ns": 1, "node": format!("n{n}"), "stream": "stdout",
                    "text": text, "partial": partial,
                });
                log += &format!("{line}\n");
            }
        }
        for _ in 0..TEST.nodes {
            for (name, value) in [("routing", 20.0), ("routing-bytes", routing)] {
                let line = serde_json::json!({
                    "type": "metric", "mono_ns": 1, "name": name, "value": value, "unit": null,
                });
                log += &format!("{line}\n");
            }
        }
        let sample = StationSample {
            mono_ns: 1,
            medium: "wlan0".to_owned(),
            node: "n1".to_owned(),
            interval_ns: S,
            counted: StationCounted {
                busy_ns: (busy * 1e9) as u64,
                ..StationCounted::default()
            },
            backlog_packets: 0,
            energy_j: None,
            at_m: [0.0; 2],
            neighbours: None,
        };
        let mut line = serde_json::to_value(&sample).unwrap();
        line["type"] = "station".into();
        log += &format!("{line}\n");
        let logged = Logged::parse(&log).unwrap();
        let counts = Counts::of(run, vec![], logged).unwrap();
        let figures = TEST.figures("test", &reach, &counts);
        figures.iter().map(|figure| figure.verdict).collect()
    }

    #[test]
    fn no_more_is_delivered_than_the_positions_allow() {
        use FigureVerdict::{Contended, Deviates, Explained, Within};
        let clean = |arrived, ttls| verdicts(RunVerdict::Clean, arrived, ttls, [0.1, 1_200.0]);
        assert_eq!(clean([4, 4], [63, 63]), [Within; 6]);
        assert_eq!(clean([4, 3], [63, 63])[..2], [Deviates, Within]);
        assert_eq!(clean([4, 5], [63, 63])[..2], [Deviates, Within]);
        assert_eq!(clean([4, 4], [63, 64])[..2], [Within, Deviates]);
        assert_eq!(clean([4, 4], [60, 60])[..3], [Within, Within, Deviates]);
        // A channel that routing fills explains losses, but not all of them, and no packet that cannot have arrived.
        let full =
            |arrived, routing| verdicts(RunVerdict::Clean, arrived, [63, 63], [0.7, routing]);
        assert_eq!(
            full([4, 1], 160_000.0)[..4],
            [Explained, Within, Within, Explained]
        );
        assert_eq!(full([4, 5], 160_000.0)[0], Deviates);
        assert_eq!(full([0, 0], 160_000.0)[0], Deviates);
        // Hellos do not fill it: 100 packets of 60 bytes take 0.1 s of 20.
        let figures = full([4, 1], 1_200.0);
        assert_eq!([figures[0], figures[3]], [Deviates; 2]);
        // Nothing agrees with a run that the host could not keep up with.
        let contended = verdicts(RunVerdict::Contended, [4, 4], [63, 63], [0.1, 1_200.0]);
        assert_eq!(contended, [Contended; 6]);
    }

    /// Theory and limits are of what was sent, and without it the result can be read again.
    #[test]
    fn without_counts_there_is_no_theory() {
        let counts = Counts::of(RunVerdict::Clean, vec![], Logged::parse("").unwrap()).unwrap();
        let reach = Reach::new(&[still(0.0)], 20.0, 20 * S);
        let figures = TEST.figures("test", &reach, &counts);
        let ratio = &figures[0];
        assert_eq!((ratio.theory, ratio.measured), (None, None));
        assert_eq!(ratio.tolerance, Tolerance::Range(0.0, 100.0));
        let missing = |figure: &Figure| figure.verdict == FigureVerdict::Missing;
        assert!(figures.iter().all(missing));
        let json = serde_json::to_string(&figures).unwrap();
        let read: Vec<Figure> = serde_json::from_str(&json).unwrap();
        assert_eq!(read.len(), figures.len());
    }

    #[test]
    fn a_node_fails_with_its_sender_and_with_its_receiver() {
        let scenario = shipped::find("broch").unwrap();
        let plan = scenario.plan(&Overrides::default()).unwrap();
        let Some(Program::Shell(text)) = &plan.nodes[0].command else {
            panic!()
        };
        // Instead of emud: `sh traffic` and `sh metric`.
        let folder = std::env::temp_dir().join(format!("emud-broch-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("traffic"), "[ \"$1\" != \"$FAILS\" ]\n").unwrap();
        fs::write(folder.join("metric"), "").unwrap();
        // Of five nodes the first one sends, and the third one receives.
        let code = |index: &str, fails: &str| {
            let mut node = Command::new("sh");
            node.args(["-c", text]).current_dir(&folder);
            node.envs([("EMUD", "sh"), ("EMUD_COUNT", "5"), ("LAST", "1")]);
            node.envs([("EMUD_INDEX", index), ("FAILS", fails)]);
            node.status().unwrap().code()
        };
        assert_eq!([code("1", "receive"), code("3", "send")], [Some(0); 2]);
        assert_eq!([code("1", "send"), code("3", "receive")], [Some(1); 2]);
        fs::remove_dir_all(&folder).unwrap();
    }
}
