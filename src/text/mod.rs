// SPDX-License-Identifier: MIT OR Apache-2.0
//! User input: TOML with the position of every value, quantities with units, and messages about
//! mistakes.

#![deny(missing_docs)]

mod blank;
mod columns;
mod count;
mod date;
mod error;
mod keys;
mod mistake;
mod printable;
pub mod quantity;
mod reader;
mod shipped;
mod stderr;
mod table;
pub(crate) mod units;
mod value;
mod word;

pub use columns::columns;
pub use count::count;
pub use error::{MAX_BYTES, TextError, read_text};
pub use mistake::{Mistake, Mistakes};
pub use printable::{printable, printable_json};
pub use shipped::Shipped;
pub use stderr::to_stderr;
pub use units::{Nanoseconds, Percent, Rate, Size, Time, UnitError};
pub use word::Word;
pub(crate) use word::words;

pub(crate) use blank::behind_blank;
pub(crate) use date::{date_ns, to_the_second};
pub(crate) use error::{read_file, read_up_to, utf8, utf8_up_to};
pub(crate) use keys::{Section, Vocabulary, sections};
pub(crate) use mistake::{At, Located, Source, clipped};
pub(crate) use reader::{Reader, duration, number, one_of, quantity, word};
pub(crate) use shipped::{is_file, shipped, shipped_text};
pub(crate) use table::{Draft, Given, Kind, braced, is_none, kinds, plain, row, table};
pub(crate) use units::{Distance, Span, closest};
pub(crate) use value::{Entry, Value, document, toml_value};
