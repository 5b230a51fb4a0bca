//! Lines of an agent that wait for room for a call in front of them, and what is read ahead of it.
//!
//! ```text
//!   lines ─► nothing waits? ─┬─ yes ─► done at once
//!                            └─ no ──► held, in order, up to 64 KiB of lines ─► done when there is room
//!                                       └ a cancel of a call in flight, or of one that is held: at once
//! ```

use crate::protocol::{Ask, AskedCall, Refused};
use std::collections::VecDeque;
use toolyard::CallId;

/// How many bytes of lines are read ahead of a call that waits for room.
const AHEAD_MAX: usize = 64 << 10;

/// What waits.
#[derive(Debug)]
pub(super) enum Waits {
    /// A call, which needs room.
    Call(Box<Result<AskedCall, Refused>>),
    /// A line that is no call.
    Line(Box<Result<Ask, Refused>>),
}

#[derive(Debug)]
struct HeldLine {
    waits: Waits,
    line: u64,
    /// How long the line was that was read ahead.
    ahead: usize,
}

/// Lines, in their order.
#[derive(Debug, Default)]
pub(super) struct Held {
    queue: VecDeque<HeldLine>,
    ahead: usize,
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether one more line may be read.
    pub(super) fn reads_on(&self) -> bool {
        self.is_empty() || self.ahead < AHEAD_MAX
    }

    /// Adds a line with this number, and of this length if others are in front of it.
    pub(super) fn push(&mut self, asked: Result<Ask, Refused>, line: u64, bytes: usize) {
        let ahead = if self.is_empty() { 0 } else { bytes };
        self.ahead += ahead;
        let mut add = |waits, ahead| self.queue.push_back(HeldLine { waits, line, ahead });
        match asked {
            Ok(Ask::Calls(calls)) => {
                // A list of none is nothing.
                let last = calls.len().saturating_sub(1);
                if calls.is_empty() {
                    self.ahead -= ahead;
                    return;
                }
                for (at, call) in calls.into_iter().enumerate() {
                    add(Waits::Call(Box::new(call)), if at == last { ahead } else { 0 });
                }
            }
            other => add(Waits::Line(Box::new(other)), ahead),
        }
    }

    /// What is next, with the number of its line; nothing if that is a call and there is no room.
    pub(super) fn next(&mut self, has_room: bool) -> Option<(Waits, u64)> {
        if !has_room && matches!(self.queue.front()?.waits, Waits::Call(_)) {
            return None;
        }
        let HeldLine { waits, line, ahead } = self.queue.pop_front()?;
        self.ahead -= ahead;
        Some((waits, line))
    }

    /// Takes out the call of this id.
    pub(super) fn cancel(&mut self, id: &CallId) -> Option<AskedCall> {
        let is_it = |held: &HeldLine| matches!(&held.waits, Waits::Call(call) if call.as_ref().as_ref().is_ok_and(|asked| asked.call.id == *id));
        let at = self.queue.iter().position(is_it)?;
        let HeldLine { waits, ahead, .. } = self.queue.remove(at)?;
        self.ahead -= ahead;
        match waits {
            Waits::Call(call) => call.ok(),
            Waits::Line(_) => None,
        }
    }

    /// Takes out everything.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Waits> + use<> {
        std::mem::take(self).queue.into_iter().map(|held| held.waits)
    }
}
