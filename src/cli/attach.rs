// SPDX-License-Identifier: MIT OR Apache-2.0

use std::time::Duration;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use emud::datapath::attach;
use emud::datapath::attach::Request;
use emud::datapath::ending::{LEASE, Whose};
use emud::datapath::engine::EngineChoice;
use emud::profile::{Offload, shipped};
use emud::text::Word;

use super::{CliTarget, Failure, spare};

/// Make an interface behave like the link in a profile
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  emud attach eth0 --profile hsdpa
  emud attach eth0 --profile ./dsl.toml --direction up --seed 7
  emud attach veth0 --profile adsl24 --netns client --reverse
  emud attach --container web --profile lte       a container of Docker or Podman
  emud attach eth0 --profile lte --spare ssh      not the session you are logged in through
  emud attach eth0 --profile lte --for 10min      ends even if every process is killed

`up` is what the interface sends, `down` what it receives. A root qdisc that was
configured by hand is only replaced with --replace; detach restores it.")]
pub struct Args {
    /// Interface to change; optional with --container
    #[arg(value_name = "IFACE")]
    interface: Option<String>,

    /// Profile to apply: shipped name or path to a TOML file
    #[arg(long, short, value_name = "PROFILE")]
    profile: String,

    /// Directions to emulate
    #[arg(long, value_enum, default_value_t = Direction::Both)]
    direction: Direction,

    /// Exchange up and down: the interface is at the other end of the described link
    #[arg(long)]
    reverse: bool,

    /// Where packets wait: qdisc (in the kernel, in a BPF qdisc: Linux 6.16), fq (in the kernel), hold (in
    /// user space), auto (the first of them that is supported and right for the link)
    #[arg(long, value_parser = one_of::<EngineChoice>(), default_value = "auto")]
    engine: EngineChoice,

    /// Seed of every random decision [default: that of the profile, or random]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Cap segmentation on the device while attached (auto), or do not change it (keep) [default:
    /// the profile's, or auto]
    #[arg(long, value_parser = one_of::<Offload>())]
    offload: Option<Offload>,

    /// Traffic that passes untouched: from and to these addresses, or `ssh`, the session in which emud
    /// was started
    #[arg(long, value_name = "CIDR|ssh")]
    spare: Vec<String>,

    /// Replace a root qdisc that was configured by hand; detach restores it
    #[arg(long)]
    replace: bool,

    /// Exchange the profile of the link that is attached: engine, seed, directions and deadline stay. If it
    /// cannot be attached, the previous one stays
    #[arg(long, conflicts_with_all = [
        "direction", "reverse", "engine", "seed", "offload", "spare", "replace", "foreground", "lasts", "while_pid",
    ])]
    exchange: bool,

    /// Stay attached until Ctrl-C, SIGTERM or SIGHUP, then detach
    #[arg(long, conflicts_with_all = ["lasts", "while_pid"])]
    foreground: bool,

    /// End after this time: the kernel passes all packets unchanged from then on
    #[arg(long = "for", value_name = "TIME", value_parser = lasting, conflicts_with = "while_pid")]
    lasts: Option<Duration>,

    /// End with this process, at most 5 s after it
    #[arg(long, value_name = "PID")]
    while_pid: Option<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Direction {
    Both,
    Up,
    Down,
}

/// Reads one of the names of a type, which `--help` lists.
pub fn one_of<T: Word + Send + Sync>() -> impl TypedValueParser<Value = T> {
    let names = PossibleValuesParser::new(T::WORDS.iter().map(|(word, _)| *word));
    names.try_map(|word| T::from_word(&word).ok_or("there is no such value"))
}

pub fn run(args: Args, place: &CliTarget) -> Result<(), Failure> {
    let interface = place.interface(args.interface.as_deref())?;
    let mut profile = shipped::find(&args.profile)?;
    if let Some(offload) = args.offload {
        profile.offload = offload;
    }
    let there = args
        .exchange
        .then(|| attach::again(&interface))
        .transpose()?;
    if there.as_ref().map_or(args.reverse, |there| there.reversed) {
        profile = profile.reversed();
    }
    place.resolve(&mut profile)?;
    spare::apply(&mut profile, &args.spare)?;
    let resolvers = place.resolvers();
    if let Some(there) = there {
        let request = Request {
            profile,
            resolvers,
            ..there
        };
        let done = attach::exchange(request, super::hold_run::command)?;
        return super::out(&said(&done));
    }
    let request = Request {
        interface,
        seed: args.seed.or(profile.seed),
        profile,
        directions: [
            args.direction != Direction::Down,
            args.direction != Direction::Up,
        ],
        reversed: args.reverse,
        engine: args.engine,
        replace: args.replace,
        lasts: args.lasts.or(args.while_pid.map(|_| LEASE)),
        ends_at: None,
        outlives: true,
        resolvers,
    };
    // Before anything is changed: there is such a process.
    let whose = args.while_pid.map(Whose::find).transpose()?;
    if args.foreground {
        // Even if the output fails, the link is attached and will be detached.
        attach::foreground(&request, |done| {
            let _ = super::out(&said(done));
            // For a unit of `Type=notify`.
            let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
        })?;
        return Ok(());
    }
    let done = attach::background(&request, super::hold_run::command)?;
    if let Some(whose) = whose {
        super::renew::start(&done, &whose)?;
    }
    super::out(&said(&done))
}

/// Parses the time of `--for`.
pub(super) fn lasting(text: &str) -> Result<Duration, String> {
    match super::monitor::run::duration(text)? {
        Duration::ZERO => Err("a link of 0 s would not begin".to_owned()),
        time => Ok(time),
    }
}

/// Formats one line about the attachment, and a line per note.
fn said(done: &attach::Done) -> String {
    let name = &done.interface;
    let mut lines = vec![
        format!(
            "{name}: {} ({}), engine {}: {}\n",
            done.profile, done.directions, done.engine, done.reason
        ),
        format!("{name}: seed {}\n", done.seed),
    ];
    lines.extend(
        done.notes
            .iter()
            .map(|note| format!("{name}: note: {note}\n")),
    );
    lines.concat()
}
