// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records of a medium: repeated, damaged, and compared with the run.

use std::path::PathBuf;
use std::sync::Arc;
use std::{fs, io};

use emud::datapath::radio::{ReplayError, Setting, replay};
use emud::medium::air::{Discipline, Plan, RateControl};
use emud::medium::motion::Track;
use emud::medium::phy::{
    Disk, Geometry, Grid, Line, Loss, PathLoss, Radio, Spread, Standard, Wire,
};
use proptest::prelude::*;
use support::chance::same_cases;

use super::grid::HOUSE;
use super::traffic::{S, plan, timing};

/// Two stations, of which the second walks out of range after 3 s, and a packet every 100 ms.
fn record() -> String {
    record_of(Spread::Disk(Disk::default()))
}

fn record_of(spread: Spread) -> String {
    record_with(plan("802.11b", 1), spread)
}

/// 802.11n with all that it can, in bursts of several categories.
fn record_of_bursts() -> String {
    let plan = Plan {
        aggregate: 64,
        discipline: Discipline::Edca,
        rate: RateControl::Minstrel,
        timing: timing("802.11n"),
        ..plan("802.11b", 1)
    };
    let mut text = record_with(plan, Spread::Disk(Disk::default()));
    for n in 0..600 {
        let (at_ns, ds) = (1 + n / 10 * S / 10, n % 3 * 0x20);
        text += &format!("A {at_ns} 0 1 1000 {ds}\n");
    }
    text
}

fn record_with(plan: Plan, spread: Spread) -> String {
    let mut track = Track::still([200.0, 0.0]);
    track.push(10 * S, [400.0, 0.0]);
    let setting = Setting {
        geometry: Geometry { spread, ber: 1e-5 },
        tracks: vec![Track::still([0.0, 0.0]), track],
        modes: vec![3, 3],
        promiscuous: vec![false, true],
    };
    let head = serde_json::json!({
        "schema": "emud-medium/1",
        "plan": plan,
        "setting": setting,
    });
    let mut text = format!("{head}\n");
    for n in 0..60 {
        text += &format!(
            "A {} 0 {} 1000\n",
            1 + n * S / 10,
            if n % 2 == 0 { "1" } else { "*" }
        );
    }
    for step in 1..=60 {
        text += &format!("M {} {step}\n", step * S / 10);
    }
    text
}

fn ignored(_: u64, _: usize, _: usize, _: u32) -> io::Result<()> {
    Ok(())
}

struct File(PathBuf);

impl File {
    fn new(name: &str, text: &[u8]) -> Self {
        let name = format!("emud-test-record-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_record_repeats_with_its_motion() {
    let file = File::new("whole", record().as_bytes());
    let mut last_ns = 0;
    let deliver = |at_ns, from, to, bytes| {
        assert_eq!((from, to, bytes), (0, 1, 1000));
        last_ns = at_ns;
        Ok(())
    };
    let first = replay(&file.0, deliver).unwrap();
    assert_eq!((first.arrivals, first.same), (60, None));
    // In range for 2.5 s: 250 m are reached at 20 m/s.
    assert!((2_400..2_600).contains(&(last_ns / 1_000_000)), "{last_ns}");
    assert!((20..=26).contains(&first.deliveries), "{first:?}");

    let end = format!(
        "{}E {} {} {:016x}\n",
        record(),
        9 * S,
        first.deliveries,
        first.digest
    );
    let with_end = File::new("end", end.as_bytes());
    assert_eq!(replay(&with_end.0, ignored).unwrap().same, Some(true));
    let other = end.replace("A 100000001 0", "A 100000002 0");
    let other = File::new("other", other.as_bytes());
    assert_eq!(replay(&other.0, ignored).unwrap().same, Some(false));
}

/// 802.11n with EDCA and Minstrel: all packets arrive while the other is in range.
#[test]
fn a_record_of_bursts_repeats() {
    let file = File::new("bursts", record_of_bursts().as_bytes());
    let found = [0, 1].map(|_| replay(&file.0, ignored).unwrap());
    assert_eq!(found[0].digest, found[1].digest);
    assert!(found[0].deliveries > 240, "{:?}", found[0]);
}

#[test]
fn what_is_no_record_is_rejected() {
    let line = Line {
        delay_ns: u64::MAX,
        loss: 0.0,
        ber: 0.0,
    };
    let pairs = vec![];
    let noise = u64::MAX;
    let loud = Plan {
        noise,
        ..plan("802.11b", 1)
    };
    let loud = record_with(loud, Spread::Disk(Disk::default()));
    let endless = record_of(Spread::Wire(Wire { line, pairs }));
    for text in ["", "{}\n", "A 1 0 1 1000\n", &endless, &loud] {
        let file = File::new("none", text.as_bytes());
        let error = replay(&file.0, ignored).unwrap_err();
        assert!(matches!(error, ReplayError::NoRecord(_)), "{error}");
        assert_eq!(error.exit_code(), 65);
    }
    for line in [
        "A 1 2 1 1000",
        "A 1 0 1 1501",
        "A 1 0 1 1000 256",
        "A x 0 1 10",
        "M 0 1",
        "E 1",
        "Z",
    ] {
        let file = File::new("line", format!("{}{line}\n", record()).as_bytes());
        let error = replay(&file.0, ignored).unwrap_err();
        assert!(
            matches!(error, ReplayError::Line { line: 122, .. }),
            "{error}"
        );
    }
}

/// What has no end is not read into memory, be it the first line or another one.
#[test]
fn a_line_without_an_end_is_no_record() {
    let begun = format!("{}A 1 0 1 1", record());
    for text in ["", "{\"schema\":\"emud-medium/1", &begun] {
        let file = File::new("endless", text.as_bytes());
        let endless = fs::OpenOptions::new().write(true).open(&file.0).unwrap();
        endless.set_len(1 << 36).unwrap();
        let error = replay(&file.0, ignored).unwrap_err();
        assert_eq!(error.exit_code(), 65, "{error}");
    }
    let damaged = [record().as_bytes(), b"A 1 0 1 \xff\n"].concat();
    let file = File::new("bytes", &damaged);
    let error = replay(&file.0, ignored).unwrap_err();
    assert!(
        matches!(error, ReplayError::Line { line: 122, .. }),
        "{error}"
    );
}

/// The record of a medium with this many stations, on which nothing happens.
fn record_of_a_crowd(stations: usize) -> String {
    let text = record();
    let (head, _) = text.split_once('\n').unwrap();
    let mut head: serde_json::Value = serde_json::from_str(head).unwrap();
    for key in ["tracks", "modes", "promiscuous"] {
        let first = head["setting"][key][0].clone();
        head["setting"][key] = vec![first; stations].into();
    }
    format!("{head}\n")
}

/// Memory grows with the square of their number.
#[test]
fn a_record_has_the_stations_of_a_medium() {
    let file = File::new("crowd", record_of_a_crowd(256).as_bytes());
    assert_eq!(replay(&file.0, ignored).unwrap().arrivals, 0);
    let file = File::new("throng", record_of_a_crowd(257).as_bytes());
    let error = replay(&file.0, ignored).unwrap_err();
    assert!(matches!(error, ReplayError::NoRecord(_)), "{error}");
}

/// A long record does not fit into memory.
#[test]
fn deliveries_are_passed_on_while_the_record_is_read() {
    let text = format!("{}A {} 0 1 1000\nZ\n", record(), 30 * S);
    let file = File::new("begun", text.as_bytes());
    let mut deliveries = 0;
    let deliver = |_, _, _, _| {
        deliveries += 1;
        Ok(())
    };
    let error = replay(&file.0, deliver).unwrap_err();
    assert!(
        matches!(error, ReplayError::Line { line: 123, .. }),
        "{error}"
    );
    assert!((20..=26).contains(&deliveries), "{deliveries}");
}

/// A station that is read late has older packets than others.
#[test]
fn lines_may_be_ten_seconds_late() {
    let text = record();
    let (head, _) = text.split_once('\n').unwrap();
    let lines = (0..300).map(|n| format!("A {} 0 1 1000\n", 1 + n * S / 10));
    let lines: Vec<String> = lines.collect();
    let late = lines.chunks(100).flat_map(|chunk| chunk.iter().rev());
    let late: Vec<&str> = late.map(String::as_str).collect();
    let found = [lines.concat(), late.concat()].map(|lines| {
        let file = File::new("late", format!("{head}\n{lines}").as_bytes());
        replay(&file.0, ignored).unwrap()
    });
    assert_eq!(found[0], found[1]);
    assert!(found[0].deliveries > 290, "{:?}", found[0]);
}

/// The process was killed, or the disk was full: a cut line has other figures, or none.
#[test]
fn a_cut_line_at_the_end_does_not_count() {
    let whole = File::new("uncut", record().as_bytes());
    let whole = replay(&whole.0, ignored).unwrap();
    for cut in ["M", "M 7000", "A 200000000 0 1 10", "E 9000000000 1 f"] {
        let file = File::new("cut", format!("{}{cut}", record()).as_bytes());
        assert_eq!(replay(&file.0, ignored).unwrap(), whole, "{cut}");
    }
}

/// Figures of radios and grids that no scenario has.
#[test]
fn radios_and_grids_of_a_record_are_possible() {
    let radio = |loss: Loss| Radio::new(Standard::named("802.11b").unwrap(), loss);
    let path = radio(PathLoss::FreeSpace.into());
    let sensitive = |modes| Radio {
        sensitivity_dbm: vec![-85.0; modes],
        ..path.clone()
    };
    let house = radio(Loss::Grid(Arc::new(Grid::read(HOUSE).unwrap())));
    let house = record_of(Spread::Radio(house));
    let in_house = |from: &str, to: &str| {
        assert_eq!(house.matches(from).count(), 1, "{from}");
        house.replace(from, to)
    };
    for (text, fits) in [
        (record_of(Spread::Radio(sensitive(4))), true),
        (record_of(Spread::Radio(sensitive(3))), false),
        (record_of(Spread::Radio(sensitive(17))), false),
        (house.clone(), true),
        (in_house("\"columns\":4", "\"columns\":0"), false),
        (in_house("\"rows\":2", "\"rows\":1"), false),
        (in_house("\"cell_m\":5.0", "\"cell_m\":0.0"), false),
    ] {
        let file = File::new("radio", text.as_bytes());
        match replay(&file.0, ignored) {
            Ok(_) => assert!(fits, "{:?}", text.lines().next()),
            Err(error) => {
                assert!(
                    !fits && matches!(error, ReplayError::NoRecord(_)),
                    "{error}"
                );
                assert_eq!(error.exit_code(), 65);
            }
        }
    }
}

proptest! {
    #![proptest_config(same_cases(64))]

    /// Digits exchanged anywhere: read or rejected.
    #[test]
    fn a_damaged_record_never_panics(
        edits in prop::collection::vec((0..4000_usize, b'0'..=b'9'), 1..5),
        bursts: bool,
    ) {
        let text = if bursts { record_of_bursts() } else { record() };
        let mut bytes = text.into_bytes();
        for (at, digit) in edits {
            let at = at % bytes.len();
            if bytes[at].is_ascii_digit() {
                bytes[at] = digit;
            }
        }
        let file = File::new("damaged", &bytes);
        let _ = replay(&file.0, ignored);
    }
}
