// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many links of stock netem: a leaf of HTB for each, selected by the destination.
//!
//! The best known configuration. The classes are all directly below the root and never short of
//! tokens, so HTB only selects. No packet passes more than one filter: u32 with hash tables of a
//! byte of the address each (256 is their maximum), flower with one mask, which is one hash table.
//! Everything is set up by one `tc -batch`. Majors of handles have 16 bits like minors, so each
//! leaf has an explicit one: the kernel finds only half of them by itself.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::time::Duration;

use super::router::destination;
use support::lab::{Lab, run, sh};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    U32,
    Flower,
}

/// Classids are 16 bits, with 0 and ffff in use.
pub const MOST: u32 = 0xfffe;

/// Runs commands of tc on `va`; returns how it failed, if it did.
fn batch(lab: &Lab, commands: &str, longest: Duration) -> Result<(), String> {
    let path = std::env::temp_dir().join(format!("{}.tc", lab.a));
    fs::write(&path, commands).expect("write commands");
    // By its path: `timeout` of busybox would use tc of busybox.
    let tc = sh("command -v tc");
    let said = run(Command::new("timeout")
        .arg(longest.as_secs().to_string())
        .args([tc.trim(), "-n", &lab.a, "-batch"])
        .arg(&path));
    let _ = fs::remove_file(&path);
    match said.code {
        0 => Ok(()),
        // busybox's process is tc itself by then, and ended by the signal.
        -1 | 124 => Err(format!("tc was not done after {longest:?}")),
        code => {
            let why: Vec<_> = said.err.lines().take(3).collect();
            Err(format!("tc ended with {code}: {}", why.join("; ")))
        }
    }
}

pub fn set_up(
    lab: &Lab,
    filter: Filter,
    delays_us: &[u32],
    longest: Duration,
) -> Result<(), String> {
    let mut text = "qdisc add dev va root handle 1: htb\n".to_owned();
    for (class, delay_us) in (1..).zip(delays_us) {
        writeln!(
            text,
            "class add dev va parent 1: classid 1:{class:x} htb rate 10gbit quantum 60000\n\
             {}",
            leaf("add", class, *delay_us)
        )
        .unwrap();
    }
    let links = delays_us.len() as u32;
    text += &match filter {
        Filter::U32 => u32_filters(links),
        Filter::Flower => flower_filters(links),
    };
    batch(lab, &text, longest)
}

/// Changes all delays.
pub fn change(lab: &Lab, delays_us: &[u32], longest: Duration) -> Result<(), String> {
    let lines = (1..)
        .zip(delays_us)
        .map(|(class, delay)| leaf("change", class, *delay));
    batch(lab, &lines.collect::<Vec<_>>().join("\n"), longest)
}

fn leaf(verb: &str, class: u32, delay_us: u32) -> String {
    let handle = class + 1;
    format!(
        "qdisc {verb} dev va parent 1:{class:x} handle {handle:x}: netem delay {delay_us}us limit 10000"
    )
}

/// A table by the third byte, which leads to one each by the fourth.
fn u32_filters(links: u32) -> String {
    const ADD: &str = "filter add dev va parent 1: prio 1 protocol ip";
    let tables = links.div_ceil(256);
    let mut text = String::new();
    for table in 0..tables {
        writeln!(text, "{ADD} handle {:x}: u32 divisor 256", table + 2).unwrap();
    }
    let (whole, hash) = (format!("{}/16", destination(0)), "hashkey mask");
    if tables == 1 {
        writeln!(
            text,
            "{ADD} u32 ht 800:: match ip dst {whole} {hash} 0xff at 16 link 2:"
        )
        .unwrap();
    } else {
        writeln!(
            text,
            "{ADD} handle 1: u32 divisor 256\n\
             {ADD} u32 ht 800:: match ip dst {whole} {hash} 0xff00 at 16 link 1:"
        )
        .unwrap();
    }
    for table in (0..tables).filter(|_| tables > 1) {
        let net = destination(256 * table);
        writeln!(
            text,
            "{ADD} u32 ht 1:{table:x}: match ip dst {net}/24 {hash} 0xff at 16 link {:x}:",
            table + 2
        )
        .unwrap();
    }
    for link in 0..links {
        let (table, slot, class) = (link / 256 + 2, link % 256, link + 1);
        writeln!(
            text,
            "{ADD} u32 ht {table:x}:{slot:x}: match ip dst {}/32 flowid 1:{class:x}",
            destination(link)
        )
        .unwrap();
    }
    text
}

fn flower_filters(links: u32) -> String {
    let line = |link| {
        format!(
            "filter add dev va parent 1: prio 1 protocol ip flower dst_ip {} classid 1:{:x}\n",
            destination(link),
            link + 1
        )
    };
    (0..links).map(line).collect()
}
