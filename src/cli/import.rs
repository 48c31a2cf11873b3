// SPDX-License-Identifier: MIT OR Apache-2.0

use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use emud::convert::import;
use emud::convert::import::{Header, Imported, Layout, Moment};
use emud::profile::{ProfileError, Rate, Time};
use emud::text::{TextError, read_text, to_stderr};

use super::failure::{EX_IOERR, EX_USAGE};
use super::{Failure, is_same};

/// Convert netem commands, ping logs, traces of rates or of motion
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Print the profile for a netem command, with comments on differences
    #[command(after_long_help = "\
Examples:
  emud import netem 'tc qdisc add dev eth0 root netem delay 100ms 10ms loss 1%' > my.toml
  emud import netem --direction down -- netem rate 5mbit -14
  tc qdisc show dev eth0 | emud import netem -
  emud import netem - < setup.sh

Commands before tc (sudo, ip netns exec, docker exec), other commands, comments and redirections are
skipped. A tbf or htb beside the netem becomes the link's rate. Warnings list properties that a profile does not support; the same is in its comments.")]
    Netem {
        /// Header to write: netem shapes egress of a device, which is `up`
        #[arg(long, value_enum, default_value_t = ImportSide::Up)]
        direction: ImportSide,

        /// Command, its part from `netem` on, a script, or the output of `tc qdisc show`: as one
        /// argument, as several (after `--`), or - for standard input
        #[arg(value_name = "COMMAND", required = true)]
        command: Vec<String>,
    },
    /// Write a profile with the qdiscs of tc commands (htb, prio, tbf)
    #[command(after_long_help = "\
Examples:
  emud import tc router.sh > router.toml
  emud import tc --rate 10Mbit diffserv.sh
  emud import tc --dev eth1 gateway.sh

The tree becomes a bottleneck, each class a link with its netem, each filter a rule (docs/queues.md).")]
    Tc {
        /// Header to write: tc shapes egress of a device, which is `up`
        #[arg(long, value_enum, default_value_t = ImportSide::Up)]
        direction: ImportSide,

        /// Device whose qdiscs are read; required for a script with several
        #[arg(long, value_name = "NAME")]
        dev: Option<String>,

        /// Rate of the device, for a tree without one: prio, a single queue, or htb without a root
        /// class
        #[arg(long, value_name = "RATE")]
        rate: Option<Rate>,

        /// Script with tc commands; - for standard input
        file: String,
    },
    /// Write a profile with two Mahimahi traces as up and down
    #[command(after_long_help = "\
Example:
  emud import mahimahi Verizon-LTE.up Verizon-LTE.down -o verizon.toml

The profile names the files: by their paths relative to it if they are in its folder or below,
otherwise by their absolute paths.")]
    Mahimahi {
        /// Delivery opportunities of egress packets, a time in ms per line
        up: PathBuf,
        /// Delivery opportunities of ingress packets, a time in ms per line
        down: PathBuf,
        /// File to write [default: standard output]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Write a profile with the rates of a log: CSV, other columns, JSON
    #[command(after_long_help = "\
Examples:
  emud import csv norway.log --time 1 --rate 2 > norway.toml
  emud import csv oboe.txt --time 1 --time-unit ms --rate 2 --unit kbit -o oboe.toml
  emud import csv riiser.log --time 6 --time-unit ms --durations --rate 5 --unit B
  emud import csv 5g.csv --time Timestamp --rate DL_bitrate --unit kbit

A column is its number, from 1, or its name in the first line; of JSON a key. Other columns are
skipped. More rows than fit into a profile need -o FILE.toml and go into FILE.csv beside it.
docs/import.md has the options for the usual data sets.")]
    Csv(Csv),
    /// Write a scenario whose nodes move: ns-2, BonnMotion, CSV, GPX
    #[command(after_long_help = "\
Examples:
  emud import mobility scen-50-30.ns2 -o walk.toml
  emud import mobility alice.gpx bob.gpx > meeting.toml

The nodes are stations of the medium wlan0 (docs/medium.md). More than 1000 waypoints need -o FILE.toml and go
into FILE.csv beside it. Of GPX each track is a node; metres are those from the south-west corner.")]
    Mobility {
        /// File of the trace; - for standard input. Several: GPX only
        #[arg(value_name = "FILE", required = true)]
        files: Vec<String>,

        /// File to write [default: standard output]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Print the profile of a ping: each direction has half its delay
    #[command(after_long_help = "\
Example:
  ping -D -c 1000 -i 0.2 example.org > ping.log
  emud import ping ping.log > measured.toml
  emud import ping --trace ping.log > replayed.toml

With --trace the delay and the losses follow the log in time. More rows than fit into a profile need
-o FILE.toml and go into FILE.csv beside it.")]
    Ping {
        /// Output of ping with a line for each reply; - for standard input
        file: String,

        /// Write a trace with a row for each echo instead of a distribution
        #[arg(long)]
        trace: bool,

        /// Time between two echoes, for a log without the time stamps of ping -D
        #[arg(long, value_name = "TIME", requires = "trace", value_parser = interval)]
        interval: Option<u64>,

        /// File to write [default: standard output]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

#[derive(Debug, clap::Args)]
struct Csv {
    /// File of the log; - for standard input
    file: String,

    /// Column of the time from which a row holds: numbers, or dates
    #[arg(long, value_name = "COLUMN", required_unless_present = "every")]
    time: Option<String>,

    /// Unit of the times
    #[arg(long, value_name = "UNIT", default_value = "s", value_parser = ["ns", "us", "ms", "s", "min"])]
    time_unit: String,

    /// Use the time column as the duration of each row
    #[arg(long, requires = "time")]
    durations: bool,

    /// Use this duration for each row; there is no time column
    #[arg(long, value_name = "TIME", conflicts_with = "time", value_parser = interval)]
    every: Option<u64>,

    /// Column of the rate, or of the bytes in a row's time
    #[arg(long, value_name = "COLUMN")]
    rate: String,

    /// Unit of the rates: bit, kbit, Mbit, Gbit, kbps, Mbps (bits), B/s, kB/s, MB/s, KiB/s, MiB/s;
    /// or B, kB, MB, KiB, MiB, which are bytes in the row's time or since the previous row
    #[arg(long, default_value = "Mbit", value_parser = unit)]
    unit: String,

    /// Column of the one-way delay
    #[arg(long, value_name = "COLUMN")]
    delay: Option<String>,

    /// Unit of the delays
    #[arg(long, value_name = "UNIT", default_value = "ms", value_parser = ["ns", "us", "ms", "s", "min"])]
    delay_unit: String,

    /// Use only rows with this value in this column
    #[arg(long = "where", value_name = "COLUMN=VALUE", value_parser = condition)]
    only: Option<(String, String)>,

    /// Direction of the link that has this rate
    #[arg(long, value_enum, default_value_t = ImportSide::Down)]
    direction: ImportSide,

    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ImportSide {
    Up,
    Down,
    Both,
}

impl From<ImportSide> for Header {
    fn from(side: ImportSide) -> Self {
        match side {
            ImportSide::Up => Self::Up,
            ImportSide::Down => Self::Down,
            ImportSide::Both => Self::Link,
        }
    }
}

fn interval(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(Time(0)) => Err("rows need a duration above 0".to_owned()),
        Ok(Time(ns)) => Ok(ns),
        Err(error) => Err(format!("{error}; {}", error.help)),
    }
}

fn unit(text: &str) -> Result<String, String> {
    match import::is_rate_unit(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(error) => Err(format!("{error}; {}", error.help)),
    }
}

fn condition(text: &str) -> Result<(String, String), String> {
    let (column, value) = text.split_once('=').ok_or("write COLUMN=VALUE")?;
    Ok((column.to_owned(), value.to_owned()))
}

pub fn run(args: Args) -> Result<(), Failure> {
    let imported = match args.verb {
        Verb::Netem { direction, command } => {
            let command = match &command[..] {
                [one] if one == "-" => read_text(Path::new("-")).map_err(ProfileError::from)?,
                words => words.join(" "),
            };
            import::netem(&command, direction.into(), &import::tc_table)
        }
        Verb::Tc {
            direction,
            dev,
            rate,
            file,
        } => read_text(Path::new(&file)).and_then(|script| {
            let rate = rate.map(|Rate(bits)| bits);
            let (direction, dev) = (direction.into(), dev.as_deref());
            import::tc(&script, &file, direction, dev, rate, &import::tc_table)
        }),
        Verb::Ping {
            file,
            trace,
            interval,
            output,
        } => {
            let rows = beside(output.as_deref());
            let log = read_text(Path::new(&file)).map_err(ProfileError::from)?;
            let imported = match trace {
                true => import::ping_trace(&log, &file, interval, name(rows.as_ref())),
                false => import::ping(&log, &file),
            };
            let imported = imported.map_err(ProfileError::from)?;
            return written(&imported, &[file], output.as_deref());
        }
        Verb::Csv(args) => return csv(args),
        Verb::Mobility { files, output } => return mobility(&files, output.as_deref()),
        Verb::Mahimahi { up, down, output } => return mahimahi(&up, &down, output.as_deref()),
    }
    .map_err(ProfileError::from)?;
    show(&imported)
}

fn mahimahi(up: &Path, down: &Path, output: Option<&Path>) -> Result<(), Failure> {
    let folder = output.map(|file| file.parent().unwrap_or(Path::new("")));
    // An empty path is the current folder.
    let folder = folder.map(|folder| match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    });
    written(&import::mahimahi(up, down, folder)?, &[up, down], output)
}

fn csv(args: Csv) -> Result<(), Failure> {
    let time = match (args.time, args.every) {
        (Some(column), _) if args.durations => Moment::Lasts(column),
        (Some(column), _) => Moment::At(column),
        (None, every) => Moment::Every(every.unwrap_or_default()),
    };
    let layout = Layout {
        time,
        time_unit: args.time_unit,
        rate: args.rate,
        unit: args.unit,
        delay: args.delay,
        delay_unit: args.delay_unit,
        only: args.only,
    };
    let rows = beside(args.output.as_deref());
    let log = read_text(Path::new(&args.file)).map_err(ProfileError::from)?;
    let header = args.direction.into();
    let imported = import::rate_log(&log, &args.file, &layout, header, name(rows.as_ref()));
    let imported = imported.map_err(ProfileError::from)?;
    written(&imported, &[args.file], args.output.as_deref())
}

/// Returns the file for rows, beside the file to write.
fn beside(output: Option<&Path>) -> Option<PathBuf> {
    output.map(|file| file.with_extension("csv"))
}

fn name(rows: Option<&PathBuf>) -> Option<&str> {
    rows.and_then(|rows| rows.file_name()?.to_str())
}

fn mobility(files: &[String], output: Option<&Path>) -> Result<(), Failure> {
    let read = |file: &String| Ok((file.clone(), read_text(Path::new(file))?));
    let texts: Result<Vec<_>, TextError> = files.iter().map(read).collect();
    let rows = beside(output);
    let imported = texts.and_then(|texts| import::mobility(&texts, name(rows.as_ref())));
    let imported = imported.map_err(ProfileError::from)?;
    written(&imported, files, output)
}

/// Writes the rows, then the profile or scenario that names their file; or to standard output.
fn written(
    imported: &Imported,
    from: &[impl AsRef<Path>],
    output: Option<&Path>,
) -> Result<(), Failure> {
    let Some(file) = output else {
        return show(imported);
    };
    let rows = beside(output).filter(|_| imported.beside.is_some());
    let both = || rows.as_deref().into_iter().chain([file]);
    // The only copy may be the log.
    let read = |path: &&Path| from.iter().any(|from| is_same(from.as_ref(), path));
    if let Some(lost) = both().find(read) {
        let message = format!(
            "{} would be overwritten, and is what is imported",
            lost.display()
        );
        return Err(Failure::new(
            EX_USAGE,
            message + ": use -o with another name",
        ));
    }
    if rows.as_deref() == Some(file) {
        let message = format!("the rows go into {}: use -o NAME.toml", file.display());
        return Err(Failure::new(EX_USAGE, message));
    }
    let texts = imported.beside.iter().chain([&imported.toml]);
    both()
        .zip(texts)
        .try_for_each(|(path, text)| write(path, text))?;
    warn(imported);
    Ok(())
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let cannot = |e| Failure::new(EX_IOERR, format!("cannot write {}: {e}", file.display()));
    std::fs::write(file, text).map_err(cannot)
}

fn show(imported: &Imported) -> Result<(), Failure> {
    super::out(&imported.toml)?;
    warn(imported);
    Ok(())
}

fn warn(imported: &Imported) {
    for warning in &imported.warnings {
        to_stderr(format_args!("emud: warning: {warning}"));
    }
}
