// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each host's part of a plan.

use std::collections::{BTreeMap, BTreeSet};

use emud::experiment::scenario::{Overrides, Plan, shipped};
use emud::fleet::FleetError;
use emud::fleet::clock::Estimate;
use emud::fleet::facts::Facts;
use emud::fleet::placement::place;
use emud::fleet::plan::{HostPlan, divide, reachable};
use emud::fleet::status::plan_text;

use super::{facts, hosts, options, plan};

fn parts(plan: &Plan, count: u8) -> BTreeMap<String, HostPlan> {
    try_parts(plan, count).unwrap()
}

fn try_parts(plan: &Plan, count: u8) -> Result<BTreeMap<String, HostPlan>, FleetError> {
    let names = hosts(&vec![1.0; count.into()]);
    let host_of = place(plan, &names, 1_000_000).unwrap_or_else(|e| panic!("{e}"));
    let of = |(n, host): (u8, &emud::fleet::placement::Host)| (host.name.clone(), facts(n));
    let all: Vec<(String, Facts)> = (0..).zip(&names).map(of).collect();
    divide(plan, &host_of, &all, &options(), 0x1234)
}

fn estimate(delay_ns: u64) -> Estimate {
    Estimate {
        offset_ns: 0,
        bound_ns: delay_ns,
        delay_ns,
        answers: 100,
    }
}

fn underlay(part: &HostPlan, delay_ns: u64) -> BTreeMap<String, Estimate> {
    part.peers
        .keys()
        .map(|host| (host.clone(), estimate(delay_ns)))
        .collect()
}

fn shipped(name: &str) -> Plan {
    shipped::find(name)
        .unwrap()
        .plan(&Overrides::default())
        .unwrap()
}

/// Too many for one host, not for several. 64 hosts are those of the thesis on NET.
#[test]
fn nodes_are_limited_on_each_host() {
    let of_size = |nodes: usize| {
        let size = Overrides {
            // Besides the two ends.
            nodes: u32::try_from(nodes - 2).ok(),
            ..Overrides::default()
        };
        let plan = shipped::find("chain").unwrap().plan(&size).unwrap();
        assert_eq!(plan.nodes.len(), nodes);
        plan
    };
    let plan = of_size(1792);
    let small = of_size(704);
    for (plan, hosts, most) in [(&plan, 2, 896), (&plan, 64, 28), (&small, 64, 11)] {
        let parts = parts(plan, hosts);
        assert_eq!(parts.len(), usize::from(hosts));
        let nodes = parts.values().map(|part| part.nodes.len());
        assert_eq!(nodes.max(), Some(most), "{hosts}");
    }
    // At the limit.
    assert!(try_parts(&of_size(1024), 1).is_ok());
    let why = try_parts(&of_size(1025), 1).unwrap_err().to_string();
    assert!(
        why.contains(": 1025 nodes: one host takes up to 1024; "),
        "{why}"
    );
    let why = try_parts(&plan, 1).unwrap_err().to_string();
    assert!(
        why.ends_with("several hosts") && why.contains(": 1792 nodes: one host takes up to 1024; "),
        "{why}"
    );
}

/// Every shipped scenario without a medium: the parts together are the whole.
#[test]
fn nothing_is_lost_or_twice() {
    for name in ["chain", "dumbbell", "star"] {
        let plan = shipped(name);
        let parts = parts(&plan, 3);
        assert_eq!(parts.len(), 3, "{name}");
        let nodes: Vec<_> = parts
            .values()
            .flat_map(|part| part.nodes.iter().map(|n| &n.name))
            .collect();
        assert_eq!(nodes.len(), plan.nodes.len(), "{name}");
        assert_eq!(
            nodes.iter().collect::<BTreeSet<_>>().len(),
            nodes.len(),
            "{name}"
        );
        let links: usize = parts.values().map(|part| part.links.len()).sum();
        assert_eq!(links, plan.links.len(), "{name}");
        let (tunnels, wires): (Vec<_>, Vec<_>) =
            (parts.values().flat_map(|part| &part.wires)).partition(|wire| wire.tunnel.is_some());
        assert_eq!(wires.len() + tunnels.len() / 2, plan.wires.len(), "{name}");
        assert!(!tunnels.is_empty());
        // Both ends of a tunnel, and only they, have the same number, and each other's address.
        for wire in &tunnels {
            let own = wire.tunnel.unwrap();
            let same = tunnels
                .iter()
                .filter_map(|other| other.tunnel)
                .filter(|other| other.vni == own.vni);
            let ends: Vec<_> = same.map(|other| (other.local, other.remote)).collect();
            assert_eq!(ends.len(), 2, "{name}");
            assert_eq!(ends[0], (ends[1].1, ends[1].0), "{name}");
        }
    }
}

/// Both hosts of a pair with links between them have the same one, which is no link's, and no other pair has.
#[test]
fn each_pair_of_hosts_has_a_tunnel_for_probes() {
    for name in ["chain", "dumbbell", "star"] {
        let parts = parts(&shipped(name), 3);
        let of_links = parts.values().flat_map(|part| &part.wires);
        let mut others: BTreeSet<u32> =
            of_links.filter_map(|wire| Some(wire.tunnel?.vni)).collect();
        for (host, part) in &parts {
            let to: BTreeSet<_> = part.tunnels.iter().map(|tunnel| &tunnel.host).collect();
            assert_eq!(
                part.probe_vnis.keys().collect::<BTreeSet<_>>(),
                to,
                "{name}"
            );
            for (peer, vni) in &part.probe_vnis {
                assert_eq!(parts[peer].probe_vnis[host], *vni, "{name}");
                assert!(host > peer || others.insert(*vni), "{name}");
                assert_eq!(
                    part.tunnel_to(peer).unwrap().remote,
                    part.peers[peer].address
                );
            }
        }
    }
}

#[test]
fn a_part_is_the_same_behind_etcd() {
    for name in ["chain", "star"] {
        for part in parts(&shipped(name), 3).values() {
            let text = serde_json::to_string(part).unwrap();
            let back: HostPlan = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&back).unwrap(), text);
        }
    }
}

/// Addresses, routes, names and seeds are those of one host.
#[test]
fn nodes_cannot_see_that_there_are_several_hosts() {
    let whole = shipped("chain");
    for part in parts(&whole, 3).values() {
        let (own, _) = part.to_plan(&underlay(part, 50_000), "x").unwrap();
        for node in &own.nodes {
            let same = whole.nodes.iter().find(|n| n.name == node.name).unwrap();
            assert_eq!(node.routes, same.routes);
            assert_eq!(own.addresses(&node.name), whole.addresses(&node.name));
            assert_eq!(node.forwards(), same.forwards());
        }
        let lines = |text: String| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
        assert_eq!(lines(own.hosts()), lines(whole.hosts()));
        for link in &own.links {
            assert_eq!(whole.links[link.number].name, link.name);
        }
    }
}

#[test]
fn the_underlay_is_taken_off_links_between_hosts_only() {
    let whole = shipped("chain");
    let (mut between, mut within) = (0, 0);
    for part in parts(&whole, 3).values() {
        let (own, notes) = part.to_plan(&underlay(part, 60_000), "x").unwrap();
        assert_eq!(notes, [""; 0]);
        for (link, asked) in own.links.iter().zip(&part.links) {
            let delay = link.profile.up.delay.mean_ns;
            assert_eq!(delay, link.profile.down.delay.mean_ns);
            match asked.across {
                Some(_) => between += usize::from(delay == 940_000),
                None => within += usize::from(delay == 1_000_000),
            }
        }
    }
    assert_eq!((between, within), (2, 10));
}

#[test]
fn a_slow_underlay_is_refused_with_its_place() {
    let whole = shipped("chain");
    let parts = parts(&whole, 3);
    let part = &parts["h0"];
    let error = part.to_plan(&underlay(part, 1_500_000), "x").unwrap_err();
    let text = error.to_string();
    for piece in ["hop", "h0", "h1", "1.5ms", "1ms", "--tolerance"] {
        assert!(text.contains(piece), "{piece}: {text}");
    }
    assert_eq!(error.exit_code(), 69);
}

/// A peer of a star on another host has a link that is shorter than those of its class.
#[test]
fn peers_of_a_star_on_other_hosts_have_links_of_their_own() {
    let whole = shipped("star");
    let parts = parts(&whole, 3);
    let hub = parts
        .values()
        .find(|part| part.nodes.iter().any(|n| n.name == "hub"))
        .unwrap();
    let (own, _) = hub.to_plan(&underlay(hub, 70_000), "x").unwrap();
    let [asked, given] = [&whole.links[0].profile, &own.links[0].profile];
    assert!(given.links.len() > asked.links.len());
    let own = |named: &&emud::profile::NamedLink| asked.links.iter().all(|l| l.name != named.name);
    for named in given.links.iter().filter(own) {
        let class = asked
            .links
            .iter()
            .find(|l| named.name.ends_with(&l.name))
            .unwrap();
        assert_eq!(named.up.delay.mean_ns, class.up.delay.mean_ns - 70_000);
        assert_eq!(named.down.delay.mean_ns, class.down.delay.mean_ns - 70_000);
    }
    // Every peer elsewhere meets such a rule first, as source and as destination.
    let elsewhere: Vec<_> = (hub.links[0].peers.values().flatten())
        .flat_map(|net| net.hosts())
        .collect();
    assert!(elsewhere.len() > 10, "{elsewhere:?}");
    for peer in elsewhere {
        let peer = std::net::IpAddr::V4(peer);
        let first = |of: fn(&emud::profile::Match) -> Option<ipnet::IpNet>| {
            let rule = given
                .rules
                .iter()
                .find(|r| of(&r.matches).is_some_and(|net| net.contains(&peer)));
            format!("{:?}", rule.unwrap().target)
        };
        assert!(first(|m| m.source).contains("\"h"), "{peer}");
        assert!(first(|m| m.destination).contains("\"h"), "{peer}");
    }
}

/// The classes of a bottleneck are one server, and the stations of a medium hear each other.
#[test]
fn a_plan_says_what_is_on_one_host() {
    let whole = plan(
        "[medium.air]\nnodes = [\"a\", \"b\"]\n[node.a]\nhost = \"h0\"\ncommand = \"true\"\n\
         [node.b]\n[node.c]\nhost = \"h1\"\n\
         [link.l]\nbetween = [\"c\", \"b\"]\n[link.l.profile]\n\
         link = { delay = \"5ms\", class = \"uplink\" }\nbottleneck.uplink.rate = \"10Mbit\"\n\
         links.far = { delay = \"9ms\", class = \"uplink\" }\n\
         rule = [{ match = { dscp = \"ef\" }, link = \"far\" }]\n",
    );
    let parts = parts(&whole, 2);
    let (here, other) = match parts["h0"].links.is_empty() {
        true => ("h1", "h0"),
        false => ("h0", "h1"),
    };
    let text = plan_text(&parts, &whole);
    let of = |host: &str| {
        let lines = text.lines().skip_while(|line| *line != host).skip(1);
        lines
            .take_while(|line| line.starts_with(' '))
            .collect::<Vec<_>>()
    };
    let bottleneck = "    bottleneck uplink stays here, with link l far";
    assert!(of(here).contains(&bottleneck), "{text}");
    assert!(!of(other).contains(&bottleneck), "{text}");
    assert!(
        of("h0").contains(&"    medium air stays here, with a b"),
        "{text}"
    );
}

/// It would be a file that a plan makes root create on the host.
#[test]
fn no_record_of_a_medium_is_written() {
    let whole = plan(
        "[medium.wlan0]\nrecord = \"/etc/shadow\"\n[node.a]\nhost = \"h0\"\ncommand = \"true\"\n\
         [node.b]\nhost = \"h0\"\n[node.c]\nhost = \"h0\"\n",
    );
    let parts = parts(&whole, 1);
    let (own, notes) = parts["h0"].to_plan(&BTreeMap::new(), "x").unwrap();
    assert_eq!(own.media.len(), 1);
    assert_eq!(own.media[0].record, None);
    assert!(notes[0].contains("no record /etc/shadow"), "{notes:?}");
}

/// The keys of a table may be dotted or inline.
#[test]
fn a_medium_is_built_however_it_is_written() {
    for medium in [
        "[medium.air]\n",
        "[ medium . \"air\" ]\n",
        "medium.air.attempts = 5\n",
        "medium = { air = { attempts = 5 } }\n",
        "[medium]\nair = { attempts = 5 }\n",
        "segment.air.rate = \"10Mbit\"\n",
        "segment = { air = { rate = \"10Mbit\" } }\n",
    ] {
        let whole = plan(&format!(
            "{medium}[node.a]\nhost = \"h0\"\ncommand = \"true\"\n[node.b]\n[node.c]\n"
        ));
        let parts = parts(&whole, 2);
        assert_eq!(parts.len(), 1, "{medium}");
        let (own, _) = parts["h0"].to_plan(&BTreeMap::new(), "x").unwrap();
        assert_eq!(own.media.len(), 1, "{medium}");
        assert_eq!(own.media[0].stations.len(), 3, "{medium}");
    }
}

/// It has no medium, only a text like the header of one.
#[test]
fn a_host_without_a_medium_reads_none() {
    let whole = plan(
        "[node.a]\nhost = \"h0\"\ncommand = \"echo [medium.air]\"\n[node.b]\nhost = \"h0\"\n\
         [link.l]\nbetween = [\"a\", \"b\"]\n",
    );
    let mut part = parts(&whole, 1).remove("h0").unwrap();
    part.text += "[link.l.profile]\nfile = \"is on the controller.toml\"\n";
    assert!(
        part.to_plan(&BTreeMap::new(), "x")
            .unwrap()
            .0
            .media
            .is_empty()
    );
}

/// The commands of all nodes of a host run one after the other.
#[test]
fn a_clean_up_takes_as_long_as_its_commands() {
    let whole = plan(
        "clean-up-within = \"20s\"\n[node.a]\nhost = \"h0\"\nclean-up = [\"x\", \"y\"]\ncommand = \"true\"\n\
         [node.b]\nhost = \"h0\"\nclean-up = \"z\"\n[node.c]\nhost = \"h1\"\n\
         [link.l]\nbetween = [\"a\", \"b\"]\n[link.m]\nbetween = [\"b\", \"c\"]\n\
         profile.link.delay = \"5ms\"\n",
    );
    let parts = parts(&whole, 2);
    assert_eq!(parts["h0"].longest_clean_up().as_secs(), 60);
    assert_eq!(parts["h1"].longest_clean_up().as_secs(), 20);
}

/// The number of a medium, from which its seed and addresses follow, is that of one host.
#[test]
fn media_of_different_hosts_have_different_numbers() {
    let parts = parts(&shipped("two-cells"), 2);
    let of = |part: &HostPlan| {
        let (own, _) = part.to_plan(&underlay(part, 50_000), "x").unwrap();
        let media = own.media.iter();
        let named = media.map(|medium| (medium.interface.clone(), medium.number));
        named.collect::<Vec<_>>()
    };
    let [west, east] = [("west", 0), ("east", 1)].map(|(name, n)| vec![(name.to_owned(), n)]);
    assert_eq!(["h0", "h1"].map(|host| of(&parts[host])), [west, east]);
}

#[test]
fn others_wait_only_for_what_is_reported() {
    let whole = plan(
        "[node.a]\nhost = \"h0\"\ncommand = \"true\"\n[node.b]\nhost = \"h1\"\ncommand = \"true\"\n\
         waits-for = [\"a\"]\n[node.c]\nhost = \"h0\"\ncommand = \"true\"\nwaits-for = [\"a\"]\n\
         [link.l]\nbetween = [\"a\", \"b\"]\nprofile.link.delay = \"5ms\"\n\
         [link.m]\nbetween = [\"a\", \"c\"]\nprofile.link.delay = \"5ms\"\n",
    );
    let parts = parts(&whole, 2);
    let awaited = |host: &str| parts[host].awaited.iter().cloned().collect::<Vec<_>>();
    assert_eq!(awaited("h0"), ["a"]);
    assert_eq!(awaited("h1"), [""; 0]);
    let (own, _) = parts["h1"]
        .to_plan(&underlay(&parts["h1"], 1000), "x")
        .unwrap();
    assert_eq!(own.nodes[0].waits_for.iter().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn only_hosts_that_others_reach_take_part_together() {
    let mut all = vec![("a".to_owned(), facts(0)), ("b".to_owned(), facts(1))];
    reachable(&[0, 1], &all).unwrap();
    for local in ["127.0.0.1", "::1", "0.0.0.0"] {
        all[1].1.address = local.parse().unwrap();
        let error = reachable(&[0, 1, 0], &all).unwrap_err();
        assert_eq!(error.exit_code(), 65);
        let error = error.to_string();
        assert!(
            error.starts_with(&format!("b has the address {local}")) && error.contains("--address"),
            "{error}"
        );
        reachable(&[1, 1], &all).unwrap();
        reachable(&[0], &all).unwrap();
    }
}

#[test]
fn one_host_has_neither_tunnels_nor_peers() {
    let parts = parts(&shipped("dumbbell"), 1);
    let part = &parts["h0"];
    assert!(part.tunnels.is_empty() && part.peers.is_empty() && part.reference.is_none());
    assert!(part.probe_vnis.is_empty());
    let (own, _) = part.to_plan(&BTreeMap::new(), "x").unwrap();
    let whole = shipped("dumbbell");
    for (link, asked) in own.links.iter().zip(&whole.links) {
        assert_eq!(link.profile, asked.profile);
    }
}
