// SPDX-License-Identifier: MIT OR Apache-2.0
//! The message for each kind of mistake, and its position.

use emud::experiment::scenario::{Overrides, ScenarioError};
use emud::text::{Mistakes, TextError};

use super::read;
use crate::case::{Case, compare};

fn mistakes(text: &str) -> Mistakes {
    match read(text).and_then(|scenario| scenario.plan(&Overrides::default())) {
        Err(ScenarioError::Text(TextError::Mistakes(mistakes))) => mistakes,
        other => panic!("no mistakes found: {other:?}\n{text}"),
    }
}

#[test]
fn every_kind_of_mistake_is_shown_where_it_is() {
    compare(MISTAKES, mistakes);
}

const MISTAKES: &[Case] = &[
    Case("name = \"x\"\n", 1, "", "has no node", "[node.NAME]"),
    Case(
        "nodes = 1\n",
        1,
        "nodes",
        "no key `nodes` at the top",
        "belongs under [topology]",
    ),
    Case("measure = \"0s\"\n[node.a]\n", 1, "\"0s\"", "is 0", "30s"),
    Case(
        "network = \"10.0.0.1/8\"\n",
        1,
        "\"10.0.0.1/8\"",
        "has host bits set",
        "10.0.0.0/8",
    ),
    Case(
        "network = \"10.0.0.0/30\"\n",
        1,
        "\"10.0.0.0/30\"",
        "cannot be the network",
        "8 to 28",
    ),
    Case(
        "[node.a]\ncomand = \"x\"\n",
        2,
        "comand",
        "no key `comand`",
        "did you mean `command`?",
    ),
    Case(
        "[node.a]\ndepends_on = []\n",
        2,
        "depends_on",
        "no key",
        "did you mean `waits-for`?",
    ),
    Case(
        "ready_within = \"1s\"\n[node.a]\n",
        1,
        "ready_within",
        "no key `ready_within`",
        "did you mean `ready-within`?",
    ),
    Case(
        "clean_up_within = \"1s\"\n[node.a]\n",
        1,
        "clean_up_within",
        "no key `clean_up_within`",
        "did you mean `clean-up-within`?",
    ),
    Case(
        "[node.a]\nwaits_for = []\n",
        2,
        "waits_for",
        "no key `waits_for`",
        "did you mean `waits-for`?",
    ),
    Case(
        "[node.a]\nclean_up = []\n",
        2,
        "clean_up",
        "no key `clean_up`",
        "did you mean `clean-up`?",
    ),
    Case(
        "[node.a]\n[link.l]\nbetween = \"none\"\n",
        2,
        "l",
        "joins no nodes",
        "between",
    ),
    Case(
        "[node.a]\ncommand = []\n",
        2,
        "[]",
        "the command is empty",
        "leave it out",
    ),
    Case(
        "[node.a]\ncommand = 5\n",
        2,
        "5",
        "cannot be a number",
        "write text",
    ),
    Case(
        "[node.a]\nservice = \"yes\"\n",
        2,
        "\"yes\"",
        "cannot be text",
        "service = true",
    ),
    Case("[node.a]\nstart = 5\n", 2, "5", "", ""),
    Case(
        "[node.a_b]\n",
        1,
        "a_b",
        "is not a valid name of a node",
        "host name",
    ),
    Case(
        "[node.localhost]\n",
        1,
        "localhost",
        "cannot be called",
        "a different name",
    ),
    Case(
        "[node.LocalHost]\n",
        1,
        "LocalHost",
        "cannot be called",
        "a different name",
    ),
    Case(
        "[node.7]\n",
        1,
        "7",
        "cannot be the name",
        "a name such as n7",
    ),
    Case(
        "[node.0x1F]\n",
        1,
        "0x1F",
        "cannot be the name",
        "a number for an address",
    ),
    Case(
        "[node.a]\ncommand = \"x\"\n[node.A]\n[link.l]\nbetween = [\"a\", \"A\"]\n",
        3,
        "A",
        "nodes `a` and `A` differ only in case",
        "a different name",
    ),
    Case(
        "[topology]\nkind = \"chain\"\nrouters = 1\n[node.Server]\ncommand = \"x\"\n[link.l]\n\
         between = [\"r1\", \"Server\"]\n",
        4,
        "Server",
        "nodes `server` and `Server` differ only in case",
        "a different name",
    ),
    Case(
        "[node.a]\ncommand = \"x\"\nwaits-for = [\"b\"]\n",
        3,
        "\"b\"",
        "no node `b`",
        "",
    ),
    Case(
        "[node.server]\ncommand = \"x\"\n[node.b]\n[link.l]\nbetween = [\"b\", \"sever\"]\n",
        5,
        "\"sever\"",
        "no node `sever`",
        "did you mean `server`?",
    ),
    Case(
        "[node.a]\n[link.l]\nbetween = [\"a\"]\n",
        3,
        "[\"a\"]",
        "has 1 names",
        "two ends",
    ),
    Case(
        "[node.a]\n[link.l]\nbetween = [\"a\", \"a\"]\n",
        3,
        "[\"a\", \"a\"]",
        "to itself",
        "two ends",
    ),
    Case("[node.a]\n[link.l]\n", 2, "l", "joins no nodes", "between"),
    Case(
        "[node.a]\n[node.b]\n[link.a-much-too-long-name]\nbetween = [\"a\", \"b\"]\n",
        3,
        "a-much-too-long-name",
        "is not a valid name of a link",
        "15",
    ),
    Case(
        "[node.a]\n[node.b]\n[link.l]\nbetween = [\"a\", \"b\"]\nprofile = \"hsdpaa\"\n",
        5,
        "\"hsdpaa\"",
        "no profile named `hsdpaa`",
        "did you mean `hsdpa`?",
    ),
    Case(
        "[node.a]\n[node.b]\n[link.l]\nbetween = [\"a\", \"b\"]\nprofile = \"./no.toml\"\n",
        5,
        "\"./no.toml\"",
        "No such file",
        "the scenario's folder",
    ),
    Case(
        "[node.a]\n[node.b]\n[link.l]\nbetween = [\"a\", \"b\"]\nprofile.link.rate = \"5mbps\"\n",
        5,
        "\"5mbps\"",
        "bits or bytes",
        "5Mbit",
    ),
    Case(
        "[node.a]\n[node.b]\n[link.l]\nbetween = [\"a\", \"b\"]\nprofile = { seed = 7, link = {} }\n",
        5,
        "{ seed = 7, link = {} }",
        "has no `seed`",
        "emud run --seed N",
    ),
    Case(
        "[node.a]\nservice = true\n",
        1,
        "a",
        "a service without a command",
        "set its command",
    ),
    Case(
        "[node.a]\nstart = \"1s\"\n",
        1,
        "a",
        "`start` and no command",
        "set its command",
    ),
    Case(
        "[node.a]\ncommand = \"x\"\nready = \"y\"\n",
        1,
        "a",
        "is no service",
        "service = true",
    ),
    Case(
        "[medium.w]\n[node.a]\ncommand = \"x\"\n[node.\"b*\"]\nat = [1, 2]\n[node.b1]\n\
         path = [{ at = [0, 0] }]\n",
        6,
        "b1",
        "node `b1` has `at` and `path`",
        "leave `at` out",
    ),
    Case(
        "[node.a]\ncommand = \"x\"\nservice = true\nwaits-for = [\"b\"]\n[node.b]\ncommand = \"y\"\n\
         [link.l]\nbetween = [\"a\", \"b\"]\n",
        1,
        "a",
        "waits for `b`, which runs in the measured phase",
        "only wait for services",
    ),
    Case(
        "[node.a]\ncommand = \"x\"\nwaits-for = [\"b\"]\n[node.b]\ncommand = \"y\"\n\
         waits-for = [\"a\"]\n[link.l]\nbetween = [\"a\", \"b\"]\n",
        1,
        "a",
        "waits for itself",
        "a -> b -> a",
    ),
    Case(
        "[node.a]\ncommand = \"x\"\noutside = true\n[node.b]\noutside = true\n\
         [link.l]\nbetween = [\"a\", \"b\"]\n",
        4,
        "b",
        "both `a` and `b` have `outside`",
        "one node",
    ),
    Case(
        "[node.a]\ncommand = \"x\"\n[node.b]\n",
        3,
        "b",
        "is not reachable from node `a`",
        "[link.NAME]",
    ),
    Case(
        "[node.a]\n",
        1,
        "a",
        "no node has a command",
        "not a service",
    ),
    Case(
        "[topology]\nrouters = 3\n",
        1,
        "topology",
        "has no kind",
        "\"star\"",
    ),
    Case(
        "[topology]\nkind = \"circle\"\n",
        2,
        "\"circle\"",
        "cannot be `circle`",
        "\"chain\"",
    ),
    Case(
        "[topology]\nkind = \"chain\"\n",
        1,
        "topology",
        "without `routers`",
        "routers = 4",
    ),
    Case(
        "[topology]\nkind = \"chain\"\nrouters = 0\n",
        3,
        "0",
        "`routers` of 0 is out of range",
        "1 to 2046",
    ),
    Case(
        "[topology]\nkind = \"ring\"\nnodes = 2\n",
        3,
        "2",
        "`nodes` of 2 is out of range",
        "3 to 2048",
    ),
    Case(
        "[topology]\nkind = \"switches\"\nnodes = 16\nswitches = 128\n",
        3,
        "16",
        "`nodes` of 16 is out of range",
        "1 to 15 for this many switches",
    ),
    Case(
        "[topology]\nkind = \"switches\"\nnodes = 4\nswitches = 1\n",
        4,
        "1",
        "`switches` of 1 is out of range",
        "2 to 1024",
    ),
    Case(
        "[topology]\nkind = \"tandem\"\nnodes = 4\naccess = \"lte\"\n",
        4,
        "access",
        "a tandem has no `access`",
        "nodes, profile",
    ),
    Case(
        "[topology]\nkind = \"mesh\"\nnodes = 300\nmedium = \"air\"\n[medium.air]\n",
        3,
        "300",
        "`nodes` of 300 is out of range",
        "2 to 256",
    ),
    Case(
        "[topology]\nkind = \"mesh\"\nnodes = 33\n",
        3,
        "33",
        "`nodes` of 33 is out of range",
        "2 to 32",
    ),
    Case(
        "[topology]\nkind = \"mesh\"\nnodes = 3\naccess = \"lte\"\n",
        4,
        "access",
        "a mesh has no `access`",
        "nodes, profile",
    ),
    Case(
        "[topology]\nkind = \"star\"\n",
        1,
        "topology",
        "the star has no peers",
        "peers = 4",
    ),
    Case(
        "[topology]\nkind = \"star\"\nclass.a.peers = 255\n",
        3,
        "255",
        "`peers` of 255 is out of range",
        "1 to 254",
    ),
    Case(
        "[topology]\nkind = \"star\"\n[topology.class.hub]\npeers = 2\n",
        3,
        "hub",
        "cannot be the name of a class",
        "not hub",
    ),
    Case(
        "[topology]\nkind = \"star\"\n[topology.class.a]\n",
        3,
        "a",
        "has no peers",
        "peers = 16",
    ),
    Case(
        "[topology]\nkind = \"star\"\n[topology.class.a]\npeers = 2\n\
         profile = { link = {}, rule = [{ link = \"none\" }] }\n",
        5,
        "{ link = {}, rule = [{ link = \"none\" }] }",
        "has rules",
        "only have one link",
    ),
    Case(
        "[topology]\nkind = \"star\"\n[topology.class.a]\npeers = 2\n\
         profile = { link.class = \"x\", bottleneck.x.rate = \"1Mbit\" }\n",
        5,
        "{ link.class = \"x\", bottleneck.x.rate = \"1Mbit\" }",
        "has bottlenecks",
        "only have one link",
    ),
    Case(
        "[topology]\nkind = \"star\"\n[topology.class.a]\npeers = 1\n\
         profile = { offload = \"keep\", link = {} }\n[topology.class.b]\npeers = 1\n\
         profile = { link = {} }\n",
        8,
        "{ link = {} }",
        "differ in `offload`",
        "the same one",
    ),
    Case(
        "[topology]\nkind = \"chain\"\nrouters = 3\n[node.\"s*\"]\ncommand = \"x\"\n[node.\"q*\"]\n",
        6,
        "\"q*\"",
        "no node `q*`",
        "",
    ),
    Case(
        "[topology]\nkind = \"chain\"\nrouters = 3\n[node.client]\ncommand = \"x\"\n\
         [link.hop2]\nbetween = [\"client\", \"r3\"]\n",
        6,
        "hop2",
        "a link `hop2` in the topology",
        "a different name",
    ),
    Case(
        "network = \"10.0.0.0/28\"\n[topology]\nkind = \"chain\"\nrouters = 9\n[node.client]\n\
         command = \"x\"\n",
        1,
        "\"10.0.0.0/28\"",
        "too small for more than 4 links",
        "a larger one",
    ),
    Case(
        "network = \"10.0.0.0/24\"\n[topology]\nkind = \"star\"\nclass.a.peers = 3\n[node.a1]\n\
         command = \"x\"\n",
        1,
        "\"10.0.0.0/24\"",
        "too small for 1 classes",
        "a larger one",
    ),
];

#[test]
fn a_name_that_no_program_takes_for_an_address_is_one() {
    for name in ["7a", "0x", "0xg", "7-7"] {
        let text = format!("[node.\"{name}\"]\ncommand = \"x\"\n");
        let planned = read(&text).and_then(|scenario| scenario.plan(&Overrides::default()));
        assert!(planned.is_ok(), "{name}: {planned:?}");
    }
}

#[test]
fn there_are_limits() {
    let classes = "[topology]\nkind = \"star\"\nclass.a.peers = 200\nclass.b.peers = 200\n";
    let nodes: String = (0..2100).map(|n| format!("[node.n{n}]\n")).collect();
    let links = (0..2100).map(|n| format!("[link.l{n}]\nbetween = [\"a\", \"b\"]\n"));
    let links = format!(
        "[node.a]\ncommand = \"x\"\n[node.b]\n{}",
        links.collect::<String>()
    );
    let most = "a scenario has up to 2048 of them";
    for (text, title, help) in [
        (classes, "400 peers", "a star has up to 255"),
        (&nodes, "2100 tables `node`", most),
        (&links, "2100 tables `link`", most),
    ] {
        let found = mistakes(text);
        let first = found.iter().next().unwrap();
        assert!(
            first.title.contains(title) && first.help.contains(help),
            "{found}"
        );
    }
}

/// Whether a topology is read with these sizes, and with no others.
fn is_range(least: u32, most: u32, topology: impl Fn(u32) -> String) -> bool {
    let is_read = |size| read(&format!("[topology]\n{}", topology(size))).is_ok();
    [least - 1, least, most, most + 1].map(is_read) == [false, true, true, false]
}

#[test]
fn the_page_has_the_sizes_of_topologies() {
    let page = support::root().join("docs/scenario.md");
    let page = std::fs::read_to_string(page).unwrap();
    let number = |text: &str| -> u32 {
        let digits = text.chars().take_while(|c| c.is_ascii_digit() || *c == ',');
        let digits: String = digits.filter(|c| *c != ',').collect();
        digits.parse().expect(text)
    };
    for (kind, key, more) in [
        ("chain", "routers", ""),
        ("mesh", "nodes", ""),
        ("dumbbell", "pairs", ""),
        ("ring", "nodes", ""),
        ("tandem", "nodes", ""),
        ("switches", "switches", "nodes = 1\n"),
    ] {
        let begin = format!("| `\"{kind}\"` |");
        let mut rows = page.lines().filter(|line| line.starts_with(&begin));
        let row = rows.next().expect(kind);
        let (_, range) = row.split_once(&format!("`{key}`, ")).expect(row);
        let (least, most) = range.split_once(" to ").expect(row);
        let (least, most) = (number(least), number(most));
        let text = |size: u32| format!("kind = \"{kind}\"\n{key} = {size}\n{more}");
        assert!(is_range(least, most, text), "{row}");
        if let Some((_, most)) = row.split_once("(on a medium ") {
            let text = |size| format!("{}medium = \"air\"\n[medium.air]\n", text(size));
            assert!(is_range(least, number(most), text), "{row}");
        }
    }
    let (_, all) = page
        .split_once("`nodes` of each switch, 1 to ")
        .expect("switches");
    for switches in [2, 7, 1024] {
        let text =
            |size: u32| format!("kind = \"switches\"\nswitches = {switches}\nnodes = {size}\n");
        assert!(
            is_range(1, number(all) / switches - 1, text),
            "{switches} switches"
        );
    }
}

#[test]
fn all_mistakes_of_a_file_are_shown() {
    let found = mistakes("[node.a]\ncomand = 1\nservice = 2\n[link.l]\nbetwen = []\n");
    assert_eq!(found.iter().count(), 4, "{found}");
}

#[test]
fn a_profiles_mistakes_are_shown_in_its_own_file() {
    let folder = std::env::temp_dir().join(format!("emud-scenario-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("bad.toml"), "[link]\nrate = 5\n").unwrap();
    let text = "[node.a]\ncommand = \"x\"\n[node.b]\n[link.l]\nbetween = [\"a\", \"b\"]\n\
                profile = \"./bad.toml\"\n";
    let error = emud::experiment::scenario::Scenario::parse(text, "x.toml", &folder).unwrap_err();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(error.exit_code(), 65);
    let error = error.to_string();
    assert!(
        error.contains("x.toml, line 6: profile ./bad.toml"),
        "{error}"
    );
    assert!(error.contains("bad.toml:2:"), "{error}");
}
