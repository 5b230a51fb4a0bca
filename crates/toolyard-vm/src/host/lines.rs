//! Lines of JSON from a socket, of bounded length.

use crate::protocol::LINE_BYTES_MAX;
use serde::de::DeserializeOwned;
use std::io;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// Lines that are read from a socket.
pub(super) struct Lines<R> {
    reader: R,
    line: Vec<u8>,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, line: Vec::new() }
    }

    /// The document in the next line; `None` at the end.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(super) async fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        loop {
            let piece = self.reader.fill_buf().await?;
            if piece.is_empty() {
                return Ok(None);
            }
            let (length, is_whole) = match piece.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (piece.len(), false),
            };
            self.line.extend(&piece[..length]);
            self.reader.consume(length);
            if self.line.len() > LINE_BYTES_MAX {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too long"));
            }
            if is_whole {
                let document = serde_json::from_slice(&self.line);
                self.line.clear();
                return Ok(Some(document?));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SB-7: a machine cannot make the host keep more than one line.
    #[tokio::test]
    async fn a_line_without_an_end_is_refused() {
        let endless = vec![b' '; 2 * LINE_BYTES_MAX];
        let error = Lines::new(&endless[..]).next::<u8>().await.unwrap_err();
        assert_eq!(error.to_string(), "a message is too long");
    }

    #[tokio::test]
    async fn lines_are_read_one_by_one() {
        let mut lines = Lines::new(&b"1\n2\r\n3"[..]);
        assert_eq!(lines.next::<u8>().await.unwrap(), Some(1));
        assert_eq!(lines.next::<u8>().await.unwrap(), Some(2));
        assert_eq!(lines.next::<u8>().await.unwrap(), None);
    }
}
