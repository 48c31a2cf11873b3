// SPDX-License-Identifier: MIT OR Apache-2.0
//! The class in which the packets of a link wait. While nothing waits beside it, it is the queue of a link
//! with the rate of its server.

use super::check::What;
use super::theory::Asked;
use super::unjudged::{AQM, IN_CLASS, Unjudged};
use crate::abi::DIRECTIONS;
use crate::profile::{Bottleneck, Profile, Queue, parts_of_class};

/// Its packets take the time of the server, and begin at the distance of the `ceil`.
const WITH_CEIL: &str = "a class with a `ceil` below the rate of its bottleneck";
/// A queue in front of another.
const BEHIND_RATE: &str = "a class of a bottleneck behind a `rate` of the link";
/// Probes of one direction wait for those of the other.
const OF_BOTH: &str = "a class of a bottleneck that both directions share";

impl Asked {
    /// Adds the class that a direction has in its profile, or states more exactly why it is not judged.
    pub(super) fn with_class(
        mut self,
        profile: Option<&Profile>,
        direction: u32,
        longest: usize,
    ) -> Self {
        let is_class = |u: &Unjudged| u.why == IN_CLASS;
        let found = profile.and_then(|profile| Some((profile, profile.served(direction)?)));
        let Some((profile, (bottleneck, class))) = found else {
            return self;
        };
        if !self.unjudged.iter().any(is_class) {
            return self;
        }
        let name = |direction| Some(&profile.served(direction)?.0.name);
        let shared = DIRECTIONS
            .map(name)
            .iter()
            .all(|one| *one == Some(&bottleneck.name));
        let rate = bottleneck.rate.unwrap_or_default();
        let why = match self.rate_bit_s {
            _ if shared => OF_BOTH,
            Some(_) => BEHIND_RATE,
            None if bottleneck.most(class) < rate => WITH_CEIL,
            None => {
                self.unjudged.retain(|u| !is_class(u));
                self.rate_bit_s = Some(rate as f64);
                self.queue(bottleneck.queue_of(class), longest);
                return self;
            }
        };
        for unjudged in self.unjudged.iter_mut().filter(|u| is_class(u)) {
            unjudged.why = why;
        }
        self
    }

    fn queue(&mut self, queue: &Queue, longest: usize) {
        let each_ns = self.serialisation_ns(longest);
        let bytes = (longest as f64 + f64::from(self.overhead)).max(1.0);
        let or_none = |limit: Option<f64>| limit.unwrap_or(f64::INFINITY);
        let packets = Some(queue.limit_packets()).filter(|packets| *packets > 0);
        self.queue_packets = or_none(packets.map(f64::from))
            .min(or_none(queue.bytes.map(|limit| limit as f64 / bytes)))
            .min(or_none(queue.time_ns.map(|ns| ns as f64 / each_ns)));
        if queue.aqm.is_some() {
            self.unjudged.push(Unjudged {
                why: AQM,
                what: &[What::Rate],
                limits: false,
            });
        }
    }
}

impl Profile {
    /// Returns the bottleneck of a direction, and the name of its class; `None`: that of one without classes.
    fn served(&self, direction: u32) -> Option<(&Bottleneck, Option<&str>)> {
        let (name, class) = parts_of_class(self.direction(direction).class.as_deref()?);
        let bottleneck = self.bottlenecks.iter().find(|b| b.name == name)?;
        Some((bottleneck, class))
    }
}

impl Bottleneck {
    /// Returns the bit/s that a class sends alone: the rate of the server, unless its `ceil` or one above it is less.
    fn most(&self, class: Option<&str>) -> u64 {
        let named = |name: Option<&str>| self.classes.iter().find(|c| Some(&*c.name) == name);
        let path = std::iter::successors(named(class), |class| named(class.parent.as_deref()));
        let ceils = path.filter_map(|class| class.ceil);
        ceils.chain(self.rate).min().unwrap_or_default()
    }

    fn queue_of(&self, class: Option<&str>) -> &Queue {
        let class = self.classes.iter().find(|c| Some(&*c.name) == class);
        class.map_or(&self.queue, |class| &class.queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi;
    use crate::verify::requested::compiled;

    fn asked(link: &str, bottleneck: &str) -> Asked {
        let text = format!("{link}\n[bottleneck.b]\nrate = \"1Mbit\"\n{bottleneck}");
        let profile = Profile::parse(&text, "test").unwrap();
        compiled(&profile, abi::EMUD_UP, 1442).unwrap()
    }

    fn reasons(asked: &Asked) -> Vec<&str> {
        asked.reasons().collect()
    }

    #[test]
    fn a_class_alone_is_the_queue_of_a_link_with_the_rate_of_its_server() {
        let link = "[up]\ndelay = \"5ms\"\nloss = \"1%\"\noverhead = 24\n";
        let queue = |limit: &str| {
            let text = format!("{link}rate = \"1Mbit\"\nqueue = \"{limit}\"\n");
            let profile = Profile::parse(&text, "test").unwrap();
            compiled(&profile, abi::EMUD_UP, 1442).unwrap()
        };
        for (limit, packets) in [("50p", 50.0), ("14660B", 10.0), ("117280us", 10.0)] {
            let alone = asked(
                &format!("{link}class = \"b\"\n"),
                &format!("queue = \"{limit}\"\n"),
            );
            assert!(
                (alone.queue_packets - packets).abs() < 1e-9,
                "{limit}: {alone:?}"
            );
            // The classifier rounds limits.
            let queue_packets = alone.queue_packets;
            assert_eq!(
                alone,
                Asked {
                    queue_packets,
                    ..queue(limit)
                }
            );
            let class = format!(
                "schedule = \"htb\"\n[bottleneck.b.class.c]\nrate = \"100kbit\"\nqueue = \"{limit}\"\n"
            );
            assert_eq!(asked(&format!("{link}class = \"b.c\"\n"), &class), alone);
        }
    }

    #[test]
    fn what_is_not_that_queue_has_its_reason() {
        let class = |keys: &str| {
            asked(
                "[up]\nclass = \"b.c\"",
                &format!(
                    "schedule = \"priority\"\n[bottleneck.b.class.p]\nceil = \"900kbit\"\n\
                     [bottleneck.b.class.c]\n{keys}\n"
                ),
            )
        };
        assert_eq!(reasons(&class("")), [""; 0]);
        assert_eq!(reasons(&class("ceil = \"1Mbit\"")), [""; 0]);
        assert_eq!(reasons(&class("ceil = \"999kbit\"")), [WITH_CEIL]);
        assert_eq!(reasons(&class("parent = \"p\"")), [WITH_CEIL]);
        let red = class("queue = { limit = \"50p\", aqm = \"codel\" }");
        assert_eq!(reasons(&red), [AQM]);
        assert!(red.unjudged(What::Rate).is_some() && red.unjudged(What::DelayMean).is_none());
        let behind = asked("[up]\nclass = \"b\"\nrate = \"2Mbit\"", "");
        assert_eq!(reasons(&behind), [BEHIND_RATE]);
        assert!(behind.unjudged(What::DelayMean).is_some());
        let shared = asked("[link]\nclass = \"b\"", "");
        assert_eq!(reasons(&shared), [OF_BOTH]);
        let other = "[bottleneck.d]\nrate = \"1Mbit\"\n";
        let apart = asked("[up]\nclass = \"b\"\n[down]\nclass = \"d\"", other);
        assert_eq!(reasons(&apart), [""; 0]);
    }
}
