// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `emud top` knows.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};

use super::row::{self, TopRow};
use crate::datapath::survey::Snapshot;

/// Length of the ribbon in intervals; no terminal is wider.
const RIBBON: usize = 512;

/// Whether a monitor watches the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Watching {
    /// Its start line has not come yet.
    #[default]
    Starting,
    /// The monitor runs.
    Yes,
    /// It does not run, for this reason.
    No(String),
}

/// Contention and failures of an interval on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Clean,
    /// A resource ran out.
    Alarm,
    /// A link failed: packets late, dropped by the host, or not emulated.
    Late,
    Unwatched,
}

/// Text being typed for the selected row. If the row disappears, further characters are neither for another
/// row nor commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prompt {
    pub what: Asked,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Delay,
    Loss,
    Profile,
}

impl Asked {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delay => "delay",
            Self::Loss => "loss",
            Self::Profile => "profile",
        }
    }

    pub const fn example(self) -> &'static str {
        match self {
            Self::Delay => "such as 80ms",
            Self::Loss => "such as 1%",
            Self::Profile => "shipped name or file; emud attaches again, so counters restart at 0",
        }
    }
}

/// The state of `emud top`.
#[derive(Debug, Default)]
pub struct Top {
    pub(super) host: String,
    before: Option<Snapshot>,
    pub(super) interval_ns: Option<u64>,
    pub(super) rows: Vec<TopRow>,
    pub(super) unreadable: Vec<String>,
    /// Where the selected row is, or was when its link went.
    at: usize,
    /// The selected row. When it goes, it is not replaced by another one: a key would change that.
    chosen: Option<Which>,
    /// The oldest first.
    pub(super) ribbon: VecDeque<Mark>,
    pub(super) alarms: u64,
    /// What the monitor reported in this interval: an alarm of the host, a failure of a link, events that it
    /// missed.
    alarmed: bool,
    failed: bool,
    missed: bool,
    /// Numbers of the episodes that go on.
    open: BTreeSet<u64>,
    pub(super) last_alarm: Option<String>,
    pub(super) watching: Watching,
    pub(super) prompt: Option<Prompt>,
    /// The result of the last change; whether it failed.
    pub(super) status: Option<(String, bool)>,
    pub(super) help: bool,
}

impl Top {
    /// Creates the state before the first reading.
    pub fn new(host: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            ..Self::default()
        }
    }

    /// Takes a reading; the interval since the previous one ends.
    pub fn read(&mut self, now: Snapshot) {
        let before = self.before.as_ref();
        self.interval_ns = before.map(|before| now.mono_ns.saturating_sub(before.mono_ns));
        self.rows = row::rows(&now, before);
        self.unreadable.clone_from(&now.unreadable);
        let same = |row: &TopRow| Some(which(row)) == self.chosen;
        match self.rows.iter().position(same) {
            Some(at) => self.at = at,
            None if self.chosen.is_none() => self.select(0),
            None => {}
        }
        self.before = Some(now);
        let failed = |row: &TopRow| {
            let counted = row.measured.as_ref();
            counted.is_some_and(|m| m.failed.unwrap_or(0) + m.late.unwrap_or(0) > 0)
                || !row.trouble.is_empty()
        };
        let mark = match &self.watching {
            _ if self.alarmed || !self.open.is_empty() => Mark::Alarm,
            _ if self.failed || self.rows.iter().any(failed) => Mark::Late,
            Watching::Yes if !self.missed => Mark::Clean,
            _ => Mark::Unwatched,
        };
        (self.alarmed, self.failed, self.missed) = (false, false, false);
        self.ribbon.push_back(mark);
        if self.ribbon.len() > RIBBON {
            self.ribbon.pop_front();
        }
    }

    /// Takes an alarm of the monitor, a sentence, and the number of its episode if that has an end.
    pub fn alarm(&mut self, episode: Option<u64>, sentence: impl Into<String>) {
        (self.alarms, self.alarmed) = (self.alarms + 1, true);
        self.open.extend(episode);
        self.last_alarm = Some(sentence.into());
    }

    /// Takes an alarm of the emulator: a link failed. Not all of them have an end.
    pub fn failure(&mut self, sentence: impl Into<String>) {
        (self.alarms, self.failed) = (self.alarms + 1, true);
        self.last_alarm = Some(sentence.into());
    }

    /// Takes that the monitor has missed events: there may have been alarms.
    pub fn missed(&mut self) {
        self.missed = true;
    }

    /// Removes an episode that has ended.
    pub fn clear(&mut self, episode: u64) {
        self.open.remove(&episode);
    }

    /// Sets whether a monitor watches the host.
    pub fn watching(&mut self, watching: Watching) {
        if watching != Watching::Yes {
            self.open.clear();
        }
        self.watching = watching;
    }

    /// Takes the result of an action.
    pub fn done(&mut self, sentence: impl Into<String>, failed: bool) {
        self.status = Some((sentence.into(), failed));
    }

    /// Returns the rows of the last reading.
    pub fn rows(&self) -> &[TopRow] {
        &self.rows
    }

    /// Returns the time of the last reading, ns on CLOCK_MONOTONIC; 0: there was none.
    pub(super) fn mono_ns(&self) -> u64 {
        self.before.as_ref().map_or(0, |last| last.mono_ns)
    }

    /// Returns the number of the selected row; `None`: its link is gone, or there is none.
    pub(super) fn selected(&self) -> Option<usize> {
        let chosen = |row: &TopRow| Some(which(row)) == self.chosen;
        self.rows
            .get(self.at)
            .is_some_and(chosen)
            .then_some(self.at)
    }

    pub(super) fn selected_row(&self) -> Option<&TopRow> {
        self.rows.get(self.selected()?)
    }

    /// Selects a row, the last one for a larger number.
    pub(super) fn select(&mut self, number: usize) {
        self.at = number.min(self.rows.len().saturating_sub(1));
        self.chosen = self.rows.get(self.at).map(which);
    }

    /// Selects the row above or below. Where the selected one was, the one below has moved up.
    pub(super) fn step(&mut self, down: bool) {
        let below = self.at + usize::from(self.selected().is_some());
        self.select(match down {
            true => below,
            false => self.at.saturating_sub(1),
        });
    }

    /// Returns the interface of the selected row if that is gone.
    pub(super) fn gone(&self) -> Option<Cow<'_, str>> {
        let (_, interface, ..) = (self.chosen.as_ref()).filter(|_| self.selected().is_none())?;
        Some(crate::text::printable(interface))
    }
}

/// Identity of a row: network namespace, interface, direction and named link.
pub(super) type Which = (String, String, &'static str, String);

pub(super) fn which(row: &TopRow) -> Which {
    let (netns, interface) = (row.netns.clone(), row.interface.clone());
    (netns, interface, row.direction, row.class.clone())
}
