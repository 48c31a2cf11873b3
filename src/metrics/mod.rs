// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics for Prometheus and others: the text of both formats, the server, and the families of
//! emulated links and of stations. The monitor's own families are in `monitor::session`.

mod families;
pub mod links;
mod recent;
mod sampling;
mod server;
mod stations;
mod text;

pub use sampling::{Sampling, checked_once};
pub use server::{Source, serve};
pub use stations::{Media, MediumSource};
pub use text::{Format, accepted, exposition, registry};
