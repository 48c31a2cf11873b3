// SPDX-License-Identifier: MIT OR Apache-2.0
//! S: what Ethernet leaves of its rate to UDP and TCP.

use super::counts::Counts;
use super::live::Variant;
use super::{Bench, Experiment, Figure, ReproduceError, Tolerance};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "s-overhead",
    description: "Data rates of UDP and TCP through Ethernet of 100 Mbit/s and, without --quick, 1 Gbit/s",
    source: "Sørensen, tandem (\"snake\") distribution of files over switches",
    method: "UDP counted by its receiver, without the first second, and one TCP transfer counted by its \
             sender, through the scenario s-overhead; 38 bytes a frame besides the packet",
    scenarios: &["s-overhead"],
    thresholds: None,
    measure,
};

/// Data of UDP and of TCP with time stamps in a frame.
const DATA: [f64; 2] = [1470.0, 1448.0];
/// Headers of IP and the transport, with time stamps, and what Ethernet adds.
const REST: [f64; 2] = [28.0 + 38.0, 52.0 + 38.0];
const PORT: u16 = 6001;
/// The load of UDP, of the rate.
const LOAD: f64 = 1.1;

fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>, ReproduceError> {
    // TCP needs longer: its slow start fills the queue and loses, and its last window is on its way
    // at the end, together 30 ms.
    let (seconds, transfer) = if bench.quick { (15, 60) } else { (60, 120) };
    let rates: &[(f64, [f64; 2])] = match bench.quick {
        true => &[(100.0, [95.703, 94.148])],
        false => &[(100.0, [95.703, 94.148]), (1000.0, [957.03, 941.48])],
    };
    let mut figures = vec![];
    for (rate, published) in rates {
        let packets = rate * LOAD * 1e6 * f64::from(seconds) / 8.0 / DATA[0];
        let udp = [
            ("RATE", format!("{:.0}", rate * LOAD)),
            ("PACKETS", format!("{packets:.0}")),
        ];
        let tcp = [("TRANSFER", format!("{transfer}s"))];
        for (of, (name, env)) in [("UDP", &udp[..]), ("TCP", &tcp[..])]
            .into_iter()
            .enumerate()
        {
            let title = format!("{name} of {rate} Mbit/s");
            let variant = Variant {
                title: &title,
                scenario: "s-overhead",
                set: &[&format!("rate={rate}Mbit")],
                env,
                ..Variant::default()
            };
            let mbit_s = |counts: &Counts| {
                let bit_s = match of {
                    0 => counts.rate(PORT)?,
                    _ => 8.0 * counts.transferred()?.goodput(),
                };
                Some(bit_s / 1e6)
            };
            let counts = bench.run(&variant)?;
            let figure = Figure::new(&*title, "Mbit/s").published(published[of]);
            let figure = figure.theory(rate * DATA[of] / (DATA[of] + REST[of]));
            let figure = figure.within(Tolerance::Share(0.001));
            let figure = figure.measured(mbit_s(&counts), Some(counts.verdict));
            figures.push(bench.or_beyond_host(figure, &variant, mbit_s)?);
        }
    }
    Ok(figures)
}
