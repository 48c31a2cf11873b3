// SPDX-License-Identifier: MIT OR Apache-2.0
//! The location of the socket. The socket of a killed monitor stays in the folder: a socket without
//! a listener is removed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{process, thread};

use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, Stat, flock, fstat, open, statat, unlinkat,
};
use rustix::process::umask;
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::host::runtime;
use crate::monitor::session::ObserveError;

/// Each connection is checked for permission to report.
const MODE: u32 = 0o666;
const ROOT_MODE: u32 = 0o600;

/// A socket with a listener; removed when dropped.
#[derive(Debug)]
pub struct BoundSocket {
    /// Path of the socket.
    pub path: PathBuf,
    folder: OwnedFd,
    name: OsString,
    inode: u64,
    /// The listener exists as long as the name: otherwise another monitor would replace the socket,
    /// possibly with the same inode number.
    _listens: UnixListener,
}

impl Drop for BoundSocket {
    fn drop(&mut self) {
        let ours = stat(&self.folder, &self.name).is_ok_and(|stat| stat.st_ino == self.inode);
        if ours {
            // On failure the next monitor removes it.
            let _ = unlinkat(&self.folder, &self.name, AtFlags::empty());
        }
    }
}

/// Listens at `asked`, or in `folder` at monitor.sock, or at monitor-PID.sock if a running monitor
/// uses that.
///
/// # Errors
/// [`ObserveError::Taken`] only for `asked`; [`ObserveError::Listen`].
pub fn place(
    asked: Option<&Path>,
    folder: &Path,
) -> Result<(BoundSocket, UnixListener), ObserveError> {
    if let Some(path) = asked {
        return listen(path, MODE)?.ok_or_else(|| ObserveError::Taken(path.to_owned()));
    }
    let _lock = own(folder, 0o755)?;
    if let Some(place) = listen(&folder.join("monitor.sock"), MODE)? {
        return Ok(place);
    }
    let path = folder.join(format!("monitor-{}.sock", process::id()));
    listen(&path, MODE)?.ok_or(ObserveError::Taken(path))
}

/// Ending of the names of root's sockets if `--socket` separates a monitor from others: holders
/// report to it, `emud alarm` without `--socket` does not.
const APART: &str = ".apart.sock";

/// Listens in a folder that only root can enter; `apart`: the monitor was started with `--socket`.
///
/// # Errors
/// [`ObserveError::Listen`].
pub fn root_place(folder: &Path, apart: bool) -> Result<(BoundSocket, UnixListener), ObserveError> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let _lock = own(folder, 0o700)?;
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let end = if apart { APART } else { ".sock" };
    let path = folder.join(format!("monitor-{}-{number}{end}", process::id()));
    listen(&path, ROOT_MODE)?.ok_or(ObserveError::Taken(path))
}

/// Creates the folder, removes what killed monitors left in it, and locks it while sockets are
/// bound but have no listener yet.
fn own(folder: &Path, mode: u32) -> Result<File, ObserveError> {
    let locked = || {
        runtime::folder(folder, mode)?;
        let lock = File::options()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(folder.join("lock"))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        remove_stale(folder)?;
        Ok(lock)
    };
    locked().map_err(|error| failed(folder, error))
}

fn failed(at: &Path, error: io::Error) -> ObserveError {
    ObserveError::Listen {
        at: at.display().to_string(),
        error,
    }
}

/// Returns `None` if another process listens there.
fn listen(path: &Path, mode: u32) -> Result<Option<(BoundSocket, UnixListener)>, ObserveError> {
    let try_it = || -> io::Result<Option<(BoundSocket, UnixListener)>> {
        let name = path.file_name().ok_or(ErrorKind::InvalidInput)?.to_owned();
        let folder = parent(path)?;
        let listener = match bind(&folder, &name, mode) {
            Err(e) if e.kind() == ErrorKind::AddrInUse => {
                if !is_stale(&folder, &name)? {
                    return Ok(None);
                }
                unlinkat(&folder, &name, AtFlags::empty())?;
                bind(&folder, &name, mode)?
            }
            bound => bound?,
        };
        let inode = stat(&folder, &name)?.st_ino;
        let place = BoundSocket {
            path: path.to_owned(),
            folder,
            name,
            inode,
            _listens: listener.try_clone()?,
        };
        Ok(Some((place, listener)))
    };
    try_it().map_err(|error| failed(path, error))
}

/// Opens the folder of a path, independent of later changes of the path. A folder in which other
/// users can replace files is rejected.
fn parent(path: &Path) -> io::Result<OwnedFd> {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = open(parent.unwrap_or(Path::new(".")), flags, Mode::empty())?;
    let mode = fstat(&folder)?.st_mode;
    if mode & 0o022 != 0 && mode & 0o1000 == 0 {
        let what = "other users can replace files in this folder (run chmod go-w, or use a different folder)";
        return Err(io::Error::new(ErrorKind::PermissionDenied, what));
    }
    Ok(folder)
}

/// Creates the socket with this mode: a later change by path could affect a file that the owner of
/// the folder has put there. The umask is that of a separate thread.
fn bind(folder: &OwnedFd, name: &OsStr, mode: u32) -> io::Result<UnixListener> {
    let path = within(folder, name);
    let bind = move || {
        // SAFETY: root, working directory and umask are no longer shared with other threads.
        unsafe { unshare_unsafe(UnshareFlags::FS) }?;
        umask(Mode::from_raw_mode(0o777 & !mode));
        UnixListener::bind(path)
    };
    match thread::scope(|scope| scope.spawn(bind).join()) {
        Ok(bound) => bound,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Returns a path to the file in this folder.
fn within(folder: &OwnedFd, name: &OsStr) -> PathBuf {
    Path::new("/proc/self/fd")
        .join(folder.as_raw_fd().to_string())
        .join(name)
}

fn stat(folder: &OwnedFd, name: &OsStr) -> io::Result<Stat> {
    Ok(statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Returns whether the socket has no listener.
///
/// # Errors
/// It is not a socket.
fn is_stale(folder: &OwnedFd, name: &OsStr) -> io::Result<bool> {
    let mode = stat(folder, name)?.st_mode;
    if FileType::from_raw_mode(mode) != FileType::Socket {
        return Err(ErrorKind::AlreadyExists.into());
    }
    match UnixStream::connect(within(folder, name)) {
        Err(e) => Ok(e.kind() == ErrorKind::ConnectionRefused),
        Ok(_) => Ok(false),
    }
}

fn remove_stale(folder: &Path) -> io::Result<()> {
    for path in sockets(folder)? {
        let folder = parent(&path)?;
        let name = path.file_name().unwrap_or_default();
        if is_stale(&folder, name).unwrap_or(false) {
            unlinkat(&folder, name, AtFlags::empty())?;
        }
    }
    Ok(())
}

/// Returns whether the monitor at this socket only gets messages that name its socket.
pub fn is_apart(path: &Path) -> bool {
    path.to_string_lossy().ends_with(APART)
}

/// Returns the sockets of monitors in a folder, sorted by name; none if there is no folder.
///
/// # Errors
/// The folder cannot be read.
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
    use std::fs::Permissions;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    use std::sync::atomic::AtomicBool;

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("emud-socket-{}-{name}", process::id());
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
    fn roots_sockets_are_its_own() {
        let folder = Folder::new("root");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let [first, second] = [false, true].map(|apart| root_place(&folder.0, apart).unwrap());
        assert_eq!(
            [&first, &second].map(|one| is_apart(&one.0.path)),
            [false, true]
        );
        assert_eq!(names(&folder).len(), 2);
        assert_eq!(mode(&folder.0), 0o700);
        assert_eq!(mode(&first.0.path), 0o600);
        drop((first, second));
        assert!(names(&folder).is_empty());
    }

    /// The owner of a folder can replace the socket, but cannot change the mode of another file
    /// with it.
    #[test]
    fn a_folder_of_others_is_refused_and_no_path_is_followed() {
        let folder = Folder::new("others");
        fs::create_dir(&folder.0).unwrap();
        let path = folder.0.join("own.sock");
        for (mode, good) in [
            (0o777, false),
            (0o775, false),
            (0o1777, true),
            (0o755, true),
        ] {
            fs::set_permissions(&folder.0, Permissions::from_mode(mode)).unwrap();
            let placed = place(Some(&path), &folder.0);
            assert_eq!(placed.is_ok(), good, "{mode:o}: {placed:?}");
            let code = placed.err().map(|e| e.exit_code());
            assert_eq!(code, (!good).then_some(77), "{mode:o}");
        }
        // Replaced in between: the new file does not belong to emud and stays.
        let (ours, _listener) = place(Some(&path), &folder.0).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "a file of another user").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        drop(ours);
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    /// The owner of the folder puts a link to another file in place of the socket, as soon as it is
    /// there: the mode of that file stays.
    #[test]
    fn a_link_in_place_of_the_socket_changes_no_mode() {
        const ROUNDS: u32 = 500;
        let folder = Folder::new("raced");
        fs::create_dir(&folder.0).unwrap();
        let [path, secret, link] = ["own.sock", "secret", "link"].map(|name| folder.0.join(name));
        fs::write(&secret, "").unwrap();
        fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
        let [waits, done] = [false; 2].map(AtomicBool::new);
        let exchange = || {
            let is_socket = || fs::symlink_metadata(&path).is_ok_and(|m| m.file_type().is_socket());
            while !done.load(Ordering::Relaxed) {
                symlink(&secret, &link).unwrap();
                waits.store(true, Ordering::Relaxed);
                while !is_socket() && !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                waits.store(false, Ordering::Relaxed);
                fs::rename(&link, &path).unwrap();
            }
        };
        let stays = |_| {
            let _ = fs::remove_file(&path);
            while !waits.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            // Fails if the link is there first.
            let _placed = place(Some(&path), &folder.0);
            fs::metadata(&secret).unwrap().permissions().mode() & 0o777 == 0o600
        };
        let stayed = thread::scope(|scope| {
            scope.spawn(exchange);
            let stayed = (0..ROUNDS).all(stays);
            done.store(true, Ordering::Relaxed);
            stayed
        });
        assert!(stayed);
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
        let folder = Folder::new("requested");
        fs::create_dir(&folder.0).unwrap();
        let path = folder.0.join("own.sock");
        drop(UnixListener::bind(&path).unwrap());
        let first = place(Some(&path), &folder.0).unwrap();
        assert!(matches!(
            place(Some(&path), &folder.0),
            Err(ObserveError::Taken(_))
        ));
        drop(first);
        fs::write(&path, "a file of another user").unwrap();
        assert!(matches!(
            place(Some(&path), &folder.0),
            Err(ObserveError::Listen { .. })
        ));
        assert_eq!(fs::read_to_string(&path).unwrap(), "a file of another user");
    }
}
