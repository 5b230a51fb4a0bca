//! Splits SSE text that arrives in pieces into its events.

use super::{SseEvent, split_field};
use crate::{DecodeError, bounds::BODY_BYTES_MAX};
use std::borrow::Cow;

/// Splits SSE text into its events while it arrives, in pieces of any size.
///
/// A piece may end inside a character, a line end or a field's name. The events are those that
/// [`sse_events`](crate::sse_events) finds in the whole text. The whole text may have at most [`BODY_BYTES_MAX`]
/// bytes, which also bounds the one line and the one event that are kept.
///
/// # Examples
/// ```
/// use toolyard_wire::SseSplitter;
/// let mut splitter = SseSplitter::default();
/// let (mut first, mut second) = (&b"data: {\"a\""[..], &b":1}\r\n\r\nda"[..]);
/// assert_eq!(splitter.read(&mut first)?, None);
/// assert_eq!(splitter.read(&mut second)?.unwrap().data, "{\"a\":1}");
/// assert_eq!(splitter.read(&mut second)?, None);
/// assert_eq!(splitter.finish()?, None);
/// # Ok::<(), toolyard_wire::DecodeError>(())
/// ```
#[derive(Debug, Default)]
pub struct SseSplitter {
    /// The line that has not ended.
    line: Vec<u8>,
    /// The number of bytes before it.
    line_at: usize,
    consumed: usize,
    /// Whether the last line ended with CR; an LF that follows belongs to the same line end.
    after_cr: bool,
    event: String,
    data: Option<String>,
    /// Whether `event` and `data` were returned, so that the next read clears them.
    returned: bool,
}

impl SseSplitter {
    /// Consumes bytes from the front of a piece until an event is complete; `None` when the piece is used up.
    ///
    /// # Errors
    /// [`DecodeError::TooLarge`] beyond the bound, [`DecodeError::NotText`] when a line is not UTF-8. Nothing can be
    /// read after that.
    pub fn read(&mut self, piece: &mut &[u8]) -> Result<Option<SseEvent<'_>>, DecodeError> {
        self.clear_returned();
        while self.take_line(piece)? {
            if self.line_ended()? {
                self.returned = true;
                return Ok(self.event(true));
            }
        }
        Ok(None)
    }

    /// Ends the text, and returns the event whose blank line is missing, if there is one. Half a character at the
    /// very end is dropped.
    ///
    /// # Errors
    /// [`DecodeError::NotText`] when the last line is not UTF-8 before its end.
    pub fn finish(&mut self) -> Result<Option<SseEvent<'_>>, DecodeError> {
        self.clear_returned();
        if let Err(error) = std::str::from_utf8(&self.line)
            && error.error_len().is_none()
        {
            self.line.truncate(error.valid_up_to());
        }
        if !self.line.is_empty() {
            self.line_ended()?;
        }
        self.returned = true;
        Ok(self.event(false))
    }

    fn event(&self, ended: bool) -> Option<SseEvent<'_>> {
        let data = Cow::Borrowed(self.data.as_deref()?);
        Some(SseEvent { event: &self.event, data, ended })
    }

    fn clear_returned(&mut self) {
        if std::mem::take(&mut self.returned) {
            self.event.clear();
            self.data = None;
        }
    }

    /// Consumes bytes up to the end of a line. Returns whether the line is complete; if not, the piece is used up.
    fn take_line(&mut self, piece: &mut &[u8]) -> Result<bool, DecodeError> {
        let max = BODY_BYTES_MAX;
        if !piece.is_empty() && self.consumed == max {
            return Err(DecodeError::TooLarge { max });
        }
        if !piece.is_empty() && std::mem::take(&mut self.after_cr) && piece[0] == b'\n' {
            self.consume(piece, 1);
            self.line_at = self.consumed;
        }
        let seen = &piece[..piece.len().min(max - self.consumed)];
        let end = seen.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        self.line.extend_from_slice(&seen[..end.unwrap_or(seen.len())]);
        if let Some(end) = end {
            self.after_cr = seen[end] == b'\r';
            self.consume(piece, end + 1);
            return Ok(true);
        }
        self.consume(piece, seen.len());
        if piece.is_empty() { Ok(false) } else { Err(DecodeError::TooLarge { max }) }
    }

    fn consume(&mut self, piece: &mut &[u8], count: usize) {
        *piece = &piece[count..];
        self.consumed += count;
    }

    /// Processes a complete line. Returns whether it is the blank line that ends an event.
    fn line_ended(&mut self) -> Result<bool, DecodeError> {
        let not_text = |error: std::str::Utf8Error| DecodeError::NotText {
            position: self.line_at + error.valid_up_to(),
        };
        let line = std::str::from_utf8(&self.line).map_err(not_text)?;
        let line = if self.line_at == 0 { line.strip_prefix('\u{feff}').unwrap_or(line) } else { line };
        let is_end = line.is_empty() && self.data.is_some();
        match split_field(line) {
            _ if is_end => {}
            ("", _) if line.is_empty() => self.event.clear(),
            ("event", value) => value.clone_into(&mut self.event),
            ("data", value) => add(&mut self.data, value),
            _ => {}
        }
        self.line.clear();
        self.line_at = self.consumed;
        Ok(is_end)
    }
}

fn add(data: &mut Option<String>, value: &str) {
    match data {
        Some(data) => {
            data.push('\n');
            data.push_str(value);
        }
        None => *data = Some(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The data of all events, read in pieces of this size.
    fn data(text: &[u8], size: usize) -> Result<Vec<String>, DecodeError> {
        let mut splitter = SseSplitter::default();
        let mut found = Vec::new();
        for mut piece in text.chunks(size) {
            while let Some(event) = splitter.read(&mut piece)? {
                found.push(event.data.into_owned());
            }
        }
        found.extend(splitter.finish()?.map(|event| event.data.into_owned()));
        Ok(found)
    }

    #[track_caller]
    fn check(text: &[u8], expect: Result<&[&str], usize>) {
        for size in 1..=text.len() {
            let found = data(text, size);
            match expect {
                Ok(expect) => assert_eq!(found.unwrap(), expect, "pieces of {size}"),
                Err(position) => {
                    assert_eq!(found, Err(DecodeError::NotText { position }), "pieces of {size}")
                }
            }
        }
    }

    #[test]
    fn characters_and_line_ends_may_be_cut() {
        check(
            "\u{feff}data: é\r\ndata: 木\r\n\r\ndata: x\r\rdata: y\n\n".as_bytes(),
            Ok(&["é\n木", "x", "y"]),
        );
    }

    #[test]
    fn half_a_character_at_the_end_is_dropped() {
        check(b"data: a\n\ndata: b\xe6\x9c", Ok(&["a", "b"]));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_reported_with_their_position() {
        check(b"data: a\r\n\r\ndata: \xffb\n\n", Err(17));
        check(b"data: \xe6\x9c\ndata: b\n\n", Err(6));
        check(b"data: a\n\ndata: b\xffc", Err(16));
    }

    #[test]
    fn more_than_the_bound_is_refused_and_what_was_before_is_returned() {
        let mut splitter = SseSplitter::default();
        let text = [b"data: a\n\n".as_slice(), b": ".as_slice(), &vec![b'x'; BODY_BYTES_MAX]].concat();
        let mut piece = text.as_slice();
        assert_eq!(splitter.read(&mut piece).unwrap().unwrap().data, "a");
        assert_eq!(splitter.read(&mut piece), Err(DecodeError::TooLarge { max: BODY_BYTES_MAX }));
    }
}
