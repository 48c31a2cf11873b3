// SPDX-License-Identifier: MIT OR Apache-2.0
//! The picture of a state: 80 columns and up.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row as TableRow, Table, TableState};

use super::row::{Measured, TopRow};
use super::state::{Mark, Top, Watching};
use crate::text::quantity::{full_rate, full_time};

/// From here on there is room for the profile, the engine and the figures beside.
pub(super) const WIDE: u16 = 140;

const HELP: [&str; 9] = [
    "up, down, j, k  select a direction of a link (Home, End: the first, the last)",
    "d  set its delay    l  set its loss    s  take it down, or up again",
    "p  exchange the profile of its interface; engine and seed stay",
    "q  quit    Escape  close an input or this help; otherwise quit",
    "",
    "RATE, P50, P99, LOSS, LATE: of the last interval. LOSS: lost or dropped by it",
    "LATE: packets that the holder sent more than 1 ms late; -: engine fq or qdisc",
    "The ribbon has a mark per interval: . clean, ! a resource of the host ran out,",
    "x a link failed (late, dropped by the host, not emulated), ? nothing watched",
];

/// Draws a state.
pub fn draw(top: &Top, frame: &mut Frame) {
    let help = if top.help { HELP.len() as u16 + 1 } else { 0 };
    let [head, links, help, alarms, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(help),
        Constraint::Length(2),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(title(top)), head);
    table(top, frame, links);
    let lines = HELP.map(Line::from).to_vec();
    frame.render_widget(Paragraph::new([vec![Line::from("")], lines].concat()), help);
    frame.render_widget(Paragraph::new(ribbon(top, alarms.width)), alarms);
    frame.render_widget(Paragraph::new(footer(top)), keys);
}

pub(super) const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
pub(super) const DIM: Style = Style::new().add_modifier(Modifier::DIM);
pub(super) const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);

fn title(top: &Top) -> Line<'_> {
    let mut links: Vec<_> = top.rows.iter().map(|r| (&r.netns, &r.interface)).collect();
    links.dedup();
    let every = top.interval_ns.map_or("first reading".to_owned(), |ns| {
        format!("every {:.1} s", ns as f64 / 1e9)
    });
    let plural = if links.len() == 1 { "" } else { "s" };
    let mut spans = vec![
        Span::styled("emud top", STRONG),
        format!("  {}  {} link{plural}, {every}", top.host, links.len()).into(),
    ];
    if !top.unreadable.is_empty() {
        let n = top.unreadable.len();
        spans.push(Span::styled(
            format!("  {n} NOT READABLE (emud metrics)"),
            BAD,
        ));
    }
    Line::from(spans)
}

const COLUMNS: [(&str, u16); 9] = [
    ("DIR", 4),
    ("RATE", 8),
    ("LIMIT", 8),
    ("BACKLOG", 7),
    ("P50", 6),
    ("P99", 6),
    ("LOSS", 6),
    ("LATE", 5),
    ("STATE", 9),
];
const MORE: [(&str, u16); 4] = [("PKT/S", 9), ("FAILED", 7), ("ENGINE", 6), ("PROFILE", 20)];

fn table(top: &Top, frame: &mut Frame, area: Rect) {
    let wide = area.width >= WIDE;
    let columns: Vec<(&str, u16)> = match wide {
        true => COLUMNS.into_iter().chain(MORE).collect(),
        false => COLUMNS
            .into_iter()
            .filter(|(name, _)| *name != "LIMIT")
            .collect(),
    };
    let fixed: u16 = columns.iter().map(|(_, width)| width + 1).sum();
    let room = area.width.saturating_sub(fixed);
    let widths = (columns.iter()).map(|(_, width)| Constraint::Length(*width));
    let widths = std::iter::once(Constraint::Length(room)).chain(widths);
    let head = (columns.iter()).map(|(name, width)| Cell::from(aligned(name, *width)));
    let head = TableRow::new(std::iter::once(Cell::from("INTERFACE")).chain(head)).style(STRONG);
    let rows = top.rows.iter().map(|row| {
        let of = |(name, width): &(&str, u16)| {
            let text = aligned(&cell(row, name), *width);
            match *name {
                "STATE" if !row.trouble.is_empty() => Cell::from(text).style(BAD),
                "LATE" | "FAILED" if is_failing(row, name) => Cell::from(text).style(BAD),
                _ => Cell::from(text),
            }
        };
        let cells = columns.iter().map(of);
        TableRow::new(
            std::iter::once(Cell::from(shortened(&name(row), usize::from(room)))).chain(cells),
        )
    });
    let table = Table::new(rows, widths)
        .header(head)
        .column_spacing(1)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::default().with_selected(top.selected());
    frame.render_stateful_widget(table, area, &mut state);
    if top.rows.is_empty() {
        let empty = Rect {
            y: area.y + 1,
            height: area.height.saturating_sub(1),
            ..area
        };
        let text = "no emulated link on this host: emud attach IFACE --profile NAME";
        frame.render_widget(Paragraph::new(text), empty);
    }
}

fn is_failing(row: &TopRow, column: &str) -> bool {
    row.measured.as_ref().is_some_and(|m| match column {
        "LATE" => m.late.unwrap_or(0) > 0,
        _ => m.failed.unwrap_or(0) > 0,
    })
}

/// Names and texts to the left, figures to the right.
fn aligned(text: &str, width: u16) -> String {
    let width = usize::from(width);
    match text.starts_with(|c: char| c.is_ascii_digit() || c == '-') || FIGURES.contains(&text) {
        true => format!("{text:>width$}"),
        false => shortened(text, width),
    }
}

const FIGURES: [&str; 9] = [
    "RATE", "LIMIT", "BACKLOG", "P50", "P99", "LOSS", "LATE", "PKT/S", "FAILED",
];

fn name(row: &TopRow) -> String {
    let space = match (row.container.as_str(), row.netns.as_str()) {
        ("", "") => String::new(),
        ("", name) | (name, _) => format!("{name}:"),
    };
    let class = match row.class.as_str() {
        "" => String::new(),
        name => format!(" {name}"),
    };
    // Any process can choose a name.
    crate::text::printable(&format!("{space}{}{class}", row.interface)).into_owned()
}

/// Shortens a name at its beginning: the end distinguishes more.
pub(super) fn shortened(text: &str, width: usize) -> String {
    let chars = text.chars().count();
    match chars > width && width > 1 {
        true => format!(
            "~{}",
            text.chars().skip(chars - width + 1).collect::<String>()
        ),
        false => text.to_owned(),
    }
}

fn cell(row: &TopRow, column: &str) -> String {
    let measured = |of: fn(&Measured) -> Option<String>| {
        row.measured
            .as_ref()
            .and_then(of)
            .unwrap_or_else(|| "-".to_owned())
    };
    match column {
        "DIR" => row.direction.to_owned(),
        "RATE" => measured(|m| Some(full_rate(m.sent_bit_s))),
        "LIMIT" => row.limit_bit_s.map_or("-".to_owned(), full_rate),
        "BACKLOG" => row.backlog_ns.map_or("-".to_owned(), time),
        "P50" => measured(|m| m.p50_ns.map(time)),
        "P99" => measured(|m| m.p99_ns.map(time)),
        "LOSS" => measured(|m| m.lost.map(|share| format!("{:.1}%", share * 100.0))),
        "LATE" => measured(|m| m.late.map(|n| n.to_string())),
        "PKT/S" => measured(|m| Some(format!("{:.0}", m.arrived_packets_s))),
        "FAILED" => measured(|m| m.failed.map(|n| n.to_string())),
        "ENGINE" => row.engine.to_string(),
        "PROFILE" => row.profile.clone(),
        _ => match (row.trouble.first(), row.down) {
            (Some(trouble), _) => trouble.clone(),
            (None, true) => "down".to_owned(),
            (None, false) => "ok".to_owned(),
        },
    }
}

fn time(ns: u64) -> String {
    match ns {
        0 => "0ms".to_owned(),
        ns => full_time(ns),
    }
}

fn ribbon(top: &Top, width: u16) -> Vec<Line<'_>> {
    let begin = "host ";
    let room = usize::from(width).saturating_sub(begin.len());
    let shown = top
        .ribbon
        .iter()
        .skip(top.ribbon.len().saturating_sub(room));
    let marks = shown.map(|mark| match mark {
        Mark::Clean => Span::styled(".", DIM),
        Mark::Alarm => Span::styled("!", BAD),
        Mark::Late => Span::styled("x", BAD),
        Mark::Unwatched => Span::styled("?", DIM),
    });
    let line: Vec<Span> = std::iter::once(begin.into()).chain(marks).collect();
    let last = match (&top.last_alarm, &top.watching) {
        (Some(alarm), _) => {
            let plural = if top.alarms == 1 { "" } else { "s" };
            let text = format!("{} alarm{plural}, the last: {alarm}", top.alarms);
            Line::styled(crate::text::printable(&text).into_owned(), BAD)
        }
        (None, Watching::Yes) => Line::from("no alarm of the host so far"),
        (None, Watching::Starting) => Line::styled("the monitor of the host starts", DIM),
        (None, Watching::No(why)) => Line::from(format!("the host is not watched: {why}")),
    };
    vec![Line::from(line), last]
}

fn footer(top: &Top) -> Line<'_> {
    let gone = top
        .gone()
        .map(|link| format!("{link}: this link is gone, "));
    if let Some(prompt) = &top.prompt {
        if let Some(gone) = gone {
            return Line::styled(gone + "nothing is changed (Escape)", BAD);
        }
        let of = top.selected_row().map_or(String::new(), name);
        let direction = top.selected_row().map_or("", |row| row.direction);
        let ask = format!("{} of {of} {direction}: ", prompt.what.name());
        let hint = format!("  ({})", prompt.what.example());
        return Line::from(vec![
            Span::styled(ask, STRONG),
            format!("{}_", prompt.text).into(),
            Span::styled(hint, DIM),
        ]);
    }
    match (&top.status, gone) {
        (Some((text, true)), _) => Line::styled(text.as_str(), BAD),
        (Some((text, false)), _) => Line::from(text.as_str()),
        (None, Some(gone)) => Line::styled(gone + "select another one", BAD),
        (None, None) => Line::styled("d delay  l loss  s state  p profile  ? help  q quit", DIM),
    }
}
