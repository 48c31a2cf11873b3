// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments on several hosts: network namespaces that act as hosts, and real members of etcd.
//! The full run needs Debian's `etcd-server`, and `openssl`.

mod agent;
mod begin;
mod clean;
mod hosts;
mod late;
mod moments;
mod part;
mod same;
mod set;
mod simulate;
mod skew;
mod store;
mod tls;
mod tunnels;

use libtest_mimic::Trial;
use support::{named, trial};

pub fn tests() -> Vec<Trial> {
    named![fn();
        Here:
            begin::at_a_time_ahead,
            part::changes_at_the_time,
            store::that_does_not_answer;
        Full:
            same::chain,
            same::star,
            same::dumbbell,
            same::sixty_nodes,
            same::rates_of_a_dumbbell,
            same::rate_of_a_chain,
            same::rate_of_a_star,
            same::rate_of_sixty_nodes,
            same::waits_across_hosts,
            same::contended_host_is_named,
            same::a_hog_is_named_on_every_host,
            same::slow_underlay_is_refused,
            same::narrow_underlay_is_refused,
            same::narrow_switch_is_refused,
            same::mtu_of_a_star,
            agent::loopback_address_is_rejected,
            agent::its_key_describes_the_host,
            agent::a_plan_writes_nothing,
            agent::prepares_as_root_if_allowed,
            tunnels::dropped_before_the_start,
            tunnels::changed_during_the_run,
            same::starts_together,
            same::phases_count_from_one_time,
            same::traces_count_from_one_time,
            same::motion_counts_from_the_start,
            late::start_is_named,
            late::reports_do_not_delay_the_start,
            late::a_host_that_died_before_the_start,
            late::stopped_before_the_start,
            late::stopped_just_before_the_start,
            skew::of_the_start,
            skew::of_a_change,
            set::on_all_hosts_at_one_time,
            set::phases_restart_at_the_time,
            set::delay_of_a_link_between_hosts,
            set::delay_of_a_star_between_hosts,
            simulate::thirty_agents,
            clean::after_a_killed_agent,
            clean::after_a_killed_part,
            clean::after_a_stopped_part,
            clean::after_a_stopped_agent,
            clean::without_the_store,
            clean::after_a_revoked_lease,
            clean::after_a_killed_controller,
            clean::after_a_partition,
            clean::with_a_killed_member,
            clean::by_a_deadline_in_the_kernel,
            clean::after_stop,
            clean::after_stop_of_a_late_controller,
            moments::killed_agent,
            moments::killed_controller,
            moments::partition,
            moments::killed_leader,
            moments::hung_member,
            moments::full_disk,
            clean::one_run_at_a_time,
            agent::registers_though_the_answer_is_lost,
            agent::runs_though_the_answer_is_lost,
            agent::a_failure_of_an_earlier_run_does_not_count,
            agent::a_report_of_another_plan_does_not_count,
            agent::no_run_begins_twice,
            tls::only_with_a_certificate,
            tls::only_as_a_user,
            tls::programs_are_not_root,
            tls::other_commands_are_not_root;
    ]
    .map(|(when, name, test)| trial::test(when, format!("fleet::{name}"), test))
    .into()
}
