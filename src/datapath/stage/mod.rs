// SPDX-License-Identifier: MIT OR Apache-2.0
//! A link of a profile to the figures that the classifier runs.

pub(crate) mod alter;
pub mod aqm;
pub(crate) mod background;
pub mod compile;
pub(crate) mod delay;
pub(crate) mod direction;
pub mod features;
pub(crate) mod fixed;
pub(crate) mod loss;
pub(crate) mod queueing;
pub(crate) mod rate;
pub mod service;
pub(crate) mod shapes;
pub(crate) mod short;
pub mod sizes;
pub(crate) mod slot;
pub mod timeline;
