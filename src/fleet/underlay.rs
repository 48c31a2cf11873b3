// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the hosts' own network adds to a link between two hosts, and how it is taken off.

use std::collections::BTreeMap;

use ipnet::{IpNet, Ipv4Net};

use crate::datapath::LinkError;
use crate::experiment::scenario::{Plan, Wire};
use crate::profile::quantile::{SpreadError, TABLE_STEPS, Table, delay_table};
use crate::profile::{
    Delay, Link, NamedLink, Profile, Rule, Shape, Target, Time, Trace, TraceSource,
    delay_with_trace,
};

/// Maximum length of the name of a link in a profile.
const NAME_BYTES: usize = 32;

/// Whether a wire can be between two hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Crossing {
    /// Yes, if the underlay is not slower than this smallest one-way delay in ns.
    Delay(u64),
    /// No, for this reason.
    Never(String),
}

/// Returns whether a wire of a plan can be between two hosts.
pub fn crossing(plan: &Plan, wire: &Wire) -> Crossing {
    let ends = &wire.ends;
    let own = plan.links.iter().find(|link| {
        (ends.iter())
            .any(|end| end.node.as_ref() == Some(&link.node) && end.interface == link.interface)
    });
    if let Some(link) = own {
        return of_profile(&link.profile);
    }
    let Some((profile, peer)) = of_bridge(plan, wire) else {
        return Crossing::Delay(0);
    };
    let link =
        class_of(profile, peer).and_then(|name| profile.links.iter().find(|l| l.name == name));
    match link {
        Some(named) => least([&named.up, &named.down].into_iter()),
        None => Crossing::Delay(0),
    }
}

/// Returns the profile of the bridge to which a wire belongs, and the address of the other end.
fn of_bridge<'a>(plan: &'a Plan, wire: &Wire) -> Option<(&'a Profile, Ipv4Net)> {
    let link = plan.links.iter().find(|link| {
        let node = plan.nodes.iter().find(|node| node.name == link.node);
        let bridge = node.and_then(|node| node.bridge.as_ref());
        bridge.is_some_and(|bridge| {
            let port = |end: &crate::experiment::scenario::PlannedEnd| {
                end.node.as_ref() == Some(&link.node) && bridge.ports.contains(&end.interface)
            };
            bridge.interface == link.interface && wire.ends.iter().any(port)
        })
    })?;
    let other = wire
        .ends
        .iter()
        .find(|end| end.node.as_ref() != Some(&link.node))?;
    Some((&link.profile, other.address?))
}

/// Returns the link whose rules have this address as source or destination.
fn class_of(profile: &Profile, peer: Ipv4Net) -> Option<String> {
    let rule = profile
        .rules
        .iter()
        .find(|rule| network(rule).is_some_and(|net| net.contains(&peer)))?;
    match &rule.target {
        Target::Named(name) => Some(name.clone()),
        _ => None,
    }
}

fn network(rule: &Rule) -> Option<Ipv4Net> {
    match rule.matches.source.or(rule.matches.destination)? {
        IpNet::V4(net) => Some(net),
        IpNet::V6(_) => None,
    }
}

fn of_profile(profile: &Profile) -> Crossing {
    if profile.matrix.is_some() {
        return Crossing::Never("it has a matrix of delays".into());
    }
    let named = (profile.links.iter()).flat_map(|named| [&named.up, &named.down]);
    let phases = (profile.phases.list.iter()).flat_map(|phase| [&phase.up, &phase.down]);
    // With phases, they are in force in place of the profile's own link.
    let own = [&profile.up, &profile.down].into_iter();
    let own = own.filter(|_| profile.phases.list.is_empty());
    least(own.chain(named).chain(phases))
}

fn least<'a>(links: impl Iterator<Item = &'a Link>) -> Crossing {
    let mut least_ns = u64::MAX;
    for link in links {
        if let Some(why) = fixed(link) {
            return Crossing::Never(why.to_owned());
        }
        match shortest(link) {
            Ok(shortest_ns) => least_ns = least_ns.min(shortest_ns),
            Err(why) => return Crossing::Never(why.to_string()),
        }
    }
    Crossing::Delay(least_ns)
}

/// Returns the delay of a link in ns below which one packet in 741 is: x = -3 of its distribution.
fn shortest(link: &Link) -> Result<u64, SpreadError> {
    // About another mean, if only rows of a trace say how it varies.
    let widest = delay_with_trace(link);
    let at = delay_table(&widest)?[5 * TABLE_STEPS / 16];
    Ok((at + link.delay.mean_ns).saturating_sub(widest.mean_ns))
}

/// Returns why nothing can be taken off the delay of a link; `None`: it can.
fn fixed(link: &Link) -> Option<&'static str> {
    if link.trace.as_ref().is_some_and(has_delay) {
        return Some("its delay follows a trace");
    }
    if link.delay.share.is_some_and(|share| share < 1.0) {
        return Some("only a share of its packets is delayed");
    }
    if link.reorder.is_some() {
        return Some("it sends a share of its packets without delay");
    }
    None
}

fn has_delay(trace: &Trace) -> bool {
    match &trace.source {
        TraceSource::Rows { rows, .. } => rows.iter().any(|row| row.delay_ns.is_some()),
        TraceSource::Mahimahi(_) => false,
        TraceSource::InForce(summary) => summary.max_delay_ns.is_some(),
    }
}

/// One-way delays of the underlay between the ends of a link.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Added {
    /// Delay to the other end of the link's wire in ns.
    pub own_ns: u64,
    /// With a bridge, the delay to each other host with peers in ns, and their addresses.
    pub peers: BTreeMap<String, (u64, Vec<Ipv4Net>)>,
}

/// Returns the profile that together with the underlay is the configured one. A delay that
/// is shorter than the underlay's by up to `tolerance_ns` becomes 0, with a note.
///
/// # Errors
/// Why it cannot be met.
pub fn reduce(
    profile: &Profile,
    added: &Added,
    tolerance_ns: u64,
    notes: &mut Vec<String>,
) -> Result<Profile, String> {
    let mut reduced = profile.clone();
    if added.own_ns > 0 {
        for link in in_force(&mut reduced) {
            less(link, added.own_ns, tolerance_ns, notes)?;
        }
    }
    for (n, (delay_ns, addresses)) in added.peers.values().enumerate() {
        split(
            &mut reduced,
            profile,
            n,
            *delay_ns,
            addresses,
            tolerance_ns,
            notes,
        )?;
    }
    // Again with all rules between keys, such as a jitter that is too wide for the rest.
    let text = reduced.to_toml();
    Profile::parse(&text, "the profile without the underlay's delay").map_err(|e| e.to_string())
}

/// Returns all links of a profile that packets can have. With phases, these are in force in place of
/// its own link.
fn in_force(profile: &mut Profile) -> impl Iterator<Item = &mut Link> {
    let named = (profile.links.iter_mut()).flat_map(|named| [&mut named.up, &mut named.down]);
    let plain = profile.phases.list.is_empty();
    let phases = (profile.phases.list.iter_mut()).flat_map(|p| [&mut p.up, &mut p.down]);
    let own = [&mut profile.up, &mut profile.down].into_iter();
    own.filter(move |_| plain).chain(named).chain(phases)
}

/// Returns a reduced profile of a link between hosts after assignments of `emud set`, which mean the
/// link together with the underlay. `tolerance_ns`: for peers of a bridge, as at the start.
///
/// # Errors
/// A mistake in them; [`LinkError::BetweenHosts`]: a delay is shorter than the underlay's.
pub fn change(
    reduced: &Profile,
    added: &Added,
    tolerance_ns: u64,
    assignments: &[String],
) -> Result<Profile, LinkError> {
    let added_ns = added.own_ns;
    if !added.peers.is_empty() {
        let asked = joined(reduced, added.peers.len()).with_changes(assignments)?;
        return reduce(&asked, added, tolerance_ns, &mut vec![]).map_err(LinkError::BetweenHosts);
    }
    if added_ns == 0 {
        return Ok(reduced.with_changes(assignments)?);
    }
    let mut whole = reduced.clone();
    for link in in_force(&mut whole) {
        link.delay.mean_ns += added_ns;
        link.delay.max_ns = link.delay.max_ns.map(|max| max + added_ns);
    }
    let mut asked = whole.with_changes(assignments)?;
    let least = in_force(&mut asked).map(|link| link.delay.mean_ns).min();
    if let Some(least) = least.filter(|least| *least < added_ns) {
        return Err(LinkError::BetweenHosts(format!(
            "a delay of {} is shorter than the smallest possible one, {}: that of the network \
             between the hosts",
            Time(least),
            Time(added_ns)
        )));
    }
    reduce(&asked, added, tolerance_ns, &mut vec![]).map_err(LinkError::BetweenHosts)
}

/// Returns a profile without the links and rules that [`split`] has added for each of `hosts`.
fn joined(reduced: &Profile, hosts: usize) -> Profile {
    let is_added = |name: &String| {
        let from = |link: &NamedLink| (0..hosts).any(|n| *name == split_name(n, &link.name));
        reduced.links.iter().any(from)
    };
    let mut whole = reduced.clone();
    whole.links.retain(|link| !is_added(&link.name));
    (whole.rules).retain(|rule| !matches!(&rule.target, Target::Named(name) if is_added(name)));
    whole
}

/// Returns the name of the link of peers on host `n`.
fn split_name(n: usize, name: &str) -> String {
    format!("h{n}-{name}").chars().take(NAME_BYTES).collect()
}

fn less(
    link: &mut Link,
    delay_ns: u64,
    tolerance_ns: u64,
    notes: &mut Vec<String>,
) -> Result<(), String> {
    if let Some(why) = fixed(link) {
        return Err(why.to_owned());
    }
    let shortest_ns = shortest(link).map_err(|e| e.to_string())?;
    let beyond_ns = delay_ns.saturating_sub(shortest_ns);
    if beyond_ns > tolerance_ns {
        return Err(too_short(shortest_ns, delay_ns, tolerance_ns));
    }
    if beyond_ns > 0 {
        notes.push(format!(
            "a delay of {} between hosts is {} (the underlay's)",
            Time(shortest_ns),
            Time(delay_ns)
        ));
    }
    let whole = Delay {
        max_ns: None,
        ..delay_with_trace(link)
    };
    let delay = &mut link.delay;
    delay.mean_ns = delay.mean_ns.saturating_sub(delay_ns);
    let rest = delay.mean_ns;
    delay.max_ns = delay
        .max_ns
        .map(|max| max.saturating_sub(delay_ns).max(rest).max(1));
    let fits = delay_table(delay).is_ok();
    if let Some(jitter) = &mut delay.jitter
        && (!fits || jitter.distribution == Shape::LogNormal)
    {
        // The shape of a lognormal delay depends on its mean, and a uniform one has no room for what is cut off at
        // zero: a table does it.
        let mut delays = delay_table(&whole).map_err(|e| e.to_string())?;
        (delays.iter_mut()).for_each(|ns| *ns = ns.saturating_sub(delay_ns));
        let flat = |_| too_short(shortest_ns, delay_ns, tolerance_ns);
        let table = Table::of_delays(&delays).map_err(flat)?;
        jitter.distribution = Shape::Table(table.into());
    }
    Ok(())
}

/// Says that the underlay is slower than the shortest configured delay.
pub fn too_short(asked_ns: u64, delay_ns: u64, tolerance_ns: u64) -> String {
    format!(
        "the shortest delay, {}, cannot be met: the network between the hosts alone takes {} (--tolerance is \
         {}; give both nodes the same `host`, or raise --tolerance)",
        Time(asked_ns),
        Time(delay_ns),
        Time(tolerance_ns)
    )
}

/// Gives the peers on another host separate links, which are shorter by the way to them.
fn split(
    reduced: &mut Profile,
    asked: &Profile,
    n: usize,
    delay_ns: u64,
    addresses: &[Ipv4Net],
    tolerance_ns: u64,
    notes: &mut Vec<String>,
) -> Result<(), String> {
    let mut rules = Vec::new();
    for named in &asked.links {
        let (mut up, mut down) = (named.up.clone(), named.down.clone());
        let mut used = false;
        let name = split_name(n, &named.name);
        for rule in asked
            .rules
            .iter()
            .filter(|rule| rule.target == Target::Named(named.name.clone()))
        {
            let Some(class) = network(rule) else { continue };
            for address in addresses.iter().filter(|address| class.contains(*address)) {
                used = true;
                let mut own = rule.clone();
                let net = Some(IpNet::V4(*address));
                match own.matches.source.is_some() {
                    true => own.matches.source = net,
                    false => own.matches.destination = net,
                }
                own.target = Target::Named(name.clone());
                rules.push(own);
            }
        }
        if !used {
            continue;
        }
        less(&mut up, delay_ns, tolerance_ns, notes)?;
        less(&mut down, delay_ns, tolerance_ns, notes)?;
        reduced.links.push(NamedLink { name, up, down });
    }
    reduced.rules.splice(0..0, rules);
    Ok(())
}
