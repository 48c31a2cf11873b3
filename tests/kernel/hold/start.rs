// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starting in the background, with a shell instead of the holder.

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::process::Command;
use std::time::Duration;

use emud::datapath::engine::hold::HoldError;
use emud::datapath::engine::hold::spawn::spawn;

const TIMEOUT: Duration = Duration::from_secs(10);

/// `PIPE` in the script is the ready pipe.
fn shell(script: &str) -> impl FnOnce(RawFd) -> Command {
    let script = script.to_owned();
    move |ready| {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            &script.replace("PIPE", &format!("/proc/self/fd/{ready}")),
        ]);
        command
    }
}

#[test]
fn ready() {
    let mut child = spawn(shell(r"printf '\000' > PIPE; exec sleep 60"), &[], TIMEOUT).unwrap();
    assert!(child.try_wait().unwrap().is_none(), "it must go on running");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn refused_with_its_words() {
    let error = spawn(
        shell(r"printf '\115no such map\n' > PIPE; exit 77"),
        &[],
        TIMEOUT,
    );
    let error = error.unwrap_err();
    assert_eq!(error.exit_code(), 77);
    assert_eq!(error.to_string(), "cannot start the holder: no such map");
}

#[test]
fn died_without_a_word() {
    let error = spawn(shell("exit 3"), &[], TIMEOUT).unwrap_err();
    assert!(
        matches!(&error, HoldError::Died(status) if status.code() == Some(3)),
        "{error}"
    );
}

#[test]
fn not_ready_in_time() {
    let error = spawn(shell("exec sleep 60"), &[], Duration::from_millis(200)).unwrap_err();
    assert!(matches!(error, HoldError::NotReady(200)), "{error}");
}

/// Separate session, working directory /, no terminal, and no descriptors except those passed.
#[test]
fn detached_from_its_starter() {
    let (read, write) = rustix::pipe::pipe().unwrap();
    // Left open by the caller of emud: not close-on-exec.
    let (_foreign, foreign) = rustix::pipe::pipe().unwrap();
    let out = write.as_raw_fd();
    // For a redirected group of commands a shell keeps its old output under a number that it
    // selects, which may be that of the foreign one.
    let script = format!(
        r#"exec > /proc/$$/fd/{out}
        pwd; cut -d' ' -f6 /proc/$$/stat; echo $$; readlink /proc/$$/fd/0 /proc/$$/fd/2
        for fd in {out} {}; do [ -e /proc/$$/fd/$fd ] && echo open || echo closed; done
        printf '\000' > PIPE"#,
        foreign.as_raw_fd()
    );
    let mut child = spawn(shell(&script), &[write.as_fd()], TIMEOUT).unwrap();
    child.wait().unwrap();
    drop(write);
    let mut said = String::new();
    std::io::Read::read_to_string(&mut std::fs::File::from(read), &mut said).unwrap();
    let pid = child.id();
    assert_eq!(
        said,
        format!("/\n{pid}\n{pid}\n/dev/null\n/dev/null\nopen\nclosed\n")
    );
}
