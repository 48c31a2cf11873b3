// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads grids of path loss: ESRI ASCII grids, one for each sender, in one file.

use super::Position;
use super::grid::{Grid, UNREACHED};

/// Why a grid cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct GridError {
    /// Number of the line, from 1.
    pub line: usize,
    /// Number of the character in it, from 1.
    pub column: usize,
    /// The problem as a phrase.
    pub problem: String,
}

/// Most cells of an edge; the cells of both fit into 32 bits.
const MOST_CELLS: f64 = 65_535.0;
/// Positions beyond are mistakes, m.
const FARTHEST_M: f64 = 1e7;
/// More than any receiver can bridge.
const MOST_DB: f64 = 300.0;

/// Keys of the header with their ranges.
const KEYS: [(&str, f64, f64); 6] = [
    ("ncols", 1.0, MOST_CELLS),
    ("nrows", 1.0, MOST_CELLS),
    ("xllcorner", -FARTHEST_M, FARTHEST_M),
    ("yllcorner", -FARTHEST_M, FARTHEST_M),
    ("cellsize", 0.001, FARTHEST_M),
    ("nodata_value", f64::MIN, f64::MAX),
];
const REQUIRED: usize = 5;
const SENDER: &str = "sender";

/// A token of a line and where it begins.
#[derive(Clone, Copy)]
struct Token<'a> {
    line: usize,
    column: usize,
    text: &'a str,
}

impl Token<'_> {
    fn wrong(&self, problem: impl Into<String>) -> GridError {
        GridError {
            line: self.line,
            column: self.column,
            problem: problem.into(),
        }
    }

    fn number(&self, least: f64, most: f64) -> Option<f64> {
        let number = self.text.parse::<f64>().ok();
        number.filter(|number| (least..=most).contains(number))
    }
}

fn tokens(line: usize, text: &str) -> Vec<Token<'_>> {
    let begin = |token: &str| token.as_ptr() as usize - text.as_ptr() as usize;
    let token = |token| Token {
        line,
        column: text[..begin(token)].chars().count() + 1,
        text: token,
    };
    text.split_whitespace().map(token).collect()
}

#[derive(Default)]
struct Reading {
    header: [Option<f64>; KEYS.len()],
    grid: Option<Grid>,
    /// Cell of the sender whose rows follow, and its line.
    sender: Option<(u32, usize)>,
    /// Its rows so far, the first one is the northernmost.
    losses: Vec<Vec<u16>>,
}

impl Grid {
    /// Reads a file: a header, and for each sender `sender X Y` with the rows of its grid, the
    /// northernmost first. The header may be repeated.
    ///
    /// # Errors
    /// The first token that does not belong there.
    pub fn read(text: &str) -> Result<Self, GridError> {
        let mut reading = Reading::default();
        for (n, text) in text.lines().enumerate() {
            let tokens = tokens(n + 1, text);
            match tokens.split_first() {
                None => {}
                Some((first, _)) if first.text.starts_with('#') => {}
                Some((first, rest)) if first.text.eq_ignore_ascii_case(SENDER) => {
                    reading.sender(*first, rest)?;
                }
                Some((first, rest)) if first.text.starts_with(|c: char| c.is_alphabetic()) => {
                    reading.key(*first, rest)?;
                }
                Some(_) => reading.row(&tokens)?,
            }
        }
        let end = Token {
            line: text.lines().count().max(1),
            column: 1,
            text: "",
        };
        reading.complete(end)?;
        reading.grid.ok_or_else(|| {
            end.wrong("the file ends without a grid: `sender X Y`, and its rows below")
        })
    }
}

impl Reading {
    fn key(&mut self, key: Token<'_>, values: &[Token<'_>]) -> Result<(), GridError> {
        self.complete(key)?;
        let Some(n) = KEYS
            .iter()
            .position(|(name, ..)| key.text.eq_ignore_ascii_case(name))
        else {
            let keys = KEYS.map(|(name, ..)| name).join(", ");
            let problem = format!("`{}` is none of {keys} and {SENDER}", key.text);
            return Err(key.wrong(problem));
        };
        let (name, least, most) = KEYS[n];
        let [value] = values else {
            return Err(key.wrong(format!("`{name}` has one value")));
        };
        let number = value.number(least, most);
        let number = number.filter(|number| n > 1 || number.fract() == 0.0);
        let number = number.ok_or_else(|| {
            value.wrong(format!("`{}` is no {name} ({least} to {most})", value.text))
        })?;
        match self.header[n] {
            Some(before) if before != number => Err(value.wrong(format!(
                "`{name}` is {before} above: all grids have one header"
            ))),
            None if self.grid.is_some() => {
                Err(key.wrong(format!("`{name}` belongs above the first `{SENDER}`")))
            }
            _ => {
                self.header[n] = Some(number);
                Ok(())
            }
        }
    }

    fn sender(&mut self, first: Token<'_>, rest: &[Token<'_>]) -> Result<(), GridError> {
        self.complete(first)?;
        if let Some(missing) = (0..REQUIRED).find(|n| self.header[*n].is_none()) {
            return Err(first.wrong(format!("there is no `{}` above", KEYS[missing].0)));
        }
        let [columns, rows, x, y, cell_m] = [0, 1, 2, 3, 4].map(|n| self.header[n].unwrap_or(0.0));
        let grid = self.grid.get_or_insert_with(|| Grid {
            cell_m,
            corner: [x, y],
            columns: columns as u32,
            rows: rows as u32,
            losses: std::collections::BTreeMap::new(),
        });
        let at = match rest {
            [x, y] => [x, y].map(|token| token.number(-FARTHEST_M, FARTHEST_M)),
            _ => [None; 2],
        };
        let [Some(x), Some(y)] = at else {
            return Err(first.wrong(format!("write `{SENDER} X Y` in m")));
        };
        let at: Position = [x, y];
        let [low, high] = grid.corners();
        let cell = grid
            .cell(at)
            .ok_or_else(|| first.wrong(format!("the sender is outside of {low:?} to {high:?}")))?;
        if grid.has_sender(cell) {
            return Err(first.wrong("there is a grid for a sender in this cell above"));
        }
        self.sender = Some((cell, first.line));
        Ok(())
    }

    fn row(&mut self, tokens: &[Token<'_>]) -> Result<(), GridError> {
        let Some(grid) = self.grid.as_ref().filter(|_| self.sender.is_some()) else {
            return Err(tokens[0].wrong(format!("this must follow a line `{SENDER} X Y`")));
        };
        let columns = grid.columns as usize;
        if self.losses.len() == grid.rows as usize {
            return Err(tokens[0].wrong(format!("a grid has {} rows", grid.rows)));
        }
        if tokens.len() != columns {
            let at = tokens.get(columns).or(tokens.last()).unwrap_or(&tokens[0]);
            let problem = format!("a row has {columns} values, this one {}", tokens.len());
            return Err(at.wrong(problem));
        }
        let nodata = self.header[REQUIRED];
        let loss = |token: &Token<'_>| {
            if nodata.is_some() && token.number(f64::MIN, f64::MAX) == nodata {
                return Ok(UNREACHED);
            }
            let db = token.number(0.0, MOST_DB);
            let db = db.ok_or_else(|| {
                token.wrong(format!("`{}` is no loss of 0 to {MOST_DB} dB", token.text))
            })?;
            Ok((db * 100.0).round() as u16)
        };
        self.losses
            .push(tokens.iter().map(loss).collect::<Result<_, _>>()?);
        Ok(())
    }

    /// Completes the grid of a sender.
    fn complete(&mut self, end: Token<'_>) -> Result<(), GridError> {
        let (Some(grid), Some((cell, line))) = (&mut self.grid, self.sender.take()) else {
            return Ok(());
        };
        let rows = std::mem::take(&mut self.losses);
        if rows.len() != grid.rows as usize {
            return Err(end.wrong(format!(
                "the grid of the sender in line {line} ends after {} of {} rows",
                rows.len(),
                grid.rows
            )));
        }
        let southern_first = rows.into_iter().rev();
        grid.losses.insert(cell, southern_first.flatten().collect());
        Ok(())
    }
}
