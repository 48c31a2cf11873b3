// SPDX-License-Identifier: MIT OR Apache-2.0
//! What attach saves: texts of every length, while another process reads.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::*;

const PIECE: usize = abi::EMUD_PIECE_LEN as usize;
const MOST: usize = PIECE * abi::EMUD_PIECES as usize;

fn text(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| ((i + seed) % 251) as u8).collect()
}

/// With a small stack, as that of a thread may be.
#[test]
fn of_every_length() {
    let mut maps = Bench::new(&link(|_| {})).maps;
    let small_stack = std::thread::Builder::new().stack_size(256 << 10);
    let done = small_stack.spawn(move || saves_every_length(&mut maps));
    done.unwrap().join().unwrap();
}

fn saves_every_length(maps: &mut Maps) {
    assert_eq!(maps.saved().unwrap(), b"");
    for len in [1, PIECE - 1, PIECE, PIECE + 1, MOST, 0, 7, MOST] {
        maps.save(&text(len, len)).unwrap();
        assert_eq!(maps.saved().unwrap(), text(len, len), "{len}");
    }
    let error = maps.save(&text(MOST + 1, 0)).unwrap_err().to_string();
    assert!(error.contains(&format!("the maximum is {MOST}")), "{error}");
    assert_eq!(maps.saved().unwrap(), text(MOST, MOST));
}

#[test]
fn a_reader_sees_one_write() {
    let mut bench = Bench::new(&link(|_| {}));
    let program = bench.loaded.program_id(Program::Classify).unwrap();
    bench.maps.save(&text(1, 1)).unwrap();
    let (done, different) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let maps = Maps::of_program(program).unwrap();
            let mut lengths = BTreeSet::new();
            while !done.load(Ordering::Relaxed) {
                let bytes = maps.saved().unwrap();
                assert_eq!(bytes, text(bytes.len(), bytes.len()));
                lengths.insert(bytes.len());
                different.store(lengths.len(), Ordering::Relaxed);
            }
            lengths
        });
        // It may have no CPU meanwhile; a panic here would wait for it for ever.
        let until = Instant::now() + Duration::from_secs(60);
        let has_read = |lengths: usize| {
            let given_up = reader.is_finished() || Instant::now() > until;
            given_up || different.load(Ordering::Relaxed) >= lengths
        };
        while !has_read(1) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut n = 0;
        while n < 2_000 || !has_read(2) {
            n += 1;
            let len = 1 + (n * 7_919) % (20 * PIECE);
            bench.maps.save(&text(len, len)).unwrap();
        }
        done.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap().len() > 1);
    });
}
