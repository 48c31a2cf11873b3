// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user that programs run as, and the owner of their files.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Gid, Pid, Signal, kill_process};
use rustix::thread::set_thread_groups;

use support::lab::{emud_path, wait_until};
use support::runs::{Folder, Ran};

/// A user without rights on any system, who owns no file.
const NOBODY: u32 = 65534;

/// As sudo starts emud for that user.
fn by_sudo(folder: &Folder, words: &str, command: &[&str]) -> Ran {
    let mut emud = folder.command(words, command);
    of_sudo(&mut emud);
    folder.ran(&emud.output().unwrap())
}

fn of_sudo(emud: &mut Command) {
    emud.env("SUDO_UID", NOBODY.to_string())
        .env("SUDO_GID", NOBODY.to_string())
        .env("SUDO_USER", "nobody")
        .env("SUDO_HOME", "/nonexistent");
    // Root is in groups that the user is not in.
    let groups = || Ok(set_thread_groups(&[Gid::ROOT, Gid::from_raw(4)])?);
    // SAFETY: one system call.
    unsafe { emud.pre_exec(groups) };
}

/// A topology has no command that only root may run.
pub fn star() {
    let folder = Folder::new();
    let scenario = folder.file(
        "s.toml",
        "[topology]\nkind = \"star\"\n[topology.class.far]\npeers = 2\n\
         profile.link.delay = \"1ms\"\n\
         [node.far1]\ncommand = \"ping -n -q -c 3 -i 0.2 far2\"\n",
    );
    let ran = by_sudo(&folder, &format!("--scenario {scenario}"), &[]).expect(0);
    assert!(ran.out.contains("3 received"), "{}", ran.out);
}

/// Without any of root's rights, and without a method to gain one.
pub fn who_called_sudo() {
    let folder = Folder::new();
    let secret = folder.file("secret", "of root");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let scenario = folder.file(
        "s.toml",
        &format!(
            r#"
            [node.a]
            command = """
            id -u; id -g; id -G; echo user $USER $(env | grep -q ^SUDO_ || echo gone)
            grep -E '^(Cap...|NoNewPrivs):' /proc/self/status
            echo again > /dev/stderr
            echo mine > own
            ln -s {secret} link
            ping -n -q -c 2 -i 0.2 b && echo answered
            """
            artefacts = ["own", "/etc/hosts", "{secret}", "link"]
            clean-up = "echo cleaned by $(id -u)"
            [node.b]
            prepare = "echo prepared by $(id -u)"
            command = "echo $(id -u) > served; exec sleep 99"
            service = true
            ready = "test $(id -u) = {NOBODY} && test -f served"
            [link.w]
            between = ["a", "b"]
            "#
        ),
    );
    let ran = by_sudo(&folder, &format!("--scenario {scenario}"), &[]).expect(0);
    let said: Vec<&str> = (ran.out.lines())
        .filter_map(|line| line.strip_prefix("a| "))
        .collect();
    assert_eq!(said[..4], ["65534", "65534", "65534", "user nobody gone"]);
    for name in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        let none = format!("{name}:\t0000000000000000");
        assert!(said.contains(&none.as_str()), "{}", ran.out);
    }
    assert!(said.contains(&"NoNewPrivs:\t1"), "{}", ran.out);
    assert!(said.contains(&"answered"), "{}", ran.out);
    assert!(
        ran.err.lines().any(|line| line == "a| again"),
        "{}",
        ran.err
    );
    for line in ["b| prepared by 65534", "a| cleaned by 65534"] {
        assert!(ran.out.lines().any(|said| said == line), "{}", ran.out);
    }
    assert_eq!(ran.one("run")["user"], "nobody");
    assert!(ran.err.contains("programs run as nobody"), "{}", ran.err);
    let own = [
        "",
        ".artefacts",
        ".artefacts/a",
        ".artefacts/a/own",
        ".artefacts/a/hosts",
    ];
    for path in own.map(|path| folder.path(&format!("run.log{path}"))) {
        let file = fs::metadata(&path).unwrap();
        assert_eq!((file.uid(), file.gid()), (NOBODY, NOBODY), "{path}");
    }
    // emud copies no file that the user may not read.
    let refused = ran.of("artefact").filter(|line| line["stored"].is_null());
    assert_eq!(refused.count(), 2, "{ran:?}");
}

/// A link in a folder of the user does not make root write to another file, or give it away.
pub fn links_lead_nowhere() {
    // The log is read after each run.
    const OF_ROOT: &str = "[\"of root\"]\n";
    let folder = Folder::new();
    folder.file("p.toml", "[link]\ndelay = \"1ms\"\n");
    let secret = folder.file("secret", OF_ROOT);
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let theirs = folder.path("");
    std::os::unix::fs::chown(&theirs, Some(NOBODY), Some(NOBODY)).unwrap();
    let intact = || {
        assert_eq!(fs::read_to_string(&secret).unwrap(), OF_ROOT);
        assert_eq!(fs::metadata(&secret).unwrap().uid(), 0);
    };
    for (way, options) in [("run.log", ""), ("junit.xml", "--junit junit.xml")] {
        let link = folder.path(way);
        std::os::unix::fs::symlink(&secret, &link).unwrap();
        let options = format!("--profile ./p.toml {options}");
        let ran = by_sudo(&folder, &options, &["true"]).expect(73);
        assert!(ran.err.contains("cannot write"), "{}", ran.err);
        intact();
        fs::remove_file(&link).unwrap();
        fs::hard_link(&secret, &link).unwrap();
        by_sudo(&folder, &options, &["true"]).expect(73);
        intact();
        fs::remove_file(&link).unwrap();
        by_sudo(&folder, &options, &["true"]).expect(0);
        assert_eq!(fs::metadata(&link).unwrap().uid(), NOBODY);
    }
}

/// Neither does the log of a monitor, at its start or at SIGHUP, nor a recording.
pub fn monitors_follow_no_link() {
    const OF_ROOT: &str = "of root";
    let folder = Folder::new();
    let secret = folder.file("secret", OF_ROOT);
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::chown(folder.path(""), Some(NOBODY), Some(NOBODY)).unwrap();
    let start = |words: &str, file: &str| {
        let mut emud = Command::new(emud_path());
        emud.args(words.split(' ')).arg(file);
        of_sudo(&mut emud);
        let piped = emud
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        piped.spawn().unwrap()
    };
    for words in [
        "monitor --duration 2s --log",
        "monitor record --duration 200ms -o",
    ] {
        let [link, own] = ["link", "own"].map(|name| folder.path(name));
        std::os::unix::fs::symlink(&secret, &link).unwrap();
        let ended = start(words, &link).wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(73), "{ended:?}");
        assert_eq!(fs::read_to_string(&secret).unwrap(), OF_ROOT);
        fs::remove_file(&link).unwrap();

        let running = start(words, &own);
        wait_until("the file is there", Duration::from_secs(20), || {
            fs::metadata(&own).is_ok_and(|file| file.len() > 0)
        });
        assert_eq!(fs::metadata(&own).unwrap().uid(), NOBODY);
        if words.ends_with("--log") {
            fs::rename(&own, folder.path("moved")).unwrap();
            std::os::unix::fs::symlink(&secret, &own).unwrap();
            kill_process(Pid::from_child(&running), Signal::HUP).unwrap();
        }
        let ended = running.wait_with_output().unwrap();
        assert!(matches!(ended.status.code(), Some(0 | 3)), "{ended:?}");
        assert_eq!(fs::read_to_string(&secret).unwrap(), OF_ROOT);
        fs::remove_file(&own).unwrap();
    }
    let lines = fs::read_to_string(folder.path("moved")).unwrap();
    assert!(lines.contains("\"end\""), "{lines}");
}

/// A folder of root: of mode 0700, with one that others may enter in it, in which a file is.
fn locked(folder: &Folder) -> String {
    let locked = folder.path("locked");
    let inner = format!("{locked}/inner");
    fs::create_dir_all(&inner).unwrap();
    fs::write(format!("{inner}/secret"), "of root").unwrap();
    fs::set_permissions(locked, fs::Permissions::from_mode(0o700)).unwrap();
    inner
}

/// Neither are folders created through a link of the user, nor does a program begin behind one.
pub fn folders_lead_nowhere() {
    let folder = Folder::new();
    let inner = locked(&folder);
    let of_root = folder.path("of-root");
    fs::create_dir(&of_root).unwrap();
    let theirs = folder.path("theirs");
    fs::create_dir(&theirs).unwrap();
    std::os::unix::fs::chown(&theirs, Some(NOBODY), Some(NOBODY)).unwrap();
    std::os::unix::fs::symlink(&of_root, format!("{theirs}/link")).unwrap();
    let exchange = format!("rmdir ../b && ln -s {inner} ../b");
    let scenario = folder.file(
        "s.toml",
        &format!(
            "[node.a]\ncommand = \"{exchange}\"\n\
             [node.b]\ncommand = \"cat secret\"\nwaits-for = \"a\"\n\
             [link.w]\nbetween = [\"a\", \"b\"]\n"
        ),
    );
    for artefacts in ["link", "link/new"] {
        let words = format!("--scenario {scenario} --artefacts {theirs}/{artefacts}");
        let ran = by_sudo(&folder, &words, &[]).expect(73);
        assert!(ran.err.contains("root follows no link"), "{}", ran.err);
        assert!(fs::read_dir(&of_root).unwrap().next().is_none());
    }
    let words = format!("--scenario {scenario} --artefacts {theirs}/own");
    let ran = by_sudo(&folder, &words, &[]).expect(126);
    assert!(!ran.out.contains("of root"), "{}", ran.out);
}

/// What root may write, and the user may not, is not emptied and given to the user.
pub fn files_of_root_stay() {
    let folder = Folder::new();
    folder.file("p.toml", "[link]\ndelay = \"1ms\"\n");
    let log = folder.file("run.log", "[\"of root\"]\n");
    let ran = by_sudo(&folder, "--profile ./p.toml", &["true"]).expect(73);
    assert!(ran.err.contains("cannot write"), "{}", ran.err);
    assert_eq!(fs::read_to_string(&log).unwrap(), "[\"of root\"]\n");
    assert_eq!(fs::metadata(&log).unwrap().uid(), 0);
    // One that root created for the user before.
    fs::remove_file(log).unwrap();
    for _ in 0..2 {
        by_sudo(&folder, "--profile ./p.toml", &["true"]).expect(0);
    }
}

pub fn as_asked() {
    let folder = Folder::new();
    folder.file("p.toml", "[link]\ndelay = \"1ms\"\n");
    let id = ["sh", "-c", "id -u; id -G"];
    let profile = "--profile ./p.toml";
    let ran = by_sudo(&folder, &format!("{profile} --root"), &id).expect(0);
    assert!(ran.out.starts_with("0\n"), "{}", ran.out);
    assert_eq!(ran.one("run")["user"], serde_json::Value::Null);
    assert_eq!(fs::metadata(folder.path("run.log")).unwrap().uid(), NOBODY);
    let ran = folder.run(profile, &id).expect(0);
    assert!(ran.out.starts_with("0\n"), "{}", ran.out);
    fs::remove_file(folder.path("run.log")).unwrap();
    let ran = folder
        .run(&format!("{profile} --user nobody"), &id)
        .expect(0);
    assert_eq!(ran.out, "65534\n65534\n");
    // A log that its program could write would not be trustworthy.
    assert_eq!(fs::metadata(folder.path("run.log")).unwrap().uid(), 0);
    let words = format!("{profile} --user nobody -- sh -c 'tty; id -u >/dev/stderr'");
    let ran = folder.at_a_terminal(&words, "").expect(0);
    assert!(ran.out.contains("/dev/pts/"), "{}", ran.out);
    assert!(ran.out.contains("65534"), "{}", ran.out);
    folder
        .run(&format!("{profile} --user nobody --root"), &id)
        .expect(64);
    let ran = folder
        .run(&format!("{profile} --user no-such-user"), &id)
        .expect(67);
    assert!(ran.err.contains("no such user"), "{}", ran.err);
}

/// A node works without programs that run as root.
pub fn who_prepares() {
    let folder = Folder::new();
    let scenario = folder.file(
        "s.toml",
        "[node.a]\nprepare = \"echo 1 > /proc/sys/net/ipv4/ip_forward\"\n\
         command = \"id -u\"\n[node.b]\n[link.w]\nbetween = [\"a\", \"b\"]\n",
    );
    let words = format!("--scenario {scenario}");
    let ran = by_sudo(&folder, &words, &[]).expect(69);
    assert!(ran.err.contains("it ran as nobody"), "{}", ran.err);
    assert!(ran.err.contains("--root=prepare"), "{}", ran.err);
    let ran = by_sudo(&folder, &format!("{words} --root=prepare"), &[]).expect(0);
    assert!(ran.out.contains("a| 65534\n"), "{}", ran.out);
    let ran = by_sudo(&folder, &format!("{words} --root"), &[]).expect(0);
    assert!(ran.out.contains("a| 0\n"), "{}", ran.out);
}
