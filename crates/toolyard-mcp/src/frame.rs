//! Splits bytes into lines of bounded length.

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, BufReader};

/// Maximum size of one message, in bytes.
pub(crate) const LINE_BYTES_MAX: usize = 16 << 20;

/// The memory that is kept for the next line, in bytes.
const KEPT_BYTES: usize = 64 << 10;

/// Why a line cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    /// A line is longer than the bound.
    #[error("it sent a line of more than {0} bytes")]
    TooLong(usize),
    /// The pipe broke.
    #[error("reading from it failed: {0}")]
    Broken(#[from] std::io::Error),
}

/// Cuts bytes into lines.
pub(crate) struct Lines<R> {
    read: BufReader<R>,
    line: Vec<u8>,
    bytes_max: usize,
    /// The line has been returned; the next read clears it.
    is_returned: bool,
    /// The line is too long, and the rest of it is skipped.
    is_skipped: bool,
    /// Whether text after the last line end counts as a line.
    returns_unterminated: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(read: R, bytes_max: usize) -> Self {
        let read = BufReader::new(read);
        Self {
            read,
            line: Vec::new(),
            bytes_max,
            is_returned: false,
            is_skipped: false,
            returns_unterminated: false,
        }
    }

    /// Treats text after the last line end as a line: for a peer that may close its end there, as opposed to one that
    /// died in the middle of a message.
    pub(crate) fn with_unterminated_last(mut self) -> Self {
        self.returns_unterminated = true;
        self
    }

    /// Sets the maximum size of the lines that follow.
    pub(crate) fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    /// The next line without its line end; `None` at the end of the stream. Text after the last line end is not a line
    /// without [`with_unterminated_last`](Self::with_unterminated_last).
    ///
    /// # Errors
    /// [`FrameError`]. A line that is too long is reported once, and reading can continue after it.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: the part of a line already read is kept for the next call.
    pub(crate) async fn next(&mut self) -> Result<Option<&[u8]>, FrameError> {
        if std::mem::take(&mut self.is_returned) {
            self.line.clear();
            // One long line must not hold its memory for the rest of a connection.
            self.line.shrink_to(KEPT_BYTES);
        }
        while !self.take_piece().await? {
            if self.read.buffer().is_empty() && self.at_end().await? {
                if self.returns_unterminated && !self.line.is_empty() {
                    break;
                }
                return Ok(None);
            }
        }
        self.is_returned = true;
        Ok(Some(self.line.strip_suffix(b"\r").unwrap_or(&self.line)))
    }

    /// Moves buffered bytes to the line; returns whether it is complete. Nothing is awaited between look and consume.
    async fn take_piece(&mut self) -> Result<bool, FrameError> {
        let buffered = self.read.fill_buf().await?;
        let end = buffered.iter().position(|byte| *byte == b'\n');
        let piece = &buffered[..end.unwrap_or(buffered.len())];
        let taken = piece.len() + usize::from(end.is_some());
        let is_skipped = self.is_skipped;
        let is_too_long = !is_skipped && self.line.len() + piece.len() > self.bytes_max;
        if is_too_long {
            self.line = Vec::new();
        } else if !is_skipped {
            self.line.extend_from_slice(piece);
        }
        self.is_skipped = (is_skipped || is_too_long) && end.is_none();
        std::pin::Pin::new(&mut self.read).consume(taken);
        if is_too_long { Err(FrameError::TooLong(self.bytes_max)) } else { Ok(end.is_some() && !is_skipped) }
    }

    async fn at_end(&mut self) -> Result<bool, FrameError> {
        Ok(self.read.fill_buf().await?.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(bytes: &[u8], max: usize) -> Result<Vec<String>, FrameError> {
        let mut lines = Lines::new(bytes, max);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await? {
            all.push(String::from_utf8_lossy(line).into_owned());
        }
        Ok(all)
    }

    #[tokio::test]
    async fn lines_end_with_their_end() {
        assert_eq!(all(b"a\r\n\nbc\nrest", 4).await.unwrap(), ["a", "", "bc"]);
        assert_eq!(all(b"", 4).await.unwrap(), [""; 0]);
    }

    /// The rest is returned once, and not if it belongs to a line that is too long.
    #[tokio::test]
    async fn the_rest_is_a_line_where_it_is_wanted() {
        let mut lines = Lines::new(b"a\nrest".as_slice(), 4).with_unterminated_last();
        assert_eq!(lines.next().await.unwrap(), Some(&b"a"[..]));
        assert_eq!(lines.next().await.unwrap(), Some(&b"rest"[..]));
        assert_eq!(lines.next().await.unwrap(), None);
        let mut lines = Lines::new(b"abcde".as_slice(), 4).with_unterminated_last();
        assert!(matches!(lines.next().await, Err(FrameError::TooLong(4))));
        assert_eq!(lines.next().await.unwrap(), None);
        assert_eq!(
            Lines::new(b"a\n".as_slice(), 4).with_unterminated_last().next().await.unwrap(),
            Some(&b"a"[..])
        );
    }

    #[tokio::test]
    async fn a_line_over_the_bound_is_the_end() {
        assert!(matches!(all(b"abcd\nabcde\n", 4).await, Err(FrameError::TooLong(4))));
        assert!(matches!(all(&b"x".repeat(100_000), 4).await, Err(FrameError::TooLong(4))));
    }

    /// A reader that continues after the error gets the lines behind it.
    #[tokio::test]
    async fn a_line_over_the_bound_is_reported_once() {
        let bytes = [b"a\n".as_slice(), &b"x".repeat(100_000), b"\nabcde\nb\n"].concat();
        let mut lines = Lines::new(bytes.as_slice(), 4);
        assert_eq!(lines.next().await.unwrap(), Some(&b"a"[..]));
        for _ in 0..2 {
            assert!(matches!(lines.next().await, Err(FrameError::TooLong(4))));
        }
        assert_eq!(lines.next().await.unwrap(), Some(&b"b"[..]));
        assert_eq!(lines.next().await.unwrap(), None);
    }

    /// A read dropped between two pieces of a line resumes where it stopped.
    #[tokio::test]
    async fn a_dropped_read_loses_nothing() {
        let (mut write, read) = tokio::io::duplex(64);
        let mut lines = Lines::new(read, 64);
        tokio::io::AsyncWriteExt::write_all(&mut write, b"ab").await.unwrap();
        assert!(futures::FutureExt::now_or_never(lines.next()).is_none());
        tokio::io::AsyncWriteExt::write_all(&mut write, b"c\n").await.unwrap();
        assert_eq!(lines.next().await.unwrap(), Some(&b"abc"[..]));
    }
}
