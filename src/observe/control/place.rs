// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the socket is. A socket of a killed monitor stays in the folder: one that nobody
//! listens to is removed.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process;

use rustix::fs::{FlockOperation, flock};

use crate::observe::ObserveError;

/// Where sockets are without `--socket`.
pub const FOLDER: &str = "/run/emud";
/// Whoever may run a program under test may report; only root may do more.
const MODE: u32 = 0o666;

/// A socket that is listened to; removed when dropped.
#[derive(Debug)]
pub struct Place {
    pub path: PathBuf,
    inode: u64,
    /// As long as the name is there somebody listens: another monitor would take its place, perhaps
    /// with the inode number of this one.
    _listens: UnixListener,
}

impl Drop for Place {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path).is_ok_and(|meta| meta.ino() == self.inode);
        if ours {
            // Else the next monitor removes it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens at `asked`, or in `folder` at monitor.sock, or, if that belongs to a monitor that
/// runs, at monitor-PID.sock.
///
/// # Errors
/// [`ObserveError::Taken`] only for `asked`; [`ObserveError::Listen`].
pub fn place(asked: Option<&Path>, folder: &Path) -> Result<(Place, UnixListener), ObserveError> {
    if let Some(path) = asked {
        return listen(path)?.ok_or_else(|| ObserveError::Taken(path.to_owned()));
    }
    let failed = |error| ObserveError::Listen {
        at: folder.display().to_string(),
        error,
    };
    let _lock = own(folder).map_err(failed)?;
    remove_stale(folder).map_err(failed)?;
    if let Some(place) = listen(&folder.join("monitor.sock"))? {
        return Ok(place);
    }
    let path = folder.join(format!("monitor-{}.sock", process::id()));
    listen(&path)?.ok_or(ObserveError::Taken(path))
}

/// Makes the folder, and keeps other monitors from looking at sockets that are bound but not
/// listened to yet.
fn own(folder: &Path) -> io::Result<File> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(folder)?;
    let lock = File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(folder.join("lock"))?;
    flock(&lock, FlockOperation::LockExclusive)?;
    Ok(lock)
}

/// `None`: somebody listens there already.
fn listen(path: &Path) -> Result<Option<(Place, UnixListener)>, ObserveError> {
    let try_it = || -> io::Result<Option<(Place, UnixListener)>> {
        let listener = match UnixListener::bind(path) {
            Err(e) if e.kind() == ErrorKind::AddrInUse => {
                if !is_stale(path)? {
                    return Ok(None);
                }
                fs::remove_file(path)?;
                UnixListener::bind(path)?
            }
            bound => bound?,
        };
        fs::set_permissions(path, Permissions::from_mode(MODE))?;
        let inode = fs::symlink_metadata(path)?.ino();
        let place = Place {
            path: path.to_owned(),
            inode,
            _listens: listener.try_clone()?,
        };
        Ok(Some((place, listener)))
    };
    try_it().map_err(|error| ObserveError::Listen {
        at: path.display().to_string(),
        error,
    })
}

/// Nobody listens to this socket.
///
/// # Errors
/// It is something else.
fn is_stale(path: &Path) -> io::Result<bool> {
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    match UnixStream::connect(path) {
        Err(e) => Ok(e.kind() == ErrorKind::ConnectionRefused),
        Ok(_) => Ok(false),
    }
}

fn remove_stale(folder: &Path) -> io::Result<()> {
    for path in sockets(folder)? {
        if is_stale(&path).unwrap_or(false) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// The sockets of monitors in a folder, in the order of their names; none without a folder.
///
/// # Errors
/// It cannot be read.
pub fn sockets(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(vec![]),
        entries => entries?,
    };
    let mut paths = vec![];
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("monitor") && name.ends_with(".sock") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("emud-place-{}-{name}", process::id());
            Self(std::env::temp_dir().join(name))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn names(folder: &Folder) -> Vec<String> {
        let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        sockets(&folder.0).unwrap().iter().map(name).collect()
    }

    #[test]
    fn the_second_monitor_has_a_name_of_its_own() {
        let folder = Folder::new("second");
        let first = place(None, &folder.0).unwrap();
        let second = place(None, &folder.0).unwrap();
        let own = format!("monitor-{}.sock", process::id());
        assert_eq!(names(&folder), [own.as_str(), "monitor.sock"]);
        let mode = fs::metadata(&first.0.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o666);
        drop((first, second));
        assert!(names(&folder).is_empty());
    }

    #[test]
    fn what_a_killed_monitor_left_is_removed() {
        let folder = Folder::new("stale");
        fs::create_dir(&folder.0).unwrap();
        for name in ["monitor.sock", "monitor-1.sock"] {
            drop(UnixListener::bind(folder.0.join(name)).unwrap());
        }
        fs::write(folder.0.join("monitor-notes.sock"), "").unwrap();
        let _first = place(None, &folder.0).unwrap();
        assert_eq!(names(&folder), ["monitor-notes.sock", "monitor.sock"]);
    }

    #[test]
    fn a_path_that_is_asked_for_is_never_exchanged() {
        let folder = Folder::new("asked");
        fs::create_dir(&folder.0).unwrap();
        let path = folder.0.join("own.sock");
        drop(UnixListener::bind(&path).unwrap());
        let first = place(Some(&path), &folder.0).unwrap();
        assert!(matches!(
            place(Some(&path), &folder.0),
            Err(ObserveError::Taken(_))
        ));
        drop(first);
        fs::write(&path, "a file of somebody").unwrap();
        assert!(matches!(
            place(Some(&path), &folder.0),
            Err(ObserveError::Listen { .. })
        ));
        assert_eq!(fs::read_to_string(&path).unwrap(), "a file of somebody");
    }
}
