// SPDX-License-Identifier: MIT OR Apache-2.0

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::Subcommand;
use emud::experiment::load::{Cpu, Disk, Loaded, Memory, Network, Operation};
use emud::host::signals::Signals;
use emud::host::single_threaded;
use emud::text::{Percent, Rate, Size};
use tokio::sync::oneshot;

use super::Failure;
use super::monitor::duration;

/// Load a resource of the host: CPU, memory, disk or network
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  emud load cpu --for 10s                            every CPU
  emud load cpu --threads 1 --share 25%              a quarter of one CPU
  emud load memory 60MB
  emud load disk /var/tmp --read --block 256KiB
  emud load network --rate 100Mbit                   over loopback
  emud --netns left load network 192.0.2.7:9 --rate 1Gbit

Each ends with --for, SIGTERM or Ctrl-C, and prints what it really did as one line of JSON
(docs/monitor.md).

Exit codes: 0 ended, 64 usage, 69 not enough memory, 71 the kernel returned an error, 73 the
file cannot be created.")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Args)]
struct Ends {
    /// Duration [default: until SIGTERM or Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Keep CPUs busy
    Cpu {
        /// Busy threads [default: one for each CPU that this process may use]
        #[arg(long, value_name = "N")]
        threads: Option<usize>,
        /// Share of a CPU that each thread uses
        #[arg(long, value_name = "PERCENT", default_value = "100%")]
        share: Percent,
        /// Pause between bursts, if the share is below 100 %
        #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = duration)]
        pause: Duration,
        #[command(flatten)]
        ends: Ends,
    },
    /// Write to memory repeatedly
    Memory {
        /// Size of the memory, such as 60MB or 2GiB
        #[arg(value_name = "SIZE", value_parser = size)]
        size: u64,
        /// Write it once, and keep it
        #[arg(long)]
        keep: bool,
        /// Accept more than the available memory, so that the kernel swaps
        #[arg(long)]
        swap: bool,
        #[command(flatten)]
        ends: Ends,
    },
    /// Write to a disk, or read from it, past the page cache
    Disk {
        /// Folder of the file, which has no name and is gone with the process
        #[arg(value_name = "FOLDER", default_value = ".")]
        folder: PathBuf,
        /// Read instead of write
        #[arg(long)]
        read: bool,
        /// Size of the file
        #[arg(long, value_name = "SIZE", default_value = "100MB", value_parser = size)]
        size: u64,
        /// Size of each operation, a multiple of 4KiB
        #[arg(long, value_name = "SIZE", default_value = "256KiB", value_parser = size)]
        block: u64,
        /// Highest rate [default: as fast as possible]
        #[arg(long, value_name = "RATE")]
        rate: Option<Rate>,
        #[command(flatten)]
        ends: Ends,
    },
    /// Send datagrams
    Network {
        /// Destination: host name or IPv4 address, and port [default: this process, over loopback]
        #[arg(value_name = "HOST:PORT")]
        to: Option<String>,
        /// Rate of the data, without headers [default: as fast as possible]
        #[arg(long, value_name = "RATE")]
        rate: Option<Rate>,
        /// Data per datagram in bytes, 1 to 65507
        #[arg(long, value_name = "BYTES", default_value_t = 1472)]
        size: usize,
        #[command(flatten)]
        ends: Ends,
    },
}

pub(super) fn size(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(Size(bytes)) => Ok(bytes),
        Err(e) => Err(format!("{}; {}", e.problem, e.help)),
    }
}

pub fn run(args: Args) -> Result<(), Failure> {
    let bits = |rate: Option<Rate>| rate.map(|Rate(bits)| bits);
    let loaded = match args.what {
        What::Cpu {
            threads,
            share: Percent(share),
            pause,
            ends,
        } => {
            let threads = match threads {
                Some(threads) => threads,
                None => thread::available_parallelism()?.get(),
            };
            let load = Cpu {
                threads,
                share,
                pause,
            };
            until(ends, move |stop| load.run(stop).map(Loaded::Cpu))
        }
        What::Memory {
            size,
            keep,
            swap,
            ends,
        } => {
            let load = Memory { size, keep, swap };
            until(ends, move |stop| load.run(stop).map(Loaded::Memory))
        }
        What::Disk {
            folder,
            read,
            size,
            block,
            rate,
            ends,
        } => {
            let load = Disk {
                folder,
                operation: if read {
                    Operation::Read
                } else {
                    Operation::Write
                },
                size,
                block,
                rate: bits(rate),
            };
            until(ends, move |stop| load.run(stop).map(Loaded::Disk))
        }
        What::Network {
            to,
            rate,
            size,
            ends,
        } => {
            let load = Network {
                to,
                rate: bits(rate),
                size,
            };
            until(ends, move |stop| load.run(stop).map(Loaded::Network))
        }
    }?;
    super::out(&format!("{}\n", serde_json::to_string(&loaded)?))
}

/// Runs the load in a thread until its time is over, a signal comes, or it fails.
fn until<E: Into<Failure> + Send + 'static>(
    ends: Ends,
    load: impl FnOnce(&AtomicBool) -> Result<Loaded, E> + Send + 'static,
) -> Result<Loaded, Failure> {
    let runtime = single_threaded()?;
    let _within = runtime.enter();
    let mut signals = Signals::new()?;
    let stop = Arc::new(AtomicBool::new(false));
    let (done, mut is_done) = oneshot::channel();
    let stopped = stop.clone();
    thread::spawn(move || done.send(load(&stopped)));
    let gone = |_| Failure::os("the thread of the load failed");
    let loaded = runtime.block_on(async {
        let over = async {
            match ends.duration {
                Some(duration) => tokio::time::sleep(duration).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            loaded = &mut is_done => return loaded,
            () = over => {}
            _ = signals.any() => {}
        }
        stop.store(true, Ordering::Relaxed);
        is_done.await
    });
    loaded.map_err(gone)?.map_err(Into::into)
}
