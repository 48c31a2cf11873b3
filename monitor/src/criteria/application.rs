// SPDX-License-Identifier: MIT OR Apache-2.0
//! What programs under test report of themselves: always on, without a threshold.

use super::table::{Key, Table, Values};
use super::{Attempt, GroupBy, Settings, Watch};
use crate::abi::emud_alarm;
use crate::event::{Scope, Unit};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Application;

impl Table for Application {
    const NAME: &'static str = "application";
    const KEYS: &'static [Key] = &[];

    fn read(_: &Values) -> Option<Self> {
        Some(Self)
    }

    fn write(&self) -> Values {
        Values::default()
    }

    fn usual() -> Values {
        Values::default()
    }
}

impl Watch for Application {

    fn set(&self, _: &mut Settings) -> Result<(), String> {
        Ok(())
    }

    fn hooks(&self, _: GroupBy) -> Vec<Attempt> {
        vec![]
    }

    /// No program of the kernel raises it.
    fn scope(_: &emud_alarm, _: &[String]) -> (Scope, Unit) {
        (Scope::Application { name: String::new() }, Unit::None)
    }

    fn words(scope: &Scope) -> Option<[String; 2]> {
        let Scope::Application { name } = scope else {
            return None;
        };
        Some([name.clone(), name.clone()])
    }
}
