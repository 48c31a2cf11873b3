// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys: what they change, and the commands that they lead to.

use super::row::TopRow;
use super::state::{Asked, Prompt, Top};

/// A key press, decoded from the terminal's escape sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Arrow up: the previous row.
    Up,
    /// Arrow down: the next row.
    Down,
    /// Home: the first row.
    Home,
    /// End: the last row.
    End,
    /// Enter: accepts the typed value.
    Enter,
    /// Escape: closes help or prompt, otherwise ends the view.
    Escape,
    /// Backspace: deletes the last character typed.
    Backspace,
    /// A command, or a character of the typed value.
    Char(char),
}

/// Action for the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// End the view.
    Quit,
    /// Run emud with these arguments.
    Run(Vec<String>),
}

/// Longest text that can be typed.
const LONGEST: usize = 200;

impl Top {
    /// Takes a key.
    pub fn key(&mut self, key: Key) -> Option<Action> {
        if let Some(prompt) = self.prompt.take() {
            return self.typed(prompt, key);
        }
        self.status = None;
        match key {
            Key::Char('q') => return Some(Action::Quit),
            Key::Escape if self.help => self.help = false,
            Key::Escape => return Some(Action::Quit),
            Key::Char('?' | 'h') => self.help = !self.help,
            Key::Up | Key::Char('k') => self.step(false),
            Key::Down | Key::Char('j') => self.step(true),
            Key::Home | Key::Char('g') => self.select(0),
            Key::End | Key::Char('G') => self.select(usize::MAX),
            Key::Char('d') => self.ask(Asked::Delay),
            Key::Char('l') => self.ask(Asked::Loss),
            Key::Char('p') => self.ask(Asked::Profile),
            Key::Char('s') => {
                let row = self.selected_row()?;
                let state = if row.down { "up" } else { "down" };
                return Some(Action::Run(set(row, "state", state)));
            }
            _ => {}
        }
        None
    }

    fn ask(&mut self, what: Asked) {
        let Some(row) = self.selected_row() else {
            return;
        };
        match what {
            Asked::Profile if row.irreplaceable.is_some() => self.status = declined(row),
            what => {
                self.prompt = Some(Prompt {
                    what,
                    text: String::new(),
                });
            }
        }
    }

    fn typed(&mut self, mut prompt: Prompt, key: Key) -> Option<Action> {
        match key {
            Key::Escape => return None,
            Key::Enter if prompt.text.trim().is_empty() => return None,
            Key::Enter => {
                let row = self.selected_row()?;
                // It may have changed since the question.
                if prompt.what == Asked::Profile && row.irreplaceable.is_some() {
                    self.status = declined(row);
                    return None;
                }
                let value = prompt.text.trim();
                return Some(Action::Run(match prompt.what {
                    Asked::Profile => exchange(row, value),
                    what => set(row, what.name(), value),
                }));
            }
            Key::Backspace => {
                prompt.text.pop();
            }
            Key::Char(c) if prompt.text.len() < LONGEST => prompt.text.push(c),
            _ => {}
        }
        self.prompt = Some(prompt);
        None
    }
}

/// Returns why a profile is not exchanged, as a status line.
fn declined(row: &TopRow) -> Option<(String, bool)> {
    let why = row.irreplaceable?;
    let interface = crate::text::printable(&row.interface);
    Some((format!("{interface}: {why}"), true))
}

/// Returns the arguments after `--netns` and its value.
fn within(row: &TopRow, arguments: &[&str]) -> Vec<String> {
    let netns: &[&str] = match row.netns.as_str() {
        "" => &[],
        name => &["--netns", name],
    };
    [netns, arguments]
        .concat()
        .into_iter()
        .map(str::to_owned)
        .collect()
}

fn set(row: &TopRow, key: &str, value: &str) -> Vec<String> {
    let link = match row.class.as_str() {
        "" => String::new(),
        name => format!("links.{name}."),
    };
    let assignment = format!("{link}{}.{key}={value}", row.direction);
    within(row, &["set", &row.interface, &assignment])
}

/// Returns `emud attach --exchange`: `emud set` does not exchange the whole profile.
fn exchange(row: &TopRow, profile: &str) -> Vec<String> {
    let options = ["--profile", profile, "--exchange"];
    let begin = ["attach", row.interface.as_str()];
    within(row, &[&begin[..], &options].concat())
}
