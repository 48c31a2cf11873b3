// SPDX-License-Identifier: MIT OR Apache-2.0

use std::fmt::Write;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use emud::datapath::engine::hold::signal;
use emud::experiment::run::User;
use emud::text::{count, quantity, to_stderr};
use emud_monitor::criteria::table::Word as _;
use emud_monitor::criteria::{Basis, CRITERIA};
use emud_monitor::event::Watched;
use emud_monitor::record::{Header, Options, Recorder, StopReason, Summary};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;

use super::run::watched;
use crate::cli::Failure;
use crate::cli::failure::EX_CANTCREAT;
use crate::cli::progress::Progress;

/// Record what the criteria judge, for `emud monitor calibrate`
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  emud monitor record -o good.rec --duration 60s     while the experiment runs under a load that
                                                     is known to be good
  emud monitor record -o good.rec                    until Ctrl-C
  emud monitor calibrate good.rec                    thresholds that this load does not reach

Writing the file is load too: put it on a disk that the experiment does not use, or in /dev/shm.
A packet takes 32 bytes. The file is described in docs/record-format.md.

Exit codes: 0 recorded (also if records were lost: the summary and the file say so), 64 usage,
69 this kernel has none of the hooks, 71 the kernel returned an error, 73 the file cannot be created, 74 it
cannot be written, 77 no permission.")]
pub struct Args {
    /// File to write; an existing file is replaced
    #[arg(long, short = 'o', value_name = "FILE")]
    output: PathBuf,

    /// End after this time: 500ms, 60s, 10min, 8h [default: at Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = watched)]
    duration: Option<Duration>,

    /// Size of the buffer between kernel and file: a power of two
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = size)]
    ring: u32,

    /// Definition of idle: the idle task (task), or an idle state of the CPU (idle), which counts
    /// forwarding as busy
    #[arg(long, value_name = "task|idle", default_value = "task", value_parser = basis)]
    cpu_basis: Basis,

    /// Print the summary as JSON: the file's header and trailer
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    // Before the recorder's thread starts, so that a signal ends no thread.
    let stop = signal::stop_signals()?;
    let caller = User::invoking()?;
    let file = match &caller {
        Some(caller) => caller.create(&args.output),
        None => File::create(&args.output),
    };
    let file = file.map_err(|e| {
        let file = args.output.display();
        Failure::new(EX_CANTCREAT, format!("cannot create {file}: {e}"))
    })?;
    let options = Options {
        ring_bytes: args.ring,
        cpu_basis: args.cpu_basis,
    };
    let recorder = Recorder::start(file, &options).map_err(|e| {
        // As root, it could be another file by now.
        match &caller {
            Some(caller) => drop(caller.does(|| remove_empty(&args.output))),
            None => remove_empty(&args.output),
        }
        Failure::new(e.exit_code(), e.to_string())
    })?;
    for note in notes(recorder.header()).lines() {
        to_stderr(note);
    }
    let reason = wait(&recorder, stop.as_fd(), args)?;
    let summary = recorder
        .finish(reason)
        .map_err(|e| Failure::new(e.exit_code(), e.to_string()))?;
    crate::cli::out(&if args.json {
        as_json(&args.output, &summary)
    } else {
        as_text(&args.output, &summary)
    })
}

/// Removes an empty file; a device or a pipe is not removed.
fn remove_empty(file: &Path) {
    if std::fs::metadata(file).is_ok_and(|m| m.is_file()) {
        let _ = std::fs::remove_file(file);
    }
}

/// Longest time until a failed write is detected.
const LOOK: Duration = Duration::from_millis(200);

fn wait(recorder: &Recorder, stop: impl AsFd, args: &Args) -> Result<StopReason, Failure> {
    let duration = args.duration;
    let of = duration.map(|d| quantity::time(d.as_nanos() as u64));
    let progress = Progress::start(of.as_deref());
    let begin = Instant::now();
    loop {
        let bytes = std::fs::metadata(&args.output).map_or(0, |file| file.len());
        progress.show(format!("recording: {} bytes", count(bytes)));
        let left = duration.map(|d| d.saturating_sub(begin.elapsed()));
        if left.is_some_and(|l| l.is_zero()) || !recorder.is_writing() {
            return Ok(StopReason::Duration);
        }
        let wait = left.unwrap_or(LOOK).min(LOOK);
        let wait = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(wait.subsec_nanos()),
        };
        let mut signals = [PollFd::new(&stop, PollFlags::IN)];
        match poll(&mut signals, Some(&wait)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(StopReason::Signal),
            Err(e) => return Err(std::io::Error::from(e).into()),
        }
    }
}

/// Returns notes about what the recording does not contain, or not exactly.
fn notes(header: &Header) -> String {
    let mut out = String::new();
    for recorded in CRITERIA.iter().flat_map(|criterion| criterion.recorded) {
        if header.watched.get(recorded.key) != Some(&Watched::Yes) {
            let what = recorded.what;
            let _ = writeln!(
                out,
                "emud: {what}: unknown, no hook of this kernel shows them"
            );
        }
    }
    for hook in &header.hooks {
        if let Some(caveat) = &hook.caveat
            && hook.refused.is_none()
        {
            let _ = writeln!(
                out,
                "emud: {} through {}: {caveat}",
                hook.criterion, hook.hook
            );
        }
    }
    out
}

fn as_json(file: &Path, summary: &Summary) -> String {
    let json = json!({
        "schema": summary.header.schema,
        "file": file.display().to_string(),
        "header": summary.header,
        "trailer": summary.trailer,
    });
    format!("{json:#}\n")
}

fn as_text(file: &Path, summary: &Summary) -> String {
    let Summary { header, trailer } = summary;
    let length = trailer.end_mono_ns - header.start_mono_ns;
    let mut out = format!("{}: {}\n", file.display(), quantity::time(length));
    for (kind, records) in &trailer.records {
        let _ = writeln!(out, "  {:<10} {:>12}", kind.name(), count(*records));
    }
    for (kind, lost) in &trailer.lost {
        let lost = count(*lost);
        let _ = writeln!(
            out,
            "  {:<10} {lost:>12} LOST: the ring was full, or the kernel ran no program",
            kind.name()
        );
    }
    if trailer.disks_unknown > 0 {
        let n = count(trailer.disks_unknown);
        let _ = writeln!(
            out,
            "  {n} requests beyond 1024 block devices and 8192 pending requests LOST"
        );
    }
    if trailer.lost.is_empty() && trailer.disks_unknown == 0 {
        out += "  nothing lost\n";
    }
    out
}

fn basis(text: &str) -> Result<Basis, String> {
    Basis::of(text).ok_or_else(|| "it is `task` or `idle`".into())
}

fn size(text: &str) -> Result<u32, String> {
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
    let with_unit = |(unit, factor): &(&str, u32)| {
        let number: u32 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
        number.checked_mul(*factor)
    };
    let bytes = units.iter().find_map(with_unit);
    bytes
        .or_else(|| text.parse().ok())
        .filter(|b| b.is_power_of_two() && (4096..=1 << 30).contains(b))
        .ok_or_else(|| "it must be a power of two from 4KiB to 1GiB, such as \"16MiB\"".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size("16MiB"), Ok(16 << 20));
        assert_eq!(size("4096"), Ok(4096));
        for wrong in ["3MiB", "2KiB", "2GiB", "MiB", "16MB", "-1", "99999GiB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
