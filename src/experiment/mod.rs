// SPDX-License-Identifier: MIT OR Apache-2.0
//! Networks of namespaces, programs in them, and the evaluation of their logs.

pub mod lab;
pub mod load;
pub mod report;
pub mod reproduce;
pub mod results;
pub mod run;
pub mod scenario;
pub mod traffic;
