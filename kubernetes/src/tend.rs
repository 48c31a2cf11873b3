// SPDX-License-Identifier: Apache-2.0
//! One Link on one pod: attach, change, renew, and report.

use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use crate::agent::{Agent, Held, Key, RETRY, is_of};
use crate::cgroup::{self, Network};
use crate::emud::Shown;
use crate::link::{Link, PodLink, State};
use crate::plan::{self, Item, Refused, Setup};
use crate::renew::SLACK;
use crate::status::WriteError;

/// The end of a round for one pod.
struct Outcome {
    entry: PodLink,
    running: Option<Setup>,
    next: Duration,
    /// The status has the entry that was written before the attach.
    announced: bool,
}

impl Agent {
    /// Makes the link of a pod what its Link says.
    pub(crate) async fn tend(&mut self, key: Key, item: Item) {
        let Item { link, pod, want } = item;
        let Some(uid) = plan::uid(&pod) else {
            return;
        };
        let held = self.held.get(&key).filter(|held| held.entry.uid == uid);
        let version = pod.resource_version();
        let is_done = |held: &&Held| {
            held.written && held.wanted == want && held.pod_version == version || want.is_none()
        };
        if let Some(held) = held.filter(is_done)
            && held.next_check > Instant::now()
        {
            return;
        }
        let stored = plan::entry(&link, &self.node, &pod.name_any());
        let before = match held {
            Some(held) => Some(held.entry.clone()),
            None => stored.filter(|entry| entry.uid == uid).cloned(),
        };
        let Some(want) = want else {
            return self.wait(&link, key, before).await;
        };
        let running = held.and_then(|held| held.running.clone());
        let before = before.unwrap_or_else(|| PodLink {
            node: self.node.clone(),
            pod: pod.name_any(),
            uid,
            interface: link.spec.interface.clone(),
            state: State::Waiting,
            message: None,
            engine: None,
            seed: None,
            verdict: None,
            since: None,
            applied: None,
        });
        let wanted = want.clone();
        let outcome = match want {
            Err(refused) => self.refuse(before, refused).await,
            Ok(setup) => self.keep(&link, &key, before, running, setup).await,
        };
        self.report(&link, key.clone(), outcome).await;
        if let Some(held) = self.held.get_mut(&key) {
            held.wanted = Some(wanted);
            held.pod_version = version;
        }
    }

    async fn report(&mut self, link: &Link, key: Key, outcome: Outcome) {
        let Outcome {
            entry,
            running,
            next,
            announced,
        } = outcome;
        let known = self.held.get(&key).filter(|held| held.written);
        let known = known.map(|held| &held.entry);
        let stored = || link.status.as_ref()?.pods.get(&key.entry);
        let mut written = !announced && known.or_else(stored) == Some(&entry);
        if !written {
            let message = entry.message.as_deref().unwrap_or_default();
            eprintln!("emud-k8s: {key}: {:?} {message}", entry.state);
            match self.api.write(link, &key.entry, Some(&entry)).await {
                Ok(_) => written = true,
                // The next event says what is to be done.
                Err(WriteError::Deleted | WriteError::Conflict) => {}
                Err(e) => eprintln!("emud-k8s: {key}: {e}"),
            }
        }
        let next = if written { next } else { next.min(RETRY) };
        let held = Held {
            entry,
            written,
            running,
            wanted: None,
            pod_version: None,
            leaves: false,
            next_check: Instant::now() + next,
        };
        self.held.insert(key, held);
    }

    async fn refuse(&self, before: PodLink, refused: Refused) -> Outcome {
        let (mut state, mut message) = (refused.state, refused.message);
        let mut kept = before.clone();
        match self.undo(&before).await {
            Ok(()) => kept.applied = None,
            Err(e) => (state, message) = (State::Failed, e),
        }
        self.without_link(kept, state, Some(message), self.lease / 3)
    }

    fn without_link(
        &self,
        entry: PodLink,
        state: State,
        message: Option<String>,
        next: Duration,
    ) -> Outcome {
        let entry = PodLink {
            state,
            message,
            engine: None,
            verdict: None,
            ..entry
        };
        Outcome {
            entry,
            running: None,
            next,
            announced: false,
        }
    }

    async fn keep(
        &self,
        link: &Link,
        key: &Key,
        before: PodLink,
        running: Option<Setup>,
        setup: Setup,
    ) -> Outcome {
        let retry = self.lease / 3;
        // Not the beginning of the round: with many pods that may have been a minute ago.
        let now = Timestamp::now();
        // `since` has whole seconds: the kernel's end may have been shortly before.
        let at_end = setup.duration.is_some() && self.lasts(&before, setup.duration, now) < SLACK;
        if plan::is_over(&before, setup.duration, now) || at_end && before.state == State::Ended {
            return self.ended(before).await;
        }
        if before.interface != setup.interface
            && let Err(e) = self.undo(&before).await
        {
            return self.without_link(before, State::Failed, Some(e), RETRY);
        }
        let network = match cgroup::network(&before.uid) {
            Ok(Some(network)) => network,
            Ok(None) => {
                let message = "no process of the pod runs on the node in a separate network";
                return self.without_link(before, State::Waiting, Some(message.to_owned()), RETRY);
            }
            Err(e) => return self.without_link(before, State::Failed, Some(e.to_string()), retry),
        };
        let mut announced = false;
        let done = self
            .attached(
                link,
                key,
                &network,
                &before,
                running,
                &setup,
                &mut announced,
            )
            .await;
        let outcome = match done {
            Ok((shown, begins)) => self.seen(before, setup, &shown, begins),
            // The finalizer or the entry could not be written: nothing was attached.
            Err(Problem::Write(WriteError::Conflict)) => Outcome {
                entry: before,
                running: None,
                next: RETRY / 4,
                announced,
            },
            Err(Problem::Write(e)) => {
                let message = format!("cannot attach: {e}");
                self.without_link(before, State::Waiting, Some(message), RETRY)
            }
            Err(Problem::Ended) => self.ended(before).await,
            Err(Problem::Emud(entry, message)) => {
                self.without_link(*entry, State::Failed, Some(message), retry)
            }
        };
        Outcome {
            announced,
            ..outcome
        }
    }

    async fn ended(&self, before: PodLink) -> Outcome {
        if let Err(e) = self.undo(&before).await {
            return self.without_link(before, State::Failed, Some(e), RETRY);
        }
        let entry = PodLink {
            applied: None,
            ..before
        };
        // Nothing happens to it any more.
        self.without_link(entry, State::Ended, None, Duration::from_secs(3600))
    }
}

enum Problem {
    Write(WriteError),
    /// The kernel has ended it at the end of its duration.
    Ended,
    /// With what is known of the link that is there nevertheless.
    Emud(Box<PodLink>, String),
}

impl Agent {
    /// Makes the link what `setup` says, and returns it with its seed, and a time that is not after the
    /// start of a new one.
    #[allow(clippy::too_many_arguments)]
    async fn attached(
        &self,
        link: &Link,
        key: &Key,
        network: &Network,
        before: &PodLink,
        running: Option<Setup>,
        setup: &Setup,
        announced: &mut bool,
    ) -> Result<(Shown, Timestamp), Problem> {
        let interface = &setup.interface;
        let emud =
            |e: crate::emud::EmudError| Problem::Emud(Box::new(before.clone()), e.to_string());
        let now = Timestamp::now();
        let lasts = self.lasts(before, setup.duration, now);
        let shown = self.emud.show(network, interface).await.map_err(emud)?;
        let mut replaces = false;
        if let Some(shown) = shown.filter(|shown| is_of(shown, before)) {
            let over = shown.ends_in_s == Some(0.0);
            if over && setup.duration.is_some() && lasts < SLACK {
                return Err(Problem::Ended);
            }
            if !over {
                let changes = running.and_then(|running| setup.changes_from(&running));
                let fits = match changes {
                    _ if before.applied.as_deref() == Some(&setup.digest()) => true,
                    Some(changes) => self.emud.set(network, interface, &changes).await.is_ok(),
                    None => false,
                };
                // Otherwise it stays until the API server answers: that may take longer than a lease.
                self.renew(network, setup.duration, &shown, lasts).await;
                if fits {
                    return Ok((shown, now));
                }
            }
            replaces = true;
        }
        let seed = setup.seed.or(before.seed).unwrap_or_else(random);
        let entry = PodLink {
            interface: interface.clone(),
            state: State::Waiting,
            message: None,
            engine: None,
            seed: Some(seed),
            verdict: None,
            // A new agent must not take the previous link for this one.
            applied: match replaces {
                true => before.applied.clone(),
                false => Some(setup.digest()),
            },
            ..before.clone()
        };
        *announced = true;
        self.api
            .announce(link, &key.entry, &entry)
            .await
            .map_err(Problem::Write)?;
        if replaces {
            self.emud.detach(network, interface).await.map_err(emud)?;
        }
        // After the API server has answered, which may take a while.
        let begins = Timestamp::now();
        let attach = self.emud.attach(network, setup, seed, lasts).await;
        let emud = |applied: Option<String>, message: String| {
            let entry = PodLink {
                applied,
                ..entry.clone()
            };
            Problem::Emud(Box::new(entry), message)
        };
        attach.map_err(|e| emud(None, e.to_string()))?;
        // From here on it is there, also if it cannot be shown: it must not outlive its Link.
        let emud = |message| emud(Some(setup.digest()), message);
        let shown = self.emud.show(network, interface).await;
        shown
            .map_err(|e| emud(e.to_string()))?
            .ok_or_else(|| emud("the link was removed while it was attached".to_owned()))
            .map(|shown| (shown, begins))
    }

    fn seen(&self, before: PodLink, setup: Setup, shown: &Shown, now: Timestamp) -> Outcome {
        let (verdict, message) = shown.verdict();
        let since = before.since.unwrap_or_else(|| Time(whole_second(now)));
        let left = setup.duration.and_then(|d| plan::left(since.0, d, now));
        let next = self.lease / 3;
        let entry = PodLink {
            interface: setup.interface.clone(),
            state: State::Attached,
            message,
            engine: Some(shown.engine.clone()),
            seed: i64::try_from(shown.seed).ok(),
            verdict: Some(verdict),
            since: Some(since),
            applied: Some(setup.digest()),
            ..before
        };
        Outcome {
            entry,
            running: Some(setup),
            next: left.map_or(next, |left| next.min(left + Duration::from_millis(20))),
            announced: false,
        }
    }
}

/// The next whole second: the status has no fractions, and a link must not end early.
fn whole_second(now: Timestamp) -> Timestamp {
    let up = now.as_second() + i64::from(now.subsec_nanosecond() > 0);
    Timestamp::from_second(up).unwrap_or(now)
}

fn random() -> i64 {
    let mut bytes = [0; 4];
    // Not a secret: without the device the time is as good.
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    match read {
        Ok(()) => i64::from(u32::from_ne_bytes(bytes)),
        Err(_) => Timestamp::now().as_microsecond() & 0x7fff_ffff,
    }
}
