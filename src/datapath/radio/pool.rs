// SPDX-License-Identifier: MIT OR Apache-2.0
//! The frames on their way, each known by a number. Memory is kept for later frames.

#[derive(Debug, Default)]
pub(super) struct Pool {
    frames: Vec<Vec<u8>>,
    free: Vec<u32>,
}

impl Pool {
    /// Keeps a frame and returns its number.
    pub fn keep(&mut self, frame: &[u8]) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.frames.push(Vec::new());
            self.frames.len() as u32 - 1
        });
        let kept = &mut self.frames[number as usize];
        kept.clear();
        kept.extend_from_slice(frame);
        number
    }

    pub fn get(&self, number: u32) -> &[u8] {
        &self.frames[number as usize]
    }

    pub fn release(&mut self, number: u32) {
        self.free.push(number);
    }
}
