// SPDX-License-Identifier: MIT OR Apache-2.0
//! Details that the errors of the BPF library do not have in their first sentence.

use std::error::Error;
use std::io;
use std::iter::successors;

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |&error| error.source())
}

/// Returns whether the kernel denied permission: this is not root, or root of another user namespace.
pub fn is_denied(error: &(dyn Error + 'static)) -> bool {
    chain(error)
        .filter_map(|error| error.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// Formats an error with its causes.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    for error in chain(error) {
        let cause = error.to_string();
        // Many errors include their cause in their message.
        if !text.contains(&cause) {
            text = match text.as_str() {
                "" => cause,
                known => format!("{known}: {cause}"),
            };
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("no map")]
    struct NoMap(#[source] io::Error);

    #[test]
    fn the_cause_counts() {
        let of = |errno| NoMap(io::Error::from_raw_os_error(errno));
        assert!(is_denied(&of(libc::EPERM)) && is_denied(&of(libc::EACCES)));
        assert!(!is_denied(&of(libc::ENOMEM)));
        let text = with_causes(&of(libc::EPERM));
        assert_eq!(text, "no map: Operation not permitted (os error 1)");
        assert_eq!(with_causes(&io::Error::other("x")), "x");
    }
}
