// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder /run/emud: sockets of monitors and locks.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags, fstat, open};
use rustix::process::geteuid;

/// Where programs report unless a different folder is given.
pub const FOLDER: &str = "/run/emud";
/// Where only root can report, as the holders of emulated links do.
pub const ROOT_FOLDER: &str = "/run/emud/root";

/// Returns the user who called sudo, if any.
pub fn invoking_user() -> Option<u32> {
    std::env::var("SUDO_UID").ok()?.parse().ok()
}

/// Bits of a mode that let users other than the owner change a file or folder.
const OTHERS_WRITE: u32 = 0o022;

/// Opens a folder that only root (or the user of this process) can change. Creates it and its
/// parents if necessary.
///
/// # Errors
/// `PermissionDenied` if it belongs to another user or others can write to it.
pub fn folder(path: &Path, mode: u32) -> io::Result<OwnedFd> {
    if let Some(above) = path.parent() {
        fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(mode).create(path) {
        // Independent of the umask of the first caller.
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(mode))?,
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
        Err(e) => return Err(e),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = open(path, flags, Mode::empty())?;
    only_ours(&folder, OTHERS_WRITE)
        .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
    Ok(folder)
}

/// Checks the owner and mode of a file.
///
/// # Errors
/// `PermissionDenied`: the file belongs to another user, or its mode has one of these bits.
pub fn only_ours(file: &OwnedFd, forbidden: u32) -> io::Result<()> {
    let stat = fstat(file)?;
    let ours = stat.st_uid == 0 || stat.st_uid == geteuid().as_raw();
    if ours && stat.st_mode & forbidden == 0 {
        return Ok(());
    }
    let what = format!(
        "other users can change it (owner {}, mode {:o})",
        stat.st_uid,
        stat.st_mode & 0o7777
    );
    Err(io::Error::new(ErrorKind::PermissionDenied, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_others_can_change_is_refused() {
        let name = format!("emud-runtime-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        folder(&path, 0o700).unwrap();
        assert_eq!(mode(), 0o700);
        fs::set_permissions(&path, Permissions::from_mode(0o777)).unwrap();
        let refused = folder(&path, 0o700).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
        assert!(refused.to_string().contains("mode 777"), "{refused}");
        fs::remove_dir(&path).unwrap();
        std::os::unix::fs::symlink("/", &path).unwrap();
        assert!(folder(&path, 0o700).is_err());
        fs::remove_file(&path).unwrap();
    }
}
