// SPDX-License-Identifier: MIT OR Apache-2.0
//! The message for each kind of mistake, and its position.

use emud::monitor::settings as watch;
use emud::monitor::settings::Argument;
use emud::text::{Mistakes, TextError};
use emud_monitor::Config;

use super::meaning::with;
use crate::case::{Case, compare};

fn mistakes(result: Result<Config, TextError>) -> Mistakes {
    match result {
        Err(TextError::Mistakes(mistakes)) => mistakes,
        other => panic!("{other:?}"),
    }
}

#[rustfmt::skip]
const FILES: &[Case] = &[
    // Keys
    Case("[cpus]", 1, "cpus", "no key `cpus` at the top", "did you mean `cpu`?"),
    Case("[swap]", 1, "swap", "no key `swap`", "did you mean `memory`?"),
    Case("theta = \"5ms\"", 1, "theta", "no key", "belongs under [cpu] or under [disk]"),
    Case("[cpu]\nthreshold = \"5ms\"", 2, "threshold", "in [cpu]", "did you mean `theta`?"),
    Case("[alarms]\ngroup_by = \"netns\"", 2, "group_by", "no key", "did you mean `group-by`?"),
    Case("[network]\npage-ins = 1", 2, "page-ins", "no key", "belongs under [memory]"),
    Case("[[cpu]]", 1, "[[cpu]]", "`cpu` cannot be an array", "the header [cpu]"),
    Case("cpu = \"on\"", 1, "\"on\"", "`cpu` cannot be `on`", "cpu = \"off\""),
    Case("cpu = false", 1, "false", "cannot be true or false", "cpu = \"off\""),
    Case("alarms = \"off\"", 1, "\"off\"", "`alarms` cannot be `off`", "limit, group-by"),
    Case("[cpu", 1, "", "not valid TOML", "[headers]"),
    // Times
    Case("[cpu]\ntheta = \"0ms\"", 2, "\"0ms\"", "`theta` cannot be 0ms", "1ms to 3600s"),
    Case("[cpu]\ntheta = \"999us\"", 2, "\"999us\"", "cannot be 999us", "1ms to 3600s"),
    Case("[cpu]\ntheta = \"61min\"", 2, "\"61min\"", "too long", "one hour"),
    Case("[cpu]\ntheta = 200", 2, "200", "no unit", "200ms"),
    Case("[disk]\ntheta = \"-1ms\"", 2, "\"-1ms\"", "negative", "below zero"),
    Case("[network]\nwindow = \"0ms\"", 2, "\"0ms\"", "cannot be 0ms", "1ms to 10s"),
    Case("[memory]\nwindow = \"11s\"", 2, "\"11s\"", "cannot be 11s", "1ms to 10s"),
    Case("[memory]\nwindow = \"off\"", 2, "\"off\"", "not a duration", "\"50ms\""),
    Case("[emulator]\nlate = \"1ns\"", 2, "\"1ns\"", "cannot be 1ns", "1us to 3600s"),
    // Rates
    Case("[network]\nexternal = \"0Mbit\"", 2, "\"0Mbit\"", "idle device", "\"off\""),
    Case("[network]\ninternal = \"0.0bit/s\"", 2, "\"0.0bit/s\"", "idle device", "\"off\""),
    Case("[network]\nexternal = 490", 2, "490", "no unit", "490Mbit"),
    Case("[network]\nexternal = \"60MBps\"", 2, "\"60MBps\"", "bits or bytes", "480Mbit"),
    Case("[network]\nexternal = \"799bit\"", 2, "\"799bit\"", "less than a byte", "raise"),
    Case("[network]\nexternal = \"2kbit\"\nwindow = \"1ms\"", 3, "\"1ms\"", "less than a byte", "raise"),
    Case("[network.device]\neth0 = \"1bit\"", 2, "\"1bit\"", "less than a byte", "raise"),
    // Devices
    Case("[network.class]\neth0 = \"outside\"", 2, "\"outside\"", "cannot be `outside`", "\"external\", \"internal\""),
    Case("[network.class]\neth0 = \"ignore\"", 2, "\"ignore\"", "cannot be", "did you mean \"ignored\"?"),
    Case("[network.class]\n\"\" = \"ignored\"", 2, "\"\"", "name of an interface", "1 to 15 bytes"),
    Case("[network.class]\nsixteen-letters- = \"ignored\"", 2, "sixteen-letters-", "name of an interface", "1 to 15 bytes"),
    Case("[network.class]\n\"a b\" = \"ignored\"", 2, "\"a b\"", "name of an interface", "without blanks"),
    Case("[network]\ndevice = \"eth0\"", 2, "\"eth0\"", "`device` cannot be text", "device.NAME"),
    Case("[network]\nclass.eth0 = \"ignored\"\ndevice.eth0 = \"5Mbit\"", 3, "\"5Mbit\"", "ignored and has a separate threshold", "remove one"),
    Case("[network.device-window]\neth0 = \"50ms\"", 2, "\"50ms\"", "no separate threshold", "add its threshold"),
    Case("[network.device-window]\neth0 = \"11s\"", 2, "\"11s\"", "cannot be 11s", "1ms to 10s"),
    Case("[network]\ndevice.eth0 = \"7bit\"\ndevice-window.eth0 = \"1s\"", 3, "\"1s\"", "7bit/s is less than a byte in a window of 1s", "raise"),
    Case("[disk.device]\n\"/dev/sda\" = \"5ms\"", 2, "\"/dev/sda\"", "is a path", "`sda`"),
    Case("[disk.device]\nsda = \"off\"", 2, "\"off\"", "cannot be `off`", "\"ignored\""),
    Case("[disk.device]\nsda = \"0ms\"", 2, "\"0ms\"", "cannot be 0ms", "1ms to 3600s"),
    Case("[disk]\ntheta = \"off\"\ndevice.sda = \"5ms\"", 3, "\"5ms\"", "but disks are off", "give [disk] a theta"),
    // Names and numbers
    Case("[cpu]\nbasis = \"Task\"", 2, "\"Task\"", "cannot be `Task`", "did you mean \"task\"?"),
    Case("[alarms]\ngroup-by = \"process\"", 2, "\"process\"", "cannot be", "\"command\""),
    Case("[alarms]\nlimit = 0", 2, "0", "cannot be 0", "the minimum is 1"),
    Case("[alarms]\nlimit = 4294967296", 2, "4294967296", "cannot be 4294967296", "whole number"),
    Case("[memory]\npage-ins = 0", 2, "0", "cannot be 0", "the minimum is 1"),
    Case("[memory]\npage-outs = 1.5", 2, "1.5", "cannot be 1.5", "whole number of pages"),
    Case("[memory]\npage-outs = -1", 2, "-1", "cannot be -1", "whole number of pages"),
    Case("[memory]\npage-outs = \"none\"", 2, "\"none\"", "cannot be none", "whole number of pages"),
    Case("[memory]\npage-outs = []", 2, "[]", "cannot be an array", "number of pages"),
    // Shares
    Case("[steal]", 1, "[steal]", "has no keys", "share and window"),
    Case("[steal]\nshare = \"0%\"", 2, "\"0%\"", "`share` cannot be 0%", "from 0.01% to 100%"),
    Case("[steal]\nshare = \"101%\"", 2, "\"101%\"", "cannot be 101%", "from 0.01% to 100%"),
    Case("[steal]\nshare = 5", 2, "5", "`share` cannot be 5", "such as \"5%\""),
    // Pressure
    Case("[psi]", 1, "[psi]", "has no keys", "stall and window"),
    Case("[psi]\nstall = \"5ms\"", 2, "\"5ms\"", "`stall` without `window`", "set both"),
    Case("[psi]\nwindow = \"1s\"", 2, "\"1s\"", "`window` without `stall`", "set both"),
    Case("[psi]\nstall = \"5ms\"\nwindow = \"400ms\"", 3, "\"400ms\"", "cannot be 400ms", "500ms to 10s"),
    Case("[psi]\nstall = \"2s\"\nwindow = \"1s\"", 3, "\"1s\"", "stall is longer than window", "tasks wait"),
];

#[test]
fn every_kind_of_mistake_in_a_file_is_shown_where_it_is() {
    compare(FILES, |text| mistakes(watch::parse(text, "m.toml")));
}

fn external(rate: &str) -> Argument {
    Argument::key("--external", ("network", "external"), rate)
}

fn class(assignment: &str) -> Argument {
    Argument::named("--class", ("network", "class"), assignment)
}

fn device(assignment: &str) -> Argument {
    Argument::named("--device", ("network", "device"), assignment)
}

/// One wrong argument after a valid one, or two contradictory ones.
#[test]
fn wrong_arguments() {
    #[rustfmt::skip]
    let cases: &[(&str, &[Argument], Case)] = &[
        ("", &[Argument::set("cpu.theta")], Case("", 1, "cpu.theta", "no `=`", "cpu.theta=50ms")),
        ("", &[Argument::set("cpu.theta=")], Case("", 1, "cpu.theta=", "no value", "`off`")),
        ("", &[Argument::set("cpu.teta=5ms")], Case("", 1, "teta", "no key `teta`", "did you mean `theta`?")),
        ("", &[Argument::set("=5ms")], Case("", 1, "", "no key `` at the top", "cpu, network")),
        ("", &[Argument::set("theta=5ms")], Case("", 1, "theta", "no key", "under [cpu]")),
        ("", &[Argument::set("cpu=5ms")], Case("", 1, "5ms", "`cpu` cannot be `5ms`", "theta, basis")),
        ("", &[Argument::set("cpu.theta.x=5ms")], Case("", 1, "x", "`theta` cannot be a table", "\"50ms\"")),
        ("", &[Argument::set("network.device=5Mbit")], Case("", 1, "5Mbit", "`device` cannot be text", "device.NAME")),
        ("", &[Argument::set("cpu.theta=50")], Case("", 1, "50", "no unit", "50ms")),
        ("", &[external("0bit")], Case("", 1, "0bit", "idle device", "\"off\"")),
        ("", &[class("eth0")], Case("", 1, "eth0", "no `=`", "NAME=VALUE")),
        ("", &[class("eth0=extern")], Case("", 1, "extern", "cannot be `extern`", "\"external\"")),
        ("", &[class("a=b=c")], Case("", 1, "c", "cannot be `c`", "\"external\"")),
        ("", &[device("=5Mbit")], Case("", 1, "", "name of an interface", "1 to 15 bytes")),
        ("", &[Argument::psi("150ms")], Case("", 1, "150ms", "no `/`", "150ms/1s")),
        ("", &[Argument::psi("1s/150ms")], Case("", 1, "150ms", "`window` cannot be", "500ms to 10s")),
        ("", &[Argument::psi("0ms/1s")], Case("", 1, "0ms", "`stall` cannot be 0ms", "1us to 10s")),
        ("", &[Argument::only("cpu,dsik")], Case("", 1, "dsik", "`dsik` is not a resource", "did you mean `disk`?")),
        ("", &[Argument::only("")], Case("", 1, "", "is not a resource", "there are cpu")),
        ("", &[Argument::only("psi")], Case("", 1, "psi", "`psi` has no threshold", "with its flag")),
        ("cpu = \"off\"", &[Argument::only("cpu")], Case("", 1, "cpu", "`cpu` has no threshold", "with its flag")),
        // Contradictions
        ("", &[Argument::set("network.external=5Mbit"), external("6Mbit")], Case("", 1, "6Mbit", "contradicts `--set network.external=5Mbit`", "remove one")),
        ("", &[Argument::set("network=off"), external("6Mbit")], Case("", 1, "off", "contradicts `--external 6Mbit`", "remove one")),
        ("", &[external("6Mbit"), Argument::only("cpu")], Case("", 1, "cpu", "contradicts `--external 6Mbit`", "remove one")),
        ("", &[device("eth0=6Mbit"), Argument::only("cpu")], Case("", 1, "cpu", "contradicts `--device eth0=6Mbit`", "remove one")),
        ("", &[class("eth0=ignored"), class("eth0=external")], Case("", 1, "external", "contradicts `--class eth0=ignored`", "remove one")),
        ("", &[class("eth0=ignored"), device("eth0=6Mbit")], Case("", 1, "6Mbit", "ignored and has a separate threshold", "remove one")),
        ("[network.class]\neth0 = \"ignored\"", &[device("eth0=6Mbit")], Case("", 1, "6Mbit", "ignored and has a separate threshold", "remove one")),
        ("disk = \"off\"", &[Argument::named("--disk", ("disk", "device"), "sda=5ms")], Case("", 1, "5ms", "but disks are off", "theta")),
        ("[psi]\nstall = \"5s\"\nwindow = \"6s\"", &[Argument::set("psi.window=1s")], Case("", 1, "1s", "stall is longer than window", "tasks wait")),
    ];
    let mut wrong = Vec::new();
    for (file, arguments, case) in cases {
        let mut all = vec![Argument::set("memory.page-ins=5")];
        // Its contradiction with --only is tested elsewhere.
        if arguments.iter().any(|a| format!("{a:?}").contains("Only")) {
            all.clear();
        }
        all.extend_from_slice(arguments);
        let found = mistakes(with(file, &all));
        let origin = found.iter().all(|m| found.origin(m) == watch::COMMAND_LINE);
        if !origin {
            wrong.push(format!("not on the command line:\n{found}"));
        }
        wrong.extend(case.differs(&found));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn all_mistakes_of_file_and_arguments_at_once() {
    let file = "[cpu]\ntheta = \"0ms\"\n[network]\nexternal = 5\n[nonsense]\n";
    let found = mistakes(with(file, &[external("x"), Argument::only("gpu")]));
    let places: Vec<_> = found
        .iter()
        .map(|m| (found.origin(m) == watch::COMMAND_LINE, found.line(m)))
        .collect();
    assert_eq!(
        places,
        [(false, 2), (false, 4), (false, 5), (true, 1), (true, 1)]
    );
}

#[test]
fn the_message_as_a_whole() {
    let found = mistakes(watch::config(None, &[external("490")]));
    assert_eq!(
        found.to_string(),
        "error: `490` has no unit
 --> command line:1:12
  |
1 | --external 490
  |            ^^^
  |
  = help: did you mean \"490Mbit\"? (rates look like \"384kbit\", \"1.5Mbit\", \"10Gbit\")"
    );
}
