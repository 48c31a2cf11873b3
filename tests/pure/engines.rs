// SPDX-License-Identifier: MIT OR Apache-2.0
//! The choice of the engine, on hosts that are described.

use emud::datapath::engine::fq::ToIfb;
use emud::datapath::engine::{Chosen, Engine, EngineChoice, Host, Needs, choose};

type Answer = Result<(), &'static str>;

/// A host by its answers, and the engines that were tried.
#[derive(Clone)]
struct Described {
    has_qdisc: Answer,
    loads_qdisc: Answer,
    fq: Result<ToIfb, &'static str>,
    asked: Vec<String>,
}

impl Host for Described {
    fn has_qdisc(&mut self) -> Result<(), String> {
        self.has_qdisc.map_err(str::to_owned)
    }

    fn load_qdisc(&mut self, packets: u32, classes: u32) -> Result<(), String> {
        self.asked.push(match classes {
            0 => format!("qdisc for {packets}"),
            _ => format!("qdisc for {packets} and {classes} classes"),
        });
        self.loads_qdisc.map_err(str::to_owned)
    }

    fn try_fq(&mut self) -> Result<ToIfb, String> {
        self.asked.push("fq".to_owned());
        self.fq.map_err(str::to_owned)
    }
}

/// Linux 7.2 with all modules.
const NEW: Described = Described {
    has_qdisc: Ok(()),
    loads_qdisc: Ok(()),
    fq: Ok(ToIfb::Redirect),
    asked: vec![],
};

/// Linux 6.1.
const OLD: Described = Described {
    has_qdisc: Err("no BPF qdiscs"),
    loads_qdisc: Err("not tried"),
    fq: Ok(ToIfb::Mirred),
    asked: vec![],
};

/// Without sch_fq.
const BARE: Described = Described {
    has_qdisc: Err("no BPF qdiscs"),
    loads_qdisc: Err("not tried"),
    fq: Err("no sch_fq"),
    asked: vec![],
};

const PLAIN: Needs = Needs {
    classes: 0,
    unserved: None,
    queues: 1,
    waiting: 20_000,
    longest_ns: 1_000_000_000,
};

fn auto(host: &Described, needs: Needs) -> (Chosen, Vec<String>) {
    let mut host = host.clone();
    let chosen = choose(EngineChoice::Auto, &needs, &mut host).unwrap();
    (chosen, host.asked)
}

fn is(host: &Described, needs: Needs, engine: Engine, reason: &str) {
    let (chosen, _) = auto(host, needs);
    assert_eq!((chosen.engine, &*chosen.reason()), (engine, reason));
}

#[test]
fn auto_takes_qdisc_else_fq_else_hold() {
    is(&NEW, PLAIN, Engine::Qdisc, "this kernel supports it");
    is(
        &OLD,
        PLAIN,
        Engine::Fq,
        "this kernel supports it; ingress by mirred to an ifb: this kernel's ifb drops packets \
         redirected by BPF; not qdisc: no BPF qdiscs",
    );
    is(
        &BARE,
        PLAIN,
        Engine::Hold,
        "not qdisc: no BPF qdiscs; not fq: no sch_fq",
    );
}

#[test]
fn a_qdisc_that_does_not_load_is_passed_over() {
    let rejected = Described {
        loads_qdisc: Err("cannot load emud's qdisc: load: Permission denied"),
        ..NEW
    };
    is(
        &rejected,
        PLAIN,
        Engine::Fq,
        "this kernel supports it; ingress by bpf_redirect to an ifb; not qdisc: cannot load emud's \
         qdisc: load: Permission denied",
    );
    let (chosen, _) = auto(
        &Described {
            fq: Err("no sch_fq"),
            ..rejected
        },
        PLAIN,
    );
    let passed: Vec<Engine> = chosen
        .passed_over
        .iter()
        .map(|(engine, _)| *engine)
        .collect();
    assert_eq!(
        (chosen.engine, passed),
        (Engine::Hold, vec![Engine::Qdisc, Engine::Fq])
    );
}

/// Each answer takes time of an attach.
#[test]
fn no_engine_is_tried_in_vain() {
    assert_eq!(auto(&NEW, PLAIN).1, ["qdisc for 20000"]);
    assert_eq!(auto(&OLD, PLAIN).1, ["fq"]);
    let many = Needs { queues: 8, ..PLAIN };
    assert_eq!(auto(&NEW, many).1, ["fq"]);
    let served = Needs {
        classes: 3,
        ..PLAIN
    };
    assert_eq!(
        auto(&NEW, served.clone()).1,
        ["qdisc for 20000 and 3 classes"]
    );
    let unserved = Some("it has a manager".to_owned());
    assert_eq!(auto(&NEW, Needs { unserved, ..served }).1, [""; 0]);
}

#[test]
fn many_transmit_queues_without_order_are_for_fq() {
    let many = Needs { queues: 8, ..PLAIN };
    let why = "its one queue would serve all 8 transmit queues, and fq has one for each, since the \
               packets sent need no order";
    is(
        &NEW,
        many.clone(),
        Engine::Fq,
        &format!("this kernel supports it; ingress by bpf_redirect to an ifb; not qdisc: {why}"),
    );
    // The kernel is the reason where it has no qdisc in any case.
    let (chosen, _) = auto(&OLD, many.clone());
    assert_eq!(
        chosen.passed_over,
        [(Engine::Qdisc, "no BPF qdiscs".to_owned())]
    );
    // One queue is better than a process.
    let alone = Described {
        fq: Err("no sch_fq"),
        ..NEW
    };
    is(
        &alone,
        many,
        Engine::Qdisc,
        "this kernel supports it; not fq: no sch_fq",
    );
}

#[test]
fn more_packets_than_the_qdisc_has_room_for_are_for_fq() {
    let waiting = |waiting| Needs { waiting, ..PLAIN };
    let (chosen, asked) = auto(&NEW, waiting(1 << 20));
    assert_eq!(
        (chosen.engine, &*asked),
        (Engine::Qdisc, &["qdisc for 1048576".to_owned()][..])
    );
    let (chosen, _) = auto(&NEW, waiting((1 << 20) + 1));
    assert_eq!(chosen.engine, Engine::Fq);
    let reason = chosen.reason();
    assert!(
        reason.ends_with("room for 1048576 packets that wait, and this link may have 1048577"),
        "{reason}"
    );
}

/// Its horizon is a number of us in 32 bits.
#[test]
fn fq_holds_no_packet_for_more_than_71_minutes() {
    let longest = |longest_s: u64| Needs {
        longest_ns: longest_s * 1_000_000_000,
        ..PLAIN
    };
    let why = "fq sends each packet after 4294 s at the latest, and those of this link may have to wait 4295 s";
    assert_eq!(auto(&OLD, longest(4294)).0.engine, Engine::Fq);
    let (chosen, _) = auto(&OLD, longest(4295));
    assert_eq!(chosen.engine, Engine::Hold);
    assert!(chosen.reason().contains(why), "{}", chosen.reason());
    assert_eq!(auto(&NEW, longest(4295)).0.engine, Engine::Qdisc);
    let error = choose(EngineChoice::Fq, &longest(4295), &mut NEW.clone()).unwrap_err();
    assert_eq!(error, why);
}

#[test]
fn classes_of_a_bottleneck_are_for_qdisc_or_hold() {
    let served = Needs {
        classes: 3,
        queues: 8,
        waiting: 1 << 30,
        ..PLAIN
    };
    is(
        &NEW,
        served.clone(),
        Engine::Qdisc,
        "this kernel supports it",
    );
    let fixed = "it sends a packet at a time that is fixed when it arrives, and a [bottleneck] decides \
                 later";
    let old = format!("not qdisc: no BPF qdiscs; not fq: {fixed}");
    is(&OLD, served.clone(), Engine::Hold, &old);
    let why = "it serves one [bottleneck] in a direction";
    let unserved = Needs {
        unserved: Some(why.to_owned()),
        ..served
    };
    let reason = format!("not qdisc: {why}; not fq: {fixed}");
    is(&NEW, unserved.clone(), Engine::Hold, &reason);
    for (wanted, why) in [(EngineChoice::Fq, fixed), (EngineChoice::Qdisc, why)] {
        assert_eq!(
            choose(wanted, &unserved, &mut NEW.clone()),
            Err(why.to_owned())
        );
    }
}

#[test]
fn a_request_is_granted_or_an_error() {
    let ask = |wanted, host: &Described| {
        let many = Needs { queues: 8, ..PLAIN };
        choose(wanted, &many, &mut host.clone()).map(|chosen| (chosen.engine, chosen.reason()))
    };
    let granted = |engine, reason: &str| Ok((engine, reason.to_owned()));
    assert_eq!(
        ask(EngineChoice::Qdisc, &NEW),
        granted(Engine::Qdisc, "as requested")
    );
    assert_eq!(
        ask(EngineChoice::Hold, &NEW),
        granted(Engine::Hold, "as requested")
    );
    assert_eq!(
        ask(EngineChoice::Fq, &NEW),
        granted(
            Engine::Fq,
            "as requested; ingress by bpf_redirect to an ifb"
        )
    );
    assert_eq!(
        ask(EngineChoice::Qdisc, &OLD),
        Err("no BPF qdiscs".to_owned())
    );
    assert_eq!(ask(EngineChoice::Fq, &BARE), Err("no sch_fq".to_owned()));
}
