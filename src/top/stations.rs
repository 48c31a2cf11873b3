// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud medium watch`: the stations of an experiment's media, live from its log.

use emud_monitor::log::StationSample;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState};

use super::draw::{BAD, DIM, STRONG, WIDE, shortened};
use super::keys::Key;
use super::map::{across_m, draw_map};
use crate::experiment::results::{Follow, FollowedMedium, FollowedStation, ResultsError};
use crate::text::printable;
use crate::text::quantity::full_rate;

/// The state of the view.
#[derive(Debug)]
pub struct Stations {
    log: Follow,
    medium: usize,
    selected: usize,
    help: bool,
    /// A map instead of the table.
    map: bool,
}

impl Stations {
    /// Returns the view of a log, of which it reads what is there.
    ///
    /// # Errors
    /// As [`Follow::read`].
    pub fn new(log: Follow) -> Result<Self, ResultsError> {
        let mut view = Self {
            log,
            medium: 0,
            selected: 0,
            help: false,
            map: false,
        };
        view.read()?;
        Ok(view)
    }

    /// Reads what was written since the last call.
    ///
    /// # Errors
    /// As [`Follow::read`].
    pub fn read(&mut self) -> Result<(), ResultsError> {
        self.log.read()
    }

    /// Handles a key. Returns true at the end.
    pub fn key(&mut self, key: Key) -> bool {
        let last = self.shown().map_or(0, |medium| medium.stations.len());
        let last = last.saturating_sub(1);
        match key {
            Key::Char('q') => return true,
            Key::Escape if !self.help => return true,
            Key::Escape => self.help = false,
            Key::Char('?' | 'h') => self.help = !self.help,
            Key::Up | Key::Char('k') => self.selected = self.selected.saturating_sub(1),
            Key::Down | Key::Char('j') => self.selected = (self.selected + 1).min(last),
            Key::Home | Key::Char('g') => self.selected = 0,
            Key::End | Key::Char('G') => self.selected = last,
            Key::Char('v') => self.map = !self.map,
            Key::Char('m') => {
                self.medium = (self.medium + 1) % self.log.media.len().max(1);
                self.selected = 0;
            }
            _ => {}
        }
        false
    }

    fn shown(&self) -> Option<&FollowedMedium> {
        self.log.media.get(self.medium)
    }
}

const HELP: [&str; 10] = [
    "up, down, j, k  select a station (Home, End: the first, the last)    m  the next medium",
    "v  a map with the range and the neighbours of the selected station, or the table",
    "q  quit",
    "",
    "All figures are of the last sample: emud run --sample sets its length.",
    "AIR, BUSY  time in transmission, time with a carrier, its own included",
    "SENT/S, RATE, GOOD  packets sent per second, bits of these, bits of packets received",
    "RETRY  attempts that were repeated    LOST  packets given up    DROP  by the queue",
    "QUEUE  packets waiting    NEAR  stations that it exchanges data with, named below",
    "PHY  mean rate of unicast data frames on air, from 140 columns on",
];

const COLUMNS: [(&str, u16); 11] = [
    ("AT", 11),
    ("AIR", 5),
    ("BUSY", 5),
    ("SENT/S", 6),
    ("RATE", 8),
    ("GOOD", 8),
    ("RETRY", 5),
    ("LOST", 4),
    ("DROP", 4),
    ("QUEUE", 5),
    ("NEAR", 4),
];
const MORE: [(&str, u16); 4] = [("TRIES/S", 7), ("HIT", 5), ("WATTS", 6), ("PHY", 8)];

/// Draws the view.
pub fn draw_stations(view: &Stations, frame: &mut Frame) {
    let help = if view.help { HELP.len() as u16 + 1 } else { 0 };
    let [head, rows, help, near, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(help),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(title(view, rows)), head);
    let lines = [vec![Line::from("")], HELP.map(Line::from).to_vec()].concat();
    frame.render_widget(Paragraph::new(lines), help);
    let text = "v map or table  m next medium  ? help  q quit";
    frame.render_widget(Paragraph::new(Line::styled(text, DIM)), keys);
    if let Some(medium) = view.shown() {
        match view.map {
            true => draw_map(medium, view.selected, frame, rows),
            false => table(view, medium, frame, rows),
        }
        let selected = medium.stations.get(view.selected);
        let named = selected.map(|station| {
            let (node, near) = (&station.node, station.neighbours.join(" "));
            format!("neighbours of {node}: {near}")
        });
        let named = printable(&named.unwrap_or_default()).into_owned();
        frame.render_widget(Paragraph::new(named), near);
    }
}

fn title(view: &Stations, rows: Rect) -> Line<'_> {
    let mut spans = vec![Span::styled("emud medium watch", STRONG)];
    let Some(medium) = view.shown() else {
        spans.push("  the experiment has not begun".into());
        return Line::from(spans);
    };
    let (number, all) = (view.medium + 1, view.log.media.len());
    let name = printable(&medium.name).into_owned();
    let count = medium.stations.len();
    spans.push(format!("  {name} ({number} of {all})  {count} stations").into());
    let sample = medium.stations.iter().find_map(|s| s.sample.as_ref());
    spans.push(match sample {
        Some(sample) => format!(", every {:.1} s", sample.interval_ns as f64 / 1e9).into(),
        None => Span::styled(", no sample so far", DIM),
    });
    if view.map {
        spans.push(format!("  {:.0} m across", across_m(medium, rows)).into());
    }
    if view.log.ended {
        spans.push(Span::styled("  ENDED", BAD));
    }
    Line::from(spans)
}

fn table(view: &Stations, medium: &FollowedMedium, frame: &mut Frame, area: Rect) {
    let more = if area.width >= WIDE { &MORE[..] } else { &[] };
    let columns = || COLUMNS.iter().chain(more);
    let fixed: u16 = columns().map(|(_, width)| width + 1).sum();
    let room = area.width.saturating_sub(fixed);
    let right = |text: &str, width: u16| Cell::from(format!("{text:>0$}", usize::from(width)));
    let rows = medium.stations.iter().map(|station| {
        let node = shortened(&printable(&station.node), usize::from(room));
        let of = |(name, width): &(&str, u16)| {
            let text = cell(medium, station, name);
            let bad = matches!(*name, "LOST" | "DROP") && !matches!(&*text, "0" | "-");
            right(&text, *width).style(if bad { BAD } else { Style::new() })
        };
        Row::new(std::iter::once(Cell::from(node)).chain(columns().map(of)))
    });
    let head = columns().map(|(name, width)| right(name, *width));
    let head = std::iter::once(Cell::from("STATION")).chain(head);
    let widths = columns().map(|(_, width)| Constraint::Length(*width));
    let widths = std::iter::once(Constraint::Length(room)).chain(widths);
    let table = Table::new(rows, widths)
        .header(Row::new(head).style(STRONG))
        .column_spacing(1)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::default().with_selected(Some(view.selected));
    frame.render_stateful_widget(table, area, &mut state);
}

fn cell(medium: &FollowedMedium, station: &FollowedStation, column: &str) -> String {
    let [x, y] = station.at_m;
    match (column, &station.sample) {
        ("AT", _) if !medium.has_positions() => "-".to_owned(),
        ("AT", _) => format!("{x:.0},{y:.0}"),
        ("NEAR", _) => station.neighbours.len().to_string(),
        (_, Some(sample)) => figure(sample, column),
        (_, None) => "-".to_owned(),
    }
}

fn figure(sample: &StationSample, column: &str) -> String {
    let counted = &sample.counted;
    let seconds = sample.interval_ns as f64 / 1e9;
    let share = |part: u64, whole: u64| match whole {
        0 => "-".to_owned(),
        whole => format!("{:.0}%", part as f64 * 100.0 / whole as f64),
    };
    let per_s = |count: u64| format!("{:.0}", count as f64 / seconds);
    let bits = |bytes: u64| full_rate(8.0 * bytes as f64 / seconds);
    match column {
        "AIR" => share(counted.air_ns, sample.interval_ns),
        "BUSY" => share(counted.busy_ns, sample.interval_ns),
        "SENT/S" => per_s(counted.sent_packets),
        "RATE" => bits(counted.sent_bytes),
        "GOOD" => bits(counted.received_bytes),
        "RETRY" => share(counted.retried(), counted.attempts),
        "LOST" => counted.given_up.to_string(),
        "DROP" => (counted.dropped_full + counted.dropped_aqm).to_string(),
        "QUEUE" => sample.backlog_packets.to_string(),
        "TRIES/S" => per_s(counted.attempts),
        "HIT" => share(counted.collided, counted.attempts),
        "PHY" => counted.data_bit_s().map_or("-".to_owned(), full_rate),
        _ => match sample.energy_j {
            Some(joules) => format!("{:.2}", joules / seconds),
            None => "-".to_owned(),
        },
    }
}
