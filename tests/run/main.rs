// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud run` on a real kernel. Each test has a network namespace of its own for a host, so that
//! the machine's own network is never touched. Needs root, `ip`, `ping`, `script` and python3-jsonschema.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bench;
#[path = "../lab/host.rs"]
mod host;
mod in_place;
mod log;
mod program;
mod repeat;
mod scenario;
mod udp;
mod undone;
mod verdict;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

macro_rules! tests {
    ($($module:ident :: $test:ident),+ $(,)?) => {
        &[$((concat!(stringify!($module), "::", stringify!($test)), $module::$test)),+]
    };
}

const TESTS: &[(&str, fn())] = tests![
    program::sees_the_link,
    program::exit_code_is_passed_on,
    program::that_cannot_be_started,
    program::output_is_whole,
    program::input_is_passed_on,
    program::shell_at_a_terminal,
    program::progress_at_a_terminal,
    program::finds_names_and_its_host,
    log::has_everything_in_order,
    log::samples_add_up,
    log::follows_changes,
    log::needs_python_to_check_its_schema,
    scenario::chain,
    scenario::star,
    scenario::order_and_artefacts,
    scenario::failures_are_told,
    undone::by_signals,
    undone::nothing_starts_after_a_signal,
    undone::after_kill,
    undone::when_preparation_fails,
    in_place::link_comes_and_goes,
    in_place::guard,
    repeat::same_seed_same_losses,
    repeat::same_seed_same_losses_of_a_program,
    repeat::summary,
    verdict::a_hog_is_named,
    verdict::without_it_the_run_is_clean,
    verdict::the_emulators_own_failure,
    verdict::ends_the_run,
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(done) = udp::role(&arguments) {
        return done;
    }
    let mut arguments = Arguments::from_args();
    // Times are measured, and the host is to be quiet.
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
