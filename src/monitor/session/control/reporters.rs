// SPDX-License-Identifier: MIT OR Apache-2.0
//! The users whose connections the control socket accepts.

use emud_monitor::config::Reporters;
use rustix::process::geteuid;

/// The users that may report.
#[derive(Debug, Clone)]
pub struct Allowed {
    everyone: bool,
    /// A user in addition to root and the user of this process.
    user: Option<u32>,
}

impl Default for Allowed {
    fn default() -> Self {
        Self::new(Reporters::Root, None)
    }
}

impl Allowed {
    /// `user` is the user of the programs under test.
    pub fn new(reporters: Reporters, user: Option<u32>) -> Self {
        Self {
            everyone: reporters == Reporters::All,
            user: user.filter(|_| reporters == Reporters::Own),
        }
    }

    /// Returns whether the user with this number may report.
    pub fn has(&self, uid: u32) -> bool {
        self.everyone || trusted(uid) || self.user == Some(uid)
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
        let of =
            |reporters, user| [0, 1000, 1001].map(|uid| Allowed::new(reporters, user).has(uid));
        assert_eq!(of(Reporters::Own, Some(1000)), [true, true, false]);
        assert_eq!(of(Reporters::Own, None), [true, false, false]);
        assert_eq!(of(Reporters::Root, Some(1000)), [true, false, false]);
        assert_eq!(of(Reporters::All, None), [true; 3]);
    }
}
