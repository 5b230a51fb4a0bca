//! Saves the siblings of a call whose arguments are JSON that the parser cannot hold.
//!
//! Some formats carry arguments as a JSON object. Three things are JSON by its grammar and yet refused by the
//! parser: nesting without end, a number beyond `f64`, half of a surrogate pair. In one call's arguments they
//! would cost the whole response. So a text that failed for one of them is read a second time, with such
//! arguments as text, which only their own call fails on.
//!
//! ```text
//!   {"calls":[{"arguments":{"x":1}}, {"arguments":{"x":1e400}}, {"arguments":{"x":2}}]}
//!                          └──┬──┘                └────┬────┘                └──┬──┘
//!                        parses: left             refused: quoted          parses: left
//!                                                      ▼
//!   {"calls":[{"arguments":{"x":1}}, {"arguments":"{\"x\":1e400}"}, {"arguments":{"x":2}}]}
//! ```
//!
//! Owns the search for those values: one pass without recursion, that knows strings and brackets and nothing
//! else of JSON. What is left is parsed again, so that nothing passes here that is no JSON.

use super::strict;
use crate::DecodeError;
use std::ops::Range;

/// The keys that hold arguments: neutral and OpenAI, Anthropic, Gemini.
const KEYS: [&str; 3] = ["arguments", "input", "args"];

/// The levels that the parser goes down.
const LEVELS_MAX: usize = 127;

/// What the parser says, besides [`DecodeError::TooDeep`], of JSON that it cannot hold.
const REFUSALS: [&str; 3] =
    ["number out of range", "lone leading surrogate in hex escape", "unexpected end of hex escape"];

/// Whether an error is that of JSON which the parser cannot hold, rather than of a text that is no JSON.
pub(super) fn may_help(error: &DecodeError) -> bool {
    match error {
        DecodeError::TooDeep { .. } => true,
        DecodeError::NotJson { reason, .. } => REFUSALS.contains(&reason.as_str()),
        _ => false,
    }
}

/// The text with those arguments quoted that the parser cannot hold. `None` where there are none, or where
/// strings or brackets do not close.
pub(super) fn rescue(text: &str) -> Option<String> {
    let mut scanner = Scanner { text, at: 0, open: Vec::new() };
    let (mut out, mut copied) = (String::new(), 0);
    while let Some(found) = scanner.arguments().ok()? {
        let raw = text.get(found.range.clone())?;
        if found.levels > LEVELS_MAX || is_refused(raw) {
            out.push_str(text.get(copied..found.range.start)?);
            out.push_str(&serde_json::to_string(raw).ok()?);
            copied = found.range.end;
        }
    }
    out.push_str(text.get(copied..)?);
    (copied > 0).then_some(out)
}

/// Whether the parser cannot hold this value, even alone.
fn is_refused(raw: &str) -> bool {
    strict(raw).is_err_and(|error| may_help(&error))
}

/// A string or a bracket does not close.
struct Unbalanced;

/// Where a call's arguments stand.
struct Found {
    /// Their bytes.
    range: Range<usize>,
    /// The brackets that are open at their deepest place, those around them included.
    levels: usize,
}

/// Walks over a JSON text, value by value of the [`KEYS`].
struct Scanner<'a> {
    /// The whole text.
    text: &'a str,
    /// The next byte.
    at: usize,
    /// The brackets that are open.
    open: Vec<u8>,
}

impl<'a> Scanner<'a> {
    /// The next arguments; `None` at the end of the text.
    fn arguments(&mut self) -> Result<Option<Found>, Unbalanced> {
        while let Some(byte) = self.peek() {
            if byte != b'"' {
                self.step(byte)?;
                continue;
            }
            let key = self.string()?;
            if self.colon() && KEYS.contains(&key) && !self.is_free_text(key) {
                return self.value().map(Some);
            }
        }
        if self.open.is_empty() { Ok(None) } else { Err(Unbalanced) }
    }

    /// Whether the value here is free text, as OpenAI's custom tools have under `input`. Any text is good
    /// input to them, so a quoted one would not fail but run.
    fn is_free_text(&self, key: &str) -> bool {
        key == "input" && self.peek() == Some(b'"')
    }

    /// Passes over the value that begins here.
    fn value(&mut self) -> Result<Found, Unbalanced> {
        let start = self.at;
        let levels = match self.peek() {
            Some(b'{' | b'[') => self.brackets()?,
            Some(b'"') => self.string().map(|_| 0)?,
            _ => self.scalar(),
        };
        Ok(Found { range: start..self.at, levels })
    }

    /// Passes over an object or array, and tells how many brackets were open at its deepest place.
    fn brackets(&mut self) -> Result<usize, Unbalanced> {
        let (around, mut deepest) = (self.open.len(), 0);
        loop {
            match self.peek().ok_or(Unbalanced)? {
                b'"' => self.string().map(drop)?,
                byte => self.step(byte)?,
            }
            deepest = deepest.max(self.open.len());
            if self.open.len() == around {
                return Ok(deepest);
            }
        }
    }

    /// Passes over a number or a word, neither of which has levels.
    fn scalar(&mut self) -> usize {
        let ends = |byte: u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
        while self.peek().is_some_and(|byte| !ends(byte)) {
            self.at += 1;
        }
        0
    }

    /// Passes over the string that begins here, and gives what is between its quotes.
    fn string(&mut self) -> Result<&'a str, Unbalanced> {
        let start = self.at + 1;
        self.at = start;
        loop {
            match self.peek().ok_or(Unbalanced)? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        let inner = self.text.get(start..self.at);
        self.at += 1;
        inner.ok_or(Unbalanced)
    }

    /// Passes over the colon after a key, and the space around it.
    fn colon(&mut self) -> bool {
        self.space();
        let found = self.peek() == Some(b':');
        if found {
            self.at += 1;
            self.space();
        }
        found
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Passes over one byte outside of strings, keeping count of the brackets.
    fn step(&mut self, byte: u8) -> Result<(), Unbalanced> {
        match byte {
            b'{' | b'[' => self.open.push(byte),
            b'}' => self.close(b'{')?,
            b']' => self.close(b'[')?,
            _ => {}
        }
        self.at += 1;
        Ok(())
    }

    fn close(&mut self, opened: u8) -> Result<(), Unbalanced> {
        if self.open.pop() == Some(opened) { Ok(()) } else { Err(Unbalanced) }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

#[cfg(test)]
mod tests;
