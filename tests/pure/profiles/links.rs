// SPDX-License-Identifier: MIT OR Apache-2.0
//! The shipped links that users expect.

use emud::profile::Percent;
use emud::profile::quantile::{delay_table, density};
use emud::profile::shipped::{self, SHIPPED};

/// A value of either direction, as written.
fn loss_of(name: &str) -> f64 {
    let shipped = SHIPPED.iter().find(|shipped| shipped.name == name);
    let profile: toml::Table = shipped.unwrap().text.parse().unwrap();
    let Some(loss) = profile["link"].get("loss") else {
        return 0.0;
    };
    let Percent(loss) = loss.as_str().unwrap().parse().unwrap();
    loss
}

/// The links that users expect: rates in kbit/s up and down, round trip in ms, its sd, loss in
/// percent, as in their sources.
#[test]
#[rustfmt::skip]
fn common_links_say_what_their_sources_say() {
    for (name, up, down, rtt, sd, loss) in [
        ("umts", 1600, 6100, (63.6 + 69.4) / 2.0, 0.0, 0.0),
        ("lte", 7600, 29_500, (18.3 + 23.7) / 2.0, 0.0, 0.0),
        ("5g", 14_700, 129_900, (16.3 + 21.4) / 2.0, 0.0, 0.0),
        ("dsl", 384, 1500, 50.0, 0.0, 0.0),
        ("cable", 1000, 5000, 28.0, 0.0, 0.0),
        ("fibre", 5000, 20_000, 4.0, 0.0, 0.0),
        ("starlink", 13_890, 97_230, 50.0, (60.0 - 40.0) / 1.349, 0.0),
        ("geo", 3380, 18_130, 630.0, 0.0, 0.0),
        ("transatlantic", 0, 0, 58.95, 0.0, 0.0),
        ("datacentre", 10_000_000, 10_000_000, 0.908, 0.0, 100.0 * 10f64.powf(-4.5)),
    ] {
        let profile = shipped::find(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(profile.name, name);
        assert!(!profile.source.is_empty() && !profile.description.is_empty());
        let rate = |kbit: u64| (kbit > 0).then_some(1000 * kbit);
        assert_eq!((profile.up.rate, profile.down.rate), (rate(up), rate(down)), "{name}");
        let near = |got: f64, want: f64| {
            assert!((got - want).abs() <= 1e-4 * want, "{name}: {got} {want}")
        };
        near((profile.up.delay.mean_ns + profile.down.delay.mean_ns) as f64 / 1e6, rtt);
        let sds = [&profile.up, &profile.down].map(|l| l.delay.jitter.as_ref().map_or(0.0, |j| j.sd_ns));
        near(sds[0].hypot(sds[1]) / 1e6, sd);
        let lost = loss_of(name);
        near(100.0 * (1.0 - (1.0 - lost) * (1.0 - lost)), loss);
    }
}

/// 90 % of the round trips of `wifi` are below 20 ms: two of its delays added, each quantile of
/// one with each of the other.
#[test]
fn wifi_has_the_measured_ninetieth_percentile() {
    let profile = shipped::find("wifi").unwrap_or_else(|error| panic!("{error}"));
    let table = delay_table(&profile.up.delay).unwrap_or_else(|error| panic!("{error}"));
    let x = |i: usize| -8.0 + i as f64 / 256.0;
    let weighted: Vec<(f64, f64)> = (0..4097)
        .step_by(8)
        .map(|i| (density(x(i)) * 8.0 / 256.0, table[i] as f64 / 1e6))
        .collect();
    let below: f64 = weighted
        .iter()
        .flat_map(|a| weighted.iter().map(move |b| (a, b)))
        .filter(|(a, b)| a.1 + b.1 < 20.0)
        .map(|(a, b)| a.0 * b.0)
        .sum();
    // 512 x 512 points: the step over 20 ms is known to about one in 256.
    assert!((below - 0.9).abs() < 4e-3, "{below}");
}
