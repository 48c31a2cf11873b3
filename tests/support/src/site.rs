// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where loads run: namespaces with wires, cgroups, swap, slow disks. All of it is deleted with the
//! value.

use std::ffi::CString;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::lab::{run, sh, wait_until};
use crate::load::Load;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A unique name; tests/sweep.sh deletes what has it when this process is no more.
pub fn unique(what: &str) -> String {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("emudtest-{}-{number}-{what}", std::process::id())
}

/// A file or folder of this test, in a folder that is deleted with it.
pub struct Scratch(pub PathBuf);

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Scratch {
    pub fn new() -> Self {
        let path = std::env::temp_dir().join(unique("files"));
        fs::create_dir_all(&path).expect("make a folder");
        Self(path)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A network namespace with devices whose frames end in another one, unread.
pub struct Wires {
    pub netns: String,
    far: String,
    devices: Vec<String>,
}

impl Wires {
    /// Veths of these names.
    pub fn new(devices: &[&str]) -> Self {
        let mut wires = Self::empty();
        for device in devices {
            wires.veth(device);
        }
        wires.devices = devices.iter().map(|&s| s.to_owned()).collect();
        wires
    }

    /// A device that stands for hardware: a dummy if the kernel has one, otherwise a veth.
    pub fn external(device: &str) -> Self {
        let mut wires = Self::empty();
        let dummy = format!("ip link add {device} netns {} type dummy", wires.netns);
        if run(Command::new("sh").args(["-c", &dummy])).code == 0 {
            quiet_up(&wires.netns, device);
        } else {
            wires.veth(device);
        }
        wires.devices = vec![device.to_owned()];
        wires
    }

    fn empty() -> Self {
        let (netns, far) = (unique("near"), unique("far"));
        sh(&format!("ip netns add {netns}; ip netns add {far}"));
        Self {
            netns,
            far,
            devices: vec![],
        }
    }

    fn veth(&self, device: &str) {
        let (near, far) = (&self.netns, &self.far);
        sh(&format!(
            "ip link add {device} netns {near} type veth peer name {device} netns {far}"
        ));
        quiet_up(near, device);
        quiet_up(far, device);
    }

    /// A load that sends on all the devices.
    pub fn load(&self, options: &[(&str, &str)]) -> Load {
        let devices = self.devices.join(",");
        let mut all = vec![("netns", self.netns.as_str()), ("devices", &devices)];
        all.extend(options);
        Load::start("network", &all)
    }
}

impl Drop for Wires {
    fn drop(&mut self) {
        for netns in [&self.netns, &self.far] {
            let _ = Command::new("ip").args(["netns", "del", netns]).status();
        }
    }
}

/// Up, and silent by itself.
fn quiet_up(netns: &str, device: &str) {
    sh(&format!(
        "ip netns exec {netns} sh -c 'echo 1 >/proc/sys/net/ipv6/conf/{device}/disable_ipv6'
         ip -n {netns} link set dev {device} up"
    ));
}

/// The devices of this machine with hardware behind them, which no test sends on.
pub fn real_devices() -> Vec<String> {
    names("/sys/class/net")
        .into_iter()
        .filter(|name| Path::new(&format!("/sys/class/net/{name}/device")).exists())
        .collect()
}

/// The block devices that this machine may be using.
pub fn real_disks() -> Vec<String> {
    names("/sys/block")
        .into_iter()
        .filter(|name| {
            !["loop", "zram", "nullb", "emudtest"]
                .iter()
                .any(|kind| name.starts_with(kind))
        })
        .collect()
}

fn names(folder: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return vec![];
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect()
}

/// Options for `emud monitor` that exclude other load here from a measurement.
pub fn others_ignored() -> Vec<String> {
    let devices = real_devices();
    let disks = real_disks();
    let classes = devices
        .iter()
        .flat_map(|name| ["--class".to_owned(), format!("{name}=ignored")]);
    let disks = disks
        .iter()
        .flat_map(|name| ["--disk".to_owned(), format!("{name}=ignored")]);
    classes.chain(disks).collect()
}

/// A cgroup in every hierarchy that accepts processes freely.
pub struct Group {
    pub name: String,
    folders: Vec<PathBuf>,
}

impl Group {
    pub fn new(what: &str) -> Self {
        let name = unique(what);
        let folders: Vec<PathBuf> = hierarchies()
            .into_iter()
            .map(|root| root.join(&name))
            .collect();
        assert!(!folders.is_empty(), "no cgroup hierarchy is mounted");
        for folder in &folders {
            fs::create_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        }
        Self { name, folders }
    }

    /// Its folders, as a load takes them.
    pub fn folders(&self) -> String {
        let folders: Vec<_> = self
            .folders
            .iter()
            .map(|folder| folder.display().to_string())
            .collect();
        folders.join(",")
    }

    /// A group within it.
    pub fn below(&self, name: &str) -> Self {
        let folders: Vec<PathBuf> = self
            .folders
            .iter()
            .map(|folder| folder.join(name))
            .collect();
        for folder in &folders {
            fs::create_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        }
        let name = format!("{}/{name}", self.name);
        Self { name, folders }
    }

    /// Lines by which a shell enters it.
    pub fn enter(&self) -> String {
        let one = |folder: &PathBuf| format!("echo $$ >{}/cgroup.procs\n", folder.display());
        self.folders.iter().map(one).collect()
    }

    /// CPU weight against other groups, in hundredths; cgroup v1 and v2.
    pub fn cpu_weight(&self, weight: u64) {
        let v1 = (weight * 1024 / 100).to_string();
        self.set(&[("cpu.shares", &v1), ("cpu.weight", &weight.to_string())]);
    }

    /// Bytes of memory; cgroup v1 and v2.
    pub fn memory_limit(&self, bytes: u64) {
        let bytes = bytes.to_string();
        self.set(&[("memory.limit_in_bytes", &bytes), ("memory.max", &bytes)]);
    }

    /// Sets the one of these that exists.
    fn set(&self, settings: &[(&str, &str)]) {
        let mut done = 0;
        for folder in &self.folders {
            for (name, value) in settings {
                let file = folder.join(name);
                if file.exists() {
                    fs::write(&file, value).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
                    done += 1;
                }
            }
        }
        assert_eq!(done, 1, "{settings:?}: the controller is in one hierarchy");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in &self.folders {
            // The last process may still be ending.
            for _ in 0..100 {
                if fs::remove_dir(folder).is_ok() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

/// Where cgroups can be created. Version 1's cpuset requires a set-up before a process may enter.
pub fn hierarchies() -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").expect("/proc/self/mounts");
    let roots: Vec<(PathBuf, bool)> = mounts
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let v2 = fields[2] == "cgroup2";
            let wanted = v2 || fields[2] == "cgroup" && !fields[3].contains("cpuset");
            wanted.then(|| (PathBuf::from(fields[1]), v2))
        })
        .collect();
    for (root, _) in roots.iter().filter(|(_, v2)| *v2) {
        for controller in ["cpu", "memory", "io"] {
            // Those that are version 1's on this machine are rejected.
            let _ = fs::write(
                root.join("cgroup.subtree_control"),
                format!("+{controller}"),
            );
        }
    }
    roots.into_iter().map(|(root, _)| root).collect()
}

/// A compressed memory disk.
pub struct MemoryDisk {
    number: String,
    /// Says whose it is, for tests/sweep.sh.
    mark: PathBuf,
}

impl MemoryDisk {
    pub fn new(mib: u64) -> Self {
        let _ = Command::new("modprobe").args(["-q", "zram"]).status();
        let number = fs::read_to_string("/sys/class/zram-control/hot_add")
            .expect("zram")
            .trim()
            .to_owned();
        let mark = Path::new("/run").join(unique(&format!("zram{number}")));
        fs::write(&mark, "").expect("a file");
        let disk = Self { number, mark };
        sh(&format!("echo {mib}M >/sys/block/{}/disksize", disk.name()));
        disk
    }

    /// As the kernel names it.
    pub fn name(&self) -> String {
        format!("zram{}", self.number)
    }

    pub fn path(&self) -> String {
        format!("/dev/{}", self.name())
    }
}

impl Drop for MemoryDisk {
    fn drop(&mut self) {
        let number = &self.number;
        // Another process may have it open.
        for _ in 0..100 {
            if fs::write("/sys/class/zram-control/hot_remove", number).is_ok() {
                let _ = fs::remove_file(&self.mark);
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Swap on one.
pub struct Swap(MemoryDisk);

impl Swap {
    pub fn new(mib: u64) -> Self {
        let swap = Self(MemoryDisk::new(mib));
        sh(&format!("mkswap {} >/dev/null", swap.0.path()));
        let path = swap.c_path();
        // SAFETY: the path outlives the call.
        let done = unsafe { libc::swapon(path.as_ptr(), 0) };
        assert_eq!(done, 0, "swapon: {}", std::io::Error::last_os_error());
        swap
    }

    /// The device's.
    pub fn name(&self) -> String {
        self.0.name()
    }

    fn c_path(&self) -> CString {
        CString::new(self.0.path()).expect("no NUL")
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        let path = self.c_path();
        // SAFETY: the path outlives the call.
        unsafe { libc::swapoff(path.as_ptr()) };
    }
}

/// A block device that is slow for a read, and may take forever.
pub enum SlowDisk {
    /// A loop device over a file that the test serves.
    Loop {
        server: Option<Load>,
        name: String,
        file: String,
        _folder: Scratch,
    },
    /// The kernel's null_blk, whose requests end by a timer; each one for itself.
    Null { folder: PathBuf, name: String },
}

impl SlowDisk {
    pub fn new(delay: Duration) -> Self {
        Self::with_two(delay, delay)
    }

    /// If supported, the second half of the disk has a different speed.
    pub fn with_two(delay: Duration, second: Duration) -> Self {
        if Self::is_null() {
            Self::null(delay)
        } else {
            Self::slow_loop(delay, second)
        }
    }

    /// Whether null_blk is what this kernel has.
    pub fn is_null() -> bool {
        let load = "modprobe -q configfs; modprobe -q null_blk nr_devices=0
                    mount -t configfs configfs /sys/kernel/config 2>/dev/null
                    test -d /sys/kernel/config/nullb";
        run(Command::new("sh").args(["-c", load])).code == 0
    }

    fn null(delay: Duration) -> Self {
        let name = unique("null");
        let folder = Path::new("/sys/kernel/config/nullb").join(&name);
        fs::create_dir(&folder).expect("a null_blk device");
        let before = names("/sys/block");
        // Ended by a timer, more requests than there are readers, no memory behind.
        for (setting, value) in [
            ("size", "64".to_owned()),
            ("irqmode", "2".to_owned()),
            ("queue_mode", "2".to_owned()),
            ("hw_queue_depth", "64".to_owned()),
            ("memory_backed", "0".to_owned()),
            ("completion_nsec", delay.as_nanos().to_string()),
            ("power", "1".to_owned()),
        ] {
            let file = folder.join(setting);
            fs::write(&file, value).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        }
        let name = names("/sys/block")
            .into_iter()
            .find(|name| !before.contains(name))
            .expect("the device");
        wait_until("the device is there", Duration::from_secs(5), || {
            Path::new(&format!("/dev/{name}")).exists()
        });
        Self::Null { folder, name }
    }

    fn slow_loop(delay: Duration, second: Duration) -> Self {
        const SIZE: u64 = 64 << 20;
        let folder = Scratch::new();
        let file = folder.path("slow");
        fs::write(&file, "").expect("a file");
        let server = Load::start(
            "fuse",
            &[
                ("file", &file),
                ("size", &SIZE.to_string()),
                ("delay", &delay.as_nanos().to_string()),
                ("beyond", &(SIZE / 2).to_string()),
                ("delay-beyond", &second.as_nanos().to_string()),
            ],
        );
        let path = sh(&format!("losetup --find --show --read-only {file}"));
        Self::Loop {
            server: Some(server),
            name: path.trim().trim_start_matches("/dev/").to_owned(),
            file,
            _folder: folder,
        }
    }

    /// As the kernel names it.
    pub fn name(&self) -> &str {
        match self {
            Self::Loop { name, .. } | Self::Null { name, .. } => name,
        }
    }

    pub fn path(&self) -> String {
        format!("/dev/{}", self.name())
    }

    /// A load that reads from it.
    pub fn load(&self, options: &[(&str, &str)]) -> Load {
        let path = self.path();
        let mut all = vec![("file", path.as_str())];
        all.extend(options);
        Load::start("disk", &all)
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        match self {
            Self::Loop {
                server, name, file, ..
            } => {
                // Without its server the file fails all reads, which are then over.
                drop(server.take());
                let undo = format!("losetup --detach /dev/{name}; umount -l {file}");
                let _ = Command::new("sh").args(["-c", &undo]).status();
            }
            Self::Null { folder, .. } => {
                let _ = fs::write(folder.join("power"), "0");
                let _ = fs::remove_dir(folder);
            }
        }
    }
}
