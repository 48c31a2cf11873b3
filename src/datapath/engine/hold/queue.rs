// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames sorted by departure time.
//!
//! A link that keeps the order has departures that never decrease: those use a plain FIFO. Only a
//! frame that departs before the last one of the FIFO (jitter per packet, a delay that was just
//! reduced) uses a heap.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The smallest buffer: 2^7 bytes.
const SMALLEST_SHIFT: u32 = 7;
/// Number of buffer sizes, 2^7 .. 2^17 bytes; the last one holds the longest possible frame.
const SIZES: usize = 11;

/// Frames that fit without reallocation of the queue: 1 Gbit/s of full frames for 200 ms.
const EXPECTED: usize = 16384;

/// The share of the limit for frames that their senders hold back: any user can do that for 10 s, and the
/// frames of others wait for no longer than the link makes them.
const BY_SENDER: usize = 4;

/// A waiting frame; return its buffer with [`TimerQueue::recycle`].
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frame {
    /// CLOCK_MONOTONIC.
    pub departure_ns: u64,
    /// Keeps the order of frames with the same time.
    sequence: u64,
    buffer: Box<[u8]>,
    len: usize,
    by_sender: bool,
}

impl Frame {
    /// Returns the bytes of the frame.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// Returns the same bytes, mutable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.len]
    }
}

/// The queue is full: the frame would exceed its limit in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the holder's queue is full")]
pub struct Full;

/// Frames in order of (departure, arrival), in recycled buffers.
#[derive(Debug)]
pub struct TimerQueue {
    fifo: VecDeque<Frame>,
    heap: BinaryHeap<Reverse<Frame>>,
    pool: Pool,
    sequence: u64,
    /// Buffers of frames that their senders hold back.
    by_sender_bytes: usize,
}

impl TimerQueue {
    /// Creates a queue whose buffers take up to `limit_bytes`, including unused ones.
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            fifo: VecDeque::with_capacity(EXPECTED),
            heap: BinaryHeap::with_capacity(EXPECTED),
            pool: Pool::new(limit_bytes),
            sequence: 0,
            by_sender_bytes: 0,
        }
    }

    /// Returns the number of waiting frames.
    pub fn len(&self) -> usize {
        self.fifo.len() + self.heap.len()
    }

    /// Returns whether no frame waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies a frame into the queue; `by_sender`: its sender holds it back, so a share of the limit applies.
    ///
    /// # Errors
    /// [`Full`] if the limit does not permit it, or if it is longer than 128 KiB.
    pub fn push(&mut self, departure_ns: u64, bytes: &[u8], by_sender: bool) -> Result<(), Full> {
        let frame = self.store(bytes, by_sender)?;
        self.insert(departure_ns, frame);
        Ok(())
    }

    /// Copies a frame into a buffer, to be inserted later.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn store(&mut self, bytes: &[u8], by_sender: bool) -> Result<Frame, Full> {
        let by_senders = self.by_sender_bytes + Pool::size(bytes.len());
        if by_sender && by_senders > self.pool.limit_bytes / BY_SENDER {
            return Err(Full);
        }
        let mut buffer = self.pool.take(bytes.len()).ok_or(Full)?;
        buffer[..bytes.len()].copy_from_slice(bytes);
        if by_sender {
            self.by_sender_bytes = by_senders;
        }
        Ok(Frame {
            departure_ns: 0,
            sequence: 0,
            buffer,
            len: bytes.len(),
            by_sender,
        })
    }

    /// Takes a stored frame, which departs then.
    pub fn insert(&mut self, departure_ns: u64, frame: Frame) {
        let frame = Frame {
            departure_ns,
            sequence: self.sequence,
            ..frame
        };
        self.sequence += 1;
        match self.fifo.back() {
            Some(last) if departure_ns < last.departure_ns => self.heap.push(Reverse(frame)),
            _ => self.fifo.push_back(frame),
        }
    }

    fn heap_first(&self) -> bool {
        match (self.fifo.front(), self.heap.peek()) {
            (Some(fifo), Some(Reverse(heap))) => heap < fifo,
            (None, heap) => heap.is_some(),
            (Some(_), None) => false,
        }
    }

    /// Returns when the next frame departs.
    pub fn next_ns(&self) -> Option<u64> {
        if self.heap_first() {
            self.heap.peek().map(|frame| frame.0.departure_ns)
        } else {
            self.fifo.front().map(|frame| frame.departure_ns)
        }
    }

    /// Returns the next frame if it departs at `now_ns` or before.
    pub fn pop_due(&mut self, now_ns: u64) -> Option<Frame> {
        if self.next_ns()? > now_ns {
            return None;
        }
        if self.heap_first() {
            self.heap.pop().map(|frame| frame.0)
        } else {
            self.fifo.pop_front()
        }
    }

    /// Takes back the buffer of a frame.
    pub fn recycle(&mut self, frame: Frame) {
        if frame.by_sender {
            self.by_sender_bytes -= frame.buffer.len();
        }
        self.pool.give(frame.buffer);
    }
}

/// Buffers by size, each a power of two.
#[derive(Debug)]
struct Pool {
    free: [Vec<Box<[u8]>>; SIZES],
    allocated_bytes: usize,
    limit_bytes: usize,
}

impl Pool {
    fn new(limit_bytes: usize) -> Self {
        Self {
            free: Default::default(),
            allocated_bytes: 0,
            limit_bytes,
        }
    }

    fn class(len: usize) -> usize {
        let shift = len.next_power_of_two().trailing_zeros();
        shift.saturating_sub(SMALLEST_SHIFT) as usize
    }

    fn size(len: usize) -> usize {
        1 << (Self::class(len) as u32 + SMALLEST_SHIFT)
    }

    fn take(&mut self, len: usize) -> Option<Box<[u8]>> {
        let class = Self::class(len);
        if let Some(buffer) = self.free.get_mut(class)?.pop() {
            return Some(buffer);
        }
        let size = Self::size(len);
        self.make_room(size);
        if self.allocated_bytes + size > self.limit_bytes {
            return None;
        }
        self.allocated_bytes += size;
        Some(vec![0; size].into_boxed_slice())
    }

    fn give(&mut self, buffer: Box<[u8]>) {
        if let Some(free) = self.free.get_mut(Self::class(buffer.len())) {
            free.push(buffer);
        }
    }

    /// Frees unused buffers of other sizes until one of this size fits. Only as many as that takes, the
    /// longest first: to free two million small ones at once held all frames for 40 to 80 ms.
    fn make_room(&mut self, size: usize) {
        for free in self.free.iter_mut().rev() {
            while self.allocated_bytes + size > self.limit_bytes {
                let Some(buffer) = free.pop() else { break };
                self.allocated_bytes -= buffer.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    fn drain(queue: &mut TimerQueue, now_ns: u64) -> Vec<(u64, Vec<u8>)> {
        let mut out = Vec::new();
        while let Some(frame) = queue.pop_due(now_ns) {
            out.push((frame.departure_ns, frame.bytes().to_vec()));
            queue.recycle(frame);
        }
        out
    }

    #[test]
    fn nothing_leaves_early() {
        let mut queue = TimerQueue::new(1 << 20);
        queue.push(10, b"a", false).unwrap();
        queue.push(5, b"b", false).unwrap();
        assert_eq!(queue.next_ns(), Some(5));
        assert!(queue.pop_due(4).is_none());
        assert_eq!(drain(&mut queue, 9), [(5, b"b".to_vec())]);
        assert_eq!(drain(&mut queue, 10), [(10, b"a".to_vec())]);
        assert!(queue.is_empty());
        assert_eq!(queue.next_ns(), None);
    }

    #[test]
    fn limit_counts_buffers_and_frees_those_of_other_sizes() {
        let mut queue = TimerQueue::new(4096);
        assert_eq!(queue.push(1, &[0; 2048], false), Ok(()));
        assert_eq!(queue.push(1, &[0; 2000], false), Ok(()));
        assert_eq!(queue.push(1, &[0; 1], false), Err(Full));
        assert_eq!(drain(&mut queue, 1).len(), 2);
        for _ in 0..32 {
            assert_eq!(queue.push(1, &[0; 128], false), Ok(()));
        }
        assert_eq!(queue.push(1, &[0; 128], false), Err(Full));
        assert_eq!(queue.len(), 32);
        let mut long = TimerQueue::new(1 << 20);
        assert_eq!(long.push(1, &vec![0; 1 << 17], false), Ok(()));
        assert_eq!(long.push(1, &vec![0; (1 << 17) + 1], false), Err(Full));
    }

    #[test]
    fn what_senders_hold_back_gets_a_share() {
        let mut queue = TimerQueue::new(4096);
        for round in 0..2 {
            assert_eq!(queue.push(9, &[0; 1000], true), Ok(()));
            assert_eq!(queue.push(9, &[0; 1], true), Err(Full));
            for _ in 0..3 {
                assert_eq!(queue.push(1, &[0; 1000], false), Ok(()));
            }
            assert_eq!(queue.push(1, &[0; 1], false), Err(Full), "{round}");
            assert_eq!(drain(&mut queue, 9).len(), 4);
        }
    }

    #[test]
    fn no_more_buffers_are_freed_than_needed() {
        let mut queue = TimerQueue::new(4096);
        for _ in 0..32 {
            queue.push(1, &[0; 128], false).unwrap();
        }
        drain(&mut queue, 1);
        queue.push(1, &[0; 200], false).unwrap();
        assert_eq!(queue.pool.free[0].len(), 30);
        assert_eq!(queue.pool.allocated_bytes, 4096);
    }

    #[test]
    fn no_allocation_in_steady_state() {
        let mut queue = TimerQueue::new(1 << 20);
        for round in 0..100u64 {
            queue.push(round, &[0; 1500], false).unwrap();
            queue.push(round, &[0; 60], false).unwrap();
            drain(&mut queue, round);
        }
        assert_eq!(queue.pool.allocated_bytes, 2048 + 128);
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

        /// Compared with a stable sort: the same frames, by (departure, arrival).
        #[test]
        fn order_is_departure_then_arrival(
            frames in proptest::collection::vec((0u64..50, 0usize..300), 0..200),
            mut steps in proptest::collection::vec(0u64..60, 0..20),
        ) {
            let mut queue = TimerQueue::new(1 << 20);
            let mut expected = Vec::new();
            for (number, &(departure, len)) in frames.iter().enumerate() {
                let mut bytes = (number as u64).to_le_bytes().to_vec();
                bytes.resize(8 + len, number as u8);
                queue.push(departure, &bytes, false).unwrap();
                expected.push((departure, bytes));
            }
            expected.sort_by_key(|frame| frame.0);
            steps.sort();
            let mut got = Vec::new();
            for now in steps {
                for frame in drain(&mut queue, now) {
                    prop_assert!(frame.0 <= now);
                    got.push(frame);
                }
                prop_assert!(queue.next_ns().is_none_or(|next| next > now));
            }
            got.extend(drain(&mut queue, u64::MAX));
            prop_assert_eq!(got, expected);
        }

        /// Pushes and pops interleaved: each pop returns the smallest frame.
        #[test]
        fn interleaved(ops in proptest::collection::vec((0u64..100, any::<bool>()), 0..300)) {
            let mut queue = TimerQueue::new(1 << 20);
            let mut model: Vec<(u64, u64)> = Vec::new();
            for (number, (departure, push)) in ops.into_iter().enumerate() {
                if push {
                    queue.push(departure, &(number as u64).to_le_bytes(), false).unwrap();
                    model.push((departure, number as u64));
                } else {
                    model.sort();
                    let want = model.first().copied().filter(|first| first.0 <= departure);
                    let got = queue.pop_due(departure).map(|frame| {
                        let number = u64::from_le_bytes(frame.bytes().try_into().unwrap());
                        (frame.departure_ns, number)
                    });
                    prop_assert_eq!(got, want);
                    model.retain(|entry| Some(*entry) != want);
                }
                prop_assert_eq!(queue.len(), model.len());
            }
        }
    }
}
