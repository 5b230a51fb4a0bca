//! Saves the siblings of a call whose arguments are JSON that the parser cannot represent.
//!
//! Some formats carry arguments as a JSON object. The parser refuses three things that JSON's grammar allows:
//! unlimited nesting, a number beyond `f64`, half of a surrogate pair. In one call's arguments they would fail
//! the whole response. So a text that failed for one of these reasons is parsed a second time with such
//! arguments quoted as text, and only their own call fails.
//!
//! ```text
//!   {"calls":[{"arguments":{"x":1}}, {"arguments":{"x":1e400}}, {"arguments":{"x":2}}]}
//!                          └──┬──┘                └────┬────┘                └──┬──┘
//!                        parses: kept             refused: quoted          parses: kept
//!                                                      ▼
//!   {"calls":[{"arguments":{"x":1}}, {"arguments":"{\"x\":1e400}"}, {"arguments":{"x":2}}]}
//! ```
//!
//! Owns the search for those values: one pass without recursion that knows only JSON's strings and brackets. The
//! rescued text is parsed again, so that invalid JSON cannot slip through.

use super::strict;
use crate::DecodeError;
use std::ops::Range;

/// The keys that hold arguments: neutral and OpenAI, Anthropic, Gemini.
const KEYS: [&str; 3] = ["arguments", "input", "args"];

/// The depth to which the parser goes.
const LEVELS_MAX: usize = 127;

/// The parser's messages, besides [`DecodeError::TooDeep`], for JSON that it cannot represent.
const REFUSALS: [&str; 3] =
    ["number out of range", "lone leading surrogate in hex escape", "unexpected end of hex escape"];

/// Whether the error concerns JSON that the parser cannot represent, rather than text that is not JSON.
pub(super) fn is_rescuable(error: &DecodeError) -> bool {
    match error {
        DecodeError::TooDeep { .. } => true,
        DecodeError::NotJson { reason, .. } => REFUSALS.contains(&reason.as_str()),
        _ => false,
    }
}

/// Quotes those arguments in `text` that the parser cannot represent. `None` if there are none, or if strings or
/// brackets do not close.
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

/// Whether the parser cannot represent this value even alone.
fn is_refused(raw: &str) -> bool {
    strict(raw).is_err_and(|error| is_rescuable(&error))
}

/// The error that a string or a bracket does not close.
struct Unbalanced;

/// The place and the depth of a call's arguments in the text.
struct Found {
    /// Their bytes.
    range: Range<usize>,
    /// The number of brackets open at their deepest place, including those around them; 0 for strings and scalars.
    levels: usize,
}

/// Scans a JSON text for the values of the [`KEYS`].
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

    /// Whether the value here is free text, as OpenAI's custom tools have under `input`. They accept any text, so
    /// quoting it would run the call instead of failing it.
    fn is_free_text(&self, key: &str) -> bool {
        key == "input" && self.peek() == Some(b'"')
    }

    /// Skips the value that begins here.
    fn value(&mut self) -> Result<Found, Unbalanced> {
        let start = self.at;
        let levels = match self.peek() {
            Some(b'{' | b'[') => self.brackets()?,
            Some(b'"') => self.string().map(|_| 0)?,
            _ => self.scalar(),
        };
        Ok(Found { range: start..self.at, levels })
    }

    /// Skips an object or array, and returns how many brackets were open at its deepest place.
    fn brackets(&mut self) -> Result<usize, Unbalanced> {
        let (outside, mut deepest) = (self.open.len(), 0);
        loop {
            match self.peek().ok_or(Unbalanced)? {
                b'"' => self.string().map(drop)?,
                byte => self.step(byte)?,
            }
            deepest = deepest.max(self.open.len());
            if self.open.len() == outside {
                return Ok(deepest);
            }
        }
    }

    /// Skips a number or a word, neither of which has levels.
    fn scalar(&mut self) -> usize {
        let ends = |byte: u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
        while self.peek().is_some_and(|byte| !ends(byte)) {
            self.at += 1;
        }
        0
    }

    /// Skips the string that begins here, and returns the text between its quotes.
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

    /// Skips the colon after a key, and the space around it; whether there was one.
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

    /// Skips one byte outside of strings, keeping track of the brackets.
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
