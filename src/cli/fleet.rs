// SPDX-License-Identifier: MIT OR Apache-2.0

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Subcommand;
use emud::experiment::run::{self, ExitCode};
use emud::experiment::scenario::{Overrides, shipped};
use emud::fleet::controller::{self, Ended, Request};
use emud::fleet::merge::{merge, with_verdict};
use emud::fleet::plan::{MTU, Options, PORT};
use emud::fleet::protocol::Asked;
use emud::fleet::verdict::FleetVerdict;
use emud::fleet::{FleetError, simulate, status, verdict};
use emud::host::signals::exit_code;
use emud::host::{nanoseconds, random_seed};
use emud::monitor::settings;
use emud::text::printable;

use super::failure::{EX_CANTCREAT, EX_IOERR};
use super::monitor::run::duration;
use super::run::sample_interval;
use super::store::{Store, say};
use super::{Failure, colour};

/// Run an experiment on several hosts, coordinated by etcd
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  emud fleet plan chain --etcd http://192.0.2.1:2379
  emud fleet run dumbbell --etcd http://192.0.2.1:2379 --log d.log
  emud fleet status --etcd http://192.0.2.1:2379
  emud fleet set left-right loss=1% down.rate=2Mbit --etcd http://192.0.2.1:2379
  emud fleet simulate --agents 10,100 --etcd http://192.0.2.1:2379
  emud fleet stop --etcd http://192.0.2.1:2379

Exit codes as for `emud run`; besides, 66 an agent is missing, 69 a host cannot build its part or etcd
does not answer, 75 another run is active, 76 etcd rejected a request, 77 etcd denies it, 78 a mistake in the
certificates. docs/fleet.md")]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Print which host would have which nodes and links
    Plan {
        #[command(flatten)]
        what: What,
        /// Print JSON: the complete plan of each host
        #[arg(long)]
        json: bool,
    },
    /// Run a scenario on the hosts of the fleet
    Run {
        #[command(flatten)]
        what: What,
        /// Write one log of all hosts, and NAME.HOST.EXT of each
        #[arg(long, short = 'o', value_name = "FILE")]
        log: Option<PathBuf>,
        /// Take the exit code from the verdict first
        #[arg(long)]
        verdict_first: bool,
    },
    /// Print the agents and the active run
    Status {
        #[command(flatten)]
        store: Store,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Change links of the active run, on all hosts at the same time
    Set {
        /// Names of links in the scenario
        #[arg(value_name = "LINK[,LINK]")]
        links: String,
        /// Keys of the profile: [up.|down.]KEY=VALUE
        #[arg(value_name = "KEY=VALUE", required = true)]
        changes: Vec<String>,
        #[command(flatten)]
        store: Store,
    },
    /// End the active run
    Stop {
        #[command(flatten)]
        store: Store,
    },
    /// Measure how many hosts an etcd coordinates: runs of simulated agents
    Simulate {
        #[command(flatten)]
        store: Store,
        /// Numbers of agents, one run each
        #[arg(long, value_name = "N[,N]", value_delimiter = ',', default_value = "10,30,100",
              value_parser = clap::value_parser!(u32).range(1..=9999))]
        agents: Vec<u32>,
        /// Links of each agent, all to other hosts
        #[arg(long, value_name = "N", default_value_t = 10,
              value_parser = clap::value_parser!(u32).range(0..=i64::from(simulate::MAX_LINKS)))]
        links: u32,
    },
}

/// What runs where.
#[derive(Debug, clap::Args)]
struct What {
    /// Scenario: shipped name or path to a TOML file
    scenario: String,

    #[command(flatten)]
    store: Store,

    /// Hosts that take part [default: all with an agent]
    #[arg(long, value_name = "NAME[,NAME]", value_delimiter = ',')]
    hosts: Option<Vec<String>>,

    /// Size of the scenario's topology
    #[arg(long, value_name = "N")]
    nodes: Option<u32>,

    /// Longest measured phase
    #[arg(long, value_name = "TIME", value_parser = duration)]
    measure: Option<Duration>,

    /// Seed of every random decision [default: random]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Links with a shorter delay stay on one host
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = duration)]
    fast: Duration,

    /// Tolerated excess of the delay of a link between hosts
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = duration)]
    tolerance: Duration,

    /// Largest error of the hosts' clocks
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = duration)]
    clock_bound: Duration,

    /// UDP port of the tunnels between hosts
    #[arg(long, value_name = "PORT", default_value_t = PORT)]
    port: u16,

    /// MTU of all links
    #[arg(long, value_name = "BYTES", default_value_t = MTU, value_parser = clap::value_parser!(u32).range(576..=65000))]
    mtu: u32,

    /// Interval at which counters of the links are logged, or `off`
    #[arg(long, value_name = "TIME", default_value = "1s")]
    sample: String,

    /// Read the thresholds of contention from a file of `emud monitor --config`, or use `shared` (docs/ci.md)
    #[arg(long, value_name = "FILE|shared")]
    monitor: Option<PathBuf>,
}

pub fn run(args: Args) -> Result<u8, Failure> {
    match args.verb {
        Verb::Plan { what, json } => plan(&what, json),
        Verb::Run {
            what,
            log,
            verdict_first,
        } => carry_out(&what, log.as_deref(), verdict_first),
        Verb::Status { store, json } => {
            let (client, keys) = store.client()?;
            let status = controller::block_on(status::status(&client, &keys))?;
            match json {
                true => super::out(&super::json(&status)?)?,
                false => super::out(&status.text())?,
            }
            Ok(super::DONE)
        }
        Verb::Set {
            links,
            changes,
            store,
        } => {
            let (client, keys) = store.client()?;
            let links = links.split(',').map(str::to_owned).collect();
            let asked = Asked { links, changes };
            let seconds = controller::block_on(controller::set(&client, &keys, &asked))?;
            super::out(&format!("in effect at {seconds:.3} s of the run\n"))?;
            Ok(super::DONE)
        }
        Verb::Stop { store } => {
            let (client, keys) = store.client()?;
            match controller::block_on(controller::stop(&client, &keys))? {
                true => Ok(super::DONE),
                false => Err(FleetError::Absent("no run is active".into()).into()),
            }
        }
        Verb::Simulate {
            store,
            agents,
            links,
        } => {
            let access = store.access()?;
            let mut done = vec![];
            for count in agents {
                let ran = simulate::simulate(&access, count, links, say);
                done.push(ran.map_err(|e| {
                    // What was measured before is not lost.
                    let _ = super::out(&simulate::text(&done));
                    let failure = Failure::from(e);
                    Failure::new(failure.code, format!("{count} agents: {}", failure.message))
                })?);
            }
            super::out(&simulate::text(&done))?;
            Ok(super::DONE)
        }
    }
}

impl What {
    fn request(&self) -> Result<Request, Failure> {
        let overrides = Overrides {
            nodes: self.nodes,
            measure: self.measure,
            ..Overrides::default()
        };
        let sample = match self.sample.as_str() {
            "off" => None,
            text => Some(sample_interval(text)?),
        };
        let monitor = self.monitor.as_deref().map(settings::text).transpose();
        let monitor = monitor.map_err(|e| Failure::new(e.exit_code(), format!("--monitor {e}")))?;
        Ok(Request {
            plan: shipped::find(&self.scenario)?.plan(&overrides)?,
            hosts: self.hosts.clone(),
            options: Options {
                seed: match self.seed {
                    Some(seed) => seed,
                    None => random_seed()?,
                },
                size: self.nodes,
                port: self.port,
                mtu: self.mtu,
                tolerance_ns: nanoseconds(self.tolerance),
                clock_bound_ns: nanoseconds(self.clock_bound),
                sample_ns: sample.map(nanoseconds),
                monitor,
            },
            fast_ns: nanoseconds(self.fast),
            note: say,
        })
    }
}

fn plan(what: &What, json: bool) -> Result<u8, Failure> {
    let (client, keys) = what.store.client()?;
    let request = what.request()?;
    let divided = controller::block_on(controller::divided(&client, &keys, &request))?;
    match json {
        true => super::out(&super::json(&divided.plans)?)?,
        false => super::out(&status::plan_text(&divided.plans, &request.plan))?,
    }
    Ok(super::DONE)
}

fn carry_out(what: &What, log: Option<&Path>, verdict_first: bool) -> Result<u8, Failure> {
    let (client, keys) = what.store.client()?;
    let request = what.request()?;
    say(&format!("seed {}", request.options.seed));
    // Before the run: a mistake in its name does not cost one. A run that is rejected costs no earlier log.
    let create = |path: &Path| {
        let message = |e| format!("cannot write {}: {e}", path.display());
        let mut options = std::fs::File::options();
        options.write(true).create(true).truncate(false);
        let file = options.open(path);
        file.map_err(|e| Failure::new(EX_CANTCREAT, message(e)))
    };
    log.map(create).transpose()?;
    let ended = controller::block_on(controller::run(&client, &keys, &request))?;
    for (host, ready) in &ended.built {
        for note in &ready.notes {
            say(&format!("note: {host}: {note}"));
        }
    }
    for (host, end) in &ended.hosts {
        if let verdict::HostEnd::Reported { result, .. } = end {
            for note in &result.notes {
                say(&format!("note: {host}: {note}"));
            }
        }
    }
    let first = match verdict_first {
        true => ExitCode::Verdict,
        false => ExitCode::Program,
    };
    let judged = verdict::judge(
        &ended.hosts,
        request.options.clock_bound_ns,
        first,
        ended.early,
    );
    // Nothing has run, and logs of a run before stay.
    if let Some(early) = ended.early
        && ended.hosts.is_empty()
    {
        say("the run was stopped before the start: it has no result");
        return Ok(exit_code(early.signal()));
    }
    // Whether or not it can be written, the verdict is printed.
    let written = log.map_or(Ok(()), |path| write(path, &ended, &judged));
    for line in lines(&merge(&ended.logs)) {
        super::out(&line)?;
    }
    let exits: Vec<_> = (ended.hosts.values())
        .filter_map(|end| match end {
            verdict::HostEnd::Reported { result, .. } => Some(result.exits.clone()),
            verdict::HostEnd::Lost(_) => None,
        })
        .flatten()
        .collect();
    for line in run::exits(&exits).lines() {
        say(line.trim_start_matches("emud: "));
    }
    let text = judged.text();
    let text = colour::verdicts(&io::stderr())(&printable(text.trim_end()));
    // The terminal may be gone.
    let _ = writeln!(io::stderr(), "emud: {text}");
    written.map(|()| judged.exit_code)
}

/// Returns what the programs of all hosts printed, in the order of time.
fn lines(merged: &[u8]) -> Vec<String> {
    let of = |line: &[u8]| {
        let line: serde_json::Value = serde_json::from_slice(line).ok()?;
        let (node, text) = (line["node"].as_str()?, line["text"].as_str()?);
        (line["type"] == "output").then(|| format!("{node}| {text}\n"))
    };
    merged.split(|byte| *byte == b'\n').filter_map(of).collect()
}

/// Writes the merged log, and beside it those of the hosts, for `emud compare`. It removes those of an earlier
/// run, which would look like the log of a host that was lost.
fn write(path: &Path, ended: &Ended, judged: &FleetVerdict) -> Result<(), Failure> {
    let failed =
        |path: &Path, e| Failure::new(EX_IOERR, format!("cannot write {}: {e}", path.display()));
    let of_host = |host: &str| {
        let mut name = path.file_stem().unwrap_or_default().to_owned();
        name.push(format!(".{host}"));
        if let Some(end) = path.extension() {
            name.push(".");
            name.push(end);
        }
        path.with_file_name(name)
    };
    let text = with_verdict(&ended.logs, &ended.hosts, judged);
    let written = text.map_err(io::Error::other);
    let written = written.and_then(|text| std::fs::write(path, text));
    written.map_err(|e| failed(path, e))?;
    for log in &ended.logs {
        let own = of_host(&log.host);
        std::fs::write(&own, &log.text).map_err(|e| failed(&own, e))?;
    }
    let lost = ended.hosts.iter();
    let lost = lost.filter(|(_, end)| matches!(end, verdict::HostEnd::Lost(_)));
    for own in lost.map(|(host, _)| of_host(host)) {
        match std::fs::remove_file(&own) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(&own, e)),
            _ => {}
        }
    }
    Ok(())
}
