// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads what classes of bottlenecks send of the traffic that is there.

use std::thread;
use std::time::Duration;

use super::VerifyError;
use super::check::CheckVerdict;
use super::requested::Version;
use super::shares::{Sample, ShareCheck, judge};
use crate::datapath::show::service::BottleneckReport;
use crate::datapath::{LinkError, attachment, reports};
use crate::host::now_ns;
use crate::netlink::Netlink;
use crate::profile::{Profile, Rate};
use crate::text::columns;

/// Between two samples, as the holder reports (`REPORT_NS`); a report is at most two such times old.
const EACH_NS: u64 = 50_000_000;
/// Ethernet header, tags, and what fills up a short frame.
const AROUND_MTU: u64 = 64;

/// Checks of each bottleneck, by its name.
pub type OfBottlenecks = Vec<(String, Vec<ShareCheck>)>;

/// Judges the classes of an interface by its profile, or by another one, for as long as `duration_ns`. It sends nothing.
///
/// # Errors
/// The time is shorter than 1 s, nothing is attached, no bottleneck has classes, or they are changed meanwhile.
pub fn classes(
    interface: &str,
    against: Option<&Profile>,
    duration_ns: u64,
) -> Result<OfBottlenecks, VerifyError> {
    super::long_enough(duration_ns)?;
    let read = || -> Result<(Version, String, u32), VerifyError> {
        let mut nl = Netlink::open().map_err(LinkError::from)?;
        let link = nl.link(interface)?;
        let there = attachment::running(&mut nl, &link)?;
        let version = Version::of(&there.maps)?;
        Ok((version, there.saved.profile, link.mtu))
    };
    let before = read()?;
    let in_force = Profile::parse(&before.1, "the kernel").ok();
    let profile = against.or(in_force.as_ref());
    let all: Vec<_> = (profile.iter())
        .flat_map(|profile| &profile.bottlenecks)
        .filter(|bottleneck| !bottleneck.classes.is_empty())
        .collect();
    if all.is_empty() {
        let what = "no bottleneck with classes".to_owned();
        return Err(VerifyError::NotJudged { what });
    }
    let unchanged = || -> Result<(), VerifyError> {
        match read()? == before {
            true => Ok(()),
            false => Err(VerifyError::Changed {
                interface: interface.to_owned(),
            }),
        }
    };
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); all.len()];
    let until = now_ns() + duration_ns;
    loop {
        let at_ns = now_ns();
        let reports = reports::reports(Some(interface))?;
        let running = reports
            .first()
            .map_or(&[][..], |report| &report.bottlenecks);
        for (of, samples) in all.iter().zip(&mut samples) {
            let classes = running.iter().find(|report| report.name == of.name);
            let classes = classes.and_then(|report| {
                (of.classes.iter())
                    .map(|class| counts(report, &class.name))
                    .collect()
            });
            let Some(classes) = classes else {
                unchanged()?;
                let what = format!("no bottleneck `{}` with these classes", of.name);
                return Err(VerifyError::NotJudged { what });
            };
            samples.push(Sample { at_ns, classes });
        }
        if at_ns >= until {
            break;
        }
        thread::sleep(Duration::from_nanos(EACH_NS));
    }
    unchanged()?;
    let longest = u64::from(before.2) + AROUND_MTU;
    let checks = all.iter().zip(&samples).map(|(of, samples)| {
        let checks = judge(of, samples, 2 * EACH_NS, longest);
        (of.name.clone(), checks)
    });
    Ok(checks.collect())
}

fn counts(report: &BottleneckReport, class: &str) -> Option<(u64, u64)> {
    let mut classes = report.classes.iter();
    let found = classes.find(|report| report.name.as_deref() == Some(class))?;
    Some((found.sent_bytes, found.backlog_bytes))
}

/// Returns the verdict on all, and a table.
pub fn class_table(all: &OfBottlenecks) -> (CheckVerdict, String) {
    let head = ["", "promised", "measured", "interval", "verdict"].map(str::to_owned);
    let bits = |bits: f64| Rate(bits.round() as u64).to_string();
    let rows = all.iter().flat_map(|(name, checks)| {
        checks.iter().map(move |check| {
            let class = (check.class.as_ref()).map_or(String::new(), |class| format!(".{class}"));
            let (low, high) = check.interval;
            let interval = match high.is_finite() {
                true => format!("{} .. {}", bits(low), bits(high)),
                false => format!("{} ..", bits(low)),
            };
            let verdict = match check.verdict {
                CheckVerdict::Agrees => "agrees",
                _ => "DISAGREES",
            };
            let what = format!("{name}{class} {}", check.what);
            [
                what,
                bits(check.asked),
                bits(check.measured),
                interval,
                verdict.to_owned(),
            ]
        })
    });
    let mut out = columns([head].into_iter().chain(rows));
    let mut checks = all.iter().flat_map(|(_, checks)| checks);
    // A ceil holds without a load, too.
    let is_loaded = |checks: &Vec<ShareCheck>| checks.iter().any(|check| check.what != "ceil");
    let (verdict, text) = if checks.any(|check| check.verdict == CheckVerdict::Disagrees) {
        (
            CheckVerdict::Disagrees,
            "the classes do NOT behave as configured",
        )
    } else if all.iter().any(|(_, checks)| !is_loaded(checks)) {
        (
            CheckVerdict::NotMeasured,
            "no class without a ceil had packets all the time, with more of them than the server sends in 150 ms: load \
             the classes to be judged, and give them longer queues",
        )
    } else {
        (
            CheckVerdict::Agrees,
            "the classes with packets behave as configured",
        )
    };
    out += text;
    out.push('\n');
    (verdict, out)
}
