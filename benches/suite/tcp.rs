// SPDX-License-Identifier: GPL-2.0-only

use crate::Suite;

pub fn run(suite: &mut Suite) {
    suite.results.miss("to be written");
}
