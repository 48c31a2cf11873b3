// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of a program that is also its own helper: a load, a sender, a node of a network. They run
//! one after the other, because each needs the machine's clock, CPUs or paging exclusively.

use std::process::ExitCode;
use std::time::Instant;

use libtest_mimic::{Arguments, Trial};

use crate::{full, guest, load, udp};

/// What this program does instead of testing, if its arguments request it.
pub fn role() -> Option<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments
        .first()
        .is_some_and(|first| first == load::ARGUMENT)
    {
        return Some(load::main(arguments.into_iter().skip(1)));
    }
    udp::role(&arguments)
}

/// Where a test runs. The full run (`EMUD_TEST_FULL`) has them all, everywhere, but `Host` and `Guest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// In every run, here and in guest kernels.
    Always,
    /// On this machine: it is the same on every kernel. In a full run also in the guests that have an engine
    /// this machine lacks (`EMUD_TEST_HERE=no`: not there).
    Here,
    /// On this machine, and in a full run in all guest kernels: it judges rates, and their clock counts
    /// instructions.
    HereAndFull,
    /// Never in guest kernels, which lack what it needs: python3.
    Host,
    /// Judges milliseconds or percentiles, which is sound if the clock counts instructions: only in
    /// guest kernels.
    Guest,
    /// Takes long, or is proved exactly elsewhere.
    Full,
}

pub fn test(when: When, name: impl Into<String>, test: impl FnOnce() + Send + 'static) -> Trial {
    let wanted = match when {
        When::Always => true,
        When::Here | When::HereAndFull | When::Host => !guest(),
        When::Guest => guest(),
        When::Full => false,
    };
    let trial = Trial::test(name, || {
        let begin = Instant::now();
        test();
        println!("    {:.1} s", begin.elapsed().as_secs_f64());
        Ok(())
    });
    let lacks = match when {
        When::Host => guest(),
        When::Here => {
            guest() && std::env::var_os("EMUD_TEST_HERE").is_some_and(|here| here == "no")
        }
        When::Guest => !guest(),
        When::Always | When::HereAndFull | When::Full => false,
    };
    trial.with_ignored_flag(lacks || !(wanted || full()))
}

/// Runs the tests that the command line selects.
pub fn run(trials: Vec<Trial>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// When, a function's path in the calling module and the function as a `$type`, of each.
#[macro_export]
macro_rules! named {
    ($type:ty; $($when:ident: $($module:ident :: $test:ident),+;)+) => {
        [$($((
            $crate::trial::When::$when,
            concat!(stringify!($module), "::", stringify!($test)),
            $module::$test as $type,
        )),+),+]
    };
}
