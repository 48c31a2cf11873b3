// SPDX-License-Identifier: MIT OR Apache-2.0

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Subcommand;
use emud::experiment::traffic::{
    self, Blocks, Count, Data, Ports, Size, Store, Stream, TrafficError, Transfer,
};
use emud::host::signals::Signals;
use emud::host::single_threaded;
use emud::text::Rate;

use super::Failure;
use super::monitor::duration;

/// Send and receive test traffic: UDP, RTP, transfers, pipelines
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  emud traffic receive 6001                                    until SIGTERM or Ctrl-C
  emud traffic send 192.0.2.1:6001 --rate 7.34Mbit --packets 14267
  emud traffic send 192.0.2.1:6001 --rate 1Mbit --packets 1000 --size normal:800,200
  emud traffic receive --rtp 6004
  emud traffic send 192.0.2.1:6004 --rate 2Mbit --packets 5000 --rtp 25
  emud traffic receive --tcp 6001
  emud traffic transfer 192.0.2.1:6001 --for 10s
  emud traffic receive --acknowledge 6002
  emud traffic blocks 192.0.2.1:6002 --rate 50Mbit --for 10s
  emud traffic store 6001 copy --to 192.0.2.2:6001
  emud traffic transfer 192.0.2.1:6001 --file image

Each prints one line of JSON when it ends. Delays need both ends on one machine: they are differences
of its CLOCK_MONOTONIC. Jitter (RFC 3550) and, with --each, delay variation (RFC 5481) need one sender a
port; between two machines the drift of their clocks is in them. docs/reproduction.md")]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Send datagrams at a constant rate, or as the frames of a video
    Send {
        /// Destinations, to which datagrams go in turn: host name or IPv4 address, and port
        #[arg(value_name = "HOST:PORT", required = true)]
        to: Vec<String>,
        /// Rate of the data to all of them, without headers
        #[arg(long, value_name = "RATE")]
        rate: Rate,
        /// Number of datagrams to all of them
        #[arg(long, value_name = "N")]
        packets: u64,
        /// Data per datagram in bytes, 16 (with --rtp 28) to 1472. Or normal:MEAN,SD: drawn for each from a normal
        /// distribution, rounded; beyond a limit it is that limit
        #[arg(long, value_name = "BYTES", default_value = "1470")]
        size: Size,
        /// Seed of the sizes of normal:MEAN,SD
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
        /// Send RTP with this number of frames per second, for `receive --rtp`: all packets of a frame are sent
        /// when it begins, with its time stamp (90 kHz), the last one with the marker
        #[arg(long, value_name = "FPS", value_parser = clap::value_parser!(u32).range(1..=1000))]
        rtp: Option<u32>,
        /// Type of service: all eight bits, decimal or with 0x
        #[arg(long, value_name = "TOS", default_value = "0", value_parser = tos)]
        tos: u8,
        /// Pause after the last datagram
        #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = duration)]
        linger: Duration,
        /// Exit with 0 even if no datagram had a route, or nothing listens
        #[arg(long)]
        patient: bool,
    },
    /// Receive and count until SIGTERM or Ctrl-C
    #[command(group = clap::ArgGroup::new("listed").multiple(true))]
    Receive {
        /// UDP ports
        #[arg(value_name = "PORT", value_parser = port(), group = "listed", required_unless_present_any = ["rtp", "tcp", "acknowledge"])]
        udp: Vec<u16>,
        /// UDP port of `emud traffic send --rtp`
        #[arg(long, value_name = "PORT", value_parser = port(), group = "listed")]
        rtp: Vec<u16>,
        /// TCP port; its data is discarded
        #[arg(long, value_name = "PORT", value_parser = port())]
        tcp: Vec<u16>,
        /// UDP port of `emud traffic blocks`: each datagram is acknowledged
        #[arg(long, value_name = "PORT", value_parser = port())]
        acknowledge: Vec<u16>,
        /// List each datagram of the UDP ports, with its times and its remaining TTL
        #[arg(long, requires = "listed")]
        each: bool,
    },
    /// Send data by TCP Reno as fast as possible
    Transfer {
        /// Destination: host name or address, and port
        #[arg(value_name = "HOST:PORT")]
        to: String,
        /// Duration
        #[arg(long = "for", value_name = "TIME", value_parser = duration, required_unless_present = "file")]
        duration: Option<Duration>,
        /// File to send as a whole, instead of zeros
        #[arg(long, value_name = "FILE", conflicts_with = "duration")]
        file: Option<PathBuf>,
        /// Send buffer in bytes
        #[arg(long, value_name = "BYTES", default_value_t = 131_072)]
        window: usize,
    },
    /// Store the data of one TCP connection in a file, and pass it on
    Store {
        /// TCP port
        #[arg(value_name = "PORT")]
        port: u16,
        /// File to create
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Receiver of the same data: host name or address, and port
        #[arg(long, value_name = "HOST:PORT")]
        to: Option<String>,
        /// Send buffer to that receiver in bytes
        #[arg(long, value_name = "BYTES", default_value_t = 131_072)]
        window: usize,
        /// Queue for data that is not yet in the file; nothing is read while it is full
        #[arg(long, value_name = "SIZE", default_value = "4MiB", value_parser = super::load::size)]
        memory: u64,
        /// Data per write
        #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = super::load::size)]
        block: u64,
        /// Number of concurrent writers
        #[arg(long, value_name = "N", default_value_t = 1)]
        writers: usize,
        /// Wait for the disk after each write
        #[arg(long)]
        sync: bool,
        /// Unlink the file as soon as it is open
        #[arg(long)]
        unnamed: bool,
        /// Highest rate of the writes [default: no limit]
        #[arg(long, value_name = "RATE")]
        rate: Option<Rate>,
    },
    /// Send numbered blocks by UDP, each again until it is acknowledged
    Blocks {
        /// Destination: host name or IPv4 address, and port
        #[arg(value_name = "HOST:PORT")]
        to: String,
        /// Highest rate of the data, without headers
        #[arg(long, value_name = "RATE")]
        rate: Rate,
        /// Duration
        #[arg(long = "for", value_name = "TIME", value_parser = duration)]
        duration: Duration,
        /// Data per block in bytes, 16 to 1472
        #[arg(long, value_name = "BYTES", default_value_t = 1400)]
        size: usize,
        /// Maximum number of unacknowledged blocks
        #[arg(long, value_name = "N", default_value_t = 32)]
        #[arg(value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=65_536))]
        window: usize,
        /// Time without an acknowledgement after which a block is sent again
        #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = duration)]
        timeout: Duration,
    },
}

/// Returns a parser of ports without 0, which would be any port.
fn port() -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(1..)
}

fn tos(text: &str) -> Result<u8, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "use 0 to 255, or 0x00 to 0xff".to_owned())
}

pub fn run(args: Args) -> Result<(), Failure> {
    let counts = match args.verb {
        Verb::Send {
            to,
            rate: Rate(rate),
            packets,
            size,
            seed,
            rtp,
            tos,
            linger,
            patient,
        } => {
            let sent = traffic::send(&Stream {
                to,
                rate,
                size,
                seed,
                rtp,
                packets,
                tos,
                linger,
                patient,
            })?;
            sent.into_iter().map(Count::Sent).collect()
        }
        Verb::Receive {
            udp,
            rtp,
            tcp,
            acknowledge,
            each,
        } => receive(|| Ports::bind(&udp, &tcp, &acknowledge)?.rtp(&rtp), each)?,
        Verb::Transfer {
            to,
            duration,
            file,
            window,
        } => vec![Count::Transferred(traffic::transfer(&Transfer {
            to,
            data: match file {
                Some(file) => Data::File(file),
                None => Data::For(duration.unwrap_or_default()),
            },
            window,
        })?)],
        Verb::Store {
            port,
            file,
            to,
            window,
            memory,
            block,
            writers,
            sync,
            unnamed,
            rate,
        } => {
            let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
            let store = Store {
                port,
                file,
                to,
                window,
                memory: size(memory),
                block: size(block),
                writers,
                sync,
                unnamed,
                rate: rate.map(|Rate(rate)| rate),
            };
            vec![Count::Stored(store.run()?)]
        }
        Verb::Blocks {
            to,
            rate: Rate(rate),
            duration,
            size,
            window,
            timeout,
        } => vec![Count::Transferred(traffic::blocks(&Blocks {
            to,
            rate,
            size,
            window,
            timeout,
            duration,
        })?)],
    };
    for count in counts {
        super::out(&format!("{}\n", serde_json::to_string(&count)?))?;
    }
    Ok(())
}

fn receive(
    open: impl FnOnce() -> Result<Ports, TrafficError>,
    each: bool,
) -> Result<Vec<Count>, Failure> {
    let runtime = single_threaded()?;
    let _within = runtime.enter();
    // Before the ports are open: from then on, senders may end this process.
    let mut signals = Signals::new()?;
    let ports = open()?;
    let ports = if each { ports.listing()? } else { ports };
    let stop = Arc::new(AtomicBool::new(false));
    let receiving = stop.clone();
    let receiver = std::thread::spawn(move || traffic::receive(ports, &receiving));
    runtime.block_on(signals.any());
    stop.store(true, Ordering::Relaxed);
    let gone = |_| Failure::os("the receiving thread failed");
    Ok(receiver.join().map_err(gone)??)
}
