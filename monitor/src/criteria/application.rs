// SPDX-License-Identifier: MIT OR Apache-2.0
//! Contention that programs under test report: always on, without a threshold.

use super::Watch;
use super::table::{Key, Usual, Values, table};
use crate::abi::emud_alarm;
use crate::terms::{Scope, Unit};

table! {
    /// Contention that programs under test report.
    #[derive(Copy)]
    Application = "application", On;
}

impl Watch for Application {
    /// Returns a scope that is never used: only user space raises this alarm.
    fn scope(_: &emud_alarm, _: &[String]) -> (Scope, Unit) {
        let name = String::new();
        (Scope::Application { name }, Unit::None)
    }

    fn words(scope: &Scope) -> Option<[String; 2]> {
        match scope {
            Scope::Application { name } => Some([name.clone(), name.clone()]),
            _ => None,
        }
    }
}
