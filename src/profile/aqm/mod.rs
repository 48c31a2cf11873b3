// SPDX-License-Identifier: MIT OR Apache-2.0
//! Active queue management: the managers, their keys and defaults.

mod codel;
mod control;
mod manager;
mod red;

pub use codel::CoDel;
pub use control::{Pi, Pie, Rem};
pub(crate) use manager::choice;
pub use red::{Ared, Length, Red, Rio};

use schemars::JsonSchema;
use serde::Serialize;

use codel::CoDelDraft;
use control::{PiDraft, PieDraft, RemDraft};
use red::{AredDraft, RedDraft, RioDraft};

use crate::text::{Draft, Entry, Located, Mistake, Reader, Value, Word, is_none, word};

/// tc-red(8)'s `avpkt`: the paper's "small packet", by which the average falls in idle times. Those
/// of whose packets gains are, too.
pub(crate) const PACKET_BYTES: u32 = 1000;
/// RFC 8033's MEAN_PKTSIZE.
pub(crate) const PIE_PACKET_BYTES: u32 = 1024;

impl Ared {
    /// Returns `min` and `max` of RED in the unit of its target and of a packet. `min` is at least
    /// five packets, as ns-2's.
    pub(crate) fn between(target: u64, packet: u64) -> [u64; 2] {
        let min = (target / 2).max(5 * packet);
        [min, 3 * min]
    }

    /// Returns its weight. By default 1/e of what was before a second's packets is left.
    pub(crate) fn weight(&self, packet_ns: u64) -> f64 {
        let usual = || 1.0 - (-(packet_ns as f64) / 1e9).exp();
        self.weight.unwrap_or_else(usual)
    }
}

impl Pi {
    /// Returns the gains of the distance from the target and of the growth, per packet.
    pub(crate) fn gains(&self) -> [f64; 2] {
        [self.a - self.b, self.b]
    }
}

impl Rem {
    /// Returns the gains of the backlog and of what arrives, per packet.
    pub(crate) fn gains(&self) -> [f64; 2] {
        let gamma = self.gamma * self.phi.ln();
        [self.alpha * gamma, gamma]
    }
}

/// Declares all managers: `Aqm`, their names, and what has been written of one.
macro_rules! managers {
    ($( $Manager:ident($Draft:ident) $name:literal; )*) => {
        /// Active queue management: drops or marks before the queue is full.
        #[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
        #[serde(tag = "name", rename_all = "lowercase")]
        pub enum Aqm {
            $( #[doc = concat!(stringify!($Manager), ".")] $Manager($Manager), )*
        }

        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Kind {
            $( $Manager, )*
        }

        impl Word for Kind {
            const WORDS: &'static [(&'static str, Self)] = &[$( ($name, Self::$Manager) ),*];
        }

        /// A manager's keys, of which another manager has others.
        #[derive(Debug, Clone)]
        pub(crate) enum Manager {
            $( $Manager($Draft), )*
        }

        impl Manager {
            fn of(kind: Kind) -> Self {
                match kind {
                    $( Kind::$Manager => Self::$Manager($Draft::default()), )*
                }
            }

            fn kind(&self) -> Kind {
                match self {
                    $( Self::$Manager(_) => Kind::$Manager, )*
                }
            }

            fn keys(&self) -> &'static [&'static str] {
                match self {
                    $( Self::$Manager(_) => $Draft::KEYS, )*
                }
            }

            fn key(&mut self, reader: &mut Reader, entry: &Entry) -> bool {
                match self {
                    $( Self::$Manager(draft) => draft.key(reader, entry), )*
                }
            }
        }

        impl Aqm {
            /// Returns whether it marks what can be marked instead of dropping.
            pub fn marks(&self) -> bool {
                match self {
                    $( Self::$Manager(it) => it.ecn, )*
                }
            }

            /// Returns the keys of a queue that make it.
            pub(super) fn keys(&self) -> String {
                let (name, mut keys, ecn) = match self {
                    $( Self::$Manager(it) => ($name, it.keys_text(), it.ecn), )*
                };
                keys.insert(0, format!("aqm = \"{name}\""));
                if ecn {
                    keys.push("ecn = true".to_owned());
                }
                keys.join(", ")
            }
        }
    };
}

managers! {
    Red(RedDraft) "red";
    Ared(AredDraft) "ared";
    Rio(RioDraft) "rio";
    CoDel(CoDelDraft) "codel";
    Pie(PieDraft) "pie";
    Pi(PiDraft) "pi";
    Rem(RemDraft) "rem";
}

/// The keys of all managers, each once.
pub(super) const KEYS: &[&str] = &[
    "min",
    "max",
    "probability",
    "weight",
    "assured",
    "assured-min",
    "assured-max",
    "assured-probability",
    "target",
    "interval",
    "tupdate",
    "alpha",
    "beta",
    "a",
    "b",
    "gamma",
    "phi",
];

pub(crate) type AqmDraft = Option<Located<Manager>>;

impl Reader {
    /// Reads the key `aqm`. Returns true if it replaces another manager, whose keys are gone then.
    pub(super) fn aqm_kind(&mut self, draft: &mut AqmDraft, value: &Located<Value>) -> bool {
        if is_none(value) {
            *draft = None;
            return true;
        }
        let Some(kind) = self.read(value, |v| word(v, "aqm")) else {
            return false;
        };
        if (draft.as_ref()).is_some_and(|before| before.value.kind() == kind.value) {
            return false;
        }
        *draft = Some(Located {
            value: Manager::of(kind.value),
            at: kind.at,
        });
        true
    }

    /// Reads one key of a manager. Returns false if no manager has it.
    pub(super) fn aqm_key(&mut self, draft: &mut AqmDraft, entry: &Entry) -> bool {
        let key = &entry.key.value;
        if !KEYS.contains(&key.as_str()) {
            return false;
        }
        let (title, help) = if let Some(Located { value: manager, .. }) = draft {
            if manager.key(self, entry) {
                return true;
            }
            (
                format!(
                    "`{key}` does not go with aqm = \"{}\"",
                    manager.kind().word()
                ),
                format!("its keys are {}, ecn", manager.keys().join(", ")),
            )
        } else {
            let names: Vec<String> = (Kind::WORDS.iter())
                .map(|(name, _)| format!("\"{name}\""))
                .collect();
            (
                format!("`{key}` without `aqm`"),
                format!("name its manager: aqm = {}", names.join(" or ")),
            )
        };
        (self.mistakes).push(Mistake::new(&entry.value.at, title, help));
        true
    }

    /// Returns the finished manager; meaningless if that adds a mistake.
    pub(super) fn finish_aqm(&mut self, draft: &AqmDraft, ecn: bool) -> Option<Aqm> {
        let Located { value, at } = draft.as_ref()?;
        Some(match value {
            Manager::Red(draft) => Aqm::Red(self.finish_red(draft, at, ecn)?),
            Manager::Rio(draft) => Aqm::Rio(self.finish_rio(draft, at, ecn)?),
            Manager::Ared(draft) => Aqm::Ared(Ared {
                ecn,
                ..draft.values()
            }),
            Manager::CoDel(draft) => Aqm::CoDel(CoDel {
                ecn,
                ..draft.values()
            }),
            Manager::Pie(draft) => Aqm::Pie(self.finish_pie(draft, ecn)),
            Manager::Pi(draft) => Aqm::Pi(self.finish_pi(draft, ecn)),
            Manager::Rem(draft) => Aqm::Rem(self.finish_rem(draft, ecn)),
        })
    }
}
