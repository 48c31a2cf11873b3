// SPDX-License-Identifier: MIT OR Apache-2.0
//! emud on live interfaces, measured from outside: every test in network namespaces of its own,
//! once for each engine that this kernel has. Needs root.
//!
//! What the caller knows of the kernel, so that nothing is passed over in silence:
//! `EMUD_EXPECT_ENGINES` ("fq hold") and `EMUD_EXPECT` ("netem") must be there. Sizes for slow
//! machines: `EMUD_LIVE_SCALE` (share of the probes), `EMUD_LIVE_PPS_MAX`. `EMUD_BIN` is another
//! emud to test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod alter;
mod bulk;
#[path = "../classifier/chain.rs"]
#[allow(dead_code)]
mod chain;
mod change;
mod ecn;
mod emulated;
mod frames;
mod lab;
mod loss;
mod malformed;
mod matching;
mod models;
mod probe;
mod rate;
mod restore;
mod stats;
mod time;
mod timing;

use std::process::ExitCode;

use lab::Engine;
use libtest_mimic::{Arguments, Trial};

type Test = fn(Engine);

/// For each engine.
const OF_ENGINE: &[(&str, Test)] = &[
    ("alter::corrupt", alter::corrupt),
    ("alter::duplicate", alter::duplicate),
    ("change::directions", change::directions),
    ("change::queue_lives_on", change::queue_lives_on),
    ("change::set", change::set),
    ("change::set_is_atomic", change::set_is_atomic),
    ("ecn::marks", ecn::marks),
    ("emulated::found", emulated::found),
    ("frames::ipv6", frames::ipv6),
    ("frames::neighbours", frames::neighbours),
    ("frames::other_frames", frames::other_frames),
    ("frames::queues", frames::queues),
    ("frames::segmentation", frames::segmentation),
    ("frames::without_ethernet", frames::without_ethernet),
    ("loss::repeats", loss::repeats),
    ("malformed::attach", malformed::attach),
    ("matching::matrix", matching::matrix),
    ("matching::rules", matching::rules),
    ("matching::shared", matching::shared),
    ("models::delays", models::delays),
    ("models::losses", models::losses),
    ("models::sparse", models::sparse),
    ("rate::queue", rate::queue),
    ("rate::udp", rate::udp),
    ("rate::tcp", rate::tcp),
    ("rate::tcp_keeps_its_pace", rate::tcp_keeps_its_pace),
    ("rate::tcp_against_netem", rate::tcp_against_netem),
    ("restore::leaves_no_trace", restore::leaves_no_trace),
    ("restore::other_namespace", restore::other_namespace),
    ("restore::holder_killed", restore::holder_killed),
    ("restore::attach_killed", restore::attach_killed),
    ("restore::detach_killed", restore::detach_killed),
    ("restore::filters_of_others", restore::filters_of_others),
    ("restore::root_by_hand", restore::root_by_hand),
    ("restore::attached_twice", restore::attached_twice),
    ("restore::step_fails", restore::step_fails),
    ("restore::device_deleted", restore::device_deleted),
    ("restore::namespace_deleted", restore::namespace_deleted),
    ("restore::foreground", restore::foreground),
    ("time::opportunities", time::opportunities),
    ("time::phases", time::phases),
    ("time::rows", time::rows),
    ("time::slots", time::slots),
    ("timing::departure_error", timing::departure_error),
    (
        "timing::in_order_at_every_rate",
        timing::in_order_at_every_rate,
    ),
    ("timing::round_trip", timing::round_trip),
];

fn main() -> ExitCode {
    let mut args = Arguments::from_args();
    // Tests at the same time would disturb one another's timing.
    args.test_threads = Some(1);
    let engines = engines();
    let mut trials = vec![];
    for (name, test) in OF_ENGINE {
        for engine in engines.iter().copied() {
            let name = format!("{}::{name}", engine.name());
            trials.push(trial(name, move || test(engine)));
        }
    }
    trials.push(trial("both::malformed::check", malformed::check));
    if engines.contains(&Engine::Hold) {
        let test = emulated::holder_tells_monitors;
        trials.push(trial("hold::emulated::holder_tells_monitors", test));
    }
    if engines.contains(&Engine::Fq) {
        trials.push(trial("fq::models::verified", models::verified));
    }
    if engines.len() == 2 {
        trials.push(trial("both::loss::same", loss::same_under_both_engines));
    }
    libtest_mimic::run(&args, trials).exit_code()
}

fn trial(name: impl Into<String>, test: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, || {
        println!();
        let begin = std::time::Instant::now();
        test();
        println!("    {:.1} s", begin.elapsed().as_secs_f64());
        Ok(())
    })
}

/// Those that emud offers here and those that the caller knows to be possible.
fn engines() -> Vec<Engine> {
    let offered = lab::emud(&["doctor", "--json"]).expect(0).json();
    let offers = |engine: Engine| {
        offered["engines"]
            .as_array()
            .expect("a list")
            .iter()
            .any(|offer| offer == engine.name())
    };
    [Engine::Fq, Engine::Hold]
        .into_iter()
        .filter(|e| offers(*e) || lab::promised("EMUD_EXPECT_ENGINES", e.name()))
        .collect()
}
