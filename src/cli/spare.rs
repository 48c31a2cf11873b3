// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--spare`: traffic that passes untouched.

use std::io::ErrorKind;

use emud::host::ssh;
use emud::profile::{Connection, Profile, Spare};

use super::Failure;
use super::failure::EX_USAGE;

/// No such session.
const EX_NOINPUT: u8 = 66;

/// Adds what was given to a profile, whose `up` is what the interface sends.
pub fn apply(profile: &mut Profile, given: &[String]) -> Result<(), Failure> {
    for one in given {
        if one != "ssh" {
            let spare = one
                .parse()
                .map_err(|e: String| Failure::new(EX_USAGE, format!("--spare: {e}")))?;
            profile.spare(spare);
            continue;
        }
        let (local, remote) = ssh::session().map_err(|e| match e.kind() {
            ErrorKind::NotFound => Failure::new(EX_NOINPUT, format!("--spare ssh: {e}")),
            _ => Failure::os(format!("--spare ssh: cannot find the session: {e}")),
        })?;
        profile.spare(Spare::Connection(Connection { local, remote }));
    }
    Ok(())
}
