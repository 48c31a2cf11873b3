// SPDX-License-Identifier: MIT OR Apache-2.0
//! `rate` of a medium: a rate of its radio, or how stations choose one.

use crate::medium::air::RateControl;
use crate::profile::kinds::BitRate;
use crate::text::{Kind, Located, Mistake, Value};

/// The rate of unicast data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RateChoice {
    /// bit/s.
    Fixed(u64),
    Arf,
    Ideal,
    Minstrel,
}

impl RateChoice {
    pub fn control(self) -> RateControl {
        match self {
            Self::Fixed(_) => RateControl::Fixed,
            Self::Arf => RateControl::Arf,
            Self::Ideal => RateControl::Ideal,
            Self::Minstrel => RateControl::Minstrel,
        }
    }

    pub fn bits(self) -> Option<u64> {
        match self {
            Self::Fixed(bits) => Some(bits),
            Self::Arf | Self::Ideal | Self::Minstrel => None,
        }
    }
}

pub(crate) struct RateKind;

impl Kind for RateKind {
    type Value = RateChoice;

    fn read(value: &Located<Value>, key: &str) -> Result<RateChoice, Mistake> {
        match &value.value {
            Value::Text(text) if text == "arf" => Ok(RateChoice::Arf),
            Value::Text(text) if text == "ideal" => Ok(RateChoice::Ideal),
            Value::Text(text) if text == "minstrel" => Ok(RateChoice::Minstrel),
            Value::Text(text) if text.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                let title = format!("there is no rate control `{text}`");
                let help = "write a rate of the radio, such as \"11Mbit\", or \"arf\", \"ideal\", or \
                            \"minstrel\"";
                Err(Mistake::new(&value.at, title, help))
            }
            _ => BitRate::read(value, key).map(RateChoice::Fixed),
        }
    }

    fn text(choice: &RateChoice) -> String {
        match choice {
            RateChoice::Fixed(bits) => BitRate::text(bits),
            RateChoice::Arf => "\"arf\"".to_owned(),
            RateChoice::Ideal => "\"ideal\"".to_owned(),
            RateChoice::Minstrel => "\"minstrel\"".to_owned(),
        }
    }
}
