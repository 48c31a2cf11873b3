// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud::experiment::lab` on a real kernel. Each test has a separate network namespace for a host,
//! so that the machine's own network is never touched. Needs `ip`, `ping` and `getent`.

mod bench;
mod inside;
mod killed;
mod outside;
mod undone;
mod wires;

use std::process::ExitCode;

use libtest_mimic::Trial;
use support::{host, named, trial};

pub fn tests() -> Vec<Trial> {
    named![fn();
        Here:
            inside::cleans_up_after_programs,
            inside::emulated,
            inside::ends_all,
            inside::names,
            inside::namespaces,
            inside::panics_come_through,
            killed::at_any_time,
            killed::leaves_nothing,
            outside::at_the_same_time,
            outside::hostile_user,
            outside::none,
            outside::one_after_the_other,
            outside::reached,
            outside::reached_through,
            outside::says_what_a_firewall_does,
            undone::bridge,
            undone::node,
            undone::wire,
            wires::chain,
            wires::many,
            wires::pair,
            wires::silent,
            wires::star;
    ]
    .map(|(when, name, test)| {
        trial::test(when, format!("lab::{name}"), move || host::on_a_host(test))
    })
    .into()
}

/// Nodes are this program again.
pub fn role() -> Option<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("node-run") => Some(node_run(arguments.nth(1))),
        Some(killed::ARGUMENT) => Some(killed::victim()),
        _ => None,
    }
}

/// The process that restores forwarding of an interface.
fn node_run(ifindex: Option<String>) -> ExitCode {
    let ended = match ifindex {
        Some(ifindex) => emud::experiment::lab::keep_forwarding(ifindex.parse().expect("a number")),
        None => emud::experiment::lab::run_node(),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
