// SPDX-License-Identifier: MIT OR Apache-2.0
//! The failure of a verb: one sentence and an exit code from sysexits.h.

use std::io;

use emud::container::ContainerError;
use emud::convert::export::ExportError;
use emud::datapath::LinkError;
use emud::datapath::engine::hold::HoldError;
use emud::datapath::maps::DatapathError;
use emud::experiment::lab::LabError;
use emud::experiment::load::LoadError;
use emud::experiment::report::PageError;
use emud::experiment::reproduce::ReproduceError;
use emud::experiment::results::ResultsError;
use emud::experiment::run::RunError;
use emud::experiment::scenario::ScenarioError;
use emud::experiment::traffic::TrafficError;
use emud::fleet::FleetError;
use emud::monitor::session::{ObserveError, StartError};
use emud::netlink::NetlinkError;
use emud::packets::CaptureError;
use emud::profile::ProfileError;
use emud::verify::VerifyError;
use emud_monitor::MonitorError;

pub const EX_USAGE: u8 = 64;
pub const EX_NOUSER: u8 = 67;
pub const EX_NOHOST: u8 = 68;
pub const EX_UNAVAILABLE: u8 = 69;
pub const EX_OSERR: u8 = 71;
pub const EX_CANTCREAT: u8 = 73;
pub const EX_IOERR: u8 = 74;
pub const EX_TEMPFAIL: u8 = 75;
pub const EX_NOPERM: u8 = 77;

#[derive(Debug)]
pub struct Failure {
    pub code: u8,
    pub message: String,
}

impl Failure {
    pub fn new(code: u8, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    pub fn os(message: impl Into<String>) -> Self {
        Self::new(EX_OSERR, message)
    }
}

macro_rules! from_error {
    ($($error:ty),+) => {$(
        impl From<$error> for Failure {
            fn from(e: $error) -> Self {
                Self::new(e.exit_code(), e.to_string())
            }
        }
    )+};
}

from_error!(
    CaptureError,
    ContainerError,
    NetlinkError,
    ProfileError,
    StartError,
    LinkError,
    DatapathError,
    ExportError,
    FleetError,
    HoldError,
    LabError,
    LoadError,
    RunError,
    MonitorError,
    ObserveError,
    ScenarioError,
    PageError,
    ReproduceError,
    ResultsError,
    TrafficError,
    VerifyError
);

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        let code = if e.kind() == io::ErrorKind::PermissionDenied {
            EX_NOPERM
        } else {
            EX_OSERR
        };
        Self::new(code, e.to_string())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(e: serde_json::Error) -> Self {
        Self::os(e.to_string())
    }
}
