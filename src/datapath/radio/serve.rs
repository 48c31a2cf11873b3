// SPDX-License-Identifier: MIT OR Apache-2.0
//! A medium that runs: its thread, its counters, and the motion of its stations.

use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, eventfd};

use super::RadioError;
use super::motion::Motion;
use super::status::{Gauge, Status};
use super::worker::{Setup, Worker};
use crate::datapath::engine::hold::tune::tune_thread;
use crate::host::spawn;

/// A medium whose thread runs. Dropping it ends the thread, and deletes the TAPs.
#[derive(Debug)]
pub struct Radio {
    /// Name of the medium.
    pub name: String,
    status: Arc<Mutex<Status>>,
    stop: Arc<OwnedFd>,
    thread: Mutex<Option<JoinHandle<()>>>,
    motion: Mutex<Option<Motion>>,
}

impl Radio {
    /// Starts the thread.
    ///
    /// # Errors
    /// The kernel returns an error, or the record cannot be written.
    pub fn start(setup: Setup) -> Result<Self, RadioError> {
        let (name, nth) = (setup.name.clone(), setup.nth);
        let failed = |source: io::Error| RadioError::system(format!("medium {name}"), source);
        let stop = eventfd(0, EventfdFlags::CLOEXEC).map_err(|e| failed(e.into()))?;
        let stop = Arc::new(stop);
        let status = Arc::new(Mutex::new(Status::default()));
        let setting = setup.setting.clone();
        let (steps, taken) = channel();
        let worker = Worker::new(setup, &stop, Arc::clone(&status), taken);
        let mut worker = worker.map_err(failed)?;
        let motion = Motion {
            setting,
            start_ns: worker.start_ns,
            steps,
        };
        let thread = spawn("emud-medium", move || {
            // A rejected step makes frames later, not wrong, and lateness is counted.
            let _ = tune_thread(nth);
            // Of a worker that panicked only the status is read.
            let ran = catch_unwind(AssertUnwindSafe(|| {
                let result = worker.run();
                worker.count();
                result
            }));
            let result = ran.unwrap_or_else(|_| Err(io::Error::other("it panicked")));
            worker.status.end(result);
            *worker.shared() = worker.status.clone();
        })
        .map_err(failed)?;
        Ok(Self {
            name,
            status,
            stop,
            thread: Mutex::new(Some(thread)),
            motion: Mutex::new(Some(motion)),
        })
    }

    /// Returns what reads the counters while the medium exists, and after it.
    pub fn gauge(&self) -> Gauge {
        Gauge(Arc::clone(&self.status))
    }

    /// Makes the motion of the stations begin at a time, ns of CLOCK_MONOTONIC, which may be in the
    /// future. Another thread computes who hears whom, ahead of time; it ends with this value.
    pub fn begin_motion(&self, origin_ns: u64) -> io::Result<()> {
        let motion = self
            .motion
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(motion) = motion.filter(|m| m.setting.last_step() > 0) else {
            return Ok(());
        };
        let named = thread::Builder::new().name("emud-motion".into());
        named.spawn(move || motion.run(origin_ns))?;
        Ok(())
    }

    /// Returns the counters so far.
    pub fn status(&self) -> Status {
        self.gauge().status()
    }

    /// Ends the thread with its record, and returns the last counters. The TAPs are deleted.
    pub fn end(&self) -> Status {
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            // An eventfd takes it; if it did not, the thread would have ended.
            let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
            // A panic is in the status.
            let _ = thread.join();
        }
        self.status()
    }
}

impl Drop for Radio {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::datapath::radio::Tap;
    use crate::datapath::radio::record::{STEP_NS, Setting};
    use crate::host::now_ns;
    use crate::medium::air::{Access, Discipline, Plan, RateControl};
    use crate::medium::motion::Track;
    use crate::medium::phy::{Disk, Geometry, STANDARDS, Spread, Timing};

    fn setting(tracks: Vec<Track>) -> Setting {
        Setting {
            geometry: Geometry {
                spread: Spread::Disk(Disk::default()),
                ber: 0.0,
            },
            modes: vec![0; tracks.len()],
            promiscuous: vec![false; tracks.len()],
            tracks,
        }
    }

    /// A run reads that before it ends the medium.
    #[test]
    fn a_panic_of_the_thread_is_known_at_once() {
        let tap = Tap {
            fd: eventfd(0, EventfdFlags::CLOEXEC).unwrap(),
            ifindex: 0,
            unstamped: None,
        };
        let setup = Setup {
            name: "air".to_owned(),
            number: 0,
            nth: 0,
            plan: Plan {
                timing: Timing::new(&STANDARDS[0], None),
                access: Access::Dcf,
                rts_bytes: None,
                attempts: 7,
                aggregate: 1,
                queue_packets: 50,
                discipline: Discipline::Fifo,
                rate: RateControl::Fixed,
                capture: 10,
                noise: 0,
                seed: 1,
            },
            // Without the station of the TAP.
            setting: setting(vec![]),
            taps: vec![tap],
            late: Duration::ZERO,
            record: None,
        };
        let radio = Radio::start(setup).unwrap();
        let (gauge, begun) = (radio.gauge(), now_ns());
        while gauge.status().ended.is_none() && now_ns() - begun < 5_000_000_000 {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(gauge.status().ended.as_deref(), Some("it panicked"));
        assert_eq!(radio.end().ended.as_deref(), Some("it panicked"));
    }

    /// The steps are whole intervals after the given time, however much later it is now.
    #[test]
    fn motion_counts_from_the_given_time() {
        let mut track = Track::still([0.0, 0.0]);
        track.push(3 * STEP_NS, [30.0, 0.0]);
        let setting = setting(vec![track, Track::still([5.0, 0.0])]);
        let (steps, taken) = channel();
        let (start_ns, origin_ns) = (1_000, 1_234_567);
        let radio = Radio {
            name: "air".to_owned(),
            status: Arc::default(),
            stop: Arc::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap()),
            thread: Mutex::new(None),
            motion: Mutex::new(Some(Motion {
                setting,
                start_ns,
                steps,
            })),
        };
        radio.begin_motion(origin_ns).unwrap();
        let all: Vec<_> = taken.iter().map(|step| (step.step, step.at_ns)).collect();
        let at = |step| origin_ns - start_ns + step * STEP_NS;
        assert_eq!(all, [1, 2, 3].map(|step| (step, at(step))));
    }
}
