// SPDX-License-Identifier: Apache-2.0
//! Runs the program emud in the network namespace of a pod.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::cgroup::Network;
use crate::link::Verdict;
use crate::plan::Setup;
use crate::profile::Given;

/// How long an emud may take: an attach waits up to 2 s for another one, and some seconds for the kernel.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// emud failed, or cannot be started.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct EmudError(String);

/// The program.
#[derive(Debug, Clone)]
pub struct Emud {
    pub program: PathBuf,
    /// [`PATIENCE`], except in tests.
    pub patience: Duration,
}

/// A link that is attached in a network namespace: a part of `emud show --json`.
#[derive(Debug, Deserialize)]
pub struct Shown {
    pub interface: String,
    pub engine: String,
    pub seed: u64,
    pub ends_in_s: Option<f64>,
    tampered: Vec<String>,
    up: Option<Direction>,
    down: Option<Direction>,
    /// Those of `peers`, and of the profile.
    links: Vec<Named>,
}

#[derive(Debug, Deserialize)]
struct Named {
    up: Option<Counted>,
    down: Option<Counted>,
}

#[derive(Debug, Deserialize)]
struct Counted {
    counters: Counters,
}

#[derive(Debug, Deserialize)]
struct Direction {
    engine_dropped: u64,
    holder: Option<Holder>,
    counters: Counters,
}

#[derive(Debug, Deserialize)]
struct Holder {
    alive: bool,
    dropped: u64,
    late: u64,
    worst_late_ns: u64,
}

#[derive(Debug, Deserialize)]
struct Counters {
    passed: Passed,
}

#[derive(Debug, Deserialize)]
struct Passed {
    failed: u64,
    no_holder: u64,
}

#[derive(Debug, Deserialize)]
struct Show {
    interfaces: Vec<Shown>,
}

impl Emud {
    /// Attaches a link that ends by itself after this time.
    ///
    /// # Errors
    /// What emud prints.
    pub async fn attach(
        &self,
        network: &Network,
        setup: &Setup,
        seed: i64,
        lasts: Duration,
    ) -> Result<(), EmudError> {
        let (profile, text) = match setup.profile.given() {
            Given::Shipped(name) => (name, None),
            Given::Text(text) => ("/dev/stdin".to_owned(), Some(text)),
        };
        let arguments = [
            "attach".to_owned(),
            format!("--profile={profile}"),
            format!("--direction={}", setup.direction.name()),
            format!("--engine={}", setup.engine.name()),
            format!("--seed={seed}"),
            ends_after(lasts),
            "--".to_owned(),
            setup.interface.clone(),
        ];
        self.run(network, &arguments, text.as_deref())
            .await
            .map(drop)
    }

    /// Changes a running link.
    ///
    /// # Errors
    /// What emud prints; nothing changes then.
    pub async fn set(
        &self,
        network: &Network,
        interface: &str,
        changes: &[String],
    ) -> Result<(), EmudError> {
        let mut arguments = vec!["set".to_owned(), "--".to_owned(), interface.to_owned()];
        arguments.extend_from_slice(changes);
        self.run(network, &arguments, None).await.map(drop)
    }

    /// Makes a running link end this time from now.
    ///
    /// # Errors
    /// What emud prints, also if the link has ended meanwhile.
    pub async fn renew(
        &self,
        network: &Network,
        interface: &str,
        lasts: Duration,
    ) -> Result<(), EmudError> {
        let arguments = ["set", &ends_after(lasts), "--", interface].map(str::to_owned);
        self.run(network, &arguments, None).await.map(drop)
    }

    /// Removes a link.
    ///
    /// # Errors
    /// What emud prints.
    pub async fn detach(&self, network: &Network, interface: &str) -> Result<(), EmudError> {
        let arguments = ["detach", "--", interface].map(str::to_owned);
        self.run(network, &arguments, None).await.map(drop)
    }

    /// Returns the link on an interface, if there is one.
    ///
    /// # Errors
    /// What emud prints, or it is an emud with a different output.
    pub async fn show(
        &self,
        network: &Network,
        interface: &str,
    ) -> Result<Option<Shown>, EmudError> {
        let arguments = ["show", "--json"].map(str::to_owned);
        let text = self.run(network, &arguments, None).await?;
        let show: Show = serde_json::from_str(&text)
            .map_err(|e| EmudError(format!("{} show: {e}", self.program.display())))?;
        let mut all = show.interfaces.into_iter();
        Ok(all.find(|shown| shown.interface == interface))
    }

    async fn run(
        &self,
        network: &Network,
        arguments: &[String],
        input: Option<&str>,
    ) -> Result<String, EmudError> {
        let mut netns = OsString::from("--netns=");
        netns.push(network.path());
        let mut command = Command::new(&self.program);
        command.arg(netns).args(arguments);
        self.output(command, &arguments[0], input).await
    }

    /// Returns what emud prints, within the limit also if it does not read its input, which may be longer
    /// than a pipe.
    async fn output(
        &self,
        mut command: Command,
        verb: &str,
        input: Option<&str>,
    ) -> Result<String, EmudError> {
        let name = self.program.display();
        command.kill_on_drop(true);
        command.stdin(match input {
            Some(_) => Stdio::piped(),
            None => Stdio::null(),
        });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let cannot = |e: std::io::Error| EmudError(format!("cannot run {name}: {e}"));
        let mut child = command.spawn().map_err(cannot)?;
        let done = async move {
            if let (Some(text), Some(mut pipe)) = (input, child.stdin.take()) {
                // emud may fail before it reads: its message says why.
                let _ = pipe.write_all(text.as_bytes()).await;
            }
            child.wait_with_output().await
        };
        let seconds = self.patience.as_secs();
        let late = |_| EmudError(format!("{name} {verb} takes longer than {seconds} s"));
        let done = (tokio::time::timeout(self.patience, done).await)
            .map_err(late)?
            .map_err(cannot)?;
        if done.status.success() {
            return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
        }
        Err(EmudError(message(
            &String::from_utf8_lossy(&done.stderr),
            &done.status.to_string(),
        )))
    }
}

/// emud takes more than an hour only in hours.
fn ends_after(time: Duration) -> String {
    const HOUR: Duration = Duration::from_secs(3600);
    match time > HOUR {
        true => format!("--for={}h", time.as_secs_f64() / HOUR.as_secs_f64()),
        false => format!("--for={}ms", time.as_millis().max(1)),
    }
}

/// What emud printed, without its name and the path of the pipe.
fn message(stderr: &str, status: &str) -> String {
    let text = stderr.replace("/dev/stdin", "profile");
    let text = text.trim();
    match text.strip_prefix("emud: ").unwrap_or(text) {
        "" => format!("emud: {status}"),
        text => text.to_owned(),
    }
}

impl Shown {
    /// Judges what the link did since it was attached; the second value explains it.
    pub fn verdict(&self) -> (Verdict, Option<String>) {
        let both = || [&self.up, &self.down].into_iter().flatten();
        let holders = || both().filter_map(|d| d.holder.as_ref());
        if let Some(what) = self.tampered.first() {
            return (Verdict::Tampered, Some(what.clone()));
        }
        if holders().any(|holder| !holder.alive) {
            let what = "the process of engine hold has ended: packets pass unchanged";
            return (Verdict::Dead, Some(what.to_owned()));
        }
        let dropped: u64 = both().map(|d| d.engine_dropped).sum::<u64>()
            + holders().map(|holder| holder.dropped).sum::<u64>();
        let named = self.links.iter().flat_map(|link| [&link.up, &link.down]);
        let counters = (both().map(|d| &d.counters)).chain(named.flatten().map(|d| &d.counters));
        let passed: u64 = counters
            .map(|counted| counted.passed.failed + counted.passed.no_holder)
            .sum();
        if dropped + passed > 0 {
            // Without the numbers, which would be a change of the status at each check.
            let what = match (dropped > 0, passed > 0) {
                (true, false) => "the emulator dropped packets",
                (false, _) => "some packets passed unchanged",
                (true, true) => "the emulator dropped packets, and some passed unchanged",
            };
            return (Verdict::Dropped, Some(what.to_owned()));
        }
        let late = holders().filter(|holder| holder.late > 0);
        if let Some(worst) = late.map(|holder| holder.worst_late_ns).max() {
            // In powers of two, for the same reason.
            let ms = (worst.div_ceil(1_000_000)).next_power_of_two();
            let what = format!("engine hold sent packets up to {ms} ms late");
            return (Verdict::Late, Some(what));
        }
        (Verdict::Clean, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(tampered: &str, dropped: u64, holder: &str, [own, named]: [u64; 2]) -> Shown {
        let counters = |passed: u64| {
            format!(
                r#""counters": {{"passed": {{"failed": {passed}, "no_holder": 0, "rule": 9}}, "lost": 3}}"#
            )
        };
        let (own, named) = (counters(own), counters(named));
        let text = format!(
            r#"{{"schema": "x", "interfaces": [{{"interface": "eth0", "engine": "fq", "seed": 7, "ends_in_s": 2.5,
                 "tampered": [{tampered}], "down": null,
                 "up": {{"engine_dropped": {dropped}, "holder": {holder}, "loss": 0.5, {own}}},
                 "links": [{{"name": "peers", "up": {{"loss": 0.5, {named}}}, "down": null}}]}}]}}"#
        );
        let mut show: Show = serde_json::from_str(&text).unwrap();
        show.interfaces.remove(0)
    }

    #[test]
    fn the_worst_is_the_verdict() {
        let holder = |alive: bool, late: u64| {
            format!(
                r#"{{"alive": {alive}, "dropped": 0, "late": {late}, "worst_late_ns": {}}}"#,
                late * 3_000_000
            )
        };
        let of = |tampered: &str, dropped, holder: &str, passed| {
            shown(tampered, dropped, holder, passed).verdict().0
        };
        let none = [0; 2];
        assert_eq!(of("", 0, "null", none), Verdict::Clean);
        assert_eq!(of("", 0, &holder(true, 0), none), Verdict::Clean);
        assert_eq!(of("", 0, &holder(true, 1), none), Verdict::Late);
        assert_eq!(of("", 0, &holder(true, 1), [1, 0]), Verdict::Dropped);
        // With `peers` no packet is of the profile's own link.
        assert_eq!(of("", 0, "null", [0, 1]), Verdict::Dropped);
        assert_eq!(of("", 1, "null", none), Verdict::Dropped);
        assert_eq!(of("", 1, &holder(false, 1), none), Verdict::Dead);
        assert_eq!(
            of("\"qdisc\"", 1, &holder(false, 1), none),
            Verdict::Tampered
        );
        let (_, late) = shown("", 0, &holder(true, 1), none).verdict();
        assert_eq!(
            late.as_deref(),
            Some("engine hold sent packets up to 4 ms late")
        );
    }

    #[test]
    fn a_time_is_one_that_emud_takes() {
        let of = |ms| ends_after(Duration::from_millis(ms));
        assert_eq!(of(0), "--for=1ms");
        assert_eq!(of(3_600_000), "--for=3600000ms");
        assert_eq!(of(5_400_000), "--for=1.5h");
        assert_eq!(ends_after(Duration::from_secs(7200)), "--for=2h");
        assert_eq!(of(8784 * 3_600_000), "--for=8784h");
        // Those that are left of a duration, as emud reads them.
        for ms in [3_600_001, 7_199_993, 8784 * 3_600_000 - 1] {
            let text = of(ms);
            let hours = text.strip_prefix("--for=").unwrap();
            let hours: f64 = hours.strip_suffix('h').unwrap().parse().unwrap();
            let read = Duration::from_secs_f64(hours * 3600.0);
            let off = read.abs_diff(Duration::from_millis(ms));
            assert!(off < Duration::from_micros(1), "{text}");
        }
    }

    #[test]
    fn an_emud_that_does_not_read_its_profile_is_ended() {
        let emud = Emud {
            program: "/bin/sleep".into(),
            patience: Duration::from_secs(1),
        };
        let mut command = Command::new(&emud.program);
        command.arg("20");
        // A pipe takes 64 KiB.
        let text = "#".repeat(1 << 20);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let begun = std::time::Instant::now();
        let error = runtime.block_on(emud.output(command, "attach", Some(&text)));
        assert!(begun.elapsed() < Duration::from_secs(15));
        let said = "/bin/sleep attach takes longer than 1 s";
        assert_eq!(error.unwrap_err().to_string(), said);
    }

    #[test]
    fn messages_are_those_of_emud() {
        assert_eq!(
            message("emud: eth0: no such interface\n", ""),
            "eth0: no such interface"
        );
        assert_eq!(
            message("error: x\n --> /dev/stdin:3:8\n", ""),
            "error: x\n --> profile:3:8"
        );
        assert_eq!(message("", "exit status: 71"), "emud: exit status: 71");
    }
}
