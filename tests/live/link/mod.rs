// SPDX-License-Identifier: MIT OR Apache-2.0
//! Links on live interfaces, once for each engine that this kernel supports.

mod alter;
mod auto;
mod background;
mod bottleneck;
mod cgroup;
mod change;
mod control;
mod ecn;
mod emulated;
mod ending;
mod forwarded;
pub mod frames;
mod garbage;
mod loss;
mod malformed;
mod matching;
mod metrics;
mod models;
pub mod names;
mod odd;
mod rate;
mod reset;
mod restore;
mod senders;
mod smoke;
mod spare;
mod tamper;
mod time;
mod timing;

use emud::host::has_preempt_rt;
use libtest_mimic::Trial;
use support::lab::{self, Engine};
use support::trial::{self, When};
use support::{guest, named};

type Test = fn(Engine);

fn of_engine() -> Vec<(When, &'static str, Test)> {
    named![Test;
        Always:
            cgroup::kernel_and_servers,
            senders::a_group_has_its_trains;
        Here:
            alter::corrupt_in_a_tunnel,
            alter::corrupt_without_ethernet,
            background::waits,
            change::exchange,
            change::set,
            emulated::found,
            ending::after_a_time,
            ending::removed_by_the_next,
            ending::with_a_process,
            ending::while_another_is_busy,
            ending::changed,
            metrics::equal_show,
            metrics::served,
            metrics::failures,
            metrics::lets_namespaces_go,
            frames::other_frames,
            frames::own_multicast,
            frames::segmentation,
            frames::keep_without_ethernet,
            frames::two_tags,
            garbage::every_frame_meets_one_fate,
            reset::ends_connections,
            restore::leaves_no_trace,
            restore::holder_killed,
            restore::attach_killed,
            restore::detach_killed,
            restore::filters_of_others,
            restore::root_by_hand,
            restore::step_fails,
            restore::foreground,
            restore::foreground_waits,
            restore::foreground_renamed,
            restore::foreground_replaced,
            odd::large_index,
            odd::many_names,
            odd::odd_name,
            odd::ordinary_user,
            odd::own_device,
            odd::settings_for_reading_only,
            odd::user_namespace,
            odd::without_type_information,
            odd::without_grace_period,
            restore::own_run,
            change::set_is_atomic,
            frames::queues,
            malformed::attach,
            restore::other_namespace,
            restore::attached_twice,
            restore::device_deleted,
            restore::namespace_deleted,
            forwarded::of_a_virtual_machine,
            senders::a_queue_limits_trains,
            senders::a_stamp_stops_nobody,
            senders::trains_are_packets,
            senders::trains_of_an_older_socket,
            spare::session,
            time::begins_with_the_link,
            tamper::one_detach,
            tamper::taken_over,
            tamper::all_at_once,
            tamper::record_lost,
            tamper::moved,
            tamper::moved_away,
            tamper::run_is_invalid,
            tamper::monitored;
        Host:
            restore::hostile_user;
        Guest:
            alter::corrupt_sctp,
            frames::control_traffic_waits,
            frames::ipsec,
            frames::steered_flows,
            restore::lro_below,
            smoke::lives_and_goes;
        Full:
            spare::networks,
            tamper::smoke,
            alter::corrupt,
            alter::duplicate,
            change::directions,
            change::fails_without_a_trace,
            change::queue_lives_on,
            ecn::marks,
            frames::ipv6,
            frames::neighbours,
            frames::without_ethernet,
            loss::repeats,
            matching::matrix,
            matching::rules,
            matching::shared,
            models::delays,
            models::losses,
            models::sparse,
            forwarded::mathis_forwarded,
            forwarded::mathis_of_vlan,
            forwarded::mathis_bridged,
            rate::queue,
            rate::udp,
            rate::tcp,
            rate::tcp_keeps_its_pace,
            rate::tcp_against_netem,
            senders::trains_lose_single_packets,
            time::opportunities,
            time::phases,
            time::rows,
            time::slots,
            time::slots_keep_order,
            timing::against_netem,
            timing::departure_error,
            timing::order_across_cpus,
            timing::order_across_queues,
            timing::in_order_at_every_rate,
            timing::round_trip;
    ]
    .into()
}

/// The same with all engines: guests test them with their first one.
fn of_any_engine() -> [(When, &'static str, Test); 2] {
    named![Test;
        Always:
            cgroup::applications,
            names::learned;
    ]
}

pub fn tests() -> Vec<Trial> {
    let engines = engines();
    let mut trials = vec![];
    for engine in engines.iter().copied() {
        let is_first = engine == engines[0];
        let of_any = of_any_engine()
            .map(|(when, name, test)| (if is_first { when } else { When::Here }, name, test));
        for (when, name, test) in of_engine().into_iter().chain(of_any) {
            // This machine's kernel tests hold; guests have fq.
            let when = match when {
                When::Guest if engine == Engine::Hold => When::Full,
                when => when,
            };
            let name = format!("link::{}::{name}", engine.name());
            trials.push(trial::test(when, name, move || test(engine)));
        }
        if has_preempt_rt() {
            let tests = named![Test;
                Full:
                    odd::preempting,
                    odd::preempting_in_a_queue;
            ];
            for (when, name, test) in tests {
                let name = format!("link::{}::{name}", engine.name());
                trials.push(trial::test(when, name, move || test(engine)));
            }
        }
    }
    let mut add = |when, name: &str, test: fn()| trials.push(trial::test(when, name, test));
    add(When::Full, "link::malformed::check", malformed::check);
    add(When::Here, "link::odd::swept_together", odd::swept_together);
    if engines.contains(&Engine::Qdisc) {
        let name = "link::qdisc::bottleneck::senders_wait";
        add(When::Always, name, bottleneck::senders_wait);
        let name = "link::qdisc::senders::a_flood_of_stamps_stops_nobody";
        let test = || senders::a_flood_of_stamps_stops_nobody(Engine::Qdisc);
        add(When::Full, name, test);
    }
    for engine in [Engine::Hold, Engine::Qdisc] {
        let served: [(When, &str, Test); 10] = [
            (When::Always, "bottleneck::priority", bottleneck::priority),
            (
                When::HereAndFull,
                "bottleneck::weights",
                bottleneck::weights,
            ),
            (
                When::HereAndFull,
                "bottleneck::one_fate",
                bottleneck::one_fate,
            ),
            (When::HereAndFull, "bottleneck::phases", bottleneck::phases),
            (When::HereAndFull, "bottleneck::trains", bottleneck::trains),
            (When::Full, "bottleneck::verified", bottleneck::verified),
            (
                When::Full,
                "bottleneck::classes_verified",
                bottleneck::classes_verified,
            ),
            (When::Full, "control::htb", control::htb),
            (When::Full, "control::prio", control::prio),
            (When::Full, "control::shares", control::shares),
        ];
        for (when, name, test) in served {
            // The holder's is the same on every kernel.
            let when = match (engine, when) {
                (Engine::Hold, When::Always) => When::HereAndFull,
                _ => when,
            };
            if engines.contains(&engine) {
                let name = format!("link::{}::{name}", engine.name());
                trials.push(trial::test(when, name, move || test(engine)));
            }
        }
    }
    let mut add = |when, name: &str, test: fn()| trials.push(trial::test(when, name, test));
    if engines.contains(&Engine::Hold) {
        let name = "link::hold::senders::a_flood_of_stamps_stops_nobody";
        let test = || senders::a_flood_of_stamps_stops_nobody(Engine::Hold);
        add(When::HereAndFull, name, test);
        // What packets wait for is measured on every kernel; the rest is the same, or about many CPUs.
        let bottlenecks: [(When, &str, fn()); 6] = [
            (
                When::Here,
                "senders_do_not_wait",
                bottleneck::senders_do_not_wait,
            ),
            (
                When::HereAndFull,
                "both_directions",
                bottleneck::both_directions,
            ),
            (When::Here, "engines", bottleneck::engines),
            (When::Here, "flood", bottleneck::flood),
            (When::HereAndFull, "marks", ecn::marks_in_a_class),
            (When::Full, "managers", control::managers),
        ];
        for (when, name, test) in bottlenecks {
            add(when, &format!("link::hold::bottleneck::{name}"), test);
        }
        let name = "link::hold::emulated::holder_tells_monitors";
        add(When::Here, name, emulated::holder_tells_monitors);
        let name = "link::hold::tamper::ends_with_its_interface";
        add(When::Here, name, tamper::ends_with_its_interface);
        let name = "link::hold::odd::memory";
        add(When::Here, name, odd::memory);
        let name = "link::hold::odd::namespace_held_open";
        add(When::Here, name, odd::namespace_held_open);
    }
    if engines.contains(&Engine::Fq) {
        add(When::Full, "link::fq::models::verified", models::verified);
    }
    if !engines.contains(&Engine::Qdisc) {
        add(
            When::Always,
            "link::qdisc::unsupported",
            odd::qdisc_unsupported,
        );
    }
    let here = engines.clone();
    trials.push(trial::test(When::Always, "link::auto::first", move || {
        auto::first(&here);
    }));
    if engines.len() > 1 {
        let name = "link::both::loss::same";
        trials.push(trial::test(When::Full, name, move || {
            loss::same_under_all_engines(&engines);
        }));
    }
    trials
}

/// The engines that emud reports here and those that the caller expects.
pub fn engines() -> Vec<Engine> {
    let all = [Engine::Fq, Engine::Hold, Engine::Qdisc];
    let promised = |engine: &Engine| lab::promised("EMUD_EXPECT_ENGINES", engine.name());
    // doctor verifies the programs, which takes a guest a while.
    if guest() && all.iter().any(promised) {
        return all.into_iter().filter(promised).collect();
    }
    let offered = lab::emud(&["doctor", "--json"]).expect(0).json();
    let offers = |engine: Engine| {
        offered["engines"]
            .as_array()
            .expect("a list")
            .iter()
            .any(|offer| offer == engine.name())
    };
    all.into_iter()
        .filter(|e| offers(*e) || promised(e))
        .collect()
}
