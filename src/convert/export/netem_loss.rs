// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loss, duplication, corruption, reordering.

use super::netem::Options;
use crate::profile::{
    ChecksumAfter, Corrupt, Delay, Duplicate, Loss, LossModel, PACKET_BYTES, Percent, Reordering,
    Stage, Word,
};

impl Options {
    pub(crate) fn loss(&mut self, loss: &Loss, has_rate: bool) {
        if loss.is_none() {
            return;
        }
        for key in loss.beyond(&["stage", "ecn"]) {
            self.differ(format!("`loss.{key}`: netem has no such key"));
        }
        if has_rate && loss.stage != Stage::BeforeQueue {
            self.differ(
                "loss after a rate: packets that netem loses take no time of the rate (stage = \
                 \"before-queue\")",
            );
        }
        let (name, shares) = match loss.model {
            LossModel::Bernoulli {
                probability,
                correlation,
            } => {
                self.correlation("loss", correlation);
                ("random", vec![probability])
            }
            LossModel::GilbertElliott { p, r, bad, good } => ("gemodel", vec![p, r, bad, good]),
            LossModel::FourState {
                p13,
                p31,
                p32,
                p23,
                p14,
            } => ("state", vec![p13, p31, p32, p23, p14]),
            LossModel::Burst {
                probability,
                length,
            } => {
                self.differ(format!(
                    "loss model \"burst\": netem has no such model; bursts are {length} packets \
                     long on average here"
                ));
                let out = 1.0 / f64::from(length);
                ("gemodel", vec![probability, out, 1.0, 0.0])
            }
            LossModel::BitError { .. } | LossModel::Every { .. } | LossModel::Pattern { .. } => {
                let share = loss.share_of(PACKET_BYTES);
                self.differ(format!(
                    "loss model \"{}\": netem has no such model; each packet of {PACKET_BYTES} \
                     bytes is lost with {} here",
                    loss.model.name().word(),
                    Percent(share)
                ));
                ("random", vec![share])
            }
        };
        let shares: Vec<_> = shares.iter().map(|p| self.share("loss", *p)).collect();
        self.add(format!("loss {name} {}", shares.join(" ")));
        if loss.ecn {
            self.add("ecn");
        }
    }

    /// Returns a share as text: netem's probabilities are multiples of 2^-32, to which tc rounds.
    fn share(&mut self, key: &str, share: f64) -> String {
        let least = 0.5f64.powi(33);
        if share > 0.0 && share < least {
            self.differ(format!(
                "`{key}`: netem rounds {} to 0; its least probability is 2^-32",
                Percent(share)
            ));
        }
        Percent(share).to_string()
    }

    fn correlation(&mut self, key: &str, correlation: f64) {
        if correlation != 0.0 {
            self.differ(format!(
                "`{key}.correlation`: netem's correlation squeezes its random numbers towards \
                 one half, which changes the probability; it is left out"
            ));
        }
    }

    pub(crate) fn duplicate(&mut self, duplicate: &Duplicate, loss: &Loss, has_rate: bool) {
        let Duplicate {
            probability,
            correlation,
        } = duplicate;
        if *probability == 0.0 {
            return;
        }
        self.correlation("duplicate", *correlation);
        if has_rate {
            self.note(
                "netem's copy takes time of the rate and room in the queue like any packet \
                 does, emud's takes neither",
            );
        }
        if !loss.is_none() {
            self.note(
                "netem sends a packet once if it is lost and duplicated, and loses copies, too; \
                 emud only duplicates packets that are not lost",
            );
        }
        let share = self.share("duplicate", *probability);
        self.add(format!("duplicate {share}"));
    }

    pub(crate) fn corrupt(&mut self, corrupt: &Corrupt) {
        let Corrupt {
            probability,
            correlation,
            bits,
            from,
            to,
            checksum,
        } = corrupt;
        if *probability == 0.0 {
            return;
        }
        self.correlation("corrupt", *correlation);
        if *bits != 1 {
            self.differ("`corrupt.bits`: netem flips one bit");
        }
        for (key, given) in [("from", *from != 0), ("to", to.is_some())] {
            if given {
                self.differ(format!(
                    "`corrupt.{key}`: netem flips any bit of the packet's first buffer"
                ));
            }
        }
        if *checksum == ChecksumAfter::Mend {
            self.differ("`corrupt.checksum`: netem never repairs one");
        }
        self.note(
            "netem also flips bits of the link-layer header, and of transmitted data often nothing \
             but headers",
        );
        let share = self.share("corrupt", *probability);
        self.add(format!("corrupt {share}"));
    }

    pub(crate) fn reorder(&mut self, reorder: &Reordering, delay: &Delay, has_rate: bool) {
        let Reordering {
            probability,
            correlation,
            gap,
        } = reorder;
        if delay.mean_ns == 0 {
            return self.differ("`reorder` without a delay: tc rejects it, so it is left out");
        }
        self.correlation("reorder", *correlation);
        if has_rate {
            self.differ("`reorder` with a rate: packets that netem sends at once bypass its rate");
        }
        let gap = match gap {
            1 => String::new(),
            gap => format!(" gap {gap}"),
        };
        let share = self.share("reorder", *probability);
        self.add(format!("reorder {share}{gap}"));
    }
}
