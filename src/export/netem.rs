// SPDX-License-Identifier: MIT OR Apache-2.0
//! One direction's link as netem's options.

use toml::{Table, Value};

use super::{ExportError, Exported};
use crate::profile::Rate;

/// emud's queue, if none is given, in packets.
const USUAL_QUEUE: u64 = 1000;
/// As good as none, and far from what a machine has memory for.
const NO_LIMIT: u64 = 1_000_000;
/// An Ethernet header and 1500 bytes.
const FRAME_BYTES: u64 = 1514;

/// Options so far.
#[derive(Default)]
pub(super) struct Options {
    pub words: Vec<String>,
    pub notes: Vec<String>,
    pub cannot: Vec<String>,
    pub rate_bits: Option<u64>,
    /// Longest delay in ns, about.
    pub delay_ns: u64,
    pub mean_ns: u64,
}

impl Options {
    pub fn add(&mut self, words: impl Into<String>) {
        self.words.push(words.into());
    }

    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    pub fn cannot(&mut self, reason: impl Into<String>) {
        self.cannot.push(reason.into());
    }

    /// What is left of `table` when the keys in `known` are read.
    pub fn only(&mut self, name: &str, table: &Table, known: &[&str]) {
        for key in table.keys().filter(|key| !known.contains(&key.as_str())) {
            self.cannot(format!("`{name}.{key}`: netem has nothing like it"));
        }
    }
}

pub(super) fn options(link: &Table, seed: Option<String>) -> Result<Exported, ExportError> {
    const KNOWN: [&str; 11] = [
        "rate",
        "overhead",
        "queue",
        "delay",
        "loss",
        "duplicate",
        "corrupt",
        "reorder",
        "state",
        "neighbours",
        "offload",
    ];
    let mut options = Options::default();
    for key in link.keys().filter(|key| !KNOWN.contains(&key.as_str())) {
        options.cannot(match key.as_str() {
            "slot" => "`slot`: a slot of netem begins some time after a packet that waits for it, \
                       emud's follow one another by the clock"
                .to_owned(),
            _ => format!("`{key}`: netem has nothing like it"),
        });
    }
    // The rate first: what jitter and loss mean depends on it.
    rate(&mut options, link);
    options.delay(link.get("delay"));
    let is_down = link.get("state").and_then(Value::as_str) == Some("down");
    options.loss(link.get("loss"));
    options.alter(link);
    match is_down {
        // A netem that may hold nothing.
        true => options.add("limit 0"),
        false => limit(&mut options, link.get("queue")),
    }
    if let Some(seed) = seed {
        options.note("the same seed repeats netem's own decisions, not emud's");
        options.add(format!("seed {seed}"));
    }
    if link.get("neighbours").and_then(Value::as_str) != Some("emulate")
        && !options.words.is_empty()
    {
        options.note("netem delays and loses ARP and neighbour discovery too");
    }
    if !options.cannot.is_empty() {
        return Err(ExportError::Cannot(options.cannot));
    }
    options.words.insert(0, "netem".to_owned());
    Ok(Exported {
        command: options.words.join(" "),
        notes: options.notes,
    })
}

/// `rate RATE [PACKETOVERHEAD [CELLSIZE [CELLOVERHEAD]]]`.
fn rate(options: &mut Options, link: &Table) {
    let Some(value) = link.get("rate") else {
        return;
    };
    let nothing = Table::new();
    let table = value.as_table().unwrap_or(&nothing);
    options.only("rate", table, &["rate", "overhead", "cell"]);
    let text = value
        .as_str()
        .or_else(|| table.get("rate").and_then(Value::as_str));
    let Some(Ok(Rate(bits))) = text.map(str::parse) else {
        options.cannot(format!("rate = {value}: this is not a rate"));
        return;
    };
    if bits % 8 != 0 {
        options.cannot(format!(
            "a rate of {bits} bit/s: netem's are whole bytes a second"
        ));
    }
    options.rate_bits = Some(bits);
    let integer = |table: &Table, key: &str| table.get(key).and_then(Value::as_integer);
    let overhead = integer(table, "overhead")
        .or_else(|| integer(link, "overhead"))
        .unwrap_or(0);
    let cell = match table.get("cell") {
        None => None,
        Some(Value::String(kind)) if kind == "atm" => Some((48, 5)),
        Some(Value::Table(cell)) => {
            options.only("rate.cell", cell, &["size", "overhead"]);
            Some((
                integer(cell, "size").unwrap_or(0),
                integer(cell, "overhead").unwrap_or(0),
            ))
        }
        Some(other) => {
            options.cannot(format!("cell = {other}: netem has cells of a size only"));
            None
        }
    };
    let mut words = format!("rate {bits}bit");
    if overhead != 0 || cell.is_some() {
        words += &format!(" {overhead}");
    }
    if let Some((size, overhead)) = cell {
        words += &format!(" {size} {overhead}");
    }
    options.add(words);
}

/// netem's limit counts packets on their way as well as those that wait.
fn limit(options: &mut Options, queue: Option<&Value>) {
    let nothing = Table::new();
    let table = queue.and_then(Value::as_table).unwrap_or(&nothing);
    options.only("queue", table, &["limit"]);
    let text = queue.and_then(|queue| queue.as_str().or_else(|| queue.get("limit")?.as_str()));
    let packets = match text.map(|text| text.strip_suffix('p').map(str::parse::<u64>)) {
        Some(Some(Ok(packets))) => Some(packets),
        None => None,
        Some(_) => {
            options.cannot("a queue that is not in packets: netem's limit counts packets");
            return;
        }
    };
    let Some(bits) = options.rate_bits else {
        match packets {
            // What the profile means once it has a rate, and what a netem of that limit means.
            Some(packets) if packets != USUAL_QUEUE => options.add(format!("limit {packets}")),
            Some(_) => {}
            None if options.delay_ns > 0 => {
                options.note(
                    "the limit is there to lose nothing: netem's counts packets on their way too",
                );
                options.add(format!("limit {NO_LIMIT}"));
            }
            None => {}
        }
        return;
    };
    let bytes_ns = u128::from(bits) * u128::from(options.delay_ns) / 8;
    let on_their_way = (bytes_ns / 1_000_000_000).div_ceil(u128::from(FRAME_BYTES));
    let limit = u128::from(packets.unwrap_or(USUAL_QUEUE)) + on_their_way;
    if on_their_way > 0 {
        options.note(format!(
            "netem's limit counts packets on their way too: {on_their_way} of {FRAME_BYTES} bytes \
             are added to the queue's; shorter packets leave it less room"
        ));
    }
    if limit != u128::from(USUAL_QUEUE) {
        options.add(format!("limit {limit}"));
    }
}
