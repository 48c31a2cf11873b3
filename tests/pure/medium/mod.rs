// SPDX-License-Identifier: MIT OR Apache-2.0
//! The shared medium, in virtual time: against the analyses of 802.11, and rule by rule.
//!
//! Every run is the same on every machine: chance is a hash of the seed. Durations are such that
//! the standard error of a figure is below a third of its tolerance.

mod aggregates;
mod arf;
mod bianchi;
mod chain;
mod cost;
mod cyprus;
mod digest;
mod edca;
mod grid;
mod hidden;
mod import;
mod minstrel;
mod motion;
mod one_sender;
mod queues;
mod random;
mod replay;
mod rules;
mod segment;
mod shares;
mod tcp;
mod traffic;
