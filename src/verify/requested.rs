// SPDX-License-Identifier: MIT OR Apache-2.0
//! The requested link: what the kernel runs on the interface, or a profile from a file.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::check::What;
use super::probe::{SHORT_PAYLOAD, long_payload, wire_bytes};
use super::simulate::lost;
use super::theory::{Asked, nothing_judged};
use super::unjudged::Unjudged;
use super::{Request, VerifyError};
use crate::abi;
use crate::abi::direction_name;
use crate::datapath::compiled::matching;
use crate::datapath::ending::LEASE;
use crate::datapath::maps::{self, Maps};
use crate::datapath::show::report::{Direction, Report};
use crate::datapath::stage::compile::{PacketTarget, compile};
use crate::datapath::{LinkError, attachment, reports};
use crate::host::now_ns;
use crate::netlink::Netlink;
use crate::profile::{Profile, Time};

pub struct Links {
    /// The name of the interface, which the request may call by another one.
    pub interface: String,
    pub profile: String,
    pub up: Option<Asked>,
    pub down: Option<Asked>,
    /// The links of the interface, up and down.
    pub running: [Option<Asked>; 2],
    pub l3: bool,
    pub mtu: u32,
    before: Vec<Report>,
    version: Version,
    /// The profile in the kernel, which the figures of classes are from.
    text: String,
}

/// A link, and how often it was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    link_id: u32,
    generation: u32,
}

impl Version {
    pub fn of(maps: &Maps) -> Result<Self, VerifyError> {
        Ok(Self {
            link_id: maps.id,
            generation: maps.control()?.generation,
        })
    }
}

impl Links {
    pub fn read(request: &Request) -> Result<Self, VerifyError> {
        let mut nl = Netlink::open().map_err(LinkError::from)?;
        let link = nl.link(&request.interface)?;
        let there = attachment::running(&mut nl, &link)?;
        // First, so that a change of what is read below is noticed.
        let version = Version::of(&there.maps)?;
        let ends_in_s = maps::ends_in_s(there.maps.control()?, now_ns());
        if let Some(ends_in_s) = ends_in_s.filter(|s| ends_first(*s, request.duration_ns)) {
            return Err(VerifyError::EndsFirst {
                interface: link.name,
                ends_in_s,
            });
        }
        let before = reports::reports(Some(&request.interface))?;
        let against = request.against.clone().map(|p| match there.saved.reversed {
            true => p.reversed(),
            false => p,
        });
        // Like the classifier: the IP version changes the length by 20 bytes, which is negligible
        // for the room in the queue.
        let any = IpAddr::from([0, 0, 0, 0]);
        let payload = long_payload(link.mtu, any).unwrap_or(SHORT_PAYLOAD);
        let longest = wire_bytes(payload, any, there.saved.l3);
        let in_force = Profile::parse(&there.saved.profile, "the kernel").ok();
        let running = |direction: u32| -> Result<Option<Asked>, VerifyError> {
            if !there.saved.directions[direction as usize] {
                return Ok(None);
            }
            let link = there.maps.link(direction)?;
            let table = there.maps.table_of(0, direction)?;
            let pattern = match link.loss_model {
                abi::EMUD_LOSS_PATTERN => Some(there.maps.pattern_of(0, direction)?),
                _ => None,
            };
            let asked = Asked::of(&link, &table, pattern.as_deref(), longest);
            let asked = asked.with_phases(in_force.as_ref());
            Ok(Some(asked.with_class(
                in_force.as_ref(),
                direction,
                longest,
            )))
        };
        let running = [running(abi::EMUD_UP)?, running(abi::EMUD_DOWN)?];
        let asked = |direction: u32| {
            let running = running[direction as usize].as_ref();
            requested(against.as_ref(), running, direction, longest)
        };
        let name = before.first().map(|r| r.profile.clone());
        let (up, down) = (asked(abi::EMUD_UP)?, asked(abi::EMUD_DOWN)?);
        let ways: Vec<&Asked> = up.iter().chain(&down).collect();
        let is_hopeless = match request.peer_netns {
            Some(_) => ways.iter().all(|way| way.nothing_judged()),
            None => nothing_judged(&ways),
        };
        if !ways.is_empty() && is_hopeless {
            let reasons = ways.iter().flat_map(|way| way.reasons());
            let reasons: BTreeSet<_> = reasons.collect();
            return Err(VerifyError::NotJudged {
                what: Vec::from_iter(reasons).join(", "),
            });
        }
        Ok(Self {
            interface: link.name,
            up,
            down,
            running,
            l3: there.saved.l3,
            mtu: link.mtu,
            profile: match &against {
                Some(profile) => profile.name.clone(),
                None => name.unwrap_or_default(),
            },
            before,
            version,
            text: there.saved.profile,
        })
    }

    /// Returns whether the interface may lose every packet of a round trip, whatever is requested.
    pub fn may_lose_all(&self) -> bool {
        let ways: Vec<&Asked> = self.running.iter().flatten().collect();
        let has_no_theory = |way: &&Asked| way.unjudged(What::Loss).is_some();
        lost(&ways) >= 0.5 || ways.iter().any(has_no_theory)
    }

    /// Returns an error unless the interface has had the same link, without a change, since it was
    /// read.
    pub fn unchanged(&self, interface: &str) -> Result<(), VerifyError> {
        let mut nl = Netlink::open().map_err(LinkError::from)?;
        let link = nl.link(interface)?;
        let there = match attachment::running(&mut nl, &link) {
            Err(
                LinkError::NotAttached { interface }
                | LinkError::AllDeleted { interface }
                | LinkError::Ended { interface },
            ) => {
                return Err(VerifyError::Gone { interface });
            }
            there => there?,
        };
        match Version::of(&there.maps)? == self.version && there.saved.profile == self.text {
            true => Ok(()),
            false => Err(VerifyError::Changed {
                interface: link.name,
            }),
        }
    }

    /// Returns the share of packets that the engine has reported as late since then, in the worse of both
    /// directions: 0 under fq, which does not report it.
    pub fn late_share(&self, interface: &str, direction: &str) -> Result<f64, VerifyError> {
        let after = reports::reports(Some(interface))?;
        let (Some(before), Some(after)) = (self.before.first(), after.first()) else {
            return Ok(0.0);
        };
        let ways = [
            ("up", &before.up, &after.up),
            ("down", &before.down, &after.down),
        ];
        let shares = ways.into_iter().map(|(name, before, after)| {
            let holder =
                |d: &Option<Direction>| d.as_ref()?.holder.as_ref().map(|h| (h.late, h.released));
            match (holder(before), holder(after)) {
                (Some(before), Some(after)) if direction == name || direction == "both" => {
                    let released = after.1.saturating_sub(before.1).max(1);
                    after.0.saturating_sub(before.0) as f64 / released as f64
                }
                _ => 0.0,
            }
        });
        Ok(shares.fold(0.0, f64::max))
    }

    /// Returns a note on packets that waited in front of the first probe. The train of an earlier measurement against a
    /// faster profile left the queue of 100 kbit/s full for seconds.
    pub fn waiting(&self, resolution_ns: u64) -> impl Iterator<Item = String> {
        let ways = self
            .before
            .iter()
            .flat_map(|before| [("up", &before.up), ("down", &before.down)]);
        let ways = ways.filter_map(|(name, way)| Some((name, way.as_ref()?.link.backlog_ns?)));
        let servers = self.before.iter().flat_map(|before| &before.bottlenecks);
        let servers = servers.map(|server| (&*server.name, server.backlog_ns()));
        let all = ways.chain(servers);
        let noticed = all.filter(move |(_, backlog_ns)| *backlog_ns > resolution_ns);
        noticed.map(|(name, backlog_ns)| {
            format!(
                "{name}: the queue held packets for {} at the start, from other traffic or an \
                 earlier measurement; the first probes waited after them",
                Time(backlog_ns - backlog_ns % 1_000_000)
            )
        })
    }

    /// Returns what the emulator, not the link, did to packets since then.
    pub fn failures(&self, interface: &str) -> Result<Vec<String>, VerifyError> {
        let after = reports::reports(Some(interface))?;
        let mut notes = Vec::new();
        for (before, after) in self.before.iter().zip(&after) {
            let both = [
                ("up", &before.up, &after.up),
                ("down", &before.down, &after.down),
            ];
            for (name, before, after) in both {
                if let (Some(before), Some(after)) = (before, after) {
                    notes.extend(failure(name, before, after));
                }
            }
        }
        Ok(notes)
    }
}

impl Asked {
    /// Returns a direction for a plot, as [`compiled`] but also if it has parts that cannot be judged, and those parts.
    pub fn outline(
        profile: &Profile,
        direction: u32,
        longest: usize,
    ) -> Result<(Self, Vec<&'static str>), VerifyError> {
        let asked = of_profile(profile, direction, longest)?;
        let left_out = asked.reasons().collect();
        Ok((asked, left_out))
    }

    pub(super) fn reasons(&self) -> impl Iterator<Item = &'static str> {
        self.unjudged.iter().map(|u| u.why)
    }

    /// Phases are other links with any properties.
    fn with_phases(mut self, profile: Option<&Profile>) -> Self {
        if profile.is_some_and(|profile| !profile.phases.list.is_empty()) {
            self.unjudged.push(Unjudged {
                why: "phases",
                what: &What::ALL,
                limits: true,
            });
        }
        self
    }

    /// Returns whether no check of it is valid.
    pub fn nothing_judged(&self) -> bool {
        nothing_judged(&[self])
    }
}

/// A time up to [`LEASE`] may be a lease, which its process renews.
fn ends_first(ends_in_s: f64, duration_ns: u64) -> bool {
    let duration_s = duration_ns as f64 / 1e9;
    ends_in_s > LEASE.as_secs_f64() && ends_in_s < duration_s
}

/// A profile's link that the interface does not have is measured as if it had it, and disagrees.
fn requested(
    against: Option<&Profile>,
    running: Option<&Asked>,
    direction: u32,
    longest: usize,
) -> Result<Option<Asked>, VerifyError> {
    let Some(profile) = against else {
        return Ok(running.cloned());
    };
    let asked = compiled(profile, direction, longest)?;
    Ok((running.is_some() || asked.has_effect()).then_some(asked))
}

/// Compiles a direction of a profile.
pub fn compiled(profile: &Profile, direction: u32, longest: usize) -> Result<Asked, VerifyError> {
    let asked = of_profile(profile, direction, longest)?;
    let asked = asked.with_phases(Some(profile));
    Ok(asked.with_class(Some(profile), direction, longest))
}

fn of_profile(profile: &Profile, direction: u32, longest: usize) -> Result<Asked, VerifyError> {
    let place = PacketTarget {
        release: abi::EMUD_RELEASE_NONE,
        ifindex: 0,
        l3: false,
    };
    let mut compiled =
        compile(profile.direction(direction), 0, direction, 0, place).map_err(|e| {
            VerifyError::Spread {
                direction: direction_name(direction),
                source: e,
            }
        })?;
    matching(profile, direction, std::slice::from_mut(&mut compiled));
    let pattern = compiled.pattern.as_deref();
    Ok(Asked::of(&compiled.link, &compiled.table, pattern, longest))
}

fn failure(name: &str, before: &Direction, after: &Direction) -> Vec<String> {
    let mut notes = Vec::new();
    let dropped = after.engine_dropped.saturating_sub(before.engine_dropped);
    if dropped > 0 {
        notes.push(format!(
            "{name}: the engine, not the link, dropped {dropped} packets"
        ));
    }
    let passed = |d: &Direction| d.link.counters.passed.no_holder + d.link.counters.passed.failed;
    let untouched = passed(after).saturating_sub(passed(before));
    if untouched > 0 {
        notes.push(format!(
            "{name}: {untouched} packets passed without emulation"
        ));
    }
    if let (Some(before), Some(after)) = (&before.holder, &after.holder) {
        let late = after.late.saturating_sub(before.late);
        let of = after.released.saturating_sub(before.released);
        if late > 0 {
            notes.push(format!(
                "{name}: this machine released {late} of {of} packets more than 1 ms late"
            ));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::theory::Source;
    use crate::verify::{Check, CheckVerdict, Method, Outcome, Unit};

    const PROFILE: &str = "[down]\ndelay = \"20ms\"";

    /// A direction was passed over if the interface did not emulate it, whatever the profile had there.
    #[test]
    fn a_link_that_only_the_profile_has_is_measured() {
        let profile = Profile::parse(PROFILE, "test").unwrap();
        let of = |against, direction| requested(against, None, direction, 1442).unwrap();
        assert_eq!(of(None, abi::EMUD_DOWN), None);
        assert_eq!(of(Some(&profile), abi::EMUD_UP), None);
        let down = of(Some(&profile), abi::EMUD_DOWN);
        assert_eq!(down.map(|asked| asked.mean_ns), Some(20e6));
    }

    fn links(running: [Option<Asked>; 2]) -> Links {
        Links {
            interface: "eth0".to_owned(),
            profile: "test".to_owned(),
            up: Some(Asked::nothing()),
            down: None,
            running,
            l3: false,
            mtu: 1500,
            before: Vec::new(),
            version: Version {
                link_id: 1,
                generation: 1,
            },
            text: String::new(),
        }
    }

    /// Nothing measures a rate that the profile does not have, and probes agree with a small loss.
    #[test]
    fn what_no_check_notices_is_not_passed_over() {
        let verdict_of = |running: Option<Asked>| {
            let peer = IpAddr::from([192, 0, 2, 1]);
            let request = Request {
                interface: "eth0".to_owned(),
                peer_netns: None,
                peer: Some(peer),
                against: None,
                duration_ns: 1,
                resolution_ns: 1,
            };
            let links = links([running, None]);
            let mut outcome = Outcome::new(&request, &links, Method::OneWay, peer);
            outcome.checks.push(Check {
                direction: "up",
                what: What::Loss,
                unit: Unit::Share,
                asked: 0.0,
                measured: Some(0.0),
                interval: None,
                notices: None,
                verdict: CheckVerdict::Agrees,
                why: None,
            });
            outcome.conclude();
            outcome.verdict
        };
        assert_eq!(verdict_of(None), CheckVerdict::Disagrees);
        let verdict = |running| verdict_of(Some(running));
        let with = |rate_bit_s, unjudged| Asked {
            rate_bit_s,
            unjudged,
            ..Asked::nothing()
        };
        assert_eq!(verdict(Asked::nothing()), CheckVerdict::Agrees);
        let limited = with(Some(1e6), Vec::new());
        assert_eq!(verdict(limited), CheckVerdict::NotJudged);
        let part = |limits| Unjudged {
            why: "a part",
            what: &[What::Rate],
            limits,
        };
        let other = with(None, vec![part(false)]);
        assert_eq!(verdict(other), CheckVerdict::Agrees);
        let hidden = with(None, vec![part(true)]);
        assert_eq!(verdict(hidden), CheckVerdict::NotJudged);
    }

    /// Then no echo does not mean that the peer is silent.
    #[test]
    fn a_link_that_may_lose_all_is_known() {
        let with = |loss, unjudged| Asked {
            loss,
            unjudged,
            ..Asked::nothing()
        };
        let part = |what: &'static [What]| Unjudged {
            why: "a part",
            what,
            limits: false,
        };
        let may = |way: Asked| links([None, Some(way)]).may_lose_all();
        assert!(!links([None, None]).may_lose_all());
        assert!(!may(with(0.4, Vec::new())) && may(with(1.0, Vec::new())));
        assert!(!may(with(0.0, vec![part(&[What::Rate])])));
        assert!(may(with(0.0, vec![part(&[What::Rate, What::Loss])])));
        let both = with(0.4, Vec::new());
        assert!(links([Some(both.clone()), Some(both)]).may_lose_all());
    }

    #[test]
    fn a_round_trip_has_the_restrictions_of_both_directions() {
        let without = |what: &'static [What]| Asked {
            unjudged: vec![Unjudged {
                why: "a part",
                what,
                limits: false,
            }],
            ..Asked::nothing()
        };
        let whole = without(&What::ALL);
        let delay = without(&[What::DelayMean, What::DelaySd, What::DelayDistribution]);
        let rest = without(&[What::Loss, What::Duplicates, What::Overtaken, What::Rate]);
        let nothing = Asked::nothing();
        for (ways, none) in [
            (vec![&nothing, &nothing], false),
            (vec![&whole, &nothing], true),
            (vec![&delay, &nothing], false),
            (vec![&delay, &rest], true),
        ] {
            assert_eq!(nothing_judged(&ways), none, "{ways:?}");
        }
        // Order has no theory beside such losses and copies.
        let jitter = Asked {
            source: Source::Independent {
                table_ns: Vec::new(),
            },
            ..without(&[What::Loss, What::Duplicates, What::Rate])
        };
        assert!(nothing_judged(&[&delay, &jitter]) && !jitter.nothing_judged());
    }

    /// A lease of 5 s is renewed every second.
    #[test]
    fn an_end_is_early_and_a_lease_is_not() {
        let thirty = 30_000_000_000;
        assert!(ends_first(29.9, thirty));
        assert!(!ends_first(30.1, thirty));
        assert!(!ends_first(4.9, thirty));
        assert!(ends_first(5.1, thirty));
    }
}
