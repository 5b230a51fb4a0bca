//! What is written to an agent, as fast as it reads.

use crate::protocol::Tell;
use std::mem;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

/// How many bytes wait for the agent before no more answers are taken.
const ANSWERS_MAX: usize = 64 << 10;

/// How many bytes of replies to its own lines wait before the agent is not read either.
const REPLIES_MAX: usize = 64 << 10;

/// The lines that an agent has yet to read.
pub(super) struct Outgoing<W> {
    /// `None` once the agent has closed its input.
    to: Option<W>,
    waiting: Vec<u8>,
    written: usize,
    /// How much of what waits are replies, at most.
    replies: usize,
}

impl<W: AsyncWrite + Unpin> Outgoing<W> {
    pub(super) fn new(to: W) -> Self {
        Self { to: Some(to), waiting: Vec::new(), written: 0, replies: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether answers of the engine may be added.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() - self.written < ANSWERS_MAX
    }

    /// Whether replies may be added, and so lines be read. Answers do not count: whoever sends many calls before it reads
    /// their answers must not be stuck.
    pub(super) fn has_room_for_replies(&self) -> bool {
        self.replies < REPLIES_MAX
    }

    /// Closes the agent's input.
    pub(super) fn close(&mut self) {
        self.to = None;
        self.reset();
    }

    /// Adds an answer of the engine. An agent that has closed its input misses it.
    pub(super) fn tell(&mut self, line: &Tell<'_>) {
        if self.to.is_some() {
            line.write(&mut self.waiting);
        }
    }

    /// Adds what a line of the agent itself has caused.
    pub(super) fn reply(&mut self, line: &Tell<'_>) {
        let before = self.waiting.len();
        self.tell(line);
        self.replies += self.waiting.len() - before;
    }

    /// Writes some of what waits.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(super) async fn write(&mut self) {
        let Some(to) = &mut self.to else { return };
        match to.write(&self.waiting[self.written..]).await {
            Ok(written) if written > 0 => {
                self.written += written;
                if self.written == self.waiting.len() {
                    self.reset();
                } else if self.written >= ANSWERS_MAX {
                    // What an agent has read takes no memory, however slowly it reads on.
                    self.waiting.drain(..self.written);
                    self.replies = self.replies.saturating_sub(self.written);
                    self.written = 0;
                }
            }
            // It has closed its input; what it asks goes on.
            Ok(_) | Err(_) => {
                self.close();
            }
        }
    }

    /// Nothing waits. The memory of a large answer is not kept.
    fn reset(&mut self) {
        let kept = mem::take(&mut self.waiting);
        if kept.capacity() <= ANSWERS_MAX {
            self.waiting = kept;
            self.waiting.clear();
        }
        (self.written, self.replies) = (0, 0);
    }
}
