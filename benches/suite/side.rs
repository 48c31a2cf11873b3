// SPDX-License-Identifier: MIT OR Apache-2.0
//! A pair of namespaces for each side of a comparison, and the same link on each.

use std::process::Command;

use crate::Suite;
use crate::rattan::{self, Rattan};
use crate::wirefilter::{self, Wirefilter};
use support::lab::{self, Engine, Lab, run};

/// The emulator of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Bare,
    /// No link, but one wire packet at a time, as links with losses require.
    BareWire,
    Netem,
    /// netem loses super-packets as one; with this it does not: `gso_max_segs 1` on the device.
    NetemWire,
    Emud,
    EmudHold,
    EmudQdisc,
    /// Other emulators in user space.
    Rattan,
    Wirefilter,
}

impl Side {
    pub fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::BareWire => "bare, gso_max_segs 1",
            Self::Netem => "netem",
            Self::NetemWire => "netem, gso_max_segs 1",
            Self::Emud => "emud",
            Self::EmudHold => "emud hold",
            Self::EmudQdisc => "emud qdisc",
            Self::Rattan => "rattan",
            Self::Wirefilter => "wirefilter",
        }
    }

    pub fn is_in_user_space(self) -> bool {
        matches!(self, Self::EmudHold | Self::Rattan | Self::Wirefilter)
    }

    pub fn engine(self) -> Option<Engine> {
        match self {
            Self::Emud => Some(Engine::Fq),
            Self::EmudHold => Some(Engine::Hold),
            Self::EmudQdisc => Some(Engine::Qdisc),
            _ => None,
        }
    }
}

/// The same link in both syntaxes, for packets that the sender's device sends.
#[derive(Debug, Clone)]
pub struct Link {
    pub delay_ms: f64,
    pub netem: String,
    /// Assignments for `emud set`, without `up.`.
    pub emud: Vec<String>,
}

impl Link {
    pub fn delay(ms: f64) -> Self {
        Self {
            delay_ms: ms,
            netem: format!("delay {ms}ms"),
            emud: vec![format!("delay={ms}ms"), "loss=0%".to_owned()],
        }
    }
}

/// netem's limit includes packets in flight; the default of 1000 loses some from 50,000 packets/s
/// on over 20 ms, so a fair benchmark raises it until nothing is dropped.
const NETEM_LIMIT: u32 = 1_000_000;

/// One side's laboratory.
pub struct Bench {
    pub side: Side,
    pub lab: Lab,
    attached: bool,
    rattan: Option<Rattan>,
    wirefilter: Option<Wirefilter>,
}

impl Bench {
    pub fn new(side: Side) -> Self {
        let lab = match side {
            Side::Wirefilter => wirefilter::lab(),
            Side::Rattan => rattan::lab(),
            _ => Lab::new(),
        };
        if side != Side::Rattan {
            lab.know_each_other();
        }
        if matches!(side, Side::BareWire | Side::NetemWire) {
            lab.in_a("ip link set dev va gso_max_segs 1");
        }
        Self {
            side,
            lab,
            attached: false,
            rattan: None,
            wirefilter: None,
        }
    }

    /// Attaches the link, or replaces the last one with it.
    pub fn set(&mut self, link: &Link) {
        match self.side {
            Side::Bare | Side::BareWire => {}
            Side::Netem | Side::NetemWire => self.set_netem(link),
            Side::Emud => self.set_emud(Engine::Fq, &link.emud),
            Side::EmudHold => self.set_emud(Engine::Hold, &link.emud),
            Side::EmudQdisc => self.set_emud(Engine::Qdisc, &link.emud),
            Side::Rattan => {
                self.clear();
                self.rattan = Some(Rattan::start(&mut self.lab, link.delay_ms));
            }
            Side::Wirefilter => {
                self.wirefilter = None;
                self.wirefilter = Some(Wirefilter::start(&self.lab, link.delay_ms));
            }
        }
    }

    fn set_netem(&mut self, link: &Link) {
        let (a, attached) = (&self.lab.a, self.attached);
        // Attached again: a change would keep the last link's distribution.
        if attached {
            lab::sh(&format!("tc -n {a} qdisc del dev va root"));
        }
        lab::sh(&format!(
            "tc -n {a} qdisc add dev va root netem limit {NETEM_LIMIT} {}",
            link.netem
        ));
        self.attached = true;
    }

    fn set_emud(&mut self, engine: Engine, assignments: &[String]) {
        if !self.attached {
            let profile = "[link]\ndelay = \"1ms\"\n";
            let options = ["--direction", "up", "--seed", "1"];
            self.lab.attach(engine, profile, &options);
            self.attached = true;
        }
        let keys: Vec<String> = assignments.iter().map(|a| format!("up.{a}")).collect();
        let mut arguments = vec!["set", "va"];
        arguments.extend(keys.iter().map(String::as_str));
        self.lab.emud(&arguments).expect(0);
    }

    /// Removes the link.
    pub fn clear(&mut self) {
        self.wirefilter = None;
        if let Some(rattan) = self.rattan.take() {
            rattan.stop(&mut self.lab);
        }
        if std::mem::take(&mut self.attached) {
            match self.side.engine() {
                Some(_) => self.lab.detach(),
                None => drop(lab::sh(&format!(
                    "tc -n {} qdisc del dev va root",
                    self.lab.a
                ))),
            }
        }
    }

    /// Packets dropped where they wait; the link itself drops none.
    pub fn dropped(&self) -> u64 {
        if !self.attached {
            return 0;
        }
        match self.side.engine() {
            Some(Engine::Fq | Engine::Qdisc) => self.lab.shown("/up/engine_dropped"),
            Some(Engine::Hold) => self.lab.shown("/up/holder/dropped"),
            None => 0,
        }
    }
}

/// emud's profile of what netem does with these arguments.
pub fn imported(netem: &str) -> String {
    let command = format!("tc qdisc add dev va root netem {netem}");
    lab::emud(&["import", "netem", &command]).expect(0).out
}

/// The sides that this kernel supports; the others are noted as missing.
pub fn here(suite: &mut Suite, wanted: &[Side]) -> Vec<Side> {
    let mut there = wanted.to_vec();
    there.retain(|side| {
        let lacking = match side {
            Side::Netem | Side::NetemWire => lacks("qdisc", "netem"),
            Side::Emud => lacks("qdisc", "fq"),
            Side::EmudHold => lacks("tuntap", "mode tap"),
            Side::EmudQdisc => lacks_qdisc(),
            Side::Rattan => rattan::lacks(),
            Side::Wirefilter => wirefilter::lacks(),
            Side::Bare | Side::BareWire => None,
        };
        if let Some(why) = &lacking {
            miss(suite, *side, why);
        }
        lacking.is_none()
    });
    there
}

/// Notes that a side was not measured; kernels before 6.16 cannot have engine qdisc.
fn miss(suite: &mut Suite, side: Side, why: &str) {
    if side != Side::EmudQdisc || !why.contains("this kernel has no BPF qdiscs") {
        suite.results.miss(&format!("{}: {why}", side.name()));
    }
}

/// Whether this kernel has engine qdisc; notes any other reason for which it does not work.
pub fn has_qdisc(suite: &mut Suite) -> bool {
    let lacking = lacks_qdisc();
    if let Some(why) = &lacking {
        miss(suite, Side::EmudQdisc, why);
    }
    lacking.is_none()
}

/// Found by an attach, which is what is measured.
fn lacks_qdisc() -> Option<String> {
    let lab = Lab::new();
    let said = lab.try_attach(Engine::Qdisc, "[link]\ndelay = \"1ms\"\n", &[]);
    (said.code != 0).then(|| said.err.trim().to_owned())
}

/// Found by a trial in a separate namespace; `emud doctor` takes seconds in a guest.
fn lacks(what: &str, kind: &str) -> Option<String> {
    let lab = Lab::empty();
    let (program, line) = match what {
        "qdisc" => ("tc", format!("qdisc add dev lo root {kind}")),
        _ => ("ip", format!("{what} add dev tried {kind}")),
    };
    let mut command = Command::new(program);
    let said = run(command.args(["-n", &lab.a]).args(line.split(' ')));
    let why = format!("`{program} {line}`: {}", said.err.trim());
    (said.code != 0).then_some(why)
}
