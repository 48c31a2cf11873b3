// SPDX-License-Identifier: Apache-2.0
use kube::CustomResourceExt;
use serde_json::{Value, json};

use super::*;

const NODE: &str = "n1";

#[derive(Default)]
struct Cluster {
    maps: Vec<(String, ConfigMap)>,
    pods: Vec<Arc<Pod>>,
    /// Why nothing is known.
    unknown: Option<Unknown>,
}

impl Cluster {
    fn known<T>(&self, thing: T) -> Result<T, Unknown> {
        self.unknown.clone().map_or(Ok(thing), Err)
    }
}

impl Others for Cluster {
    fn config_map(
        &mut self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<ConfigMap>>, Unknown> {
        let same = |(in_namespace, map): &&(String, ConfigMap)| {
            in_namespace == namespace && map.name_any() == name
        };
        let found = self.maps.iter().find(same);
        self.known(found.map(|(_, map)| Arc::new(map.clone())))
    }

    fn pods_of(&mut self, namespace: &str) -> Result<Vec<Arc<Pod>>, Unknown> {
        let pods = self.pods.iter();
        let of = pods.filter(|pod| pod.namespace().as_deref() == Some(namespace));
        self.known(of.cloned().collect())
    }
}

fn pod(name: &str, more: Value) -> Arc<Pod> {
    let mut pod = json!({
        "metadata": { "name": name, "namespace": "a", "uid": name, "labels": { "app": "web" } },
        "spec": { "containers": [], "hostNetwork": false },
        "status": { "phase": "Running", "podIPs": [{ "ip": "10.0.0.9" }] },
    });
    merge(&mut pod, more);
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn link(name: &str, created: u32, more: Value) -> Arc<Link> {
    let mut link = json!({
        "apiVersion": "net.emud/v1alpha1", "kind": "Link",
        "metadata": { "name": name, "namespace": "a", "creationTimestamp": format!("2026-01-01T00:00:{created:02}Z") },
        "spec": { "selector": { "matchLabels": { "app": "web" } } },
    });
    merge(&mut link, more);
    if link["spec"].get("profileFrom").is_none() && link["spec"].get("profile").is_none() {
        link["spec"]["profile"] = json!("lte");
    }
    Arc::new(serde_json::from_value(link).unwrap())
}

fn merge(value: &mut Value, more: Value) {
    match (value, more) {
        (Value::Object(value), Value::Object(more)) => {
            for (key, more) in more {
                merge(value.entry(key).or_insert(Value::Null), more);
            }
        }
        (value, more) => *value = more,
    }
}

fn planned(links: &[Arc<Link>], pods: &[Arc<Pod>], cluster: &mut Cluster) -> Vec<(String, String)> {
    let items = plan(
        NODE,
        links,
        pods,
        cluster,
        "2026-01-01T01:00:00Z".parse().unwrap(),
    );
    let said = |item: &Item| match &item.want {
        None => "unknown".to_owned(),
        Some(Ok(_)) => "attach".to_owned(),
        Some(Err(refused)) => format!("{:?}: {}", refused.state, refused.message),
    };
    let named = |item: &Item| format!("{}-{}", item.link.name_any(), item.pod.name_any());
    items.iter().map(|item| (named(item), said(item))).collect()
}

fn one(link_more: Value, cluster: &mut Cluster) -> String {
    let all = planned(&[link("l", 1, link_more)], &[pod("p", json!({}))], cluster);
    assert_eq!(all.len(), 1);
    all[0].1.clone()
}

#[test]
fn a_link_is_for_pods_of_its_namespace_that_run() {
    let pods = [
        pod("yes", json!({})),
        pod("pending", json!({ "status": { "phase": "Pending" } })),
        pod(
            "other",
            json!({ "metadata": { "labels": { "app": "db" } } }),
        ),
        pod("elsewhere", json!({ "metadata": { "namespace": "b" } })),
        pod("done", json!({ "status": { "phase": "Succeeded" } })),
    ];
    let names = |link: Arc<Link>| -> Vec<String> {
        let all = planned(&[link], &pods, &mut Cluster::default());
        all.into_iter().map(|(name, _)| name).collect()
    };
    assert_eq!(names(link("l", 1, json!({}))), ["l-yes", "l-pending"]);
    let every = json!({ "spec": { "selector": { "matchLabels": null } } });
    assert_eq!(
        names(link("l", 1, every)),
        ["l-yes", "l-pending", "l-other"]
    );
    let not_web = json!({ "spec": { "selector": { "matchLabels": null, "matchExpressions":
        [{ "key": "app", "operator": "NotIn", "values": ["web"] }] } } });
    assert_eq!(names(link("l", 1, not_web)), ["l-other"]);
    let deleted = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:30Z" } });
    assert_eq!(names(link("l", 1, deleted)), Vec::<String>::new());
}

#[test]
fn the_interfaces_of_the_node_stay_untouched() {
    let pods = [pod("p", json!({ "spec": { "hostNetwork": true } }))];
    let all = planned(&[link("l", 1, json!({}))], &pods, &mut Cluster::default());
    assert!(
        all[0].1.starts_with("Failed: the pod has hostNetwork"),
        "{}",
        all[0].1
    );
}

#[test]
fn the_oldest_of_two_links_is_attached() {
    let pods = [pod("p", json!({}))];
    let of = |links: &[Arc<Link>]| planned(links, &pods, &mut Cluster::default());
    let old = link("z", 1, json!({}));
    let new = link("a", 2, json!({ "spec": { "direction": "up" } }));
    let expected = "Failed: Link z has eth0 of this pod: an interface has one link";
    let all = of(&[new.clone(), old.clone()]);
    assert_eq!(
        all,
        [
            ("a-p".to_owned(), expected.to_owned()),
            ("z-p".to_owned(), "attach".to_owned())
        ]
    );
    // A different interface, and one that is over.
    let eth1 = link("b", 2, json!({ "spec": { "interface": "eth1" } }));
    assert_eq!(
        of(&[old, eth1])
            .iter()
            .filter(|(_, said)| said == "attach")
            .count(),
        2
    );
    let entry = json!({ "node": NODE, "pod": "p", "uid": "p", "interface": "eth0", "state": "ended",
        "since": "2026-01-01T00:59:00Z" });
    let over = json!({ "spec": { "duration": "1min" }, "status": { "pods": { "n1/p": entry } } });
    let all = of(&[link("z", 1, over), new]);
    assert!(all.iter().all(|(_, said)| said == "attach"), "{all:?}");
}

/// What is attached to an interface may be of the next Link then, with the same seed.
#[test]
fn who_leaves_an_interface_is_first() {
    let pods = [pod("p", json!({}))];
    let status = |more: Value| {
        let mut entry = json!({ "node": NODE, "pod": "p", "uid": "p", "interface": "eth0", "state": "attached" });
        merge(&mut entry, more);
        json!({ "pods": { "n1/p": entry } })
    };
    let eth1 = json!({ "interface": "eth1" });
    let over = json!({ "since": "2026-01-01T00:59:00Z" });
    for leaves in [
        json!({ "spec": { "seed": 7 }, "status": status(json!({})) }),
        json!({ "spec": eth1, "status": status(json!({})) }),
        json!({ "spec": { "duration": "1min" }, "status": status(over) }),
    ] {
        let links = [link("old", 1, json!({})), link("leaves", 2, leaves)];
        let all = planned(&links, &pods, &mut Cluster::default());
        let names = all.iter().map(|(name, _)| name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["leaves-p", "old-p"], "{all:?}");
    }
}

#[test]
fn a_profile_of_a_config_map() {
    let from = json!({ "spec": { "profileFrom": { "configMap": "m", "key": "slow" } } });
    let mut cluster = Cluster {
        unknown: Some(Unknown::Yet),
        ..Cluster::default()
    };
    assert_eq!(one(from.clone(), &mut cluster), "unknown");
    cluster.unknown = Some(Unknown::Denied("forbidden".to_owned()));
    assert_eq!(one(from.clone(), &mut cluster), "Waiting: forbidden");
    cluster.unknown = None;
    assert_eq!(
        one(from.clone(), &mut cluster),
        "Waiting: there is no ConfigMap m"
    );
    let map = |data: Value| {
        serde_json::from_value(json!({ "metadata": { "name": "m" }, "data": data })).unwrap()
    };
    cluster.maps = vec![("b".to_owned(), map(json!({ "slow": "lte" })))];
    assert_eq!(
        one(from.clone(), &mut cluster),
        "Waiting: there is no ConfigMap m"
    );
    cluster.maps = vec![("a".to_owned(), map(json!({ "fast": "lte" })))];
    assert_eq!(
        one(from.clone(), &mut cluster),
        "Waiting: ConfigMap m has no key \"slow\""
    );
    cluster.maps = vec![(
        "a".to_owned(),
        map(json!({ "slow": "[link]\nloss = '1%'" })),
    )];
    assert_eq!(one(from, &mut cluster), "attach");
}

#[test]
fn peers_are_addresses_of_pods_and_prefixes() {
    let mut cluster = Cluster {
        pods: vec![
            pod(
                "q",
                json!({ "metadata": { "labels": { "app": "db" } }, "status": { "podIPs": [{ "ip": "10.0.0.7" }, { "ip": "fd00::7" }] } }),
            ),
            pod(
                "host",
                json!({ "metadata": { "labels": { "app": "db" } }, "spec": { "hostNetwork": true } }),
            ),
            pod("w", json!({})),
        ],
        ..Cluster::default()
    };
    let spec = json!({ "peers": { "cidrs": ["192.0.2.0/24"], "podSelector": { "matchLabels": { "app": "db" } } } });
    let link = link("l", 1, json!({ "spec": spec }));
    let now = "2026-01-01T01:00:00Z".parse().unwrap();
    let items = plan(NODE, &[link], &[pod("p", json!({}))], &mut cluster, now);
    let setup = items[0].want.clone().unwrap().unwrap();
    let expected = ["10.0.0.7", "192.0.2.0/24", "fd00::7"]
        .map(str::to_owned)
        .to_vec();
    assert_eq!(
        setup.profile,
        Profile::read("lte", "", Some(expected)).unwrap()
    );
    for wrong in [
        "10.0.0.0/33",
        "10.0.0",
        "fd00::/129",
        "example.org",
        "10.0.0.0/",
    ] {
        let said = one(
            json!({ "spec": { "peers": { "cidrs": [wrong] } } }),
            &mut cluster,
        );
        assert!(
            said.starts_with(&format!("Failed: peers.cidrs: {wrong:?}")),
            "{said}"
        );
    }
}

#[test]
fn durations() {
    assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
    assert_eq!(duration("5ms"), Ok(Duration::from_millis(5)));
    assert_eq!(duration("10min"), Ok(Duration::from_secs(600)));
    assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
    assert_eq!(duration("8784h"), Ok(LONGEST));
    let long = "18446744073709551615h";
    for wrong in ["", "5", "10m", "0s", "-1s", "1.5h", "8785h", long] {
        assert!(duration(wrong).is_err(), "{wrong}");
    }
    let since: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let at = |s: i64| {
        left(
            since,
            Duration::from_secs(60),
            since + k8s_openapi::jiff::SignedDuration::from_secs(s),
        )
    };
    assert_eq!(at(0), Some(Duration::from_secs(60)));
    assert_eq!(at(59), Some(Duration::from_secs(1)));
    assert_eq!(at(60), None);
    assert_eq!(at(600), None);
    assert_eq!(at(-600), Some(Duration::from_secs(60)));
}

#[test]
fn a_digest_covers_what_is_attached() {
    let setup = |more: Value| {
        let link = link("l", 1, json!({ "spec": more }));
        setup(&link, &mut Cluster::default()).unwrap().unwrap()
    };
    let base = setup(json!({}));
    for other in [
        json!({ "profile": "dsl" }),
        json!({ "direction": "up" }),
        json!({ "engine": "hold" }),
        json!({ "seed": 7 }),
        json!({ "interface": "eth1" }),
        json!({ "peers": { "cidrs": ["10.0.0.1"] } }),
    ] {
        let other = setup(other);
        assert_ne!(base.digest(), other.digest());
        assert_eq!(other.changes_from(&base), None);
    }
    let longer = setup(json!({ "duration": "1h" }));
    assert_eq!(base.digest(), longer.digest());
    assert_eq!(longer.changes_from(&base), Some(vec![]));
}

#[test]
fn a_static_pod_has_the_uid_of_its_file() {
    let of = |mirror: &str| {
        let more =
            json!({ "metadata": { "annotations": { "kubernetes.io/config.mirror": mirror } } });
        uid(&pod("p", more))
    };
    assert_eq!(of("0a1b").as_deref(), Some("0a1b"));
    // It cannot name the pod of another namespace.
    for other in [
        "9a3f2c1e-77d4-4b0e-9d5e-0c1f2a3b4c5d",
        "9a3f2c1e_77d4_4b0e_9d5e_0c1f2a3b4c5d",
    ] {
        assert_eq!(of(other).as_deref(), Some("p"));
    }
    assert_eq!(uid(&pod("p", json!({}))).as_deref(), Some("p"));
}

/// The API server rejects all others.
#[test]
fn a_link_may_name_every_engine() {
    let names = ["auto", "fq", "hold", "qdisc"];
    for name in names {
        let link = link("slow", 1, json!({ "spec": { "engine": name } }));
        assert_eq!(link.spec.engine.name(), name);
    }
    let crd = serde_json::to_value(Link::crd()).unwrap();
    let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    assert_eq!(spec["properties"]["engine"]["enum"], json!(names));
}
