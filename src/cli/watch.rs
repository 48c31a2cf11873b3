// SPDX-License-Identifier: MIT OR Apache-2.0

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use emud::container::{self, Container, ContainerError, Known, Labels, Seen};
use emud::datapath::engine::hold::spawn;
use emud::text::{printable, to_stderr};
use rustix::process::{geteuid, getpid};
use serde_json::Value;

use super::Failure;
use super::failure::{EX_CANTCREAT, EX_TEMPFAIL};

/// The label without which a container is left alone.
const PROFILE: &str = "emud.profile";
/// Labels that are options of attach.
const OPTIONS: [&str; 5] = ["direction", "engine", "for", "offload", "seed"];
/// A link of an earlier watch may last for its lease of 5 s.
const TRIES: u32 = 5;
const RETRY: Duration = Duration::from_secs(2);

/// Attach links to containers by their labels, whenever they start
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  emud watch &
  docker run --label emud.profile=lte IMAGE
  podman run --label emud.profile=dsl --label emud.direction=down IMAGE
  emud watch --profiles /etc/emud/profiles      also names of files there

Labels: emud.profile (required), emud.interface, emud.direction, emud.reverse=true, emud.seed,
emud.engine, emud.offload, emud.for. A container that is restarted gets its link again. Links without
emud.for end with this command, also if it is killed. docs/containers.md")]
pub struct Args {
    /// Folder of profiles NAME.toml that labels may name, besides the shipped ones
    #[arg(long, value_name = "FOLDER")]
    profiles: Option<PathBuf>,
}

/// An attach that is due, or that another link prevented.
struct Pending {
    known: Known,
    starts: bool,
    tries: u32,
    at: Instant,
    /// What the last try printed.
    said: String,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    if !geteuid().is_root() {
        return Err(ContainerError::NotRoot.into());
    }
    let seen = container::watch();
    // The process of each container whose link is attached: another one after a restart. None after a disconnect: the
    // link may have ended with its interface. If it has not, attach says so at the next network of the container.
    let mut attached: HashMap<String, i32> = HashMap::new();
    let mut pending: Vec<Pending> = vec![];
    loop {
        match seen.recv_timeout(RETRY) {
            Ok(Seen::Note(note)) => to_stderr(format_args!("emud: {}", printable(&note))),
            Ok(Seen::Runs(known, starts)) if known.labels.contains_key(PROFILE) => {
                attached.retain(|_, pid| Path::new(&format!("/proc/{pid}")).exists());
                pending.retain(|other| other.known.container.id != known.container.id);
                pending.push(Pending {
                    known,
                    starts,
                    tries: 0,
                    at: Instant::now(),
                    said: String::new(),
                });
            }
            Ok(Seen::Disconnected(id)) => drop(attached.remove(&id)),
            Ok(Seen::Runs(..)) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::os("the threads that watch the engines have ended"));
            }
        }
        let (due, later) = pending
            .into_iter()
            .partition(|one| one.at <= Instant::now());
        pending = later;
        for one in due {
            let Container { id, name, pid, .. } = &one.known.container;
            if attached.get(id) == Some(pid) {
                continue;
            }
            let (outcome, said) = attach(&one.known, one.starts, args.profiles.as_deref());
            // An error that stays the same is printed once.
            let new = if said == one.said { "" } else { said.as_str() };
            for line in new.lines() {
                to_stderr(format_args!("emud: {name}: {}", printable(line)));
            }
            match outcome {
                Outcome::Done => {
                    attached.insert(id.clone(), *pid);
                }
                Outcome::Later if one.tries < TRIES => pending.push(Pending {
                    tries: one.tries + 1,
                    at: Instant::now() + RETRY,
                    said,
                    ..one
                }),
                Outcome::Later | Outcome::Failed => {}
            }
        }
    }
}

enum Outcome {
    Done,
    Later,
    Failed,
}

/// Attaches in a separate process: a namespace is entered by a whole process. Returns what to print, too.
fn attach(known: &Known, starts: bool, profiles: Option<&Path>) -> (Outcome, String) {
    let arguments = match arguments(&known.container.id, &known.labels, profiles) {
        Ok(arguments) => arguments,
        Err(message) => return (Outcome::Failed, message),
    };
    if !starts && let Some(why) = of_earlier_watch(&arguments) {
        return (Outcome::Done, why.to_owned());
    }
    let done = match spawn::this_program().arg("attach").args(arguments).output() {
        Ok(done) => done,
        Err(e) => return (Outcome::Failed, format!("cannot start emud attach: {e}")),
    };
    let errors = String::from_utf8_lossy(&done.stderr).replace("emud: ", "");
    let said = format!("{}{errors}", String::from_utf8_lossy(&done.stdout));
    let outcome = match done.status.code().map(|code| code as u8) {
        Some(0) => Outcome::Done,
        Some(EX_CANTCREAT | EX_TEMPFAIL) => Outcome::Later,
        _ => Outcome::Failed,
    };
    (outcome, said)
}

/// Returns why a link with a time to end in the kernel is not attached: an earlier watch did. Without
/// this the time would begin again with each start of the watch.
fn of_earlier_watch(arguments: &[String]) -> Option<&'static str> {
    let [end, .., container] = arguments else {
        return None;
    };
    if !end.starts_with("--for=") {
        return None;
    }
    let mut show = spawn::this_program();
    let shown = show.args(["show", "--json", container.as_str()]);
    let shown = shown.output().ok()?;
    let shown: Value = serde_json::from_slice(&shown.stdout).ok()?;
    Some(match shown["interfaces"][0]["ends_in_s"].as_f64()? {
        0.0 => "its link has ended (emud.for), and begins again when the container starts again",
        _ => "its link is attached already (emud.for)",
    })
}

/// Returns the arguments of attach for these labels.
fn arguments(id: &str, labels: &Labels, profiles: Option<&Path>) -> Result<Vec<String>, String> {
    let mut interface = String::new();
    let mut out = vec![format!("--while-pid={}", getpid())];
    for (label, value) in labels {
        let Some(key) = label.strip_prefix("emud.") else {
            continue;
        };
        match (key, value.as_str()) {
            ("profile", value) => out.push(format!("--profile={}", profile(value, profiles)?)),
            ("interface", value) => interface = format!(":{value}"),
            ("reverse", "true") => out.push("--reverse".to_owned()),
            ("reverse", "false") => {}
            // A link with a time to end in the kernel needs no process.
            ("for", value) => out[0] = format!("--for={value}"),
            (key, value) if OPTIONS.contains(&key) => out.push(format!("--{key}={value}")),
            _ => {
                return Err(format!(
                    "label {label}={value} has no meaning, so it is not attached: emud.interface, emud.reverse \
                     (true or false), and emud.{} are options of {PROFILE}",
                    OPTIONS.join(", emud.")
                ));
            }
        }
    }
    out.push(format!("--container={id}{interface}"));
    Ok(out)
}

/// Returns the profile of a label as a path or a shipped name. It rejects a path: root would read any file.
fn profile(name: &str, profiles: Option<&Path>) -> Result<String, String> {
    if name.contains('/') || name.ends_with(".toml") || name.starts_with('.') {
        return Err(format!(
            "label {PROFILE}={name} is not the name of a profile: put the file into a folder and use \
             `emud watch --profiles FOLDER`"
        ));
    }
    let file = profiles.map(|folder| folder.join(format!("{name}.toml")));
    let file = file.filter(|file| file.exists()).map(|file| {
        // A path, not a name: it has a slash.
        file.canonicalize().unwrap_or(file).display().to_string()
    });
    Ok(file.unwrap_or_else(|| name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(labels: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let labels = labels
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        arguments("1f", &labels.collect(), None)
    }

    #[test]
    fn labels_are_options() {
        let mine = format!("--while-pid={}", getpid());
        let all = given(&[
            ("emud.profile", "lte"),
            ("emud.interface", "eth1"),
            ("app", "x"),
        ]);
        assert_eq!(
            all.unwrap(),
            [&*mine, "--profile=lte", "--container=1f:eth1"]
        );
        let all = given(&[
            ("emud.profile", "lte"),
            ("emud.for", "5min"),
            ("emud.reverse", "true"),
        ]);
        let expected = ["--for=5min", "--profile=lte", "--reverse", "--container=1f"];
        assert_eq!(all.unwrap(), expected);
        for wrong in [
            ("emud.profile", "/etc/shadow"),
            ("emud.profile", "..x"),
            ("emud.loss", "1%"),
            ("emud.reverse", "yes"),
        ] {
            let message =
                given(&[("emud.profile", "lte"), wrong][usize::from(wrong.0 == "emud.profile")..]);
            assert!(message.unwrap_err().contains(wrong.1), "{wrong:?}");
        }
    }
}
