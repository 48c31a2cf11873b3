// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which engine a link gets, and why not another one.

use super::{Engine, fq, qdisc};
use crate::text::words;

const SUPPORTED: &str = "this kernel supports it";
const REQUESTED: &str = "as requested";

words! {
    /// The engine that the user requests.
    pub enum EngineChoice {
        /// qdisc if it is available and suits the link, otherwise fq, otherwise hold.
        Auto = "auto",
        /// fq, or an error.
        Fq = "fq",
        /// hold, without a fallback.
        Hold = "hold",
        /// qdisc, or an error.
        Qdisc = "qdisc",
    }
}

/// Requirements of a link on its engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Classes of bottlenecks.
    pub classes: u32,
    /// Why the server of engine qdisc cannot serve them.
    pub unserved: Option<String>,
    /// Transmit queues that CPUs may fill at the same time; 1 if a link of sent packets is in order, which
    /// then needs one queue with every engine.
    pub queues: u32,
    /// Packets that may wait in a direction.
    pub waiting: u64,
    /// How long one of them may wait, ns.
    pub longest_ns: u64,
}

/// A host, which answers when a question arises: each answer takes time.
pub trait Host {
    /// Returns why this kernel or this emud has no engine qdisc, if so.
    ///
    /// # Errors
    /// A sentence about the missing feature.
    fn has_qdisc(&mut self) -> Result<(), String>;

    /// Loads emud's qdisc with room for `packets` that wait in a direction, and with `classes`.
    ///
    /// # Errors
    /// A sentence about the step that failed.
    fn load_qdisc(&mut self, packets: u32, classes: u32) -> Result<(), String>;

    /// Tries engine fq.
    ///
    /// # Errors
    /// A sentence about the missing feature.
    fn try_fq(&mut self) -> Result<fq::ToIfb, String>;
}

/// An engine and the reasons for its choice.
#[derive(Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The engine that the link gets.
    pub engine: Engine,
    /// How ingress packets reach the ifb; without effect with hold.
    pub to_ifb: fq::ToIfb,
    /// Why this engine was taken, beyond the reasons in `passed_over`.
    pub why: Option<String>,
    /// The engines that were considered before it, and why each was not taken.
    pub passed_over: Vec<(Engine, String)>,
}

impl Chosen {
    fn new(engine: Engine, to_ifb: fq::ToIfb, why: Option<&str>) -> Self {
        let why = why.map(|why| match engine {
            Engine::Fq => format!("{why}; {to_ifb}"),
            Engine::Hold | Engine::Qdisc => why.to_owned(),
        });
        Self {
            engine,
            to_ifb,
            why,
            passed_over: vec![],
        }
    }

    /// Returns the reasons as one sentence.
    pub fn reason(&self) -> String {
        let mut parts: Vec<String> = self.why.iter().cloned().collect();
        for same in self.passed_over.chunk_by(|(_, one), (_, next)| one == next) {
            let engines: Vec<String> = same.iter().map(|(engine, _)| engine.to_string()).collect();
            let why = same.first().map_or("", |(_, why)| why);
            parts.push(format!("not {}: {why}", engines.join(" or ")));
        }
        parts.join("; ")
    }
}

/// Chooses the engine of a link.
///
/// # Errors
/// Why qdisc or fq, if the user requests it, is not available.
pub fn choose(wanted: EngineChoice, needs: &Needs, host: &mut impl Host) -> Result<Chosen, String> {
    let engine = match wanted {
        EngineChoice::Auto => return Ok(best(needs, host)),
        EngineChoice::Fq => Engine::Fq,
        EngineChoice::Hold => Engine::Hold,
        EngineChoice::Qdisc => Engine::Qdisc,
    };
    let to_ifb = find(engine, needs, host)?;
    Ok(Chosen::new(engine, to_ifb, Some(REQUESTED)))
}

fn best(needs: &Needs, host: &mut impl Host) -> Chosen {
    let mut order = [Engine::Qdisc, Engine::Fq];
    let drawback = drawback(needs).filter(|_| host.has_qdisc().is_ok());
    // Still better than hold.
    if drawback.is_some() {
        order.reverse();
    }
    let mut passed_over = vec![];
    for engine in order {
        match find(engine, needs, host) {
            Ok(to_ifb) => {
                if engine == Engine::Fq {
                    passed_over.extend(drawback.map(|why| (Engine::Qdisc, why)));
                }
                return Chosen {
                    passed_over,
                    ..Chosen::new(engine, to_ifb, Some(SUPPORTED))
                };
            }
            Err(why) => passed_over.push((engine, why)),
        }
    }
    Chosen {
        passed_over,
        ..Chosen::new(Engine::Hold, fq::ToIfb::Redirect, None)
    }
}

/// Returns how ingress packets reach the ifb, or why an engine cannot be had.
fn find(engine: Engine, needs: &Needs, host: &mut impl Host) -> Result<fq::ToIfb, String> {
    match engine {
        Engine::Fq if needs.classes > 0 => Err(
            "it sends a packet at a time that is fixed when it arrives, and a [bottleneck] decides \
             later"
                .to_owned(),
        ),
        Engine::Fq => match fq::too_long(needs.longest_ns) {
            Some(why) => Err(why),
            None => host.try_fq(),
        },
        Engine::Qdisc => {
            host.has_qdisc()?;
            if let Some(why) = &needs.unserved {
                return Err(why.clone());
            }
            host.load_qdisc(qdisc::room(needs.waiting), needs.classes)?;
            // Kernels with BPF qdiscs are newer than those whose ifb drops such packets.
            Ok(fq::ToIfb::Redirect)
        }
        Engine::Hold => Ok(fq::ToIfb::Redirect),
    }
}

/// Returns why a link is better under fq than under qdisc, if it is.
fn drawback(needs: &Needs) -> Option<String> {
    if needs.classes > 0 {
        return None;
    }
    if needs.queues > 1 {
        return Some(format!(
            "its one queue would serve all {} transmit queues, and fq has one for each, since the packets \
             sent need no order",
            needs.queues
        ));
    }
    (needs.waiting > u64::from(qdisc::ROOM_MAX)).then(|| {
        format!(
            "it has room for {} packets that wait, and this link may have {}",
            qdisc::ROOM_MAX,
            needs.waiting
        )
    })
}

/// The kernel of this host.
#[derive(Debug)]
pub struct Kernel {
    directions: [bool; 2],
    /// emud's qdisc, if it was loaded.
    pub loaded: Option<qdisc::Registered>,
}

impl Kernel {
    /// Returns it, for a link in these directions.
    pub const fn new(directions: [bool; 2]) -> Self {
        Self {
            directions,
            loaded: None,
        }
    }
}

impl Host for Kernel {
    fn has_qdisc(&mut self) -> Result<(), String> {
        qdisc::supported()
    }

    fn load_qdisc(&mut self, packets: u32, classes: u32) -> Result<(), String> {
        let loaded = qdisc::Registered::new(packets, classes, self.directions);
        self.loaded = Some(loaded.map_err(|e| e.to_string())?);
        Ok(())
    }

    fn try_fq(&mut self) -> Result<fq::ToIfb, String> {
        fq::probe()
    }
}

/// A host whose answers are known.
#[derive(Debug, Clone)]
pub struct Known {
    /// Whether it has engine qdisc.
    pub qdisc: Result<(), String>,
    /// Whether it has engine fq.
    pub fq: Result<fq::ToIfb, String>,
}

impl Host for Known {
    fn has_qdisc(&mut self) -> Result<(), String> {
        self.qdisc.clone()
    }

    fn load_qdisc(&mut self, _packets: u32, _classes: u32) -> Result<(), String> {
        self.qdisc.clone()
    }

    fn try_fq(&mut self) -> Result<fq::ToIfb, String> {
        self.fq.clone()
    }
}
