// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud run` on a real kernel. Each test has a separate network namespace for a host, so that the
//! machine's own network is never touched. Needs `ip`, `ping`, `script` and python3-jsonschema.

mod artefacts;
mod in_place;
mod log;
mod medium;
mod medium_rows;
mod medium_shipped;
mod metrics;
mod program;
mod repeat;
mod reproduce;
mod routing;
mod scale;
mod scenario;
mod undone;
mod user;
mod verdict;

use libtest_mimic::Trial;
use support::trial::When;
use support::{host, named, trial};

pub fn tests() -> Vec<Trial> {
    let mut tests = Vec::from(named![fn();
        Here:
            program::sees_the_link,
            program::exit_code_is_passed_on,
            program::that_cannot_be_started,
            program::output_is_whole,
            program::a_reader_that_stops_holds_nothing_up,
            program::a_slow_reader_gets_all,
            program::a_signal_ends_the_wait_for_a_reader,
            program::input_is_passed_on,
            program::shell_at_a_terminal,
            program::progress_at_a_terminal,
            program::finds_names_and_its_host,
            log::has_everything_in_order,
            log::samples_add_up,
            log::classes_add_up,
            log::capacity_is_the_traces,
            log::follows_changes,
            log::follows_changes_of_the_preparation,
            log::a_link_that_comes_back_is_another,
            log::a_link_that_ends_is_missed,
            log::needs_python_to_check_its_schema,
            scenario::chain,
            scenario::star,
            scenario::the_wire_to_the_host_meets_no_other,
            scenario::large,
            scenario::failures_are_told,
            scenario::order_and_artefacts,
            scenario::a_clean_up_has_an_end,
            artefacts::of_each_node_are_its_own,
            artefacts::of_an_earlier_run_do_not_stay,
            artefacts::are_what_the_node_sees,
            artefacts::with_holes_take_no_room,
            artefacts::without_a_folder_are_scratch,
            user::who_called_sudo,
            user::star,
            user::as_asked,
            user::links_lead_nowhere,
            user::monitors_follow_no_link,
            user::folders_lead_nowhere,
            user::files_of_root_stay,
            user::who_prepares,
            medium::one_sender,
            medium::access_categories,
            medium::a_held_thread_is_reported,
            medium::foreign_frames_are_dropped,
            medium::super_packets_are_segmented,
            medium::relays,
            medium::a_short_run_is_counted,
            medium::segment,
            medium::a_walk_ends_the_reception,
            medium::a_record_that_fails_at_the_end_is_reported,
            medium::repeats_keep_their_records,
            metrics::of_the_run,
            undone::after_kill,
            undone::a_holder_that_starts,
            undone::a_medium_after_kill,
            undone::by_signals,
            undone::nothing_starts_after_a_signal,
            undone::a_signal_of_the_terminal_comes_once,
            undone::when_a_later_run_fails,
            undone::when_preparation_fails,
            in_place::link_comes_and_goes,
            in_place::link_that_stays_is_said,
            in_place::guard,
            in_place::no_program_outlives_it,
            in_place::a_renamed_interface_is_still_its_own,
            in_place::a_link_that_cannot_be_read_goes,
            in_place::a_link_of_another_stays,
            in_place::a_guard_removes_what_its_run_began,
            in_place::super_packets_are_said,
            repeat::same_seed_same_losses,
            repeat::same_seed_same_losses_of_a_program,
            repeat::summary,
            repeat::failed_programs_do_not_count,
            reproduce::killed,
            verdict::contention_by_report,
            verdict::reports_stay_in_their_run,
            verdict::a_failed_program_is_said,
            verdict::a_busy_host_is_said_at_the_start,
            verdict::names_what_was_watched,
            verdict::a_busy_cpu_is_contention,
            verdict::a_holder_that_cannot_report_is_said,
            verdict::a_link_without_its_filters_is_said,
            verdict::the_emulators_own_failure,
            verdict::ends_the_run,
            verdict::what_was_before_ends_nothing;
        Full:
            medium::hidden,
            medium::two_cells,
            medium_rows::saturated_802_11b,
            medium_rows::saturated_802_11g,
            medium_rows::a_slow_station_slows_the_other,
            medium_rows::one_tcp_flow,
            medium_rows::relays_share_the_channel,
            medium_rows::a_node_on_two_media,
            medium_rows::red_with_ten_flows,
            medium_rows::energy_of_forty_stations,
            medium_rows::pings_without_access_control,
            medium_shipped::mesh,
            medium_shipped::air_chain,
            medium_shipped::hidden,
            medium_shipped::pilot_standing,
            medium_shipped::pilot_walk_udp,
            medium_shipped::pilot_walk_tcp,
            medium_shipped::pilot_tos,
            reproduce::chain,
            reproduce::choke,
            reproduce::contention,
            reproduce::diffserv,
            reproduce::latency,
            reproduce::links,
            reproduce::loss,
            reproduce::manet,
            reproduce::overhead,
            reproduce::peers,
            reproduce::ring,
            reproduce::scale,
            reproduce::snake,
            reproduce::star,
            reproduce::switch,
            reproduce::tree,
            reproduce::updates,
            reproduce::window,
            routing::babeld_finds_a_first_route,
            routing::babeld_reroutes_when_a_relay_leaves,
            routing::bird_finds_a_first_route,
            routing::bird_reroutes_when_a_relay_leaves,
            routing::broch,
            scale::a_hundred_stations,
            scale::hellos_of_256_stations,
            verdict::a_hog_is_named,
            verdict::without_it_the_run_is_clean;
    ]);
    if crate::netem::is_there() {
        tests.push((When::Full, "reproduce::compared", reproduce::compared));
    }
    let tests = tests.into_iter().map(|(when, name, test)| {
        trial::test(when, format!("run::{name}"), move || host::on_a_host(test))
    });
    tests.collect()
}
