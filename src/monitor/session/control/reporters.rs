// SPDX-License-Identifier: MIT OR Apache-2.0
//! The users whose connections the control socket accepts.

use emud_monitor::config::Reporters;
use rustix::process::geteuid;

/// The users that may report.
#[derive(Debug, Clone)]
pub struct Allowed {
    everyone: bool,
    /// Users in addition to root and the user of this process.
    users: Vec<u32>,
}

impl Default for Allowed {
    fn default() -> Self {
        Self::new(Reporters::Root, vec![])
    }
}

impl Allowed {
    /// Creates the list. `users`: the user who called sudo, and the user of the programs under test.
    pub fn new(reporters: Reporters, users: Vec<u32>) -> Self {
        Self {
            everyone: reporters == Reporters::All,
            users: match reporters {
                Reporters::Own => users,
                Reporters::Root | Reporters::All => vec![],
            },
        }
    }

    /// Returns whether the user with this number may report.
    pub fn has(&self, uid: u32) -> bool {
        self.everyone || trusted(uid) || self.users.contains(&uid)
    }
}

/// Returns whether a user may reset the limits and report for the emulator.
pub fn trusted(uid: u32) -> bool {
    uid == 0 || uid == geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_and_the_user_of_the_run_by_default() {
        let of = |reporters, users: &[u32]| {
            [0, 1000, 1001].map(|uid| Allowed::new(reporters, users.to_vec()).has(uid))
        };
        assert_eq!(of(Reporters::Own, &[1000]), [true, true, false]);
        assert_eq!(of(Reporters::Own, &[]), [true, false, false]);
        assert_eq!(of(Reporters::Root, &[1000]), [true, false, false]);
        assert_eq!(of(Reporters::All, &[]), [true; 3]);
    }
}
