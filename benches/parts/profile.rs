// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a profile's text to the kernel's input, by content of the profile.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fmt::Write;
use std::fs;
use std::hint::black_box;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use benches::compiled::compiled;
use criterion::{Criterion, criterion_group, criterion_main};
use emud::abi;
use emud::profile::Profile;

/// Both directions.
fn compile(profile: &Profile) {
    for direction in [abi::EMUD_UP, abi::EMUD_DOWN] {
        black_box(compiled(profile, direction));
    }
}

/// A profile with this link, and a file with this content beside it.
fn written(name: &str, profile: &str, file: &str, contents: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("profiles");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(file), contents).unwrap();
    let path = folder.join(name);
    fs::write(&path, profile).unwrap();
    path
}

fn shipped(c: &mut Criterion) {
    let shipped = emud::profile::shipped::SHIPPED
        .iter()
        .find(|s| s.name == "hsdpa")
        .unwrap();
    c.bench_function("hsdpa", |b| {
        b.iter(|| compile(&Profile::parse(shipped.text, "profiles/hsdpa.toml").unwrap()))
    });
}

fn trace(c: &mut Criterion) {
    const ROWS: u32 = 1_000_000;
    let mut rows = String::from("time_ms,rate_kbit,delay_ms\n");
    for n in 0..ROWS {
        let _ = writeln!(rows, "{},{},{}", n * 10, 1000 + n % 9000, 20 + n % 80);
    }
    let profile = "[link]\ntrace = { file = \"million.csv\", loop = true }\n";
    let path = written("trace.toml", profile, "million.csv", &rows);
    c.bench_function("trace of 1,000,000 rows", |b| {
        b.iter(|| compile(&Profile::load(&path).unwrap()));
    });
}

fn matrix(c: &mut Criterion) {
    const PAIRS: u32 = 65_536;
    let mut pairs = String::from("source,destination,rate,delay,loss\n");
    for n in 0..PAIRS {
        let source = Ipv4Addr::from(0x0b00_0000 + n);
        let _ = writeln!(
            pairs,
            "{source},10.0.0.2,{}Mbit,{}ms,0.1%",
            1 + n % 99,
            1 + n % 200
        );
    }
    let profile = "[link]\ndelay = \"1ms\"\n[matrix]\nfile = \"pairs.csv\"\n";
    let path = written("matrix.toml", profile, "pairs.csv", &pairs);
    c.bench_function("matrix of 65,536 pairs", |b| {
        b.iter(|| compile(&Profile::load(&path).unwrap()));
    });
}

fn short() -> Criterion {
    Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(5))
}

criterion_group! {
    name = benches;
    config = short();
    targets = shipped, trace, matrix
}
criterion_main!(benches);
