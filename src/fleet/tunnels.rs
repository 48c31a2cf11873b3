// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probes through tunnels: before the start, during the measured phase and at the end, each pair of hosts
//! with links between them exchanges packets in a separate VXLAN with the port and the path of those of
//! the links. These themselves have the delays and losses of a profile.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ipnet::Ipv4Net;
use tokio::sync::watch;

use super::FleetError;
use super::clock::{Prober, Responder, RoundTrips};
use super::plan::HostPlan;
use crate::experiment::lab::{Files, Lab, LabError};
use crate::experiment::run::{Heard, RunError};
use crate::experiment::scenario::{PlannedEnd, Tunnel};
use crate::host::now_ns;
use crate::host::spawn;
use crate::profile::Time;

/// Node with this host's ends.
const NODE: &str = "probes";
/// UDP port of the probes inside.
const INSIDE: u16 = 7;
/// How long the other host may take to make its end.
const PATIENCE: Duration = Duration::from_secs(20);
/// Pause between two probes until it has.
const KNOCK: Duration = Duration::from_millis(50);
/// Pause between two probes in the measured phase: 100 of them are judged together.
const EVERY: Duration = Duration::from_millis(100);
const WINDOW: usize = 100;
/// Fewer probes at the end of the phase say nothing.
const ENOUGH: usize = 20;
/// At least this number of lost probes, and more than this share, are more than chance.
const LOST: usize = 3;
const LOST_SHARE: f64 = 0.02;

/// This host's ends of tunnels for probes. Other hosts get answers as long as it exists.
pub(super) struct Tunnels {
    probes: Vec<Probes>,
    _lab: Lab,
}

/// Probes to one host.
struct Probes {
    host: String,
    prober: Prober,
    tunnel: Tunnel,
    before: RoundTrips,
}

/// Probes of the measured phase.
pub(super) struct Watched {
    threads: Vec<JoinHandle<(Probes, Option<String>)>>,
    stop: Arc<AtomicBool>,
    tolerance_ns: u64,
    _lab: Lab,
}

impl Tunnels {
    /// Makes an end for each host to which links lead, and answers. `None`: there is none.
    ///
    /// # Errors
    /// The kernel returns an error.
    pub fn build(plan: &HostPlan) -> Result<Option<Self>, FleetError> {
        if plan.probe_vnis.is_empty() {
            return Ok(None);
        }
        let failed = |e: LabError| FleetError::from(RunError::from(e));
        let mut lab = Lab::new().map_err(failed)?;
        lab.add_node(NODE, &Files::default()).map_err(failed)?;
        let mut probes = vec![];
        for (number, (host, vni)) in plan.probe_vnis.iter().enumerate() {
            let Some(link) = plan.tunnel_to(host) else {
                continue;
            };
            let tunnel = Tunnel { vni: *vni, ..link };
            let (own, other) = ends(*vni, plan.host < *host);
            let end = PlannedEnd {
                node: Some(NODE.to_owned()),
                interface: format!("t{number}"),
                address: Some(own),
            };
            lab.tunnel(&end, tunnel).map_err(failed)?;
            let token = u64::from(*vni);
            let open = || {
                // It ends with the process.
                Responder::at(SocketAddr::new(own.addr().into(), INSIDE), token)?;
                Prober::new(SocketAddr::new(other.into(), INSIDE), token)
            };
            let prober = lab.within(NODE, open).map_err(failed)?;
            let prober =
                prober.map_err(FleetError::system(format!("probe the tunnel to {host}")))?;
            // One of both is enough.
            if plan.host < *host {
                probes.push(Probes {
                    host: host.clone(),
                    before: prober.round_trips(),
                    prober,
                    tunnel,
                });
            }
        }
        Ok(Some(Self { probes, _lab: lab }))
    }

    /// Proves that packets reach the other hosts and come back, and measures how long they take.
    ///
    /// # Errors
    /// [`FleetError::Unmet`]: they do not, with the hosts, the port and what to do.
    pub fn prove(&mut self, own: &str) -> Result<(), FleetError> {
        let proved = thread::scope(|scope| {
            let threads: Vec<_> = (self.probes.iter_mut())
                .map(|probes| scope.spawn(|| probes.prove(own)))
                .collect();
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                let ended = |_| Err(format!("{own}: a thread that probes tunnels ended"));
                thread.join().unwrap_or_else(ended)
            };
            threads.into_iter().try_for_each(join)
        });
        proved.map_err(FleetError::Peer)
    }

    /// Probes the other hosts while the measured phase lasts.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn watch(
        self,
        hear: &watch::Receiver<Heard>,
        tolerance_ns: u64,
    ) -> Result<Watched, FleetError> {
        let stop = Arc::new(AtomicBool::new(false));
        let start = |probes: Probes| {
            let (hear, stop) = (hear.clone(), stop.clone());
            spawn("emud-tunnel", move || {
                probes.watch(&hear, &stop, tolerance_ns)
            })
        };
        let threads = self.probes.into_iter().map(start).collect();
        let threads: std::io::Result<Vec<_>> = threads;
        Ok(Watched {
            threads: threads.map_err(FleetError::system("start a thread"))?,
            stop,
            tolerance_ns,
            _lab: self._lab,
        })
    }
}

impl Watched {
    /// Probes all hosts again, and returns what is wrong with the tunnels to them.
    pub fn finish(&mut self) -> BTreeMap<String, String> {
        self.stop.store(true, Relaxed);
        // A thread that panicked has measured nothing: the part fails, too.
        let ended: Vec<_> = (self.threads.drain(..))
            .map(|thread| (thread.join()).unwrap_or_else(|panic| resume_unwind(panic)))
            .collect();
        let tolerance_ns = self.tolerance_ns;
        let at_end = |(mut probes, found): (Probes, Option<String>)| {
            probes.prober.burst();
            let now = probes.prober.round_trips();
            let why = changed(&probes.before, &now, tolerance_ns);
            let why = why.map(|why| format!("at the end {why}"));
            let port = probes.tunnel.port;
            let text = |why| format!("the tunnel to {} (UDP port {port}): {why}", probes.host);
            let why = found.or(why).map(text);
            (probes.host, why)
        };
        // At the same time.
        thread::scope(|scope| {
            let threads: Vec<_> = (ended.into_iter())
                .map(|one| scope.spawn(move || at_end(one)))
                .collect();
            let found = threads
                .into_iter()
                .map(|thread| (thread.join()).unwrap_or_else(|panic| resume_unwind(panic)));
            found.filter_map(|(host, why)| Some((host, why?))).collect()
        })
    }
}

impl Probes {
    fn prove(&mut self, own: &str) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        while self.prober.round_trips().answered == 0 && Instant::now() < until {
            self.prober.send(KNOCK);
        }
        let mut before = self.prober.round_trips();
        if before.answered > 0 {
            self.prober.burst();
            before = self.prober.round_trips();
        }
        self.before = before;
        let what = match before {
            RoundTrips { least_ns: None, .. } => "no packet comes back".to_owned(),
            now if is_lossy(&now) => lost(&now),
            _ => return Ok(()),
        };
        let Tunnel {
            local,
            remote,
            port,
            ..
        } = self.tunnel;
        Err(format!(
            "the tunnel between {own} ({local}) and {} ({remote}): {what}; allow UDP port {port} in \
             the firewalls of both hosts and of the network between them, in both directions, or use \
             another one (--port)",
            self.host
        ))
    }

    /// Returns the first difference from before the start.
    fn watch(
        mut self,
        hear: &watch::Receiver<Heard>,
        stop: &AtomicBool,
        tolerance_ns: u64,
    ) -> (Self, Option<String>) {
        let over = || stop.load(Relaxed) || hear.borrow().over;
        let began = || hear.borrow().start_at_ns.filter(|at| *at <= now_ns());
        let began_ns = loop {
            match began() {
                _ if over() => return (self, None),
                Some(at_ns) => break at_ns,
                None => thread::sleep(EVERY),
            }
        };
        while !over() {
            let since = now_ns();
            self.prober.restart();
            let mut count = 0;
            while count < WINDOW && !over() {
                self.prober.send(EVERY);
                count += 1;
            }
            let until = now_ns();
            // A lost host does not answer, and the others' answers are not needed.
            if count < ENOUGH || hear.borrow().lost {
                break;
            }
            self.prober.collect();
            let now = self.prober.round_trips();
            if let Some(why) = changed(&self.before, &now, tolerance_ns) {
                let [since, until] =
                    [since, until].map(|at| at.saturating_sub(began_ns) as f64 / 1e9);
                let why = format!("from {since:.3} to {until:.3} s {why}");
                return (self, Some(why));
            }
        }
        (self, None)
    }
}

/// Returns how round trips differ from those before the start; `None`: no more than by chance. The tolerance
/// is that of one direction of a link, so half a round trip counts.
pub fn changed(before: &RoundTrips, now: &RoundTrips, tolerance_ns: u64) -> Option<String> {
    let (Some(was_ns), Some(is_ns)) = (before.least_ns, now.least_ns) else {
        return Some(format!("none of {} packets came back", now.sent));
    };
    if is_lossy(now) {
        return Some(lost(now));
    }
    (was_ns.abs_diff(is_ns) / 2 > tolerance_ns).then(|| {
        format!(
            "the shortest round trip took {}, and {} before the start; --tolerance is {} one way",
            Time(is_ns),
            Time(was_ns),
            Time(tolerance_ns)
        )
    })
}

fn is_lossy(found: &RoundTrips) -> bool {
    let lost = found.sent.saturating_sub(found.answered);
    lost >= LOST && lost as f64 > LOST_SHARE * found.sent as f64
}

fn lost(found: &RoundTrips) -> String {
    let lost = found.sent.saturating_sub(found.answered);
    format!("{lost} of {} packets were lost", found.sent)
}

/// Returns the address of this end with its network, and that of the other one. Only these ends are in their
/// network namespace.
fn ends(vni: u32, is_first: bool) -> (Ipv4Net, Ipv4Addr) {
    // The last 12 bits are different in all tunnels of a host.
    let base = u32::from(Ipv4Addr::new(10, 0, 0, 0)) + 4 * (vni & 0xfff);
    let [first, second] = [base + 1, base + 2].map(Ipv4Addr::from);
    let (own, other) = match is_first {
        true => (first, second),
        false => (second, first),
    };
    (Ipv4Net::new_assert(own, 30), other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trips(least_ns: u64, answered: usize) -> RoundTrips {
        RoundTrips {
            least_ns: (answered > 0).then_some(least_ns),
            sent: 100,
            answered,
        }
    }

    #[test]
    fn more_than_the_tolerance_or_than_chance_is_a_change() {
        let before = round_trips(500_000, 100);
        let changed = |now| changed(&before, &now, 100_000);
        for same in [
            round_trips(700_001, 100),
            round_trips(300_000, 100),
            round_trips(500_000, 98),
        ] {
            assert_eq!(changed(same), None, "{same:?}");
        }
        for (other, why) in [
            (
                round_trips(700_002, 100),
                "the shortest round trip took 700.002us, and 500us before the start",
            ),
            (
                round_trips(299_998, 100),
                "the shortest round trip took 299.998us",
            ),
            (round_trips(500_000, 97), "3 of 100 packets were lost"),
            (round_trips(0, 0), "none of 100 packets came back"),
        ] {
            let found = changed(other).unwrap_or_default();
            assert!(found.starts_with(why), "{found}");
        }
    }

    #[test]
    fn both_ends_know_each_other() {
        let vni = 0x123_456;
        let [first, second] = [true, false].map(|is_first| ends(vni, is_first));
        assert_eq!((first.0.addr(), second.0.addr()), (second.1, first.1));
        assert!(first.0.contains(&first.1));
        assert_eq!(first.0.network(), second.0.network());
        assert_ne!(first.0.network(), ends(vni + 1, true).0.network());
    }
}
