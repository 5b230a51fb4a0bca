//! Answers that an agent has yet to read (AG-13).
//!
//! ```text
//!   the engine ─► outcome ─┬─ nothing waits ───────────────────► outgoing
//!                          └─ answers wait for the agent ─► room for it? ─┬─ yes ─► kept ─► outgoing, when it reads
//!                                                                         └─ no ──► an error in its place, kept
//! ```
//!
//! Outcomes are taken from the engine as they come, so that its room for results is never an agent's that does not read.
//! Here each agent has a bound, and a part of what is left of the room of all, so that some is left for the others.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use toolyard::{
    CallError, ErrorKind, Outcome, Routing,
    error::{Effect, Reason},
};

/// How many bytes of results an agent may leave unread.
const OWN_MAX: usize = 16 << 20;

/// The same of all agents.
const ALL_MAX: usize = 256 << 20;

/// Which part of the room that is left a result may take.
const PART: usize = 4;

/// Results of so many bytes are always kept: an agent has few of them.
const SMALL: usize = 1 << 10;

/// So many calls may be in the engine whatever the size of their results: one that lasts must not hold up the others.
const CALLS_MIN: usize = 16;

/// The room for the unread answers of all agents.
#[derive(Debug, Clone)]
pub(crate) struct AnswersRoom(Arc<AtomicUsize>);

impl Default for AnswersRoom {
    fn default() -> Self {
        Self(Arc::new(AtomicUsize::new(ALL_MAX)))
    }
}

impl AnswersRoom {
    fn take(&self, bytes: usize) -> bool {
        let left = |left: usize| (bytes <= left / PART).then(|| left - bytes);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The answers of one agent that wait.
#[derive(Debug)]
pub(super) struct Unread {
    room: AnswersRoom,
    /// Each with the room that it has.
    waiting: VecDeque<(Outcome, usize)>,
    bytes: usize,
    /// How large results are: of the largest one lately.
    largest: usize,
}

impl Unread {
    pub(super) fn new(room: AnswersRoom) -> Self {
        Self { room, waiting: VecDeque::new(), bytes: 0, largest: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many calls may be in the engine at once, so that their results probably have room.
    pub(super) fn calls_max(&self) -> usize {
        (OWN_MAX / self.largest.max(1)).max(CALLS_MIN)
    }

    /// A result came.
    pub(super) fn came(&mut self, outcome: &Outcome) {
        self.largest = footprint(outcome).max(self.largest - self.largest / 16);
    }

    /// Keeps an answer. One that has no room is an error from then on.
    pub(super) fn keep(&mut self, mut outcome: Outcome) {
        let bytes = footprint(&outcome);
        let has_room = bytes <= SMALL || (self.bytes + bytes <= OWN_MAX && self.room.take(bytes));
        let taken = if has_room && bytes > SMALL { bytes } else { 0 };
        if !has_room {
            let error = no_room(&outcome, bytes, self.bytes);
            outcome.status = Err(Box::new(error));
        }
        self.bytes += taken;
        self.waiting.push_back((outcome, taken));
    }

    /// The next answer to be told.
    pub(super) fn next(&mut self) -> Option<Outcome> {
        let (outcome, bytes) = self.waiting.pop_front()?;
        self.bytes -= bytes;
        self.room.give_back(bytes);
        Some(outcome)
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.room.give_back(self.bytes);
    }
}

fn footprint(outcome: &Outcome) -> usize {
    match &outcome.status {
        Ok(output) => output.footprint(),
        Err(error) => error.footprint(),
    }
}

/// What becomes of a result without room.
fn no_room(outcome: &Outcome, bytes: usize, unread: usize) -> CallError {
    let message = format!(
        "the call ran, but there is no room for its result of {bytes} bytes: {unread} bytes of results have not been read"
    );
    let mut error = CallError::new(ErrorKind::OutputTooLarge, message).with_reason(Reason::ResultBudget);
    let is_read = outcome.routing == Routing::Read;
    error.set_effect(if is_read { Effect::Failed } else { Effect::Unknown });
    error.set_retryable(is_read);
    error
        .after_attempts(outcome.attempts)
        .with_advice("Read answers while calls run, or ask for less at a time.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolyard::{Call, ToolOutput};

    fn of(bytes: usize) -> Outcome {
        let output = ToolOutput::text("x".repeat(bytes));
        Outcome::new(&Call::new("c", "read", "{}"), Routing::Read, Ok(output))
    }

    /// AG-13: agents that read nothing leave room for another one, however many they are.
    #[test]
    fn many_that_do_not_read_leave_room() {
        let room = AnswersRoom::default();
        let mut deaf: Vec<_> = (0..40).map(|_| Unread::new(room.clone())).collect();
        for agent in &mut deaf {
            for _ in 0..80 {
                agent.keep(of(1 << 20));
            }
            assert!(agent.bytes <= OWN_MAX);
        }
        let mut other = Unread::new(room.clone());
        other.keep(of(100 << 10));
        assert!(other.next().unwrap().success());
        // What is read, or gone with its agent, is room again.
        drop(deaf);
        drop(other);
        assert_eq!(room.0.load(Ordering::Relaxed), ALL_MAX);
    }

    /// AG-13: a result without room is told as that, and small ones always have room.
    #[test]
    fn a_result_without_room_is_an_error() {
        let mut agent = Unread::new(AnswersRoom::default());
        let (half, small) = (OWN_MAX / 2 + 1, 100);
        for bytes in [half, half, small] {
            agent.keep(of(bytes));
        }
        let told: Vec<_> = std::iter::from_fn(|| agent.next()).collect();
        let error = told[1].error().unwrap();
        assert_eq!((error.kind, error.reason), (ErrorKind::OutputTooLarge, Some(Reason::ResultBudget)));
        assert!(error.retryable && told[0].success() && told[2].success());
        assert_eq!((agent.bytes, agent.is_empty()), (0, true));
    }

    /// AG-13: whose results are large has fewer calls in the engine.
    #[test]
    fn large_results_are_asked_for_one_after_another() {
        let mut agent = Unread::new(AnswersRoom::default());
        assert!(agent.calls_max() > 1_000);
        agent.came(&of(512 << 10));
        assert!((CALLS_MIN..=32).contains(&agent.calls_max()));
        agent.came(&of(8 << 20));
        assert_eq!(agent.calls_max(), CALLS_MIN);
    }
}
