//! Reads lines of bounded length, and long ones within one budget for all agents (AG-2).
//!
//! ```text
//!   bytes ─► buffer ─► a line
//!              │ over 64 KiB: takes its place among the long lines, of which a few are read at once, each for 30 s
//!              └ over 4 MiB, or not whole in time: an error, and no more lines
//! ```

use futures::{FutureExt as _, future::BoxFuture};
use std::{future::pending, io, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

/// The most bytes of a line.
pub(crate) const LINE_BYTES_MAX: usize = 4 << 20;

/// A line of more bytes than this needs a place among the long ones.
const SHORT_BYTES: usize = 64 << 10;

/// The most bytes of all long lines that are read at once.
const LONG_BYTES_MAX: usize = 64 << 20;

/// How long the rest of a long line may take.
const LONG_TIME: Duration = Duration::from_secs(30);

/// How many bytes are read at once.
const CHUNK: usize = 8 << 10;

/// The memory for the long lines of all agents.
#[derive(Debug, Clone)]
pub(crate) struct LongLines(Arc<Semaphore>);

impl Default for LongLines {
    fn default() -> Self {
        // Each gets what the longest may need: lines that grew into each other's memory would wait for each other.
        Self(Arc::new(Semaphore::new(LONG_BYTES_MAX / LINE_BYTES_MAX)))
    }
}

/// Why there is no next line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    #[error("it sent a line of more than {LINE_BYTES_MAX} bytes")]
    TooLong,
    #[error("it did not end a line of more than {SHORT_BYTES} bytes within {} s", LONG_TIME.as_secs())]
    TooSlow,
    #[error("reading from it failed: {0}")]
    Broken(#[from] io::Error),
}

/// Cuts bytes into lines.
pub(crate) struct Lines<R> {
    from: R,
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to where there is no line end.
    searched: usize,
    long: Long,
    long_lines: LongLines,
    is_over: bool,
}

/// The place of a long line.
enum Long {
    None,
    Waits(BoxFuture<'static, OwnedSemaphorePermit>),
    Read { _place: OwnedSemaphorePermit, until: Instant },
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(from: R, long_lines: &LongLines) -> Self {
        let long_lines = long_lines.clone();
        Self { from, buffer: Vec::new(), start: 0, searched: 0, long: Long::None, long_lines, is_over: false }
    }

    /// Nobody reads on for now: a long line gives its place to others, and gets another one, and its whole time, when it is
    /// read on.
    pub(crate) fn rest(&mut self) {
        self.forget_given();
        self.long = Long::None;
    }

    /// The next line without its end; `None` at the end of the input. What follows the last line end is a line too, unless
    /// it is empty.
    ///
    /// # Errors
    /// [`LineError`]; there are no more lines then.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Option<&[u8]>, LineError> {
        self.next_of(usize::MAX).await
    }

    /// The same for a line that is short. For one that is longer this waits for ever, and reads little of it.
    ///
    /// # Errors
    /// [`LineError`]; there are no more lines then.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn next_short(&mut self) -> Result<Option<&[u8]>, LineError> {
        self.next_of(SHORT_BYTES).await
    }

    async fn next_of(&mut self, most: usize) -> Result<Option<&[u8]>, LineError> {
        loop {
            if let Some(end) = self.end() {
                let line = self.start..end;
                (self.start, self.searched) = (end + 1, end + 1);
                let line = &self.buffer[line];
                return Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)));
            }
            self.forget_given();
            if self.buffer.len() > most {
                self.long = Long::None; // it gives its place to others
                return pending().await;
            }
            if self.buffer.len() > LINE_BYTES_MAX {
                return Err(LineError::TooLong);
            }
            let until = self.place().await;
            self.buffer.reserve(CHUNK);
            let read = self.from.read_buf(&mut self.buffer);
            let read = match until {
                None => read.await?,
                Some(until) => timeout_at(until, read).await.map_err(|_| LineError::TooSlow)??,
            };
            if read == 0 {
                return Ok(self.last());
            }
        }
    }

    /// What follows the last line end.
    fn last(&mut self) -> Option<&[u8]> {
        let is_over = std::mem::replace(&mut self.is_over, true);
        (!is_over && !self.buffer.is_empty()).then_some(&self.buffer)
    }

    /// Where the next line ends. One that is too long has no end.
    fn end(&mut self) -> Option<usize> {
        let end = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
        let end = end.map(|at| self.searched + at);
        self.searched = self.buffer.len();
        end.filter(|end| end - self.start <= LINE_BYTES_MAX)
    }

    /// Drops the lines that were given. What they needed beyond short ones is not kept for those to come.
    fn forget_given(&mut self) {
        if self.start == 0 {
            return;
        }
        self.buffer.drain(..self.start);
        // Whole lines may still follow, if nobody reads on for now.
        self.searched -= self.start;
        self.start = 0;
        if self.buffer.len() <= SHORT_BYTES {
            self.buffer.shrink_to(CHUNK);
            self.long = Long::None;
        } else if let Long::Read { until, .. } = &mut self.long {
            *until = Instant::now() + LONG_TIME; // another line
        }
    }

    /// Takes a place among the long lines if this has become one. Returns until when it has to be whole.
    async fn place(&mut self) -> Option<Instant> {
        if self.buffer.len() <= SHORT_BYTES {
            return None;
        }
        if let Long::None = self.long {
            let places = self.long_lines.0.clone();
            let place = async move { places.acquire_owned().await.expect("it is never closed") };
            self.long = Long::Waits(place.boxed());
        }
        if let Long::Waits(place) = &mut self.long {
            let place = place.await;
            self.long = Long::Read { _place: place, until: Instant::now() + LONG_TIME };
        }
        match self.long {
            Long::Read { until, .. } => Some(until),
            Long::None | Long::Waits(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
