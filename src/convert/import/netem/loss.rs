// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts netem's loss models.

use super::chances::correlation;
use super::{LossOption, Netem};
use crate::convert::import::writer::{Writer, quoted, table};
use crate::profile::Percent;

pub(super) fn loss(out: &mut Writer, netem: &Netem, has_rate: bool) {
    let Some(loss) = &netem.loss else { return };
    // netem loses a packet before it takes any of the rate.
    let stage = has_rate.then(|| quoted("before-queue"));
    let ecn = netem.ecn.then(|| "true".to_owned());
    let percent = |p: f64| Some(quoted(Percent(p)));
    let value = match loss {
        LossOption::Random(chance) if chance.probability == 0.0 => return,
        LossOption::Random(chance) => match (correlation(out, chance), &stage, &ecn) {
            (None, None, None) => quoted(Percent(chance.probability)),
            (correlation, ..) => table(&[
                ("model", Some(quoted("bernoulli"))),
                ("probability", percent(chance.probability)),
                ("correlation", correlation),
                ("stage", stage.clone()),
                ("ecn", ecn.clone()),
            ]),
        },
        LossOption::State {
            p13,
            p31,
            p32,
            p23,
            p14,
        } => table(&[
            ("model", Some(quoted("four-state"))),
            ("p13", percent(*p13)),
            ("p31", percent(*p31)),
            ("p32", percent(*p32)),
            ("p23", percent(*p23)),
            ("p14", percent(*p14)),
            ("stage", stage.clone()),
            ("ecn", ecn.clone()),
        ]),
        LossOption::Gemodel { p, r, bad, good } => table(&[
            ("model", Some(quoted("gilbert-elliott"))),
            ("p", percent(*p)),
            ("r", percent(*r)),
            ("bad", percent(*bad)),
            ("good", percent(*good)),
            ("stage", stage.clone()),
            ("ecn", ecn.clone()),
        ]),
    };
    if stage.is_some() {
        out.note(
            "netem loses packets before its rate, or that of its class, so a lost packet takes none of it.",
        );
    }
    out.key("loss", value);
}
