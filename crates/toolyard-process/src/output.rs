//! Reads what a program writes.

use crate::Output;
use rustix::io::{read, retry_on_intr};
use tokio::io::AsyncReadExt as _;

/// How many bytes are read at a time: the capacity of a pipe.
const READ_BYTES: usize = 64 << 10;

/// The most that is read without waiting: the largest capacity of a pipe. A process that escaped and still writes cannot
/// hold up whoever reads.
const DRAIN_BYTES_MAX: usize = 1 << 20;

/// Reads one output of a program in pieces of up to 64 KiB.
///
/// The end of an output comes when the last process that holds it has ended, which may be one that escaped. So read until
/// the processes have ended, not until the output has, and then [`drain`](Self::drain) it.
#[derive(Debug)]
pub struct OutputReader {
    pipe: Output,
    piece: Vec<u8>,
    at_end: bool,
}

impl OutputReader {
    /// A reader of this output.
    pub fn new(pipe: Output) -> Self {
        Self { pipe, piece: vec![0; READ_BYTES], at_end: false }
    }

    /// The next piece; `None` at the end.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn read(&mut self) -> Option<&[u8]> {
        if self.at_end {
            return None;
        }
        let length = self.pipe.read(&mut self.piece).await.unwrap_or(0);
        self.at_end = length == 0;
        (length > 0).then(|| &self.piece[..length])
    }

    /// Whether the end was read.
    pub fn at_end(&self) -> bool {
        self.at_end
    }

    /// Reads what is there without waiting, at most 1 MiB. For an output whose program has ended.
    pub fn drain(mut self, mut each: impl FnMut(&[u8])) {
        let mut drained = 0;
        while !self.at_end && drained < DRAIN_BYTES_MAX {
            // Not by `try_read`, which asks the runtime whether something is there. An error says that nothing is.
            let length = retry_on_intr(|| read(&self.pipe, &mut self.piece)).unwrap_or(0);
            self.at_end = length == 0;
            if length > 0 {
                drained += length;
                each(&self.piece[..length]);
            }
        }
    }
}
