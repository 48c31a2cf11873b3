// SPDX-License-Identifier: MIT OR Apache-2.0
//! The server of real queues, in virtual time.

mod bands;
mod bounds;
mod fairness;
mod in_kernel;
mod managers;
mod orders;
mod published;
mod random;
mod reference;
mod traffic;
mod verified;
