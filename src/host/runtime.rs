// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder /run/emud: sockets of monitors and locks.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, fchmod, fstat, mkdirat, open, openat};
use rustix::io::Errno;
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
/// In a folder with this bit, users can rename and delete only their files.
const STICKY: u32 = 0o1000;

/// Opens a folder that only root (or the user of this process) can change or replace. Creates it if
/// necessary, and the folders above it with mode 755.
///
/// # Errors
/// `PermissionDenied` if it or the folder above it belongs to another user, or others can write to
/// it; for [`FOLDER`] and what is in it, unless this is root.
pub fn folder(path: &Path, mode: u32) -> io::Result<OwnedFd> {
    // Every user can write to a /run that was mounted without a mode, and a folder of a user there
    // would keep root from having one.
    if path.starts_with(FOLDER) && !geteuid().is_root() {
        return Err(Errno::ACCESS.into());
    }
    let parts = path.parent().zip(path.file_name());
    let (above, name) = parts.ok_or(ErrorKind::InvalidInput)?;
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = match open(above, flags | OFlags::PATH, Mode::empty()) {
        Err(Errno::NOENT) => folder(above, 0o755)?,
        opened => opened?,
    };
    let forbidden = match fstat(&parent)?.st_mode & STICKY {
        0 => OTHERS_WRITE,
        _ => 0,
    };
    let at = |path: &Path, e: io::Error| {
        let what = format!("{}: {e}", path.display());
        io::Error::new(e.kind(), what)
    };
    only_ours(&parent, forbidden).map_err(|e| at(above, e))?;
    let mode = Mode::from_raw_mode(mode);
    let is_new = match mkdirat(&parent, name, mode) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(e) => return Err(e.into()),
    };
    let folder = openat(&parent, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
    if is_new {
        // Independent of the umask of the first caller.
        fchmod(&folder, mode)?;
    }
    only_ours(&folder, OTHERS_WRITE).map_err(|e| at(path, e))?;
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
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::thread;

    use rustix::process::umask;
    use rustix::thread::{UnshareFlags, unshare_unsafe};

    use super::*;

    fn unique(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("emud-runtime-{name}-{}", std::process::id()))
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_folder_that_others_can_change_is_refused() {
        let path = unique("changed");
        folder(&path, 0o700).unwrap();
        assert_eq!(mode(&path), 0o700);
        fs::set_permissions(&path, Permissions::from_mode(0o777)).unwrap();
        let refused = folder(&path, 0o700).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
        assert!(refused.to_string().contains("mode 777"), "{refused}");
        fs::remove_dir(&path).unwrap();
        std::os::unix::fs::symlink("/", &path).unwrap();
        assert!(folder(&path, 0o700).is_err());
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_folder_that_others_can_replace_is_refused() {
        let above = unique("replaced");
        fs::create_dir(&above).unwrap();
        for (bits, good) in [
            (0o777, false),
            (0o775, false),
            (0o1777, true),
            (0o755, true),
        ] {
            fs::set_permissions(&above, Permissions::from_mode(bits)).unwrap();
            let opened = folder(&above.join("root"), 0o700);
            assert_eq!(opened.is_ok(), good, "{bits:o}: {opened:?}");
        }
        fs::remove_dir_all(&above).unwrap();
    }

    /// The first emud of a boot creates both folders, and may have been started by any shell.
    #[test]
    fn no_umask_changes_a_mode() {
        let above = unique("umask");
        let path = above.join("root");
        for bits in [0o000, 0o002, 0o022, 0o077] {
            let create = || {
                // SAFETY: this thread alone uses what it unshares.
                unsafe { unshare_unsafe(UnshareFlags::FS) }.unwrap();
                umask(Mode::from_raw_mode(bits));
                folder(&path, 0o700).map(drop)
            };
            let created = thread::scope(|scope| scope.spawn(create).join().unwrap());
            let modes = [&above, &path].map(|path| mode(path));
            assert_eq!(modes, [0o755, 0o700], "{bits:o}");
            created.unwrap();
            fs::remove_dir_all(&above).unwrap();
        }
    }
}
