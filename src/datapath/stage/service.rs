// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bottlenecks as the server in the kernel runs them (bpf/server.h), and which ones it can run.

use crate::abi;
use crate::abi::DIRECTIONS;
use crate::bottleneck::{Class, Plan, Schedule, Signals};
use crate::profile::{Bottleneck, Profile};

const NODES: usize = abi::EMUD_NODES as usize;
const DEPTH: usize = abi::EMUD_DEPTH as usize;

/// Compiles the bottleneck of each direction that is emulated; one without has no nodes.
///
/// # Errors
/// A sentence about what the server in the kernel cannot do.
pub fn compile(profile: &Profile, emulated: [bool; 2]) -> Result<[abi::emud_plan; 2], String> {
    let mut plans = [abi::emud_plan::default(); 2];
    if profile.bottlenecks.is_empty() {
        return Ok(plans);
    }
    if emulated == [true; 2] && profile.joins_directions() {
        return Err(
            "packets of both directions wait in one [bottleneck] (a rule without `direction` matches both)"
                .to_owned(),
        );
    }
    if profile.rules.iter().any(|rule| rule.per.is_some()) || profile.matrix.is_some() {
        return Err(
            "with classes, its packets of a rule with `per` or of a pair would lose their order"
                .to_owned(),
        );
    }
    for (direction, plan) in DIRECTIONS.into_iter().zip(&mut plans) {
        if !emulated[direction as usize] {
            continue;
        }
        let names = profile.bottlenecks_of(direction);
        let mut used = profile
            .bottlenecks
            .iter()
            .filter(|b| names.contains(&&*b.name));
        let Some(bottleneck) = used.next() else {
            continue;
        };
        if used.next().is_some() {
            return Err("it serves one [bottleneck] in a direction".to_owned());
        }
        can_precede(profile, direction)?;
        let blocks = |class: &str| profile.queue_of(class).is_some_and(|queue| queue.blocks);
        if direction == abi::EMUD_DOWN && bottleneck.services().any(|class| blocks(&class)) {
            return Err(
                "`full = \"block\"` holds what this host sends, not what it receives".to_owned(),
            );
        }
        *plan = of_bottleneck(bottleneck)?;
        plan.first = profile.first_service(bottleneck);
    }
    Ok(plans)
}

/// Checks the links whose packets wait in a class.
fn can_precede(profile: &Profile, direction: u32) -> Result<(), String> {
    let mut rules = profile.rules.iter().filter(|rule| rule.is_for(direction));
    let by_rule = rules.any(|rule| rule.class.is_some());
    for link in profile.links_of(direction) {
        if link.class.is_none() && !by_rule {
            continue;
        }
        if link.duplicate.probability > 0.0 {
            return Err("a copy (`duplicate`) would take time of the [bottleneck]".to_owned());
        }
        if link.rate.is_some() || link.trace.is_some() {
            return Err(
                "packets would come to the [bottleneck] before the link has sent them at its own `rate`"
                    .to_owned(),
            );
        }
    }
    Ok(())
}

/// Returns how many packets may wait in the classes of a direction, each of `least_bytes` at least.
pub fn waiting(plan: &abi::emud_plan, least_bytes: f64) -> f64 {
    let nodes = plan.node.iter().take(plan.nodes as usize);
    let of_one = |node: &abi::emud_node_plan| {
        let in_time = node.limit_ns as f64 * plan.rate as f64 / 8e9;
        let bytes = in_time.min(node.limit_bytes as f64);
        (bytes / least_bytes).min(f64::from(node.limit_packets))
    };
    nodes.filter(|node| node.is_leaf != 0).map(of_one).sum()
}

fn of_bottleneck(bottleneck: &Bottleneck) -> Result<abi::emud_plan, String> {
    let plan = bottleneck.plan();
    let name = &bottleneck.name;
    if plan
        .classes
        .iter()
        .any(|class| class.signals != Signals::None)
    {
        return Err(format!(
            "[bottleneck.{name}] has an `aqm` or `ecn`, which it lacks"
        ));
    }
    if plan.classes.len() >= NODES {
        return Err(format!(
            "[bottleneck.{name}] has {} classes, and it serves {} at most",
            plan.classes.len(),
            NODES - 1
        ));
    }
    if plan.deepest() >= DEPTH {
        return Err(format!(
            "[bottleneck.{name}] has {} levels of classes, and it serves {DEPTH} at most",
            plan.deepest() + 1
        ));
    }
    Ok(encode(&plan))
}

/// Returns a plan as the kernel has it: at most `EMUD_NODES` - 1 classes, no signals.
pub fn encode(plan: &Plan) -> abi::emud_plan {
    let mut out = abi::emud_plan {
        rate: plan.rate,
        schedule: match plan.schedule {
            Schedule::Fifo => abi::EMUD_SCHEDULE_FIFO,
            Schedule::Priority => abi::EMUD_SCHEDULE_PRIORITY,
            Schedule::Drr => abi::EMUD_SCHEDULE_DRR,
            Schedule::Htb => abi::EMUD_SCHEDULE_HTB,
        },
        nodes: 1 + plan.classes.len() as u32,
        leaves: (0..plan.classes.len()).filter(|i| plan.is_leaf(*i)).count() as u32,
        first: 1,
        ..Default::default()
    };
    for (index, class) in plan.classes.iter().enumerate() {
        out.node[index + 1] = node(plan, index, class);
    }
    out
}

fn node(plan: &Plan, index: usize, class: &Class) -> abi::emud_node_plan {
    abi::emud_node_plan {
        rate: plan.guarantee(class).unwrap_or(0),
        ceil: plan.ceil(class).unwrap_or(0),
        quantum: plan.quantum(class),
        limit_bytes: class.limits.bytes.unwrap_or(u64::MAX),
        limit_ns: class.limits.time_ns.unwrap_or(u64::MAX),
        limit_packets: class.limits.packets.unwrap_or(u32::MAX),
        parent: class.parent.map_or(0, |parent| parent as u16 + 1),
        level: plan.level(index) as u8,
        priority: plan.priority(class),
        is_leaf: u32::from(plan.is_leaf(index)),
        node: index as u32 + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::shipped;

    const SERVER: &str = "[bottleneck.b]\nrate = \"8Mbit\"\n";

    fn of(text: &str) -> Result<[abi::emud_plan; 2], String> {
        in_directions(text, [true; 2])
    }

    fn in_directions(text: &str, emulated: [bool; 2]) -> Result<[abi::emud_plan; 2], String> {
        let profile = Profile::parse(text, "x").unwrap_or_else(|e| panic!("{e}"));
        compile(&profile, emulated)
    }

    #[test]
    fn each_direction_has_its_bottleneck() {
        let text = "[up]\nclass = \"a.x\"\n[down]\nclass = \"b\"\n\
                    [bottleneck.a]\nrate = \"1Mbit\"\nschedule = \"htb\"\n\
                    [bottleneck.a.class.x]\nrate = \"1Mbit\"\n[bottleneck.a.class.y]\nrate = \"2Mbit\"\n";
        let [up, down] = of(&format!("{text}{SERVER}")).unwrap();
        assert_eq!((up.nodes, up.first, up.rate), (3, 1, 1_000_000));
        assert_eq!((down.nodes, down.first, down.rate), (2, 3, 8_000_000));
        assert_eq!((up.node[2].rate, up.node[2].quantum), (2_000_000, 3_200));
        let [up, down] = of(&format!("[down]\nclass = \"b\"\n{SERVER}")).unwrap();
        assert_eq!((up.nodes, down.nodes), (0, 2));
    }

    #[test]
    fn it_serves_the_shipped_bottlenecks() {
        let mut served = 0;
        for one in shipped::SHIPPED {
            let profile = shipped::find(one.name).unwrap();
            for emulated in [[true, false], [true; 2]] {
                let [up, down] = compile(&profile, emulated).expect(one.name);
                served += usize::from(up.nodes > 0);
                assert_eq!(down.nodes, 0, "{}", one.name);
            }
        }
        assert_eq!(served, 2 * 6);
    }

    #[test]
    fn without_a_bottleneck_there_is_nothing_to_serve() {
        for links in [
            "[link]\nduplicate = \"1%\"\nrate = \"1Mbit\"\n",
            "[matrix]\ncapacity = 10\n",
            "[links.a]\ndelay = \"1ms\"\n[[rule]]\nlink = \"a\"\nper = \"flow\"\n",
        ] {
            assert_eq!(of(links).unwrap().map(|plan| plan.nodes), [0; 2]);
            let served = of(&format!("{links}{SERVER}"));
            assert_eq!(served.is_err(), !links.contains("rate"), "{links}");
        }
    }

    #[test]
    fn a_direction_that_is_not_emulated_has_no_packets() {
        let joined = format!("[link]\nclass = \"b\"\n{SERVER}");
        assert!(of(&joined).is_err());
        let [up, down] = in_directions(&joined, [true, false]).unwrap();
        assert_eq!((up.nodes, down.nodes), (2, 0));
    }

    #[test]
    fn what_it_cannot_serve_has_a_reason() {
        let class = |n| format!("[bottleneck.b.class.c{n}]\n");
        let below = |n: u32| format!("{}parent = \"c{}\"\n", class(n), n - 1);
        let all = |n: u32| (0..n).map(class).collect::<String>();
        let deep = |n: u32| class(0) + &(1..n).map(below).collect::<String>();
        let up = |links: &str, rest: &str| {
            let more = if rest.is_empty() { "b" } else { "b.c0" };
            of(&format!("[up]\nclass = \"{more}\"\n{links}{SERVER}{rest}"))
        };
        let tree = |rest: String| {
            let leaf = rest.matches("[bottleneck").count() - 1;
            let drr = SERVER.replace("8Mbit\"", "8Mbit\"\nschedule = \"drr\"");
            of(&format!("[up]\nclass = \"b.c{leaf}\"\n{drr}{rest}"))
        };
        assert!(up("", "").is_ok());
        assert!(tree(all(31)).is_ok() && tree(deep(8)).is_ok());
        for (result, why) in [
            (tree(all(32)), "32 classes"),
            (tree(deep(9)), "9 levels"),
            (up("duplicate = \"1%\"\n", ""), "duplicate"),
            (up("rate = \"1Mbit\"\n", ""), "own `rate`"),
            (up("[down]\nclass = \"b\"\n", ""), "both directions"),
            (
                up(
                    "[[rule]]\nmatch = { protocol = \"udp\" }\nclass = \"b\"\n",
                    "",
                ),
                "a rule without `direction`",
            ),
            (
                of(&format!(
                    "[up]\nclass = \"b\"\n[[rule]]\ndirection = \"up\"\nmatch = {{ protocol = \"udp\" }}\n\
                     class = \"d\"\n{SERVER}[bottleneck.d]\nrate = \"1Mbit\"\n"
                )),
                "one [bottleneck] in a direction",
            ),
            (
                of(
                    "[up]\nclass = \"b\"\n[bottleneck.b]\nrate = \"1Mbit\"\nqueue = { limit = \"9p\", ecn = \"1ms\" }\n",
                ),
                "`aqm` or `ecn`",
            ),
        ] {
            let said = result.unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn the_least_limit_says_how_many_wait() {
        let queue = |queue: &str| {
            let text = format!("[up]\nclass = \"b\"\n{SERVER}queue = {queue}\n");
            waiting(&of(&text).unwrap()[0], 50.0)
        };
        assert_eq!(queue("\"300p\"") as u64, 300);
        assert_eq!(queue("\"5kB\"") as u64, 100);
        // 8 Mbit/s are 1000 bytes in 1 ms.
        assert_eq!(queue("\"10ms\"") as u64, 200);
        assert_eq!(
            queue("{ limit = \"300p\", bytes = \"5kB\", time = \"10ms\" }") as u64,
            100
        );
    }
}
