// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud::lab` on a real kernel. Each test has a network namespace of its own for a host, so
//! that the machine's own network is never touched. Needs root, `ip`, `ping` and `getent`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bench;
mod host;
mod inside;
mod killed;
mod outside;
mod undone;
mod wires;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

const TESTS: &[(&str, fn())] = &[
    (
        "inside::cleans_up_after_programs",
        inside::cleans_up_after_programs,
    ),
    ("inside::emulated", inside::emulated),
    ("inside::ends_all", inside::ends_all),
    ("inside::names", inside::names),
    ("inside::namespaces", inside::namespaces),
    ("inside::panics_come_through", inside::panics_come_through),
    ("killed::at_any_time", killed::at_any_time),
    ("killed::leaves_nothing", killed::leaves_nothing),
    ("outside::none", outside::none),
    ("outside::one_after_the_other", outside::one_after_the_other),
    ("outside::reached", outside::reached),
    ("outside::reached_through", outside::reached_through),
    (
        "outside::says_what_a_firewall_does",
        outside::says_what_a_firewall_does,
    ),
    ("undone::bridge", undone::bridge),
    ("undone::node", undone::node),
    ("undone::wire", undone::wire),
    ("wires::chain", wires::chain),
    ("wires::pair", wires::pair),
    ("wires::silent", wires::silent),
    ("wires::star", wires::star),
    ("wires::many", wires::many),
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        // Nodes are this program again.
        Some("node-run") => return node_run(arguments.next().is_some()),
        Some(killed::ARGUMENT) => return killed::victim(),
        _ => {}
    }
    let mut arguments = Arguments::from_args();
    // Times are measured, and processes looked for.
    arguments.test_threads = Some(1);
    let trials = TESTS
        .iter()
        .map(|&(name, test)| {
            Trial::test(name, move || {
                host::on_a_host(test);
                Ok(())
            })
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn node_run(keep_forwarding: bool) -> ExitCode {
    let ended = if keep_forwarding {
        emud::lab::keep_forwarding()
    } else {
        emud::lab::run_node()
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
