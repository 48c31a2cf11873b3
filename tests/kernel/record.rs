// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud monitor record` on this machine: the file contains the generated events. Needs root.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::BufReader;
use std::net::UdpSocket;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use emud_monitor::event::Watched;
use emud_monitor::record::{End, Event, Header, Interval, Kind, NetClass, Reader, Trailer};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::clock::{self, now};
use support::site::unique;

/// One recording at a time: it would include the other tests' spinners.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calling thread runs on the last CPU only. Returns its number.
fn pin() -> u16 {
    let last = thread::available_parallelism().unwrap().get() - 1;
    clock::pin(last);
    last as u16
}

fn succeed(command: &mut Command) -> String {
    let out = command.output().unwrap();
    let err = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{command:?}: {err}");
    String::from_utf8(out.stdout).unwrap()
}

/// A running `emud monitor record`.
struct Recording {
    file: PathBuf,
    child: Child,
}

impl Recording {
    fn start(more: &[&str]) -> Self {
        let file = std::env::temp_dir().join(unique("file"));
        let child = Command::new(support::emud_path())
            .args(["monitor", "record", "--json", "-o"])
            .arg(&file)
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let recording = Self { file, child };
        // The header is written once all is attached, and goes to the file within 0.2 s.
        let begin = Instant::now();
        while fs::metadata(&recording.file).map_or(0, |m| m.len()) == 0 {
            assert!(begin.elapsed() < Duration::from_secs(20), "no header");
            thread::sleep(Duration::from_millis(10));
        }
        recording
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
    }

    /// Ends it like Ctrl-C. Its output matches the file.
    fn finish(mut self) -> Recorded {
        self.signal(Signal::INT);
        let mut out = self.child.stdout.take().unwrap();
        let summary: Value = serde_json::from_reader(&mut out).unwrap();
        assert!(self.child.wait().unwrap().success());
        let recorded = self.read();
        let End::Complete(trailer) = &recorded.end else {
            panic!("{:?}", recorded.end);
        };
        assert_eq!(summary["trailer"], serde_json::to_value(trailer).unwrap());
        assert_eq!(
            summary["header"],
            serde_json::to_value(&recorded.header).unwrap()
        );
        recorded
    }

    fn read(&self) -> Recorded {
        let file = BufReader::new(File::open(&self.file).unwrap());
        let mut reader = Reader::new(file).unwrap();
        let events = (&mut reader).collect::<Result<Vec<_>, _>>().unwrap();
        Recorded {
            header: reader.header().clone(),
            events,
            end: reader.end().unwrap().clone(),
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // Both only if a test failed before.
        let _ = self.child.kill();
        let _ = self.child.wait();
        fs::remove_file(&self.file).unwrap();
    }
}

struct Recorded {
    header: Header,
    events: Vec<Event>,
    end: End,
}

impl Recorded {
    fn trailer(&self) -> &Trailer {
        match &self.end {
            End::Complete(trailer) => trailer,
            End::Cut { .. } => panic!("cut short"),
        }
    }

    /// Busy intervals of a CPU, in order.
    fn busy(&self, wanted: u16) -> Vec<Interval> {
        let mut intervals: Vec<Interval> = self
            .events
            .iter()
            .filter_map(|event| match event {
                Event::CpuBusy { cpu, interval } if *cpu == wanted => Some(*interval),
                _ => None,
            })
            .collect();
        intervals.sort_by_key(|i| i.begin_ns);
        intervals
    }

    /// Bytes of each packet of an interface.
    fn packets(&self, netns: u32, wanted: &str) -> Vec<(u32, NetClass)> {
        let mut names = HashMap::new();
        let mut packets = vec![];
        for event in &self.events {
            match event {
                Event::Interface {
                    ifindex,
                    netns,
                    name,
                } => {
                    names.insert((*netns, *ifindex), name.as_str());
                }
                Event::Packet {
                    bytes,
                    ifindex,
                    netns: at,
                    class,
                    ..
                } if *at == netns && names.get(&(*at, *ifindex)) == Some(&wanted) => {
                    packets.push((*bytes, *class));
                }
                _ => {}
            }
        }
        packets
    }

    fn never_empty(&self, wanted: &str) -> Vec<Interval> {
        let mut number = None;
        let mut intervals = vec![];
        for event in &self.events {
            match event {
                Event::Disk { device, name } if name == wanted => number = Some(*device),
                Event::DiskBusy { device, interval } if Some(*device) == number => {
                    intervals.push(*interval);
                }
                _ => {}
            }
        }
        intervals
    }
}

/// Two connected interfaces of a network namespace.
struct Wire {
    netns: String,
    inode: u32,
}

impl Wire {
    fn new() -> Self {
        let netns = unique("ns");
        succeed(Command::new("ip").args(["netns", "add", &netns]));
        let inode = fs::metadata(format!("/run/netns/{netns}")).unwrap().ino() as u32;
        let wire = Self { netns, inode };
        // No ARP: every frame was sent by the test.
        for command in [
            "link set lo up",
            "link add w0 type veth peer name w1",
            "addr add 10.9.0.1/24 dev w0",
            "link set w1 up",
            "link set w0 up",
            "neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev w0",
        ] {
            let mut ip = Command::new("ip");
            ip.args(["-n", &wire.netns]).args(command.split(' '));
            succeed(&mut ip);
        }
        wire
    }

    /// Sends `count` datagrams of `bytes`, `pause` apart.
    fn send(&self, count: usize, bytes: usize, pause: Duration) {
        let path = File::open(format!("/run/netns/{}", self.netns)).unwrap();
        // A separate thread, because the network namespace belongs to the thread.
        let sender = thread::spawn(move || {
            let kind = Some(rustix::thread::LinkNameSpaceType::Network);
            rustix::thread::move_into_link_name_space(std::os::fd::AsFd::as_fd(&path), kind)
                .unwrap();
            let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
            let payload = vec![0; bytes];
            for _ in 0..count {
                socket.send_to(&payload, "10.9.0.2:9").unwrap();
                thread::sleep(pause);
            }
        });
        sender.join().unwrap();
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        succeed(Command::new("ip").args(["netns", "del", &self.netns]));
    }
}

/// A loop device over a file of random bytes.
struct Loop {
    device: String,
    image: PathBuf,
}

const READ_BYTES: usize = 256 << 10;

impl Loop {
    fn new(reads: usize) -> Self {
        let image = std::env::temp_dir().join(unique("image"));
        fs::write(&image, vec![0x5a; reads * READ_BYTES]).unwrap();
        let mut losetup = Command::new("losetup");
        losetup.args(["--find", "--show"]).arg(&image);
        let device = succeed(&mut losetup).trim().to_owned();
        Self { device, image }
    }

    fn name(&self) -> &str {
        self.device.trim_start_matches("/dev/")
    }

    /// Reads directly, one after the other. Returns begin and end of each read.
    fn read(&self, reads: usize) -> Vec<(u64, u64)> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_DIRECT)
            .open(&self.device)
            .unwrap();
        let mut space = vec![0u8; READ_BYTES + 4096];
        let aligned = space.as_ptr().align_offset(4096);
        let buffer = &mut space[aligned..aligned + READ_BYTES];
        let one = |i: usize| {
            let begin = now();
            file.read_exact_at(buffer, (i * READ_BYTES) as u64).unwrap();
            (begin, now())
        };
        (0..reads).map(one).collect()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        succeed(Command::new("losetup").args(["--detach", &self.device]));
        fs::remove_file(&self.image).unwrap();
    }
}

#[test]
fn what_was_planted_is_in_the_file() {
    const FRAMES: usize = 1_000;
    const READS: usize = 64;
    const SPIN: u64 = 300_000_000;
    let _alone = alone();
    let (wire, disk) = (Wire::new(), Loop::new(READS));
    let record = || {
        let recording = Recording::start(&[]);
        let spinner = thread::spawn(|| {
            let cpu = pin();
            let begin = now();
            while now() < begin + SPIN {
                std::hint::spin_loop();
            }
            (cpu, begin, now())
        });
        let spun = spinner.join().unwrap();
        wire.send(FRAMES, 972, Duration::from_micros(200));
        let reads = disk.read(READS);
        (recording.finish(), spun, reads)
    };
    // It records the whole machine, which other tests keep busy: then again.
    let again = if support::full() { 0 } else { 4 };
    let mut done = record();
    for _ in 0..again {
        if done.0.trailer().lost.is_empty() {
            break;
        }
        done = record();
    }
    let (recorded, (cpu, begin, end), reads) = done;

    assert_eq!(recorded.header.watched["cpu"], Watched::Yes);
    assert!(recorded.trailer().lost.is_empty());
    let busy = recorded.busy(cpu);
    assert!(busy.iter().any(|i| i.begin_ns <= begin && i.end_ns >= end));
    for pair in busy.windows(2) {
        assert!(pair[0].end_ns <= pair[1].begin_ns, "{pair:?}");
    }

    // 972 bytes, 8 of UDP, 20 of IPv4, 14 of Ethernet.
    let ours = (1_014, NetClass::Internal);
    let packets = recorded.packets(wire.inode, "w0");
    assert_eq!(packets.iter().filter(|p| **p == ours).count(), FRAMES);

    // Every read is in the file, and nothing except the reads. A quiet machine is needed to show
    // that the device was busy only during them.
    let within = |i: &Interval, (begin, end): (u64, u64)| match support::full() {
        true => i.begin_ns >= begin && i.end_ns <= end,
        false => i.begin_ns < end && i.end_ns > begin,
    };
    let intervals = recorded.never_empty(disk.name());
    for read in &reads {
        let near = intervals.iter().any(|i| within(i, *read));
        assert!(near, "{read:?} is not in {intervals:?}");
    }
    for i in &intervals {
        assert!(reads.iter().any(|read| within(i, *read)), "{i:?}");
    }
}

/// A CPU that was busy before and after: no event shows it.
#[test]
fn an_endless_spinner_is_not_missed() {
    let _alone = alone();
    for basis in ["task", "idle"] {
        let stop = AtomicBool::new(false);
        let recorded = thread::scope(|scope| {
            let spinner = scope.spawn(|| {
                let cpu = pin();
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                cpu
            });
            // It has to run before the programs are attached.
            thread::sleep(Duration::from_millis(100));
            let recording = Recording::start(&["--cpu-basis", basis]);
            thread::sleep(Duration::from_millis(500));
            let recorded = recording.finish();
            stop.store(true, Ordering::Relaxed);
            recorded
                .busy(spinner.join().unwrap())
                .into_iter()
                .map(|i| (i, recorded.header.clone(), recorded.trailer().end_mono_ns))
                .collect::<Vec<_>>()
        });
        let [(interval, header, end_ns)] = &recorded[..] else {
            panic!("{basis}: {recorded:?}");
        };
        assert!(interval.open_begin && interval.open_end, "{interval:?}");
        assert_eq!(interval.end_ns, *end_ns);
        // The tick shows it, and under a hypervisor one tick may be missing.
        let tick_ns = 1_000_000_000 / u64::from(header.hz);
        let unseen_ns = interval.begin_ns - header.start_mono_ns;
        // A busy machine may stand still meanwhile.
        let most_ns = match support::full() {
            true => 2 * tick_ns,
            false => 500_000_000,
        };
        assert!(unseen_ns <= most_ns, "{unseen_ns}");
    }
}

/// Nothing is lost silently.
#[test]
fn a_full_ring_counts_what_it_loses() {
    const FRAMES: usize = 2_000;
    let _alone = alone();
    let wire = Wire::new();
    // Room for 102 records of 32 bytes and a header of 8.
    let recording = Recording::start(&["--ring", "4KiB"]);
    wire.send(FRAMES, 100, Duration::ZERO);
    let recorded = recording.finish();
    let lost = recorded.trailer().lost[&Kind::Packet];
    let noted: u64 = recorded
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Lost {
                kind: Kind::Packet,
                count,
                ..
            } => Some(*count),
            _ => None,
        })
        .sum();
    assert_eq!(noted, lost);
    let ours = (142, NetClass::Internal);
    let packets = recorded.packets(wire.inode, "w0");
    let written = packets.iter().filter(|p| **p == ours).count();
    assert!(
        lost > 0 && written < FRAMES,
        "{lost} lost, {written} written"
    );
    // Packets of other processes may be among the lost ones.
    assert!(
        written as u64 + lost >= FRAMES as u64,
        "{lost} lost, {written} written"
    );
}

#[test]
fn killed_it_leaves_nothing_attached_and_a_file_that_reads() {
    let _alone = alone();
    let mut recording = Recording::start(&[]);
    let during = support::bpf::of(recording.child.id());
    assert!(during.iter().any(|(kind, _)| *kind == "program"));
    // On a busy machine the writer may run late.
    let length = || fs::metadata(&recording.file).unwrap().len();
    let (begin, header) = (Instant::now(), length());
    while length() == header {
        assert!(begin.elapsed() < Duration::from_secs(20), "no events");
        thread::sleep(Duration::from_millis(10));
    }
    recording.signal(Signal::KILL);
    recording.child.wait().unwrap();
    let recorded = recording.read();
    assert!(matches!(recorded.end, End::Cut { .. }));
    assert!(!recorded.events.is_empty());
    // The kernel frees programs after a grace period.
    let begin = Instant::now();
    while !support::bpf::all().is_disjoint(&during) {
        assert!(begin.elapsed() < Duration::from_secs(60), "{during:?}");
        thread::sleep(Duration::from_millis(20));
    }
    let file = recording.file.to_str().unwrap();
    let out = succeed(Command::new(support::emud_path()).args(["monitor", "calibrate", file]));
    assert!(out.contains("cut short"), "{out}");
}
