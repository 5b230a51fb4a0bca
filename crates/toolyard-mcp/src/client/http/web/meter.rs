//! Measures events while they arrive.

/// Measures what is kept of the events of a stream: the bytes of each, without comments and line ends.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// The bytes of its complete lines.
    kept: usize,
    /// The bytes of its last line so far.
    line: usize,
    is_comment: bool,
    /// The last byte was a carriage return: a line feed after it belongs to the same line end.
    after_return: bool,
}

impl Meter {
    /// The bytes of the event that is being read.
    pub(crate) fn bytes(&self) -> usize {
        self.kept.saturating_add(self.line)
    }

    /// Measures bytes up to the end of an event; returns the place behind that, or `None` if the event goes on.
    ///
    /// # Errors
    /// The event has more bytes than allowed.
    pub(crate) fn measure(&mut self, bytes: &[u8], bytes_max: usize) -> Result<Option<usize>, TooLarge> {
        for (at, byte) in bytes.iter().enumerate() {
            let was_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if was_return => {}
                b'\n' | b'\r' if self.end_line() => return Ok(Some(at + 1)),
                b'\n' | b'\r' => {}
                _ => {
                    self.is_comment = if self.line == 0 { *byte == b':' } else { self.is_comment };
                    self.line += 1;
                }
            }
            if self.bytes() > bytes_max {
                return Err(TooLarge);
            }
        }
        Ok(None)
    }

    /// Ends a line; returns whether it also ends an event.
    fn end_line(&mut self) -> bool {
        let line = std::mem::take(&mut self.line);
        if line == 0 {
            return std::mem::take(&mut self.kept) > 0;
        }
        if !self.is_comment {
            // Lines of data are joined with a line end.
            self.kept += line + 1;
        }
        false
    }
}

/// An event has more bytes than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLarge;

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes of the events in these pieces.
    fn sizes(pieces: &[&str], max: usize) -> Result<Vec<usize>, TooLarge> {
        let (mut meter, mut ends, mut before) = (Meter::default(), Vec::new(), 0);
        for piece in pieces {
            let mut from = 0;
            while let Some(end) = meter.measure(&piece.as_bytes()[from..], max)? {
                from += end;
                ends.push(before + from);
            }
            before += piece.len();
        }
        Ok(ends)
    }

    /// Every line end that the standard has is one, also across pieces.
    #[test]
    fn an_event_ends_with_an_empty_line() {
        assert_eq!(sizes(&["data: a\n\ndata: b\n\n"], 100), Ok(vec![9, 18]));
        assert_eq!(sizes(&["data: a\r\rdata: b\r\r"], 100), Ok(vec![9, 18]));
        assert_eq!(sizes(&["data: a\r\n\r\ndata: b\r\n\r\n"], 100), Ok(vec![10, 21]));
        assert_eq!(sizes(&["da", "ta: a\r", "\n", "\r", "\ndata: b"], 100), Ok(vec![10]));
        assert_eq!(sizes(&["\n\n\n: ping\n\n\n"], 100), Ok(vec![]));
    }

    /// What is kept of an event counts, and a comment only as long as it lasts.
    #[test]
    fn an_event_is_bounded_and_a_stream_is_not() {
        assert_eq!(sizes(&["data: aaa\n\n"], 10), Ok(vec![11]));
        assert_eq!(sizes(&["data: aaaa\n\n"], 10), Err(TooLarge));
        assert_eq!(sizes(&["data: aaaaa"], 10), Err(TooLarge));
        assert_eq!(sizes(&["data:\ndata:\n"], 10), Err(TooLarge));
        assert_eq!(sizes(&["data: a\n\n".repeat(9).as_str()], 10).map(|ends| ends.len()), Ok(9));
        assert_eq!(sizes(&[": a ping\n".repeat(9).as_str()], 10), Ok(vec![]));
        assert_eq!(sizes(&[": a long ping"], 10), Err(TooLarge));
    }
}
