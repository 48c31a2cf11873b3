// SPDX-License-Identifier: MIT OR Apache-2.0
//! A malicious local user without any rights.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// The user `nobody`.
pub const UID: u32 = 65534;

/// A process of that user, ended with the value.
pub struct Nobody(Child);

/// A command of that user's, in the network namespace of the calling thread.
pub fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .current_dir("/")
        // Drops supplementary groups, too.
        .uid(UID)
        .gid(UID);
    command
}

impl Nobody {
    /// Runs Python and waits until the script has run to its end; then the process stays, with
    /// everything that the script has opened.
    pub fn does(script: &str) -> Self {
        let script = format!("{script}\nprint('done', flush=True)\nimport time\ntime.sleep(600)");
        let mut child = command("python3")
            .args(["-c", &script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3");
        let mut line = String::new();
        let out = child.stdout.take().expect("its output");
        BufReader::new(out).read_line(&mut line).expect("its line");
        let nobody = Self(child);
        assert_eq!(line, "done\n", "the attacker failed: {script}");
        nobody
    }
}

impl Drop for Nobody {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
