// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user that programs run as: emud gives them none of root's rights.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{io, ptr, thread};

use rustix::fs::{
    CWD, FileType, Mode, OFlags, ResolveFlags, fchown, fstat, ftruncate, openat, openat2,
};
use rustix::io::Errno;
use rustix::process::{Gid, Uid, dumpable_behavior, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

/// How the names of variables begin in which sudo reports its caller; sudo does not start the programs.
const OF_SUDO: &[u8] = b"SUDO_";
/// Maximum length of an entry of the user database.
const ENTRY: usize = 64 * 1024;
/// Maximum number of groups; further groups are ignored.
const GROUPS: usize = 65536;

/// A user of this machine, not root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Name for messages; the number of a user without an entry.
    pub name: String,
    /// Number of the user.
    pub uid: Uid,
    /// Number of the user's group.
    pub gid: Gid,
    /// Supplementary groups.
    groups: Vec<Gid>,
    home: PathBuf,
    /// The login shell.
    pub shell: PathBuf,
}

impl User {
    /// Returns a user by name; `None` for root.
    ///
    /// # Errors
    /// NotFound: there is no such user.
    pub fn named(name: &str) -> io::Result<Option<Self>> {
        let text = CString::new(name)?;
        let entry = Entry::find(|entry, buffer, found| {
            // SAFETY: all of them outlive the call.
            unsafe {
                let (text, len) = (text.as_ptr(), buffer.len());
                libc::getpwnam_r(text, entry, buffer.as_mut_ptr().cast(), len, found)
            }
        })?;
        let entry = entry.ok_or(io::ErrorKind::NotFound)?;
        let gid = entry.gid;
        entry.user(gid).transpose()
    }

    /// Returns the user who called emud through sudo; `None` without sudo, or for root.
    ///
    /// # Errors
    /// The variables of sudo are not numbers.
    pub fn invoking() -> io::Result<Option<Self>> {
        let of = |name: &str| {
            let Some(text) = std::env::var_os(name) else {
                return Ok(None);
            };
            // The highest number means "no change".
            let number = text.to_str().and_then(|text| text.parse().ok());
            let number = number.filter(|number| *number != u32::MAX);
            let problem = || io::Error::other(format!("{name} is {text:?}, not a number"));
            number.ok_or_else(problem).map(Some)
        };
        let Some(uid) = of("SUDO_UID")? else {
            return Ok(None);
        };
        let missing = || io::Error::other("SUDO_UID is set, and SUDO_GID is not");
        let gid = of("SUDO_GID")?.ok_or_else(missing)?;
        let entry = Entry::find(|entry, buffer, found| {
            // SAFETY: all of them outlive the call.
            unsafe { libc::getpwuid_r(uid, entry, buffer.as_mut_ptr().cast(), buffer.len(), found) }
        })?;
        let unknown = || Entry {
            name: uid.to_string().into(),
            uid,
            gid,
            home: "/".into(),
            shell: "/bin/sh".into(),
        };
        entry.unwrap_or_else(unknown).user(gid).transpose()
    }

    /// Creates or empties a file as this user, so that a link in a folder of the user does not make
    /// root write to another file or give that away. Where the user may not write, root creates it
    /// and gives it to the user, if no part of the path is a link, and it was not there or is
    /// the user's.
    ///
    /// # Errors
    /// The kernel returns an error.
    pub fn create(&self, path: &Path) -> io::Result<File> {
        self.open(path, OFlags::TRUNC)
    }

    /// Opens a file to append to, which is not emptied, otherwise as [`Self::create`].
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn append(&self, path: &Path) -> io::Result<File> {
        self.open(path, OFlags::APPEND)
    }

    fn open(&self, path: &Path, how: OFlags) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | how;
        let own = || {
            let mode = Mode::from_raw_mode(0o666);
            Ok(openat(CWD, path, flags | OFlags::CREATE, mode)?.into())
        };
        let by_root = || {
            // Not emptied before it is known to be the user's.
            let flags = flags - OFlags::TRUNC;
            let open = |new| {
                let flags = flags | new;
                let mode = Mode::from_raw_mode(0o644);
                openat2(CWD, path, flags, mode, ResolveFlags::NO_SYMLINKS)
            };
            match open(OFlags::CREATE | OFlags::EXCL) {
                Err(Errno::EXIST) => {}
                new => {
                    let new = new?;
                    self.own(&new)?;
                    return Ok(new.into());
                }
            }
            let file = open(OFlags::empty())?;
            let stat = fstat(&file)?;
            if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
                // Another name of the file may be one that the user cannot write to.
                if stat.st_nlink > 1 || stat.st_uid != self.uid.as_raw() {
                    return Err(io::ErrorKind::PermissionDenied.into());
                }
                if how.contains(OFlags::TRUNC) {
                    ftruncate(&file, 0)?;
                }
            }
            Ok(file.into())
        };
        self.or_root(own, by_root)
    }

    /// Does something as this user; where the user may not, root does it by other means, which must
    /// follow no link.
    ///
    /// # Errors
    /// Neither may, or can.
    pub fn or_root<T: Send>(
        &self,
        own: impl FnOnce() -> io::Result<T> + Send,
        by_root: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        match self.does(own).and_then(|done| done) {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {}
            done => return done,
        }
        by_root().map_err(|e| match e.raw_os_error() {
            Some(libc::ELOOP) => io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!(
                    "{} may not write there, and root follows no link",
                    self.name
                ),
            ),
            _ => e,
        })
    }

    /// Does something with the rights of this user, in a separate thread.
    ///
    /// # Errors
    /// The thread cannot become this user, or it panicked.
    pub fn does<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        // Another user makes the process one that others of this user cannot inspect.
        let dumpable = dumpable_behavior()?;
        // The kernel has the user of each thread; only the C library changes all of them.
        let done = thread::scope(|scope| {
            let thread = scope.spawn(|| {
                set_thread_groups(&self.groups)?;
                set_thread_res_gid(self.gid, self.gid, self.gid)?;
                set_thread_res_uid(self.uid, self.uid, self.uid)?;
                Ok(work())
            });
            thread.join()
        });
        set_dumpable_behavior(dumpable)?;
        done.unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
    }

    /// Gives a file or folder that root created to this user.
    pub fn own(&self, file: impl AsFd) -> io::Result<()> {
        Ok(fchown(file, Some(self.uid), Some(self.gid))?)
    }

    /// Makes `command` run as this user, without capabilities, and without a method to gain any.
    pub fn runs(&self, command: &mut Command) {
        let names = std::env::vars_os().map(|(name, _)| name);
        for name in names.filter(|name| name.as_bytes().starts_with(OF_SUDO)) {
            command.env_remove(name);
        }
        command
            .env("USER", &self.name)
            .env("LOGNAME", &self.name)
            .env("HOME", &self.home)
            .env("SHELL", &self.shell);
        let (uid, gid, groups) = (self.uid, self.gid, self.groups.clone());
        // SAFETY: system calls only.
        unsafe { command.pre_exec(move || become_user(uid, gid, &groups)) };
    }
}

/// Runs in the new process, which belongs to root.
fn become_user(uid: Uid, gid: Gid, groups: &[Gid]) -> io::Result<()> {
    // A program may reopen its output: /dev/stderr.
    for output in [libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: every program is started with both.
        own(unsafe { BorrowedFd::borrow_raw(output) }, uid, gid)?;
    }
    set_thread_groups(groups)?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    let none = CapabilitySet::empty();
    let none = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    set_capabilities(None, none)?;
    // The bounding set stays: without cap_net_raw in it, the kernel returns EPERM for starting
    // ping, whose file has that capability. With no_new_privs the file's capabilities are not
    // granted.
    Ok(set_no_new_privs(true)?)
}

/// Changes the owner of a pipe or terminal that was created for the program, and of nothing else.
fn own(output: BorrowedFd<'_>, uid: Uid, gid: Gid) -> io::Result<()> {
    let kind = FileType::from_raw_mode(fstat(output)?.st_mode);
    if kind == FileType::Fifo || rustix::termios::isatty(output) {
        fchown(output, Some(uid), Some(gid))?;
    }
    Ok(())
}

/// An entry of the user database.
struct Entry {
    name: OsString,
    uid: u32,
    gid: u32,
    home: OsString,
    shell: OsString,
}

impl Entry {
    /// Returns `None` if there is no entry.
    fn find(
        ask: impl FnOnce(*mut libc::passwd, &mut [u8], *mut *mut libc::passwd) -> i32,
    ) -> io::Result<Option<Self>> {
        let mut entry = MaybeUninit::uninit();
        let mut buffer = vec![0; ENTRY];
        let mut found = ptr::null_mut();
        match ask(entry.as_mut_ptr(), &mut buffer, &raw mut found) {
            0 if found.is_null() => Ok(None),
            0 => {
                // SAFETY: it was found, so it is filled in; its texts are in the buffer.
                let entry: libc::passwd = unsafe { entry.assume_init() };
                // SAFETY: as above.
                let text = |text| unsafe { CStr::from_ptr(text) }.to_bytes().to_vec();
                let text = |of| OsString::from_vec(text(of));
                let shell = text(entry.pw_shell);
                Ok(Some(Self {
                    name: text(entry.pw_name),
                    uid: entry.pw_uid,
                    gid: entry.pw_gid,
                    home: text(entry.pw_dir),
                    shell: match shell.is_empty() {
                        true => "/bin/sh".into(),
                        false => shell,
                    },
                }))
            }
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Returns `None` for root.
    fn user(self, gid: u32) -> Option<io::Result<User>> {
        let Self { uid, .. } = self;
        (uid != 0).then(|| {
            Ok(User {
                groups: groups(&self.name, gid)?,
                name: self.name.to_string_lossy().into_owned(),
                uid: Uid::from_raw(uid),
                gid: Gid::from_raw(gid),
                home: self.home.into(),
                shell: self.shell.into(),
            })
        })
    }
}

fn groups(name: &OsStr, gid: u32) -> io::Result<Vec<Gid>> {
    let name = CString::new(name.as_bytes())?;
    let mut groups: Vec<libc::gid_t> = vec![0; GROUPS];
    let mut count = groups.len() as i32;
    // SAFETY: there is room for `count`.
    unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &raw mut count) };
    groups.truncate(usize::try_from(count).unwrap_or(0));
    Ok(groups.into_iter().map(Gid::from_raw).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name() {
        assert_eq!(User::named("root").unwrap(), None);
        let nobody = User::named("nobody").unwrap().unwrap();
        assert_ne!(nobody.uid, Uid::ROOT);
        assert!(nobody.groups.contains(&nobody.gid), "{nobody:?}");
        let missing = User::named("no such user").unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
