// SPDX-License-Identifier: MIT OR Apache-2.0
//! Media: stations, addresses, routes, positions, and mistakes.

use emud::experiment::scenario::{Overrides, Plan, ScenarioError};
use emud::medium::air::{Access, Air, Discipline, Fate, Frame, Outcome, To};
use emud::medium::motion::Track;
use emud::medium::phy::attowatts;
use emud::text::TextError;

use super::read;
use super::walk::walk;

fn plan(text: &str) -> Plan {
    let planned = read(text).and_then(|scenario| scenario.plan(&Overrides::default()));
    planned.unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn routes(plan: &Plan, node: &str) -> Vec<String> {
    let node = plan.nodes.iter().find(|n| n.name == node).unwrap();
    let via = |via: Option<std::net::Ipv4Addr>| via.map_or("-".to_owned(), |via| via.to_string());
    let routes = node.routes.iter();
    routes
        .map(|route| format!("{} {}", route.to, via(route.via)))
        .collect()
}

/// The kernel rejects a second route.
fn each_destination_is_there_once(plan: &Plan) {
    for node in &plan.nodes {
        let mut all = routes(plan, &node.name);
        all.iter_mut()
            .for_each(|r| r.truncate(r.find(' ').unwrap()));
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(
            all.len(),
            count,
            "{}: {:?}",
            node.name,
            routes(plan, &node.name)
        );
    }
}

/// west1 - west-gate = east-gate - east1, and a wired server behind the east.
#[test]
fn gateways_join_media_and_wires() {
    let text = "network = \"10.0.0.0/24\"\n[medium.west]\nnodes = [\"west*\"]\n\
                [medium.east]\nnodes = [\"east*\"]\n\
                [link.core]\nbetween = [\"west-gate\", \"east-gate\"]\n\
                [link.lan]\nbetween = [\"east-gate\", \"server\"]\n\
                [node.west1]\ncommand = \"true\"\n[node.west-gate]\n[node.east-gate]\n[node.east1]\n\
                [node.server]\n";
    let plan = plan(text);
    let address = |medium: usize, n: usize| plan.media[medium].stations[n].address.addr();
    let [west1, west_gate] = [0, 1].map(|n| address(0, n));
    let [east_gate, east1] = [0, 1].map(|n| address(1, n));
    let has = |node: &str, to: std::net::Ipv4Addr, via: &str| {
        let wanted = format!("{to}/32 {via}");
        let found = routes(&plan, node);
        assert!(found.contains(&wanted), "{node}: {wanted} not in {found:?}");
    };
    let core = ["10.0.0.1", "10.0.0.2"];
    let server: std::net::Ipv4Addr = "10.0.0.6".parse().unwrap();
    has("west1", east1, &west_gate.to_string());
    has("west1", server, &west_gate.to_string());
    has("west1", core[1].parse().unwrap(), &west_gate.to_string());
    has("west-gate", east1, core[1]);
    has("east-gate", west1, core[0]);
    has("server", west1, "10.0.0.5");
    has("server", east1, "10.0.0.5");
    has("east1", west1, &east_gate.to_string());
    each_destination_is_there_once(&plan);
    // A daemon's medium has none of them, and the wires stay as they are.
    let daemons = text.replace(
        "nodes = [\"west*\"]",
        "nodes = [\"west*\"]\nroutes = \"none\"",
    );
    let daemons = self::plan(&daemons);
    assert!(routes(&daemons, "west1").is_empty());
}

/// A station out of reach has no route on wires, where its packets would circle between r1 and r2.
#[test]
fn packets_to_a_station_out_of_reach_do_not_circle() {
    let with = |medium: &str| {
        plan(&format!(
            "[medium.w]\nnodes = [\"gate\", \"near\", \"far\"]\n{medium}\n[node.a]\ncommand = \"true\"\n\
             [node.r1]\n[node.r2]\n[node.gate]\n[node.near]\n[node.far]\nat = [5000, 0]\n\
             [link.l1]\nbetween = [\"a\", \"r1\"]\n[link.l2]\nbetween = [\"r1\", \"r2\"]\n\
             [link.l3]\nbetween = [\"r2\", \"gate\"]\n",
        ))
    };
    let to = |plan: &Plan, from: &str, node: &str| walk(plan, from, plan.addresses(node)[0].addr());
    let plan = with("");
    for from in ["a", "r1", "r2", "gate", "near"] {
        let none = Err(format!("no route at {from}"));
        assert_eq!(to(&plan, from, "far"), none);
    }
    for (from, node) in [("a", "near"), ("near", "a"), ("r1", "gate")] {
        to(&plan, from, node).unwrap();
    }
    // Stations that are neighbours have no route from elsewhere.
    let on_link = with("routes = \"on-link\"");
    for from in ["a", "r1", "r2"] {
        let none = Err(format!("no route at {from}"));
        assert_eq!(to(&on_link, from, "near"), none);
    }
    // A daemon's stations have none but that to the whole network, whatever other media are there.
    let daemon = with("routes = \"none\"\n[segment.other]\nnodes = [\"a\", \"s\"]\n[node.s]\n");
    let whole = |route: &String| route.starts_with("10.77.0.0/16 ");
    for node in ["a", "r1", "r2"] {
        assert!(routes(&daemon, node).iter().any(whole), "{node}");
    }
}

/// Two relays reach both ends. r1, the first of equal ones, does not forward.
#[test]
fn routes_avoid_stations_that_do_not_forward() {
    let text = "[medium.w]\n[node.a]\ncommand = \"true\"\n[node.r1]\nforwards = false\nat = [200, 0]\n\
                [node.r2]\nat = [200, 1]\n[node.b]\nat = [400, 0]\n";
    let address = |plan: &Plan, node: &str| plan.addresses(node)[0].addr();
    let relays = plan(text);
    for (from, to) in [("a", "b"), ("b", "a")] {
        let way = walk(&relays, from, address(&relays, to));
        assert_eq!(way, Ok([from, "r2", to].map(str::to_owned).to_vec()));
    }
    for to in ["a", "b"] {
        for relay in ["r1", "r2"] {
            let way = walk(&relays, relay, address(&relays, to)).unwrap();
            assert_eq!(way, [relay, to]);
        }
    }
}

/// Without the other relay there is a route only where a gateway leads around.
#[test]
fn gateways_lead_around_a_station_that_does_not_forward() {
    let text = "[medium.w]\nnodes = [\"a\", \"b\", \"r1\"]\n[node.a]\ncommand = \"true\"\n\
                [node.r1]\nforwards = false\nat = [200, 0]\n[node.b]\nat = [400, 0]\n";
    let apart = plan(text);
    let to = format!("{}/32", apart.addresses("b")[0].addr());
    assert!(!routes(&apart, "a").iter().any(|r| r.starts_with(&to)));
    let around = plan(&format!(
        "{text}[node.g]\n[link.x]\nbetween = [\"a\", \"g\"]\n[link.y]\nbetween = [\"g\", \"b\"]\n"
    ));
    for (from, to) in [("a", "b"), ("b", "a")] {
        for address in around.addresses(to) {
            let way = walk(&around, from, address.addr());
            assert_eq!(way, Ok([from, "g", to].map(str::to_owned).to_vec()));
        }
    }
    each_destination_is_there_once(&around);
}

const CHAIN: &str = "network = \"10.0.0.0/24\"\n[topology]\nkind = \"chain\"\nrouters = 2\n\
                     medium = \"wlan0\"\nspacing = \"200m\"\n[medium.wlan0]\n\
                     [node.client]\ncommand = \"true\"\n";

#[test]
fn a_chain_on_air_has_neighbours_and_gateways() {
    let plan = plan(CHAIN);
    assert!(plan.wires.is_empty() && plan.links.is_empty());
    assert!(plan.nodes.iter().all(|node| node.forwards()));
    let [medium] = &plan.media[..] else { panic!() };
    let stations: Vec<String> = (medium.stations.iter())
        .map(|s| format!("{} {} {:?}", s.node, s.address, s.track.at(0)))
        .collect();
    // The last eight addresses, without the first of them.
    let expected = [
        "client 10.0.0.249/32 [0.0, 0.0]",
        "r1 10.0.0.250/32 [200.0, 0.0]",
        "r2 10.0.0.251/32 [400.0, 0.0]",
        "server 10.0.0.252/32 [600.0, 0.0]",
    ];
    assert_eq!(stations, expected);
    let expected = [
        "10.0.0.250/32 -",
        "10.0.0.251/32 10.0.0.250",
        "10.0.0.252/32 10.0.0.250",
    ];
    assert_eq!(routes(&plan, "client"), expected);
    let r1 = routes(&plan, "r1");
    assert_eq!(r1[..2], ["10.0.0.249/32 -", "10.0.0.251/32 -"]);
    assert_eq!(r1[2..], ["10.0.0.252/32 10.0.0.251"]);
    assert!(plan.hosts().contains("10.0.0.252 server\n"));
}

#[test]
fn routes_are_on_link_or_left_to_a_daemon() {
    let on_link =
        plan(&CHAIN.replace("[medium.wlan0]\n", "[medium.wlan0]\nroutes = \"on-link\"\n"));
    assert_eq!(routes(&on_link, "client").len(), 3);
    assert!(
        routes(&on_link, "client")
            .iter()
            .all(|route| route.ends_with(" -"))
    );
    let none = plan(&CHAIN.replace("[medium.wlan0]\n", "[medium.wlan0]\nroutes = \"none\"\n"));
    assert!(routes(&none, "client").is_empty());
    assert!(none.media[0].line().contains("routes = \"none\""));
    let plain = plan(&CHAIN.replace("[medium.wlan0]\n", "[medium.wlan0]\naccess = \"none\"\n"));
    assert_eq!(plain.media[0].air(1).access, Access::None);
}

#[test]
fn wires_and_media_have_different_addresses() {
    let text = "network = \"10.0.0.0/24\"\n[node.a]\ncommand = \"true\"\n[node.b]\nat = [0, 100]\n\
                [node.c]\npromiscuous = true\n[link.w]\nbetween = [\"a\", \"b\"]\n\
                [medium.x]\nnodes = [\"b\", \"c\"]\n[medium.y]\nnodes = [\"b\", \"c*\"]\n";
    let plan = plan(text);
    let addresses: Vec<String> = plan
        .addresses("b")
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(addresses, ["10.0.0.2/30", "10.0.0.253/32", "10.0.0.249/32"]);
    assert!(plan.media[0].stations[1].promiscuous);
    let a = plan.nodes.iter().find(|node| node.name == "a").unwrap();
    assert!(!a.forwards());
}

#[test]
fn a_mesh_is_a_square_and_may_be_large() {
    let text = "[topology]\nkind = \"mesh\"\nnodes = 200\nmedium = \"w\"\nspacing = 100\n\
                [medium.w]\n[node.n1]\ncommand = \"true\"\n";
    let plan = plan(text);
    let last = plan.media[0].stations.last().unwrap();
    // 15 columns: number 199 is in row 13, column 4.
    assert_eq!(last.track.at(0), [400.0, 1300.0]);
}

#[test]
fn figures_of_a_medium_reach_the_air() {
    let text = "[medium.w]\nrate = \"2Mbit\"\nrts = 500\nattempts = 4\nqueue = 20\naccess = \"dcf\"\n\
                ber = 1e-6\n\
                radio = { standard = \"802.11b\", power = \"15dBm\", capture = \"6dB\", basic = \"1Mbit\" }\n\
                propagation = { model = \"log-distance\", exponent = 3.5 }\n\
                [node.a]\ncommand = \"true\"\n[node.b]\nat = [75, 0]\n[node.c]\nat = [77, 0]\n";
    let medium = &plan(text).media[0];
    let air = medium.air(1);
    assert_eq!(
        (air.rts_bytes, air.attempts, air.queue_packets),
        (Some(500), 4, 20)
    );
    assert_eq!(air.timing.control(3), 0);
    assert_eq!(medium.modes(), [1, 1, 1]);
    // -91 dBm at 2 Mbit/s: 75.9 m.
    let matrix = medium.matrix();
    assert!(matrix.reach(0, 1).unwrap().decodes(1));
    assert!(!matrix.reach(0, 2).unwrap().decodes(1));
    assert!(matrix.reach(0, 2).unwrap().decodes(0));
    assert!(
        medium.line().contains("exponent = 3.5"),
        "{}",
        medium.line()
    );
}

/// All its signals have the same power, which is no level that noise in dBm compares with.
#[test]
fn noise_has_no_effect_in_the_disk_model() {
    let of = |propagation: &str| {
        let text = format!(
            "[medium.w]\nradio = {{ noise = \"-95dBm\" }}\npropagation = \"{propagation}\"\n\
             [node.a]\ncommand = \"true\"\n[node.b]\nat = [50, 0]\n"
        );
        let medium = plan(&text).media.remove(0);
        let plan = medium.air(1);
        let noise = plan.noise;
        let mut air = Air::new(plan, medium.matrix().into(), &medium.modes());
        for token in 0..100 {
            let to = To::Station(1);
            let bytes = 1000;
            assert!(air.arrive(token * 10_000_000, 0, Frame { to, bytes, token }));
        }
        let outcomes = std::iter::from_fn(|| air.next(2_000_000_000));
        let delivered = outcomes.filter(|o| matches!(o, Outcome::Delivered { .. }));
        (noise, delivered.count())
    };
    assert_eq!(of("disk"), (0, 100));
    assert_eq!(of("free-space"), (attowatts(-95.0), 100));
}

/// Nor is one of them stronger: two that begin at the same instant destroy each other.
#[test]
fn capture_has_no_effect_in_the_disk_model() {
    for capture in ["0dB", "10dB"] {
        let text = format!(
            "[medium.w]\nradio = {{ capture = \"{capture}\" }}\nattempts = 1\n\
             [node.a]\ncommand = \"true\"\n[node.b]\nat = [200, 0]\n[node.c]\nat = [400, 0]\n"
        );
        let medium = plan(&text).media.remove(0);
        let mut air = Air::new(medium.air(1), medium.matrix().into(), &medium.modes());
        for token in [0, 2] {
            let (to, bytes) = (To::Station(1), 1000);
            air.arrive(1_000_000_000, token, Frame { to, bytes, token });
        }
        let outcomes: Vec<_> = std::iter::from_fn(|| air.next(2_000_000_000)).collect();
        let lost = |o: &Outcome<_>| {
            matches!(
                o,
                Outcome::Finished {
                    fate: Fate::GivenUp,
                    ..
                }
            )
        };
        assert!(
            outcomes.len() == 2 && outcomes.iter().all(lost),
            "{outcomes:?}"
        );
    }
}

/// The sensitivity is -85 dBm, but the noise needs -80: b is too far from a, and r is not.
#[test]
fn what_noise_covers_is_no_neighbour() {
    let text = "[medium.w]\nradio = { noise = \"-90dBm\" }\npropagation = \"free-space\"\n\
                [node.a]\ncommand = \"true\"\n[node.b]\nat = [1380, 0]\n[node.r]\nat = [690, 0]\n";
    let plan = plan(text);
    let way = walk(&plan, "a", plan.addresses("b")[0].addr());
    assert_eq!(way, Ok(["a", "r", "b"].map(str::to_owned).to_vec()));
    let medium = &plan.media[0];
    let (modes, matrix) = (medium.modes(), medium.matrix());
    assert_eq!(matrix.neighbours(&modes), [vec![2], vec![2], vec![0, 1]]);
    let range_m = medium.geometry().range_m(modes[0]).unwrap();
    assert!((970.0..985.0).contains(&range_m), "{range_m}");
    // With one sender nothing collides.
    for (to, sent) in [(1, 0), (2, 20)] {
        let mut air = Air::new(medium.air(1), medium.matrix().into(), &modes);
        for token in 0..20 {
            let (to, bytes) = (To::Station(to), 1000);
            air.arrive(0, 0, Frame { to, bytes, token });
        }
        while air.next(10_000_000_000).is_some() {}
        let count = air.count(0);
        assert_eq!((count.collided, count.sent), (0, sent));
    }
}

#[test]
fn an_802_11n_medium_aggregates() {
    let of = |keys: &str| {
        let text = format!(
            "[medium.w]\nradio = \"802.11n\"\n{keys}\n[node.a]\ncommand = \"true\"\n[node.b]\n"
        );
        let medium = plan(&text).media.remove(0);
        let (air, mode) = (medium.air(1), medium.modes()[0]);
        (air.aggregate, air.timing.kbit(mode), air.timing.overhead)
    };
    assert_eq!(of(""), (64, 65_000, 38));
    assert_eq!(of("aggregate = 1\nrate = \"19.5Mbit\""), (1, 19_500, 38));
    // The slowest of data, not of control.
    assert_eq!(of("rate = \"minstrel\""), (64, 6_500, 38));
    let text = "[medium.w]\nqueue = { kind = \"edca\" }\n[node.a]\ncommand = \"true\"\n[node.b]\n";
    let air = plan(text).media[0].air(1);
    assert_eq!((air.aggregate, air.timing.overhead), (1, 38));
}

#[test]
fn queues_have_a_discipline() {
    let at = |rate: &str, queue: &str| {
        let text = format!(
            "[medium.w]\n{rate}\nqueue = {queue}\n[node.a]\ncommand = \"true\"\n[node.b]\n"
        );
        let medium = plan(&text).media.remove(0);
        let again = plan(&text.replace(queue, &queue_text(&medium.line())))
            .media
            .remove(0);
        assert_eq!(medium.air(1), again.air(1), "{queue}");
        let air = medium.air(1);
        (air.queue_packets, air.discipline)
    };
    let of = |queue: &str| at("", queue);
    assert_eq!(of("\"20p\""), (20, Discipline::Fifo));
    assert_eq!(
        of("{ limit = 30, kind = \"priority\" }"),
        (30, Discipline::Priority)
    );
    assert_eq!(of("{ limit = 9, kind = \"edca\" }"), (9, Discipline::Edca));
    // What 1000 bytes take at the rate that the stations use.
    for (rate, packet_ns) in [
        ("", 727_272),
        ("rate = \"1Mbit\"", 8_000_000),
        ("rate = \"arf\"", 8_000_000),
    ] {
        let queue = "{ kind = \"red\", min = \"30kB\", max = \"90kB\", probability = \"10%\" }";
        let (limit, red) = at(rate, queue);
        let Discipline::Red(figures) = red else {
            panic!("{red:?}")
        };
        assert_eq!((limit, figures.min, figures.max), (50, 30_000, 90_000));
        assert_eq!(figures.average.packet_ns, packet_ns, "{rate}");
    }
}

/// The value of `queue` in the line of a medium.
fn queue_text(line: &str) -> String {
    let (_, value) = line.split_once("queue = ").unwrap();
    match value.starts_with('{') {
        true => format!("{}}}", value.split_once('}').unwrap().0),
        false => value.split(',').next().unwrap().to_owned(),
    }
}

#[test]
fn stations_move_along_paths_and_at_random() {
    let text = "[medium.w]\n[node.a]\ncommand = \"true\"\n[node.b]\n\
                path = [{ at = [0, 0] }, { at = [60, 0], after = \"60s\" }, { at = [60, 9], after = \"1s\" }]\n";
    let tracked = plan(text);
    let track = &tracked.media[0].stations[1].track;
    assert_eq!(track.at(30_000_000_000), [30.0, 0.0]);
    assert_eq!(track.end_ns(), 61_000_000_000);
    let text = "[medium.w]\nmobility = { model = \"random-waypoint\", area = [100, 50], pause = \"1s\" }\n\
                [node.a]\ncommand = \"true\"\n[node.b]\n";
    let random = plan(text);
    assert!(
        random.media[0]
            .stations
            .iter()
            .all(|station| station.track.moves())
    );
}

/// `mobility` is for those without a position in the file, and a node has one motion.
#[test]
fn a_node_with_a_position_keeps_it() {
    let random = |seed: u32| {
        format!("mobility = {{ model = \"random-waypoint\", area = [100, 50], seed = {seed} }}\n")
    };
    let text = |first: u32, second: u32| {
        format!(
            "[medium.w]\n{}[medium.v]\n{}[node.a]\ncommand = \"true\"\nat = [7, 8]\n[node.b]\n\
             path = [{{ at = [0, 0] }}, {{ at = [60, 0], after = \"60s\" }}]\n[node.c]\n",
            random(first),
            random(second)
        )
    };
    let both = plan(&text(3, 3));
    for medium in &both.media {
        let [a, b, c] = &medium.stations[..] else {
            panic!()
        };
        assert_eq!(a.track, Track::still([7.0, 8.0]));
        assert_eq!(b.track.at(30_000_000_000), [30.0, 0.0]);
        assert!(c.track.moves());
    }
    let planned = read(&text(3, 4)).and_then(|scenario| scenario.plan(&Overrides::default()));
    let error = planned.unwrap_err().to_string();
    assert!(error.contains("`c` has another `mobility`"), "{error}");
}

/// The hub of a star is on a medium, too: its peers are behind it.
#[test]
fn a_star_is_reached_from_a_medium_of_its_hub() {
    let text = "[topology]\nkind = \"star\"\nclass.mobile.peers = 3\n\
                [medium.w]\nnodes = [\"hub\", \"phone\"]\n[node.phone]\ncommand = \"true\"\n";
    let plan = plan(text);
    let names = ["phone", "hub", "mobile1", "mobile3"];
    for from in names {
        for to in names.into_iter().filter(|to| *to != from) {
            for address in plan.addresses(to) {
                let way = walk(&plan, from, address.addr());
                assert!(way.is_ok(), "{from} to {to}: {way:?}");
            }
        }
    }
    each_destination_is_there_once(&plan);
}

/// Two in cells with losses, one behind a wall, and one that walks.
#[test]
fn a_grid_has_the_losses_between_all_stations() {
    let text = |c: &str| {
        format!(
            "[medium.w]\npropagation = {{ model = \"grid\", file = \"{GRID}\" }}\n\
             [node.a]\ncommand = \"true\"\nat = [1, 1]\n[node.b]\nat = [9, 4]\n[node.c]\n{c}\n"
        )
    };
    let plan = plan(&text(
        "path = [{ at = [12, 1] }, { at = [20, 10], after = \"9s\" }]",
    ));
    let medium = &plan.media[0];
    let reach = |from, to| medium.matrix().reach(from, to).copied().unwrap();
    // 20 dBm less 72, 66 and 54 dB.
    let expected = [-52.0, -46.0, -34.0].map(attowatts);
    let powers = [reach(2, 0), reach(1, 2), reach(0, 1)].map(|reach| reach.power);
    assert_eq!(powers, expected);
    assert!(
        medium.line().contains(&format!("file = \"{GRID}\"")),
        "{}",
        medium.line()
    );
    let mistake = |c: &str| {
        let planned = read(&text(c)).and_then(|scenario| scenario.plan(&Overrides::default()));
        planned.unwrap_err().to_string()
    };
    let outside = mistake("path = [{ at = [12, 1] }, { at = [20.5, 1], after = \"9s\" }]");
    assert!(
        outside.contains("`c` comes to [20.5, 1], outside of"),
        "{outside}"
    );
    assert!(outside.contains("[0.0, 0.0] to [20.0, 10.0]"), "{outside}");
    let unknown = mistake(
        "at = [12, 1]\n[node.d]\npath = [{ at = [1, 1] }, { at = [1, 9], after = \"9s\" }]",
    );
    let parts = [
        "no losses between stations `c` at [12.0, 1.0] and `d` at [1.0, 1.0]",
        "all stations but one",
    ];
    assert!(parts.iter().all(|part| unknown.contains(part)), "{unknown}");
}

/// Senders in two opposite corners: a station may jump between them, an axis at a time, but not walk.
#[test]
fn a_jump_in_a_grid_has_no_way() {
    let file = |name: &str, text: &str| {
        let name = format!("emud-test-jump-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let house = include_str!("../medium/house.asc");
    let corners = house.replace("sender 7.5 2.5", "sender 17.5 7.5");
    assert_ne!(corners, house);
    let grid = file("house.asc", &corners);
    let planned = |orders: &[&str]| {
        let at = |order: &&str| format!("$ns_ at 10.0 \"$node_(0) {order}\"\n");
        let orders: String = orders.iter().map(at).collect();
        let start = "$node_(0) set X_ 1.0\n$node_(0) set Y_ 1.0\n";
        let trace = file("trace", &format!("{start}{orders}"));
        let text = format!(
            "[medium.w]\npropagation = {{ model = \"grid\", file = \"{}\" }}\n\
             mobility = {{ trace = \"{}\" }}\n[node.jumps]\ncommand = \"true\"\n\
             [node.a]\nat = [1, 1]\n[node.b]\nat = [12, 1]\n",
            grid.display(),
            trace.display()
        );
        let planned = read(&text).and_then(|scenario| scenario.plan(&Overrides::default()));
        std::fs::remove_file(trace).unwrap();
        planned.map_err(|error| error.to_string())
    };
    let jumped = planned(&["set X_ 19.0", "set Y_ 9.0"]).unwrap();
    let track = &jumped.media[0].stations[0].track;
    assert_eq!(track.at(10_000_000_000), [19.0, 9.0]);
    for orders in [["setdest 19.0 9.0 1.0"], ["set X_ 19.0"]] {
        let error = planned(&orders).unwrap_err();
        let part = "no losses between stations `jumps`";
        assert!(error.contains(part), "{error}");
    }
    std::fs::remove_file(grid).unwrap();
}

const GRID: &str = "tests/pure/medium/house.asc";

/// (Text of the medium, parts of the message.)
const MISTAKES: &[(&str, &[&str])] = &[
    ("range = 5", &["no key `range`", "of a medium"]),
    (
        "queue = { limit = 5, kind = \"codel\" }",
        &["\"fifo\", \"priority\", \"red\", or \"edca\""],
    ),
    (
        "queue = { kind = \"priority\", min = \"1kB\" }",
        &["`min` is a key of RED"],
    ),
    (
        "queue = { kind = \"red\", min = \"1kB\" }",
        &["RED without `min` and `max`"],
    ),
    (
        "queue = { kind = \"red\", min = \"9kB\", max = \"9kB\" }",
        &["`min` is not below `max`"],
    ),
    ("queue = { kinds = \"red\" }", &["a queue has no `kinds`"]),
    // All mistakes of a table at once.
    (
        "queue = { limit = 0, kind = \"codel\", weight = 2, depth = 1 }",
        &[
            "a slot of 0 packets",
            "\"red\", or \"edca\"",
            "invalid `weight`",
            "a queue has no `depth`",
        ],
    ),
    (
        "queue = { kind = \"priority\", weight = 0.1, min = \"1kB\" }",
        &["`weight` is a key of RED", "`min` is a key of RED"],
    ),
    (
        "radio = { power = \"99dBm\", antenna = 3, watts = { send = -1, rest = 1 } }",
        &[
            "invalid `power`",
            "a radio has no `antenna`",
            "invalid `send`",
            "`watts` has no `rest`",
        ],
    ),
    (
        "radio = { sense = \"-80dBm\", basic = \"3Mbit\" }",
        &["`sense` of -80dBm", "does not have these basic rates"],
    ),
    (
        "radio = \"802.11c\"",
        &["no radio `802.11c`", "did you mean"],
    ),
    (
        "radio = { standard = \"802.11b\", antenna = 3 }",
        &["no `antenna`", "sensitivity"],
    ),
    ("radio = { power = 15 }", &["`power`", "dBm"]),
    (
        "radio = { sense = \"-80dBm\" }",
        &[
            "`sense` of -80dBm",
            "received, -94dBm",
            "\"-94dBm\" or less",
        ],
    ),
    (
        "radio = { sense = \"-84dBm\", standard = \"802.11g\", sensitivity = \"-85dBm\" }",
        &["`sense` of -84dBm", "\"-85dBm\" or less"],
    ),
    ("radio = { power = \"99dBm\" }", &["`power`", "50dBm"]),
    (
        "radio = { basic = \"3Mbit\" }",
        &["basic rates", "5500kbit"],
    ),
    (
        "rate = \"54Mbit\"",
        &["802.11b does not have this rate", "11000kbit"],
    ),
    (
        "radio = \"802.11n\"\nrate = \"12Mbit\"",
        &["802.11n does not have this rate", "6500kbit", "65000kbit"],
    ),
    (
        "radio = { standard = \"802.11n\", basic = \"65Mbit\" }",
        &["basic rates", "\"6000kbit\", \"12000kbit\", \"24000kbit\""],
    ),
    (
        "aggregate = 8",
        &["802.11b puts one packet into a frame", "802.11n"],
    ),
    (
        "radio = \"802.11n\"\nqueue = { kind = \"priority\" }",
        &["one packet at a time", "aggregate = 1"],
    ),
    (
        "access = \"none\"\nqueue = { kind = \"edca\" }",
        &["has no contention", "edca"],
    ),
    (
        "access = \"none\"\nrts = 0\nattempts = 3\nradio = { standard = \"802.11n\", basic = \"6Mbit\" }",
        &["`rts` has no effect", "`attempts` has", "`radio.basic` has"],
    ),
    (
        "access = \"none\"\naggregate = 2\nradio = { standard = \"802.11n\", watts = { receive = 1 } }",
        &["`aggregate` has no effect", "`radio.watts.receive` has"],
    ),
    (
        "rate = \"fastest\"",
        &["no rate control `fastest`", "minstrel"],
    ),
    ("propagation = \"magic\"", &["no model", "two-ray"]),
    ("propagation = \"log-distance\"", &["no exponent"]),
    (
        "propagation = { model = \"disk\", range = 9, sense = 8 }",
        &["is below `range`"],
    ),
    (
        "propagation = { model = \"disk\", exponent = 9 }",
        &["no `exponent`", "interference"],
    ),
    (
        "propagation = { model = \"two-ray\", height = \"high\" }",
        &["`height`"],
    ),
    (
        "propagation = \"grid\"",
        &["a grid is a `file`", "loss.asc"],
    ),
    (
        "propagation = { model = \"grid\", file = 5 }",
        &["a grid is a `file`"],
    ),
    (
        "propagation = { model = \"grid\", file = \"/nonexistent\" }",
        &["/nonexistent", "from each sender's cell"],
    ),
    (
        "propagation = { model = \"grid\", file = \"Cargo.toml\" }",
        &["Cargo.toml: line 2, column 1: this must follow"],
    ),
    (
        "propagation = { model = \"grid\", file = \"tests/pure/medium/house.asc\", shadowing = \"6dB\" }",
        &["this model has no `shadowing`", "file"],
    ),
    ("ber = 2", &["bit-error rate"]),
    ("rts = \"always\"", &["`rts`", "off"]),
    ("attempts = 0", &["attempts", "1 to 255"]),
    ("access = \"csma\"", &["access", "dcf"]),
    ("routes = \"dynamic\"", &["routes", "static"]),
    ("nodes = [\"a\"]", &["fewer than two"]),
    ("nodes = [\"a\", \"b\", \"nobody\"]", &["no node `nobody`"]),
    ("mobility = \"fast\"", &["no mobility"]),
    ("mobility = { model = \"random-waypoint\" }", &["area"]),
    ("mobility = { trace = \"/nonexistent\" }", &["/nonexistent"]),
    (
        "mobility = { trace = \"/nonexistent\", speed = [1, 2], steps = \"1s\" }",
        &[
            "`trace` has no `speed`",
            "`trace` has no `steps`",
            "/nonexistent",
        ],
    ),
];

#[test]
fn mistakes_are_explained() {
    let message = |text: &str| {
        let planned = read(text).and_then(|scenario| scenario.plan(&Overrides::default()));
        match planned {
            Err(ScenarioError::Text(TextError::Mistakes(mistakes))) => mistakes.to_string(),
            other => panic!("no mistakes found: {other:?}\n{text}"),
        }
    };
    for (line, parts) in MISTAKES {
        let text = format!("[node.a]\ncommand = \"true\"\n[node.b]\n[medium.w]\n{line}\n");
        let found = message(&text);
        assert!(
            parts.iter().all(|part| found.contains(part)),
            "{parts:?}\n{found}"
        );
        assert!(
            found.contains("my.toml:") || found.contains("-->"),
            "{found}"
        );
    }
    let air = CHAIN.replace("[medium.wlan0]\n", "");
    assert!(message(&air).contains("no medium `wlan0`"));
    let profile = CHAIN.replace("spacing = \"200m\"", "profile = \"lte\"");
    assert!(message(&profile).contains("no `profile`"));
    let wired = CHAIN.replace("medium = \"wlan0\"\n", "");
    assert!(message(&wired).contains("`spacing` without a medium"));
    let small = CHAIN
        .replace("10.0.0.0/24", "10.0.0.0/28")
        .replace("routers = 2", "routers = 20");
    assert!(message(&small).contains("too small for medium"));
    let name =
        "[node.a]\ncommand = \"true\"\n[node.b]\n[link.w]\nbetween = [\"a\", \"b\"]\n[medium.w]\n";
    assert!(message(name).contains("there is a link `w`"));
    let records = |of_segment: &str| {
        format!(
            "[node.a]\ncommand = \"true\"\n[node.b]\n[medium.w]\nrecord = \"w.record\"\n\
             [segment.lan]\nrecord = \"{of_segment}\"\n"
        )
    };
    let same = message(&records("w.record"));
    let parts = ["`w` and `lan` have the same `record`", "a different file"];
    assert!(parts.iter().all(|part| same.contains(part)), "{same}");
    assert_eq!(plan(&records("lan.record")).media.len(), 2);
    for at in [
        "at = 3",
        "at = [1]",
        "at = [1, \"x\"]",
        "at = [1, 1e9]",
        "path = [{ after = \"1s\" }]",
    ] {
        let text = format!("[node.a]\ncommand = \"true\"\n{at}\n[node.b]\n[medium.w]\n");
        message(&text);
    }
}
