// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flows of fq for packets that may overtake one another.

use aya::maps::{Map, MapData, MapInfo, PerCpuArray};
use aya::programs::loaded_programs;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::*;

const LANES: usize = abi::EMUD_LANES as usize;

/// When the last packet of each lane leaves.
type Lanes = [u64; LANES];

struct Watch(PerCpuArray<MapData, Lanes>);

impl Watch {
    /// The lanes of this CPU, on which the calling thread stays.
    fn new(b: &Bench) -> Self {
        let mut only = CpuSet::new();
        only.set(0);
        sched_setaffinity(None, &only).unwrap();
        let id = b.loaded.program_id(Program::Classify).unwrap();
        // One of another test may end while they are listed.
        let program = loaded_programs().flatten().find(|p| p.id() == id);
        let maps = program.unwrap().map_ids().unwrap().unwrap();
        let named = |id: &u32| MapInfo::from_id(*id).unwrap().name_as_str() == Some("emud_lanes");
        let id = maps.iter().find(|id| named(id)).unwrap();
        let data = Map::from_map_data(MapData::from_id(*id).unwrap()).unwrap();
        Self(data.try_into().unwrap())
    }

    fn now(&self) -> Lanes {
        self.0.get(&abi::EMUD_UP, 0).unwrap()[0]
    }

    /// Returns the lane of a packet with that departure; `None`: no lane had room.
    fn taken(&self, before: &Lanes, departure: u64) -> Option<usize> {
        let now = self.now();
        let changed: Vec<_> = (0..LANES).filter(|i| now[*i] != before[*i]).collect();
        assert!(changed.len() <= 1, "{changed:?}");
        let lane = *changed.first()?;
        assert_eq!(now[lane], departure);
        assert!(before[lane] <= departure, "in order");
        assert!(now.is_sorted_by(|a, b| a >= b), "from lane to lane");
        Some(lane)
    }
}

/// Lanes of packets that arrive `gap` ns apart.
fn lanes(b: &Bench, packets: u64, gap: u64) -> Vec<Option<usize>> {
    let watch = Watch::new(b);
    let frame = udp4(100, 1000);
    let mut before = watch.now();
    let mut one = |i| {
        let departure = b.start + b.send(&frame, i * gap).departure;
        let lane = watch.taken(&before, departure);
        before = watch.now();
        lane
    };
    (0..packets).map(&mut one).collect()
}

#[test]
fn packets_in_any_order_take_few_lanes() {
    let b = Bench::new(&jitter(
        50 * MS,
        10e6,
        Distribution::Uniform,
        Reorder::Jitter,
    ));
    let n = 2_000;
    let taken = lanes(&b, n, 1);
    let most = taken.iter().map(|lane| lane.unwrap() + 1).max().unwrap();
    // The longest falling sequence of n numbers in random order: 2 sqrt(n), less 1.77 n^(1/6) on
    // average, and 0.9 n^(1/6) is its standard deviation (Baik, Deift, Johansson).
    let (mean, sd) = (2.0 * (n as f64).sqrt(), (n as f64).powf(1.0 / 6.0));
    let wanted = mean - 1.77 * sd;
    assert!(
        (most as f64 - wanted).abs() < 4.0 * 0.9 * sd,
        "{most} lanes, {wanted:.0} wanted"
    );
}

#[test]
fn what_is_due_in_order_stays_in_the_first_lane() {
    let b = Bench::new(&jitter(
        50 * MS,
        1.0,
        Distribution::Uniform,
        Reorder::Jitter,
    ));
    let taken = lanes(&b, 200, 1000);
    assert!(taken.iter().all(|lane| *lane == Some(0)), "{taken:?}");
}

#[test]
fn a_packet_that_finds_no_lane_changes_none() {
    let b = Bench::new(&jitter(
        50 * MS,
        1.0,
        Distribution::Uniform,
        Reorder::Jitter,
    ));
    let mut watch = Watch::new(&b);
    let full = [u64::MAX / 2; LANES];
    let values = aya::maps::PerCpuValues::try_from(vec![full; aya::util::nr_cpus().unwrap()]);
    watch.0.set(abi::EMUD_UP, values.unwrap(), 0).unwrap();
    b.send(&udp4(100, 1000), 0);
    assert_eq!(watch.now(), full);
}
