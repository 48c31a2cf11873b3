// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file of a recording: the reader returns what the writer wrote, and reports what is missing
//! or damaged.

use std::collections::BTreeMap;

use crate::config::Basis;
use crate::event::{Hook, Watched};
use crate::log::{Clock, Host};
use crate::record::{
    End, Event, Header, Interval, Kind, NetClass, RECORD_BYTES, ReadError, Reader, SCHEMA,
    StopReason, Trailer, Writer,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

pub(crate) fn header() -> Header {
    Header {
        schema: SCHEMA.into(),
        version: "0.0.0".into(),
        host: Host {
            kernel: "6.1".into(),
            cpus: 2,
            hostname: "box".into(),
        },
        hz: 250,
        page_bytes: 4096,
        clock: Clock {
            realtime_minus_mono_ns: 1_700_000_000_000_000_000,
            boottime_minus_mono_ns: -3,
        },
        start_mono_ns: 1_000,
        cpu_basis: Basis::Task,
        ring_bytes: 1 << 24,
        hooks: vec![Hook {
            criterion: "cpu".into(),
            hook: "tp_btf/sched_switch".into(),
            refused: None,
            caveat: None,
        }],
        watched: [
            ("cpu".into(), Watched::Yes),
            ("network".into(), Watched::Yes),
            ("page-ins".into(), Watched::Unknown),
            ("page-outs".into(), Watched::Yes),
            ("disk-requests".into(), Watched::Yes),
            ("disk-bios".into(), Watched::Yes),
        ]
        .into(),
        swaps: vec![],
    }
}

fn trailer(records: BTreeMap<Kind, u64>) -> Trailer {
    Trailer {
        end_mono_ns: 9_000,
        reason: StopReason::Signal,
        records,
        lost: BTreeMap::from([(Kind::Packet, 3)]),
        disks_unknown: 0,
        unpaired: 1,
    }
}

fn one_of_each() -> Vec<Event> {
    let interval = Interval {
        begin_ns: 2_000,
        end_ns: 3_000,
        open_begin: true,
        open_end: false,
    };
    vec![
        Event::CpuBusy { cpu: 513, interval },
        Event::Interface {
            ifindex: 4,
            netns: 0xf000_0001,
            name: "fifteen-letters".into(),
        },
        Event::Packet {
            time_ns: 2_500,
            bytes: 65_549,
            ifindex: 4,
            netns: 0xf000_0001,
            class: NetClass::Internal,
        },
        Event::PageIn {
            time_ns: 2_600,
            pages: 1,
        },
        Event::PageOut {
            time_ns: 2_601,
            pages: 512,
        },
        Event::Disk {
            device: 8 << 20 | 16,
            name: "sda".into(),
        },
        Event::DiskBusy {
            device: 8 << 20 | 16,
            interval: Interval {
                open_begin: false,
                open_end: true,
                ..interval
            },
        },
        Event::Lost {
            time_ns: 2_700,
            kind: Kind::Packet,
            count: 3,
        },
    ]
}

fn written(events: &[Event]) -> Vec<u8> {
    let mut writer = Writer::new(vec![], &header()).unwrap();
    for event in events {
        writer.event(event).unwrap();
    }
    let trailer = trailer(writer.counts());
    writer.finish(&trailer).unwrap()
}

fn read(file: &[u8]) -> Result<(Vec<Event>, End), ReadError> {
    let mut reader = Reader::new(file)?;
    assert_eq!(*reader.header(), header());
    let events = (&mut reader).collect::<Result<Vec<_>, _>>()?;
    assert_eq!(reader.records(), events.len() as u64);
    Ok((events, reader.end().unwrap().clone()))
}

#[test]
fn what_is_written_is_read() {
    let events = one_of_each();
    let kinds: Vec<Kind> = events.iter().map(Event::kind).collect();
    assert!(Kind::all().all(|kind| kinds.contains(&kind)));
    let (got, end) = read(&written(&events)).unwrap();
    assert_eq!(got, events);
    let counts = kinds.into_iter().map(|kind| (kind, 1)).collect();
    assert_eq!(end, End::Complete(trailer(counts)));
}

/// As after kill -9: every possible length of a file.
#[test]
fn a_file_cut_short_is_read_up_to_the_last_whole_record() {
    let events = one_of_each();
    let file = written(&events);
    let records = written(&[]).len();
    let json = serde_json::to_vec(&header()).unwrap().len();
    let begin = 16 + json;
    assert!(records > begin);
    for length in begin..file.len() {
        let (got, end) = read(&file[..length]).unwrap();
        let whole = ((length - begin) / RECORD_BYTES).min(events.len());
        assert_eq!(got, events[..whole], "{length}");
        let stray = length - begin - whole * RECORD_BYTES;
        let stray_bytes = stray as u64;
        assert_eq!(end, End::Cut { stray_bytes }, "{length}");
    }
    for length in 1..begin {
        let error = read(&file[..length]).unwrap_err();
        assert!(matches!(error, ReadError::CutInHeader), "{length}: {error}");
    }
}

#[test]
fn other_files_are_refused() {
    let file = written(&[]);
    for other in [&b""[..], b"\x89PNG\r\n\x1a\n", b"{\"schema\":", &file[1..]] {
        let error = read(other).unwrap_err();
        assert!(matches!(error, ReadError::NotARecording), "{error}");
    }
    let mut later = file.clone();
    later[8] = 2;
    assert!(matches!(read(&later), Err(ReadError::Version(2))));
    let mut endless = file.clone();
    endless[15] = 0xff;
    assert!(matches!(read(&endless), Err(ReadError::Header(_))));
    let mut more = file;
    more.push(0);
    let error = read(&more).unwrap_err().to_string();
    assert!(error.contains("bytes after the end"), "{error}");
}

#[test]
fn damage_is_told_with_its_place() {
    let events = one_of_each();
    let file = written(&events);
    let begin = file.len() - written(&[]).len() - events.len() * RECORD_BYTES;
    // Trailers have different lengths because of their counts: find the first record.
    let json = serde_json::to_vec(&header()).unwrap().len();
    let first = 16 + json;
    assert!(begin < first);
    let damaged = |at: usize, value: u8| {
        let mut file = file.clone();
        file[first + at] = value;
        read(&file).unwrap_err().to_string()
    };
    let prefix = format!("damaged at byte {first}: ");
    assert_eq!(
        damaged(0, 77),
        format!("{prefix}unknown kind of record \"77\"")
    );
    assert_eq!(
        damaged(0, 0),
        format!("{prefix}unknown kind of record \"0\"")
    );
    assert!(damaged(1, 0x80).starts_with(&format!("{prefix}unknown flags 0x80")));
    // An end before the beginning.
    assert!(damaged(23, 0xff).starts_with(&format!("{prefix}an interval ends before")));
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    /// A checksum covers everything that is written.
    #[test]
    fn no_changed_byte_goes_unnoticed(at in any::<prop::sample::Index>(), change in 1u8..) {
        let mut file = written(&one_of_each());
        let at = at.index(file.len());
        file[at] ^= change;
        let result = Reader::new(&file[..]).and_then(|mut reader| {
            (&mut reader).collect::<Result<Vec<_>, _>>()?;
            Ok(reader.end().unwrap().clone())
        });
        // A trailer with a larger length reads as an incomplete one.
        prop_assert!(matches!(result, Err(_) | Ok(End::Cut { .. })), "{:?}", result);
    }

    #[test]
    fn no_input_makes_the_reader_panic(noise in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut file = written(&[]);
        file.truncate(file.len() - noise.len().min(60));
        file.extend(&noise);
        if let Ok(reader) = Reader::new(&file[..]) {
            let _ = reader.count();
        }
        if let Ok(reader) = Reader::new(&noise[..]) {
            let _ = reader.count();
        }
    }
}
