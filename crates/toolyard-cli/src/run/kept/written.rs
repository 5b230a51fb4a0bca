//! Reads a file of results beside the episodes that it should answer.

use super::super::results;
use crate::display::clip;
use serde::Deserialize;
use std::io::{self, BufRead, Read};
use toolyard_wire::Episode;

/// The longest line that is read. A turn's results are bounded far below (`[limits]`).
const LINE_BYTES_MAX: u64 = 1 << 30;

const SHOWN_CHARS: usize = 80;

/// What the file has of an episode.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The results of every turn, with so many calls without output.
    Whole {
        /// The number of these calls.
        failed: u64,
    },
    /// A beginning, or nothing, and then the file ends.
    Part,
    /// Something else. What differs, and what to do.
    Other(String),
}

/// A file of results, read line by line.
pub(super) struct Written<R> {
    reader: R,
    /// The lines that were read whole, and their length.
    lines: usize,
    bytes: u64,
}

/// A line of the file.
enum Next {
    Line(Vec<u8>),
    /// It breaks off, and what is there fits.
    Torn,
    /// It begins otherwise.
    Other(Vec<u8>),
}

/// What is read of a line.
#[derive(Deserialize)]
struct TurnRead {
    results: Vec<ResultRead>,
}

#[derive(Deserialize)]
struct ResultRead {
    call_id: String,
    ok: bool,
}

impl<R: BufRead> Written<R> {
    /// Reads from the beginning.
    pub(super) fn new(reader: R) -> Self {
        Self { reader, lines: 0, bytes: 0 }
    }

    /// Whether nothing is left.
    pub(super) fn is_at_end(&mut self) -> io::Result<bool> {
        Ok(self.reader.fill_buf()?.is_empty())
    }

    /// The length of the lines that were read.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads the results of this episode, which is on this line of the input.
    pub(super) fn episode(&mut self, episode: &Episode, number: usize) -> io::Result<Found> {
        let mut all_failed = 0;
        for turn in 0..episode.turns.len() {
            let place =
                || format!("turn {turn} of episode '{}' (line {number} of the input)", clip(&episode.id, 60));
            match self.line(&begin(episode, turn)?)? {
                Next::Torn => return Ok(Found::Part),
                Next::Other(text) => {
                    let text = clip(&String::from_utf8_lossy(&text), SHOWN_CHARS);
                    let what = format!("is not about {}, but begins with {text}", place());
                    return Ok(Found::Other(self.differs(&what)));
                }
                Next::Line(text) => match failed(episode, turn, &text) {
                    Ok(failed) => {
                        self.lines += 1;
                        self.bytes += text.len() as u64;
                        all_failed += failed;
                    }
                    Err(why) => {
                        return Ok(Found::Other(self.differs(&format!("is about {}, but {why}", place()))));
                    }
                },
            }
        }
        Ok(Found::Whole { failed: all_failed })
    }

    /// The next line, which should begin like this.
    fn line(&mut self, begin: &[u8]) -> io::Result<Next> {
        let mut line = Vec::new();
        self.reader.by_ref().take(begin.len() as u64).read_to_end(&mut line)?;
        if line != begin {
            // A machine that stops may leave zeros where the last lines should be.
            let zeros = line.iter().rev().take_while(|byte| **byte == 0).count();
            let text = &line[..line.len() - zeros];
            // Zeros alone are some other file.
            let is_begin = begin.starts_with(text) && (self.lines > 0 || !text.is_empty() || line.is_empty());
            return Ok(match is_begin && self.rest_is_zero()? {
                true => Next::Torn,
                false => Next::Other(line),
            });
        }
        self.reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        match line.ends_with(b"\n") {
            true => Ok(Next::Line(line)),
            false if self.is_at_end()? => Ok(Next::Torn),
            false => Ok(Next::Other(line)),
        }
    }

    /// Whether nothing but zeros is left.
    fn rest_is_zero(&mut self) -> io::Result<bool> {
        loop {
            let piece = self.reader.fill_buf()?;
            if piece.is_empty() || piece.iter().any(|byte| *byte != 0) {
                return Ok(piece.is_empty());
            }
            let read = piece.len();
            self.reader.consume(read);
        }
    }

    /// What to say of the line behind those that were read.
    pub(super) fn differs(&self, what: &str) -> String {
        let line = self.lines + 1;
        format!(
            "line {line} {what}; the file is left as it is: continue it with the input and the program that it is \
             from, or name another file"
        )
    }
}

/// How the line of a turn begins.
fn begin(episode: &Episode, turn: usize) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    results::write_line(&mut line, &episode.results(turn, &[]))?;
    line.truncate(line.len() - b"]}\n".len());
    Ok(line)
}

/// The number of calls without output in this line, which should answer this turn.
fn failed(episode: &Episode, turn: usize, line: &[u8]) -> Result<u64, String> {
    let read: TurnRead = serde_json::from_slice(line).map_err(|error| format!("cannot be read ({error})"))?;
    let calls = &episode.turns[turn];
    if read.results.len() != calls.len() {
        return Err(format!("has {} results for {} calls", read.results.len(), calls.len()));
    }
    for (call, result) in calls.iter().zip(&read.results) {
        if call.id.as_str() != result.call_id {
            let [has, wants] = [&result.call_id, call.id.as_str()].map(|id| clip(id, 60));
            return Err(format!("has a result of call '{has}' where the input has call '{wants}'"));
        }
    }
    Ok(read.results.iter().filter(|result| !result.ok).count() as u64)
}

#[cfg(test)]
mod tests;
