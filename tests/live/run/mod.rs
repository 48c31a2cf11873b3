// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud run` on a real kernel. Each test has a network namespace of its own for a host, so that
//! the machine's own network is never touched. Needs `ip`, `ping`, `script` and python3-jsonschema.

mod in_place;
mod log;
mod program;
mod repeat;
mod scenario;
mod undone;
mod verdict;

use libtest_mimic::Trial;
use support::{host, named, trial};

pub fn tests() -> Vec<Trial> {
    named![fn();
        Here:
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
            scenario::failures_are_told,
            scenario::order_and_artefacts,
            undone::after_kill,
            undone::by_signals,
            undone::nothing_starts_after_a_signal,
            undone::when_preparation_fails,
            in_place::link_comes_and_goes,
            in_place::guard,
            in_place::link_that_stays_is_said,
            repeat::same_seed_same_losses,
            repeat::same_seed_same_losses_of_a_program,
            repeat::summary,
            verdict::contention_by_report,
            verdict::a_busy_cpu_is_contention,
            verdict::the_emulators_own_failure,
            verdict::ends_the_run,
            verdict::what_was_before_ends_nothing;
        Full:
            verdict::a_hog_is_named,
            verdict::without_it_the_run_is_clean;
    ]
    .map(|(when, name, test)| {
        trial::test(when, format!("run::{name}"), move || host::on_a_host(test))
    })
    .into()
}
