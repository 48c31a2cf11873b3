// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists the packets of a link: what became of each between two captures.

use std::fmt::Write;
use std::path::PathBuf;

use emud::packets::{Capture, Fate, Listing, Merged, pair, read};
use emud::profile::Time;
use emud::text::to_stderr;

use super::failure::EX_USAGE;
use super::{Failure, is_same};

/// List each packet of two captures: delayed, lost or copied
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
The first capture is of the interface in front of the link, the second of one behind it (pcap or pcapng), both on
one host or with one clock. A packet is found again by its first 512 bytes from the IP header on, except for those
that a hop changes (hop limit, DSCP, ECN, checksums).

Example:
  emud packets before.pcap after.pcap -o packets.csv")]
pub struct Args {
    /// Packets in front of the link
    before: PathBuf,

    /// Packets behind the link
    after: PathBuf,

    /// Write the list to a file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const HEADER: [&str; 9] = [
    "time_ns",
    "source",
    "source_port",
    "destination",
    "destination_port",
    "protocol",
    "bytes",
    "fate",
    "delay_ns",
];

pub fn run(args: &Args) -> Result<(), Failure> {
    if is_same(&args.before, &args.after) {
        let message = format!("{} is both captures: name two", args.before.display());
        return Err(Failure::new(EX_USAGE, message));
    }
    if let Some(output) = &args.output
        && [&args.before, &args.after]
            .iter()
            .any(|capture| is_same(capture, output))
    {
        let message = format!("the list would overwrite its capture, {}", output.display());
        return Err(Failure::new(EX_USAGE, message));
    }
    let captures = [read(&args.before)?, read(&args.after)?];
    let listing = pair(&captures[0], &captures[1]).map_err(|merged| has_parts(args, &merged))?;
    let csv = csv(&listing).map_err(|e| Failure::os(e.to_string()))?;
    match &args.output {
        Some(path) => super::report::write(path, &csv)?,
        None => super::out(&csv)?,
    }
    to_stderr(summary(&listing, &captures));
    Ok(())
}

fn csv(listing: &Listing<'_>) -> Result<String, csv::Error> {
    // A list without packets has columns, too.
    let mut writer = csv::WriterBuilder::new()
        .has_headers(false)
        .from_writer(vec![]);
    writer.write_record(HEADER)?;
    for listed in &listing.packets {
        let packet = listed.packet;
        let (fate, delay_ns) = match listed.fate {
            Fate::Arrived { delay_ns } => ("arrived", Some(delay_ns)),
            Fate::Copied { delay_ns } => ("copied", Some(delay_ns)),
            Fate::Lost => ("lost", None),
            Fate::Open => ("open", None),
        };
        let port = |side: usize| packet.ports.map(|ports| ports[side]);
        writer.serialize((
            packet.time_ns,
            packet.source,
            port(0),
            packet.destination,
            port(1),
            packet.protocol,
            packet.bytes,
            fate,
            delay_ns,
        ))?;
    }
    let bytes = writer.into_inner().map_err(|e| e.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn summary(listing: &Listing<'_>, captures: &[Capture; 2]) -> String {
    let mut delays = vec![];
    let [mut copied, mut lost, mut open] = [0u64; 3];
    for listed in &listing.packets {
        match listed.fate {
            Fate::Arrived { delay_ns } => delays.push(delay_ns),
            Fate::Copied { .. } => copied += 1,
            Fate::Lost => lost += 1,
            Fate::Open => open += 1,
        }
    }
    delays.sort_unstable();
    let judged = delays.len() as u64 + lost;
    let mut text = format!("{} packets arrived", delays.len());
    if !delays.is_empty() {
        // Nearest rank: the least delay that at least this share is within.
        let at = |percent: usize| Time(delays[(delays.len() * percent).div_ceil(100).max(1) - 1]);
        // Writing to a String does not fail.
        let _ = write!(
            text,
            " after {} to {} (median {}, 99% within {})",
            at(0),
            at(100),
            at(50),
            at(99)
        );
    }
    let _ = write!(text, ", {lost} lost");
    if judged > 0 {
        let _ = write!(text, " ({:.3}%)", 100.0 * lost as f64 / judged as f64);
    }
    let _ = write!(text, ", {copied} copies");
    let others = [
        (
            open,
            "open: the second capture begins too late or ends too early",
        ),
        (listing.of_elsewhere, "in the second capture only"),
        (
            listing.earlier,
            "not listed: the second capture saw them first, as it does those of the other direction. If these are all: \
             exchange the files, or synchronise the clocks of the hosts",
        ),
        (captures[0].not_ip + captures[1].not_ip, "not IP"),
        (
            u64::from(captures[0].ends_within),
            "at the end of the first capture incomplete",
        ),
        (
            u64::from(captures[1].ends_within),
            "at the end of the second capture incomplete",
        ),
    ];
    for (packets, what) in others.into_iter().filter(|(packets, _)| *packets > 0) {
        let _ = write!(text, "\n{packets} {what}");
    }
    text
}

/// The link has segmented a packet, or a device has merged several.
fn has_parts(args: &Args, merged: &Merged<'_>) -> Failure {
    let path = match merged.is_first {
        true => &args.before,
        false => &args.after,
    };
    let Merged { packet, .. } = merged;
    let message = format!(
        "{}: a packet of {} bytes from {} to {}, which the other capture has in parts: disable super-packets at the \
         sender and at both captures (ethtool -K IFACE tso off gso off gro off), and capture again",
        path.display(),
        packet.bytes,
        packet.source,
        packet.destination
    );
    Failure::new(65, message)
}
