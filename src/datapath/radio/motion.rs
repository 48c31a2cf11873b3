// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the signals between moving stations of a medium, ahead of time.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use super::record::{LEAD_NS, STEP_NS, Setting};
use crate::host::now_ns;
use crate::medium::phy::Matrix;

/// How positions get to the thread.
#[derive(Debug)]
pub(super) struct Motion {
    pub(super) setting: Setting,
    pub(super) start_ns: u64,
    pub(super) steps: Sender<Step>,
}

/// The matrix of signals from an instant of virtual time on.
pub(super) struct Step {
    pub(super) at_ns: u64,
    pub(super) step: u64,
    pub(super) matrix: Arc<Matrix>,
}

impl Motion {
    /// Hands over each step before its time.
    pub(super) fn run(&self, origin_ns: u64) {
        for step in 1..=self.setting.last_step() {
            let due_ns = origin_ns + step * STEP_NS;
            let matrix = self.setting.matrix(step);
            let ahead_ns = due_ns.saturating_sub(LEAD_NS).saturating_sub(now_ns());
            thread::sleep(Duration::from_nanos(ahead_ns));
            let at_ns = due_ns.saturating_sub(self.start_ns);
            if self
                .steps
                .send(Step {
                    at_ns,
                    step,
                    matrix,
                })
                .is_err()
            {
                return;
            }
        }
    }
}
