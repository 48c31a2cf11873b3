// SPDX-License-Identifier: MIT OR Apache-2.0
//! What programs under test report of themselves: always on, without a threshold.

use super::Watch;
use super::table::{Key, Usual, Values, table};
use crate::abi::emud_alarm;
use crate::event::{Scope, Unit};

table! {
    /// What programs under test report of themselves.
    #[derive(Copy)]
    Application = "application", On;
}

impl Watch for Application {
    /// No program of the kernel raises it.
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
