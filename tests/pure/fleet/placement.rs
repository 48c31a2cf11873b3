// SPDX-License-Identifier: MIT OR Apache-2.0

use std::collections::BTreeSet;

use emud::experiment::scenario::Plan;
use emud::fleet::placement::place;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::{hosts, plan};

const FAST_NS: u64 = 1_000_000;

fn placed(plan: &Plan, weights: &[f64]) -> Vec<usize> {
    place(plan, &hosts(weights), FAST_NS).unwrap_or_else(|e| panic!("{e}"))
}

fn chain(routers: u32, delay: &str, more: &str) -> Plan {
    plan(&format!(
        "[topology]\nkind = \"chain\"\nrouters = {routers}\n\
         [topology.profile.link]\ndelay = \"{delay}\"\n\
         [node.\"r*\"]\ncommand = \"true\"\n{more}"
    ))
}

/// Number of wires between hosts.
fn cut(plan: &Plan, host_of: &[usize]) -> usize {
    let host = |name: &Option<String>| {
        let node = plan
            .nodes
            .iter()
            .position(|node| Some(&node.name) == name.as_ref());
        host_of[node.unwrap()]
    };
    let apart = |wire: &&emud::experiment::scenario::Wire| {
        host(&wire.ends[0].node) != host(&wire.ends[1].node)
    };
    plan.wires.iter().filter(apart).count()
}

#[test]
fn a_chain_is_cut_into_pieces() {
    let plan = chain(10, "1ms", "");
    let host_of = placed(&plan, &[1.0, 1.0, 1.0]);
    let count = |host| host_of.iter().filter(|h| **h == host).count();
    assert_eq!([0, 1, 2].map(count), [4, 4, 4]);
    // As few tunnels as there can be.
    assert_eq!(cut(&plan, &host_of), 2);
}

#[test]
fn weights_are_shares() {
    let plan = chain(10, "1ms", "");
    let host_of = placed(&plan, &[4.0, 1.0, 1.0]);
    let count = |host| host_of.iter().filter(|h| **h == host).count();
    assert_eq!([0, 1, 2].map(count), [8, 2, 2]);
    // One node is heavier than the others together.
    let plan = chain(10, "1ms", "[node.client]\nweight = 12\n");
    let host_of = placed(&plan, &[1.0, 1.0]);
    assert_eq!(host_of.iter().filter(|h| **h == host_of[0]).count(), 1);
}

#[test]
fn fast_links_stay_on_one_host() {
    let plan = chain(10, "200us", "");
    let host_of = placed(&plan, &[1.0, 1.0, 1.0]);
    assert_eq!(host_of.iter().collect::<BTreeSet<_>>().len(), 1);
}

#[test]
fn a_host_in_the_file_counts() {
    let plan = chain(
        2,
        "5ms",
        "[node.server]\nhost = \"h0\"\n[node.client]\nhost = \"h2\"\n",
    );
    let host_of = placed(&plan, &[1.0, 1.0, 1.0]);
    let of = |name: &str| host_of[plan.nodes.iter().position(|n| n.name == name).unwrap()];
    assert_eq!((of("server"), of("client")), (0, 2));
}

/// Nodes follow those with a host of the file, in whatever order the hosts are, and no host has more than its share.
#[test]
fn neighbours_of_a_pinned_node_share_its_host() {
    let ends = "[node.client]\nhost = \"h1\"\n[node.server]\nhost = \"h0\"\n";
    for hosts in [2, 3] {
        let plan = chain(10, "1ms", ends);
        let host_of = placed(&plan, &vec![1.0; hosts]);
        let count = |host| host_of.iter().filter(|h| **h == host).count();
        for host in 0..hosts {
            assert_eq!(count(host), 12 / hosts, "{host_of:?}");
        }
        assert_eq!(cut(&plan, &host_of), hosts - 1, "{host_of:?}");
    }
    let plan = chain(10, "1ms", "[node.r5]\nhost = \"h0\"\n");
    assert_eq!(cut(&plan, &placed(&plan, &[1.0, 1.0])), 1);
}

/// The ends of the arms of a star are on two hosts by turns: each arm has what is between its end and the
/// middle on that host.
#[test]
fn arms_of_pinned_ends_share_their_host() {
    let mut text = "[node.hub]\n".to_owned();
    for n in 0..4 {
        text += &format!(
            "[node.arm{n}]\n[node.end{n}]\ncommand = \"true\"\nhost = \"h{}\"\n\
             [link.in{n}]\nbetween = [\"hub\", \"arm{n}\"]\nprofile.link.delay = \"5ms\"\n\
             [link.out{n}]\nbetween = [\"arm{n}\", \"end{n}\"]\nprofile.link.delay = \"5ms\"\n",
            n % 2
        );
    }
    let plan = plan(&text);
    let host_of = placed(&plan, &[1.0, 1.0]);
    let of = |name: String| host_of[plan.nodes.iter().position(|n| n.name == name).unwrap()];
    for n in 0..4 {
        assert_eq!(of(format!("arm{n}")), of(format!("end{n}")), "{host_of:?}");
    }
    assert_eq!(cut(&plan, &host_of), 2, "{host_of:?}");
}

#[test]
fn a_host_that_is_not_there_is_named() {
    let plan = chain(2, "5ms", "[node.server]\nhost = \"far\"\n");
    let error = place(&plan, &hosts(&[1.0]), FAST_NS).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("node server") && text.contains("emud agent --host far"),
        "{text}"
    );
    assert_eq!(error.exit_code(), 65);
}

#[test]
fn the_file_may_separate_nodes_of_a_fast_link() {
    let plan = chain(
        1,
        "0ms",
        "[node.server]\nhost = \"h0\"\n[node.client]\nhost = \"h1\"\n",
    );
    let host_of = placed(&plan, &[1.0, 1.0]);
    assert_eq!(host_of.iter().collect::<BTreeSet<_>>().len(), 2);
}

const MEDIUM: &str = "[node.n2]\ncommand = \"true\"\n[topology]\nkind = \"mesh\"\nnodes = 4\nmedium = \"air\"\nspacing = \"10m\"\n\
                      [medium.air]\nradio = { standard = \"802.11b\", power = \"20dBm\", basic = \"1Mbit\" }\n";

#[test]
fn a_medium_is_on_one_host() {
    let plan = plan(MEDIUM);
    let host_of = placed(&plan, &[1.0, 1.0, 1.0]);
    assert_eq!(host_of.iter().collect::<BTreeSet<_>>().len(), 1);
}

#[test]
fn a_medium_between_hosts_is_refused_with_the_remedy() {
    let text = format!("{MEDIUM}[node.n1]\nhost = \"h0\"\n[node.n3]\nhost = \"h1\"\n");
    let error = place(&plan(&text), &hosts(&[1.0, 1.0]), FAST_NS)
        .unwrap_err()
        .to_string();
    for part in ["medium air", "n1", "h0", "n3", "h1", "same `host`"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn a_segment_is_on_one_host() {
    let text = "[node.a]\ncommand = \"true\"\nhost = \"h0\"\n[node.b]\n[segment.lan]\n";
    assert_eq!(placed(&plan(text), &[1.0, 1.0]), [0, 0]);
    let apart = text.replace("[node.b]", "[node.b]\nhost = \"h1\"");
    let error = place(&plan(&apart), &hosts(&[1.0, 1.0]), FAST_NS).unwrap_err();
    let error = error.to_string();
    for part in ["the segment lan", "a segment is on one host"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn a_delay_that_cannot_be_reduced_is_not_between_hosts() {
    let link = "[link.l]\nbetween = [\"a\", \"b\"]\n[link.l.profile.link]\ntrace = { rows = \"time_s,delay_ms;0,5;1,9\" }\n";
    let apart = plan(&format!(
        "[node.a]\ncommand = \"true\"\nhost = \"h0\"\n[node.b]\nhost = \"h1\"\n{link}"
    ));
    let error = place(&apart, &hosts(&[1.0, 1.0]), FAST_NS)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("the link l") && error.contains("trace"),
        "{error}"
    );
    let free = plan(&format!("[node.a]\ncommand = \"true\"\n[node.b]\n{link}"));
    assert_eq!(placed(&free, &[1.0, 1.0]), [0, 0]);
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    /// Every node has a host, no host has more than its share and one group.
    #[test]
    fn shares_are_kept(routers in 1_u32..60, weights in prop::collection::vec(0.5_f64..8.0, 1..6)) {
        let plan = chain(routers, "1ms", "");
        let host_of = placed(&plan, &weights);
        prop_assert_eq!(host_of.len(), plan.nodes.len());
        let sum: f64 = weights.iter().sum();
        for (host, weight) in weights.iter().enumerate() {
            let has = host_of.iter().filter(|h| **h == host).count() as f64;
            let share = plan.nodes.len() as f64 * weight / sum;
            prop_assert!(has <= share + 1.5, "{} of {}", has, share);
        }
        prop_assert!(cut(&plan, &host_of) < weights.len());
    }
}
