// SPDX-License-Identifier: MIT OR Apache-2.0
//! The holder on a real TAP, in a separate network namespace.
//!
//! The layout and the order of frames, and that none is lost, are exact; the median judges
//! punctuality, because other tasks may take the CPU at any time.

// The helpers outside of #[test] functions are tests too.

mod failure;
pub mod packet;
mod start;

use std::fs::File;
use std::io::Write;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Command;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use emud::datapath::engine::hold::failure::Failure;
use emud::datapath::engine::hold::{Direction, End, HoldError, Holder, HolderStats, tap};
use emud::host::now_ns;
use packet::{FromHolder, Packets, ToHolder, VNET_LEN, own_network};

const MS: u64 = 1_000_000;
const HEADER: u16 = size_of::<emud::abi::emud_hold_hdr>() as u16;
const PATIENCE: Duration = Duration::from_secs(5);

type Ends = Result<Vec<(Direction, End)>, HoldError>;

/// A running holder behind a TAP, and packet sockets on the other side.
struct Bench {
    packets: Packets,
    name: String,
    stop: File,
    reports: Arc<Mutex<Vec<(u64, HolderStats)>>>,
    thread: JoinHandle<Ends>,
}

impl Bench {
    fn start(limit_bytes: usize) -> Self {
        Self::telling(limit_bytes, None)
    }

    /// The same, with a receiver of failures.
    fn telling(limit_bytes: usize, failures: Option<SyncSender<Failure>>) -> Self {
        own_network();
        let tap = tap::create("emud-test%d", 1500).unwrap();
        let packets = Packets::on(tap.ifindex);
        let (stop_read, stop_write) = rustix::pipe::pipe().unwrap();
        let reports = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&reports);
        let mut holder = Holder::new(vec![(tap.fd, Direction::Up)]).limit_bytes([limit_bytes; 2]);
        if let Some(failures) = failures {
            holder = holder.failures(failures);
        }
        let thread = thread::spawn(move || run(holder, stop_read, &sink));
        let bench = Self {
            packets,
            name: tap.name,
            stop: stop_write.into(),
            reports,
            thread,
        };
        // Like attach: the holder gets frames when it is ready.
        while bench.reports.lock().unwrap().is_empty() {
            thread::sleep(Duration::from_millis(1));
        }
        bench
    }

    fn send(&self, departure_ns: u64, frame: &[u8]) {
        self.packets.send(&ToHolder {
            departure_ns,
            tag: None,
            checksum: None,
            frame,
        });
    }

    /// Returns the frame that the holder writes back next.
    fn next(&self) -> FromHolder {
        self.packets.receive(PATIENCE).unwrap_or_else(|| {
            let reports = self.reports.lock().unwrap();
            panic!(
                "nothing comes; {} reports, {:?}",
                reports.len(),
                reports.last()
            )
        })
    }

    fn stop(mut self) -> (Ends, Vec<(u64, HolderStats)>) {
        self.stop.write_all(b"x").unwrap();
        let ends = self.thread.join().unwrap();
        let reports = self.reports.lock().unwrap().clone();
        (ends, reports)
    }
}

fn run(holder: Holder, stop: OwnedFd, reports: &Mutex<Vec<(u64, HolderStats)>>) -> Ends {
    holder.run(
        stop.as_fd(),
        |_, _, _| (),
        |direction, stats| {
            assert_eq!(direction, Direction::Up);
            reports.lock().unwrap().push((now_ns(), *stats));
            ControlFlow::Continue(())
        },
    )
}

/// An Ethernet frame with a number in it.
fn frame(number: u32, len: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00];
    frame.extend(number.to_be_bytes());
    frame.resize(len.max(18), 0xa5);
    frame
}

fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[14..18].try_into().unwrap())
}

fn last(reports: &[(u64, HolderStats)]) -> HolderStats {
    reports.last().unwrap().1
}

#[test]
fn frames_come_back_unchanged_by_departure_time() {
    let bench = Bench::start(1 << 20);
    let base_ns = now_ns() + 100 * MS;
    // Two frames to every departure, later departures sent first.
    let departure = |number: u32| base_ns + u64::from(50 - number / 2) * MS;
    for number in 0..100 {
        bench.send(departure(number), &frame(number, 60 + number as usize * 14));
    }
    let mut expected: Vec<u32> = (0..100).collect();
    expected.sort_by_key(|&number| departure(number));
    for expected in expected {
        let got = bench.next();
        assert_eq!(number(&got.frame), expected);
        assert!(
            got.frame == frame(expected, 60 + expected as usize * 14),
            "changed: {got:?}"
        );
        assert_eq!((got.tag, got.checksum), (None, None));
        // 10 us for the two clocks that the stamp was converted between.
        let early_ns = i128::from(departure(expected)) - got.written_ns;
        assert!(early_ns < 10_000, "{early_ns} ns early");
    }
    let (ends, reports) = bench.stop();
    assert_eq!(ends.unwrap(), [(Direction::Up, End::Stopped)]);
    let stats = last(&reports);
    assert_eq!((stats.released, stats.dropped, stats.waiting), (100, 0, 0));
}

#[test]
fn ten_thousand_a_second_in_order_none_lost_on_time() {
    const FRAMES: u32 = 10_000;
    const DELAY_NS: u64 = 20 * MS;
    let bench = Bench::start(64 << 20);
    let mut departures = Vec::new();
    let start = Instant::now();
    for number in 0..FRAMES {
        let due = start + Duration::from_micros(100) * number;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let departure_ns = now_ns() + DELAY_NS;
        departures.push(departure_ns);
        bench.send(departure_ns, &frame(number, 100));
    }
    let mut late_ns = Vec::new();
    for expected in 0..FRAMES {
        let got = bench.next();
        assert_eq!(number(&got.frame), expected);
        late_ns.push(got.written_ns - i128::from(departures[expected as usize]));
    }
    late_ns.sort();
    let median_ns = late_ns[late_ns.len() / 2];
    assert!(
        !support::full() || median_ns < 500_000,
        "median {median_ns} ns late"
    );
    let stats = last(&bench.stop().1);
    assert_eq!(
        (stats.released, stats.dropped),
        (u64::from(FRAMES), 0),
        "{stats:?}"
    );
}

#[test]
fn a_tag_and_a_partial_checksum_survive() {
    let bench = Bench::start(1 << 20);
    let tags = [None, Some((0x8100, 0x2123)), Some((0x88a8, 0xefff))];
    for tag in tags {
        for checksum in [None, Some((HEADER + 34, 6))] {
            bench.packets.send(&ToHolder {
                departure_ns: now_ns(),
                tag,
                checksum,
                frame: &frame(7, 90),
            });
            let got = bench.next();
            assert_eq!(got.frame, frame(7, 90));
            assert_eq!(got.tag, tag);
            // The kernel has taken the tag out of the frame again.
            assert_eq!(
                got.checksum,
                checksum.map(|(start, offset)| (start - HEADER, offset))
            );
        }
    }
    assert_eq!(last(&bench.stop().1).dropped, 0);
}

#[test]
fn what_is_not_of_the_classifier_is_dropped_and_counted() {
    let bench = Bench::start(1 << 20);
    let mut plain = vec![0; VNET_LEN];
    plain.extend(frame(1, 60));
    bench.packets.send_raw(&plain);
    let mut short = vec![0; VNET_LEN];
    short.extend([0; 20]);
    bench.packets.send_raw(&short);
    bench.send(now_ns(), &frame(2, 60));
    assert_eq!(number(&bench.next().frame), 2);
    let stats = last(&bench.stop().1);
    assert_eq!((stats.released, stats.dropped), (1, 2));
}

#[test]
fn beyond_the_limit_frames_are_dropped_and_counted() {
    let bench = Bench::start(64 << 10);
    // 1,400 bytes take a buffer of 2,048: 32 of them are 64 KiB.
    for number in 0..50 {
        bench.send(now_ns() + 300 * MS, &frame(number, 1400));
    }
    for expected in 0..32 {
        let got = bench.next();
        assert_eq!(number(&got.frame), expected);
    }
    let stats = last(&bench.stop().1);
    assert_eq!((stats.released, stats.dropped), (32, 18));
}

#[test]
fn the_lease_is_renewed_while_idle_and_ends_with_the_holder() {
    let bench = Bench::start(1 << 20);
    thread::sleep(Duration::from_secs(2));
    let (_, reports) = bench.stop();
    let (first_ns, first) = reports[0];
    assert!(first.lease_ns > first_ns && first.lease_ns <= first_ns + 250 * MS);
    assert_eq!(first.pid, u64::from(std::process::id()));
    assert_eq!(last(&reports).lease_ns, 0);
    let mut gaps: Vec<u64> = reports
        .windows(2)
        .map(|pair| pair[1].0 - pair[0].0)
        .collect();
    gaps.sort();
    let median_ns = gaps[gaps.len() / 2];
    assert!(
        (50 * MS..100 * MS).contains(&median_ns),
        "a report every {median_ns} ns"
    );
}

#[test]
fn at_the_end_waiting_frames_are_written_at_once() {
    let bench = Bench::start(1 << 20);
    let far_ns = now_ns() + 3600 * 1000 * MS;
    for number in 0..100 {
        bench.send(far_ns - u64::from(number), &frame(number, 60));
    }
    assert_eq!(bench.packets.receive(Duration::from_millis(100)), None);
    let Bench {
        packets,
        mut stop,
        thread,
        reports,
        ..
    } = bench;
    stop.write_all(b"x").unwrap();
    assert_eq!(
        thread.join().unwrap().unwrap(),
        [(Direction::Up, End::Stopped)]
    );
    for expected in (0..100).rev() {
        let got = packets.receive(PATIENCE).unwrap();
        assert_eq!(number(&got.frame), expected);
    }
    let reports = reports.lock().unwrap();
    let stats = last(&reports);
    assert_eq!((stats.lease_ns, stats.released, stats.waiting), (0, 100, 0));
}

#[test]
fn the_holder_ends_when_its_tap_is_deleted() {
    let bench = Bench::start(1 << 20);
    bench.send(now_ns() + 3600 * 1000 * MS, &frame(1, 60));
    let deleted = Command::new("ip")
        .args(["link", "del", &bench.name])
        .status();
    assert!(deleted.unwrap().success());
    let ends = bench.thread.join().unwrap().unwrap();
    assert_eq!(ends, [(Direction::Up, End::TapGone)]);
    assert_eq!(last(&bench.reports.lock().unwrap()).lease_ns, 0);
}

#[test]
fn a_report_can_end_the_holder() {
    own_network();
    let tap = tap::create("emud-test%d", 1500).unwrap();
    let (stop, _keep) = rustix::pipe::pipe().unwrap();
    let holder = Holder::new(vec![(tap.fd, Direction::Down)]);
    let ends = holder.run(stop.as_fd(), |_, _, _| (), |_, _| ControlFlow::Break(()));
    assert_eq!(ends.unwrap(), [(Direction::Down, End::Stopped)]);
}

#[test]
fn the_tap_is_set_up_and_lives_as_long_as_its_descriptor() {
    own_network();
    let tap = tap::create("emud-test%d", 9000).unwrap();
    let show = |name: &str| {
        Command::new("ip")
            .args(["-d", "link", "show", name])
            .output()
            .unwrap()
    };
    let shown = String::from_utf8(show(&tap.name).stdout).unwrap();
    for wanted in [
        "mtu 9064",
        "qlen 16384",
        "NOARP",
        ",UP",
        "tun type tap pi off vnet_hdr on",
    ] {
        assert!(shown.contains(wanted), "no \"{wanted}\" in {shown}");
    }
    let addresses = Command::new("ip")
        .args(["addr", "show", &tap.name])
        .output()
        .unwrap();
    assert!(
        !String::from_utf8(addresses.stdout)
            .unwrap()
            .contains("inet")
    );
    drop(tap.fd);
    assert!(!show(&tap.name).status.success());
    for bad in ["", "a name", "sixteen-letters-", "a/b"] {
        assert_eq!(tap::create(bad, 1500).unwrap_err().exit_code(), 64);
    }
}
