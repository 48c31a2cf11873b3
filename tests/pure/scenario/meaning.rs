// SPDX-License-Identifier: MIT OR Apache-2.0
//! The meaning of the keys.

use std::time::Duration;

use emud::experiment::scenario::{Node, Overrides, Plan, Program, key_tables};
use emud::profile::shipped as profiles;
use ipnet::Ipv4Net;

use super::{node, plan, read, with};

const TWO: &str = "[node.a]\ncommand = \"true\"\n[node.b]\n[link.l]\nbetween = [\"a\", \"b\"]\n";

fn waits_for(node: &Node) -> Vec<&str> {
    node.waits_for.iter().collect()
}

#[test]
fn a_single_link_leads_from_the_client_to_the_host() {
    let profile = profiles::find("hsdpa").unwrap();
    let network: Ipv4Net = "10.77.9.4/30".parse().unwrap();
    let program = Program::Argv(vec!["true".to_owned()]);
    let plan = Plan::single(profile.clone(), "hsdpa", program.clone(), network, "emud7");
    let client = node(&plan, "client");
    assert_eq!(client.command, Some(program));
    assert!(client.outside && !client.service && !client.forwards());
    let [wire] = &plan.wires[..] else {
        panic!("{:?}", plan.wires)
    };
    let ends = wire.ends.each_ref().map(|end| {
        (
            end.node.as_deref(),
            end.interface.as_str(),
            end.address.unwrap().to_string(),
        )
    });
    assert_eq!(
        ends[0],
        (Some("client"), "link0", "10.77.9.6/30".to_owned())
    );
    assert_eq!(ends[1], (None, "emud7", "10.77.9.5/30".to_owned()));
    let [route] = &client.routes[..] else {
        panic!("{:?}", client.routes)
    };
    assert_eq!(
        (route.to.prefix_len(), route.via),
        (0, "10.77.9.5".parse().ok())
    );
    let [link] = &plan.links[..] else {
        panic!("{:?}", plan.links)
    };
    assert_eq!((link.interface.as_str(), link.reversed), ("link0", false));
    assert_eq!(link.profile, profile);
    assert!(
        plan.hosts().contains("10.77.9.6 client\n"),
        "{}",
        plan.hosts()
    );
}

/// The addresses of the links stay: losses depend on them.
#[test]
fn the_wire_to_the_host_has_none_of_its_networks() {
    let text = TWO.replace("[node.b]", "outside = true\n[node.b]");
    let of = |taken: &[&str]| {
        let overrides = Overrides {
            taken: taken.iter().map(|net| net.parse().unwrap()).collect(),
            ..Overrides::default()
        };
        read(&text).and_then(|scenario| scenario.plan(&overrides))
    };
    for (taken, network, host) in [
        (&[][..], "10.77.0.4/30", "10.77.0.5"),
        (
            &["192.168.0.0/16", "10.77.0.0/30"],
            "10.77.0.4/30",
            "10.77.0.5",
        ),
        (&["10.77.0.5/32"], "10.77.0.8/30", "10.77.0.9"),
        (
            &["10.77.0.4/30", "10.77.0.0/24"],
            "10.77.1.0/30",
            "10.77.1.1",
        ),
    ] {
        let plan = of(taken).unwrap();
        assert_eq!(plan.host_network(), network.parse().ok(), "{taken:?}");
        let a = node(&plan, "a");
        assert_eq!(a.routes.last().unwrap().via, host.parse().ok(), "{taken:?}");
        assert_eq!(plan.addresses("b"), ["10.77.0.2/30".parse().unwrap()]);
    }
    let error = of(&["10.0.0.0/8"]).unwrap_err().to_string();
    assert!(error.contains("uses 10.0.0.0/8"), "{error}");
    assert!(error.contains("network = \"172.30.0.0/16\""), "{error}");
    assert_eq!(plan(TWO).host_network(), None);
}

/// A clean-up that hangs must not hold a run for ever.
#[test]
fn a_clean_up_has_an_end_by_default() {
    assert_eq!(plan(TWO).clean_up_within, Duration::from_secs(30));
}

#[test]
fn everything_that_is_said_of_a_node_is_in_the_plan() {
    let plan = plan(
        "name = \"all\"\nmeasure = \"30s\"\nready-within = \"5s\"\nclean-up-within = \"7s\"\n\
         [node.a]\ncommand = [\"ping\", \"b\"]\nstart = \"2s\"\nwaits-for = [\"c\"]\n\
         prepare = [\"one\", \"two\"]\nclean-up = \"three\"\nartefacts = [\"*.pcap\"]\n\
         [node.b]\ncommand = \"serve\"\nservice = true\nready = \"look\"\nforwards = false\n\
         [node.c]\ncommand = \"first\"\noutside = true\n\
         [link.l]\nbetween = [\"a\", \"b\"]\nprofile = \"hsdpa\"\n\
         [link.m]\nbetween = [\"b\", \"c\"]\n",
    );
    assert_eq!(plan.name, "all");
    assert_eq!(plan.measure_for, Some(Duration::from_secs(30)));
    assert_eq!(plan.ready_within, Duration::from_secs(5));
    assert_eq!(plan.clean_up_within, Duration::from_secs(7));
    let a = node(&plan, "a");
    assert_eq!(
        a.command,
        Some(Program::Argv(vec!["ping".into(), "b".into()]))
    );
    assert_eq!((a.start, waits_for(a)), (Duration::from_secs(2), vec!["c"]));
    assert_eq!(a.prepare, ["one", "two"]);
    assert_eq!(
        (&a.clean_up[..], &a.artefacts[..]),
        (&["three".to_owned()][..], &["*.pcap".to_owned()][..])
    );
    let b = node(&plan, "b");
    assert_eq!(b.command, Some(Program::Shell("serve".to_owned())));
    assert!(b.service && !b.forwards() && b.ready.as_deref() == Some("look"));
    assert_eq!(plan.links.len(), 1);
    let last = plan.wires.last().unwrap();
    assert_eq!(
        (last.ends[0].node.as_deref(), &last.ends[1].node),
        (Some("c"), &None)
    );
    assert!(
        node(&plan, "c")
            .routes
            .iter()
            .any(|route| route.to.prefix_len() == 0)
    );
}

#[test]
fn the_first_of_a_link_has_it_as_a_user() {
    let plan = plan(&format!("{TWO}profile = \"dsl\"\n"));
    let [link] = &plan.links[..] else {
        panic!("{:?}", plan.links)
    };
    assert_eq!((link.node.as_str(), link.interface.as_str()), ("a", "l"));
    assert_eq!(
        (&link.profile, link.reversed),
        (&profiles::find("dsl").unwrap(), false)
    );
}

#[test]
fn a_profile_may_be_written_into_the_link() {
    let plan = plan(&format!("{TWO}profile.up.rate = \"3Mbit\"\n"));
    assert_eq!(plan.links[0].profile.up.rate, Some(3_000_000));
    assert_eq!(
        (
            plan.links[0].profile.down.rate,
            plan.links[0].asked.as_str()
        ),
        (None, "up: rate = \"3Mbit\"; down: no delay, no limit")
    );
}

#[test]
fn patterns_are_for_all_and_a_name_is_for_one() {
    let text = "[topology]\nkind = \"mesh\"\nnodes = 3\n\
                [node.\"n*\"]\ncommand = \"all\"\nstart = \"1s\"\nwaits-for = []\n\
                [node.n2]\ncommand = \"one\"\nwaits-for = [\"n*\"]\n";
    let plan = plan(text);
    let commands = ["n1", "n2", "n3"].map(|name| node(&plan, name).command.clone().unwrap());
    assert_eq!(
        commands,
        ["all", "one", "all"].map(|c| Program::Shell(c.to_owned()))
    );
    assert_eq!(node(&plan, "n2").start, Duration::from_secs(1));
    assert_eq!(waits_for(node(&plan, "n2")), ["n1", "n3"]);
    let env = [("EMUD_INDEX", "2"), ("EMUD_COUNT", "3")];
    assert_eq!(
        node(&plan, "n2").env,
        env.map(|(k, v)| (k.to_owned(), v.to_owned()))
    );
}

#[test]
fn the_command_line_is_over_the_file() {
    let overrides = Overrides {
        nodes: Some(2),
        measure: Some(Duration::from_secs(7)),
        command: Some(Program::Interactive),
        ..Overrides::default()
    };
    let text = "[topology]\nkind = \"chain\"\nrouters = 9\n[node.client]\ncommand = \"true\"\n";
    let plan = with(text, &overrides);
    assert_eq!(plan.nodes.len(), 4);
    assert_eq!(plan.measure_for, overrides.measure);
    assert_eq!(plan.nodes[0].command, Some(Program::Interactive));
    for (text, nodes) in [(TWO, 2), (text, 0), (text, 2047)] {
        let nodes = Overrides {
            nodes: Some(nodes),
            ..Overrides::default()
        };
        assert_eq!(
            read(text).unwrap().plan(&nodes).unwrap_err().exit_code(),
            64
        );
    }
}

#[test]
fn the_plan_is_printed() {
    let plan = plan(&format!("{TWO}profile = \"dsl\"\n"));
    let text = plan.to_text();
    assert!(
        text.contains("a:l 10.77.0.1/30") && text.contains("on l of a: dsl"),
        "{text}"
    );
    let json = plan.to_json();
    assert_eq!(json["nodes"][1]["addresses"][0], "10.77.0.2/30");
    assert_eq!(json["wires"][0]["ends"][0]["interface"], "l");
}

#[test]
fn the_plan_says_what_a_profile_in_the_file_is() {
    let inline = "profile.link = { rate = \"20Mbit\", delay = \"5ms\" }\n";
    let text = plan(&format!("{TWO}{inline}")).to_text();
    let (_, said) = text.split_once("on l of a: ").expect("the link");
    for key in ["rate = \"20Mbit\"", "delay = \"5ms\""] {
        assert!(said.contains(key), "{text}");
    }
}

#[test]
fn none_removes_what_a_pattern_sets() {
    let text = "[topology]\nkind = \"mesh\"\nnodes = 3\n\
                [node.\"n*\"]\ncommand = \"all\"\nstart = \"1s\"\nprepare = \"a\"\n\
                [node.\"n3*\"]\nprepare = \"b\"\n\
                [node.n2]\ncommand = \"none\"\nstart = \"none\"\nprepare = \"none\"\n";
    let plan = plan(text);
    let [n1, n2, n3] = ["n1", "n2", "n3"].map(|name| node(&plan, name));
    assert_eq!((&n2.command, n2.start), (&None, Duration::ZERO));
    assert_eq!((&n1.command, n1.start), (&n3.command, n3.start));
    assert_eq!(n1.start, Duration::from_secs(1));
    assert_eq!(
        [&n1.prepare[..], &n2.prepare, &n3.prepare],
        [&["a"][..], &[], &["a", "b"]]
    );
}

#[test]
fn a_documented_default_is_what_a_missing_key_means() {
    let json = |text: &str| plan(text).to_json().to_string();
    let mut compared = 0;
    for (name, rows) in key_tables() {
        for [key, meaning, default] in &rows {
            assert!(!meaning.is_empty(), "{key}");
            let is_toml = default.matches('`').count() == 2 && !default.contains("true");
            let (key, default) = (key.trim_matches('`'), default.trim_matches('`'));
            if !is_toml {
                continue;
            }
            let line = format!("{key} = {default}\n");
            let text = match name {
                "scenario" => line + TWO,
                _ => TWO.replace("[node.b]\n", &format!("[node.b]\n{line}")),
            };
            assert_eq!(json(&text), json(TWO), "{text}");
            compared += 1;
        }
    }
    assert!(compared >= 8, "{compared}");
}
