// SPDX-License-Identifier: MIT OR Apache-2.0
//! The features of this kernel, found by using them in a temporary network namespace; nothing is
//! read from the kernel's configuration.

use std::fs::OpenOptions;

use schemars::JsonSchema;
use serde::Serialize;

use super::engine::{Engine, EngineChoice, Known, Needs, choose, fq, hold, qdisc};
use super::maps::{Loaded, Program};
use super::stage::sizes::Sizes;
use crate::host::in_namespace;
use crate::netlink::{BpfFilter, Hook, Netlink, NetlinkError, tcx_is_known};

/// The kernel gives `lo` this index in every network namespace.
const LO: u32 = 1;

/// The number increases when a key is removed or changes its meaning.
pub const DOCTOR_SCHEMA: &str = "emud-doctor/1";

/// One feature of the kernel.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(extend(
    "if" = { "properties": { "verdict": { "const": "yes" } } },
    "then" = { "properties": { "answer": { "type": "null" }, "remedy": { "type": "null" } } },
    "else" = { "properties": { "answer": { "type": "string" }, "remedy": { "type": "string" } } },
))]
pub struct Check {
    /// Name of the feature.
    pub feature: &'static str,
    /// How it was tested.
    pub tested: &'static str,
    /// Result of the test.
    pub verdict: Support,
    /// Error of the kernel; null: none.
    pub answer: Option<String>,
    /// How to get the feature; null: it is there.
    pub remedy: Option<&'static str>,
}

/// Result of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Support {
    /// The feature works.
    Yes,
    /// The feature does not work.
    No,
}

/// The features that this kernel supports, found by tests.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Examination {
    /// Version of the format.
    #[schemars(extend("const" = DOCTOR_SCHEMA))]
    pub schema: &'static str,
    /// Release of the kernel, as `uname -r` prints it.
    pub kernel: String,
    /// Engines that work, in the order in which `--engine auto` takes them.
    #[schemars(extend("uniqueItems" = true))]
    pub engines: Vec<Engine>,
    /// Choice of `--engine auto`, if the link does not need another engine; null: no engine works.
    pub auto: Option<Automatic>,
    /// Tests of single kernel features.
    #[schemars(length(min = 1))]
    pub checks: Vec<Check>,
}

/// The engine that a link gets by itself.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Automatic {
    /// qdisc, fq or hold.
    pub engine: Engine,
    /// Why this one, and why those before it are not taken.
    pub reason: String,
}

/// Tests every feature.
pub fn examine() -> Examination {
    let kernel = rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned();
    let root = check(
        "administrator",
        "create a network namespace",
        in_namespace(|| Ok(())),
        "build the kernel with CONFIG_NET_NS",
    );
    let bpf = check(
        "classifier",
        "load emud's BPF programs",
        Loaded::load_only(&Program::ALL, &Sizes::default())
            .map(drop)
            .map_err(|e| e.to_string()),
        "emud needs Linux 5.18 or later with CONFIG_BPF_SYSCALL and CONFIG_NET_CLS_BPF",
    );
    let clsact = check(
        "clsact",
        "attach the classifier to lo in a fresh namespace",
        in_namespace(attach_trial),
        "load or build the modules sch_ingress and cls_bpf",
    );
    let ifb = check(
        "ifb",
        "add an ifb in a fresh namespace",
        in_namespace(|| {
            text(
                Netlink::open()
                    .and_then(|mut nl| fq::add_trial_ifb(&mut nl))
                    .map(drop),
            )
        }),
        "load or build the module ifb; engine hold works without it",
    );
    let tried_fq = fq::probe();
    let fq = check(
        "sch_fq",
        "put fq on an ifb in a fresh namespace",
        tried_fq.clone().map(drop),
        "load or build the module sch_fq; engine hold works without it",
    );
    let tun = check(
        "TAP",
        "add a TAP in a fresh namespace",
        in_namespace(|| {
            hold::tap::create("emud-probe", 1500)
                .map(drop)
                .map_err(|e| e.to_string())
        }),
        "load or build the module tun, and provide /dev/net/tun; engine fq works without it",
    );
    let own = check(
        "BPF qdisc",
        "put emud's qdisc on an ifb in a fresh namespace",
        qdisc::probe(),
        "not needed by engines fq and hold; needs Linux 6.16 or later with CONFIG_NET_SCH_BPF, and clang 15 or \
         later when emud is built",
    );
    let tcx = check(
        "tcx",
        "list tcx programs of lo",
        in_namespace(|| text(tcx_is_known(LO))),
        "needed by engine qdisc alone: Linux 6.6 or later with CONFIG_NET_XGRESS",
    );
    let btf = check(
        "BTF",
        "open /sys/kernel/btf/vmlinux",
        OpenOptions::new()
            .read(true)
            .open("/sys/kernel/btf/vmlinux")
            .map(drop)
            .map_err(|e| e.to_string()),
        "needed for `corrupt`, `duplicate`, `reset`, `match.cgroup`, engine qdisc and the monitor \
         (CONFIG_DEBUG_INFO_BTF)",
    );
    let all = |more: &[&Check]| {
        let mut checks = [&root, &bpf, &clsact]
            .into_iter()
            .chain(more.iter().copied());
        match checks.find_map(|check| check.answer.clone()) {
            Some(answer) => Err(answer),
            None => Ok(()),
        }
    };
    let known = Known {
        qdisc: all(&[&own, &ifb]),
        fq: all(&[&fq, &ifb]).and(tried_fq),
    };
    let works = [
        (Engine::Qdisc, known.qdisc.is_ok()),
        (Engine::Fq, known.fq.is_ok()),
        (Engine::Hold, all(&[&tun]).is_ok()),
    ];
    let works = works.into_iter().filter(|(_, works)| *works);
    let engines: Vec<Engine> = works.map(|(engine, _)| engine).collect();
    Examination {
        schema: DOCTOR_SCHEMA,
        kernel,
        auto: automatic(&engines, known),
        engines,
        checks: vec![root, bpf, clsact, ifb, fq, own, tun, tcx, btf],
    }
}

/// Returns the engine of a link without special needs.
fn automatic(engines: &[Engine], mut known: Known) -> Option<Automatic> {
    let chosen = choose(EngineChoice::Auto, &Needs::default(), &mut known).ok()?;
    engines.contains(&chosen.engine).then(|| Automatic {
        engine: chosen.engine,
        reason: chosen.reason(),
    })
}

fn check(
    feature: &'static str,
    tested: &'static str,
    result: Result<(), String>,
    remedy: &'static str,
) -> Check {
    let verdict = if result.is_ok() {
        Support::Yes
    } else {
        Support::No
    };
    let answer = result.err();
    let denied = answer.as_deref().is_some_and(is_denied);
    let remedy = match denied {
        true => "run as root of the host (CAP_NET_ADMIN, CAP_SYS_ADMIN, CAP_BPF)",
        false => remedy,
    };
    let remedy = answer.is_some().then_some(remedy);
    Check {
        feature,
        tested,
        verdict,
        answer,
        remedy,
    }
}

/// Returns whether permission was denied: the test of a feature then has no result.
fn is_denied(answer: &str) -> bool {
    let denied = [libc::EPERM, libc::EACCES].map(|errno| format!("(os error {errno})"));
    denied.iter().any(|errno| answer.contains(errno))
}

fn text<T>(result: Result<T, NetlinkError>) -> Result<T, String> {
    result.map_err(|e| e.to_string())
}

fn attach_trial() -> Result<(), String> {
    let loaded =
        Loaded::load_only(&[Program::Classify], &Sizes::default()).map_err(|e| e.to_string())?;
    let program = loaded
        .program_fd(Program::Classify)
        .map_err(|e| e.to_string())?;
    let mut nl = text(Netlink::open())?;
    // Every kernel has lo.
    let ifindex = text(nl.link("lo"))?.index;
    let filter = BpfFilter {
        hook: Hook::Egress,
        pref: 1,
        handle: 1,
        program,
        name: Program::Classify.name(),
        classid: 0,
        chain: 0,
    };
    text(nl.attach_bpf_filter(ifindex, &filter)).map(drop)
}
